//! Sine, cosine and tangent.
//!
//! `x = k π/2 + r`, `|r| ≤ π/4`, by Cody and Waite's reduction with π/2 in three parts, which keeps `r` to full
//! relative accuracy up to [`Float::TRIG_LIMIT`], even next to a multiple of π/2.

use super::{Bits, Float, Isa, fast_two_sum, fma, nearest, pick, poly, two_prod, two_sum};

/// `sin r`, `cos r` and the bits of `k`.
#[inline(always)]
fn reduced<F: Float, I: Isa>(x: F) -> (F, F, F::Bits) {
    let ((sin, _), (cos, _), bits) = reduced_in_two::<F, I>(x);
    (sin, cos, bits)
}

/// The same, with what the last additions lost.
#[inline(always)]
fn reduced_in_two<F: Float, I: Isa>(x: F) -> ((F, F), (F, F), F::Bits) {
    let [p0, p1, p2] = F::FRAC_PI_2;
    let (k, bits) = nearest(x * F::from_f64(std::f64::consts::FRAC_2_PI));
    // Exact: the difference is below 1 and a multiple of the last place of π/2.
    let first = if I::FMA {
        (-k).mul_add(p0, x)
    } else {
        let (product, error) = two_prod::<F, I>(k, p0);
        (x - product) - error
    };
    let (product, error) = two_prod::<F, I>(k, p1);
    let (r, rest) = two_sum(first, -product);
    let low = rest - fma::<F, I>(k, p2, error);
    let z = r * r;
    let half = z * F::HALF;
    let sin = fast_two_sum(r, fma::<F, I>(r * z, poly::<F, I>(z, F::SIN), fma::<F, I>(-half, low, low)));
    let top = F::ONE - half;
    let rest = ((F::ONE - top) - half) + fma::<F, I>(z * z, poly::<F, I>(z, F::COS), -(r * low));
    (sin, fast_two_sum(top, rest), bits)
}

/// `x`, with its sign flipped if the second lowest of the bits is set.
#[inline(always)]
fn flip<F: Float>(x: F, bits: F::Bits) -> F {
    F::from_bits(x.to_bits() ^ ((bits << (F::WIDTH - 2)) & F::SIGN_MASK))
}

/// `y`, unless `x` is too large for it: then NaN, or in a careful lane the standard library's answer.
#[inline(always)]
fn within_limit<F: Float, I: Isa>(x: F, y: F, std: fn(F) -> F) -> F {
    let large = x.abs() > F::TRIG_LIMIT;
    if !I::CAREFUL {
        return pick(large, F::NAN, y);
    }
    if large { std(x) } else { y }
}

#[inline(always)]
fn is_odd<F: Float>(bits: F::Bits) -> bool {
    bits & F::ONE_BIT == F::ONE_BIT
}

#[inline(always)]
pub(crate) fn sin<F: Float, I: Isa>(x: F) -> F {
    let (sin, cos, bits) = reduced::<F, I>(x);
    let y = flip(pick(is_odd::<F>(bits), cos, sin), bits);
    // Keeps the sign of zero.
    let y = pick(x.abs() < F::TINY, x, y);
    within_limit::<F, I>(x, y, F::std_sin)
}

#[inline(always)]
pub(crate) fn cos<F: Float, I: Isa>(x: F) -> F {
    let (sin, cos, bits) = reduced::<F, I>(x);
    let y = flip(pick(is_odd::<F>(bits), sin, cos), bits.wrapping_add(F::ONE_BIT));
    within_limit::<F, I>(x, y, F::std_cos)
}

/// Both at once, for the price of one: the same bits as [`sin`] and [`cos`].
#[inline(always)]
pub(crate) fn sincos<F: Float, I: Isa>(x: F) -> (F, F) {
    let (sin, cos, bits) = reduced::<F, I>(x);
    let odd = is_odd::<F>(bits);
    let (s, c) = (pick(odd, cos, sin), pick(odd, sin, cos));
    let s = pick(x.abs() < F::TINY, x, flip(s, bits));
    let c = flip(c, bits.wrapping_add(F::ONE_BIT));
    (within_limit::<F, I>(x, s, F::std_sin), within_limit::<F, I>(x, c, F::std_cos))
}

/// The quotient of sine and cosine, whose roundings would add up to more than two units of the last place: it is moved by what they lost.
#[inline(always)]
pub(crate) fn tan<F: Float, I: Isa>(x: F) -> F {
    let ((sin, sin_rest), (cos, cos_rest), bits) = reduced_in_two::<F, I>(x);
    let odd = is_odd::<F>(bits);
    let (top, top_rest) = (pick(odd, -cos, sin), pick(odd, -cos_rest, sin_rest));
    let (below, below_rest) = (pick(odd, sin, cos), pick(odd, sin_rest, cos_rest));
    let inverse = F::ONE / below;
    let y = top * inverse;
    let lost = if I::FMA {
        (-y).mul_add(below, top)
    } else {
        let (product, error) = two_prod::<F, I>(y, below);
        (top - product) - error
    };
    let y = fma::<F, I>(lost + fma::<F, I>(-y, below_rest, top_rest), inverse, y);
    let y = pick(x.abs() < F::TINY, x, y);
    within_limit::<F, I>(x, y, F::std_tan)
}
