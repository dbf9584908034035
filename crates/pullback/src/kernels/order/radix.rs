//! Sorting packed keys by one byte after the other, from the lowest.

use super::super::movement::Target;
use super::super::parallel;
use super::super::scratch::filled;
use super::key::Packed;
use std::ops::Range;

/// Keys a thread should have before another one is worth waking.
pub(super) const GRAIN: usize = 1 << 15;
/// Fewer keys than this for each of their bytes are sorted by comparing.
const FEW: usize = 128;
const BUCKETS: usize = 256;

/// How many keys have each value of a byte, and then where the next one of them goes.
type Counts = [usize; BUCKETS];

/// Sorts the keys, by several threads if that is wanted. `spare` is memory to be used.
pub(super) fn sort<P: Packed>(keys: &mut Vec<P>, spare: &mut Vec<P>, shared: bool) {
    let n = keys.len();
    if n < FEW * P::DIGITS {
        return keys.sort_unstable();
    }
    if spare.len() != n {
        *spare = filled(P::default(), n);
    }
    let parts = if shared { parallel::num_threads().min(n / GRAIN).max(1) } else { 1 };
    let part = |k: usize| n * k / parts..n * (k + 1) / parts;
    let mut counts = vec![[0; BUCKETS]; parts];
    for digit in 0..P::DIGITS {
        in_parts(&mut counts, |k, counts| count(&keys[part(k)], digit, counts));
        if !first_places(&mut counts, n) {
            continue;
        }
        let target = Target::new(spare);
        in_parts(&mut counts, |k, places| {
            for &key in &keys[part(k)] {
                let place = &mut places[key.digit(digit)];
                // SAFETY: the counts add up to the length, and each place is taken once.
                unsafe { *target.at(*place as isize) = key };
                *place += 1;
            }
        });
        std::mem::swap(keys, spare);
    }
}

/// Calls `f` with the number of each part and its counts, in parallel.
fn in_parts(counts: &mut [Counts], f: impl Fn(usize, &mut Counts) + Sync) {
    if let [only] = counts {
        return f(0, only);
    }
    let parts = counts.len();
    let counts = parallel::Disjoint::new(counts);
    parallel::split(parts, 1, 1, |range: Range<usize>| {
        // SAFETY: parts are disjoint.
        let own = unsafe { counts.part(range.clone()) };
        range.zip(own).for_each(|(k, counts)| f(k, counts));
    });
}

fn count<P: Packed>(keys: &[P], digit: usize, counts: &mut Counts) {
    // Two sets of counters, because neighbours are often equal, and would wait for each other.
    let mut other = [0; BUCKETS];
    counts.fill(0);
    let (pairs, last) = keys.as_chunks::<2>();
    for [a, b] in pairs {
        counts[a.digit(digit)] += 1;
        other[b.digit(digit)] += 1;
    }
    last.iter().for_each(|key| counts[key.digit(digit)] += 1);
    counts.iter_mut().zip(other).for_each(|(c, o)| *c += o);
}

/// Makes places of counts: those of a value after those of smaller ones, of a part after those of earlier ones. False if all keys have the
/// same value, so that nothing would move.
fn first_places(counts: &mut [Counts], n: usize) -> bool {
    let mut place = 0;
    for value in 0..BUCKETS {
        let before = place;
        for part in counts.iter_mut() {
            let own = part[value];
            part[value] = place;
            place += own;
        }
        if place - before == n {
            return false;
        }
    }
    true
}
