//! Reads a view in row-major order, a contiguous tile at a time.

use super::view::View;
use smallvec::SmallVec;
use std::mem::MaybeUninit;
use std::ops::Range;

/// How many elements a kernel works on at once: small enough for its buffers to stay in the first cache.
pub(crate) const TILE: usize = 512;

/// Room for a tile that has to be gathered.
pub(crate) type Buffer<T> = [MaybeUninit<T>; TILE];

/// An empty buffer.
#[inline(always)]
pub(crate) fn buffer<T>() -> Buffer<T> {
    [const { MaybeUninit::uninit() }; TILE]
}

/// One axis of a walk: its length, its stride, and where the walk stands on it.
#[derive(Clone, Copy)]
struct Axis {
    len: usize,
    stride: isize,
    at: usize,
}

/// The elements of a view in row-major order, from some index on.
///
/// Elements without gaps are handed out as they lie; others are gathered into a buffer first. So a kernel needs one loop body, over
/// slices, whatever the strides of its operands.
pub(crate) enum Tiles<'a, T> {
    Contiguous(&'a [T]),
    /// One element over and over: as many copies as a tile needs.
    Constant(&'a [T]),
    Strided(Walk<'a, T>),
}

/// A view that has to be gathered.
pub(crate) struct Walk<'a, T> {
    data: &'a [T],
    /// Where in the data the walk stands: always an element of the view, until its end.
    position: isize,
    /// Outermost first; adjacent axes that one stride can step through are one axis.
    axes: SmallVec<[Axis; 6]>,
    buffer: &'a mut Buffer<T>,
    /// How many elements are still to come.
    left: usize,
}

impl<'a, T: Copy> Tiles<'a, T> {
    /// Reads the given elements of a view that is not empty, counted in row-major order.
    pub fn new(view: View<'a, T>, range: Range<usize>, buffer: &'a mut Buffer<T>) -> Self {
        if let Some(slice) = view.as_slice() {
            return Tiles::Contiguous(&slice[range]);
        }
        assert!(range.end <= view.len(), "a view has fewer elements than its result");
        if view.shape.iter().zip(view.strides).all(|(&len, &stride)| stride == 0 || len == 1) {
            let copies = &mut buffer[..range.len().min(TILE)];
            copies.fill(MaybeUninit::new(view.data[view.offset]));
            // SAFETY: all of them were just written.
            return Tiles::Constant(unsafe {
                std::slice::from_raw_parts(copies.as_ptr().cast(), copies.len())
            });
        }
        let mut axes: SmallVec<[Axis; 6]> = SmallVec::new();
        for (&len, &stride) in view.shape.iter().zip(view.strides).filter(|&(&len, _)| len != 1) {
            match axes.last_mut() {
                Some(last) if last.stride == stride * len as isize => {
                    *last = Axis { len: last.len * len, stride, at: 0 };
                }
                _ => axes.push(Axis { len, stride, at: 0 }),
            }
        }
        let mut position = view.offset as isize;
        let mut rest = range.start;
        for axis in axes.iter_mut().rev() {
            axis.at = rest % axis.len;
            rest /= axis.len;
            position += axis.at as isize * axis.stride;
        }
        Tiles::Strided(Walk { data: view.data, position, axes, buffer, left: range.len() })
    }

    /// The next `n` elements, at most a tile.
    #[inline]
    pub fn next(&mut self, n: usize) -> &[T] {
        match self {
            Tiles::Contiguous(rest) => {
                let (tile, after) = rest.split_at(n);
                *rest = after;
                tile
            }
            Tiles::Constant(copies) => &copies[..n],
            Tiles::Strided(walk) => walk.next(n),
        }
    }
}

impl<T: Copy> Walk<'_, T> {
    fn next(&mut self, n: usize) -> &[T] {
        assert!(n <= self.left && n <= TILE);
        self.left -= n;
        let mut done = 0;
        while done < n {
            done += self.gather_run(done, n - done);
        }
        // SAFETY: the first `n` elements were just written.
        unsafe { std::slice::from_raw_parts(self.buffer.as_ptr().cast(), n) }
    }

    /// Copies what is left of the innermost axis, at most `most` elements, to the given place of the buffer.
    fn gather_run(&mut self, to: usize, most: usize) -> usize {
        let inner = self.axes.last_mut().expect("a view without axes is contiguous");
        let n = most.min(inner.len - inner.at);
        let target = &mut self.buffer[to..to + n];
        let (data, start, stride) = (self.data, self.position, inner.stride);
        match stride {
            0 => target.fill(MaybeUninit::new(data[start as usize])),
            1 => {
                let source = &data[start as usize..start as usize + n];
                for (t, &x) in target.iter_mut().zip(source) {
                    t.write(x);
                }
            }
            _ => {
                for (k, t) in target.iter_mut().enumerate() {
                    // SAFETY: an element of the view, and `View::new` checked that those are in bounds.
                    t.write(unsafe { *data.get_unchecked((start + k as isize * stride) as usize) });
                }
            }
        }
        inner.at += n;
        self.position += n as isize * stride;
        self.carry();
        n
    }

    /// Steps to the next row where an axis has come to its end.
    fn carry(&mut self) {
        for k in (0..self.axes.len()).rev() {
            let axis = &mut self.axes[k];
            if axis.at < axis.len {
                return;
            }
            self.position -= axis.len as isize * axis.stride;
            axis.at = 0;
            if k > 0 {
                self.axes[k - 1].at += 1;
                self.position += self.axes[k - 1].stride;
            }
        }
    }
}
