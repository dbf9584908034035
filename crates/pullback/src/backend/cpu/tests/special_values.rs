//! NaN, infinities, zeros and subnormal numbers: the same answers as the standard library.

use crate::backend::cpu::lane::{Careful, Lane, Portable, V3};
use crate::number::Number;

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

macro_rules! like_std {
    ($($f:ident: $std:ident;)*) => {$(
        #[test]
        fn $f() {
            for x in VALUES {
                for y in [Lane::<f64, Careful<Portable>>::new(x).$f().0, Lane::<f64, Careful<V3>>::new(x).$f().0] {
                    assert!(same(y, x.$std(), f64::EPSILON), "{}({x:e}) = {y:e}, not {:e}", stringify!($f), x.$std());
                }
            }
            for x in VALUES_F32 {
                let exact = f64::from(f64::from(x).$std() as f32);
                for y in [Lane::<f32, Careful<Portable>>::new(x).$f().0, Lane::<f32, Careful<V3>>::new(x).$f().0] {
                    let close = same(f64::from(y), exact, f64::from(f32::EPSILON));
                    // One unit of a subnormal result.
                    let close = close || (f64::from(y) - exact).abs() <= 1.5e-45;
                    assert!(close, "{}({x:e}) = {y:e}, not {exact:e}", stringify!($f));
                }
            }
        }
    )*};
}

like_std! {
    sqrt: sqrt; recip: recip; cbrt: cbrt; exp: exp; exp2: exp2; expm1: exp_m1; ln: ln; log2: log2; log10: log10; log1p: ln_1p;
    sin: sin; cos: cos; tan: tan; asin: asin; acos: acos; atan: atan; sinh: sinh; cosh: cosh; tanh: tanh;
    acosh: acosh; abs: abs; floor: floor; ceil: ceil; round: round_ties_even; trunc: trunc;
}

macro_rules! like_std_of_two {
    ($($f:ident: $std:expr;)*) => {$(
        #[test]
        fn $f() {
            let std: fn(f64, f64) -> f64 = $std;
            for (a, b) in VALUES.into_iter().flat_map(|a| VALUES.map(|b| (a, b))) {
                for y in [
                    Lane::<f64, Portable>::new(a).$f(Lane::new(b)).0,
                    Lane::<f64, V3>::new(a).$f(Lane::new(b)).0,
                ] {
                    assert!(same(y, std(a, b), f64::EPSILON), "{}({a:e}, {b:e}) = {y:e}, not {:e}", stringify!($f), std(a, b));
                }
            }
            for (a, b) in VALUES_F32.into_iter().flat_map(|a| VALUES_F32.map(|b| (a, b))) {
                let exact = f64::from(std(f64::from(a), f64::from(b)) as f32);
                for y in [
                    Lane::<f32, Portable>::new(a).$f(Lane::new(b)).0,
                    Lane::<f32, V3>::new(a).$f(Lane::new(b)).0,
                ] {
                    let close = same(f64::from(y), exact, f64::from(f32::EPSILON));
                    let close = close || (f64::from(y) - exact).abs() <= 1.5e-45;
                    assert!(close, "{}({a:e}, {b:e}) = {y:e}, not {exact:e}", stringify!($f));
                }
            }
        }
    )*};
}

like_std_of_two! {
    pow: f64::powf;
    atan2: f64::atan2;
    hypot: f64::hypot;
    rem: |a, b| a % b;
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
}
