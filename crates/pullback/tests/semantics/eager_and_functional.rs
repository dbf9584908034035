//! Eager leaves and function transforms together.

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
