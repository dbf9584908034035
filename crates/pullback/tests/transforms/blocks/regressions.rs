//! Cases that once were wrong.

use crate::near;
use pullback::ode::{self, Dopri5};
use pullback::prelude::*;
use pullback::{
    Bound, Policy, Schedule, associative_scan, checkpoint_with, custom_rule, enable_grad, linearize,
    scan_with, switch, while_loop_with,
};
use pullback::{Executable, implicit};
use pullback_testing::message;

fn scalar(v: f64) -> Tensor {
    Tensor::scalar(v)
}

fn points() -> Tensor {
    Tensor::from([1.0, 2.0, 4.0])
}

type Form = (&'static str, Box<dyn Fn(&Tensor) -> Tensor>);

/// All the ways to make a block of `x -> x w` that captures `w`.
fn forms(w: &Tensor) -> Vec<Form> {
    let f = {
        let w = w.clone();
        move |x: &Tensor| x * &w
    };
    let step = {
        let w = w.clone();
        move |h: &Tensor, _: &()| (h * &w, ())
    };
    let few = Schedule::Binomial { slots: 1 };
    let dir = std::env::temp_dir();
    let counting = |(_, k): &(Tensor, Tensor)| k.lt(1.0);
    let counted = {
        let w = w.clone();
        move |(h, k): &(Tensor, Tensor)| (h * &w, k + 1.0)
    };
    let both = counted.clone();
    let start = |x: &Tensor| (x.clone(), scalar(0.0));
    let params = w.clone();
    vec![
        ("checkpoint", Box::new(checkpoint(f.clone()))),
        ("products", Box::new(checkpoint_with(Policy::Products, f.clone()))),
        ("nothing", Box::new(checkpoint_with(Policy::Nothing, f.clone()))),
        ("on disk", Box::new(checkpoint_with(Policy::Everything.offload(dir.clone()), f.clone()))),
        ("dynamic", Box::new(checkpoint_with(Policy::rerun(), f.clone()))),
        ("verified", Box::new(checkpoint_with(Policy::rerun().verify(), f.clone()))),
        ("offloaded", Box::new(checkpoint_with(Policy::rerun().offload(&dir), f.clone()))),
        ("compile", {
            let f = compile(f.clone());
            Box::new(move |x| f.call(x))
        }),
        ("scan_with", {
            let step = step.clone();
            Box::new(move |x| scan_with(few, &step, x, 1).0)
        }),
        ("scan_with, rerun", Box::new(move |x| scan_with(few.rerun(), step.clone(), x, 1).0)),
        ("while_loop_with", {
            Box::new(move |x| {
                while_loop_with(
                    Bound::at_most(3).schedule(Schedule::Online { slots: 2 }),
                    counting,
                    &counted,
                    &start(x),
                )
                .0
            })
        }),
        ("while_loop_with, rerun", {
            Box::new(move |x| {
                while_loop_with(
                    Bound::at_most(3).schedule(Schedule::Online { slots: 2 }.rerun()),
                    counting,
                    both.clone(),
                    &start(x),
                )
                .0
            })
        }),
        // y' = ln(w) y
        ("adjoint", {
            let solver = Dopri5 { relative: 1e-13, absolute: 1e-13, ..Dopri5::default() };
            let slope = |_: f64, y: &Tensor, p: &Tensor| p.ln() * y;
            Box::new(move |x| ode::adjoint(&solver, slope, &params, x, 0.0, 1.0))
        }),
        ("root", {
            let w = w.clone();
            Box::new(move |x| implicit::root(|p: &Tensor, y: &Tensor| y - p * &w, x, &scalar(0.0)))
        }),
    ]
}

#[test]
fn a_block_under_an_inner_transform_keeps_outer_gradients() {
    let (w, n) = (scalar(1.5), forms(&scalar(1.0)).len());
    for k in 0..n {
        let name = forms(&w)[k].0;
        let of = |w: &Tensor, x: &Tensor| forms(w)[k].1(x);
        let check = |what: &str, found: &Tensor, expected: f64| {
            assert!(
                (found.item() - expected).abs() < 1e-9,
                "{what} of {name}: {} for {expected}",
                found.item()
            );
        };
        let mapped = |w: &Tensor| vmap(|x: &Tensor| of(w, x))(&points()).sum();
        check("grad of vmap", &grad(mapped)(&w), 7.0);
        let pushed = |w: &Tensor| jvp(|x: &Tensor| of(w, x).square(), &scalar(3.0), &scalar(1.0)).1;
        check("grad of jvp", &grad(pushed)(&w), 4.0 * 3.0 * 1.5);
        let product = |w: &Tensor| hvp(|x: &Tensor| of(w, x).square(), &scalar(3.0), &scalar(1.0));
        check("grad of hvp", &grad(product)(&w), 4.0 * 1.5);
        let columns = |w: &Tensor| jacfwd(|x: &Tensor| of(w, x).square())(&scalar(3.0));
        check("grad of jacfwd", &grad(columns)(&w), 4.0 * 3.0 * 1.5);
        let leaf = scalar(1.5).requires_grad();
        mapped(&leaf).backward();
        check("backward of vmap", &leaf.grad().expect("a gradient"), 7.0);
        let second = |w: &Tensor| grad(|w: &Tensor| vmap(|x: &Tensor| of(w, x).square())(&points()).sum())(w);
        check("second order", &grad(second)(&w), 42.0);
        // Its steps depend on values.
        if name != "adjoint" {
            let linear = |w: &Tensor| linearize(|x: &Tensor| of(w, x).square(), &scalar(3.0)).1(&scalar(1.0));
            check("grad of linearize", &grad(linear)(&w), 4.0 * 3.0 * 1.5);
            let traced = |w: &Tensor| checkpoint(|x: &Tensor| of(w, x))(&scalar(3.0));
            check("grad of checkpoint", &grad(traced)(&w), 3.0);
            let compiled = |w: &Tensor| compile(|x: &Tensor| of(w, x)).call(&scalar(3.0));
            check("grad of compile", &grad(compiled)(&w), 3.0);
            let inside = compile(|w: &Tensor| grad(|w: &Tensor| mapped(w))(w));
            check("compiled grad of vmap", &inside.call(&w), 7.0);
        }
    }
}

#[test]
fn tensors_given_to_blocks_in_a_trace_keep_their_gradients() {
    let w = Tensor::scalar(1.5);
    let graph = trace(|(x, w): &(Tensor, Tensor)| x * w, &(scalar(0.0), scalar(0.0)));
    let exe = Executable::new(graph).unwrap();
    let by_graph = |w: &Tensor| {
        checkpoint(|x: &Tensor| exe.run(&[x.clone(), w.clone()]).unwrap().remove(0))(&scalar(3.0))
    };
    assert_eq!(grad(by_graph)(&w).item(), 3.0);
    let argument = |w: &Tensor| {
        let f = checkpoint_with(Policy::rerun(), |(x, w): &(Tensor, Tensor)| x * w);
        checkpoint(|x: &Tensor| f(&(x.clone(), w.clone())))(&scalar(3.0))
    };
    assert_eq!(grad(argument)(&w).item(), 3.0);
    let items = |w: &Tensor| {
        let step = |h: &Tensor, x: &Tensor| (h * x, ());
        checkpoint(|x: &Tensor| scan_with(Schedule::Sqrt.rerun(), step, x, &w.unsqueeze(0)).0)(&scalar(3.0))
    };
    assert_eq!(grad(items)(&w).item(), 3.0);
    let state = |w: &Tensor| {
        checkpoint(|x: &Tensor| {
            let step = |(a, b): &(Tensor, Tensor), _: &()| ((a * b, b.clone()), ());
            scan_with(Schedule::All.rerun(), step, &(x.clone(), w.clone()), 1).0.0
        })(&scalar(3.0))
    };
    assert_eq!(grad(state)(&w).item(), 3.0);
}

#[test]
fn a_captured_tensor_of_a_graph_that_is_run_keeps_its_gradient() {
    let f = |w: &Tensor| {
        let exe = Executable::new(trace(|x: &Tensor| x * w, &scalar(0.0))).unwrap();
        exe.run(&[scalar(3.0)]).unwrap().remove(0)
    };
    assert_eq!(grad(f)(&scalar(1.5)).item(), 3.0);
}

#[test]
fn a_choice_by_lanes_in_a_compiled_gradient() {
    type P = (Tensor, Tensor);
    let p = (scalar(1.5), points());
    let by_cond = |(w, xs): &P| {
        grad(|w: &Tensor| vmap(|x: &Tensor| cond(&x.gt(0.0), |h| h * w, |h| h - w, x))(xs).sum())(w)
    };
    let by_switch = |(w, xs): &P| {
        let each = |w: &Tensor, x: &Tensor| {
            let (f, g) = (|h: &Tensor| h - w, |h: &Tensor| h * w);
            switch(&x.gt(0.0).cast(DType::I64), &[&f, &g], x)
        };
        grad(|w: &Tensor| vmap(|x: &Tensor| each(w, x))(xs).sum())(w)
    };
    assert_eq!(by_cond(&p).item(), 7.0);
    assert_eq!(compile(by_cond).call(&p).item(), 7.0);
    assert_eq!(by_switch(&p).item(), 7.0);
    assert_eq!(compile(by_switch).call(&p).item(), 7.0);
}

#[test]
fn a_dynamic_loop_in_a_compiled_gradient_keeps_what_it_captured() {
    let f = |x: &Tensor| {
        let w = x.clone();
        scan_with(Schedule::All.rerun(), move |h: &Tensor, _: &()| (h * &w, ()), x, 1).0
    };
    near(&compile(grad(f)).call(&scalar(0.7)), &scalar(1.4));
}

#[test]
fn a_compiled_function_that_was_first_called_in_no_grad_keeps_its_captures() {
    let w = scalar(0.5).requires_grad();
    let f = compile(|x: &Tensor| x * w.sin());
    no_grad(|| f.call(&scalar(3.0)));
    f.call(&scalar(3.0)).backward();
    near(&w.grad().expect("a gradient"), &scalar(3.0 * 0.5f64.cos()));
    // So does one that was first called in a checkpoint.
    let w = scalar(0.5).requires_grad();
    let captured = w.clone();
    let f = compile(move |x: &Tensor| x * captured.sin());
    checkpoint_with(Policy::rerun(), move |x: &Tensor| f.call(x))(&scalar(3.0)).backward();
    near(&w.grad().expect("a gradient"), &scalar(3.0 * 0.5f64.cos()));
}

#[test]
fn a_rule_that_captures_a_differentiated_tensor_is_refused_in_a_compiled_function_too() {
    let w = scalar(2.0).requires_grad();
    let captured = w.clone();
    let rule = custom_rule(move |x: &Tensor| x * &captured).pullback(|_, _, g| g.clone());
    let e = message(|| drop(compile(|x: &Tensor| rule.call(x)).call(&scalar(3.0))));
    assert!(e.contains("captures a tensor that is differentiated"), "{e}");
}

#[test]
fn what_the_rule_of_a_compiled_function_captures_has_its_second_derivative() {
    let slope = |w: &Tensor| {
        let w = w.clone();
        let rule = custom_rule(|x: &Tensor| x * 1.0).pullback(move |_, _, g: &Tensor| g * w.sin());
        grad(|x: &Tensor| compile(|x: &Tensor| rule.call(x)).call(x))(&scalar(3.0))
    };
    near(&grad(slope)(&scalar(0.5)), &scalar(0.5f64.cos()));
}

/// `x w`, where `w` is computed by a function that is not recorded.
fn quiet(w: &Tensor, x: &Tensor) -> Tensor {
    x * no_grad(|| (w * 2.0).sin()) + w
}

#[test]
fn no_grad_holds_inside_of_blocks() {
    type P = (Tensor, Tensor);
    let of = |(w, x): &P| quiet(w, x);
    let compiled = compile(of);
    let twice = compile(|p: &P| compile(of).call(p));
    let graph = trace(of, &(scalar(0.0), scalar(0.0)));
    let text: Graph = graph.to_string().parse().unwrap();
    let exe = Executable::new(graph.optimize()).unwrap();
    let few = Schedule::Binomial { slots: 1 };
    let step = |(w, x): &P, _: &()| ((w.clone(), quiet(w, x)), ());
    type Form<'a> = (&'static str, Box<dyn Fn(&P) -> Tensor + 'a>);
    let forms: Vec<Form> = vec![
        ("plain", Box::new(of)),
        ("checkpoint", Box::new(checkpoint(of))),
        ("policy", Box::new(checkpoint_with(Policy::Products, of))),
        ("dynamic", Box::new(checkpoint_with(Policy::rerun(), of))),
        ("compile", Box::new(|p| compiled.call(p))),
        ("compile in compile", Box::new(|p| twice.call(p))),
        ("checkpoint in compile", Box::new(|p| compile(|p: &P| checkpoint(of)(p)).call(p))),
        ("compile in checkpoint", Box::new(checkpoint(|p: &P| compiled.call(p)))),
        ("scan", Box::new(|p| scan(step, p, 1).0.1)),
        ("scan in compile", Box::new(|p| compile(|p: &P| scan(step, p, 1).0.1).call(p))),
        ("scan_with", Box::new(|p| scan_with(few, step, p, 1).0.1)),
        ("adjoint", {
            // y' = f is solved exactly.
            let slope = |_: f64, _: &Tensor, (w, x): &P| quiet(w, x);
            Box::new(move |p| ode::adjoint(&Dopri5::default(), slope, p, &scalar(0.0), 0.0, 1.0))
        }),
        ("a graph that was read", Box::new(|(w, x)| text.run(&[w.clone(), x.clone()]).unwrap().remove(0))),
        ("an executable", Box::new(|(w, x)| exe.run(&[w.clone(), x.clone()]).unwrap().remove(0))),
    ];
    for (name, f) in forms {
        for _ in 0..2 {
            let (w, x) = (scalar(0.5).requires_grad(), scalar(3.0).requires_grad());
            f(&(w.clone(), x.clone())).backward();
            assert!((w.grad().unwrap().item() - 1.0).abs() < 1e-12, "{name}: {}", w.grad().unwrap().item());
            assert!((x.grad().unwrap().item() - 1f64.sin()).abs() < 1e-12, "{name}");
        }
        // Function transforms ask explicitly.
        let (gw, _) = grad(|p: &P| f(p))(&(scalar(0.5), scalar(3.0)));
        assert!((gw.item() - (1.0 + 6.0 * 1f64.cos())).abs() < 1e-12, "{name}: {}", gw.item());
        let (_, dy) = jvp(|p: &P| f(p), &(scalar(0.5), scalar(3.0)), &(scalar(1.0), scalar(0.0)));
        assert!((dy.item() - (1.0 + 6.0 * 1f64.cos())).abs() < 1e-12, "{name}: {}", dy.item());
        // One that is around all of it is no part of it.
        let w = scalar(0.5).requires_grad();
        assert!(!no_grad(|| f(&(w.clone(), scalar(3.0)))).needs_grad(), "{name}");
        assert!(f(&(w.clone(), scalar(3.0))).needs_grad(), "{name}");
        // Mapped, with the watched tensor outside.
        let w = scalar(0.5).requires_grad();
        vmap(|x: &Tensor| f(&(w.clone(), x.clone())))(&points()).sum().backward();
        assert!((w.grad().unwrap().item() - 3.0).abs() < 1e-12, "{name}");
    }
}

#[test]
fn enable_grad_inside_of_no_grad_inside_of_a_block() {
    // Of the first product only one factor is recorded, of the second none.
    let f = |x: &Tensor| {
        let (a, b) = no_grad(|| (enable_grad(|| x * 2.0), x * 3.0));
        &a * &b + no_grad(|| a * b)
    };
    let compiled = compile(f);
    let forms: [&dyn Fn(&Tensor) -> Tensor; 3] = [&f, &checkpoint(f), &|x| compiled.call(x)];
    for f in forms {
        let x = scalar(0.5).requires_grad();
        f(&x).backward();
        assert_eq!(x.grad().unwrap().item(), 3.0);
    }
}

#[test]
fn a_value_that_the_body_only_captured_leaves_a_traced_function() {
    let f = |w: &Tensor| {
        let inner = {
            let w = w.clone();
            checkpoint_with(Policy::rerun(), move |h: &Tensor| (h * &w, w.sin()))
        };
        checkpoint(|h: &Tensor| {
            let (a, b) = inner(h);
            a + b
        })(&scalar(3.0))
    };
    near(&grad(f)(&scalar(0.5)), &scalar(3.0 + 0.5f64.cos()));
}

#[test]
fn an_output_that_no_lane_reaches_keeps_its_history() {
    let f = |w: &Tensor| {
        let each = |x: &Tensor| {
            // The second output is the same in all lanes, and is seen by a newer transform too.
            let of = |v: &Tensor| {
                let (a, b) = checkpoint(|(x, w): &(Tensor, Tensor)| (x * 2.0 * v, w.sin() * v))(&(
                    x.clone(),
                    w.clone(),
                ));
                a * &b + b
            };
            grad(of)(&scalar(1.0))
        };
        vmap(each)(&points()).sum()
    };
    // d/dv (2 x v² sin w + v sin w) at 1
    near(&grad(f)(&scalar(0.5)), &scalar((4.0 * 7.0 + 3.0) * 0.5f64.cos()));
}

#[test]
fn a_function_of_the_program_inside_of_a_loop_or_a_branch_cannot_be_saved() {
    let rule = custom_rule(|x: &Tensor| x.sin()).pullback(|x: &Tensor, _, g: &Tensor| g * x.cos());
    let root = |x: &Tensor| implicit::root(|p: &Tensor, y: &Tensor| y + y.sin() * 0.2 - p, x, &scalar(0.0));
    let on_disk = checkpoint_with(Policy::Products.offload(std::env::temp_dir()), |x: &Tensor| x.sin());
    let path = std::env::temp_dir().join(format!("never-{}.graph", std::process::id()));
    let by_rule = |x: &Tensor| rule.call(x);
    let functions: [&dyn Fn(&Tensor) -> Tensor; 3] = [&by_rule, &root, &on_disk];
    for f in functions {
        let in_loop = |x: &Tensor| scan(|x: &Tensor, _: &()| (f(x), ()), x, 3).0;
        let in_branch = |x: &Tensor| cond(&x.gt(0.0), f, |x: &Tensor| x * 2.0, x);
        for whole in [&in_loop as &dyn Fn(&Tensor) -> Tensor, &in_branch] {
            let exe = compile(whole).executable(&scalar(0.5)).unwrap();
            let e = exe.save(&path).unwrap_err().to_string();
            assert!(e.contains("cannot be saved"), "{e}");
        }
    }
}

#[test]
fn errors_name_the_function_that_was_called() {
    let grows = |x: &Tensor| Tensor::concat(&[x, x], 0);
    let e = message(|| {
        while_loop_with(
            Bound::at_most(3).schedule(Schedule::Online { slots: 2 }.rerun()),
            |x: &Tensor| x.sum().lt(9.0),
            grows,
            &Tensor::ones([2]),
        );
    });
    assert!(e.contains("while_loop_with: "), "{e}");
    let endless = |x: &Tensor| x.clone();
    let e = message(|| {
        while_loop_with(
            Bound::at_most(3).schedule(Schedule::Online { slots: 2 }.rerun()),
            |x: &Tensor| x.sum().lt(9.0),
            endless,
            &Tensor::ones([2]),
        );
    });
    assert!(e.contains("while_loop_with: ") && e.contains("after 3 steps"), "{e}");
    let e = message(|| {
        let step = move |x: &Tensor, _: &()| (grows(x), ());
        scan_with(Schedule::All.rerun(), step, &Tensor::ones([2]), 2);
    });
    assert!(e.contains("scan_with: "), "{e}");

    let bad = custom_rule(|x: &Tensor| x.square()).pullback(|_, _, _| Tensor::zeros([7]));
    let e = message(|| drop(jvp(|x: &Tensor| bad.call(x), &Tensor::ones([2]), &Tensor::ones([2]))));
    assert!(e.contains("custom_rule: ") && e.contains("the pullback returned") && e.contains("[7]"), "{e}");
    let bad = custom_rule(|x: &Tensor| x.square()).pushforward(|_, _, _| Tensor::zeros([7]));
    let e = message(|| drop(grad(|x: &Tensor| bad.call(x).sum())(&Tensor::ones([2]))));
    assert!(e.contains("custom_rule: ") && e.contains("the pushforward returned"), "{e}");

    let e = message(|| drop(associative_scan(|a: &Tensor, b: &Tensor| Tensor::stack(&[a, b], 0), &points())));
    assert!(
        e.contains("associative_scan: ")
            && e.contains("must keep their shape")
            && e.contains("regressions.rs"),
        "{e}"
    );
}

#[test]
fn a_placeholder_that_a_body_captured_and_does_not_return_is_not_needed_again() {
    let f = |w: &Tensor| {
        compile(|x: &Tensor| {
            let captured = x.clone();
            let inner = checkpoint_with(Policy::rerun(), move |w: &Tensor| {
                let _ = captured.sin();
                w.exp()
            });
            inner(w) * x
        })
        .call(&scalar(3.0))
    };
    near(&grad(f)(&scalar(0.5)), &scalar(3.0 * 0.5f64.exp()));
}

#[test]
fn a_rule_is_followed_whatever_else_its_function_looks_at() {
    let f = |w: &Tensor| {
        let each = |x: &Tensor| {
            let captured = x.clone();
            let of = move |w: &Tensor| {
                let _ = captured.sin();
                w * 1.0
            };
            custom_rule(of).pullback(|_, _, g: &Tensor| g * 5.0).call(w) * x
        };
        vmap(each)(&points()).sum()
    };
    near(&grad(f)(&scalar(0.5)), &scalar(35.0));
}

#[test]
fn what_the_first_run_of_a_body_captured_is_no_input_of_the_graph() {
    let f = |w: &Tensor| {
        compile(|x: &Tensor| {
            // The body captures a placeholder, so that it runs twice, and has another `exp` each time.
            let (w, captured) = (w.clone(), x.clone());
            let inner = checkpoint_with(Policy::rerun(), move |y: &Tensor| y * w.exp() * &captured);
            inner(&scalar(2.0))
        })
        .call(&scalar(3.0))
    };
    near(&grad(f)(&scalar(0.5)), &scalar(6.0 * 0.5f64.exp()));
}
