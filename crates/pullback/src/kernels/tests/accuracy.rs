//! The functions against wider references, on samples of their domains.
//!
//! An `f32` result is compared with the standard library's `f64` function, which is exact for the purpose. An `f64` result is compared
//! with the same function, which may itself be off by one unit of the last place; its bound is larger by that. At recorded arguments it is held to
//! two units of the last place of values that are exact for the purpose.
//! The loops of every instruction set that the processor has are tested.

use super::elementary_values as exact;
use super::erf_values::ERF;
use super::{each1, each2, noise, row};
use crate::kernels::isa::forced::with_each_isa;
use crate::kernels::map::{Map1, Map2};

const SAMPLES: usize = 20_000;

/// What the standard library may be off by.
const STD_ERROR: f64 = 1.0;

/// The distance from `y` to the exact result, in units of the last place of `f32` there.
pub(super) fn ulps_f32(y: f32, exact: f64) -> f64 {
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

/// Fails if a result is further from the exact one than the bound.
fn check<X: Copy + std::fmt::LowerExp, Y: Copy>(
    name: &str,
    x: &[X],
    y: &[Y],
    bound: f64,
    error: impl Fn(X, Y) -> f64,
) {
    for (&x, &y) in x.iter().zip(y) {
        let error = error(x, y);
        // A NaN is not within any bound.
        assert!(error <= bound, "{name}({x:e}) is off by {error} ulp; the bound is {bound}");
    }
}

/// Checks one function in `f32` and `f64`, each over its ranges, with every instruction set.
macro_rules! accurate {
    ($($f:ident $P:ident: $std:expr, within $ulps:literal, on $ranges:expr, f32 $ranges32:expr;)*) => {$(
        #[test]
        fn $f() {
            let exact: fn(f64) -> f64 = $std;
            let narrow: Vec<f32> = $ranges32.into_iter().flat_map(samples).map(|x| x as f32).collect();
            let wide: Vec<f64> = $ranges.into_iter().flat_map(samples).collect();
            with_each_isa(|isa| {
                let name = format!("{} {isa:?}", stringify!($f));
                let of_narrow = each1::<row::$P, f32>(&narrow);
                check(&name, &narrow, &of_narrow, $ulps, |x, y| ulps_f32(y, exact(f64::from(x))));
                let of_wide = each1::<row::$P, f64>(&wide);
                check(&name, &wide, &of_wide, $ulps + STD_ERROR, |x, y| ulps_f64(y, exact(x)));
            });
        }
    )*};
}

accurate! {
    exp Exp: f64::exp, within 1.0, on [(-745.0, 709.7), (-1.0, 1.0)], f32 [(-103.0, 88.7), (-1.0, 1.0)];
    exp2 Exp2: f64::exp2, within 1.5, on [(-1074.0, 1023.9), (-1.0, 1.0)], f32 [(-149.0, 127.9), (-1.0, 1.0)];
    expm1 Expm1: f64::exp_m1, within 2.0, on [(-40.0, 709.7), (-2.0, 2.0)], f32 [(-20.0, 88.7), (-2.0, 2.0)];
    ln Ln: f64::ln, within 1.0, on [(0.0, 1e300), (0.5, 2.0)], f32 [(0.0, 1e38), (0.5, 2.0)];
    log2 Log2: f64::log2, within 1.0, on [(0.0, 1e300), (0.5, 2.0)], f32 [(0.0, 1e38), (0.5, 2.0)];
    log10 Log10: f64::log10, within 1.0, on [(0.0, 1e300), (0.5, 2.0)], f32 [(0.0, 1e38), (0.5, 2.0)];
    log1p Log1p: f64::ln_1p, within 1.0, on [(-0.9999, 3.0), (0.0, 1e300)], f32 [(-0.9999, 3.0), (0.0, 1e38)];
    sin Sin: f64::sin, within 1.0, on [(-10.0, 10.0), (-1e9, 1e9)], f32 [(-10.0, 10.0), (-1.3e5, 1.3e5)];
    cos Cos: f64::cos, within 1.0, on [(-10.0, 10.0), (-1e9, 1e9)], f32 [(-10.0, 10.0), (-1.3e5, 1.3e5)];
    tan Tan: f64::tan, within 1.5, on [(-10.0, 10.0), (-1e9, 1e9)], f32 [(-10.0, 10.0), (-1.3e5, 1.3e5)];
    asin Asin: f64::asin, within 1.0, on [(-1.0, 1.0)], f32 [(-1.0, 1.0)];
    acos Acos: f64::acos, within 1.0, on [(-1.0, 1.0)], f32 [(-1.0, 1.0)];
    atan Atan: f64::atan, within 2.0, on [(-5.0, 5.0), (-1e300, 1e300)], f32 [(-5.0, 5.0), (-1e38, 1e38)];
    sinh Sinh: f64::sinh, within 2.0, on [(-2.0, 2.0), (-710.0, 710.0)], f32 [(-2.0, 2.0), (-89.0, 89.0)];
    cosh Cosh: f64::cosh, within 2.0, on [(-2.0, 2.0), (-710.0, 710.0)], f32 [(-2.0, 2.0), (-89.0, 89.0)];
    tanh Tanh: f64::tanh, within 2.0, on [(-3.0, 3.0), (-30.0, 30.0)], f32 [(-3.0, 3.0), (-30.0, 30.0)];
    asinh Asinh: f64::asinh, within 2.0, on [(-3.0, 3.0)], f32 [(-3.0, 3.0)];
    acosh Acosh: f64::acosh, within 2.0, on [(1.5, 50.0), (1.0, 1e150)], f32 [(1.0, 50.0), (1.0, 1e38)];
    atanh Atanh: f64::atanh, within 2.0, on [(-0.5, 0.5)], f32 [(-1.0, 1.0)];
    cbrt Cbrt: f64::cbrt, within 1.0, on [(-8.0, 8.0), (-1e300, 1e300)], f32 [(-8.0, 8.0), (-1e38, 1e38)];
    sigmoid Sigmoid: |x| if x < 0.0 { x.exp() / (x.exp() + 1.0) } else { 1.0 / ((-x).exp() + 1.0) }, within 2.0,
        on [(-20.0, 40.0), (-740.0, 0.0)], f32 [(-20.0, 40.0), (-103.0, 0.0)];
}

/// The same for two arguments.
macro_rules! accurate_of_two {
    ($($f:ident $P:ident: $std:expr, within $ulps:literal, on $range_a:expr, $range_b:expr, f32 $range_a32:expr, $range_b32:expr;)*) => {$(
        #[test]
        fn $f() {
            let exact: fn(f64, f64) -> f64 = $std;
            let spread = |seed, (low, high): (f64, f64)| noise(seed).map(move |u| low + (high - low) * u).take(SAMPLES);
            let [a, b] = [spread(1, $range_a), spread(2, $range_b)].map(Iterator::collect::<Vec<f64>>);
            let [a32, b32] = [spread(1, $range_a32), spread(2, $range_b32)]
                .map(|x| x.map(|x| x as f32).collect::<Vec<f32>>());
            with_each_isa(|isa| {
                for ((y, &a), &b) in each2::<row::$P, f32>(&a32, &b32).into_iter().zip(&a32).zip(&b32) {
                    let error = ulps_f32(y, exact(f64::from(a), f64::from(b)));
                    assert!(error <= $ulps, "{isa:?} f32 ({a}, {b}): {error} ulp");
                }
                for ((y, &a), &b) in each2::<row::$P, f64>(&a, &b).into_iter().zip(&a).zip(&b) {
                    let error = ulps_f64(y, exact(a, b));
                    assert!(error <= $ulps + STD_ERROR, "{isa:?} f64 ({a}, {b}): {error} ulp");
                }
            });
        }
    )*};
}

accurate_of_two! {
    pow Pow: f64::powf, within 1.0, on (0.3, 3.0), (-580.0, 580.0), f32 (0.3, 3.0), (-70.0, 70.0);
    atan2 Atan2: f64::atan2, within 2.0, on (-3.0, 3.0), (-3.0, 3.0), f32 (-3.0, 3.0), (-3.0, 3.0);
    hypot Hypot: f64::hypot, within 1.0, on (-3.0, 3.0), (-3.0, 3.0), f32 (-3.0, 3.0), (-3.0, 3.0);
}

#[test]
fn pow_of_bases_near_one_and_of_large_bases() {
    let bases = [1.0 + 1e-10, 1.0 - 1e-13, 1e-308, 5e-324, 1.7e308, 3.0];
    let exponents = [3e12, -7e14, 0.99, 0.5, 0.7, 40.0];
    with_each_isa(|isa| {
        for ((y, a), b) in each2::<row::Pow, f64>(&bases, &exponents).into_iter().zip(bases).zip(exponents) {
            let error = ulps_f64(y, f64::powf(a, b));
            assert!(error <= 2.0, "{isa:?} {a}^{b}: {error} ulp");
        }
    });
}

#[test]
fn arguments_next_to_multiples_of_half_pi() {
    let wide: Vec<f64> = (1..20_000).map(|k| f64::from(k) * std::f64::consts::FRAC_PI_2).collect();
    let narrow: Vec<f32> = wide.iter().map(|&x| x as f32).collect();
    with_each_isa(|isa| {
        let name = format!("{isa:?}");
        check(&name, &wide, &each1::<row::Sin, f64>(&wide), 2.0, |x, y| ulps_f64(y, x.sin()));
        check(&name, &wide, &each1::<row::Cos, f64>(&wide), 2.0, |x, y| ulps_f64(y, x.cos()));
        check(&name, &narrow, &each1::<row::Sin, f32>(&narrow), 1.0, |x, y| ulps_f32(y, f64::from(x).sin()));
        check(&name, &narrow, &each1::<row::Cos, f32>(&narrow), 1.0, |x, y| ulps_f32(y, f64::from(x).cos()));
    });
}

/// Where the roundings of sine, cosine and their quotient would add up to more than two units of the last place.
#[test]
fn tangents_where_roundings_add_up() {
    let narrow = [2.370_080_7f32, -8.682_075_5];
    let wide = [8.654313785292672];
    with_each_isa(|isa| {
        let name = format!("{isa:?} tan");
        check(&name, &narrow, &each1::<row::Tan, f32>(&narrow), 1.5, |x, y| ulps_f32(y, f64::from(x).tan()));
        check(&name, &wide, &each1::<row::Tan, f64>(&wide), 1.5, |x, y| ulps_f64(y, x.tan()));
    });
}

#[test]
fn erf_and_erfc_f64_against_recorded_values() {
    let x = ERF.map(|(x, _, _)| x);
    with_each_isa(|isa| {
        let found = each1::<row::Erf, f64>(&x).into_iter().zip(each1::<row::Erfc, f64>(&x));
        for ((x, erf, erfc), (y, z)) in ERF.into_iter().zip(found) {
            assert!(ulps_f64(y, erf) <= 1.0, "{isa:?} erf({x}) = {y}, not {erf}");
            assert!(ulps_f64(z, erfc) <= 2.0, "{isa:?} erfc({x}) = {z}, not {erfc}");
        }
    });
}

#[test]
fn erf_and_erfc_f32_against_f64() {
    let ranges = [(-4.5, 4.5), (-1.0, 1.0), (0.0, 10.0)];
    let x: Vec<f32> = ranges.into_iter().flat_map(samples).map(|x| x as f32).collect();
    let wide: Vec<f64> = x.iter().map(|&x| f64::from(x)).collect();
    with_each_isa(|isa| {
        let exact = each1::<row::Erf, f64>(&wide).into_iter().zip(each1::<row::Erfc, f64>(&wide));
        let found = each1::<row::Erf, f32>(&x).into_iter().zip(each1::<row::Erfc, f32>(&x));
        for ((x, (erf, erfc)), (y, z)) in x.iter().zip(exact).zip(found) {
            assert!(ulps_f32(y, erf) <= 1.5, "{isa:?} erf({x}) = {y}, not {erf}");
            assert!(ulps_f32(z, erfc) <= 2.0, "{isa:?} erfc({x}) = {z}, not {erfc}");
        }
    });
}

/// The distance from `y` to the value that is given in two parts.
fn ulps_of_two_parts(y: f64, exact: f64, rest: f64) -> f64 {
    let scale = exact.abs().max(f64::MIN_POSITIVE);
    ((y - exact) - rest).abs() / f64::from_bits(scale.to_bits() & 0x7ff0_0000_0000_0000) / f64::EPSILON
}

/// Every elementary function is within two units of the last place where it was found to be worst.
#[test]
fn two_units_of_the_last_place_at_recorded_arguments() {
    fn held<M: Map1>(name: &str, values: &[(f64, f64, f64)]) {
        let x: Vec<f64> = values.iter().map(|v| v.0).collect();
        for (y, &(x, exact, rest)) in each1::<M, f64>(&x).into_iter().zip(values) {
            let error = ulps_of_two_parts(y, exact, rest);
            assert!(error <= 2.0, "{name}({x:e}) = {y:e} is off by {error} ulp");
        }
    }
    fn held_of_two<M: Map2>(name: &str, values: &[(f64, f64, f64, f64)]) {
        let [a, b] = [0, 1].map(|k| values.iter().map(|v| [v.0, v.1][k]).collect::<Vec<f64>>());
        for (y, &(a, b, exact, rest)) in each2::<M, f64>(&a, &b).into_iter().zip(values) {
            let error = ulps_of_two_parts(y, exact, rest);
            assert!(error <= 2.0, "{name}({a:e}, {b:e}) = {y:e} is off by {error} ulp");
        }
    }
    with_each_isa(|isa| {
        let name = |f: &str| format!("{isa:?} {f}");
        held::<row::Exp>(&name("exp"), exact::EXP);
        held::<row::Exp2>(&name("exp2"), exact::EXP2);
        held::<row::Expm1>(&name("expm1"), exact::EXPM1);
        held::<row::Ln>(&name("ln"), exact::LN);
        held::<row::Log2>(&name("log2"), exact::LOG2);
        held::<row::Log10>(&name("log10"), exact::LOG10);
        held::<row::Log1p>(&name("log1p"), exact::LOG1P);
        held::<row::Sin>(&name("sin"), exact::SIN);
        held::<row::Cos>(&name("cos"), exact::COS);
        held::<row::Tan>(&name("tan"), exact::TAN);
        held::<row::Asin>(&name("asin"), exact::ASIN);
        held::<row::Acos>(&name("acos"), exact::ACOS);
        held::<row::Atan>(&name("atan"), exact::ATAN);
        held::<row::Sinh>(&name("sinh"), exact::SINH);
        held::<row::Cosh>(&name("cosh"), exact::COSH);
        held::<row::Tanh>(&name("tanh"), exact::TANH);
        held::<row::Asinh>(&name("asinh"), exact::ASINH);
        held::<row::Acosh>(&name("acosh"), exact::ACOSH);
        held::<row::Atanh>(&name("atanh"), exact::ATANH);
        held::<row::Cbrt>(&name("cbrt"), exact::CBRT);
        held::<row::Sigmoid>(&name("sigmoid"), exact::SIGMOID);
        held::<row::Erf>(&name("erf"), exact::ERF);
        held::<row::Erfc>(&name("erfc"), exact::ERFC);
        held_of_two::<row::Pow>(&name("pow"), exact::POW);
        held_of_two::<row::Atan2>(&name("atan2"), exact::ATAN2);
        held_of_two::<row::Hypot>(&name("hypot"), exact::HYPOT);
    });
}
