//! NaN, infinities, zeros and subnormal numbers: the same answers as the standard library.

use super::{each1, each2, row};
use crate::kernels::isa::forced::with_each_isa;
use crate::kernels::lane::{Lane, Portable};
use pullback_table::Number;

const VALUES: [f64; 30] = [
    f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    2.0,
    -2.0,
    3.0,
    -3.0,
    1.5,
    -1.5,
    2.5,
    1e-310,
    -1e-310,
    5e-324,
    -5e-324,
    1e-300,
    1e300,
    -1e300,
    f64::MAX,
    f64::MIN,
    1e15,
    709.9,
    -745.3,
    1e10,
    -1e10,
];

/// As `VALUES`, at the limits of `f32`.
const VALUES_F32: [f32; 30] = [
    f32::NAN,
    f32::INFINITY,
    f32::NEG_INFINITY,
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    2.0,
    -2.0,
    3.0,
    -3.0,
    1.5,
    -1.5,
    2.5,
    1e-40,
    -1e-40,
    1e-45,
    -1e-45,
    1e-30,
    1e30,
    -1e30,
    f32::MAX,
    f32::MIN,
    1e7,
    88.8,
    -103.9,
    1e6,
    -1e6,
];

/// Equal in class and sign, and within a few units of the last place (other tests are stricter on that).
fn same(y: f64, expected: f64, epsilon: f64) -> bool {
    if expected.is_nan() {
        return y.is_nan();
    }
    y == expected && y.is_sign_negative() == expected.is_sign_negative()
        || y.is_finite() && (y - expected).abs() <= 4.0 * epsilon * expected.abs().max(epsilon.powi(12))
}

/// As `same`, or one unit of a subnormal `f32` apart.
fn same_f32(y: f32, expected: f64) -> bool {
    let (y, expected) = (f64::from(y), f64::from(expected as f32));
    same(y, expected, f64::from(f32::EPSILON)) || (y - expected).abs() <= 1.5e-45
}

macro_rules! like_std {
    ($($f:ident $P:ident: $std:ident;)*) => {$(
        #[test]
        fn $f() {
            with_each_isa(|isa| {
                for (x, y) in VALUES.into_iter().zip(each1::<row::$P, f64>(&VALUES)) {
                    assert!(same(y, x.$std(), f64::EPSILON), "{isa:?} {}({x:e}) = {y:e}, not {:e}", stringify!($f), x.$std());
                }
                for (x, y) in VALUES_F32.into_iter().zip(each1::<row::$P, f32>(&VALUES_F32)) {
                    let exact = f64::from(x).$std();
                    assert!(same_f32(y, exact), "{isa:?} {}({x:e}) = {y:e}, not {exact:e}", stringify!($f));
                }
            });
        }
    )*};
}

like_std! {
    sqrt Sqrt: sqrt; recip Recip: recip; cbrt Cbrt: cbrt; exp Exp: exp; exp2 Exp2: exp2; expm1 Expm1: exp_m1; ln Ln: ln; log2 Log2: log2; log10 Log10: log10; log1p Log1p: ln_1p;
    sin Sin: sin; cos Cos: cos; tan Tan: tan; asin Asin: asin; acos Acos: acos; atan Atan: atan; sinh Sinh: sinh; cosh Cosh: cosh; tanh Tanh: tanh;
    acosh Acosh: acosh; abs Abs: abs; floor Floor: floor; ceil Ceil: ceil; round Round: round_ties_even; trunc Trunc: trunc;
}

macro_rules! like_std_of_two {
    ($($f:ident $P:ident: $std:expr;)*) => {$(
        #[test]
        fn $f() {
            let std: fn(f64, f64) -> f64 = $std;
            let pairs: Vec<(f64, f64)> = VALUES.into_iter().flat_map(|a| VALUES.map(|b| (a, b))).collect();
            let narrow: Vec<(f32, f32)> = VALUES_F32.into_iter().flat_map(|a| VALUES_F32.map(|b| (a, b))).collect();
            let (a, b): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
            let (a32, b32): (Vec<f32>, Vec<f32>) = narrow.iter().copied().unzip();
            with_each_isa(|isa| {
                for (&(a, b), y) in pairs.iter().zip(each2::<row::$P, f64>(&a, &b)) {
                    assert!(same(y, std(a, b), f64::EPSILON), "{isa:?} {}({a:e}, {b:e}) = {y:e}, not {:e}", stringify!($f), std(a, b));
                }
                for (&(a, b), y) in narrow.iter().zip(each2::<row::$P, f32>(&a32, &b32)) {
                    let exact = std(f64::from(a), f64::from(b));
                    assert!(same_f32(y, exact), "{isa:?} {}({a:e}, {b:e}) = {y:e}, not {exact:e}", stringify!($f));
                }
            });
        }
    )*};
}

like_std_of_two! {
    pow Pow: f64::powf;
    atan2 Atan2: f64::atan2;
    hypot Hypot: f64::hypot;
    rem Rem: |a, b| a % b;
}

type L = Lane<f64, Portable>;

#[test]
fn hyperbolic_inverses_at_their_limits() {
    let f = |f: fn(L) -> L, x| f(L::new(x)).0;
    assert!(f(L::asinh, f64::NAN).is_nan() && f(L::atanh, f64::NAN).is_nan());
    assert_eq!(
        (f(L::asinh, f64::INFINITY), f(L::asinh, f64::NEG_INFINITY)),
        (f64::INFINITY, f64::NEG_INFINITY)
    );
    assert!(f(L::asinh, -0.0).is_sign_negative() && f(L::atanh, -0.0).is_sign_negative());
    assert_eq!((f(L::atanh, 1.0), f(L::atanh, -1.0)), (f64::INFINITY, f64::NEG_INFINITY));
    assert!(f(L::atanh, 1.5).is_nan() && f(L::atanh, f64::INFINITY).is_nan());
    assert_eq!((f(L::asinh, 1e-310), f(L::atanh, -1e-310)), (1e-310, -1e-310));
    assert!((f(L::asinh, 1e300) - (300.0 * 10f64.ln() + 2f64.ln())).abs() < 1e-12);
}

#[test]
fn sigmoid_and_error_functions_at_their_limits() {
    let f = |f: fn(L) -> L, x| f(L::new(x)).0;
    for function in [L::sigmoid, L::erf, L::erfc] {
        assert!(f(function, f64::NAN).is_nan());
    }
    assert_eq!((f(L::sigmoid, f64::INFINITY), f(L::sigmoid, f64::NEG_INFINITY)), (1.0, 0.0));
    assert_eq!((f(L::erf, f64::INFINITY), f(L::erf, f64::NEG_INFINITY)), (1.0, -1.0));
    assert_eq!((f(L::erfc, f64::INFINITY), f(L::erfc, f64::NEG_INFINITY)), (0.0, 2.0));
    assert!(f(L::erf, -0.0).is_sign_negative());
    assert_eq!((f(L::erfc, 0.0), f(L::sigmoid, 0.0)), (1.0, 0.5));
}

#[test]
fn kinks() {
    let f = |f: fn(L) -> L, x| f(L::new(x)).0;
    assert_eq!([-2.0, 0.0, 3.0].map(|x| f(L::sign, x)), [-1.0, 0.0, 1.0]);
    assert_eq!([-2.0, 0.0, 3.0].map(|x| f(L::step, x)), [0.0, 0.0, 1.0]);
    assert_eq!([-2.0, 0.0, 3.0].map(|x| f(L::relu, x)), [0.0, 0.0, 3.0]);
    assert!(f(L::sign, f64::NAN).is_nan() && f(L::relu, f64::NAN).is_nan());

    let f = |f: fn(L, L) -> L, a, b| f(L::new(a), L::new(b)).0;
    assert_eq!((f(L::maximum, 1.0, 2.0), f(L::minimum, 1.0, 2.0)), (2.0, 1.0));
    for (a, b) in [(f64::NAN, 1.0), (1.0, f64::NAN)] {
        assert!(f(L::maximum, a, b).is_nan() && f(L::minimum, a, b).is_nan());
    }
    assert_eq!((f(L::share, 2.0, 1.0), f(L::share, 1.0, 1.0), f(L::share, 1.0, 2.0)), (1.0, 0.5, 0.0));
    assert_eq!(
        (f(L::gate, 0.0, f64::NAN), f(L::gate, 0.0, f64::INFINITY), f(L::gate, 2.0, 3.0)),
        (0.0, 0.0, 6.0)
    );
    assert_eq!((f(L::gate, f64::NAN, 0.0), f(L::gate, f64::NEG_INFINITY, 0.0)), (0.0, 0.0));
    assert!(f(L::gate, f64::NAN, 1.0).is_nan() && f(L::gate, f64::INFINITY, f64::NAN).is_nan());
}
