//! Gradients add up, over uses and over calls.

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
