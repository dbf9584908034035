//! One pool of threads for every kernel.

mod pool;

use pool::Pool;
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

static THREADS: AtomicUsize = AtomicUsize::new(0);
static POOL: Pool = Pool::new();

/// How many threads kernels may use: the last [`set_num_threads`], else `PULLBACK_NUM_THREADS`, else all cores.
pub(crate) fn num_threads() -> usize {
    match THREADS.load(Ordering::Relaxed) {
        0 => {
            let n =
                std::env::var("PULLBACK_NUM_THREADS").ok().and_then(|v| v.parse().ok()).filter(|&n| n > 0);
            let n = n.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |n| n.get()));
            THREADS.store(n, Ordering::Relaxed);
            n
        }
        n => n,
    }
}

/// Limits the threads that kernels use from now on (at least one).
pub(crate) fn set_num_threads(n: usize) {
    THREADS.store(n.max(1), Ordering::Relaxed);
}

/// Pieces of work for each thread: a core that is busy elsewhere then holds up one of them, and not its whole share.
pub(crate) const PIECES: usize = 4;

/// Runs `f` on ranges that together cover `0..n`, in parallel if there are at least two of `grain` or more.
///
/// A thread begins with its own share, which is the same part of `0..n` in every kernel: what it wrote in the last one is still in its
/// cache, and to get a line from another core's takes longer than from memory. Then it takes from the shares of those who are late.
///
/// The ranges depend on the number of threads: use it only where an element's result does not depend on how
/// the work was split. Every boundary is a multiple of `align`.
pub(crate) fn split(n: usize, grain: usize, align: usize, f: impl Fn(Range<usize>) + Sync) {
    let parts = num_threads().min(n / grain.max(1)).max(1);
    match parts {
        1 => f(0..n),
        _ => share(parts, n, grain, align, &f),
    }
}

/// The work of [`split`] on several threads. Apart, because it is long, and `split` is compiled for every kernel.
fn share(parts: usize, n: usize, grain: usize, align: usize, f: &(dyn Fn(Range<usize>) + Sync)) {
    let pieces = (parts * PIECES).min(n / grain.max(1));
    let step = n.div_ceil(pieces).next_multiple_of(align.max(1));
    let pieces = n.div_ceil(step);
    let first = |share: usize| pieces * share / parts;
    let next: SmallVec<[AtomicUsize; 16]> = (0..parts).map(|share| AtomicUsize::new(first(share))).collect();
    POOL.run(parts - 1, &|thread| {
        for share in (0..parts).map(|k| (thread + k) % parts) {
            loop {
                let piece = next[share].fetch_add(1, Ordering::Relaxed);
                if piece >= first(share + 1) {
                    break;
                }
                f(piece * step..((piece + 1) * step).min(n));
            }
        }
    });
}

/// A slice that several threads write to, each its own disjoint part.
pub(crate) struct Disjoint<T>(*mut T, usize);

// SAFETY: only `part` gives access, and its callers promise disjoint ranges.
unsafe impl<T: Send> Sync for Disjoint<T> {}

impl<T> Disjoint<T> {
    pub fn new(slice: &mut [T]) -> Self {
        Disjoint(slice.as_mut_ptr(), slice.len())
    }

    /// The first element, for whoever writes parts that are not next to each other.
    #[cfg(feature = "fft")]
    pub fn first(&self) -> *mut T {
        self.0
    }

    /// The given part of the slice.
    ///
    /// # Safety
    /// No two live parts may overlap, and none may outlive the slice.
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn part(&self, range: Range<usize>) -> &mut [T] {
        assert!(range.start <= range.end && range.end <= self.1);
        // SAFETY: in bounds by the assertion, disjoint by the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.0.add(range.start), range.len()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_index_once_and_boundaries_aligned() {
        for (n, grain, align) in
            [(0, 1, 1), (1, 1, 8), (7, 1, 1), (1000, 10, 64), (1001, 3, 16), (64, 64, 64)]
        {
            let seen: Vec<AtomicUsize> = (0..n).map(|_| AtomicUsize::new(0)).collect();
            split(n, grain, align, |range| {
                assert_eq!(range.start % align, 0);
                seen[range].iter().for_each(|s| {
                    s.fetch_add(1, Ordering::Relaxed);
                });
            });
            assert!(seen.iter().all(|s| s.load(Ordering::Relaxed) == 1), "{n} by {grain}");
        }
    }
}
