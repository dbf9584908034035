//! Reading inputs that do not lie as they are needed.

use super::Real;
use super::lower::Load;
use smallvec::SmallVec;
use std::cmp::Ordering;

/// An input as a load reads it.
pub(super) struct Bound {
    start: *const u8,
    /// The element at the first place, counted from the start; that place may have none.
    first: isize,
    axes: SmallVec<[Steps; 4]>,
    /// Some places have no element.
    padded: bool,
    /// What is at such places; they are left alone, if it is not said.
    fill: Option<f64>,
    truth: bool,
}

/// The length and the step of an axis, and which places of it have elements.
struct Steps {
    len: usize,
    step: isize,
    inside: (usize, usize),
}

impl Steps {
    fn has(&self, places: (usize, usize)) -> bool {
        self.inside.0 <= places.0 && places.1 <= self.inside.1
    }
}

impl Bound {
    /// `strides` are those of the input's own axes, in elements.
    pub fn new(load: &Load, start: *const u8, strides: &[isize]) -> Bound {
        let view = &load.view;
        let mut axes: SmallVec<[Steps; 4]> = SmallVec::new();
        let mut first: isize = view.fixed.iter().map(|&(axis, at)| at * strides[axis]).sum();
        for axis in &view.axes {
            let stride = axis.of.map_or(0, |k| strides[k]);
            first += axis.start * stride;
            let (n, step) = (axis.len, axis.step * stride);
            match axes.last_mut() {
                Some(outer) if outer.step == step * n as isize && axis.is_full() => {
                    let inside = (outer.inside.0 * n, outer.inside.1 * n);
                    *outer = Steps { len: outer.len * n, step, inside };
                }
                _ => axes.push(Steps { len: n, step, inside: axis.inside }),
            }
        }
        let fill = load.fills.then(|| view.fill.get());
        Bound { start, first, axes, padded: view.is_padded(), fill, truth: load.truth }
    }

    /// Where element `at` would be, if those of all `places` lie without gaps and need no conversion.
    pub fn in_place<F: Real>(&self, at: usize, places: (usize, usize)) -> Option<*const F> {
        let flat = match self.axes.as_slice() {
            [] => true,
            [axis] => axis.step == 1 && axis.has(places),
            _ => false,
        };
        (flat && !self.truth).then(|| self.start.cast::<F>().wrapping_offset(self.first).wrapping_add(at))
    }

    /// Copies `out.len()` elements, counted in row-major order, from `at` on.
    ///
    /// # Safety
    /// The input is still there, and has these elements.
    #[inline(never)]
    pub unsafe fn gather<F: Real>(&self, at: usize, out: &mut [F]) {
        // SAFETY: by the caller's promise; truth values are stored as bytes.
        unsafe {
            match (self.truth, self.padded) {
                (true, _) => self.copy::<u8, F, true>(at, out),
                (false, true) => self.copy::<F, F, true>(at, out),
                (false, false) => self.copy::<F, F, false>(at, out),
            }
        }
    }

    /// `PADDED` says that some places may have no element: rows are often so short that to ask costs more than to copy.
    #[inline(always)]
    unsafe fn copy<T: Stored<F>, F: Real, const PADDED: bool>(&self, at: usize, out: &mut [F]) {
        let start = self.start.cast::<T>().wrapping_offset(self.first);
        let Some((last, outer)) = self.axes.split_last() else {
            // SAFETY: an input has at least one element.
            return out.fill(unsafe { *start }.number());
        };
        let pad = |places: &mut [F]| {
            if let Some(fill) = self.fill {
                places.fill(F::from_f64(fill));
            }
        };
        let (len, step) = (last.len, last.step);
        let (row, mut column) = (at / len, at % len);
        let mut place = Home::new(outer, row);
        let mut rest = out;
        while !rest.is_empty() {
            if PADDED && let Some(k) = place.outside() {
                let (by, rows) = place.without(k);
                let n = (rows * len - column).min(rest.len());
                pad(&mut rest[..n]);
                (rest, column) = (&mut rest[n..], 0);
                place.next(k, by);
                continue;
            }
            // Whole rows that lie one step apart need not consider the other axes.
            let (apart, along) = place.run();
            let rows = match column {
                0 if along * len <= rest.len() => along,
                0 => (rest.len() / len).max(1),
                _ => 1,
            };
            let (now, later) = rest.split_at_mut((rows * len - column).min(rest.len()));
            let width = now.len().min(len);
            let clip = |place: usize| place.saturating_sub(column).min(width);
            let inside = if PADDED { clip(last.inside.0)..clip(last.inside.1) } else { 0..width };
            if PADDED && inside.len() < width {
                pad(now);
            }
            let from = start.wrapping_offset(place.offset + (column + inside.start) as isize * step);
            if !inside.is_empty() {
                let all = now.chunks_mut(len).map(|row| &mut row[inside.clone()]);
                let all = all.enumerate().map(|(k, row)| (from.wrapping_offset(k as isize * apart), row));
                match step {
                    // SAFETY: an element of the input by its index.
                    0 => all.for_each(|(from, row)| row.fill(unsafe { *from }.number())),
                    // SAFETY: as above; the elements follow each other.
                    1 => all.for_each(|(from, row)| unsafe { T::numbers(from, row) }),
                    _ => all.for_each(|(from, row)| {
                        let from = |k: usize| from.wrapping_offset(k as isize * step);
                        // SAFETY: as above.
                        row.iter_mut().enumerate().for_each(|(k, out)| *out = unsafe { *from(k) }.number());
                    }),
                }
            }
            (rest, column) = (later, 0);
            place.next(outer.len().saturating_sub(1), rows);
        }
    }
}

/// What an element of an input is stored as.
trait Stored<F>: Copy {
    fn number(self) -> F;

    /// # Safety
    /// There are as many elements, without gaps, and they lie apart from the numbers.
    unsafe fn numbers(from: *const Self, to: &mut [F]);
}

impl<F: Real> Stored<F> for F {
    #[inline(always)]
    fn number(self) -> F {
        self
    }

    #[inline(always)]
    unsafe fn numbers(from: *const F, to: &mut [F]) {
        // SAFETY: by the caller's promise.
        unsafe { std::ptr::copy_nonoverlapping(from, to.as_mut_ptr(), to.len()) }
    }
}

impl<F: Real> Stored<F> for u8 {
    #[inline(always)]
    fn number(self) -> F {
        if self == 0 { F::ZERO } else { F::ONE }
    }

    #[inline(always)]
    unsafe fn numbers(from: *const u8, to: &mut [F]) {
        // SAFETY: by the caller's promise.
        let from = unsafe { std::slice::from_raw_parts(from, to.len()) };
        to.iter_mut().zip(from).for_each(|(to, v)| *to = v.number());
    }
}

/// A row among all: its place on each of the outer axes.
struct Home<'a> {
    axes: &'a [Steps],
    at: SmallVec<[usize; 6]>,
    /// Its first element, counted from the first of all.
    offset: isize,
}

impl<'a> Home<'a> {
    fn new(axes: &'a [Steps], mut row: usize) -> Self {
        let mut place = Home { axes, at: SmallVec::from_elem(0, axes.len()), offset: 0 };
        for (at, axis) in place.at.iter_mut().zip(axes).rev() {
            *at = row % axis.len;
            place.offset += *at as isize * axis.step;
            row /= axis.len;
        }
        place
    }

    /// The first axis on which there is no element at this place.
    fn outside(&self) -> Option<usize> {
        self.axes.iter().zip(&self.at).position(|(axis, &at)| !axis.has((at, at + 1)))
    }

    /// How many places without elements there are on the `k`-th axis from here on, and how many rows that is, if all behind that axis
    /// has none either.
    fn without(&self, k: usize) -> (usize, usize) {
        let (axis, at) = (&self.axes[k], self.at[k]);
        let by = if at < axis.inside.0 { axis.inside.0 } else { axis.len } - at;
        let inner = self.axes.iter().zip(&self.at).skip(k + 1);
        let (done, all) =
            inner.fold((0, 1), |(done, all), (axis, at)| (done * axis.len + at, all * axis.len));
        (by, by * all - done)
    }

    /// The step to the next row, and how many rows lie so far apart from here on.
    fn run(&self) -> (isize, usize) {
        match (self.axes.last(), self.at.last()) {
            (Some(axis), Some(at)) => (axis.step, axis.inside.1 - at),
            _ => (0, 1),
        }
    }

    /// The first row that is `by` places further on the `k`-th axis, which has as many, or has just come to its end.
    fn next(&mut self, k: usize, by: usize) {
        for (i, (at, axis)) in self.at.iter_mut().zip(self.axes).enumerate().rev() {
            let past = match i.cmp(&k) {
                Ordering::Less => *at + 1,
                Ordering::Equal => *at + by,
                Ordering::Greater => axis.len,
            };
            self.offset += (past - *at) as isize * axis.step;
            if past < axis.len {
                *at = past;
                return;
            }
            self.offset -= axis.len as isize * axis.step;
            *at = 0;
        }
    }
}
