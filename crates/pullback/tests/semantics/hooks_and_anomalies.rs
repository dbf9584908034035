//! Hooks, gradients of intermediate values, anomalies.

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
