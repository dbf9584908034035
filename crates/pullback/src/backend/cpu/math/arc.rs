//! Inverse trigonometric functions.

use super::{Float, Isa, fma, head, poly};

/// `asin |x|` for `|x| ≤ 1/2`; beyond, `asin s` with `s = sqrt((1 - |x|) / 2)`, for which
/// `asin |x| = π/2 - 2 asin s`. The last result is which; the first two are to be added.
#[inline(always)]
fn half_asin<F: Float, I: Isa>(x: F) -> (F, F, bool) {
    let a = x.abs();
    let far = a > F::HALF;
    let z = if far { (F::ONE - a) * F::HALF } else { a * a };
    let root = z.sqrt();
    // What the rounded root lacks, to first order.
    let h = head(root);
    let lost = (z - h * h) / (root + h) - (root - h);
    let lost = if far & (z > F::ZERO) { lost } else { F::ZERO };
    let s = if far { root } else { a };
    (s, fma::<F, I>(s * z, poly::<F, I>(z, F::ASIN), lost), far)
}

#[inline(always)]
pub(crate) fn asin<F: Float, I: Isa>(x: F) -> F {
    let [pi_2, pi_2_low, _] = F::FRAC_PI_2;
    let (s, rest, far) = half_asin::<F, I>(x);
    let y =
        if far { (pi_2 - (s + s)) + (pi_2_low - (rest + rest) + sum_error(pi_2, s + s)) } else { s + rest };
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
    let (s, rest) = (if negative { -s } else { s }, if negative { -rest } else { rest });
    let middle = (pi_2 - s) + (pi_2_low - rest + ((pi_2 - (pi_2 - s)) - s));
    let right = (s + rest) * F::TWO;
    let pi = pi_2 + pi_2;
    let t = s + s;
    let left = (pi + t) + ((pi_2_low + rest) * F::TWO + ((pi - (pi + t)) + t));
    let end = if negative { left } else { right };
    if far { end } else { middle }
}

/// `atan(y / x)` for `x, y ≥ 0`, not both zero or both infinite. The quotient is reduced to at most tan(π/8) by
/// `atan q = π/2 - atan(1/q)` and `atan q = π/4 + atan((q - 1) / (q + 1))`, with one division for all three cases.
#[inline(always)]
fn atan_quotient<F: Float, I: Isa>(y: F, x: F) -> (F, F) {
    let [pi_2, pi_2_low, _] = F::FRAC_PI_2;
    let steep = y > x * F::from_f64(std::f64::consts::SQRT_2 + 1.0);
    let middle = y > x * F::from_f64(std::f64::consts::SQRT_2 - 1.0);
    let top = if middle { y - x } else { y };
    let bottom = if middle { y + x } else { x };
    let top = if steep { -x } else { top };
    let bottom = if steep { y } else { bottom };
    let q = top / bottom;
    let z = q * q;
    let tail = q * z * poly::<F, I>(z, F::ATAN);
    let share = if middle { F::HALF } else { F::ZERO };
    let share = if steep { F::ONE } else { share };
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
    let down = if (a > F::HUGE) | (b > F::HUGE) { F::ONE / F::LIFT } else { F::ONE };
    let diagonal = (a == F::INFINITY) & (b == F::INFINITY);
    let origin = (a == F::ZERO) & (b == F::ZERO);
    let a = if diagonal { F::ONE } else { a * down };
    let b = if diagonal | origin { F::ONE } else { b * down };
    let (high, low) = atan_quotient::<F, I>(a, b);
    let pi = pi_2 + pi_2;
    let turned = pi - high;
    let behind = turned + (((pi - turned) - high) + (pi_2_low + pi_2_low - low));
    let left = x.to_bits() & F::SIGN_MASK == F::SIGN_MASK;
    (if left { behind } else { high + low }).copysign(y)
}
