//! Scans along an axis: what has come together of the elements so far.
//!
//! Each lane is folded in the order of its elements. Sums, products and recurrences are carried in f64, and rounded once where they are
//! written. A long sum is cut into blocks by its length alone, so that the number of threads does not change the bits.

mod blocked;
mod steps;

pub(crate) use steps::{Latest, LogSumExp, Product, Step, Sum};

use super::compute::Compute;
use super::movement::Target;
use super::parallel;
use super::strided::{Axes, row_major};
use super::view::View;
use smallvec::SmallVec;

/// Elements a thread should have before another one is worth waking.
const GRAIN: usize = 1 << 14;
/// Lanes that are folded in turn: enough to hide the latency of an addition.
const TILE: usize = 16;
/// The same, of lanes that stand side by side: rows of memory long enough to be fetched ahead.
const WIDE: usize = 256;

/// Calls `f` with the offsets of some lanes along `axis` in `N` arrays of a shape, in parallel; together the calls cover all lanes.
fn for_lanes<const N: usize>(
    shape: &[usize],
    axis: usize,
    strides: [&[isize]; N],
    f: &(dyn Fn(&[[isize; N]]) + Sync),
) {
    let across = (0..shape.len()).filter(|&k| k != axis);
    let lanes = Axes::new(across.map(|k| (shape[k], strides.map(|s| s[k]))));
    let adjacent = lanes.0.last().is_some_and(|a| a.strides == [1; N] && a.len > TILE);
    let width = if adjacent { WIDE } else { TILE };
    parallel::split(lanes.len(), GRAIN.div_ceil(shape[axis].max(1)), TILE, |range| {
        let mut tile: SmallVec<[[isize; N]; TILE]> = SmallVec::new();
        let last = range.end.saturating_sub(1);
        lanes.walk(range, |lane, at| {
            tile.push(at);
            if tile.len() == width || lane == last {
                f(&tile);
                tile.clear();
            }
        });
    });
}

/// The places along an axis, from the first or from the last on.
fn places(n: usize, reverse: bool) -> impl Iterator<Item = isize> {
    (0..n as isize).map(move |j| if reverse { n as isize - 1 - j } else { j })
}

/// `out[.., j, ..]` is what a scan has made of the elements of `x` up to `j` along `axis`, or of those from `j` on if it runs in `reverse`.
pub(crate) fn scan<T, S>(x: View<T>, axis: usize, reverse: bool, out: &mut [S::Out])
where
    T: Copy + Send + Sync,
    S: Step<T>,
{
    assert_eq!(x.len(), out.len(), "scan: the output has the shape of the view");
    if out.is_empty() {
        return;
    }
    let n = x.shape[axis];
    let strides = row_major(x.shape);
    let (step, out_step) = (x.strides[axis], strides[axis]);
    if S::BLOCKED && n >= blocked::LONG && step.abs() == 1 {
        return blocked::scan::<T, S>(x, axis, reverse, out);
    }
    let target = Target::new(out);
    for_lanes(x.shape, axis, [x.strides, &strides], &|lanes| {
        let mut states: SmallVec<[S::State; TILE]> = SmallVec::from_elem(S::START, lanes.len());
        for j in places(n, reverse) {
            for (state, at) in states.iter_mut().zip(lanes) {
                // SAFETY: inside the view and the output, which has its shape; each lane belongs to one thread.
                unsafe {
                    let x = *x.data.get_unchecked((x.offset as isize + at[0] + j * step) as usize);
                    *state = S::step(*state, x, j as i64);
                    *target.at(at[1] + j * out_step) = S::value(*state);
                }
            }
        }
    });
}

/// `y[j] = a[j] y[j-1] + b[j]` along an axis from `y[-1] = 0`, or `y[j] = a[j] y[j+1] + b[j]` in `reverse`.
pub(crate) fn recurrence<T: Compute<Wide: Into<f64>>>(
    a: View<T>,
    b: View<T>,
    axis: usize,
    reverse: bool,
    round: fn(f64) -> T,
    out: &mut [T],
) {
    assert!(
        a.shape == b.shape && a.len() == out.len(),
        "recurrence: the output and both operands have one shape"
    );
    if out.is_empty() {
        return;
    }
    let (n, strides) = (a.shape[axis], row_major(a.shape));
    let steps = [a.strides[axis], b.strides[axis], strides[axis]];
    let target = Target::new(out);
    for_lanes(a.shape, axis, [a.strides, b.strides, &strides], &|lanes| {
        let mut states: SmallVec<[f64; TILE]> = SmallVec::from_elem(0.0, lanes.len());
        for j in places(n, reverse) {
            for (state, at) in states.iter_mut().zip(lanes) {
                let place = |k: usize| at[k] + j * steps[k];
                // SAFETY: inside the views and the output, which have one shape; each lane belongs to one thread.
                unsafe {
                    let a = a.data.get_unchecked((a.offset as isize + place(0)) as usize).widen().into();
                    let b = b.data.get_unchecked((b.offset as isize + place(1)) as usize).widen().into();
                    // Nothing came before: 0 times an infinite factor would be NaN.
                    *state = if j == first(n, reverse) { b } else { a * *state + b };
                    *target.at(place(2)) = round(*state);
                }
            }
        }
    });
}

/// Where a scan begins.
fn first(n: usize, reverse: bool) -> isize {
    if reverse { n as isize - 1 } else { 0 }
}

#[cfg(test)]
mod tests;
