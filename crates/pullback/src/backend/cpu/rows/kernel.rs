//! The loops over one contiguous row.

use super::super::compute::Compute;
use super::super::vectorised::vectorised;
use super::exp::{exp_f32, exp_f64};
use std::ops::{Add, Div, Mul, Sub};

/// Independent accumulators: enough to hide the latency of an addition.
const LANES: usize = 32;
/// Terms after which a partial sum is put away, so that rounding errors do not pile up.
const BLOCK: usize = 4096;

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
    fn is_finite(self) -> bool;
}

macro_rules! row_math {
    ($($T:ident $exp:ident)*) => {$(
        impl RowMath for $T {
            const ONE: $T = 1.0;
            const LOWEST: $T = $T::NEG_INFINITY;
            #[inline(always)]
            fn exp<const FMA: bool>(self) -> $T {
                $exp::<FMA>(self)
            }
            fn ln(self) -> $T {
                $T::ln(self)
            }
            fn is_finite(self) -> bool {
                $T::is_finite(self)
            }
        }
    )*};
}
row_math!(f32 exp_f32 f64 exp_f64);

/// Adds up lanes pairwise.
#[inline(always)]
fn fold<W: RowMath>(mut lanes: [W; LANES]) -> W {
    let mut width = LANES / 2;
    while width > 0 {
        for l in 0..width {
            lanes[l] = lanes[l] + lanes[l + width];
        }
        width /= 2;
    }
    lanes[0]
}

/// `Σ term(i)`, by lanes and blocks. The terms of a vector are taken together, so a term may also store.
#[inline(always)]
fn sum_of<W: RowMath>(n: usize, mut term: impl FnMut(usize) -> W) -> W {
    let mut total = W::default();
    let mut start = 0;
    while start < n {
        let end = (start + BLOCK).min(n);
        let mut lanes = [W::default(); LANES];
        let mut i = start;
        while i + LANES <= end {
            for (l, lane) in lanes.iter_mut().enumerate() {
                *lane = *lane + term(i + l);
            }
            i += LANES;
        }
        for (l, lane) in lanes.iter_mut().enumerate().take(end - i) {
            *lane = *lane + term(i + l);
        }
        total = total + fold(lanes);
        start = end;
    }
    total
}

#[inline(always)]
#[allow(clippy::eq_op)]
fn larger<W: RowMath>(a: W, b: W) -> W {
    if (b > a) | (b != b) { b } else { a }
}

vectorised! {
    /// The largest element; NaN if there is one.
    pub(super) fn max<W: RowMath>(x: &[W]) -> W {
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
        lanes.into_iter().fold(W::LOWEST, larger)
    }
}

vectorised! {
    /// `out = exp(x - shift)`, and its sum.
    pub(super) fn exp_shifted<W: RowMath>(x: &[W], shift: W, out: &mut [W]) -> W {
        let out = &mut out[..x.len()];
        sum_of(x.len(), |i| {
            let y = (x[i] - shift).exp::<FMA>();
            out[i] = y;
            y
        })
    }
}

vectorised! {
    /// `Σ exp(x - shift)`.
    pub(super) fn sum_exp_shifted<W: RowMath>(x: &[W], shift: W) -> W {
        sum_of(x.len(), |i| (x[i] - shift).exp::<FMA>())
    }
}

vectorised! {
    /// `Σ x`.
    pub(super) fn sum<W: RowMath>(x: &[W]) -> W {
        sum_of(x.len(), |i| x[i])
    }
}

vectorised! {
    /// `Σ x y`.
    pub(super) fn dot<W: RowMath>(x: &[W], y: &[W]) -> W {
        let y = &y[..x.len()];
        sum_of(x.len(), |i| x[i] * y[i])
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
    pub(super) fn minus_exp_times<W: RowMath>(y: &[W], g: &[W], total: W, out: &mut [W]) {
        out.iter_mut().zip(y).zip(g).for_each(|((o, &y), &g)| *o = g - y.exp::<FMA>() * total);
    }
}
