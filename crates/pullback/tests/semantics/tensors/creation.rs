//! Making tensors.

use super::*;

#[test]
fn from_rust_values() {
    assert_eq!(Tensor::from(2.5).dtype(), DType::F64);
    assert_eq!(Tensor::from(2.5f32).dtype(), DType::F32);
    assert_eq!(Tensor::from(3).dtype(), DType::I32);
    assert_eq!(Tensor::from([true, false]).to_vec::<bool>(), [true, false]);
    assert_eq!(Tensor::from(vec![1u8, 2]).dtype(), DType::U8);
    assert_eq!(Tensor::from(&[1.0, 2.0][..]).shape(), [2]);
    assert_eq!(Tensor::from([[[1.0], [2.0]], [[3.0], [4.0]], [[5.0], [6.0]]]).shape(), [3, 2, 1]);
    assert_eq!(Tensor::from([[[[0i64; 5]; 4]; 3]; 2]).shape(), [2, 3, 4, 5]);
    assert_eq!(Tensor::from(vec![vec![1.0, 2.0], vec![3.0, 4.0]]).to_vec::<f64>(), [1.0, 2.0, 3.0, 4.0]);
    assert_eq!(Tensor::from_slice(&[1, 2, 3, 4], [2, 2]).item_at([1, 0]), 3.0);
}

#[test]
fn in_row_major_order_whatever_the_rank() {
    let lengths = [2, 3, 1, 4, 2, 3];
    for rank in 0..=lengths.len() {
        let shape = &lengths[..rank];
        let n = shape.iter().product::<usize>() as i64;
        let x = ints(n).reshape(shape.to_vec()).cast(DType::F64) + 0.5;
        let last = shape.iter().fold(x.clone(), |x, _| x.get(-1));
        assert_eq!(last.item(), n as f64 - 0.5);
        assert_eq!(x.to_vec::<f64>(), (0..n).map(|k| k as f64 + 0.5).collect::<Vec<_>>());
    }
}

#[test]
fn by_pattern() {
    assert_eq!(Tensor::full([2], 7i64).to_vec::<i64>(), [7, 7]);
    assert_eq!(Tensor::eye(3).sum_axes(0).to_vec::<f64>(), [1.0; 3]);
    assert_eq!(Tensor::eye(3).item_at([1, 1]), 1.0);
    assert_eq!(Tensor::arange(5, -5, -4).to_vec::<i32>(), [5, 1, -3]);
    assert_eq!(Tensor::arange(0.0, 1.0, 0.3).numel(), 4);
    assert!(Tensor::arange(3, 3, 1).to_vec::<i32>().is_empty());
    assert_eq!(Tensor::linspace(0.0, 1.0, 1).to_vec::<f64>(), [0.0]);
    let third = Tensor::linspace(0.0, 1.0, 4).to_vec::<f64>();
    assert_eq!((third[0], third[3]), (0.0, 1.0));
    let x = Tensor::from([[1.0f32]]);
    assert_eq!((x.ones_like().dtype(), x.zeros_like().shape()), (DType::F32, &[1, 1][..]));
}

#[test]
fn handles_are_send_and_sync() {
    fn check<T: Send + Sync>() {}
    check::<Tensor>();
    check::<pullback::Error>();
}
