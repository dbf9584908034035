//! The exponential function and what is made of it.
//!
//! `x = k ln 2 + r` with an integer `k`, so `exp x = 2^k exp r`, and a polynomial gives `exp r - 1`.

use super::{Float, Isa, fast_two_sum, fma, nearest, pick, poly, pow2};

/// `exp r - 1` for `|r| ≤ ln 2 / 2`.
#[inline(always)]
fn expm1_reduced<F: Float, I: Isa>(r: F) -> F {
    fma::<F, I>(r * r, poly::<F, I>(r, F::EXP), r)
}

/// `k` and `exp r - 1` for `x = k ln 2 + r`.
#[inline(always)]
fn reduce<F: Float, I: Isa>(x: F, low: F) -> (F, F) {
    let (k, _) = nearest(x * F::LOG2_E.0);
    let r = fma::<F, I>(-k, F::LN_2.1, fma::<F, I>(-k, F::LN_2.0, x)) + low;
    (k, expm1_reduced::<F, I>(r))
}

/// `x 2^k` in two steps, neither of which overflows before the result does or rounds a subnormal twice.
#[inline(always)]
fn scale<F: Float>(x: F, k: F) -> F {
    let (half, _) = nearest(k * F::HALF);
    x * pow2(half) * pow2(k - half)
}

/// `x` cut to the range; NaN stays.
#[inline(always)]
pub(super) fn clamp<F: Float>(x: F, (low, high): (F, F)) -> F {
    let x = pick(x > high, high, x);
    pick(x < low, low, x)
}

/// `exp(x + low) factor`, where `low` is small against `x` and 0 beyond the range. The factor is applied before
/// the scaling, so that it can bring a result back from overflow, and a subnormal one is rounded once.
#[inline(always)]
pub(super) fn exp_times<F: Float, I: Isa>(x: F, low: F, factor: F) -> F {
    let (k, p) = reduce::<F, I>(clamp(x, F::EXP_RANGE), low);
    scale(fma::<F, I>(p, factor, factor), k)
}

/// The same, with a factor in two parts.
#[inline(always)]
pub(super) fn exp_times_sum<F: Float, I: Isa>(x: F, low: F, (factor, rest): (F, F)) -> F {
    let (k, p) = reduce::<F, I>(clamp(x, F::EXP_RANGE), low);
    scale(fma::<F, I>(p, factor, fma::<F, I>(p, rest, rest)) + factor, k)
}

/// `exp x` where that is a normal number.
#[inline(always)]
pub(super) fn exp_normal<F: Float, I: Isa>(x: F) -> F {
    let (k, p) = reduce::<F, I>(x, F::ZERO);
    (p + F::ONE) * pow2(k)
}

/// What underflows is 0 without being computed: a masked score is far below the range, and products of tiny numbers take twice the time.
#[inline(always)]
pub(crate) fn exp<F: Float, I: Isa>(x: F) -> F {
    let (low, high) = F::EXP_RANGE;
    let underflows = x < low;
    let (k, p) = reduce::<F, I>(pick(underflows, F::ZERO, pick(x > high, high, x)), F::ZERO);
    pick(underflows, F::ZERO, scale(p + F::ONE, k))
}

#[inline(always)]
pub(crate) fn exp2<F: Float, I: Isa>(x: F) -> F {
    let x = clamp(x, F::EXP2_RANGE);
    let (k, _) = nearest(x);
    let t = x - k;
    let r = fma::<F, I>(t, F::LN_2.0, t * F::LN_2.1);
    scale(expm1_reduced::<F, I>(r) + F::ONE, k)
}

#[inline(always)]
pub(crate) fn expm1<F: Float, I: Isa>(x: F) -> F {
    let (k, p) = reduce::<F, I>(clamp(x, F::EXPM1_RANGE), F::ZERO);
    // Half of the power, since 2^k itself may overflow where the result does not.
    let half = pow2(k - F::ONE);
    let y = fma::<F, I>(half, p, half - F::HALF) * F::TWO;
    pick(x.abs() < F::TINY, x, y)
}

#[inline(always)]
pub(crate) fn sigmoid<F: Float, I: Isa>(x: F) -> F {
    // exp of the negative side only, which cannot overflow, with what its rounding loses.
    let (k, p) = reduce::<F, I>(clamp(-x.abs(), F::EXP_RANGE), F::ZERO);
    let (head, rest) = fast_two_sum(F::ONE, p);
    let (e, e_rest) = (scale(head, k), scale(rest, k));
    let (below, below_rest) = fast_two_sum(F::ONE, e);
    let negative = x < F::ZERO;
    let (top, top_rest) = (pick(negative, e, F::ONE), pick(negative, e_rest, F::ZERO));
    let y = top / below;
    // The rests move the quotient by less than two units of the last place: a tenth of that is enough, and so is this line for 1 / below.
    let inverse = fma::<F, I>(below, -F::HALF, F::from_f64(1.457));
    fma::<F, I>(top_rest - y * (below_rest + e_rest), inverse, y)
}

#[inline(always)]
pub(crate) fn sinh<F: Float, I: Isa>(x: F) -> F {
    let a = x.abs();
    let half = exp_times::<F, I>(a, F::ZERO, F::HALF);
    let large = half - F::HALF * F::HALF / half;
    let z = a * a;
    let small = fma::<F, I>(a * z, poly::<F, I>(z, F::SINH), a);
    (pick(a < F::ONE, small, large)).copysign(x)
}

#[inline(always)]
pub(crate) fn cosh<F: Float, I: Isa>(x: F) -> F {
    let half = exp_times::<F, I>(x.abs(), F::ZERO, F::HALF);
    half + F::HALF * F::HALF / half
}

/// A polynomial for small arguments; beyond, `1 - 2 / (exp(2|x|) + 1)`, where the difference is the larger term.
#[inline(always)]
pub(crate) fn tanh<F: Float, I: Isa>(x: F) -> F {
    let a = x.abs();
    let z = a * a;
    let small = fma::<F, I>(a * z, poly::<F, I>(z, F::TANH), a);
    // tanh is 1 long before exp leaves the normal range.
    let e = exp_normal::<F, I>(clamp(a + a, (F::ZERO, F::from_f64(60.0))));
    let large = F::ONE - F::TWO / (e + F::ONE);
    (pick(a < F::from_f64(0.625), small, large)).copysign(x)
}
