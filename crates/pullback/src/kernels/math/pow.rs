//! Powers, cube root and hypotenuse.

use super::{Float, Isa, fma, head, is_nan, nearest, pick};

/// `x^y` with the special cases of IEEE 754.
#[inline(always)]
pub(crate) fn pow<F: Float, I: Isa>(x: F, y: F) -> F {
    let a = x.abs();
    let rising = y > F::ZERO;
    let p = a.pow_positive::<I>(y);
    let p = pick(a == F::ZERO, pick(rising, F::ZERO, F::INFINITY), p);
    let p = pick(a == F::INFINITY, pick(rising, F::INFINITY, F::ZERO), p);
    let whole = y.floor() == y;
    let half = y * F::HALF;
    let odd = whole & (half.floor() != half);
    let negative = x.to_bits() & F::SIGN_MASK == F::SIGN_MASK;
    let p = pick(negative & odd, -p, p);
    let p = pick((x < F::ZERO) & !whole & (a != F::INFINITY), F::NAN, p);
    let p = pick(is_nan(x) | is_nan(y), F::NAN, p);
    pick((y == F::ZERO) | (x == F::ONE), F::ONE, p)
}

/// Two steps of third order towards `x^(-1/3)` from a guess made of the bits, then one towards the cube root from
/// a short approximation, whose square is exact.
#[inline(always)]
pub(crate) fn cbrt<F: Float, I: Isa>(x: F) -> F {
    let a = x.abs();
    let subnormal = a < F::MIN_POSITIVE;
    let lifted = pick(subnormal, a * F::LIFT, a);
    let third = F::from_f64(1.0 / 3.0);
    // The bits of a float are near its logarithm; the integer division happens in the float itself.
    let log = F::from_bits((lifted.to_bits() >> F::CBRT_SHIFT) | F::UNIT_ULP.to_bits()) - F::UNIT_ULP;
    let (_, bits) = nearest(F::CBRT_GUESS - log * third);
    let mut r = F::from_bits(bits << F::CBRT_SHIFT);
    for _ in 0..2 {
        let e = F::ONE - lifted * r * r * r;
        r = r + r * e * fma::<F, I>(e, F::from_f64(2.0 / 9.0), third);
    }
    let t = head(lifted * r * r);
    let q = lifted / (t * t);
    let y = t + t * ((q - t) / (t + t + q));
    let y = pick(subnormal, y * F::LIFT_CUBE_ROOT, y);
    // Zero, infinity and NaN are their own cube roots.
    let regular = (a > F::ZERO) & (a < F::INFINITY);
    (pick(regular, y, a)).copysign(x)
}

#[inline(always)]
pub(crate) fn hypot<F: Float, I: Isa>(a: F, b: F) -> F {
    let infinite = (a.abs() == F::INFINITY) | (b.abs() == F::INFINITY);
    pick(infinite, F::INFINITY, a.hypot_finite::<I>(b))
}
