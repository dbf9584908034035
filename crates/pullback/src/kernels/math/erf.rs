//! The error function and its complement.

use super::exp::{clamp, exp_normal, exp_times_sum};
use super::{Float, Isa, fast_two_sum, fma, pick, poly, two_prod, two_sum};

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
    // The last addition of the polynomial and the division keep what their roundings lose.
    let t = (a - four) / (a + four);
    let (top, top_rest) = fast_two_sum(F::ERFCX[0], t * poly::<F, I>(t, &F::ERFCX[1..]));
    let (below, below_rest) = two_sum(a + a, F::ONE);
    let g = top / below;
    let (product, product_rest) = two_prod::<F, I>(g, below);
    let g_rest = (((top - product) - product_rest) + (top_rest - g * below_rest)) / below;
    // The rounding error of x² would be multiplied by x² in the exponential.
    let (square, error) = two_prod::<F, I>(a, a);
    let tail = exp_times_sum::<F, I>(-square, -error, (g, g_rest));
    let outer = pick(x < F::ZERO, F::TWO - tail, tail);
    // `erf x = x + x q`, of which x is taken from 1 without loss, and x q is small.
    let (rest_of_one, lost) = fast_two_sum(F::ONE, -x);
    let inner = rest_of_one - fma::<F, I>(x, poly::<F, I>(a * a, F::ERF), -lost);
    // From there to 1 the tail is the better one.
    pick((x > -F::ONE) & (x < F::from_f64(0.6)), inner, outer)
}
