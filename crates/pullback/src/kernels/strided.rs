//! Walks over the elements of strided arrays, with axes merged where that changes nothing.

use smallvec::SmallVec;
use std::ops::Range;

/// One axis walked by `N` arrays at once: its length, and the step in each of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Axis<const N: usize> {
    pub len: usize,
    pub strides: [isize; N],
}

/// The axes of a walk, outermost first: none has length one, and no two neighbours could be a single axis.
#[derive(Clone, Debug)]
pub(super) struct Axes<const N: usize>(pub SmallVec<[Axis<N>; 6]>);

impl<const N: usize> Axes<N> {
    /// The walk over `(length, strides)`, outermost first, in row-major order.
    pub fn new(axes: impl IntoIterator<Item = (usize, [isize; N])>) -> Self {
        let mut merged: SmallVec<[Axis<N>; 6]> = SmallVec::new();
        for (len, strides) in axes.into_iter().filter(|&(len, _)| len != 1) {
            match merged.last_mut() {
                Some(outer) if (0..N).all(|k| outer.strides[k] == strides[k] * len as isize) => {
                    *outer = Axis { len: outer.len * len, strides };
                }
                _ => merged.push(Axis { len, strides }),
            }
        }
        Axes(merged)
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.0.iter().map(|a| a.len).product()
    }

    /// Takes the innermost axis off; a walk over a single element has one of length 1.
    pub fn pop_inner(&mut self) -> Axis<N> {
        self.0.pop().unwrap_or(Axis { len: 1, strides: [0; N] })
    }

    /// Calls `f` with the position and the offset in each array of the given elements, in row-major order.
    pub fn walk(&self, range: Range<usize>, mut f: impl FnMut(usize, [isize; N])) {
        let mut runs = Runs::new(&self.0, range);
        while let Some(Run { positions, mut at, strides }) = runs.next() {
            for position in positions {
                f(position, at);
                step(&mut at, strides, 1);
            }
        }
    }
}

/// Elements that follow each other along the innermost axis.
struct Run<const N: usize> {
    positions: Range<usize>,
    /// The offsets of the first one.
    at: [isize; N],
    strides: [isize; N],
}

/// The runs of a walk. They are found here, and not in [`Axes::walk`], so that the steps from one to the next are compiled once and not for each
/// `f`.
struct Runs<'a, const N: usize> {
    outer: &'a [Axis<N>],
    inner: Axis<N>,
    /// Where the walk stands on the outer axes.
    index: SmallVec<[usize; 6]>,
    /// The offsets of the first element of the present run's axis.
    base: [isize; N],
    /// Where on the innermost axis the next run starts.
    first: usize,
    left: Range<usize>,
}

impl<'a, const N: usize> Runs<'a, N> {
    #[inline(never)]
    fn new(axes: &'a [Axis<N>], mut left: Range<usize>) -> Self {
        let single = (Axis { len: usize::MAX, strides: [0; N] }, &[][..]);
        let (inner, outer) = axes.split_last().map_or(single, |(inner, outer)| (*inner, outer));
        if axes.iter().any(|axis| axis.len == 0) {
            left.end = left.start;
            return Runs { outer, inner, index: SmallVec::new(), base: [0; N], first: 0, left };
        }
        let mut index: SmallVec<[usize; 6]> = SmallVec::from_elem(0, outer.len());
        let mut base = [0isize; N];
        let (first, mut rest) = (left.start % inner.len, left.start / inner.len);
        for (i, axis) in index.iter_mut().zip(outer).rev() {
            *i = rest % axis.len;
            rest /= axis.len;
            step(&mut base, axis.strides, *i as isize);
        }
        Runs { outer, inner, index, base, first, left }
    }

    #[inline(never)]
    fn next(&mut self) -> Option<Run<N>> {
        if self.left.is_empty() {
            return None;
        }
        let mut at = self.base;
        step(&mut at, self.inner.strides, self.first as isize);
        let end = self.left.end.min(self.left.start.saturating_add(self.inner.len - self.first));
        let run = Run { positions: self.left.start..end, at, strides: self.inner.strides };
        (self.left.start, self.first) = (end, 0);
        for (i, axis) in self.index.iter_mut().zip(self.outer).rev() {
            *i += 1;
            step(&mut self.base, axis.strides, 1);
            if *i < axis.len {
                break;
            }
            step(&mut self.base, axis.strides, -(axis.len as isize));
            *i = 0;
        }
        Some(run)
    }
}

/// Moves by so many steps.
fn step<const N: usize>(at: &mut [isize; N], strides: [isize; N], steps: isize) {
    at.iter_mut().zip(strides).for_each(|(at, stride)| *at += stride * steps);
}

impl Axes<1> {
    /// The walk over one array.
    pub fn of(shape: &[usize], strides: &[isize]) -> Self {
        Axes::new(shape.iter().zip(strides).map(|(&n, &s)| (n, [s])))
    }
}

/// The strides of a contiguous row-major array.
pub(super) fn row_major(shape: &[usize]) -> SmallVec<[isize; 6]> {
    let mut strides: SmallVec<[isize; 6]> = SmallVec::from_elem(1, shape.len());
    for k in (1..shape.len()).rev() {
        strides[k - 1] = strides[k] * shape[k].max(1) as isize;
    }
    strides
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_merge_and_the_order_is_row_major() {
        let axes = Axes::of(&[2, 1, 3, 4], &[12, 99, 4, 1]);
        assert_eq!(axes.0.as_slice(), &[Axis { len: 24, strides: [1] }]);
        let axes = Axes::of(&[2, 3], &[1, 2]);
        let mut seen = Vec::new();
        axes.walk(1..5, |p, [at]| seen.push((p, at)));
        assert_eq!(seen, [(1, 2), (2, 4), (3, 1), (4, 3)]);
        let mut scalar = Vec::new();
        Axes::of(&[], &[]).walk(0..1, |p, [at]| scalar.push((p, at)));
        assert_eq!(scalar, [(0, 0)]);
        assert_eq!(row_major(&[2, 3, 4]).as_slice(), &[12, 4, 1]);
    }
}
