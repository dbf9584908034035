//! The scalar tape: what is recorded, what is kept, and what happens to those who misuse it.

use pullback::scalar::{self, Number, Real, Tape, Var, external};

fn smooth<T: Real>(x: &[T]) -> T {
    let a = (x[0] * x[1]).sin() + x[2].exp() / (x[0] * x[0] + 1.0);
    a * a.tanh() + (x[1] - x[2] * 0.5).atan2(x[0]) - 2.0
}

/// Central differences, good to about 1e-9 here.
fn differences(f: impl Fn(&[f64]) -> f64, x: &[f64]) -> Vec<f64> {
    (0..x.len())
        .map(|k| {
            let at = |h: f64| {
                let mut x = x.to_vec();
                x[k] += h;
                f(&x)
            };
            let h = 1e-4;
            (8.0 * (at(h) - at(-h)) - (at(2.0 * h) - at(-2.0 * h))) / (12.0 * h)
        })
        .collect()
}

fn assert_close(a: &[f64], b: &[f64], tolerance: f64) {
    assert_eq!(a.len(), b.len());
    for (a, b) in a.iter().zip(b) {
        assert!((a - b).abs() <= tolerance * (1.0 + b.abs()), "{a} and {b} differ");
    }
}

#[test]
fn gradient_is_the_slope() {
    let x = [0.7, -1.3, 0.4];
    assert_close(&scalar::gradient(smooth, &x), &differences(smooth, &x), 1e-10);
}

#[test]
fn only_meetings_of_two_nodes_are_recorded() {
    Tape::new().record(|t| {
        let (x, y) = (t.input(0.5), t.input(2.0));
        let _ = ((-x).exp() * 3.0 + 1.0).sin().powi(3) - x * x / (x + 1.0);
        assert_eq!(t.records(), 0);
        let z = x * y;
        assert_eq!(t.records(), 1);
        let _ = z.ln() + Var::constant(3.0) * z;
        assert_eq!(t.records(), 1);
    });
    assert_eq!(size_of::<Var>(), 24);
}

#[test]
fn a_hundred_thousand_records_grow_over_chunks() {
    fn product<T: Real>(x: &[T]) -> T {
        x.iter().product()
    }
    let n = 70_000;
    let x: Vec<f64> = (0..n).map(|k| 1.0 + 1e-6 * (k as f64).sin()).collect();
    let (v, g) = scalar::value_and_gradient(product, &x);
    assert!((0..n).all(|k| (g[k] - v / x[k]).abs() < 1e-12));
    // Warm, and shorter than before.
    let g = scalar::gradient(product, &x[..3]);
    assert_close(&g, &[x[1] * x[2], x[0] * x[2], x[0] * x[1]], 1e-15);
}

#[test]
fn several_outputs_share_nodes_inputs_and_constants() {
    fn f<T: Real>(x: &[T]) -> Vec<T> {
        let p = x[0] * x[1];
        vec![p, -p * 2.0, x[0], T::constant(4.0), p.sin(), x[1] * 3.0, p + x[0], p, p, p * p]
    }
    let x = [0.3f64, 1.7];
    let (p, c) = (x[0] * x[1], (x[0] * x[1]).cos());
    let expected: Vec<[f64; 2]> = vec![
        [x[1], x[0]],
        [-2.0 * x[1], -2.0 * x[0]],
        [1.0, 0.0],
        [0.0, 0.0],
        [c * x[1], c * x[0]],
        [0.0, 3.0],
        [x[1] + 1.0, x[0]],
        [x[1], x[0]],
        [x[1], x[0]],
        [2.0 * p * x[1], 2.0 * p * x[0]],
    ];
    let j = scalar::jacobian(f, &x);
    for (row, e) in j.iter().zip(&expected) {
        assert_close(row, e, 1e-15);
    }
    // The same by reverse sweeps of every width: fewer outputs than inputs.
    for m in 1..=9 {
        let j =
            scalar::jacobian(|x: &[Var]| f(x)[..m].to_vec(), &[x[0], x[1], 0., 0., 0., 0., 0., 0., 0., 0.]);
        for (row, e) in j.iter().zip(&expected) {
            assert_close(&row[..2], e, 1e-15);
            assert!(row[2..].iter().all(|&d| d == 0.0));
        }
    }
}

#[test]
fn second_order_in_three_ways() {
    let x = [0.7, -1.3, 0.4];
    let h = scalar::hessian(smooth, &x);
    for i in 0..3 {
        let mut unit = [0.0; 3];
        unit[i] = 1.0;
        assert_close(&scalar::hvp(smooth, &x, &unit), &h[i], 1e-13);
        let row: Vec<f64> = (0..3).map(|j| scalar::second_partial(smooth, &x, i, j)).collect();
        assert_close(&row, &h[i], 1e-12);
        // Reverse over reverse.
        let row = scalar::gradient(
            |x: &[Var]| {
                Tape::<Var>::new().record(|t| {
                    let x: Vec<Var<Var>> = t.inputs(x);
                    t.derivative(smooth(&x), x[i])
                })
            },
            &x,
        );
        assert_close(&row, &h[i], 1e-12);
    }
}

#[test]
fn tapes_of_one_type_nest() {
    // The inner gradient is a constant for the outer tape, and does not disturb it.
    fn f<T: Real>(x: &[T]) -> T {
        let inner = scalar::gradient(|y: &[Var]| y[0] * y[0] * y[1], &[3.0, 4.0]);
        x[0] * x[1] * inner[0]
    }
    assert_eq!(scalar::gradient(f, &[1.0, 2.0]), [48.0, 24.0]);
}

#[test]
fn rewinding_forgets_what_came_after() {
    Tape::new().record(|t| {
        let (x, y) = (t.input(2.0), t.input(3.0));
        let a = x * y;
        let here = t.position();
        for k in 0..100 {
            let b = a * x + y * k as f64;
            assert_eq!(t.derivative(b, x), 12.0);
            t.rewind(here);
            assert_eq!(t.records(), 1);
        }
        assert_eq!(t.derivative(a * y, y), 12.0);
    });
}

#[test]
fn late_inputs_keep_their_adjoints() {
    Tape::new().record(|t| {
        let x = t.input(2.0);
        let y = t.input(5.0);
        let a = x * y;
        let late = t.input(7.0);
        let b = a * late * late;
        for _ in 0..2 {
            let mut g = [0.0; 3];
            t.gradient(b, &[x, late, y], &mut g);
            assert_eq!(g, [245.0, 140.0, 98.0]);
        }
    });
}

#[test]
fn fused_sums_have_the_derivatives_of_their_terms() {
    fn lse<T: Real>(x: &[T]) -> T {
        T::log_sum_exp(&[x[0] * x[1], x[1], x[0] + x[2], T::constant(0.5)])
    }
    fn dot<T: Real>(x: &[T]) -> T {
        T::dot(&[x[0] * x[1], x[1], T::constant(2.0)], &[x[2], x[1].sin(), x[0]])
    }
    let x = [0.7, -1.3, 0.4];
    assert_close(&scalar::gradient(lse, &x), &differences(lse, &x), 1e-10);
    assert_close(&scalar::gradient(dot, &x), &differences(dot, &x), 1e-10);
    let j = scalar::jacobian(|x: &[Var]| [lse(x), dot(x)], &x);
    assert_close(&j[1], &differences(dot, &x), 1e-10);
    let h = scalar::hessian(lse, &x);
    let fine = scalar::hessian(|x: &[_]| (x[0] * x[1]).exp().ln(), &x);
    assert!(h[0][0].is_finite() && fine[0][0].is_finite());
    assert_eq!(f64::log_sum_exp(&[]), f64::NEG_INFINITY);
    assert_eq!(f64::log_sum_exp(&[f64::INFINITY, 1.0]), f64::INFINITY);
}

#[test]
fn preaccumulation_changes_only_the_length_of_the_tape() {
    fn long<T: Real>(x: &[T]) -> Vec<T> {
        let mut y = vec![x[0] * x[1], x[1] + 2.0];
        for _ in 0..50 {
            y = vec![(y[0] * x[0] + y[1]).sin(), y[0].cos() * y[1]];
        }
        y
    }
    fn plain<T: Real>(x: &[T]) -> T {
        let y = long(x);
        y[0] * y[1] + x[2]
    }
    fn short<T: Real>(x: &[T]) -> T {
        let y = T::preaccumulate(|| long(x));
        y[0] * y[1] + x[2]
    }
    let x = [0.7, -1.3, 0.4];
    assert_close(&scalar::gradient(short, &x), &scalar::gradient(plain, &x), 1e-13);
    for (a, b) in scalar::hessian(short, &x).iter().zip(scalar::hessian(plain, &x)) {
        assert_close(a, &b, 1e-11);
    }
    Tape::new().record(|t| {
        let x = t.inputs(&x);
        short(&x);
        assert!(t.records() <= 4);
    });
}

/// Solves a 2 x 2 system.
fn solve(a: [f64; 4], b: [f64; 2]) -> [f64; 2] {
    let det = a[0] * a[3] - a[1] * a[2];
    [(b[0] * a[3] - a[1] * b[1]) / det, (a[0] * b[1] - b[0] * a[2]) / det]
}

#[test]
fn an_external_linear_solve() {
    fn by_operations<T: Real>(x: &[T]) -> Vec<T> {
        let det = x[0] * x[3] - x[1] * x[2];
        vec![(x[4] * x[3] - x[1] * x[5]) / det, (x[0] * x[5] - x[4] * x[2]) / det]
    }
    // A x = b: the cotangent of b is A⁻ᵀ g, that of A is minus its outer product with x.
    fn by_solver(x: &[Var]) -> Vec<Var> {
        let a: [f64; 4] = std::array::from_fn(|k| x[k].value());
        let y = solve(a, [x[4].value(), x[5].value()]);
        external(x, &y, move |g, d| {
            let w = solve([a[0], a[2], a[1], a[3]], [g[0], g[1]]);
            d.copy_from_slice(&[-w[0] * y[0], -w[0] * y[1], -w[1] * y[0], -w[1] * y[1], w[0], w[1]]);
        })
    }
    let x = [2.0, 0.5, -0.3, 1.5, 1.0, 4.0];
    for (a, b) in scalar::jacobian(by_solver, &x).iter().zip(scalar::jacobian(by_operations, &x)) {
        assert_close(a, &b, 1e-14);
    }
    // With a shared and scaled argument, and behind other operations.
    let f = |y: Vec<Var>, x: &[Var]| y[0] * y[1] + x[0].sin() * y[0];
    let g =
        scalar::gradient(|x: &[Var]| f(by_solver(&x.iter().map(|&a| a * 2.0).collect::<Vec<_>>()), x), &x);
    let e = scalar::gradient(
        |x: &[Var]| f(by_operations(&x.iter().map(|&a| a * 2.0).collect::<Vec<_>>()), x),
        &x,
    );
    assert_close(&g, &e, 1e-13);
}

#[test]
fn the_outputs_of_an_external_function_may_lie_in_several_chunks() {
    Tape::new().record(|t| {
        let x = t.input(2.0);
        let n = 70_000;
        let y = external(&[x], &vec![2.0; n], |g, d| d[0] = g.iter().sum());
        // The second sweep finds the adjoints clean.
        for last in [3.0, 5.0] {
            assert_eq!(t.derivative(y[0] + y[n / 2] * 10.0 + y[n - 1] * last, x), 11.0 + last);
        }
    });
}

#[test]
fn what_does_not_depend_stays_so_behind_infinite_slopes() {
    fn f<T: Real>(x: &[T]) -> T {
        (x[0] * 0.0).sqrt() + x[0].relu().sqrt() + x[1] + T::constant(0.0).sqrt()
    }
    assert_eq!(scalar::gradient(f, &[-1.0, 2.0]), [0.0, 1.0]);
    assert_eq!(scalar::directional(f, &[-1.0, 2.0], &[1.0, 1.0]).1, 1.0);
    fn steep<T: Real>(x: &[T]) -> T {
        x[0].sqrt()
    }
    assert_eq!(scalar::gradient(steep, &[0.0]), [f64::INFINITY]);
}

#[test]
fn domain_errors_are_nan() {
    fn f<T: Real>(x: &[T]) -> T {
        x[0].ln() * x[1]
    }
    let (v, g) = scalar::value_and_gradient(f, &[-1.0, 2.0]);
    assert!(v.is_nan() && g[0] == -2.0 && g[1].is_nan());
    let (v, g) = scalar::value_and_gradient(f, &[0.0, 2.0]);
    assert!(v == f64::NEG_INFINITY && g[0] == f64::INFINITY && g[1] == f64::NEG_INFINITY);
}

#[test]
fn empty_input() {
    assert!(scalar::gradient(|_: &[Var]| Var::constant(1.0), &[]).is_empty());
    assert_eq!(scalar::jacobian(|_: &[Var]| [Var::constant(1.0)], &[]), [[0.0; 0]]);
    assert!(scalar::jacobian(|_: &[Var]| Vec::<Var>::new(), &[1.0]).is_empty());
    assert!(scalar::hessian(|_: &[Var<_>]| Var::constant(1.0), &[]).is_empty());
    assert!(scalar::hvp(|_: &[Var<_>]| Var::constant(1.0), &[], &[]).is_empty());
}

#[test]
fn threads_have_a_tape_each() {
    let x = [0.7, -1.3, 0.4];
    let expected = scalar::gradient(smooth, &x);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..200).for_each(|_| assert_eq!(scalar::gradient(smooth, &x), expected)));
        }
    });
}

#[test]
fn a_panic_while_recording_leaves_the_tape_usable() {
    let x = [0.7, -1.3, 0.4];
    let expected = scalar::gradient(smooth, &x);
    let caught = std::panic::catch_unwind(|| {
        scalar::gradient(
            |x: &[Var]| {
                let _ = smooth(x);
                panic!("in the middle")
            },
            &x,
        )
    });
    assert!(caught.is_err());
    assert_eq!(scalar::gradient(smooth, &x), expected);
}

#[test]
fn a_panic_while_sweeping_leaves_the_tape_usable() {
    Tape::new().record(|t| {
        let x = t.inputs(&[1.0, 2.0]);
        let y = external(&[x[0]], &[1.0], |_, _| panic!("in the sweep"))[0] * x[1];
        let here = std::panic::AssertUnwindSafe(|| t.derivative(y, x[0]));
        assert!(std::panic::catch_unwind(here).is_err());
        assert_eq!(t.derivative(x[0] * x[1], x[0]), 2.0);
    });
}

/// A variable that has outlived its tape.
fn stale() -> (Var, Var) {
    Tape::new().record(|t| (t.input(1.0), t.input(2.0)))
}

#[test]
#[should_panic(expected = "tape")]
fn a_variable_without_its_tape_is_an_error() {
    let (x, y) = stale();
    let _ = x * y;
}

#[test]
#[cfg_attr(debug_assertions, should_panic(expected = "another tape"))]
fn a_variable_of_another_tape_is_an_error_in_debug_builds() {
    let (x, _) = stale();
    Tape::new().record(|t| {
        let y = t.input(1.0);
        let _ = x * y;
    });
}

#[test]
fn a_stale_variable_never_reads_outside() {
    // A large index, recorded on a short tape.
    let far = Tape::new().record(|t| t.inputs(&[1.0; 100_000])[99_999]);
    let outcome = std::panic::catch_unwind(|| {
        Tape::new().record(|t| {
            let y = t.input(1.0);
            t.derivative(far * y, y)
        })
    });
    assert!(outcome.is_err());
}

#[test]
#[should_panic(expected = "tape")]
fn a_stale_output_is_an_error_in_every_build() {
    let far = Tape::new().record(|t| t.inputs(&[1.0; 1000])[999]);
    Tape::new().record(|t| {
        let x = t.input(1.0);
        t.derivative(far, x)
    });
}

#[test]
#[should_panic(expected = "generation")]
#[cfg(debug_assertions)]
fn a_variable_after_reset_is_an_error() {
    Tape::new().record(|t| {
        let x = t.input(1.0);
        t.reset();
        let _ = x + t.input(2.0);
    });
}

#[test]
#[should_panic(expected = "not to what was computed")]
fn derivatives_are_with_respect_to_inputs() {
    Tape::new().record(|t| {
        let a = t.input(1.0) * t.input(2.0);
        t.derivative(a * a, a)
    });
}
