//! Copies of some channels with zeros around them, or without what no window reads.

use super::super::movement;
use super::Array;

/// A box of places, some of which may be outside of an array, and how it lies in memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Frame {
    /// The place, in the array, of the first element; negative in front of it.
    pub start: [isize; 3],
    pub len: [usize; 3],
    /// The lengths of the array.
    pub extent: [usize; 3],
    /// Every so many elements of the last axis lie side by side, and the others after them.
    pub apart: usize,
}

impl Frame {
    /// Whether all of it is inside of the array.
    pub fn is_inside(&self) -> bool {
        (0..3).all(|a| self.start[a] >= 0 && self.start[a] as usize + self.len[a] <= self.extent[a])
    }

    /// Elements of a row, whose parts that lie side by side are of one length.
    fn row(&self) -> usize {
        self.len[2].next_multiple_of(self.apart)
    }

    /// Elements of a channel.
    pub fn size(&self) -> usize {
        self.len[0] * self.len[1] * self.row()
    }

    /// Steps along the axes of a copy; that of the last one is for a whole round of elements that lie apart.
    pub fn strides(&self) -> [isize; 3] {
        [(self.len[1] * self.row()) as isize, self.row() as isize, 1]
    }

    /// Where an element of the last axis lies in its row.
    pub fn column(&self, i: usize) -> isize {
        (i % self.apart * (self.row() / self.apart) + i / self.apart) as isize
    }

    /// Copies channels of an array, one after the other.
    ///
    /// # Safety
    /// The channels, `stride` apart from `first` on, are in bounds with the given steps, and the copy has memory for them.
    pub unsafe fn copy<T: Copy + Default>(
        &self,
        first: *const T,
        stride: isize,
        x: &Array<T>,
        channels: usize,
        to: *mut T,
    ) {
        let row = self.row();
        // The part of an axis that is in the array: elements to skip, and elements.
        let part = |a: usize| {
            let skip = (-self.start[a]).clamp(0, self.len[a] as isize) as usize;
            let end =
                (self.extent[a] as isize - self.start[a]).clamp(skip as isize, self.len[a] as isize) as usize;
            skip..end
        };
        let parts = [part(0), part(1), part(2)];
        let mut to = to;
        for c in 0..channels as isize {
            for i in 0..self.len[0] {
                for j in 0..self.len[1] {
                    // SAFETY: as many rows as the copy has, each with its elements inside of the array.
                    unsafe {
                        let out = std::slice::from_raw_parts_mut(to, row);
                        to = to.add(row);
                        if !parts[0].contains(&i) || !parts[1].contains(&j) || parts[2].is_empty() {
                            out.fill(T::default());
                            continue;
                        }
                        let place = |a: usize, k: usize| (self.start[a] + k as isize) * x.inner[a];
                        let from =
                            first.offset(c * stride + place(0, i) + place(1, j) + place(2, parts[2].start));
                        if self.apart == 1 {
                            zero_ends(out, parts[2].start, row - parts[2].end);
                            let out = &mut out[parts[2].clone()];
                            match x.inner[2] {
                                1 => movement::copy_short(from, out.as_mut_ptr(), out.len()),
                                s => out
                                    .iter_mut()
                                    .enumerate()
                                    .for_each(|(k, o)| *o = *from.offset(k as isize * s)),
                            }
                        } else {
                            out.fill(T::default());
                            for (k, i) in parts[2].clone().enumerate() {
                                out[self.column(i) as usize] = *from.offset(k as isize * x.inner[2]);
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Zeros at both ends of a row whose middle is written next. Most are few, and as many at once as fit are faster than a loop.
#[inline(always)]
fn zero_ends<T: Copy + Default>(row: &mut [T], first: usize, last: usize) {
    const SHORT: usize = 4;
    let n = row.len();
    if n >= SHORT && first.max(last) <= SHORT {
        row[..SHORT].copy_from_slice(&[T::default(); SHORT]);
        row[n - SHORT..].copy_from_slice(&[T::default(); SHORT]);
    } else {
        row[..first].fill(T::default());
        row[n - last..].fill(T::default());
    }
}
