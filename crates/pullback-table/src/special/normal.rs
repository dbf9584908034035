//! The inverse of the error function, and the normal distribution.

use super::{erf, erfc, erfcx};
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, SQRT_2};

/// What the `f64` nearest to 1/√2 lacks.
const FRAC_1_SQRT_2_REST: f64 = -4.833646656726457e-17;

/// The `y >= 0` with `erfc(y) = q`, for `0 < q <= 1`, where `p = 1 - q` is given too, for one of them is exact.
///
/// A first guess, and Halley's method on whichever of `erf` and `erfc` keeps its digits. `f''/f' = -2y` for both.
fn inverse(p: f64, q: f64) -> f64 {
    let mut y = if p < 0.1 {
        p / FRAC_2_SQRT_PI * (1.0 + std::f64::consts::PI / 12.0 * p * p)
    } else {
        // Abramowitz and Stegun 26.2.23, within 4.5e-4 √2.
        let t = (-2.0 * (0.5 * q).ln()).sqrt();
        let above = 2.515517 + t * (0.802853 + t * 0.010328);
        (t - above / (1.0 + t * (1.432788 + t * (0.189269 + t * 0.001308)))) * FRAC_1_SQRT_2
    };
    for _ in 0..3 {
        let step = if p < 0.5 {
            (erf(y) - p) / (FRAC_2_SQRT_PI * (-y * y).exp())
        } else {
            // erfc and its slope both underflow in the tail; their quotients do not.
            let scaled = erfcx(y);
            ((y * y + q.ln()).exp() / scaled - 1.0) * scaled / FRAC_2_SQRT_PI
        };
        y -= step / (1.0 + y * step);
    }
    y
}

/// The inverse of the error function: `erf(erfinv(x)) = x`; infinite at -1 and 1, NaN beyond.
///
/// ```
/// assert_eq!(pullback_table::special::erfinv(0.5), 0.4769362762044699);
/// ```
pub fn erfinv(x: f64) -> f64 {
    let p = x.abs();
    if p.is_nan() || p >= 1.0 {
        return if p == 1.0 { f64::INFINITY.copysign(x) } else { f64::NAN };
    }
    if p == 0.0 { x } else { inverse(p, 1.0 - p).copysign(x) }
}

/// The quantile of the standard normal distribution: the `y` with `Φ(y) = p`; infinite at 0 and 1, NaN beyond.
///
/// ```
/// assert!((pullback_table::special::ndtri(0.975) - 1.959963984540054).abs() < 1e-15);
/// ```
pub fn ndtri(p: f64) -> f64 {
    if !(p > 0.0 && p < 1.0) {
        return match p {
            0.0 => f64::NEG_INFINITY,
            1.0 => f64::INFINITY,
            _ => f64::NAN,
        };
    }
    if p < 0.25 { -SQRT_2 * inverse(1.0 - 2.0 * p, 2.0 * p) } else { SQRT_2 * erfinv(2.0 * p - 1.0) }
}

/// The logarithm of the standard normal distribution, `ln Φ(x)`, accurate in both tails.
///
/// ```
/// assert!((pullback_table::special::log_ndtr(-100.0) / -5005.524208694205 - 1.0).abs() < 1e-15);
/// ```
pub fn log_ndtr(x: f64) -> f64 {
    let z = x * FRAC_1_SQRT_2;
    if x < -1.0 {
        if x == f64::NEG_INFINITY {
            return x;
        }
        (0.5 * erfcx(-z)).ln() - 0.5 * x * x
    } else {
        // For positive x the rounding of z would be multiplied by 2z² in erfc.
        let error = x.mul_add(FRAC_1_SQRT_2, -z) + x * FRAC_1_SQRT_2_REST;
        let relative = if x > 0.0 && x < 40.0 { error * FRAC_2_SQRT_PI / erfcx(z) } else { 0.0 };
        (-0.5 * erfc(z) * (1.0 - relative)).ln_1p()
    }
}
