//! The logarithm of the gamma function, its derivatives, and the logarithm of the beta function.

use super::poly;
use std::f64::consts::PI;

/// `½ ln 2π`.
pub(super) const HALF_LN_2_PI: f64 = 0.9189385332046728;

/// `lgamma(2 + z) / z` for `|z| <= 1/2`.
fn around_two(z: f64) -> f64 {
    poly(
        z,
        [
            0.42278433509846713,
            0.3224670334241132,
            -0.06735230105319563,
            0.02058080842778338,
            -0.007385551028935545,
            0.002890510330865901,
            -0.0011927539009983087,
            0.0005096695196526673,
            -0.00022315497746292723,
            9.945761692157133e-05,
            -4.4923727564247656e-05,
            2.050601970174762e-05,
            -9.45628851510172e-06,
            4.3828545383846665e-06,
            -1.9743106888421067e-06,
            9.242852225162277e-07,
            -5.811277768921246e-07,
            2.7475390051909663e-07,
        ],
    )
}

/// `lgamma(1 + z)` for `|z| <= 1/2`.
pub(super) fn lgamma_1p(z: f64) -> f64 {
    z * around_two(z) - z.ln_1p()
}

/// The rest of Stirling's formula, `lgamma(x) - ((x - 1/2) ln x - x + ½ ln 2π)`, for `x >= 10`.
pub(super) fn stirling_rest(x: f64) -> f64 {
    let z = 1.0 / x;
    z * poly(
        z * z,
        [
            1.0 / 12.0,
            -1.0 / 360.0,
            1.0 / 1260.0,
            -1.0 / 1680.0,
            1.0 / 1188.0,
            -691.0 / 360360.0,
            1.0 / 156.0,
            -3617.0 / 122400.0,
        ],
    )
}

/// The distance to the nearest integer with its sign, so that `sin(πx)` is `± sin(π reduced(x))`.
fn reduced(x: f64) -> f64 {
    x - x.round_ties_even()
}

/// The logarithm of the absolute value of the gamma function; infinite at 0 and the negative integers.
///
/// ```
/// assert!((pullback_table::special::lgamma(10.0) - 362880f64.ln()).abs() < 1e-14);
/// ```
pub fn lgamma(x: f64) -> f64 {
    if x.is_nan() || x == f64::INFINITY {
        return x;
    }
    if x == f64::NEG_INFINITY || (x <= 0.0 && x == x.floor()) {
        return f64::INFINITY;
    }
    if x < -0.5 {
        // Γ(x) Γ(-x) = -π / (x sin πx).
        return (PI / (x * (PI * reduced(x)).sin()).abs()).ln() - lgamma(-x);
    }
    if x < 0.5 {
        return lgamma_1p(x) - x.abs().ln();
    }
    if x < 1.5 {
        return lgamma_1p(x - 1.0);
    }
    if x >= 10.0 {
        return (x - 0.5) * (x.ln() - 1.0) + (HALF_LN_2_PI - 0.5 + stirling_rest(x));
    }
    // Down to [1.5, 2.5].
    let (mut y, mut product) = (x, 1.0);
    while y > 2.5 {
        y -= 1.0;
        product *= y;
    }
    product.ln() + (y - 2.0) * around_two(y - 2.0)
}

/// The derivative of [`lgamma`]; NaN at 0 and the negative integers.
///
/// ```
/// assert!((pullback_table::special::digamma(1.0) + 0.5772156649015329).abs() < 1e-15);
/// ```
pub fn digamma(x: f64) -> f64 {
    if x.is_nan() || x == f64::INFINITY {
        return x;
    }
    if x <= 0.0 && x == x.floor() {
        return f64::NAN;
    }
    if x < 0.0 {
        return digamma(1.0 - x) - PI / (PI * reduced(x)).tan();
    }
    if x < 1.0 {
        return around_root(1.0 + x) - 1.0 / x;
    }
    if x >= 10.0 {
        let z = 1.0 / (x * x);
        let rest = [
            1.0 / 12.0,
            -1.0 / 120.0,
            1.0 / 252.0,
            -1.0 / 240.0,
            1.0 / 132.0,
            -691.0 / 32760.0,
            1.0 / 12.0,
            -3617.0 / 8160.0,
        ];
        return x.ln() - 0.5 / x - z * poly(z, rest);
    }
    let (mut y, mut sum) = (x, 0.0);
    while y > 2.0 {
        y -= 1.0;
        sum += 1.0 / y;
    }
    sum + around_root(y)
}

/// `digamma(x)` for `1 <= x <= 2`, as a multiple of the distance from its root.
fn around_root(x: f64) -> f64 {
    let distance = (x - 1.4616321449683622) - 9.549995429965697e-17;
    distance
        * poly(
            x - 1.5,
            [
                0.9510558760318328,
                -0.42362742128146047,
                0.24054248424078736,
                -0.14840492305391761,
                0.09498872445283,
                -0.06192213327165706,
                0.04076083394462657,
                -0.02697579684427536,
                0.017907248195969127,
                -0.011908215172584002,
                0.007927024067961237,
                -0.00528001782089874,
                0.0035180800751066694,
                -0.002344650082351321,
                0.0015635679757533885,
                -0.001042261556504223,
                0.0006899717801166841,
                -0.0004599625144612576,
                0.0003268068044141764,
                -0.0002178682145501451,
                9.173383289174792e-05,
                -6.11554261750751e-05,
                0.00012230983055406747,
                -8.153978973309418e-05,
            ],
        )
}

/// `Σ (q + k)^-s` over `k >= 0`, for `q > 0` and an integer `s >= 2`, by Euler and Maclaurin.
fn hurwitz_zeta(s: i32, q: f64) -> f64 {
    let mut sum = 0.0;
    let mut q = q;
    let far = 10.0 + f64::from(s);
    while q < far {
        let term = q.powi(-s);
        sum += term;
        // What follows is at most `term q / (s - 1)`.
        if term * (1.0 + q) < sum * 1e-18 {
            return sum;
        }
        q += 1.0;
    }
    let power = q.powi(-s);
    sum += power * (q / f64::from(s - 1) + 0.5);
    // B₂ⱼ / (2j)! s (s + 1) .. (s + 2j - 2) q^(1 - s - 2j)
    let bernoulli = [
        1.0 / 12.0,
        -1.0 / 720.0,
        1.0 / 30240.0,
        -1.0 / 1209600.0,
        1.0 / 47900160.0,
        -691.0 / 1307674368000.0,
        1.0 / 74724249600.0,
        -3617.0 / 10670622842880000.0,
        43867.0 / 5109094217170944000.0,
    ];
    let mut factor = power / q * f64::from(s);
    for (j, b) in bernoulli.into_iter().enumerate() {
        let term = b * factor;
        sum += term;
        if term.abs() < sum.abs() * 1e-18 {
            break;
        }
        let at = f64::from(s) + 2.0 * j as f64;
        factor *= (at + 1.0) * (at + 2.0) / (q * q);
    }
    sum
}

/// The derivative of order `n` of [`digamma`]. The order is rounded down; it is NaN for orders below 0 and above 100.
///
/// ```
/// let trigamma = pullback_table::special::polygamma(1.0, 1.0);
/// assert!((trigamma - std::f64::consts::PI.powi(2) / 6.0).abs() < 1e-15);
/// ```
pub fn polygamma(x: f64, n: f64) -> f64 {
    let n = n.floor();
    if n == 0.0 {
        return digamma(x);
    }
    if x.is_nan() || !(1.0..=100.0).contains(&n) {
        return f64::NAN;
    }
    let s = n as i32 + 1;
    let sign = if s % 2 == 0 { 1.0 } else { -1.0 };
    let factorial: f64 = (1..s).map(f64::from).product();
    if x == f64::INFINITY {
        return sign * 0.0;
    }
    if x > 0.0 {
        return sign * factorial * hurwitz_zeta(s, x);
    }
    if x == x.floor() {
        // A pole: all terms have one sign where the power is even.
        return if s % 2 == 0 { f64::INFINITY } else { f64::NAN };
    }
    // The sum over all integers depends on the fraction of x alone: it is made of two sums from there on.
    let (up, down) = (x - x.floor(), x.ceil() - x);
    sign * factorial * (hurwitz_zeta(s, up) + sign * (hurwitz_zeta(s, down) - hurwitz_zeta(s, 1.0 - x)))
}

/// The logarithm of the beta function, `lgamma(a) + lgamma(b) - lgamma(a + b)`, without the cancellation, for positive arguments.
///
/// ```
/// assert!((pullback_table::special::betaln(2.0, 3.0) + 12f64.ln()).abs() < 1e-15);
/// ```
pub fn betaln(a: f64, b: f64) -> f64 {
    let (a, b) = if a < b { (a, b) } else { (b, a) };
    let is_large = (10.0..f64::INFINITY).contains(&b);
    if a.is_nan() || a <= 0.0 || !is_large {
        return lgamma(a) + lgamma(b) - lgamma(a + b);
    }
    let h = a / b;
    let rest = stirling_rest(b) - stirling_rest(a + b);
    if a < 10.0 {
        return lgamma(a) + (a - a * b.ln() - (a + b - 0.5) * h.ln_1p() + rest);
    }
    let small = (a - 0.5) * (h / (1.0 + h)).ln() - b * h.ln_1p();
    HALF_LN_2_PI - 0.5 * b.ln() + small + (stirling_rest(a) + rest)
}
