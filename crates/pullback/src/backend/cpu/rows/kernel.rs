//! The loops over one contiguous row.

use super::super::compute::Compute;
use super::super::vectorised::vectorised;
use super::exp::{exp_f32, exp_f64};
use std::ops::{Add, Div, Mul, Sub};

/// Independent accumulators: enough to hide the latency of an addition.
const LANES: usize = 32;
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
    let mut width = LANES / 2;
    while width > 0 {
        for l in 0..width {
            lanes[l] = lanes[l] + lanes[l + width];
        }
        width /= 2;
    }
    lanes[0]
}

#[inline(always)]
#[allow(clippy::eq_op)]
fn larger<W: RowMath>(a: W, b: W) -> W {
    if (b > a) | (b != b) { b } else { a }
}

vectorised! {
    /// The largest element; NaN if there is one.
    pub(super) fn max<W: RowMath>(x: &[W]) -> W {
        if x.len() < LANES {
            return x.iter().fold(W::LOWEST, |a, &b| larger(a, b));
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
    pub(super) fn exp_shifted<W: RowMath>(x: &[W], shift: W, out: &mut [W]) -> W {
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
    pub(super) fn sum_exp_shifted<W: RowMath>(x: &[W], shift: W) -> W {
        let (mut total, mut terms) = (W::default(), [W::default(); BLOCK]);
        for x in x.chunks(BLOCK) {
            let terms = &mut terms[..x.len()];
            x.iter().zip(&mut *terms).for_each(|(&x, o)| *o = (x - shift).exp::<FMA>());
            total = total + sum_block(terms);
        }
        total
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
        let (mut total, mut terms) = (W::default(), [W::default(); BLOCK]);
        for (x, y) in x.chunks(BLOCK).zip(y.chunks(BLOCK)) {
            let terms = &mut terms[..x.len()];
            x.iter().zip(y).zip(&mut *terms).for_each(|((&x, &y), o)| *o = x * y);
            total = total + sum_block(terms);
        }
        total
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
