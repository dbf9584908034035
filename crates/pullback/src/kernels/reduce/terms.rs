//! The terms of one output cut into blocks, and the pairwise merging of what the blocks give.

use super::super::strided::Axes;
use smallvec::SmallVec;
use std::ops::Range;

/// Elements reduced in lanes before the result is put away.
pub(super) const BLOCK: usize = 4096;

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

    /// How many elements there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// How many blocks they make.
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
            if position == 0 {
                return offset as usize;
            }
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
