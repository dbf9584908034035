//! The functions against wider references, on samples of their domains.
//!
//! An `f32` result is compared with the standard library's `f64` function, which is exact for the purpose. An `f64` result is compared
//! with the same function, which may itself be off by one unit of the last place; its bound is larger by that.
//! Both forms of the code are tested, with fused multiply-add and without.

use super::erf_values::ERF;
use super::noise;
use crate::backend::cpu::lane::{Portable, V3};
use crate::backend::cpu::math;

const SAMPLES: usize = 20_000;

/// What the standard library may be off by.
const STD_ERROR: f64 = 1.0;

/// The distance from `y` to the exact result, in units of the last place of `f32` there.
fn ulps_f32(y: f32, exact: f64) -> f64 {
    if f64::from(y) == exact || (y.is_infinite() && exact as f32 == y) {
        return 0.0;
    }
    let scale = (exact.abs() as f32).max(f32::MIN_POSITIVE);
    let ulp = f64::from(f32::from_bits(scale.to_bits() & 0x7f80_0000)) * f64::from(f32::EPSILON);
    (f64::from(y) - exact).abs() / ulp
}

fn ulps_f64(y: f64, exact: f64) -> f64 {
    if y == exact {
        return 0.0;
    }
    let scale = exact.abs().max(f64::MIN_POSITIVE);
    // The subtraction is exact for neighbours; EPSILON times the power of two below the value may underflow, so divide twice.
    (y - exact).abs() / f64::from_bits(scale.to_bits() & 0x7ff0_0000_0000_0000) / f64::EPSILON
}

/// Samples spread evenly over the range, then evenly in magnitude towards its end next to 0, if it reaches there.
fn samples((low, high): (f64, f64)) -> impl Iterator<Item = f64> {
    let even = noise(1).take(SAMPLES).map(move |u| low + (high - low) * u);
    let small = noise(2).zip(noise(3)).take(SAMPLES / 4).map(move |(u, v)| {
        let x = if v * (high - low) < high.max(0.0) { high } else { low };
        x * 2f64.powf(-60.0 * u)
    });
    even.chain(small).filter(move |&x| x >= low && x <= high)
}

fn check(name: &str, worst: f64, at: f64, bound: f64) {
    // A NaN stays the worst, as nothing is above it, and fails here.
    assert!(worst <= bound, "{name}({at:e}) is off by {worst} ulp; the bound is {bound}");
}

/// Checks one function in `f32` and `f64`, each over its ranges, with and without fused multiply-add.
macro_rules! accurate {
    ($($f:ident: $std:expr, within $ulps:literal, on $ranges:expr, f32 $ranges32:expr;)*) => {$(
        #[test]
        fn $f() {
            let exact: fn(f64) -> f64 = $std;
            let (mut worst, mut at) = (0.0, 0.0);
            for x in $ranges32.into_iter().flat_map(samples).map(|x| x as f32) {
                for y in [math::$f::<f32, Portable>(x), math::$f::<f32, V3>(x)] {
                    let error = ulps_f32(y, exact(f64::from(x)));
                    if error > worst || error.is_nan() {
                        (worst, at) = (error, f64::from(x));
                    }
                }
            }
            check(concat!(stringify!($f), " f32 "), worst, at, $ulps);
            (worst, at) = (0.0, 0.0);
            for x in $ranges.into_iter().flat_map(samples) {
                for y in [math::$f::<f64, Portable>(x), math::$f::<f64, V3>(x)] {
                    let error = ulps_f64(y, exact(x));
                    if error > worst || error.is_nan() {
                        (worst, at) = (error, x);
                    }
                }
            }
            check(concat!(stringify!($f), " f64 "), worst, at, $ulps + STD_ERROR);
        }
    )*};
}

accurate! {
    exp: f64::exp, within 1.0, on [(-745.0, 709.7), (-1.0, 1.0)], f32 [(-103.0, 88.7), (-1.0, 1.0)];
    exp2: f64::exp2, within 1.5, on [(-1074.0, 1023.9), (-1.0, 1.0)], f32 [(-149.0, 127.9), (-1.0, 1.0)];
    expm1: f64::exp_m1, within 2.0, on [(-40.0, 709.7), (-2.0, 2.0)], f32 [(-20.0, 88.7), (-2.0, 2.0)];
    ln: f64::ln, within 1.0, on [(0.0, 1e300), (0.5, 2.0)], f32 [(0.0, 1e38), (0.5, 2.0)];
    log2: f64::log2, within 1.0, on [(0.0, 1e300), (0.5, 2.0)], f32 [(0.0, 1e38), (0.5, 2.0)];
    log10: f64::log10, within 1.0, on [(0.0, 1e300), (0.5, 2.0)], f32 [(0.0, 1e38), (0.5, 2.0)];
    log1p: f64::ln_1p, within 1.0, on [(-0.9999, 3.0), (0.0, 1e300)], f32 [(-0.9999, 3.0), (0.0, 1e38)];
    sin: f64::sin, within 1.0, on [(-10.0, 10.0), (-1e9, 1e9)], f32 [(-10.0, 10.0), (-1.3e5, 1.3e5)];
    cos: f64::cos, within 1.0, on [(-10.0, 10.0), (-1e9, 1e9)], f32 [(-10.0, 10.0), (-1.3e5, 1.3e5)];
    tan: f64::tan, within 2.0, on [(-10.0, 10.0), (-1e9, 1e9)], f32 [(-10.0, 10.0), (-1.3e5, 1.3e5)];
    asin: f64::asin, within 1.0, on [(-1.0, 1.0)], f32 [(-1.0, 1.0)];
    acos: f64::acos, within 1.0, on [(-1.0, 1.0)], f32 [(-1.0, 1.0)];
    atan: f64::atan, within 2.0, on [(-5.0, 5.0), (-1e300, 1e300)], f32 [(-5.0, 5.0), (-1e38, 1e38)];
    sinh: f64::sinh, within 2.0, on [(-2.0, 2.0), (-710.0, 710.0)], f32 [(-2.0, 2.0), (-89.0, 89.0)];
    cosh: f64::cosh, within 2.0, on [(-2.0, 2.0), (-710.0, 710.0)], f32 [(-2.0, 2.0), (-89.0, 89.0)];
    tanh: f64::tanh, within 2.0, on [(-3.0, 3.0), (-30.0, 30.0)], f32 [(-3.0, 3.0), (-30.0, 30.0)];
    asinh: f64::asinh, within 2.0, on [(-3.0, 3.0)], f32 [(-3.0, 3.0)];
    acosh: f64::acosh, within 2.0, on [(1.5, 50.0), (1.0, 1e150)], f32 [(1.0, 50.0), (1.0, 1e38)];
    atanh: f64::atanh, within 2.0, on [(-0.5, 0.5)], f32 [(-1.0, 1.0)];
    cbrt: f64::cbrt, within 1.0, on [(-8.0, 8.0), (-1e300, 1e300)], f32 [(-8.0, 8.0), (-1e38, 1e38)];
    sigmoid: |x| if x < 0.0 { x.exp() / (x.exp() + 1.0) } else { 1.0 / ((-x).exp() + 1.0) }, within 2.5,
        on [(-20.0, 40.0), (-740.0, 0.0)], f32 [(-20.0, 40.0), (-103.0, 0.0)];
}

/// The same for two arguments.
macro_rules! accurate_of_two {
    ($($f:ident: $std:expr, within $ulps:literal, on $range_a:expr, $range_b:expr, f32 $range_a32:expr, $range_b32:expr;)*) => {$(
        #[test]
        fn $f() {
            let exact: fn(f64, f64) -> f64 = $std;
            let pairs = |a: (f64, f64), b: (f64, f64)| {
                let (a, b) = (move |u| a.0 + (a.1 - a.0) * u, move |u| b.0 + (b.1 - b.0) * u);
                noise(1).map(a).zip(noise(2).map(b)).take(SAMPLES)
            };
            for (a, b) in pairs($range_a32, $range_b32) {
                let (a, b) = (a as f32, b as f32);
                for y in [math::$f::<f32, Portable>(a, b), math::$f::<f32, V3>(a, b)] {
                    let error = ulps_f32(y, exact(f64::from(a), f64::from(b)));
                    assert!(error <= $ulps, "f32 ({a}, {b}): {error} ulp");
                }
            }
            for (a, b) in pairs($range_a, $range_b) {
                for y in [math::$f::<f64, Portable>(a, b), math::$f::<f64, V3>(a, b)] {
                    let error = ulps_f64(y, exact(a, b));
                    assert!(error <= $ulps + STD_ERROR, "f64 ({a}, {b}): {error} ulp");
                }
            }
        }
    )*};
}

accurate_of_two! {
    pow: f64::powf, within 1.0, on (0.3, 3.0), (-580.0, 580.0), f32 (0.3, 3.0), (-70.0, 70.0);
    atan2: f64::atan2, within 2.0, on (-3.0, 3.0), (-3.0, 3.0), f32 (-3.0, 3.0), (-3.0, 3.0);
    hypot: f64::hypot, within 1.0, on (-3.0, 3.0), (-3.0, 3.0), f32 (-3.0, 3.0), (-3.0, 3.0);
}

#[test]
fn pow_of_bases_near_one_and_of_large_bases() {
    for (a, b) in [
        (1.0 + 1e-10, 3e12),
        (1.0 - 1e-13, -7e14),
        (1e-308, 0.99),
        (5e-324, 0.5),
        (1.7e308, 0.7),
        (3.0, 40.0),
    ] {
        for y in [math::pow::<f64, Portable>(a, b), math::pow::<f64, V3>(a, b)] {
            let error = ulps_f64(y, f64::powf(a, b));
            assert!(error <= 2.0, "{a}^{b}: {error} ulp");
        }
    }
}

#[test]
fn arguments_next_to_multiples_of_half_pi() {
    for k in 1..20_000 {
        let x = f64::from(k) * std::f64::consts::FRAC_PI_2;
        let error =
            ulps_f64(math::sin::<f64, Portable>(x), x.sin()).max(ulps_f64(math::cos::<f64, V3>(x), x.cos()));
        assert!(error <= 2.0, "{k} π/2: {error} ulp");
        let x = x as f32;
        let wide = f64::from(x);
        let error = ulps_f32(math::sin::<f32, V3>(x), wide.sin())
            .max(ulps_f32(math::cos::<f32, Portable>(x), wide.cos()));
        assert!(error <= 1.0, "{k} π/2 in f32: {error} ulp");
    }
}

#[test]
fn erf_and_erfc_f64_against_recorded_values() {
    for (x, erf, erfc) in ERF {
        for (y, z) in [
            (math::erf::<f64, Portable>(x), math::erfc::<f64, Portable>(x)),
            (math::erf::<f64, V3>(x), math::erfc::<f64, V3>(x)),
        ] {
            assert!(ulps_f64(y, erf) <= 1.0, "erf({x}) = {y}, not {erf}");
            // The quotient, the exponential and the product of the tail add up to more than elsewhere.
            assert!(ulps_f64(z, erfc) <= 4.0, "erfc({x}) = {z}, not {erfc}");
        }
    }
}

#[test]
fn erf_and_erfc_f32_against_f64() {
    for x in [(-4.5, 4.5), (-1.0, 1.0), (0.0, 10.0)].into_iter().flat_map(samples).map(|x| x as f32) {
        let (erf, erfc) =
            (math::erf::<f64, Portable>(f64::from(x)), math::erfc::<f64, Portable>(f64::from(x)));
        for (y, z) in [
            (math::erf::<f32, Portable>(x), math::erfc::<f32, Portable>(x)),
            (math::erf::<f32, V3>(x), math::erfc::<f32, V3>(x)),
        ] {
            assert!(ulps_f32(y, erf) <= 1.5, "erf({x}) = {y}, not {erf}");
            assert!(ulps_f32(z, erfc) <= 4.0, "erfc({x}) = {z}, not {erfc}");
        }
    }
}
