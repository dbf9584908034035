//! Reductions of a view over some of its axes.
//!
//! Every order of operations below depends on the shape and the strides alone, so the number of threads does
//! not change the bits. A long sum is cut into blocks, a block into lanes, and the partial results are
//! merged pairwise: the rounding error grows with the logarithm of the length.

pub(crate) mod extreme;
mod reducers;
mod terms;

pub(crate) use reducers::{All, Any, Max, Min, Reducer, Sum};

use super::movement::Target;
use super::parallel;
use super::scratch::filled;
use super::strided::Axes;
use super::vectorised::vectorised;
use super::view::View;
use smallvec::SmallVec;
use std::marker::PhantomData;
use terms::{Pairwise, Terms};

/// Elements a thread should have before another one is worth waking.
const GRAIN: usize = 1 << 16;
/// Independent accumulators: enough to hide the latency of an addition.
const LANES: usize = 32;
/// Outputs accumulated together when whole rows are added to each other: long runs of memory, sums that stay in cache.
const TILE: usize = 1024;
/// Rows added to each other before the result is put away.
const ROWS: usize = 128;
/// Rows that one task adds; more than these may be shared between threads.
const SEGMENT: usize = 8 * ROWS;
/// Outputs of a row made of short ones.
const FOLDED: usize = 128;

/// Reduces `x` over `axes`; the output has the other axes, in their order.
pub(crate) fn reduce<T, R>(x: View<T>, axes: &[usize], out: &mut [R::Out])
where
    T: Copy + Send + Sync,
    R: Reducer<T>,
{
    let (kept, mut reduced) = partition(x, axes);
    assert_eq!(
        out.len(),
        kept.iter().map(|a| a.0).product::<usize>(),
        "reduce: the output has the axes that stay"
    );
    let count: usize = reduced.iter().map(|a| a.0).product();
    if count == 0 {
        return out.fill(R::finish(R::EMPTY));
    }
    if out.is_empty() {
        return;
    }
    // The order of the terms is free, so they are taken in the order of memory.
    let mut offset = x.offset as isize;
    for (n, [stride]) in &mut reduced {
        if *stride < 0 {
            offset += (*n as isize - 1) * *stride;
            *stride = -*stride;
        }
    }
    reduced.sort_by_key(|&(_, [stride])| std::cmp::Reverse(stride));
    let (kept, reduced) = (Axes::new(kept), Axes::new(reduced));
    if let Some(q) = foldable(&kept, &reduced) {
        folded::<T, R>(x.data, offset, kept, reduced, q, out);
    } else if by_columns(&kept, &reduced) {
        columns::<T, R>(x.data, offset, kept, &reduced, out);
    } else {
        rows::<T, R>(x.data, offset, &kept, &reduced, out);
    }
}

/// Whether neighbouring elements go to neighbouring outputs, so that rows should be added to each other.
fn by_columns(kept: &Axes<1>, reduced: &Axes<1>) -> bool {
    let unit = |axes: &Axes<1>| axes.0.last().is_some_and(|a| a.strides == [1] && a.len >= 8);
    unit(kept) && !unit(reduced)
}

type List = SmallVec<[(usize, [isize; 1]); 6]>;

/// The axes that stay and the axes that are reduced.
pub(super) fn partition<T>(x: View<T>, axes: &[usize]) -> (List, List) {
    assert!(axes.iter().all(|&k| k < x.shape.len()), "reduce: no such axis");
    let all = || x.shape.iter().zip(x.strides).map(|(&n, &s)| (n, [s])).enumerate();
    (
        all().filter(|(k, _)| !axes.contains(k)).map(|(_, a)| a).collect(),
        all().filter(|(k, _)| axes.contains(k)).map(|(_, a)| a).collect(),
    )
}

/// One output after the other: each is a sequence of terms.
fn rows<T, R>(data: &[T], offset: isize, kept: &Axes<1>, reduced: &Axes<1>, out: &mut [R::Out])
where
    T: Copy + Send + Sync,
    R: Reducer<T>,
{
    let terms = Terms::new(data, reduced);
    let blocks = terms.blocks();
    // Few outputs with many blocks each: share the blocks.
    if out.len() < 2 * parallel::num_threads() && blocks > 1 {
        let mut partial = filled(R::EMPTY, blocks);
        kept.walk(0..out.len(), |o, [at]| {
            let parts = parallel::Disjoint::new(&mut partial);
            parallel::split(blocks, GRAIN / terms::BLOCK, 1, |range| {
                // SAFETY: parts are disjoint.
                let part = unsafe { parts.part(range.clone()) };
                let mut scratch = Vec::new();
                for (number, p) in range.zip(part) {
                    *p = block::<T, R>(terms.block(offset + at, number, &mut scratch));
                }
            });
            let mut total = Pairwise::new();
            partial.iter().for_each(|&p| total.push(p, R::merge));
            out[o] = R::finish(total.total(R::merge).expect("at least two blocks"));
        });
        return;
    }
    if let ([a], [b]) = (kept.0.as_slice(), reduced.0.as_slice())
        && (a.strides, b.strides) == ([b.len as isize], [1])
        && b.len < LANES
    {
        let (n, first, out) = (b.len, offset as usize, parallel::Disjoint::new(out));
        return parallel::split(a.len, GRAIN.div_ceil(n), 1, |range| {
            // SAFETY: parts are disjoint.
            let out = unsafe { out.part(range.clone()) };
            short_rows::<T, R>(&data[first + range.start * n..first + range.end * n], n, out);
        });
    }
    let target = Target::new(out);
    parallel::split(out.len(), GRAIN.div_ceil(terms.len()), 1, |range| {
        let mut scratch = Vec::new();
        kept.walk(range, |o, [at]| {
            let result = if blocks == 1 {
                block::<T, R>(terms.block(offset + at, 0, &mut scratch))
            } else {
                let mut total = Pairwise::new();
                for number in 0..blocks {
                    total.push(block::<T, R>(terms.block(offset + at, number, &mut scratch)), R::merge);
                }
                total.total(R::merge).expect("at least two blocks")
            };
            // SAFETY: each output belongs to one thread.
            unsafe { *target.at(o as isize) = R::finish(result) };
        });
    });
}

vectorised! {
    /// Reduces contiguous elements in independent lanes.
    pub(crate) fn block<T: Copy, R: Reducer<T>>(x: &[T]) -> R::Acc {
        if x.len() < LANES {
            return x.iter().fold(R::EMPTY, |acc, &x| R::merge(acc, R::lift(x)));
        }
        let mut acc = [R::EMPTY; LANES];
        let (chunks, tail) = x.as_chunks::<LANES>();
        for chunk in chunks {
            for l in 0..LANES {
                acc[l] = R::merge(acc[l], R::lift(chunk[l]));
            }
        }
        // A full vector again, so that the accumulators stay in registers.
        let mut last = [R::EMPTY; LANES];
        last.iter_mut().zip(tail).for_each(|(l, &x)| *l = R::lift(x));
        for l in 0..LANES {
            acc[l] = R::merge(acc[l], last[l]);
        }
        pairwise::<T, R>(&acc)
    }
}

vectorised! {
    /// Reduces rows of `n` elements that follow each other.
    fn short_rows<T: Copy, R: Reducer<T>>(x: &[T], n: usize, out: &mut [R::Out]) {
        for (row, o) in x.chunks_exact(n).zip(out) {
            *o = R::finish(row.iter().fold(R::EMPTY, |acc, &x| R::merge(acc, R::lift(x))));
        }
    }
}

vectorised! {
    /// The lanes merged. Apart from the loop, or its shuffles make the compiler use narrow vectors there too.
    #[inline(never)]
    fn pairwise<T: Copy, R: Reducer<T>>(lanes: &[R::Acc; LANES]) -> R::Acc {
        let mut acc = *lanes;
        let mut width = LANES / 2;
        while width > 0 {
            for l in 0..width {
                acc[l] = R::merge(acc[l], acc[l + width]);
            }
            width /= 2;
        }
        acc[0]
    }
}

/// Many neighbouring outputs at once: whole rows are merged into a row of accumulators.
fn columns<T, R>(data: &[T], offset: isize, mut outer: Axes<1>, reduced: &Axes<1>, out: &mut [R::Out])
where
    T: Copy + Send + Sync,
    R: Reducer<T>,
{
    let inner = outer.pop_inner();
    let (tiles, count) = (inner.len.div_ceil(TILE), reduced.len());
    let segments = count.div_ceil(SEGMENT);
    let outputs = out.len();
    let mut partial = filled(R::EMPTY, if segments > 1 { segments * outputs } else { 0 });
    let (target, partials) = (Target::new(out), Target::new(&mut partial));
    let task = |o: usize, base: isize, number: usize| {
        let (segment, tile) = (number / tiles, number % tiles);
        let start = tile * TILE;
        let width = TILE.min(inner.len - start);
        let mut total = vec![R::EMPTY; width];
        let mut sums = vec![R::EMPTY; width];
        let end = ((segment + 1) * SEGMENT).min(count);
        for first in (segment * SEGMENT..end).step_by(ROWS) {
            sums.fill(R::EMPTY);
            reduced.walk(first..(first + ROWS).min(end), |_, [at]| {
                let from = (offset + base + at) as usize + start;
                add_row::<T, R>(&mut sums, &data[from..from + width]);
            });
            for (t, &s) in total.iter_mut().zip(&sums) {
                *t = R::merge(*t, s);
            }
        }
        let place = o * inner.len + start;
        for (j, &t) in total.iter().enumerate() {
            // SAFETY: each tile of each segment belongs to one task.
            unsafe {
                if segments == 1 {
                    *target.at((place + j) as isize) = R::finish(t);
                } else {
                    *partials.at((segment * outputs + place + j) as isize) = t;
                }
            }
        }
    };
    let each = tiles * segments;
    let work = TILE.min(inner.len) * SEGMENT.min(count);
    parallel::split(outer.len() * each, GRAIN.div_ceil(work), 1, |range| {
        outer.walk(range.start / each..range.end.div_ceil(each), |o, [base]| {
            let first = range.start.max(o * each);
            (first..range.end.min((o + 1) * each)).for_each(|number| task(o, base, number - o * each));
        });
    });
    if segments > 1 {
        for (j, o) in out.iter_mut().enumerate() {
            let mut merged = Pairwise::new();
            (0..segments).for_each(|s| merged.push(partial[s * outputs + j], R::merge));
            *o = R::finish(merged.total(R::merge).expect("at least two segments"));
        }
    }
}

/// How many rows to take as one, where rows are short and follow each other in memory.
fn foldable(kept: &Axes<1>, reduced: &Axes<1>) -> Option<usize> {
    let (inner, rows) = (kept.0.last()?, reduced.0.last()?);
    let q = FOLDED / inner.len;
    let contiguous = inner.strides == [1] && rows.strides == [inner.len as isize];
    (contiguous && q >= 2 && rows.len >= 8 * q).then_some(q)
}

/// Short rows: `q` of them are taken as one long row, whose results are merged at the end.
fn folded<T, R>(data: &[T], offset: isize, kept: Axes<1>, reduced: Axes<1>, q: usize, out: &mut [R::Out])
where
    T: Copy + Send + Sync,
    R: Reducer<T>,
{
    let (mut outer, mut rest) = (kept.clone(), reduced);
    let (inner, rows) = (outer.pop_inner(), rest.pop_inner());
    let (n, wide, outputs) = (inner.len, q * inner.len, outer.len());
    let with = |axes: &Axes<1>, len, stride| {
        Axes::new(axes.0.iter().map(|a| (a.len, a.strides)).chain([(len, [stride])]))
    };
    let mut acc = filled(R::EMPTY, outputs * wide);
    let whole = with(&rest, rows.len / q, wide as isize);
    columns::<T, Partial<R>>(data, offset, with(&outer, wide, 1), &whole, &mut acc);
    let left = rows.len % q;
    let mut tail = filled(R::EMPTY, if left > 0 { out.len() } else { 0 });
    if left > 0 {
        let after = offset + (rows.len - left) as isize * n as isize;
        columns::<T, Partial<R>>(data, after, kept, &with(&rest, left, n as isize), &mut tail);
    }
    for (i, o) in out.iter_mut().enumerate() {
        let group = |g| acc[i / n * wide + g * n + i % n];
        let merged = (1..q).fold(group(0), |a, g| R::merge(a, group(g)));
        *o = R::finish(if left > 0 { R::merge(merged, tail[i]) } else { merged });
    }
}

/// A reducer stopped before its last step.
struct Partial<R>(PhantomData<R>);

impl<T, R: Reducer<T>> Reducer<T> for Partial<R> {
    type Acc = R::Acc;
    type Out = R::Acc;
    const EMPTY: R::Acc = R::EMPTY;
    #[inline(always)]
    fn lift(x: T) -> R::Acc {
        R::lift(x)
    }
    #[inline(always)]
    fn merge(a: R::Acc, b: R::Acc) -> R::Acc {
        R::merge(a, b)
    }
    #[inline(always)]
    fn finish(acc: R::Acc) -> R::Acc {
        acc
    }
}

vectorised! {
    fn add_row<T: Copy, R: Reducer<T>>(acc: &mut [R::Acc], row: &[T]) {
        for (a, &x) in acc.iter_mut().zip(row) {
            *a = R::merge(*a, R::lift(x));
        }
    }
}

#[cfg(test)]
mod tests;
