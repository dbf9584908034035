//! Activations, special functions and bits where something can go wrong: kinks, infinities, integers, bad arguments.

use super::*;

const INF: f64 = f64::INFINITY;

fn at(f: impl Fn(&Tensor) -> Tensor, x: f64) -> f64 {
    f(&scalar(x)).item()
}

#[test]
fn activations_have_their_limits() {
    assert_eq!((at(|x| x.leaky_relu(0.0), -INF), at(|x| x.leaky_relu(0.1), INF)), (0.0, INF));
    assert_eq!((at(|x| x.elu(2.0), -INF), at(|x| x.elu(2.0), INF)), (-2.0, INF));
    assert_eq!(
        (at(Tensor::softsign, -INF), at(Tensor::softsign, INF), at(Tensor::softsign, 0.0)),
        (-1.0, 1.0, 0.0)
    );
    assert_eq!((at(Tensor::mish, -INF), at(Tensor::gelu_tanh, -INF)), (0.0, 0.0));
    assert_eq!((at(Tensor::log_sigmoid, -1e4), at(Tensor::log_sigmoid, INF)), (-1e4, 0.0));
    for f in
        [Tensor::mish, Tensor::gelu_tanh, Tensor::softsign, Tensor::log_sigmoid] as [fn(&Tensor) -> Tensor; 4]
    {
        assert!(at(f, f64::NAN).is_nan());
    }
    assert_eq!(
        (slope(Tensor::mish, -INF), slope(Tensor::mish, INF), slope(Tensor::gelu_tanh, INF)),
        (0.0, 1.0, 1.0)
    );
    assert_eq!((slope(Tensor::log_sigmoid, -INF), slope(Tensor::log_sigmoid, INF)), (1.0, 0.0));
}

#[test]
fn kinks_of_activations() {
    assert_eq!((slope(|x| x.leaky_relu(0.25), 0.0), slope(|x| x.elu(0.5), 0.0)), (0.25, 0.5));
    assert_eq!((slope(Tensor::hardtanh, 1.0), slope(Tensor::hardtanh, 1.5)), (1.0, 0.0));
    // The slope is an operand like any other.
    let b = Tensor::from([0.1, 0.2]).requires_grad();
    Tensor::from([-3.0, 3.0]).leaky_relu(&b).sum().backward();
    assert_eq!(b.grad().unwrap().to_vec::<f64>(), [-3.0, 0.0]);
}

#[test]
fn removable_singularities_have_all_derivatives() {
    let second = |f: fn(&Tensor) -> Tensor| slope(|x| grad(f)(x), 0.0);
    let third = |f: fn(&Tensor) -> Tensor| slope(|x| grad(|x: &Tensor| grad(f)(x))(x), 0.0);
    let pi_squared = std::f64::consts::PI.powi(2);
    assert_eq!((at(Tensor::sinc, 0.0), slope(Tensor::sinc, 0.0)), (1.0, 0.0));
    assert!((second(Tensor::sinc) + pi_squared / 3.0).abs() < 1e-14);
    assert_eq!((slope(Tensor::bessel_j1, 0.0), third(Tensor::bessel_j1)), (0.5, -0.375));
    assert_eq!((slope(Tensor::bessel_i1, 0.0), second(Tensor::bessel_i0)), (0.5, 0.5));
}

#[test]
fn the_remainder_has_the_sign_of_the_divisor() {
    let (a, b) = (Tensor::from([5.0, -5.0, 5.0, -5.0, 0.0]), Tensor::from([3.0, 3.0, -3.0, -3.0, -1.0]));
    assert_eq!(a.remainder(&b).to_vec::<f64>(), [2.0, 1.0, -1.0, -2.0, 0.0]);
    assert!(a.remainder(&b).signbit().to_vec::<bool>()[4]);
    let whole = |v: [i64; 4]| Tensor::from(v);
    assert_eq!(whole([5, -5, 5, -5]).remainder(whole([3, 3, -3, -3])).to_vec::<i64>(), [2, 1, -1, -2]);
    assert_eq!(at(|x| x.remainder(INF), -5.0), INF);
    assert_eq!(grad(|b: &Tensor| Tensor::scalar(-5.0).remainder(b))(&scalar(3.0)).item(), 2.0);
    let e = whole([1, 2, 3, 4]).try_remainder(0).unwrap_err();
    assert!(e.to_string().contains("division by zero"), "{e}");
}

#[test]
fn bounds_may_be_tensors() {
    let x = Tensor::from([-2.0, 0.5, 2.0]).requires_grad();
    let (low, high) = (scalar(-1.0).requires_grad(), Tensor::from([0.0, 1.0, 1.0]).requires_grad());
    x.clamp(&low, &high).sum().backward();
    let of = |t: &Tensor| t.grad().unwrap().to_vec::<f64>();
    assert_eq!((of(&x), of(&low), of(&high)), (vec![0.0, 1.0, 0.0], vec![1.0], vec![0.0, 0.0, 1.0]));
    assert_eq!(Tensor::from([5i64, -5]).clamp(0, 3).to_vec::<i64>(), [3, 0]);
    assert_eq!(Tensor::from([5i64, -5]).clamp_min(0).to_vec::<i64>(), [5, 0]);
    assert!(at(|x| x.clamp(scalar(0.0), scalar(1.0)), f64::NAN).is_nan());
    assert!(scalar(0.0).try_clamp(1.0, 0.0).unwrap_err().to_string().contains("not an interval"));
}

#[test]
fn bits_of_every_integer_type() {
    for dtype in [DType::U8, DType::I32, DType::I64] {
        let x = Tensor::from([0i64, 1, 5, 100]).cast(dtype);
        let of = |t: Tensor| {
            assert_eq!(t.dtype(), dtype);
            t.cast(DType::I64).to_vec::<i64>()
        };
        assert_eq!(
            (of(&x & 4), of(&x | 1), of(&x ^ 1)),
            (vec![0, 0, 4, 4], vec![1, 1, 5, 101], vec![1, 0, 4, 101])
        );
        assert_eq!((of(&x << 1), of(&x >> 2)), (vec![0, 2, 10, 200], vec![0, 0, 1, 25]));
        assert_eq!((of(&x << 64), of(&x >> 64)), (vec![0; 4], vec![0; 4]));
        assert_eq!(of(!!&x), [0, 1, 5, 100]);
    }
    assert_eq!((!Tensor::from([0i64]).cast(DType::U8)).cast(DType::I64).to_vec::<i64>(), [255]);
    assert_eq!((Tensor::from([7i64]) << -1).to_vec::<i64>(), [0]);
    assert_eq!((Tensor::from([-5i64]) >> 80).to_vec::<i64>(), [-1]);
    let t = Tensor::from([1.0, -1.0]).gt(0.0);
    assert_eq!((!&t | &t).to_vec::<bool>(), [true, true]);
    let e = Tensor::from([1.0]).try_left_shift(1.0).unwrap_err();
    assert!(e.to_string().starts_with("left_shift: takes integers, got f64"), "{e}");
}

#[test]
fn kinds_of_numbers_of_every_type() {
    for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
        let x = Tensor::from([1.0, f64::NAN, INF, -INF]).cast(dtype);
        assert_eq!(x.isnan().to_vec::<bool>(), [false, true, false, false]);
        assert_eq!(x.isinf().to_vec::<bool>(), [false, false, true, true]);
        assert_eq!(x.isfinite().to_vec::<bool>(), [true, false, false, false]);
        let tame = x.nan_to_num();
        assert!(tame.isfinite().to_vec::<bool>().iter().all(|&b| b) && tame.dtype() == dtype);
    }
    let whole = Tensor::from([1i64, -2]);
    assert_eq!(
        (whole.isnan().to_vec::<bool>(), whole.isinf().to_vec::<bool>()),
        (vec![false; 2], vec![false; 2])
    );
    assert_eq!(
        (whole.isfinite().to_vec::<bool>(), whole.signbit().to_vec::<bool>()),
        (vec![true; 2], vec![false, true])
    );
    let g = grad(|x: &Tensor| (x.nan_to_num() * 2.0).sum())(&Tensor::from([1.0, f64::NAN, INF]));
    assert_eq!(g.to_vec::<f64>(), [2.0, 0.0, 0.0]);
}

#[test]
fn parameters_of_incomplete_functions_are_differentiated_to_every_order() {
    // d/da P(a, x) by differences of the first derivative.
    let p = |a: &Tensor| a.gammainc(1.5);
    let first = |a: f64| slope(p, a);
    let second = slope(|a| grad(p)(a), 2.0);
    assert!(((first(2.0 + 1e-5) - first(2.0 - 1e-5)) / 2e-5 - second).abs() < 1e-8);
    let q = slope(|a| a.gammaincc(1.5), 2.0);
    assert!((q + first(2.0)).abs() < 1e-15);
    let e = Tensor::from([1i64]).try_gammainc(1).unwrap_err();
    assert!(e.to_string().contains("takes floats"), "{e}");
    let e = Tensor::ones([2]).try_betainc(1.0, Tensor::ones([3])).unwrap_err();
    assert!(e.to_string().starts_with("betainc: "), "{e}");
}
