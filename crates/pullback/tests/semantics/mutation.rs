//! Updates in place never spoil a gradient.

use super::*;
use pullback::strict;

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
        e.to_string().contains("square") && e.to_string().contains(&format!("{}:{line}", file!())),
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
