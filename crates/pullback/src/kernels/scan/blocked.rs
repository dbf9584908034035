//! A long lane, scanned in blocks by several threads.
//!
//! A block is folded from nothing, twice: first for its total, then, when the totals of all blocks before it are known, for its results, each
//! merged with what came before. Both fold in the same order, so that the last result of a block *is* what the next one begins with: a scan of
//! numbers that are not negative never falls. Totals are merged one after the other, whoever found them.

use super::super::movement::Target;
use super::super::parallel;
use super::super::scratch::filled;
use super::super::strided::{Axes, row_major};
use super::super::view::View;
use super::Step;
use std::hint;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Elements of a block. Not a power of two: blocks that are folded in turn would fall on the same places of the cache.
const BLOCK: usize = 2016;
/// Blocks that are folded in turn, to hide the latency of an addition.
const CHAINS: usize = 8;
/// What is read once from memory, and a second time from the cache.
const GROUP: usize = CHAINS * BLOCK;
/// The length from which a lane is cut into blocks.
pub(super) const LONG: usize = 2 * GROUP;
/// How often a thread looks for another's total before it lets others run.
const SPINS: usize = 1000;

/// The scan of a view whose elements lie side by side along `axis`.
pub(super) fn scan<T, S>(x: View<T>, axis: usize, reverse: bool, out: &mut [S::Out])
where
    T: Copy + Send + Sync,
    S: Step<T>,
{
    let (n, strides) = (x.shape[axis], row_major(x.shape));
    let across = (0..x.shape.len()).filter(|&k| k != axis);
    let lanes = Axes::new(across.map(|k| (x.shape[k], [x.strides[k], strides[k]])));
    let target = Target::new(out);
    lanes.walk(0..lanes.len(), |_, at| {
        let from = |step: isize, offset: isize| offset + if reverse { (n as isize - 1) * step } else { 0 };
        let turn = |step: isize| if reverse { -step } else { step };
        let lane = Lane {
            data: x.data,
            from: from(x.strides[axis], x.offset as isize + at[0]),
            step: turn(x.strides[axis]),
            n,
        };
        let place = (from(strides[axis], at[1]), turn(strides[axis]));
        lane.scan::<S>(reverse, &target, place);
    });
}

/// The elements of a lane in the order of the scan.
#[derive(Clone, Copy)]
struct Lane<'a, T> {
    data: &'a [T],
    from: isize,
    step: isize,
    n: usize,
}

impl<T: Copy + Send + Sync> Lane<'_, T> {
    /// Writes the results to the places from `place.0` on, in steps of `place.1`.
    fn scan<S: Step<T>>(self, reverse: bool, target: &Target<S::Out>, place: (isize, isize)) {
        let groups = self.n.div_ceil(GROUP);
        let mut totals = filled([S::START; CHAINS], groups);
        let known: Vec<AtomicBool> = (0..groups).map(|_| AtomicBool::new(false)).collect();
        let (totals, next) = (Target::new(&mut totals), AtomicUsize::new(0));
        // Groups are taken in order, so that all before one belong to threads that are at work on them, or are done.
        parallel::split(parallel::num_threads().min(groups), 1, 1, |_| {
            let (mut merged, mut before) = (0, S::START);
            loop {
                let group = next.fetch_add(1, Ordering::Relaxed);
                if group >= groups {
                    break;
                }
                let sums = self.fold::<S>(group, reverse, [S::START; CHAINS], |_, _, _| {});
                // SAFETY: this thread alone has the group until it says that the total is known.
                unsafe { *totals.at(group as isize) = sums };
                known[group].store(true, Ordering::Release);
                while merged < group {
                    wait_for(&known[merged]);
                    // SAFETY: it is known, and does not change any more.
                    let sums = unsafe { *totals.at(merged as isize) };
                    before = sums.into_iter().fold(before, S::merge);
                    merged += 1;
                }
                let mut starts = [before; CHAINS];
                for k in 1..CHAINS {
                    starts[k] = S::merge(starts[k - 1], sums[k - 1]);
                }
                self.fold::<S>(group, reverse, starts, |i, start, state| {
                    // SAFETY: inside the output; each element belongs to one group.
                    unsafe { *target.at(place.0 + i as isize * place.1) = S::value(S::merge(start, state)) };
                });
            }
        });
    }

    /// The states of the blocks of a group; `f` gets the number of each element, the start of its block, and the state after it.
    #[inline(always)]
    fn fold<S: Step<T>>(
        self,
        group: usize,
        reverse: bool,
        starts: [S::State; CHAINS],
        mut f: impl FnMut(usize, S::State, S::State),
    ) -> [S::State; CHAINS] {
        let mut states = [S::START; CHAINS];
        let first = group * GROUP;
        let mut step = |i: usize, chain: usize| {
            // SAFETY: an element of the lane, which lies inside the view.
            let x = unsafe { *self.data.get_unchecked((self.from + i as isize * self.step) as usize) };
            let j = if reverse { self.n - 1 - i } else { i };
            states[chain] = S::step(states[chain], x, j as i64);
            f(i, starts[chain], states[chain]);
        };
        if first + GROUP <= self.n {
            for i in 0..BLOCK {
                for chain in 0..CHAINS {
                    step(first + chain * BLOCK + i, chain);
                }
            }
        } else {
            (first..self.n).for_each(|i| step(i, (i - first) / BLOCK));
        }
        states
    }
}

fn wait_for(known: &AtomicBool) {
    let mut spins = 0;
    while !known.load(Ordering::Acquire) {
        spins += 1;
        if spins % SPINS == 0 {
            std::thread::yield_now();
        }
        hint::spin_loop();
    }
}
