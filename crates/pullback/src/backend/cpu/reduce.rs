//! Reductions of a view over some of its axes.
//!
//! Every order of operations below depends on the shape and the strides alone, so the number of threads does
//! not change the bits. A long sum is cut into blocks, a block into lanes, and the partial results are
//! merged pairwise: the rounding error grows with the logarithm of the length.

pub(crate) mod extreme;
pub(crate) mod moments;
mod reducers;

pub(crate) use reducers::{All, Any, Max, Min, Prod, Reducer, Sum};

use super::movement::Target;
use super::parallel;
use super::strided::{Axes, Axis};
use super::vectorised::vectorised;
use super::view::View;
use smallvec::SmallVec;
use std::marker::PhantomData;
use std::ops::Range;

/// Elements a thread should have before another one is worth waking.
const GRAIN: usize = 1 << 16;
/// Elements reduced in lanes before the result is put away.
pub(super) const BLOCK: usize = 4096;
/// Independent accumulators: enough to hide the latency of an addition.
const LANES: usize = 32;
/// Outputs accumulated together when whole rows are added to each other.
const TILE: usize = 256;
/// Rows added to each other before the result is put away.
const ROWS: usize = 128;
/// Rows that one task adds; more than these may be shared between threads.
const SEGMENT: usize = 128 * ROWS;

/// Reduces `x` over `axes`; the output has the other axes, in their order.
pub(crate) fn reduce<T, R>(x: View<T>, axes: &[usize], out: &mut [R::Out])
where
    T: Copy + Send + Sync,
    R: Reducer<T>,
{
    let (kept, mut reduced) = partition(x, axes);
    assert_eq!(out.len(), kept.iter().map(|a| a.0).product(), "reduce: the output has the axes that stay");
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

/// The elements that go into one output, in blocks of at most [`BLOCK`].
#[derive(Clone, Copy)]
pub(super) struct Terms<'a, T> {
    data: &'a [T],
    axes: &'a Axes<1>,
    len: usize,
    /// The elements that blocks are cut from: all, or a contiguous run if runs are long enough to use in place.
    run: usize,
}

impl<'a, T: Copy> Terms<'a, T> {
    pub fn new(data: &'a [T], axes: &'a Axes<1>) -> Self {
        let len = axes.len();
        let run = match axes.0.last() {
            Some(a) if a.strides == [1] && a.len >= BLOCK / 8 => a.len,
            _ => len,
        };
        Terms { data, axes, len, run }
    }

    pub fn blocks(&self) -> usize {
        if self.len == 0 { 0 } else { self.len / self.run * self.run.div_ceil(BLOCK) }
    }

    /// The positions of the terms in the block with this number.
    pub fn range(&self, number: usize) -> Range<usize> {
        let each = self.run.div_ceil(BLOCK);
        let (run, start) = (number / each * self.run, number % each * BLOCK);
        run + start..run + (start + BLOCK).min(self.run)
    }

    /// The block with this number of the terms that start at `offset`: in place if they are contiguous, else
    /// copied to `scratch`.
    pub fn block<'s>(&self, offset: isize, number: usize, scratch: &'s mut Vec<T>) -> &'s [T]
    where
        'a: 's,
    {
        let Range { start, end } = self.range(number);
        let from = |position: usize| {
            let (mut rest, mut at) = (position, offset);
            for axis in self.axes.0.iter().rev() {
                at += (rest % axis.len) as isize * axis.strides[0];
                rest /= axis.len;
            }
            at as usize
        };
        match self.axes.0.as_slice() {
            [] => &self.data[offset as usize..offset as usize + 1],
            [.., inner] if inner.strides == [1] && self.run == inner.len => {
                let from = from(start);
                &self.data[from..from + (end - start)]
            }
            [.., inner] => {
                scratch.clear();
                let mut position = start;
                while position < end {
                    let from = from(position);
                    let count = (inner.len - position % inner.len).min(end - position);
                    match inner.strides[0] {
                        1 => scratch.extend_from_slice(&self.data[from..from + count]),
                        s => {
                            let at = |i: isize| (from as isize + i * s) as usize;
                            scratch.extend((0..count as isize).map(|i| self.data[at(i)]));
                        }
                    }
                    position += count;
                }
                scratch
            }
        }
    }
}

/// Merges the results of blocks pairwise, as they come.
///
/// Entry `level` stands for `2^level` blocks; two of a level make one of the next, as carries do.
pub(super) struct Pairwise<A>(SmallVec<[(u32, A); 24]>);

impl<A: Copy> Pairwise<A> {
    pub fn new() -> Self {
        Pairwise(SmallVec::new())
    }

    #[inline(always)]
    pub fn push(&mut self, mut acc: A, merge: impl Fn(A, A) -> A) {
        let mut level = 0;
        while let Some(&(top, earlier)) = self.0.last().filter(|(top, _)| *top == level) {
            acc = merge(earlier, acc);
            level = top + 1;
            self.0.pop();
        }
        self.0.push((level, acc));
    }

    #[inline(always)]
    pub fn total(self, merge: impl Fn(A, A) -> A) -> Option<A> {
        self.0.into_iter().rev().map(|(_, acc)| acc).reduce(|later, earlier| merge(earlier, later))
    }
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
        let mut partial = vec![R::EMPTY; blocks];
        kept.walk(0..out.len(), |o, [at]| {
            let parts = parallel::Disjoint::new(&mut partial);
            parallel::split(blocks, GRAIN / BLOCK, 1, |range| {
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
    let target = Target::new(out);
    parallel::split(out.len(), GRAIN.div_ceil(terms.len), 1, |range| {
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
    pub(super) fn block<T: Copy, R: Reducer<T>>(x: &[T]) -> R::Acc {
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
        for (a, &x) in acc.iter_mut().zip(tail) {
            *a = R::merge(*a, R::lift(x));
        }
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
    let mut partial = vec![R::EMPTY; if segments > 1 { segments * outputs } else { 0 }];
    let (target, partials) = (Target::new(out), Target::new(&mut partial));
    let task = |o: usize, base: isize, number: usize| {
        let (segment, tile) = (number / tiles, number % tiles);
        let start = tile * TILE;
        let width = TILE.min(inner.len - start);
        let mut total = [R::EMPTY; TILE];
        let end = ((segment + 1) * SEGMENT).min(count);
        for first in (segment * SEGMENT..end).step_by(ROWS) {
            let mut sums = [R::EMPTY; TILE];
            reduced.walk(first..(first + ROWS).min(end), |_, [at]| {
                let from = (offset + base + at) as usize + start;
                add_row::<T, R>(&mut sums[..width], &data[from..from + width]);
            });
            for (t, &s) in total[..width].iter_mut().zip(&sums[..width]) {
                *t = R::merge(*t, s);
            }
        }
        let place = o * inner.len + start;
        for (j, &t) in total[..width].iter().enumerate() {
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
            let merged = (0..segments).map(|s| partial[s * outputs + j]).reduce(R::merge);
            *o = R::finish(merged.expect("at least two segments"));
        }
    }
}

/// How many rows to take as one, where rows are short and follow each other in memory.
fn foldable(kept: &Axes<1>, reduced: &Axes<1>) -> Option<usize> {
    let (inner, rows) = (kept.0.last()?, reduced.0.last()?);
    let q = TILE / 2 / inner.len;
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
    let mut acc = vec![R::EMPTY; outputs * wide];
    let whole = with(&rest, rows.len / q, wide as isize);
    columns::<T, Partial<R>>(data, offset, with(&outer, wide, 1), &whole, &mut acc);
    let left = rows.len % q;
    let mut tail = vec![R::EMPTY; if left > 0 { out.len() } else { 0 }];
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
