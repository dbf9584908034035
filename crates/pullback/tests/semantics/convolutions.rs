//! Convolution and pooling: what the laws and recorded cases do not say.

use super::*;
use pullback::{Conv, Interpolation, Pool};

#[test]
fn images_may_be_one_or_none() {
    let (x, k) = (Tensor::ones([2, 4, 5]), Tensor::ones([3, 2, 2, 2]));
    assert_eq!(x.conv2d(&k, Conv::new()).shape(), [3, 3, 4]);
    let none = Tensor::zeros([0, 2, 4, 5]);
    assert_eq!(none.conv2d(&k, Conv::new()).shape(), [0, 3, 3, 4]);
    let g = grad(|k: &Tensor| none.conv2d(k, Conv::new()).sum())(&k);
    assert!(g.shape() == k.shape() && g.to_vec::<f64>().iter().all(|&g| g == 0.0));
    assert_eq!(none.max_pool2d(2).shape(), [0, 2, 2, 2]);
}

#[test]
fn halves_and_mixed_types_are_computed_in_single_precision() {
    let x = Tensor::linspace(0.0, 1.0, 50).reshape([1, 2, 5, 5]);
    let k = Tensor::linspace(-1.0, 1.0, 54).reshape([3, 2, 3, 3]);
    let exact = x.conv2d(&k, Conv::new().padding(1)).to_vec::<f64>();
    for (dtype, tolerance) in [(DType::F16, 1e-2), (DType::BF16, 1e-1), (DType::F32, 1e-5)] {
        let y = x.cast(dtype).conv2d(&k.cast(dtype), Conv::new().padding(1));
        assert_eq!(y.dtype(), dtype);
        assert!(y.to_vec::<f64>().iter().zip(&exact).all(|(a, b)| (a - b).abs() < tolerance), "{dtype}");
    }
    assert_eq!(x.cast(DType::F32).conv2d(&k, Conv::new()).dtype(), DType::F64);
}

#[test]
fn what_does_not_fit_is_an_error_with_the_way_out() {
    let x = Tensor::ones([1, 4, 5, 5]);
    let e = |k: &[usize], options: Conv| x.try_conv2d(&Tensor::ones(k), options).unwrap_err().to_string();
    let too_large = e(&[2, 4, 7, 3], Conv::new());
    assert!(
        too_large.starts_with("conv2d: the kernel reaches over 7 elements") && too_large.contains("pad more"),
        "{too_large}"
    );
    assert!(e(&[2, 4, 3, 3], Conv::new().dilation(3)).contains("reaches over 7"));
    assert!(e(&[2, 3, 3, 3], Conv::new()).contains("4 channels"));
    assert!(e(&[3, 2, 3, 3], Conv::new().groups(2)).contains("groups"));
    assert!(e(&[2, 4, 3, 3], Conv::new().stride(0)).contains("at least 1"));
    assert!(e(&[2, 4, 3, 3], Conv::new().stride([1, 2, 3])).contains("one for each of 2 spatial axes"));
    assert!(e(&[2, 4, 3], Conv::new()).contains("2 spatial axes"));
    assert!(e(&[2, 4, 3, 3], Conv::new().padding(usize::MAX)).contains("too large"));
    let integers = x.cast(DType::I64).try_conv2d(&Tensor::ones([1, 4, 1, 1]).cast(DType::I64), Conv::new());
    assert_eq!(integers.unwrap_err().kind(), ErrorKind::DType);
    assert!(x.try_max_pool2d(6).is_err() && x.try_max_pool2d(Pool::new(2).padding(2)).is_err());
    assert!(x.try_interpolate([0, 3], Interpolation::linear()).is_err());
    assert!(x.try_conv_transpose2d(&Tensor::ones([4, 1, 1, 1]), Conv::new().padding(3)).is_err());
}

#[test]
fn causal_outputs_see_nothing_of_what_comes() {
    let k = Tensor::linspace(1.0, 3.0, 3).reshape([1, 1, 3]);
    let last = |x: &Tensor| x.conv1d(&k, Conv::new().causal().dilation(2)).get(0).get(0).get(2);
    let g = grad(last)(&Tensor::ones([1, 1, 6]));
    assert_eq!(g.to_vec::<f64>(), [2.0, 0.0, 3.0, 0.0, 0.0, 0.0]);
}

#[test]
fn the_first_of_equal_maxima_wins_and_padding_never_does() {
    let x = Tensor::from([[-1.0, -1.0], [-1.0, -2.0]]);
    let g = grad(|x: &Tensor| x.max_pool2d(2).sum())(&x);
    assert_eq!(g.to_vec::<f64>(), [1.0, 0.0, 0.0, 0.0]);
    let (y, at) = x.max_pool2d_with_indices(Pool::new(2).stride(1).padding(1));
    assert_eq!(y.to_vec::<f64>(), [-1.0, -1.0, -1.0, -1.0, -1.0, -1.0, -1.0, -1.0, -2.0]);
    assert_eq!(at.to_vec::<i64>(), [0, 0, 1, 0, 0, 1, 2, 2, 3]);
    let nothing = Tensor::from([f64::NEG_INFINITY, f64::NEG_INFINITY, f64::NAN, 1.0]);
    let (y, at) = nothing.max_pool1d_with_indices(2);
    assert!(y.get(0).item() == f64::NEG_INFINITY && y.get(1).item().is_nan() && at.to_vec::<i64>() == [0, 2]);
}

#[test]
fn a_norm_of_zeros_has_a_derivative_of_zero() {
    let g = grad(|x: &Tensor| x.lp_pool1d(2.0, 2).sum())(&Tensor::from([0.0, 0.0, 3.0, 4.0]));
    assert!(g.to_vec::<f64>().iter().zip([0.0, 0.0, 0.6, 0.8]).all(|(a, b)| (a - b).abs() < 1e-12), "{g}");
}

#[test]
fn an_infinity_stays_where_it_is_seen() {
    let mut x = Tensor::ones([1, 1, 5, 40]);
    x.slice_assign((0, 0, 2, 39), f64::INFINITY);
    // The kernel's first column never sees the last of the input.
    let g = grad(|k: &Tensor| x.conv2d(k, Conv::new()).sum())(&Tensor::ones([1, 1, 3, 3]));
    assert_eq!(g.to_vec::<f64>()[0], 3.0 * 38.0);
    let depthwise = x.broadcast_to([1, 2, 5, 40]);
    let g = grad(|k: &Tensor| depthwise.conv2d(k, Conv::new().groups(2)).sum())(&Tensor::ones([2, 1, 3, 3]));
    assert_eq!(g.to_vec::<f64>()[0], 3.0 * 38.0);
    assert!(g.to_vec::<f64>()[2].is_infinite());
    let fine = Tensor::from([1.0, 2.0, f64::INFINITY]).interpolate([6], Interpolation::linear());
    assert_eq!(fine.to_vec::<f64>()[..3], [1.0, 1.25, 1.75]);
}

#[test]
fn threads_do_not_change_the_bits() {
    let x = Tensor::randn(Key::new(1), [5, 20, 17, 19], DType::F32);
    let k = Tensor::randn(Key::new(2), [36, 10, 3, 3], DType::F32);
    let options = || Conv::new().padding(1).stride([1, 2]).groups(2);
    let all = || {
        let (y, pull) =
            pullback::vjp(|(x, k): &(Tensor, Tensor)| x.conv2d(k, options()), &(x.clone(), k.clone()));
        let (dx, dk) = pull(&y);
        [y, dx, dk].map(|t| t.to_vec::<f32>().into_iter().map(f32::to_bits).collect::<Vec<_>>())
    };
    pullback::set_num_threads(1);
    let one = all();
    for n in [2, 3, 7] {
        pullback::set_num_threads(n);
        assert!(all() == one, "{n} threads");
    }
}
