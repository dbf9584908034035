//! The loops over one contiguous row.

use super::super::compute::Compute;
use super::super::lane::Told;
use super::super::math;
use super::super::vectorised::vectorised;
use std::mem::MaybeUninit;
use std::ops::{Add, Div, Mul, Sub};

/// Independent accumulators: enough to hide the latency of an addition.
pub(super) const LANES: usize = 32;
/// Elements whose terms are computed before they are added up: a loop that also keeps sums is not vectorised.
const BLOCK: usize = 512;

/// The arithmetic of rows.
pub(crate) trait RowMath:
    Compute<Wide = Self>
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
{
    const ONE: Self;
    const LOWEST: Self;
    fn exp<const FMA: bool>(self) -> Self;
    fn ln(self) -> Self;
    fn sqrt(self) -> Self;
    fn of(x: f64) -> Self;
    /// The logarithm as a formula, for loops over many.
    fn ln_formula<const FMA: bool>(self) -> Self;
    fn is_finite(self) -> bool;
}

macro_rules! row_math {
    ($($T:ident)*) => {$(
        impl RowMath for $T {
            const ONE: $T = 1.0;
            const LOWEST: $T = $T::NEG_INFINITY;
            #[inline(always)]
            fn exp<const FMA: bool>(self) -> $T {
                math::exp::<$T, Told<FMA>>(self)
            }
            fn ln(self) -> $T {
                $T::ln(self)
            }
            fn sqrt(self) -> $T {
                $T::sqrt(self)
            }
            #[inline(always)]
            fn of(x: f64) -> $T {
                x as $T
            }
            #[inline(always)]
            fn ln_formula<const FMA: bool>(self) -> $T {
                math::ln::<$T, Told<FMA>>(self)
            }
            #[inline(always)]
            fn is_finite(self) -> bool {
                $T::is_finite(self)
            }
        }
    )*};
}
row_math!(f32 f64);

/// The sum of at most a block, by lanes.
#[inline(always)]
fn sum_block<W: RowMath>(x: &[W]) -> W {
    if x.len() < LANES {
        return x.iter().fold(W::default(), |a, &b| a + b);
    }
    let mut lanes = [W::default(); LANES];
    let (chunks, tail) = x.as_chunks::<LANES>();
    for chunk in chunks {
        for l in 0..LANES {
            lanes[l] = lanes[l] + chunk[l];
        }
    }
    for (lane, &x) in lanes.iter_mut().zip(tail) {
        *lane = *lane + x;
    }
    fold_lanes(&mut lanes)
}

/// The sum of all lanes.
#[inline(always)]
pub(super) fn fold_lanes<W: RowMath>(lanes: &mut [W; LANES]) -> W {
    let mut width = LANES / 2;
    while width > 0 {
        for l in 0..width {
            lanes[l] = lanes[l] + lanes[l + width];
        }
        width /= 2;
    }
    lanes[0]
}

/// The sum of at most a block of terms. The memory for them is not cleared first: that would take longer than a short row.
#[inline(always)]
fn sum_terms<W: RowMath>(terms: impl Iterator<Item = W>) -> W {
    let (mut memory, mut n) = ([const { MaybeUninit::<W>::uninit() }; BLOCK], 0);
    for (place, term) in memory.iter_mut().zip(terms) {
        place.write(term);
        n += 1;
    }
    // SAFETY: the first `n` were written.
    sum_block(unsafe { memory[..n].assume_init_ref() })
}

#[inline(always)]
#[allow(clippy::eq_op)]
fn larger<W: RowMath>(a: W, b: W) -> W {
    if (b > a) | (b != b) { b } else { a }
}

/// The largest of a few elements.
#[inline(always)]
fn largest<W: RowMath>(x: &[W]) -> W {
    x.iter().fold(W::LOWEST, |a, &b| larger(a, b))
}

vectorised! {
    /// The largest element; NaN if there is one.
    pub(super) fn max<W: RowMath>(x: &[W]) -> W {
        if x.len() < LANES {
            return largest(x);
        }
        let mut lanes = [W::LOWEST; LANES];
        let (chunks, tail) = x.as_chunks::<LANES>();
        for chunk in chunks {
            for l in 0..LANES {
                lanes[l] = larger(lanes[l], chunk[l]);
            }
        }
        for (lane, &x) in lanes.iter_mut().zip(tail) {
            *lane = larger(*lane, x);
        }
        let mut width = LANES / 2;
        while width > 0 {
            for l in 0..width {
                lanes[l] = larger(lanes[l], lanes[l + width]);
            }
            width /= 2;
        }
        lanes[0]
    }
}

vectorised! {
    /// `out = exp(x - shift)`, and its sum.
    wide pub(super) fn exp_shifted<W: RowMath>(x: &[W], shift: W, out: &mut [W]) -> W {
        let mut total = W::default();
        for (x, out) in x.chunks(BLOCK).zip(out.chunks_mut(BLOCK)) {
            x.iter().zip(&mut *out).for_each(|(&x, o)| *o = (x - shift).exp::<FMA>());
            total = total + sum_block(out);
        }
        total
    }
}

vectorised! {
    /// `Σ exp(x - shift)`.
    wide pub(super) fn sum_exp_shifted<W: RowMath>(x: &[W], shift: W) -> W {
        let mut total = W::default();
        for x in x.chunks(BLOCK) {
            total = total + sum_terms(x.iter().map(|&x| (x - shift).exp::<FMA>()));
        }
        total
    }
}

/// What is subtracted before the exponential is taken, for a row with that maximum: infinities must not be subtracted from themselves.
#[inline(always)]
pub(super) fn shift<W: RowMath>(max: W) -> W {
    if max.is_finite() { max } else { W::default() }
}

vectorised! {
    /// `ln Σ exp(x)`.
    wide pub(super) fn logsumexp<W: RowMath>(x: &[W]) -> W {
        let shift = shift(max(x));
        shift + sum_exp_shifted(x, shift).ln_formula::<FMA>()
    }
}

vectorised! {
    /// [`logsumexp`] of rows of `n` elements, fewer than [`LANES`], that follow each other. The exponentials and the logarithms of
    /// many rows fill the vectors that one row cannot.
    wide pub(super) fn short_logsumexp<W: RowMath>(x: &[W], n: usize, out: &mut [W]) {
        let rows = BLOCK / n;
        let (mut terms, mut sums) = ([W::default(); BLOCK], [W::default(); BLOCK]);
        for (x, out) in x.chunks(rows * n).zip(out.chunks_mut(rows)) {
            let (terms, sums) = (&mut terms[..x.len()], &mut sums[..out.len()]);
            for ((row, terms), o) in x.chunks_exact(n).zip(terms.chunks_exact_mut(n)).zip(&mut *out) {
                *o = shift(largest(row));
                for (term, &x) in terms.iter_mut().zip(row) {
                    *term = x - *o;
                }
            }
            for term in &mut *terms {
                *term = term.exp::<FMA>();
            }
            for (sum, terms) in sums.iter_mut().zip(terms.chunks_exact(n)) {
                *sum = sum_block(terms);
            }
            for (o, sum) in out.iter_mut().zip(sums) {
                *o = *o + sum.ln_formula::<FMA>();
            }
        }
    }
}

vectorised! {
    /// `Σ x`.
    pub(super) fn sum<W: RowMath>(x: &[W]) -> W {
        x.chunks(BLOCK).fold(W::default(), |total, x| total + sum_block(x))
    }
}

vectorised! {
    /// `Σ x y`.
    pub(super) fn dot<W: RowMath>(x: &[W], y: &[W]) -> W {
        let mut total = W::default();
        for (x, y) in x.chunks(BLOCK).zip(y.chunks(BLOCK)) {
            total = total + sum_terms(x.iter().zip(y).map(|(&x, &y)| x * y));
        }
        total
    }
}

vectorised! {
    /// `Σ t (total - x)`, where no `t` of 0 counts.
    pub(super) fn weighted<W: RowMath>(x: &[W], t: &[W], total: W) -> W {
        let mut sum = W::default();
        for (x, t) in x.chunks(BLOCK).zip(t.chunks(BLOCK)) {
            let term = |(&x, &t): (&W, &W)| if t == W::default() { t } else { t * (total - x) };
            sum = sum + sum_terms(x.iter().zip(t).map(term));
        }
        sum
    }
}

vectorised! {
    /// `out = out a - t b`.
    pub(super) fn minus_scaled<W: RowMath>(out: &mut [W], a: W, t: &[W], b: W) {
        out.iter_mut().zip(t).for_each(|(o, &t)| *o = *o * a - t * b);
    }
}

vectorised! {
    /// `out = out a - b`.
    pub(super) fn scale_and_shift<W: RowMath>(out: &mut [W], a: W, b: W) {
        out.iter_mut().for_each(|o| *o = *o * a - b);
    }
}

vectorised! {
    /// `out *= factor`.
    pub(super) fn scale<W: RowMath>(out: &mut [W], factor: W) {
        out.iter_mut().for_each(|o| *o = *o * factor);
    }
}

vectorised! {
    /// `out = (x - a) - b`.
    pub(super) fn subtract<W: RowMath>(x: &[W], a: W, b: W, out: &mut [W]) {
        out.iter_mut().zip(x).for_each(|(o, &x)| *o = (x - a) - b);
    }
}

vectorised! {
    /// `out = y (g - centre)`.
    pub(super) fn times_centred<W: RowMath>(y: &[W], g: &[W], centre: W, out: &mut [W]) {
        out.iter_mut().zip(y).zip(g).for_each(|((o, &y), &g)| *o = y * (g - centre));
    }
}

vectorised! {
    /// `out = g - exp(y) total`.
    wide pub(super) fn minus_exp_times<W: RowMath>(y: &[W], g: &[W], total: W, out: &mut [W]) {
        out.iter_mut().zip(y).zip(g).for_each(|((o, &y), &g)| *o = g - y.exp::<FMA>() * total);
    }
}
