//! Logarithms, and the inverse hyperbolic functions made of them.
//!
//! `x = 2^k m` with `√½ ≤ m < √2`; with `f = m - 1` and `s = f / (2 + f)` is `ln m = 2 atanh s`, which is summed as
//! `f - (f²/2 - s (f²/2 + R(s²)))`, so that the largest term is exact.

use super::{Bits, Float, Isa, fast_two_sum, fma, head, pick, poly, two_prod};

/// `k` and `f = m - 1` for a positive finite `x`, subnormal or not.
#[inline(always)]
pub(super) fn split<F: Float>(x: F) -> (F, F) {
    let subnormal = x < F::MIN_POSITIVE;
    let lifted = pick(subnormal, x * F::LIFT, x);
    let lift = pick(subnormal, F::LIFT_EXPONENT, F::ZERO);
    let (one, low) = (F::ONE.to_bits(), F::SQRT_HALF.to_bits());
    let bits = lifted.to_bits().wrapping_add(one.wrapping_sub(low));
    // A small integer becomes a float by standing in the fraction of 2^FRACTION.
    let exponent =
        F::from_bits((bits >> F::FRACTION) | F::UNIT_ULP.to_bits()) - (F::UNIT_ULP + F::BIAS_VALUE);
    (exponent - lift, F::from_bits((bits & F::FRACTION_MASK).wrapping_add(low)) - F::ONE)
}

/// `f²/2` and `s (f²/2 + R)`: the logarithm of `1 + f` is `f` less the first plus the second.
#[inline(always)]
fn series<F: Float, I: Isa>(f: F) -> (F, F) {
    let s = f / (f + F::TWO);
    let z = s * s;
    let half_square = f * f * F::HALF;
    (half_square, s * fma::<F, I>(z, poly::<F, I>(z, F::LOG), half_square))
}

/// The logarithm where it exists, the limits at 0 and infinity, NaN below 0.
#[inline(always)]
fn with_limits<F: Float>(x: F, log: F) -> F {
    let log = pick(x < F::INFINITY, log, x);
    let log = pick(x > F::ZERO, log, F::NAN);
    pick(x == F::ZERO, -F::INFINITY, log)
}

#[inline(always)]
pub(crate) fn ln<F: Float, I: Isa>(x: F) -> F {
    let (k, f) = split(x);
    let (half_square, tail) = series::<F, I>(f);
    let low = fma::<F, I>(k, F::LN_2.1, tail);
    with_limits(x, fma::<F, I>(k, F::LN_2.0, f - (half_square - low)))
}

/// `k unit + ln(1 + f) factor`, where both constants come in two parts.
#[inline(always)]
fn in_base<F: Float, I: Isa>(x: F, unit: (F, F), factor: (F, F)) -> F {
    let (k, f) = split(x);
    let (half_square, tail) = series::<F, I>(f);
    let high = head(f - half_square);
    let low = (f - high) - half_square + tail;
    let product = high * factor.0;
    let low = k * unit.1 + ((low + high) * factor.1 + low * factor.0);
    let whole = k * unit.0;
    let sum = whole + product;
    with_limits(x, (low + ((whole - sum) + product)) + sum)
}

#[inline(always)]
pub(crate) fn log2<F: Float, I: Isa>(x: F) -> F {
    in_base::<F, I>(x, (F::ONE, F::ZERO), F::LOG2_E)
}

#[inline(always)]
pub(crate) fn log10<F: Float, I: Isa>(x: F) -> F {
    in_base::<F, I>(x, F::LOG10_2, F::LOG10_E)
}

#[inline(always)]
pub(crate) fn log1p<F: Float, I: Isa>(x: F) -> F {
    log1p_of_sum::<F, I>(x, F::ZERO)
}

/// `ln(1 + x + rest)`, with a rest that is lost in `x`.
#[inline(always)]
fn log1p_of_sum<F: Float, I: Isa>(x: F, rest: F) -> F {
    let u = x + F::ONE;
    let (k, f) = split(u);
    // What the sum 1 + x lost, to first order. For k = 0 nothing is lost, as f is x itself.
    let lost = pick(x < F::ONE, x - (u - F::ONE), F::ONE - (u - x));
    let lost = (pick(k == F::ZERO, F::ZERO, lost) + rest) / u;
    let f = pick(k == F::ZERO, x, f);
    let (half_square, tail) = series::<F, I>(f);
    let low = fma::<F, I>(k, F::LN_2.1, tail + lost);
    let y = with_limits(u, fma::<F, I>(k, F::LN_2.0, f - (half_square - low)));
    pick(x.abs() < F::TINY, x, y)
}

#[inline(always)]
pub(crate) fn asinh<F: Float, I: Isa>(x: F) -> F {
    let a = x.abs();
    let square = a * a;
    let huge = a > F::HUGE;
    let sum = a + square / (F::ONE + (square + F::ONE).sqrt());
    let y = log1p::<F, I>(pick(huge, a, sum)) + pick(huge, F::LN_2.0 + F::LN_2.1, F::ZERO);
    y.copysign(x)
}

#[inline(always)]
pub(crate) fn acosh<F: Float, I: Isa>(x: F) -> F {
    let t = x - F::ONE;
    let huge = x > F::HUGE;
    let (sum, rest) = fast_two_sum(fma::<F, I>(t, t, t + t).sqrt(), t);
    let y = log1p_of_sum::<F, I>(pick(huge, x, sum), pick(huge, F::ZERO, rest))
        + pick(huge, F::LN_2.0 + F::LN_2.1, F::ZERO);
    pick(x < F::ONE, F::NAN, y)
}

/// `ln(1 + q) / 2` with `q = 2a / (1 - a)`, and what the roundings of `q` lost: `1 / (1 - a)` is `1 + q / 2`.
#[inline(always)]
pub(crate) fn atanh<F: Float, I: Isa>(x: F) -> F {
    let a = x.abs();
    let (below, below_rest) = fast_two_sum(F::ONE, -a);
    let q = (a + a) / below;
    let (product, error) = two_prod::<F, I>(q, below);
    let rest = (((a + a) - product) - error - q * below_rest) * fma::<F, I>(q, F::HALF, F::ONE);
    let y = log1p_of_sum::<F, I>(q, rest) * F::HALF;
    y.copysign(x)
}
