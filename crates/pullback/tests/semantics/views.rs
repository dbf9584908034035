//! Views share elements, and gradients know it.

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
