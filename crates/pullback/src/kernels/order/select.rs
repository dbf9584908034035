//! The first elements of an order, without sorting the others.

use super::super::movement::Target;
use super::super::parallel;
use super::super::vectorised::vectorised;
use super::super::view::View;
use super::Lanes;
use super::key::{Ordered, Packed};
use std::ops::Range;

/// Elements that are looked at together.
const BLOCK: usize = 64;
/// Candidates that are kept beyond those that are wanted, at least.
const MORE: usize = 64;
/// Elements a thread should have before another one is worth waking.
const GRAIN: usize = 1 << 16;

/// The places of the `k` largest (or smallest) elements along `axis`, in their order; of equal ones the first.
pub(crate) fn select<T: Ordered>(x: View<T>, axis: usize, k: usize, largest: bool, out: &mut [i64]) {
    assert!(k <= x.shape[axis], "select: no more than there are");
    if out.is_empty() {
        return;
    }
    match T::fits(x.shape[axis]) {
        true => select_by::<T, u64>(x, axis, k, largest, out),
        false => select_by::<T, u128>(x, axis, k, largest, out),
    }
}

fn select_by<T: Ordered, P: Packed>(x: View<T>, axis: usize, k: usize, largest: bool, out: &mut [i64]) {
    let lanes = Lanes::new(x, axis, k);
    let target = Target::new(out);
    let write = |to: isize, found: &[P]| {
        for (i, p) in found.iter().enumerate() {
            // SAFETY: inside the output; each lane belongs to one thread.
            unsafe { *target.at(to + i as isize * lanes.out_step) = p.place() as i64 };
        }
    };
    // Most of a lane is sorted faster than chosen from.
    if k > lanes.n / 4 {
        return super::sorted_by::<T, P>(x, axis, k, largest, out);
    }
    let lane = |at: isize| Lane { data: x.data, from: x.offset as isize + at, step: lanes.step, largest };
    if lanes.across.len() >= parallel::num_threads() {
        return parallel::split(lanes.across.len(), GRAIN.div_ceil(lanes.n), 1, |range| {
            let mut found = Vec::new();
            lanes.across.walk(range, |_, [at, to]| {
                lane(at).first(0..lanes.n, k, &mut found);
                found.sort_unstable();
                write(to, &found);
            });
        });
    }
    // The first of a whole are among the first of its parts.
    let parts = parallel::num_threads().min(lanes.n / GRAIN).max(1);
    lanes.across.walk(0..lanes.across.len(), |_, [at, to]| {
        let mut found: Vec<Vec<P>> = vec![Vec::new(); parts];
        let each = parallel::Disjoint::new(&mut found);
        parallel::split(parts, 1, 1, |range| {
            for part in range {
                // SAFETY: each part belongs to one thread.
                let found = unsafe { &mut each.part(part..part + 1)[0] };
                lane(at).first(lanes.n * part / parts..lanes.n * (part + 1) / parts, k, found);
            }
        });
        let mut all = found.concat();
        keep(&mut all, k);
        all.sort_unstable();
        write(to, &all);
    });
}

/// Leaves the first `k` of the order, in any order, with the last of them at the end.
fn keep<P: Packed>(found: &mut Vec<P>, k: usize) {
    if found.len() > k {
        found.select_nth_unstable(k - 1);
        found.truncate(k);
    }
}

#[derive(Clone, Copy)]
struct Lane<'a, T> {
    data: &'a [T],
    from: isize,
    step: isize,
    largest: bool,
}

impl<T: Ordered> Lane<'_, T> {
    /// The packed keys of the first `k` elements of a range, or of all if there are fewer.
    ///
    /// Once there are `k` candidates, most elements do not come before the last of them, and are passed over a block at a time.
    fn first<P: Packed>(self, range: Range<usize>, k: usize, found: &mut Vec<P>) {
        found.clear();
        let capacity = k + k.max(MORE);
        let element = |i: usize| self.data[(self.from + i as isize * self.step) as usize];
        let mut limit: Option<T::Key> = None;
        let mut start = range.start;
        while start < range.end {
            let end = range.end.min(start + BLOCK);
            let passed = match limit {
                Some(limit) if self.step == 1 => {
                    let block = self.from as usize + start..self.from as usize + end;
                    !any_before(&self.data[block], limit, self.largest)
                }
                _ => false,
            };
            if !passed {
                for i in start..end {
                    let key = element(i).key_in(self.largest);
                    // Of equal ones the first is taken, and those in the list are.
                    if limit.is_none_or(|limit| key < limit) {
                        found.push(P::new(key.into(), i));
                    }
                }
                if found.len() >= capacity {
                    keep(found, k);
                    let last = found[k - 1].place();
                    limit = Some(element(last).key_in(self.largest));
                }
            }
            start = end;
        }
        keep(found, k);
    }
}

vectorised! {
    /// Whether an element comes before a key.
    fn any_before<T: Ordered>(x: &[T], limit: T::Key, largest: bool) -> bool {
        // Apart, so that each loop has one comparison.
        if largest {
            x.iter().fold(false, |any, &x| any | (T::turned(x.key()) < limit))
        } else {
            x.iter().fold(false, |any, &x| any | (x.key() < limit))
        }
    }
}
