//! The hard cases of docs/semantics.md, one test each.

use pullback::{AxisRange, ErrorKind, prelude::*, try_grad_of};
use std::sync::{Arc, Mutex};

fn scalar(v: f64) -> Tensor {
    Tensor::scalar(v)
}

fn leaf(v: f64) -> Tensor {
    scalar(v).requires_grad()
}

fn slope(f: impl Fn(&Tensor) -> Tensor, at: f64) -> f64 {
    grad(f)(&scalar(at)).item()
}

fn message(panics: impl FnOnce() + std::panic::UnwindSafe) -> String {
    let payload = std::panic::catch_unwind(panics).expect_err("should have panicked");
    payload.downcast_ref::<String>().expect("a message").clone()
}

mod accumulation {
    use super::*;

    #[test]
    fn fan_out_adds_up() {
        let x = leaf(3.0);
        let y = x.square();
        (&y * &y + &y + &x + &x).backward();
        assert_eq!(x.grad().unwrap().item(), 4.0 * 27.0 + 6.0 + 2.0);
    }

    #[test]
    fn a_value_may_meet_itself() {
        assert_eq!(slope(|x| x * x * x, 2.0), 12.0);
        let x = Tensor::from([[1.0, 2.0], [3.0, 4.0]]).requires_grad();
        x.matmul(&x).sum().backward();
        assert_eq!(x.grad().unwrap().to_vec::<f64>(), [7.0, 11.0, 9.0, 13.0]);
    }

    #[test]
    fn a_broadcast_value_gets_the_sum() {
        let b = Tensor::from([1.0, 2.0]).requires_grad();
        (Tensor::ones([3, 2]) * &b).sum().backward();
        assert_eq!(b.grad().unwrap().to_vec::<f64>(), [3.0, 3.0]);
    }

    #[test]
    fn many_contributions_do_not_spoil_each_other() {
        // The second contribution makes a sum that the later ones are added to in place: nobody else may see it.
        let x = Tensor::from([1.0, 2.0]).requires_grad();
        let parts: Vec<Tensor> = (1..=5).map(|k| &x * k as f64).collect();
        parts.iter().for_each(Tensor::retain_grad);
        let sum = parts.iter().skip(1).fold(parts[0].clone(), |a, b| a + b);
        (&sum * &sum).sum().backward();
        assert_eq!(x.grad().unwrap().to_vec::<f64>(), [450.0, 900.0]);
        assert!(parts.iter().all(|p| p.grad().unwrap().to_vec::<f64>() == [30.0, 60.0]));
    }

    #[test]
    fn a_gradient_that_was_handed_out_does_not_change() {
        let x = leaf(3.0);
        x.square().backward();
        let before = x.grad().unwrap();
        x.square().backward();
        assert_eq!((before.item(), x.grad().unwrap().item()), (6.0, 12.0));
    }
}

mod kinks {
    use super::*;

    /// The table of docs/semantics.md.
    #[test]
    fn the_subgradient_of_least_norm() {
        assert_eq!(slope(|x| x.relu(), 0.0), 0.0);
        assert_eq!(slope(|x| x.abs(), 0.0), 0.0);
        assert_eq!(slope(|x| x.sign(), 0.0), 0.0);
        assert_eq!(slope(|x| x.norm(), 0.0), 0.0);
        assert_eq!(slope(|x| x.hypot(0.0), 0.0), 0.0);
        assert_eq!(slope(|x| x.maximum(0.0), 0.0), 0.5);
        assert_eq!(slope(|x| x.minimum(0.0), 0.0), 0.5);
        assert_eq!(slope(|x| x.floor() + x.ceil() + x.round() + x.trunc(), 1.0), 0.0);
        for at in [-1.0, 0.3, 1.0] {
            assert_eq!(slope(|x| x.clamp(-1.0, 1.0), at), 1.0, "clamp includes its ends");
        }
        assert_eq!(slope(|x| x.clamp(-1.0, 1.0), 1.0 + 1e-12), 0.0);
    }

    #[test]
    fn ties_share_equally() {
        let (a, b) = grad(|(a, b): &(Tensor, Tensor)| a.maximum(b))(&(scalar(2.0), scalar(2.0)));
        assert_eq!((a.item(), b.item()), (0.5, 0.5));
        let x = Tensor::from([[1.0, 7.0, 7.0], [4.0, 4.0, 4.0]]);
        let third = 1.0 / 3.0;
        let g = grad(|x: &Tensor| x.max_axes(1).sum())(&x).to_vec::<f64>();
        assert_eq!(g, [0.0, 0.5, 0.5, third, third, third]);
        let g = grad(|x: &Tensor| x.min())(&Tensor::from([2.0, 2.0, 2.0, 2.0])).to_vec::<f64>();
        assert_eq!(g, [0.25; 4]);
    }

    #[test]
    fn forward_mode_follows_the_same_table() {
        let both = |f: fn(&Tensor) -> Tensor, at: f64| {
            let forward = jvp(f, &scalar(at), &scalar(1.0)).1.item();
            assert_eq!(forward, slope(f, at));
        };
        both(|x| x.relu(), 0.0);
        both(|x| x.abs(), 0.0);
        both(|x| x.norm(), 0.0);
        both(|x| x.maximum(0.0), 0.0);
        both(|x| x.clamp(0.0, 1.0), 0.0);
    }

    #[test]
    fn the_norm_away_from_its_kink() {
        let g = grad(|x: &Tensor| x.norm())(&Tensor::from([3.0, 4.0])).to_vec::<f64>();
        assert!((g[0] - 0.6).abs() < 1e-15 && (g[1] - 0.8).abs() < 1e-15);
    }
}

mod zeros_and_domains {
    use super::*;

    #[test]
    fn a_branch_not_taken_leaks_nothing() {
        let guarded: [fn(&Tensor) -> Tensor; 5] =
            [|x| x.sqrt(), |x| x.ln(), |x| x.recip(), |x| x.pow(-1.5), |x| 1.0 / x];
        for f in guarded {
            let g = |x: &Tensor| Tensor::where_(&x.gt(0.0), f(x), 0.0);
            assert_eq!(slope(g, 0.0), 0.0);
            assert_eq!(slope(grad(g), 0.0), 0.0, "of second order too");
            assert_eq!(jvp(g, &scalar(0.0), &scalar(1.0)).1.item(), 0.0);
        }
    }

    #[test]
    fn undefined_domains_give_what_ieee_gives() {
        assert!(scalar(-1.0).sqrt().item().is_nan());
        assert!(scalar(-1.0).ln().item().is_nan());
        assert_eq!(scalar(0.0).ln().item(), f64::NEG_INFINITY);
        assert_eq!(slope(|x| x.sqrt(), 0.0), f64::INFINITY);
        assert_eq!(slope(|x| x.ln(), 0.0), f64::INFINITY);
        assert!(slope(|x| x.sqrt(), -1.0).is_nan());
        assert_eq!((scalar(1.0) / 0.0).item(), f64::INFINITY);
    }

    #[test]
    fn powers_at_their_edges() {
        assert_eq!(slope(|x| x.pow(2.0), -3.0), -6.0);
        assert_eq!(slope(|x| x.pow(0.0), 0.0), 0.0);
        assert_eq!(slope(|x| x.pow(1.0), 0.0), 1.0);
        assert_eq!(slope(|b| scalar(0.0).pow(b), 2.0), 0.0);
    }

    #[test]
    fn anomaly_mode_names_the_operation_and_the_line() {
        let x = leaf(0.0);
        let line = line!() + 1;
        let y = x.sqrt();
        let z = y * 2.0;
        let e = detect_anomaly(|| z.try_backward()).unwrap_err();
        assert_eq!((e.kind(), e.op()), (ErrorKind::NotFinite, Some("sqrt")));
        assert_eq!(e.location().unwrap().line(), line);
        assert!(e.to_string().contains("semantics.rs") && e.to_string().contains("inf"), "{e}");
    }

    /// Methods that are made of other operations, or reduce, still stand at the line of their caller.
    #[test]
    fn anomaly_mode_names_lines_of_the_user_only() {
        let x = Tensor::from([f64::INFINITY, f64::INFINITY]).requires_grad();
        let steps: [(u32, Tensor); 6] = [
            (line!(), (Tensor::ones([2, 2]) * &x).sqrt().sum() * f64::INFINITY),
            (line!(), x.logsumexp()),
            (line!(), x.std()),
            (line!(), x.prod_axes(0).sqrt().recip().sqrt()),
            (line!(), Tensor::stack(&[&x, &x], 0).softmax(0).sum()),
            (line!(), x.split(&[1, 1], 0)[0].sin().sum()),
        ];
        for (line, y) in steps {
            let e = detect_anomaly(|| y.try_backward()).unwrap_err();
            let at = e.location().unwrap();
            assert!(at.file().ends_with("semantics.rs") && at.line() == line, "{e}");
        }
    }

    #[test]
    fn anomaly_mode_lets_finite_gradients_pass_and_ends() {
        let x = leaf(4.0);
        detect_anomaly(|| x.sqrt().backward());
        assert_eq!(x.grad().unwrap().item(), 0.25);
        let zero = leaf(0.0);
        zero.sqrt().backward();
        assert_eq!(zero.grad().unwrap().item(), f64::INFINITY, "outside it IEEE rules again");
    }

    #[test]
    fn anomaly_mode_ends_with_a_panic_too() {
        let _ = std::panic::catch_unwind(|| detect_anomaly(|| panic!("in user code")));
        let zero = leaf(0.0);
        assert!(zero.sqrt().try_backward().is_ok());
    }
}

mod integers {
    use super::*;

    #[test]
    fn asking_for_a_gradient_is_an_error_that_says_so() {
        for x in [Tensor::from([1, 2]), Tensor::from([1i64]), Tensor::from([1u8]), Tensor::from([true])] {
            let e = x.try_requires_grad().unwrap_err();
            assert_eq!(e.kind(), ErrorKind::Gradient);
            assert!(e.to_string().contains(x.dtype().name()) && e.to_string().contains("cast"), "{e}");
        }
        let said = message(|| drop(grad(|x: &Tensor| x.sum().cast(DType::F64))(&Tensor::from([1, 2]))));
        assert!(said.contains("grad") && said.contains("i32"), "{said}");
        let said = message(|| drop(jvp(|x: &Tensor| x.clone(), &Tensor::from([1]), &Tensor::from([1]))));
        assert!(said.contains("jvp") && said.contains("i32"), "{said}");
    }

    #[test]
    fn nothing_flows_through_them() {
        let x = leaf(2.5);
        let n = x.cast(DType::I64);
        assert!(
            !n.needs_grad() && !x.gt(0.0).needs_grad() && !Tensor::stack(&[&x, &x], 0).argmax(0).needs_grad()
        );
        (&x * n.cast(DType::F64)).backward();
        assert_eq!(x.grad().unwrap().item(), 2.0, "the count is a constant");
        assert!(n.try_backward().is_err());
    }

    #[test]
    fn floats_of_other_precision_do_carry_them() {
        let x = Tensor::from([1.5f32, 2.5]).requires_grad();
        x.cast(DType::F64).square().sum().backward();
        let g = x.grad().unwrap();
        assert_eq!((g.dtype(), g.to_vec::<f64>()), (DType::F32, vec![3.0, 5.0]));
    }
}

mod control_flow {
    use super::*;

    #[test]
    fn the_path_that_ran_is_differentiated() {
        let f = |x: &Tensor| if x.item() > 0.0 { x.square() } else { -x };
        assert_eq!((slope(f, 3.0), slope(f, -3.0)), (6.0, -1.0));
    }

    #[test]
    fn loops_run_as_often_as_they_run() {
        // Newton's iteration for the square root; the derivative of its limit is that of the square root.
        let root = |a: &Tensor| {
            let mut x = a.detach();
            while (x.item() * x.item() - a.item()).abs() > 1e-12 {
                x = (&x + a / &x) * 0.5;
            }
            x
        };
        assert!((slope(root, 2.0) - 0.5 / 2f64.sqrt()).abs() < 1e-6);
        let power = |x: &Tensor| (0..5).fold(scalar(1.0), |p, _| p * x);
        assert_eq!(slope(power, 2.0), 80.0);
    }

    #[test]
    fn recursion() {
        fn tower(x: &Tensor, n: usize) -> Tensor {
            if n == 0 { x.clone() } else { tower(x, n - 1).sin() }
        }
        let x = 0.7f64;
        let expected = x.sin().sin().cos() * x.sin().cos() * x.cos();
        assert!((slope(|x| tower(x, 3), x) - expected).abs() < 1e-15);
    }
}

mod mutation {
    use super::*;

    #[test]
    fn an_update_renames_and_old_values_stay() {
        let mut y = leaf(3.0).square();
        let old = y.clone();
        y *= 10.0;
        assert_eq!((old.item(), y.item()), (9.0, 90.0));
    }

    #[test]
    fn the_gradient_goes_through_the_update() {
        let x = leaf(3.0);
        let mut y = x.square();
        y *= &x;
        y += 1.0;
        y.backward();
        assert_eq!(x.grad().unwrap().item(), 27.0);
    }

    #[test]
    fn what_an_operation_saved_is_not_what_was_written_later() {
        let x = Tensor::from([1.0, 2.0]).requires_grad();
        let mut y = &x * 2.0;
        let z = y.square();
        y.slice_assign(0, 100.0);
        z.sum().backward();
        assert_eq!(x.grad().unwrap().to_vec::<f64>(), [8.0, 16.0]);
        assert_eq!(y.to_vec::<f64>(), [100.0, 4.0]);
    }

    #[test]
    fn an_output_that_its_own_pullback_reads() {
        let x = leaf(1.0);
        let mut y = x.exp();
        let z = &y * 1.0;
        y += 5.0;
        z.backward();
        assert_eq!(x.grad().unwrap().item(), scalar(1.0).exp().item());
    }

    #[test]
    fn assigned_parts_cut_the_old_and_lead_to_the_new() {
        let x = Tensor::from([1.0, 2.0, 3.0]).requires_grad();
        let v = leaf(10.0);
        let mut y = x.square();
        y.slice_assign(1, &v * 3.0);
        y.sum().backward();
        assert_eq!(x.grad().unwrap().to_vec::<f64>(), [2.0, 0.0, 6.0]);
        assert_eq!(v.grad().unwrap().item(), 3.0);
    }

    #[test]
    fn a_tensor_may_be_filled_in_a_loop() {
        let x = leaf(2.0);
        let mut all = Tensor::zeros([4]);
        for k in 0..4 {
            all.slice_assign(k, &x * k as f64);
        }
        all.square().sum().backward();
        assert_eq!(x.grad().unwrap().item(), 2.0 * 2.0 * (1.0 + 4.0 + 9.0));
    }

    #[test]
    fn buffers_that_nobody_else_sees_are_reused() {
        let mut x = Tensor::arange(0.0, 1e5, 1.0);
        pullback::memory::reset_peak();
        let before = pullback::memory::live_bytes();
        let view = x.slice(..3);
        drop(view);
        for k in 0..10 {
            x += 1.0;
            x.slice_assign(k, 0.0);
        }
        assert_eq!(x.at([0]), 9.0);
        // Other tests of this file run at the same time, on tensors of a few bytes.
        assert!(pullback::memory::peak_bytes() < before + 400_000);
    }

    #[test]
    fn a_parameter_stays_one_under_no_grad() {
        let mut w = Tensor::from([1.0, 2.0]).requires_grad();
        w.square().sum().backward();
        no_grad(|| w -= 0.5 * w.grad().unwrap());
        assert!(w.is_leaf() && w.needs_grad());
        assert_eq!(w.to_vec::<f64>(), [0.0, 0.0]);
        assert_eq!(w.grad().unwrap().to_vec::<f64>(), [2.0, 4.0], "its gradient stays with it");
        no_grad(|| w.slice_assign(0, 7.0));
        assert!(w.is_leaf() && w.needs_grad());
    }

    #[test]
    fn strict_mode_names_who_saved_the_value() {
        let line = line!() + 3;
        let e = strict(|| {
            let mut y = leaf(2.0) * 3.0;
            let _z = y.square();
            y.try_add_assign(1.0)
        })
        .unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Copied);
        assert!(
            e.to_string().contains("square") && e.to_string().contains(&format!("semantics.rs:{line}")),
            "{e}"
        );
    }

    #[test]
    fn strict_mode_covers_outputs_and_parts() {
        let e = strict(|| {
            let mut y = leaf(2.0).exp();
            y.try_add_assign(1.0)
        });
        assert!(e.unwrap_err().to_string().contains("exp"));
        let e = strict(|| {
            let mut y = Tensor::from([1.0, 2.0]).requires_grad() * 3.0;
            let _z = y.square();
            y.try_slice_assign(0, 1.0)
        });
        assert!(e.unwrap_err().to_string().contains("square"));
    }

    #[test]
    fn strict_mode_lets_free_values_change() {
        strict(|| {
            let x = leaf(2.0);
            let mut y = &x * 3.0;
            let _sum = &y + 1.0; // reads nothing
            y += 1.0;
            for _ in 0..100 {
                let kept = &x * 2.0;
                drop(kept.square());
                drop(kept);
                // This may lie where the freed one lay, and is not to be taken for it.
                let mut fresh = &x * 2.0;
                fresh += 1.0;
            }
        });
    }
}

mod views {
    use super::*;

    #[test]
    fn a_gradient_arrives_where_the_view_came_from() {
        let x = Tensor::from([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]).requires_grad();
        x.slice((1, AxisRange::from(..).step(-1))).square().sum().backward();
        assert_eq!(x.grad().unwrap().to_vec::<f64>(), [0.0, 0.0, 0.0, 8.0, 10.0, 12.0]);
        x.zero_grad();
        (x.t().slice(0) * 3.0).sum().backward();
        assert_eq!(x.grad().unwrap().to_vec::<f64>(), [3.0, 0.0, 0.0, 3.0, 0.0, 0.0]);
    }

    #[test]
    fn writing_to_the_base_does_not_change_the_view_nor_the_reverse() {
        let mut x = Tensor::from([1.0, 2.0, 3.0]);
        let mut view = x.slice(..2);
        x += 10.0;
        assert_eq!(view.to_vec::<f64>(), [1.0, 2.0]);
        view.slice_assign(0, -1.0);
        assert_eq!((view.to_vec::<f64>(), x.to_vec::<f64>()), (vec![-1.0, 2.0], vec![11.0, 12.0, 13.0]));
    }

    #[test]
    fn overlapping_views_add_up() {
        let x = Tensor::from([1.0, 2.0, 3.0]).requires_grad();
        (x.slice(..2) * x.slice(1..)).sum().backward();
        assert_eq!(x.grad().unwrap().to_vec::<f64>(), [2.0, 4.0, 2.0]);
    }
}

mod cutting {
    use super::*;

    #[test]
    fn detach_cuts_every_transform() {
        assert_eq!(slope(|x| x.detach() * x, 3.0), 3.0);
        assert_eq!(jvp(|x: &Tensor| x.detach() * x, &scalar(3.0), &scalar(1.0)).1.item(), 3.0);
        assert_eq!(slope(|x| grad(|y: &Tensor| y * x.detach())(x), 3.0), 0.0);
    }

    #[test]
    fn no_grad_and_enable_grad_nest() {
        let x = leaf(2.0);
        no_grad(|| {
            assert!(!x.square().needs_grad());
            enable_grad(|| {
                assert!(x.square().needs_grad());
                no_grad(|| assert!(!x.square().needs_grad()));
                assert!(x.square().needs_grad());
            });
            assert!(!x.square().needs_grad());
        });
        assert!(x.square().needs_grad());
    }

    #[test]
    fn no_grad_ends_with_a_panic_too() {
        let _ = std::panic::catch_unwind(|| no_grad(|| panic!("in user code")));
        assert!(leaf(1.0).square().needs_grad());
    }

    #[test]
    fn no_grad_does_not_touch_functions() {
        assert_eq!(no_grad(|| slope(|x| x.square(), 3.0)), 6.0);
        assert_eq!(slope(|x| no_grad(|| x.square()), 3.0), 6.0);
    }

    #[test]
    fn no_grad_belongs_to_a_thread() {
        let x = leaf(2.0);
        let elsewhere =
            no_grad(|| std::thread::scope(|s| s.spawn(|| x.square().needs_grad()).join().unwrap()));
        assert!(elsewhere);
    }

    #[test]
    fn not_connected_is_not_zero() {
        let (x, y, z) = (leaf(2.0), leaf(3.0), leaf(4.0));
        let loss = x.square() + &y * 0.0;
        let g = grad_of(&loss, &[&x, &y, &z]);
        assert_eq!(g[0].as_ref().unwrap().item(), 4.0);
        assert_eq!(g[1].as_ref().unwrap().item(), 0.0);
        assert!(g[2].is_none());
        assert!([&x, &y, &z].iter().all(|t| t.grad().is_none()), "no .grad is touched");
    }

    #[test]
    fn gradients_of_values_on_the_way_and_of_the_loss_itself() {
        let x = leaf(2.0);
        let y = x.square();
        let loss = &y * 3.0;
        let g = grad_of(&loss, &[&y, &loss, &x]);
        let values: Vec<f64> = g.iter().map(|g| g.as_ref().unwrap().item()).collect();
        assert_eq!(values, [3.0, 1.0, 12.0]);
    }

    #[test]
    fn a_constant_has_no_gradient_to_ask_for() {
        let e = try_grad_of(&leaf(2.0).square(), &[&scalar(1.0)]).unwrap_err();
        assert!(e.kind() == ErrorKind::Gradient && e.to_string().contains("input 0"), "{e}");
        let e = scalar(2.0).square().try_backward().unwrap_err();
        assert!(e.to_string().contains("requires_grad()"), "{e}");
    }

    #[test]
    fn a_function_that_ignores_its_input_has_gradient_zero() {
        assert_eq!(slope(|_| scalar(5.0), 3.0), 0.0);
        let g = grad(|(a, _): &(Tensor, Tensor)| a.sum())(&(Tensor::ones([2]), Tensor::ones([3])));
        assert_eq!(g.1.to_vec::<f64>(), [0.0; 3]);
    }
}

mod watching {
    use super::*;

    #[test]
    fn retained_gradients_of_interior_values() {
        let x = leaf(2.0);
        let y = x.square();
        let z = &y * 3.0;
        assert!(y.grad().is_none());
        y.retain_grad();
        z.backward();
        assert_eq!(y.grad().unwrap().item(), 3.0);
        assert!(z.grad().is_none(), "only what was asked for is kept");
        assert!(!y.is_leaf());
        let said = message(|| scalar(1.0).retain_grad());
        assert!(said.contains("retain_grad") && said.contains("requires_grad()"), "{said}");
    }

    #[test]
    fn hooks_see_and_replace_the_whole_gradient() {
        let x = leaf(2.0);
        let y = x.square();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let log = seen.clone();
        let hook = y.on_grad(move |g| {
            log.lock().unwrap().push(g.item());
            Some(g * 10.0)
        });
        (&y * 2.0 + &y).backward();
        assert_eq!(*seen.lock().unwrap(), [3.0], "once, with the sum");
        assert_eq!(x.grad().unwrap().item(), 3.0 * 10.0 * 4.0);
        hook.remove();
        x.zero_grad();
        (&y * 2.0 + &y).backward();
        assert_eq!(x.grad().unwrap().item(), 12.0);
    }

    #[test]
    fn hooks_run_in_order_and_must_keep_the_shape() {
        let x = Tensor::from([1.0, 2.0]).requires_grad();
        x.on_grad(|g| Some(g + 1.0));
        x.on_grad(|g| Some(g * 10.0));
        x.on_grad(|_| None);
        x.sum().backward();
        assert_eq!(x.grad().unwrap().to_vec::<f64>(), [20.0, 20.0]);
        x.on_grad(|g| Some(g.sum()));
        let e = x.sum().try_backward().unwrap_err();
        assert!(e.to_string().contains("hook") && e.to_string().contains("[2]"), "{e}");
    }

    #[test]
    fn backward_to_some_inputs() {
        let (x, y) = (leaf(2.0), leaf(3.0));
        let z = &x * &y;
        let w = z.square();
        w.backward_to(&[&x]);
        assert_eq!(x.grad().unwrap().item(), 36.0);
        assert!(y.grad().is_none());
        w.backward_to(&[&x, &z]);
        assert_eq!((x.grad().unwrap().item(), z.grad().unwrap().item()), (72.0, 12.0));
    }

    #[test]
    fn parts_that_lead_nowhere_are_not_visited() {
        let (x, y) = (leaf(2.0), leaf(3.0));
        let beside = y.square();
        beside.on_grad(|_| panic!("not on the way to x"));
        let z = &x * &beside;
        assert_eq!(grad_of(&z, &[&x])[0].as_ref().unwrap().item(), 9.0);
    }
}

mod threads {
    use super::*;

    #[test]
    fn many_threads_add_to_one_gradient() {
        let w = leaf(1.0);
        std::thread::scope(|s| {
            for k in 0..8 {
                let w = &w;
                s.spawn(move || (0..100).for_each(|_| (w * k as f64).backward()));
            }
        });
        assert_eq!(w.grad().unwrap().item(), 100.0 * 28.0);
    }

    #[test]
    fn a_graph_made_in_one_thread_is_walked_and_dropped_in_another() {
        let x = Tensor::arange(0.0, 5000.0, 1.0).requires_grad();
        let loss = x.square().exp().sum() * 0.0 + x.sum();
        let loss = std::thread::spawn(move || {
            loss.backward();
            loss
        })
        .join()
        .unwrap();
        drop(loss);
        assert!(x.grad().is_some());
    }
}

mod nesting {
    use super::*;

    fn cube(x: &Tensor) -> Tensor {
        x * x * x
    }

    #[test]
    fn reverse_over_reverse_to_the_fourth_order() {
        assert_eq!(slope(grad(cube), 2.0), 12.0);
        assert_eq!(slope(grad(grad(cube)), 2.0), 6.0);
        assert_eq!(slope(grad(grad(grad(cube))), 2.0), 0.0);
    }

    #[test]
    fn forward_over_reverse_and_reverse_over_forward() {
        let x = scalar(2.0);
        let (first, second) = jvp(grad(cube), &x, &scalar(1.0));
        assert_eq!((first.item(), second.item()), (12.0, 12.0));
        let second = grad(|x: &Tensor| jvp(cube, x, &scalar(1.0)).1)(&x);
        assert_eq!(second.item(), 12.0);
        let second = jvp(|x: &Tensor| jvp(cube, x, &scalar(1.0)).1, &x, &scalar(1.0)).1;
        assert_eq!(second.item(), 12.0);
    }

    #[test]
    fn three_deep_in_every_order() {
        let one = || scalar(1.0);
        let reverse = |f: &dyn Fn(&Tensor) -> Tensor, x: &Tensor| vjp(f, x).1(&one());
        let forward = |f: &dyn Fn(&Tensor) -> Tensor, x: &Tensor| jvp(f, x, &one()).1;
        let f = |x: &Tensor| x.sin() * x;
        // (x sin x)''' = -3 sin x - x cos x
        let x = 0.7f64;
        let expected = -3.0 * x.sin() - x * x.cos();
        type Mode<'a> = &'a dyn Fn(&dyn Fn(&Tensor) -> Tensor, &Tensor) -> Tensor;
        let modes: [Mode; 2] = [&reverse, &forward];
        for a in modes {
            for b in modes {
                for c in modes {
                    let first = |x: &Tensor| c(&f, x);
                    let second = |x: &Tensor| b(&first, x);
                    let third = a(&second, &scalar(x)).item();
                    assert!((third - expected).abs() < 1e-14, "{third}");
                }
            }
        }
    }

    #[test]
    fn a_pullback_of_a_pullback() {
        let f = |x: &Tensor| x.square();
        let g = Tensor::from([1.0, 10.0]);
        let (first, pull) = vjp(|x: &Tensor| vjp(f, x).1(&g), &Tensor::from([2.0, 3.0]));
        assert_eq!(first.to_vec::<f64>(), [4.0, 60.0]);
        assert_eq!(pull(&Tensor::from([1.0, 1.0])).to_vec::<f64>(), [2.0, 20.0]);
        assert_eq!(pull(&Tensor::from([0.0, 1.0])).to_vec::<f64>(), [0.0, 20.0], "it can be called again");
    }

    #[test]
    fn a_pullback_may_be_differentiated_after_its_function_has_returned() {
        let (_, pull) = vjp(|x: &Tensor| x.square(), &scalar(3.0));
        // Linear in its cotangent, with slope 2x.
        assert_eq!(slope(|g| pull(g), 5.0), 6.0);
    }

    /// Siskind and Pearlmutter: the inner derivative of `x * (d/dy)(x + y)` must not see the outer perturbation.
    #[test]
    fn perturbations_are_not_confused_in_reverse() {
        let f = |x: &Tensor| x * grad(|y: &Tensor| x + y)(&scalar(1.0));
        assert_eq!(slope(f, 1.0), 1.0);
    }

    #[test]
    fn perturbations_are_not_confused_forward() {
        let f = |x: &Tensor| x * jvp(|y: &Tensor| x + y, &scalar(1.0), &scalar(1.0)).1;
        assert_eq!(jvp(f, &scalar(1.0), &scalar(1.0)).1.item(), 1.0);
    }

    #[test]
    fn perturbations_are_not_confused_in_mixed_modes() {
        let f = |x: &Tensor| x * jvp(|y: &Tensor| x * y, &scalar(1.0), &scalar(1.0)).1;
        assert_eq!(slope(f, 3.0), 6.0);
        let f = |x: &Tensor| x * grad(|y: &Tensor| x * y)(&scalar(1.0));
        assert_eq!(jvp(f, &scalar(3.0), &scalar(1.0)).1.item(), 6.0);
    }

    /// The other classic: a derivative that returns a function of the outer variable, applied later.
    #[test]
    fn an_escaped_value_of_an_ended_transform_is_a_constant() {
        let escaped = Mutex::new(None);
        let outer = slope(
            |x| {
                let y = x.square();
                *escaped.lock().unwrap() = Some(y.clone());
                y
            },
            3.0,
        );
        assert_eq!(outer, 6.0);
        let y = escaped.lock().unwrap().take().unwrap();
        assert_eq!(slope(|x| x * &y, 2.0), 9.0);
    }
}

mod both_faces {
    use super::*;

    #[test]
    fn a_function_over_captured_parameters() {
        let w = leaf(3.0);
        // d/dx (w x²) = 2 w x, and its own derivative by w is 2 x.
        let slope = grad(|x: &Tensor| &w * x.square())(&scalar(5.0));
        assert_eq!(slope.item(), 30.0);
        slope.backward();
        assert_eq!(w.grad().unwrap().item(), 10.0);
    }

    #[test]
    fn forward_mode_over_captured_parameters() {
        let w = leaf(3.0);
        let (y, dy) = jvp(|x: &Tensor| &w * x.square(), &scalar(5.0), &scalar(1.0));
        (y + dy).backward();
        assert_eq!(w.grad().unwrap().item(), 25.0 + 10.0);
    }

    #[test]
    fn the_input_of_a_function_may_be_a_parameter() {
        let x = leaf(2.0);
        let g = grad(|x: &Tensor| x.square() * x)(&x);
        assert_eq!(g.item(), 12.0);
        assert!(x.grad().is_none());
        g.backward();
        assert_eq!(x.grad().unwrap().item(), 12.0);
    }

    #[test]
    fn backward_inside_a_function_that_is_differentiated() {
        let f = |x: &Tensor| {
            let w = x.requires_grad();
            cube(&w).backward();
            w.grad().unwrap()
        };
        assert_eq!(slope(f, 2.0), 12.0, "3x² has the slope 6x");
        let through = |x: &Tensor| x.requires_grad().square();
        assert_eq!(slope(through, 3.0), 6.0);
    }

    fn cube(x: &Tensor) -> Tensor {
        x * x * x
    }

    #[test]
    fn a_training_step_is_differentiated_by_its_rate() {
        let after = |rate: &Tensor| {
            let mut w = leaf(1.0);
            w.square().backward();
            no_grad(|| w -= rate * w.grad().unwrap());
            w.square()
        };
        // (1 - 2r)² has the slope -4 (1 - 2r).
        assert!((slope(after, 0.1) + 4.0 * 0.8).abs() < 1e-15);
    }
}
