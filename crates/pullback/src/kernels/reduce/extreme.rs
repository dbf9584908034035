//! Where the largest or smallest element is.

use super::super::movement::Target;
use super::super::parallel;
use super::super::strided::Axes;
use super::super::vectorised::vectorised;
use super::super::view::View;
use super::terms::Terms;
use super::{GRAIN, Max, Min, Reducer, block, by_columns, partition};

/// Outputs compared together when whole rows are compared to each other.
const TILE: usize = 256;

/// A reducer that keeps one of its elements.
pub(crate) trait Extreme<T>: Reducer<T> {
    /// Whether `x` is more extreme than `best`: NaN beats every number and nothing beats NaN.
    fn beats(x: Self::Acc, best: Self::Acc) -> bool;
    /// Whether the two are the same, NaN included.
    fn same(x: Self::Acc, y: Self::Acc) -> bool;
}

impl<T, A: PartialOrd + Copy> Extreme<T> for Max
where
    Max: Reducer<T, Acc = A>,
{
    #[inline(always)]
    #[allow(clippy::eq_op)]
    fn beats(x: A, best: A) -> bool {
        (x > best) | ((x != x) & (best == best))
    }
    #[inline(always)]
    #[allow(clippy::eq_op)]
    fn same(x: A, y: A) -> bool {
        (x == y) | ((x != x) & (y != y))
    }
}

impl<T, A: PartialOrd + Copy> Extreme<T> for Min
where
    Min: Reducer<T, Acc = A>,
{
    #[inline(always)]
    #[allow(clippy::eq_op)]
    fn beats(x: A, best: A) -> bool {
        (x < best) | ((x != x) & (best == best))
    }
    #[inline(always)]
    #[allow(clippy::eq_op)]
    fn same(x: A, y: A) -> bool {
        (x == y) | ((x != x) & (y != y))
    }
}

/// The position of the first extreme element over `axes`, counted in row-major order of those axes.
///
/// The reduced axes are not empty.
pub(crate) fn position<T, E>(x: View<T>, axes: &[usize], out: &mut [i64])
where
    T: Copy + Send + Sync,
    E: Extreme<T>,
{
    let (kept, reduced) = partition(x, axes);
    let (mut kept, reduced) = (Axes::new(kept), Axes::new(reduced));
    assert_eq!(out.len(), kept.len(), "position: the output has the axes that stay");
    assert!(reduced.len() > 0 || out.is_empty(), "position: nothing to choose from");
    if out.is_empty() {
        return;
    }
    let target = Target::new(out);
    let offset = x.offset as isize;
    if by_columns(&kept, &reduced) {
        let inner = kept.pop_inner();
        let tiles = inner.len.div_ceil(TILE);
        let work = reduced.len() * TILE.min(inner.len);
        return parallel::split(kept.len() * tiles, GRAIN.div_ceil(work), 1, |range| {
            kept.walk(range.start / tiles..range.end.div_ceil(tiles), |o, [base]| {
                for number in range.start.max(o * tiles)..range.end.min((o + 1) * tiles) {
                    let start = (number - o * tiles) * TILE;
                    let width = TILE.min(inner.len - start);
                    let mut best = ([E::EMPTY; TILE], [0i64; TILE]);
                    reduced.walk(0..reduced.len(), |r, [at]| {
                        let from = (offset + base + at) as usize + start;
                        challenge::<T, E>(&mut best, &x.data[from..from + width], r as i64);
                    });
                    for (j, &winner) in best.1[..width].iter().enumerate() {
                        // SAFETY: each tile belongs to one thread.
                        unsafe { *target.at((o * inner.len + start + j) as isize) = winner };
                    }
                }
            });
        });
    }
    let terms = Terms::new(x.data, &reduced);
    parallel::split(kept.len(), GRAIN.div_ceil(reduced.len()), 1, |range| {
        let mut scratch = Vec::new();
        kept.walk(range, |o, [at]| {
            let (mut best, mut winner) = (E::EMPTY, 0);
            for number in 0..terms.blocks() {
                let block_terms = terms.block(offset + at, number, &mut scratch);
                let candidate = block::<T, E>(block_terms);
                if number == 0 || E::beats(candidate, best) {
                    best = candidate;
                    let first = block_terms.iter().position(|&x| E::same(E::lift(x), best));
                    winner = terms.range(number).start + first.expect("the extreme element is one of them");
                }
            }
            // SAFETY: each output belongs to one thread.
            unsafe { *target.at(o as isize) = winner as i64 };
        });
    });
}

vectorised! {
    /// Puts row `r` against the best so far, column by column; row 0 wins unopposed.
    fn challenge<T: Copy, E: Extreme<T>>(best: &mut ([E::Acc; TILE], [i64; TILE]), row: &[T], r: i64) {
        let (values, winners) = best;
        for ((&x, value), winner) in row.iter().zip(values).zip(winners) {
            let x = E::lift(x);
            let wins = (r == 0) | E::beats(x, *value);
            *value = if wins { x } else { *value };
            *winner = if wins { r } else { *winner };
        }
    }
}
