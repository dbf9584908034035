use pullback::scalar::{self, Function, Real};

fn f<T: Real>(x: &[T]) -> T {
    x[0] * x[1] + x[0].sin()
}

fn rosenbrock<T: Real>(x: &[T]) -> T {
    let mut s = T::constant(0.0);
    for i in 0..x.len() - 1 {
        let (a, b) = (x[i] - 1.0, x[i + 1] - x[i] * x[i]);
        s += a * a + b * b * 100.0;
    }
    s
}

fn branchy<T: Real>(x: &[T]) -> T {
    let mut y = x[0];
    while y < 10.0 {
        y = if y > 1.0 { y * x[0] } else { y + x[1].exp() };
    }
    y
}

#[test]
fn by_name_at_every_type() {
    let x = [2.0, 3.0];
    assert_eq!(f(&x), 6.0 + 2f64.sin());
    let (v, g) = scalar::value_and_gradient(f, &x);
    assert_eq!(v, f(&x));
    assert!((g[0] - (3.0 + 2f64.cos())).abs() < 1e-15 && g[1] == 2.0);
    let h = scalar::hessian(rosenbrock, &[-1.2, 1.0]);
    assert!((h[0][0] - 1330.0).abs() < 1e-9 && (h[0][1] - 480.0).abs() < 1e-9);
    let hv = scalar::hvp(rosenbrock, &[-1.2, 1.0], &[1.0, 0.0]);
    assert!((hv[1] - 480.0).abs() < 1e-9);
}

#[test]
fn forward_and_reverse_agree_on_the_path_that_ran() {
    // From 0.7 the loop of `branchy` never ends, on plain numbers too: y stays below 1 + exp(0.1).
    let x = [1.7, 0.1];
    let g = scalar::gradient(branchy, &x);
    let d = scalar::directional(branchy, &x, &[1.0, 0.0]).1;
    assert!((g[0] - d).abs() < 1e-12);
}

#[test]
fn many_outputs() {
    fn polar<T: Real>(x: &[T]) -> Vec<T> {
        vec![x[0].hypot(x[1]), x[1].atan2(x[0])]
    }
    let j = scalar::jacobian(polar, &[3.0, 4.0]);
    assert!((j[0][0] - 0.6).abs() < 1e-15 && (j[1][0] + 0.16).abs() < 1e-15);
}

#[test]
fn recorded_once_run_anywhere() {
    let r = Function::record(rosenbrock, 3);
    let x = [0.5, -0.3, 1.7];
    assert!((r.value(&x) - rosenbrock(&x)).abs() < 1e-12);
    let g = r.gradient(&x);
    let t = scalar::gradient(rosenbrock, &x);
    assert!(g.iter().zip(&t).all(|(a, b)| (a - b).abs() < 1e-10));
    let points: Vec<f64> = (0..3000).map(|k| (k as f64 * 0.37).sin()).collect();
    let all = r.gradients(&points); // 1000 points of 3, in SIMD lanes
    assert_eq!(all.len(), 3000);
    let one = scalar::gradient(rosenbrock, &points[297..300]);
    assert!(all[297..300].iter().zip(&one).all(|(a, b)| (a - b).abs() < 1e-9));
}

#[test]
fn sparse_by_colouring() {
    let r = Function::record(rosenbrock, 200);
    let x: Vec<f64> = (0..200).map(|k| 0.01 * k as f64).collect();
    let h = r.sparse_hessian(&x);
    assert_eq!(h.nnz(), 200 + 2 * 199);
    assert!(h.colors() <= 3);
}
