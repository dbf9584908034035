//! Reading inputs that do not lie as they are needed.

use super::Real;
use super::lower::Load;
use smallvec::SmallVec;

/// An input as a load reads it: where it begins, and the length and step of each axis.
pub(super) struct Bound {
    start: *const u8,
    axes: SmallVec<[(usize, isize); 6]>,
    truth: bool,
}

impl Bound {
    /// `strides` are those of the input's own axes, in elements.
    pub fn new(load: &Load, start: *const u8, strides: &[isize]) -> Bound {
        let mut axes: SmallVec<[(usize, isize); 6]> = SmallVec::new();
        for &(n, axis) in &load.view.axes {
            let stride = axis.map_or(0, |k| strides[k]);
            match axes.last_mut() {
                Some(outer) if outer.1 == stride * n as isize => *outer = (outer.0 * n, stride),
                _ => axes.push((n, stride)),
            }
        }
        Bound { start, axes, truth: load.truth }
    }

    /// The elements from `at` on, if they lie without gaps and need no conversion.
    pub fn in_place<F: Real>(&self, at: usize) -> Option<*const F> {
        let flat = match self.axes.as_slice() {
            [] => true,
            [(_, step)] => *step == 1,
            _ => false,
        };
        // SAFETY: `at` is an element of the input.
        (flat && !self.truth).then(|| unsafe { self.start.cast::<F>().add(at) })
    }

    /// Copies `out.len()` elements, counted in row-major order, from `at` on.
    ///
    /// # Safety
    /// The input is still there, and has these elements.
    pub unsafe fn gather<F: Real>(&self, at: usize, out: &mut [F]) {
        // SAFETY: by the caller's promise; truth values are stored as bytes.
        unsafe {
            match self.truth {
                true => self.copy::<u8, F>(at, out, |v| if v == 0 { F::ZERO } else { F::ONE }),
                false => self.copy::<F, F>(at, out, |v| v),
            }
        }
    }

    #[inline(always)]
    unsafe fn copy<T: Copy, F: Real>(&self, at: usize, out: &mut [F], convert: impl Fn(T) -> F) {
        let start = self.start.cast::<T>();
        let Some((&(len, step), outer)) = self.axes.split_last() else {
            // SAFETY: an input has at least one element.
            return out.fill(convert(unsafe { *start }));
        };
        let (mut row, mut column) = (at / len, at % len);
        let mut rest = out;
        while !rest.is_empty() {
            let mut offset = column as isize * step;
            let mut index = row;
            for &(len, step) in outer.iter().rev() {
                offset += (index % len) as isize * step;
                index /= len;
            }
            let (now, later) = rest.split_at_mut((len - column).min(rest.len()));
            // SAFETY: an element of the input by its index.
            let from = unsafe { start.offset(offset) };
            match step {
                // SAFETY: as above.
                0 => now.fill(convert(unsafe { *from })),
                // SAFETY: as above; the elements follow each other.
                1 => unsafe {
                    let from = std::slice::from_raw_parts(from, now.len());
                    now.iter_mut().zip(from).for_each(|(out, &v)| *out = convert(v));
                },
                // SAFETY: as above.
                _ => now.iter_mut().enumerate().for_each(|(k, out)| unsafe {
                    *out = convert(*from.offset(k as isize * step));
                }),
            }
            rest = later;
            (row, column) = (row + 1, 0);
        }
    }
}
