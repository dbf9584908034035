//! Orders: sorting, selecting and searching.
//!
//! Elements are compared by [keys](Ordered), integers in the same order: NaN is larger than every number, and -0.0 equals 0.0. A key is packed
//! with the place of its element into one integer, so that all are distinct, equal elements keep their order, and the result of every
//! algorithm is the same one.

mod key;
mod radix;
mod search;
mod select;

pub(crate) use key::Ordered;
pub(crate) use search::search;
pub(crate) use select::select;

use super::movement::Target;
use super::parallel;
use super::strided::{Axes, row_major};
use super::view::View;
use key::Packed;

/// Elements a thread should have before another one is worth waking.
const GRAIN: usize = 1 << 12;

/// The lanes of an array along an axis, and where their results go.
struct Lanes {
    across: Axes<2>,
    n: usize,
    step: isize,
    out_step: isize,
}

impl Lanes {
    /// Those of `x`, of which each gives `k` elements of a contiguous output.
    fn new<T>(x: View<T>, axis: usize, k: usize) -> Lanes {
        let mut shape: Vec<usize> = x.shape.to_vec();
        shape[axis] = k;
        let strides = row_major(&shape);
        let across = (0..shape.len()).filter(|&a| a != axis);
        Lanes {
            across: Axes::new(across.map(|a| (shape[a], [x.strides[a], strides[a]]))),
            n: x.shape[axis],
            step: x.strides[axis],
            out_step: strides[axis],
        }
    }
}

/// The places of the elements along `axis` in rising (or falling) order; equal ones keep theirs.
pub(crate) fn argsort<T: Ordered>(x: View<T>, axis: usize, descending: bool, out: &mut [i64]) {
    assert_eq!(x.len(), out.len(), "argsort: the output has the shape of the view");
    if out.is_empty() {
        return;
    }
    let n = x.shape[axis];
    match T::fits(n) {
        true => sorted_by::<T, u64>(x, axis, n, descending, out),
        false => sorted_by::<T, u128>(x, axis, n, descending, out),
    }
}

/// The first `k` places of each lane's order.
fn sorted_by<T: Ordered, P: Packed>(x: View<T>, axis: usize, k: usize, descending: bool, out: &mut [i64]) {
    let lanes = Lanes::new(x, axis, k);
    let (n, target) = (lanes.n, Target::new(out));
    // One long lane is shared between threads, many are dealt out.
    let alone = lanes.across.len() < parallel::num_threads();
    let each = |[at, to]: [isize; 2], keys: &mut Vec<P>, spare: &mut Vec<P>| {
        let from = x.offset as isize + at;
        key::pack(x.data, from, lanes.step, n, descending, alone, keys);
        radix::sort(keys, spare, alone);
        let keys = &keys[..];
        let write = |range: std::ops::Range<usize>| {
            for i in range {
                // SAFETY: inside the output; each place of each lane belongs to one thread.
                unsafe { *target.at(to + i as isize * lanes.out_step) = keys[i].place() as i64 };
            }
        };
        if alone { parallel::split(k, radix::GRAIN, 1, write) } else { write(0..k) }
    };
    if alone {
        let (mut keys, mut spare) = (Vec::new(), Vec::new());
        return lanes.across.walk(0..lanes.across.len(), |_, at| each(at, &mut keys, &mut spare));
    }
    parallel::split(lanes.across.len(), GRAIN.div_ceil(n), 1, |range| {
        let (mut keys, mut spare) = (Vec::new(), Vec::new());
        lanes.across.walk(range, |_, at| each(at, &mut keys, &mut spare));
    });
}

#[cfg(test)]
mod tests;
