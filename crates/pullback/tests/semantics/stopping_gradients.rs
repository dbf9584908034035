//! Where gradients stop: detach, no_grad, frozen inputs.

use super::*;
use pullback::enable_grad;

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
    let elsewhere = no_grad(|| std::thread::scope(|s| s.spawn(|| x.square().needs_grad()).join().unwrap()));
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
