//! Ordinary Rust branches and loops.

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
