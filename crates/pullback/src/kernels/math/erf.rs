//! The error function and its complement.

use super::exp::{clamp, exp_normal, exp_times};
use super::{Float, Isa, fma, pick, poly, two_prod};

/// `erf a` for `0 ≤ a ≤ 1`.
#[inline(always)]
fn erf_small<F: Float, I: Isa>(a: F) -> F {
    fma::<F, I>(a, poly::<F, I>(a * a, F::ERF), a)
}

#[inline(always)]
pub(crate) fn erf<F: Float, I: Isa>(x: F) -> F {
    let a = clamp(x.abs(), (F::ZERO, F::ERF_ONE));
    // Beyond 1, `1 - exp(-q)` with a polynomial q: its error counts by erfc alone, which is small there.
    let large = F::ONE - exp_normal::<F, I>(-poly::<F, I>(a, F::ERF_TAIL));
    (pick(a < F::ONE, erf_small::<F, I>(a), large)).copysign(x)
}

/// `1 - erf x` in the middle; beyond, `exp(-x²) g / (1 + 2x)` with a slowly varying `g`, mirrored for negative `x`.
#[inline(always)]
pub(crate) fn erfc<F: Float, I: Isa>(x: F) -> F {
    let a = clamp(x.abs(), (F::ZERO, F::ERFC_ZERO));
    let four = F::from_f64(4.0);
    let g = poly::<F, I>((a - four) / (a + four), F::ERFCX) / (a + a + F::ONE);
    // The rounding error of x² would be multiplied by x² in the exponential.
    let (square, error) = two_prod::<F, I>(a, a);
    let tail = exp_times::<F, I>(-square, -error, g);
    let outer = pick(x < F::ZERO, F::TWO - tail, tail);
    let inner = F::ONE - erf_small::<F, I>(a).copysign(x);
    // Up to here erfc is above 1/2, and the difference from 1 loses nothing.
    let middle = (x > -F::ONE) & (x < F::from_f64(0.47));
    pick(middle, inner, outer)
}
