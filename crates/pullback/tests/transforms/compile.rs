//! Compiled functions: equal to eager ones under every transform, traced once for each signature, honest about what they cannot do.

use crate::close;
use pullback::prelude::*;
use pullback::{AxisRange, ErrorKind, Statics};
use pullback::{Bound, while_loop_with};

fn f(x: &Tensor) -> Tensor {
    (x.sin() * x + x.square().mean()).exp().sum()
}

#[test]
fn every_transform_applies_to_a_compiled_function() {
    let x = Tensor::from([0.1, 0.2, 0.3]);
    let t = Tensor::from([1.0, -1.0, 0.5]);
    let c = compile(f);
    let call = |x: &Tensor| c.call(x);
    close(&grad(call)(&x), &grad(f)(&x), 1e-13);
    close(&jvp(call, &x, &t).1, &jvp(f, &x, &t).1, 1e-13);
    close(&hessian(call)(&x), &hessian(f)(&x), 1e-12);
    close(&hvp(call, &x, &t), &hvp(f, &x, &t), 1e-12);
    let xs = Tensor::from([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]]);
    close(&vmap(call)(&xs), &vmap(f)(&xs), 1e-13);
    close(&vmap(grad(call))(&xs), &vmap(grad(f))(&xs), 1e-13);
    close(&grad(checkpoint(call))(&x), &grad(f)(&x), 1e-13);
    let third = |f: &dyn Fn(&Tensor) -> Tensor, x: &Tensor| grad(grad(grad(|x: &Tensor| f(x))))(x);
    let s = Tensor::scalar(0.7);
    let g = |x: &Tensor| x.sin().exp();
    let cg = compile(g);
    close(&third(&|x| cg.call(x), &s), &third(&g, &s), 1e-12);
}

#[test]
fn transforms_can_be_compiled() {
    let x = Tensor::from([0.1, 0.2, 0.3]);
    close(&compile(grad(f)).call(&x), &grad(f)(&x), 1e-13);
    close(&compile(hessian(f)).call(&x), &hessian(f)(&x), 1e-12);
    let xs = Tensor::from([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]]);
    close(&compile(vmap(grad(f))).call(&xs), &vmap(grad(f))(&xs), 1e-13);
    let inside = |x: &Tensor| checkpoint(f)(x) * 2.0;
    close(&compile(grad(inside)).call(&x), &grad(inside)(&x), 1e-13);
    let inner = compile(f);
    let outer = compile(|x: &Tensor| inner.call(x).ln());
    close(&outer.call(&x), &f(&x).ln(), 1e-13);
    close(&grad(|x: &Tensor| outer.call(x))(&x), &grad(|x: &Tensor| f(x).ln())(&x), 1e-13);
}

#[test]
fn loops_and_branches_run_inside() {
    let f = |x: &Tensor| {
        let (last, all) = scan(|s: &Tensor, x: &Tensor| ((s * x).sin(), s + x), &x.sum(), x);
        let chosen = cond(&last.gt(0.2), |y: &Tensor| y.square(), |y: &Tensor| y * 3.0, &all);
        let end =
            while_loop_with(Bound::at_most(9), |x: &Tensor| x.abs().gt(1.0), |x: &Tensor| x * 0.5, &last);
        chosen.sum() + end
    };
    let g = value_and_grad(f);
    for x in [Tensor::from([0.5, 1.5, 2.5]), Tensor::from([-0.5, -0.1, 0.2])] {
        let (c, e) = (compile(&g).call(&x), g(&x));
        close(&c.0, &e.0, 1e-13);
        close(&c.1, &e.1, 1e-13);
    }
}

#[test]
fn captured_tensors_get_their_gradients() {
    let w = Tensor::from([2.0, 3.0]).requires_grad();
    let c = compile(|x: &Tensor| (x * &w).sum());
    c.call(&Tensor::from([10.0, 20.0])).backward();
    assert_eq!(w.grad().unwrap().to_vec::<f64>(), [10.0, 20.0]);
    let through = |w: &Tensor| compile(|x: &Tensor| (x * w).sum()).call(&Tensor::from([1.0, 2.0]));
    assert_eq!(grad(through)(&Tensor::from([0.0, 0.0])).to_vec::<f64>(), [1.0, 2.0]);
}

#[test]
fn outputs_may_be_inputs_constants_and_integers() {
    let c = compile(|x: &Tensor| (x.clone(), Tensor::from([1, 2]), x.argmax(0), x + 1.0));
    let x = Tensor::from([3.0, 1.0]);
    let (a, b, k, y) = c.call(&x);
    assert_eq!(a.to_vec::<f64>(), [3.0, 1.0]);
    assert_eq!(b.to_vec::<i64>(), [1, 2]);
    assert_eq!(k.item(), 0.0);
    assert_eq!(y.to_vec::<f64>(), [4.0, 2.0]);
    let g = grad(|x: &Tensor| c.call(x).3.sum())(&x);
    assert_eq!(g.to_vec::<f64>(), [1.0, 1.0]);
}

#[test]
fn a_signature_is_traced_once() {
    let c = compile(|x: &Tensor| x.exp());
    for n in [2, 3, 2, 3, 2] {
        assert_eq!(c.call(&Tensor::zeros([n])).numel(), n);
    }
    assert_eq!(c.traces(), 2);
    c.call(&Tensor::zeros([2]).cast(DType::F32));
    assert_eq!(c.traces(), 3);
    assert_eq!(c.reasons().last().unwrap(), "the input is f32[2], and was f64[2]");
    let few = compile(|x: &Tensor| x.exp()).keep(1);
    for n in [2, 3, 2] {
        few.call(&Tensor::zeros([n]));
    }
    assert_eq!(few.traces(), 3, "one is kept");
    let three = compile(|x: &Tensor| x.exp()).keep(3);
    for n in [1, 2, 3, 1, 4, 3, 1] {
        three.call(&Tensor::zeros([n]));
    }
    assert_eq!(three.traces(), 4, "the signature that goes is the one that was not used for longest");
}

#[derive(Tree)]
struct Layer {
    weight: Tensor,
    scale: f64,
    #[tree(skip)]
    power: i32,
}

#[test]
fn static_parts_belong_to_the_signature() {
    let c = compile(|l: &Layer| &l.weight * l.scale * f64::from(l.power));
    let at = |scale: f64, power: i32| Layer { weight: Tensor::scalar(1.0), scale, power };
    assert_eq!(c.call(&at(2.0, 3)).item(), 6.0);
    assert_eq!(c.call(&at(4.0, 3)).item(), 12.0);
    assert_eq!(c.call(&at(4.0, 5)).item(), 20.0);
    assert_eq!(c.call(&at(2.0, 3)).item(), 6.0);
    assert_eq!(c.traces(), 3);
    let c =
        compile(|x: &Vec<Option<Tensor>>| x.iter().flatten().map(|t| t.sum()).reduce(|a, b| a + b).unwrap());
    let one = || Some(Tensor::scalar(1.0));
    assert_eq!(c.call(&vec![one(), None]).item(), 1.0);
    assert_eq!(c.call(&vec![None, one()]).item(), 1.0);
    assert_eq!(c.call(&vec![one()]).item(), 1.0);
    assert_eq!(c.traces(), 3);
    assert_ne!(Statics::of(&vec![one(), None]), Statics::of(&vec![None, one()]));
}

#[derive(Tree)]
struct Opaque {
    x: Tensor,
    #[tree(skip)]
    f: Hidden,
}

#[derive(Clone)]
struct Hidden;

#[test]
fn a_field_that_cannot_be_compared_is_refused() {
    let e = compile(|o: &Opaque| o.x.exp()).try_call(&Opaque { x: Tensor::scalar(1.0), f: Hidden });
    let e = e.unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Structure);
    assert!(e.to_string().contains("`f`") && e.to_string().contains("derive `Debug`"), "{e}");
}

#[test]
fn what_is_not_known_while_tracing_is_an_error_with_the_line() {
    let e = compile(|x: &Tensor| if x.sum().item() > 0.0 { x.clone() } else { -x })
        .try_call(&Tensor::from([1.0]))
        .unwrap_err();
    let line = e.location().unwrap();
    assert!(line.file().ends_with("compile.rs"), "{e}");
    assert!(e.to_string().contains("cond") && e.to_string().contains("where_"), "{e}");
    let e =
        compile(|x: &Tensor| x.matmul(&Tensor::zeros([5, 5]))).try_call(&Tensor::zeros([2, 3])).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Shape);
    let e = compile(|x: &Tensor| Tensor::scalar(format!("{}", x + 1.0).len() as f64))
        .try_call(&Tensor::scalar(1.0));
    assert!(e.unwrap_err().to_string().contains("printed"));
}

#[test]
#[should_panic(expected = "a mistake of the user")]
fn a_panic_of_the_function_stays_one() {
    let _ =
        compile(|_: &Tensor| -> Tensor { panic!("a mistake of the user") }).try_call(&Tensor::scalar(1.0));
}

#[test]
fn a_training_step_is_one_graph_and_updates_in_place() {
    type State = (Tensor, Tensor);
    let loss = |w: &Tensor, x: &Tensor| (x.matmul(w) - 1.0).square().mean();
    let step = |(state, x): &(State, Tensor)| {
        let (w, m) = state;
        let (value, g) = value_and_grad(|w: &Tensor| loss(w, x))(w);
        let m = m * 0.9 + g;
        ((w - &m * 0.1, m), value)
    };
    let x = Tensor::randn(Key::new(1), [20, 5], DType::F32);
    let start = || (Tensor::zeros([5, 1]).cast(DType::F32), Tensor::zeros([5, 1]).cast(DType::F32));
    let compiled = compile(step).donate(0);
    let (mut a, mut b) = (start(), start());
    for _ in 0..20 {
        (a, _) = compiled.call_owned((a, x.clone()));
        (b, _) = step(&(b, x.clone()));
    }
    close(&a.0, &b.0, 1e-6);
    assert_eq!(compiled.traces(), 1);
    let kept = a.clone();
    let before = kept.0.to_vec::<f32>();
    compiled.call_owned((a, x));
    assert_eq!(kept.0.to_vec::<f32>(), before, "a tensor that somebody else holds does not change");
}

#[test]
fn threads_share_a_compiled_function() {
    let c = compile(f);
    std::thread::scope(|s| {
        for k in 0..4 {
            let c = &c;
            s.spawn(move || {
                for n in 1..20 {
                    let x = Tensor::full([n], 0.1 * f64::from(k));
                    close(&c.call(&x), &f(&x), 1e-13);
                }
            });
        }
    });
}

/// A learning rate in the tree traces the function anew each time it changes; the reason must lead to it.
#[test]
fn the_reason_for_a_new_trace_names_what_has_changed() {
    #[derive(Clone, Tree)]
    enum Kind {
        Plain,
        Scaled(f64),
    }
    #[derive(Clone, Tree)]
    struct Step {
        w: Tensor,
        lr: f64,
        kind: Kind,
        layers: Vec<(Tensor, usize)>,
        #[tree(skip)]
        label: String,
    }
    let f = compile(|s: &Step| match s.kind {
        Kind::Plain => &s.w * s.lr,
        Kind::Scaled(by) => &s.w * by,
    });
    let x = Tensor::zeros([2]);
    let start =
        Step { w: x.clone(), lr: 0.1, kind: Kind::Plain, layers: vec![(x.clone(), 3)], label: "a;b".into() };
    let reason = |change: &dyn Fn(&mut Step)| {
        f.call(&start);
        let mut next = start.clone();
        change(&mut next);
        f.call(&next);
        f.reasons().last().unwrap().clone()
    };
    assert_eq!(reason(&|s| s.lr = 0.2), "`.lr` was 0.1 and is 0.2: put a number that changes into a tensor");
    assert_eq!(
        reason(&|s| s.layers[0].1 = 4),
        "`.layers.0.1` was 3 and is 4: put a number that changes into a tensor"
    );
    assert_eq!(reason(&|s| s.kind = Kind::Scaled(2.0)), "`.kind` was Plain and is Scaled");
    assert_eq!(reason(&|s| s.label = "b;a".into()), "`.label` was \"a;b\" and is \"b;a\"");
    assert_eq!(
        reason(&|s| s.layers.push((x.clone(), 3))),
        "the input has 3 tensors, and had 2: `.layers.len()` was 1 and is 2"
    );
    let g = compile(|(x, lr): &(Tensor, f64)| x * *lr);
    g.call(&(x.clone(), 0.5));
    g.call(&(x.clone(), -0.5));
    assert_eq!(g.reasons(), ["`.1` was 0.5 and is -0.5: put a number that changes into a tensor"]);
}

/// An f64 that has come into a model of f32 shows as a second trace.
#[test]
fn the_reason_for_a_new_trace_says_that_a_type_was_widened() {
    let f = compile(|x: &Tensor| x.exp());
    f.call(&Tensor::full([2], 1f32));
    f.call(&Tensor::zeros([2]));
    let reason = &f.reasons()[0];
    assert!(reason.starts_with("the input is f64[2], and was f32[2]: "), "{reason}");
    assert!(reason.contains("strict_dtypes"), "{reason}");
}

/// Compiled, a function gives what it gives otherwise, with its gradient: called three times, with other memory in between.
fn same_compiled<T: Tree + 'static>(
    f: impl Fn(&T) -> Vec<Tensor> + Clone + 'static,
    inputs: impl Fn(Key) -> T,
) {
    let loss = |f: &dyn Fn(&T) -> Vec<Tensor>, x: &T| {
        // Weights, so that no two cotangents are equal.
        let weighted = f(x).into_iter().map(|y| {
            let w = Tensor::arange(1.0, 1.0 + y.numel() as f64, 1.0).cast(y.dtype()).sin();
            (&y * w.reshape(y.shape().to_vec())).sum()
        });
        weighted.reduce(|a, b| a + b).expect("there are outputs")
    };
    let (eager, inner) = (f.clone(), f.clone());
    let value = compile(f);
    let gradient = compile(grad(move |x: &T| loss(&inner, x)));
    for k in 0..3 {
        let x = inputs(Key::new(k));
        let single = |t: &Tensor| if t.dtype() == DType::F32 { 3e-6 } else { 3e-14 };
        value.call(&x).iter().zip(eager(&x)).for_each(|(a, b)| close(a, &b, single(a)));
        let (found, expected) = (gradient.call(&x), grad(|x: &T| loss(&eager, x))(&x));
        let (found, expected) = (found.leaves(), expected.leaves());
        found.iter().zip(expected).for_each(|(a, b)| close(a, b, single(a)));
        drop(Tensor::full([5000 + 100 * k as usize], f64::NAN).exp());
    }
}

fn random<const N: usize>(shape: [usize; N]) -> impl Fn(Key) -> Tensor {
    move |key| Tensor::randn(key, shape, DType::F64)
}

#[test]
fn softmax_over_both_axes_of_one_value() {
    for shape in [[2, 3], [64, 100]] {
        same_compiled(|x: &Tensor| vec![x.softmax(0), x.softmax(1)], random(shape));
    }
}

#[test]
fn log_softmax_of_a_slice_of_what_was_computed() {
    same_compiled(|x: &Tensor| vec![(-x).slice(1..3).log_softmax(-1)], random([3]));
}

#[test]
fn softmax_beside_a_quotient_that_it_shares_an_input_with() {
    let f = |(x, y): &(Tensor, Tensor)| vec![x.softmax(-1).matmul(&(y / x))];
    same_compiled(f, |key| (random([2])(key.clone()) + 3.0, random([2, 2])(key)));
}

#[test]
fn softmax_and_log_softmax_of_two_parts() {
    let f = |x: &Tensor| {
        let h = x.split(&[40, 60], 0);
        vec![h[0].softmax(-1), h[1].log_softmax(-1)]
    };
    same_compiled(f, random([100]));
    same_compiled(f, random([100, 7]));
}

#[test]
fn log_softmax_over_both_axes_in_one_sum() {
    let f = |x: &Tensor| vec![-(x.log_softmax(0).mean() + x.log_softmax(1).mean())];
    same_compiled(f, random([32, 48]));
}

#[test]
fn log_softmax_of_a_padded_softmax_over_the_first_axis() {
    let f = |x: &Tensor| vec![x.softmax(-2).pad(&[(0, 0), (0, 1)], 0.5).log_softmax(-2)];
    same_compiled(f, random([3, 3]));
}

#[test]
fn softmax_of_rows_longer_than_a_group_holds() {
    for cols in [8191, 8192, 8193, 50_257] {
        let f = |x: &Tensor| vec![(x * 0.7).softmax(-1), (x * 0.7).log_softmax(-1), x.logsumexp_axes(-1)];
        same_compiled(f, move |key| Tensor::randn(key, [4, cols], DType::F32));
    }
    let x = Tensor::randn(Key::new(1), [4, 50_257], DType::F32);
    let sums = compile(|x: &Tensor| (x * 0.7).softmax(-1)).call(&x).sum_axes(-1);
    close(&sums, &Tensor::ones([4]).cast(DType::F32), 1e-6);
}

/// Of rows in reverse order, the reshape is no copy but a view that runs backward, where the plan counts on one that runs forward.
#[test]
fn part_of_a_reshape_of_reversed_rows() {
    let f = |x: &Tensor| vec![x.slice((.., AxisRange::from(..).step(-1))).reshape([300]).slice(4..16)];
    same_compiled(f, |key| random([100, 3])(key).flip(0));
}

#[test]
fn an_explanation_reports_the_passes_of_every_stage() {
    // A constant that is zero but for its last row, a common subexpression, and operations to fuse.
    let mut end = vec![0.0; 1000];
    end[999] = 1.0;
    let end = Tensor::from(end);
    let f = compile(move |x: &Tensor| ((x.sin() * x.sin()).exp() * &end).sum());
    let x = Tensor::linspace(0.0, 1.0, 1000);
    close(&f.call(&x), &(x.sin().square().exp().slice(999..)).sum(), 1e-12);
    let text = f.explain().to_string();
    for pass in ["sparse", "cse", "fuse"] {
        assert!(text.lines().any(|line| line.starts_with(pass)), "{pass} is missing:\n{text}");
    }
}
