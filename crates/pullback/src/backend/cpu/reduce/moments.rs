//! Mean and centred sum of squares, in two passes.

use super::super::compute::Compute;
use super::super::movement::Target;
use super::super::parallel;
use super::super::strided::Axes;
use super::super::vectorised::vectorised;
use super::super::view::View;
use super::terms::{Pairwise, Terms};
use super::{GRAIN, LANES, Reducer, Sum, block, partition};
use std::ops::{Add, Div, Mul, Sub};

/// A type that means are computed in.
pub(crate) trait Mean:
    Compute<Wide = Self> + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self>
{
    fn count(n: usize) -> Self;
}
impl Mean for f32 {
    fn count(n: usize) -> f32 {
        n as f32
    }
}
impl Mean for f64 {
    fn count(n: usize) -> f64 {
        n as f64
    }
}

/// The mean of `x` over `axes` and `Σ (x - mean)²`, for each of the other axes' indices.
///
/// The second pass sees the mean of the first, so nothing cancels. No elements give NaN and 0.
pub(crate) fn moments<T>(x: View<T>, axes: &[usize], mean: &mut [T::Wide], squares: &mut [T::Wide])
where
    T: Compute,
    T::Wide: Mean,
    Sum: Reducer<T, Acc = T::Wide>,
{
    let (kept, reduced) = partition(x, axes);
    let (kept, reduced) = (Axes::new(kept), Axes::new(reduced));
    assert!(mean.len() == kept.len() && squares.len() == kept.len(), "moments: one of each for each output");
    let terms = Terms::new(x.data, &reduced);
    let count = T::Wide::count(terms.len());
    let (means, sums) = (Target::new(mean), Target::new(squares));
    parallel::split(kept.len(), GRAIN.div_ceil(terms.len().max(1)), 1, |range| {
        let mut scratch = Vec::new();
        kept.walk(range, |o, [at]| {
            let mut pass = |f: &dyn Fn(&[T]) -> T::Wide| {
                let mut total = Pairwise::new();
                for number in 0..terms.blocks() {
                    total.push(f(terms.block(x.offset as isize + at, number, &mut scratch)), |a, b| a + b);
                }
                total.total(|a, b| a + b).unwrap_or_default()
            };
            let mean = pass(&block::<T, Sum>) / count;
            let squares = pass(&|terms| centred(terms, mean));
            // SAFETY: each output belongs to one thread.
            unsafe {
                *means.at(o as isize) = mean;
                *sums.at(o as isize) = squares;
            }
        });
    });
}

vectorised! {
    /// `Σ (x - mean)²`.
    fn centred<T: Compute<Wide: Mean>>(x: &[T], mean: T::Wide) -> T::Wide {
        let mut sums = [T::Wide::default(); LANES];
        let (chunks, tail) = x.as_chunks::<LANES>();
        let square = |x: T| {
            let d = x.widen() - mean;
            d * d
        };
        for chunk in chunks {
            for l in 0..LANES {
                sums[l] = sums[l] + square(chunk[l]);
            }
        }
        for (s, &x) in sums.iter_mut().zip(tail) {
            *s = *s + square(x);
        }
        sums.into_iter().reduce(|a, b| a + b).unwrap_or_default()
    }
}
