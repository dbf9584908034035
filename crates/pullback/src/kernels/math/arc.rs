//! Inverse trigonometric functions.

use super::{Float, Isa, fma, head, pick, poly};

/// `asin |x|` for `|x| ≤ 1/2`; beyond, `asin s` with `s = sqrt((1 - |x|) / 2)`, for which
/// `asin |x| = π/2 - 2 asin s`. The last result is which; the first two are to be added.
#[inline(always)]
fn half_asin<F: Float, I: Isa>(x: F) -> (F, F, bool) {
    let a = x.abs();
    let far = a > F::HALF;
    let z = pick(far, (F::ONE - a) * F::HALF, a * a);
    let root = z.sqrt();
    // What the rounded root lacks, to first order.
    let h = head(root);
    let lost = (z - h * h) / (root + h) - (root - h);
    let lost = pick(far & (z > F::ZERO), lost, F::ZERO);
    let s = pick(far, root, a);
    (s, fma::<F, I>(s * z, poly::<F, I>(z, F::ASIN), lost), far)
}

#[inline(always)]
pub(crate) fn asin<F: Float, I: Isa>(x: F) -> F {
    let [pi_2, pi_2_low, _] = F::FRAC_PI_2;
    let (s, rest, far) = half_asin::<F, I>(x);
    let y = pick(far, (pi_2 - (s + s)) + (pi_2_low - (rest + rest) + sum_error(pi_2, s + s)), s + rest);
    y.copysign(x)
}

/// What `a - b` lost in rounding, for `a ≥ b ≥ 0`.
#[inline(always)]
fn sum_error<F: Float>(a: F, b: F) -> F {
    (a - (a - b)) - b
}

#[inline(always)]
pub(crate) fn acos<F: Float, I: Isa>(x: F) -> F {
    let [pi_2, pi_2_low, _] = F::FRAC_PI_2;
    let (s, rest, far) = half_asin::<F, I>(x);
    let negative = x < F::ZERO;
    // π/2 ∓ asin |x| in the middle, 2 asin s at the right end, π - 2 asin s at the left.
    let (s, rest) = (pick(negative, -s, s), pick(negative, -rest, rest));
    let middle = (pi_2 - s) + (pi_2_low - rest + ((pi_2 - (pi_2 - s)) - s));
    let right = (s + rest) * F::TWO;
    let pi = pi_2 + pi_2;
    let t = s + s;
    let left = (pi + t) + ((pi_2_low + rest) * F::TWO + ((pi - (pi + t)) + t));
    let end = pick(negative, left, right);
    pick(far, end, middle)
}

/// `atan(y / x)` for `x, y ≥ 0`, not both zero or both infinite. The quotient is reduced to at most tan(π/8) by
/// `atan q = π/2 - atan(1/q)` and `atan q = π/4 + atan((q - 1) / (q + 1))`, with one division for all three cases.
#[inline(always)]
fn atan_quotient<F: Float, I: Isa>(y: F, x: F) -> (F, F) {
    let [pi_2, pi_2_low, _] = F::FRAC_PI_2;
    let steep = y > x * F::from_f64(std::f64::consts::SQRT_2 + 1.0);
    let middle = y > x * F::from_f64(std::f64::consts::SQRT_2 - 1.0);
    let top = pick(middle, y - x, y);
    let bottom = pick(middle, y + x, x);
    let top = pick(steep, -x, top);
    let bottom = pick(steep, y, bottom);
    let q = top / bottom;
    let z = q * q;
    let tail = q * z * poly::<F, I>(z, F::ATAN);
    let share = pick(middle, F::HALF, F::ZERO);
    let share = pick(steep, F::ONE, share);
    let base = share * pi_2;
    let sum = base + q;
    // The first term is the larger wherever it is not zero.
    (sum, ((base - sum) + q) + fma::<F, I>(share, pi_2_low, tail))
}

#[inline(always)]
pub(crate) fn atan<F: Float, I: Isa>(x: F) -> F {
    let (high, low) = atan_quotient::<F, I>(x.abs(), F::ONE);
    (high + low).copysign(x)
}

#[inline(always)]
pub(crate) fn atan2<F: Float, I: Isa>(y: F, x: F) -> F {
    let [pi_2, pi_2_low, _] = F::FRAC_PI_2;
    let (a, b) = (y.abs(), x.abs());
    // A sum of huge numbers would overflow; both infinite is the diagonal, both zero the axis.
    let down = pick((a > F::HUGE) | (b > F::HUGE), F::ONE / F::LIFT, F::ONE);
    let diagonal = (a == F::INFINITY) & (b == F::INFINITY);
    let origin = (a == F::ZERO) & (b == F::ZERO);
    let a = pick(diagonal, F::ONE, a * down);
    let b = pick(diagonal | origin, F::ONE, b * down);
    let (high, low) = atan_quotient::<F, I>(a, b);
    let pi = pi_2 + pi_2;
    let turned = pi - high;
    let behind = turned + (((pi - turned) - high) + (pi_2_low + pi_2_low - low));
    let left = x.to_bits() & F::SIGN_MASK == F::SIGN_MASK;
    (pick(left, behind, high + low)).copysign(y)
}
