//! Compiled functions: what is recorded, what it becomes, and where it may be called.

use pullback::scalar::{self, Comparison, Function, Number, Real, Symbol};
use pullback_testing::close;

// Generated code says `!(a < b)` where it means that a NaN leaves the branch too.
#[allow(clippy::neg_cmp_op_on_partial_ord)]
mod generated {
    include!("generated/rotation.rs");
}

fn rotation<T: Real>(x: &[T]) -> [T; 2] {
    let (sin, cos) = x[0].sin_cos();
    let y = [x[1] * cos - x[2] * sin, x[1] * sin + x[2] * cos];
    if x[1] > 0.0 { y } else { [y[0], y[1].erf()] }
}

#[test]
fn rust_source_computes_the_same() {
    let f = Function::record(rotation, 3);
    let text = f.jacobian_function().to_rust("rotation_jacobian");
    assert_eq!(
        text,
        include_str!("generated/rotation.rs"),
        "write the new text to tests/scalar/generated/rotation.rs"
    );
    let x = [0.7, 1.2, -0.4];
    let mut y = [0.0; 6];
    assert!(generated::rotation_jacobian(&x, &mut y));
    let j = f.jacobian(&x).concat();
    assert!(y.iter().zip(&j).all(|(a, b)| (a - b).abs() < 1e-15));
    assert!(!generated::rotation_jacobian(&[0.7, -1.2, -0.4], &mut y), "the other branch");
}

#[test]
fn c_source_compiles_and_computes_the_same() {
    fn f<T: Real>(x: &[T]) -> Vec<T> {
        let a = x[0].sigmoid() + x[1].softplus() * x[0].relu() + x[0].maximum(x[1]) + x[0].hypot(x[1]);
        let b =
            x[0].gelu() + x[1].silu() + x[0].logaddexp(x[1]) + x[1].xlogy(x[0]) + x[1].erfc() + x[0].rsqrt();
        vec![a, b, x[0].round() + x[1].abs().pow(x[0]), x[0].select_lt(x[1], x[0].sign(), x[1].step())]
    }
    let f = Function::record(f, 2);
    let dir = std::env::temp_dir().join(format!("pullback-c-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let (source, program) = (dir.join("f.c"), dir.join("f"));
    let main = "#include <stdio.h>\nint main(void) { double x[2] = {0.8, -0.3}, y[8]; int ok = f(x, y);\n\
                for (int k = 0; k < 8; k++) printf(\"%.17g\\n\", y[k]); return !ok; }\n";
    std::fs::write(&source, f.jacobian_function().to_c("f") + main).unwrap();
    let compiled = std::process::Command::new("cc").arg(&source).arg("-o").arg(&program).arg("-lm").status();
    if let Ok(status) = compiled {
        assert!(status.success());
        let out = std::process::Command::new(&program).output().unwrap();
        assert!(out.status.success());
        let y: Vec<f64> =
            String::from_utf8(out.stdout).unwrap().lines().map(|l| l.parse().unwrap()).collect();
        let j = f.jacobian(&[0.8, -0.3]).concat();
        assert!(y.iter().zip(&j).all(|(a, b)| (a - b).abs() < 1e-13), "{y:?} and {j:?}");
    }
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn equal_constant_and_dead_operations_vanish() {
    fn f<T: Real>(x: &[T]) -> T {
        let _dead = x[0].tan() * 3.0;
        let constant = T::constant(2.0).ln() * 3.0;
        (x[0] * x[1]).sin() + (x[1] * x[0]).sin() + constant * 0.0 + x[0] * 1.0 + 0.0
            - x[1].powi(3).recip() * T::constant(0.0).sin()
    }
    let f = Function::record(f, 2);
    // x0 x1, sin, doubled, + x0, and the term with the factor 0, which is not dropped: x1 may be 0.
    assert_eq!(f.operations(), 9, "{f}");
    assert_eq!(Function::record(|x: &[Symbol]| x[0].powi(4), 1).operations(), 2);
    assert_eq!(Function::record(|x: &[Symbol]| x[0].powf(2.0), 1).operations(), 1);
    assert_eq!(Function::record(|x: &[Symbol]| -(-x[0]) + 0.0, 1).operations(), 0);
}

#[test]
fn it_prints_as_a_straight_line() {
    fn f<T: Real>(x: &[T]) -> T {
        x[0] * x[1] + 0.5
    }
    let text = Function::record(f, 2).to_string();
    assert_eq!(text, "%0 = input 0\n%1 = input 1\n%2 = mul %0 %1\n%3 = 0.5\n%4 = add %2 %3\nreturn %4\n");
}

#[test]
fn comparisons_are_guarded() {
    fn f<T: Real>(x: &[T]) -> T {
        if x[0] < 1.0 { x[0] * x[0] } else { x[0].ln() + x[1] }
    }
    let low = Function::record_at(f, &[0.5, 0.0]);
    let high = Function::record_at(f, &[2.0, 0.0]);
    let [guard] = low.guards() else { panic!("one comparison") };
    assert_eq!((guard.comparison, guard.outcome), (Comparison::Less, true));
    assert!(guard.location.file().ends_with("functions.rs"));
    assert_eq!(low.value(&[-3.0, 0.0]), 9.0);
    assert_eq!(high.gradient(&[4.0, 1.0]), [0.25, 1.0]);

    let mut out = [0.0];
    let outside = low.try_evaluate_into(&[1.5, 0.0], &mut out).unwrap_err();
    assert!(outside.to_string().contains("outside the branch"));
    // NaN compares as it does in plain code.
    assert!(low.try_evaluate_into(&[f64::NAN, 0.0], &mut out).is_err());
    assert!(high.try_evaluate_into(&[f64::NAN, 0.0], &mut out).is_ok());

    // Among many points, the first that is outside; idle lanes do not count.
    let mut points: Vec<f64> = (0..300).flat_map(|k| [0.001 * k as f64, 1.0]).collect();
    let mut out = vec![0.0; 300];
    assert!(low.try_evaluate_many_into(&points, &mut out).is_ok());
    points[2 * 257] = 7.0;
    points[2 * 290] = 7.0;
    assert_eq!(low.try_evaluate_many_into(&points, &mut out).unwrap_err().point, 257);
    // The derivative is of the same branch.
    assert!(low.gradient_function().try_evaluate_into(&[1.5, 0.0], &mut [0.0; 2]).is_err());
}

#[test]
#[should_panic(expected = "outside the branch")]
fn a_call_outside_the_branch_panics() {
    fn f<T: Real>(x: &[T]) -> T {
        if x[0] > 0.0 { x[0] } else { -x[0] }
    }
    Function::record(f, 1).value(&[-1.0]);
}

#[test]
fn a_select_is_made_again() {
    fn f<T: Real>(x: &[T]) -> T {
        let zero = T::constant(0.0);
        // Outside its domain the root is NaN, and infinitely steep at its end; neither reaches the derivative.
        zero.select_lt(x[0], x[0].sqrt() * x[1], x[1])
    }
    let f = Function::record(f, 2);
    assert!(f.guards().is_empty());
    assert_eq!(f.gradient(&[4.0, 2.0]), [0.5, 2.0]);
    assert_eq!(f.gradient(&[-4.0, 2.0]), [0.0, 1.0]);
    assert_eq!(f.gradient(&[0.0, 2.0]), [0.0, 1.0]);
    assert_eq!(f.gradients(&[4.0, 2.0, -4.0, 2.0, 0.0, 2.0]), [0.5, 2.0, 0.0, 1.0, 0.0, 1.0]);
}

#[test]
fn large_angles_and_special_values_in_lanes() {
    fn f<T: Real>(x: &[T]) -> T {
        x[0].sin() + x[0].cos() * 2.0 + x[0].tan()
    }
    let g = Function::record(f, 1);
    let points: Vec<f64> =
        (0..100).map(|k| 10f64.powi(k % 20) * 1.234 * if k % 3 == 0 { -1.0 } else { 1.0 }).collect();
    for (x, y) in points.iter().zip(g.values(&points)) {
        let e = f(&[*x]);
        assert!(close(y, e, 1e-14), "{x}: {y} and {e}");
        assert_eq!(g.value(&[*x]), y);
    }
    assert!(g.values(&[f64::INFINITY, f64::NAN]).iter().all(|y| y.is_nan()));
    let ln = Function::record(|x: &[Symbol]| x[0].ln(), 1);
    assert_eq!(ln.values(&[0.0, 1.0, f64::INFINITY]), [f64::NEG_INFINITY, 0.0, f64::INFINITY]);
    assert!(ln.value(&[-1.0]).is_nan());
    assert_eq!(ln.gradient(&[0.0]), [f64::INFINITY]);
}

#[test]
fn no_inputs_no_outputs_no_points() {
    let constant = Function::record(|_: &[Symbol]| Symbol::constant(3.0), 0);
    assert_eq!(constant.value(&[]), 3.0);
    assert!(constant.gradient(&[]).is_empty() && constant.hessian(&[]).is_empty());
    let nothing = Function::record(|_: &[Symbol]| Vec::<Symbol>::new(), 2);
    assert!(nothing.evaluate(&[1.0, 2.0]).is_empty() && nothing.jacobian(&[1.0, 2.0]).is_empty());
    assert!(Function::record(|x: &[Symbol]| x[0], 1).values(&[]).is_empty());
    let unused = Function::record(|x: &[Symbol]| x[1], 3);
    assert_eq!(unused.gradient(&[1.0, 2.0, 3.0]), [0.0, 1.0, 0.0]);
    assert_eq!(unused.gradients(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), [0.0, 1.0, 0.0, 0.0, 1.0, 0.0]);
}

#[test]
fn value_and_gradient_products_and_batches_agree() {
    fn f<T: Real>(x: &[T]) -> T {
        (x[0] * x[1]).exp() * x[2].sin() + x[1] / (x[2] * x[2] + 1.0)
    }
    let g = Function::record(f, 3);
    let x = [0.3, -0.8, 1.1];
    let (v, d) = g.value_and_gradient(&x);
    assert!((v - f(&x)).abs() < 1e-15);
    assert_eq!(d, g.gradient(&x));
    let h = g.hessian(&x);
    let reference = scalar::hessian(f, &x);
    for k in 0..3 {
        let mut unit = [0.0; 3];
        unit[k] = 1.0;
        let row = g.hvp(&x, &unit);
        assert!(
            (0..3).all(|j| (row[j] - h[k][j]).abs() < 1e-15 && (h[k][j] - reference[k][j]).abs() < 1e-14)
        );
        let pushed = g.pushforward_function().evaluate(&[x, unit].concat());
        assert!((pushed[0] - d[k]).abs() < 1e-15);
    }
    assert_eq!(
        g.pullback_function().evaluate(&[x[0], x[1], x[2], 2.0]),
        d.iter().map(|d| d * 2.0).collect::<Vec<_>>()
    );
}

#[test]
#[should_panic(expected = "outside the recording")]
fn a_symbol_does_not_outlive_its_recording() {
    let mut kept = None;
    let cell = std::cell::RefCell::new(&mut kept);
    Function::record(
        |x: &[Symbol]| {
            **cell.borrow_mut() = Some(x[0]);
            x[0]
        },
        1,
    );
    let _ = kept.unwrap() * 2.0;
}
