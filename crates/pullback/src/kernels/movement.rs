//! Elements from one place to another: copies between strided arrays.

pub(crate) mod index;
pub(crate) mod put;
mod transpose;

use super::parallel;
use super::strided::{Axes, Axis, row_major};
use super::view::View;
use std::mem::MaybeUninit;
use transpose::{Transpose, Word, transpose};

/// Elements a thread should have before another one is worth waking.
const GRAIN: usize = 1 << 17;
/// Side of the square tiles in which transposes are copied: a row of one is a few cache lines.
const TILE: usize = 32;

/// A buffer that threads write to at disjoint offsets.
#[derive(Clone, Copy)]
pub(crate) struct Target<T>(*mut T);

// SAFETY: whoever writes promises in `Target::at` that no other thread uses the same offset.
unsafe impl<T: Send> Sync for Target<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Send for Target<T> {}

impl<T> Target<T> {
    pub fn new(slice: &mut [T]) -> Self {
        Target(slice.as_mut_ptr())
    }

    /// The buffer that begins here.
    pub fn from(first: *mut T) -> Self {
        Target(first)
    }

    /// A pointer to the element at an offset.
    ///
    /// # Safety
    /// The offset is inside the slice, and no other thread uses it.
    #[inline(always)]
    pub unsafe fn at(self, offset: isize) -> *mut T {
        // SAFETY: in bounds by the caller's promise.
        unsafe { self.0.offset(offset) }
    }
}

/// Copies a view to a contiguous array.
pub(crate) fn copy<T: Copy + Send + Sync>(x: View<T>, out: &mut [T]) {
    assert_eq!(x.len(), out.len(), "copy: the output has the length of the view");
    copy_into(x, out, 0, &row_major(x.shape));
}

/// Copies a view into the strided region of `out` that starts at `out_offset` and has the view's shape.
///
/// No two elements of the region may be the same place: panics if an axis longer than 1 has stride 0.
pub(crate) fn copy_into<T: Copy + Send + Sync>(
    x: View<T>,
    out: &mut [T],
    out_offset: usize,
    out_strides: &[isize],
) {
    let region = View::new(&*out, out_offset, x.shape, out_strides);
    if region.len() == 0 {
        return;
    }
    assert!(
        x.shape.iter().zip(out_strides).all(|(&n, &s)| n == 1 || s != 0),
        "copy_into: a region cannot be broadcast"
    );
    let mut axes =
        Axes::new(x.shape.iter().zip(x.strides).zip(out_strides).map(|((&n, &s), &o)| (n, [s, o])));
    let inner = axes.pop_inner();
    // The axis along which the source is contiguous, if that is not the inner one: then copy by tiles.
    let across = match inner.strides {
        [1 | 0, 1] => None,
        _ => axes.0.iter().position(|a| a.strides[0].abs() == 1 && a.len >= 4),
    };
    let across = across.map(|k| axes.0.remove(k));
    let rows = across.unwrap_or(Axis { len: 1, strides: [0; 2] });
    let target = Target::new(out);
    let piece = |at: [isize; 2], rows: Axis<2>, columns: Axis<2>| {
        // SAFETY: `View::new` checked every index of both arrays; pieces are disjoint in the output.
        unsafe {
            let from = x.data.as_ptr().offset(x.offset as isize + at[0]);
            let to = target.at(out_offset as isize + at[1]);
            if across.is_some() { copy_tiles(from, to, rows, columns) } else { copy_row(from, to, columns) }
        }
    };
    if !axes.0.is_empty() {
        let size = rows.len * inner.len;
        return parallel::split(axes.len(), GRAIN.div_ceil(size), 1, |part| {
            axes.walk(part, |_, at| piece(at, rows, inner));
        });
    }
    // A single block: cut its longer side.
    let by_rows = rows.len > inner.len;
    let (cut, other) = if by_rows { (rows, inner) } else { (inner, rows) };
    parallel::split(cut.len, GRAIN.div_ceil(other.len), TILE, |part| {
        let at = cut.strides.map(|s| part.start as isize * s);
        let cut = Axis { len: part.len(), ..cut };
        if by_rows { piece(at, cut, other) } else { piece(at, other, cut) }
    });
}

/// Copies lines, each with `length` elements side by side, to the columns of another matrix, whose rows have steps of `row`.
///
/// # Safety
/// All elements are in bounds in both arrays, which do not overlap.
pub(crate) unsafe fn turn<T: Copy>(
    from: *const T,
    line: isize,
    lines: usize,
    length: usize,
    to: *mut T,
    row: isize,
) {
    let (rows, columns) = (Axis { len: length, strides: [1, row] }, Axis { len: lines, strides: [line, 1] });
    // SAFETY: the caller's promise.
    unsafe { copy_tiles(from, to, rows, columns) }
}

/// Copies one axis.
///
/// # Safety
/// Every element of the axis is in bounds in both arrays, which do not overlap.
#[inline]
unsafe fn copy_row<T: Copy>(from: *const T, to: *mut T, axis: Axis<2>) {
    // SAFETY: the caller's promise.
    unsafe {
        match axis.strides {
            [1, 1] => copy_bytes(from.cast(), to.cast(), axis.len * size_of::<T>()),
            [0, 1] => {
                let value = *from;
                std::slice::from_raw_parts_mut(to.cast::<MaybeUninit<T>>(), axis.len)
                    .fill(MaybeUninit::new(value));
            }
            [s, 1] => (0..axis.len).for_each(|i| *to.add(i) = *from.offset(i as isize * s)),
            [s, o] => (0..axis.len as isize).for_each(|i| *to.offset(i * o) = *from.offset(i * s)),
        }
    }
}

/// Copies elements that lie side by side, of which there are few.
///
/// # Safety
/// The elements are in bounds in both arrays, which do not overlap.
#[inline(always)]
pub(super) unsafe fn copy_short<T: Copy>(from: *const T, to: *mut T, n: usize) {
    // SAFETY: the caller's promise.
    unsafe { copy_bytes(from.cast(), to.cast(), n * size_of::<T>()) }
}

/// Copies bytes that lie side by side. Short rows are many, and a call would take longer than they do.
///
/// # Safety
/// The bytes are in bounds in both arrays, which do not overlap.
#[inline(always)]
unsafe fn copy_bytes(from: *const MaybeUninit<u8>, to: *mut MaybeUninit<u8>, n: usize) {
    /// The first and the last bytes, which together are all.
    ///
    /// # Safety
    /// As for `copy_bytes`, and there are at least `N` bytes.
    #[inline(always)]
    unsafe fn ends<const N: usize>(from: *const MaybeUninit<u8>, to: *mut MaybeUninit<u8>, n: usize) {
        // SAFETY: the caller's promise.
        unsafe {
            std::ptr::copy_nonoverlapping(from, to, N);
            std::ptr::copy_nonoverlapping(from.add(n - N), to.add(n - N), N);
        }
    }
    // SAFETY: the caller's promise, and the cases have as many bytes as they name.
    unsafe {
        match n {
            16..=32 => ends::<16>(from, to, n),
            33..=64 => ends::<32>(from, to, n),
            65..=128 => ends::<64>(from, to, n),
            _ => std::ptr::copy_nonoverlapping(from, to, n),
        }
    }
}

/// Copies two axes in square tiles, of which the source is contiguous (forwards or backwards) along the rows.
///
/// # Safety
/// As for [`copy_row`], for every row.
unsafe fn copy_tiles<T: Copy>(from: *const T, to: *mut T, rows: Axis<2>, columns: Axis<2>) {
    /// # Safety
    /// As for `copy_tiles`.
    unsafe fn by_words<W: Word>(from: *const W, to: *mut W, rows: Axis<2>, columns: Axis<2>) {
        let (lines, line, length, row) = (columns.len, columns.strides[0], rows.len, rows.strides[1]);
        // SAFETY: the caller's promise.
        unsafe { transpose(Transpose { from, line, lines, length, to, row }) }
    }
    // SAFETY: the caller's promise. Numbers of these sizes are moved by their bits.
    unsafe {
        match (rows.strides[0], columns.strides[1], size_of::<T>(), align_of::<T>()) {
            (1, 1, 4, 4) => by_words::<u32>(from.cast(), to.cast(), rows, columns),
            (1, 1, 8, 8) => by_words::<u64>(from.cast(), to.cast(), rows, columns),
            _ => copy_by_buffer(from, to, rows, columns),
        }
    }
}

/// The same in any direction and for any size of elements. A tile is read along the source and written along the output. It passes
/// through a buffer, because strides that are a power of two put the lines of one array all in the same few places of the cache.
///
/// # Safety
/// As for [`copy_tiles`].
unsafe fn copy_by_buffer<T: Copy>(from: *const T, to: *mut T, rows: Axis<2>, columns: Axis<2>) {
    let mut buffer = [[MaybeUninit::<T>::uninit(); TILE]; TILE];
    for row in (0..rows.len).step_by(TILE) {
        let height = TILE.min(rows.len - row);
        for column in (0..columns.len).step_by(TILE) {
            let width = TILE.min(columns.len - column);
            let at = |k: usize, r: usize, c: usize| {
                (row + r) as isize * rows.strides[k] + (column + c) as isize * columns.strides[k]
            };
            // SAFETY: the caller's promise; the part of the buffer that is read was written just before.
            unsafe {
                for c in 0..width {
                    let line = from.offset(at(0, 0, c));
                    for (r, line_buffer) in buffer.iter_mut().enumerate().take(height) {
                        line_buffer[c].write(*line.offset(r as isize * rows.strides[0]));
                    }
                }
                for (r, line) in buffer.iter().enumerate().take(height) {
                    let axis = Axis { len: width, strides: [1, columns.strides[1]] };
                    copy_row(line.as_ptr().cast::<T>(), to.offset(at(1, r, 0)), axis);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::{Dice, Strided, cases, indices, shape};
    use super::*;

    fn naive(x: &Strided<f32>) -> Vec<f32> {
        let mut out = Vec::new();
        indices(&x.shape, |i| out.push(x.at(i)));
        out
    }

    #[test]
    fn copies_of_random_layouts() {
        let mut r = Dice(1);
        for case in cases(400) {
            let shape = shape(&mut r, case % 5, [3, 7, 40][case % 3].min(if case % 5 > 3 { 9 } else { 40 }));
            let x = Strided::random(&mut r, &shape, |r| r.unit() as f32);
            let mut out = vec![f32::NAN; x.view().len()];
            copy(x.view(), &mut out);
            assert_eq!(out, naive(&x), "{x:?}");
        }
    }

    #[test]
    fn large_transposes_are_split_right() {
        let n = 700;
        let data: Vec<f64> = (0..n * (n + 1)).map(|i| i as f64).collect();
        for (shape, strides) in [([n, n + 1], [1, n as isize]), ([n + 1, n], [1, n as isize + 1])] {
            let mut out = vec![0.0; data.len()];
            copy(View::new(&data, 0, &shape, &strides), &mut out);
            let right = (0..shape[0] * shape[1])
                .all(|i| out[i] == data[i / shape[1] + (i % shape[1]) * strides[1] as usize]);
            assert!(right, "{shape:?}");
        }
    }

    #[test]
    fn regions_are_written_and_nothing_else() {
        let mut out = vec![0; 12];
        copy_into(View::new(&[1, 2, 3, 4], 0, &[2, 2], &[2, 1]), &mut out, 7, &[-4, 1]);
        assert_eq!(out, [0, 0, 0, 3, 4, 0, 0, 1, 2, 0, 0, 0]);
    }

    #[test]
    #[should_panic(expected = "outside")]
    fn a_region_outside_the_output_is_refused() {
        copy_into(View::new(&[1, 2], 0, &[2], &[1]), &mut [0, 0], 1, &[1]);
    }

    #[test]
    fn empty_copies_do_nothing() {
        copy(View::<f32>::new(&[], 0, &[3, 0], &[0, 1]), &mut []);
    }
}
