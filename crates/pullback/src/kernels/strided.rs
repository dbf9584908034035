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
        let Some((inner, outer)) = self.0.split_last() else {
            return range.for_each(|position| f(position, [0; N]));
        };
        if inner.len == 0 {
            return;
        }
        let mut index: SmallVec<[usize; 6]> = SmallVec::from_elem(0, outer.len());
        let mut at = [0isize; N];
        let (mut first, mut rest) = (range.start % inner.len, range.start / inner.len);
        step(&mut at, inner, first as isize);
        for (i, axis) in index.iter_mut().zip(outer).rev() {
            if axis.len == 0 {
                return;
            }
            *i = rest % axis.len;
            rest /= axis.len;
            step(&mut at, axis, *i as isize);
        }
        let mut position = range.start;
        while position < range.end {
            // To the end of the innermost axis, then back to its start and one further along the others.
            let end = range.end.min(position + inner.len - first);
            while position < end {
                f(position, at);
                step(&mut at, inner, 1);
                position += 1;
            }
            first = 0;
            step(&mut at, inner, -(inner.len as isize));
            for (i, axis) in index.iter_mut().zip(outer).rev() {
                *i += 1;
                step(&mut at, axis, 1);
                if *i < axis.len {
                    break;
                }
                *i = 0;
                step(&mut at, axis, -(axis.len as isize));
            }
        }
    }
}

/// Moves the offsets by a number of steps along an axis.
#[inline(always)]
fn step<const N: usize>(at: &mut [isize; N], axis: &Axis<N>, steps: isize) {
    at.iter_mut().zip(axis.strides).for_each(|(at, stride)| *at += steps * stride);
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
