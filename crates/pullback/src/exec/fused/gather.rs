//! Reading inputs that do not lie as they are needed.

use super::Real;
use super::lower::Load;
use smallvec::SmallVec;

/// An input as a load reads it.
pub(super) struct Bound {
    start: *const u8,
    /// The element at the first place, counted from the start; that place may have none.
    first: isize,
    axes: SmallVec<[Steps; 4]>,
    /// What is at places that have no element, if there are such.
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
        let fill = view.is_padded().then(|| view.fill.get());
        Bound { start, first, axes, fill, truth: load.truth }
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
            match (self.truth, self.fill) {
                (true, fill) => {
                    let convert = |v| if v == 0 { F::ZERO } else { F::ONE };
                    self.copy::<u8, F, true>(at, out, fill.unwrap_or(0.0), convert)
                }
                (false, Some(fill)) => self.copy::<F, F, true>(at, out, fill, |v| v),
                (false, None) => self.copy::<F, F, false>(at, out, 0.0, |v| v),
            }
        }
    }

    /// `PADDED` says that some places may have no element: rows are often so short that to ask costs more than to copy.
    #[inline(always)]
    unsafe fn copy<T: Copy, F: Real, const PADDED: bool>(
        &self,
        at: usize,
        out: &mut [F],
        fill: f64,
        convert: impl Fn(T) -> F,
    ) {
        let start = self.start.cast::<T>().wrapping_offset(self.first);
        let Some((last, outer)) = self.axes.split_last() else {
            // SAFETY: an input has at least one element.
            return out.fill(convert(unsafe { *start }));
        };
        let (len, step) = (last.len, last.step);
        let (row, mut column) = (at / len, at % len);
        let mut place = Place::new(outer, row);
        let mut rest = out;
        while !rest.is_empty() {
            if PADDED && let Some(k) = place.outside() {
                // All behind that axis has no element.
                let (done, all) = place.behind(k);
                let n = (all * len - done * len - column).min(rest.len());
                rest[..n].fill(F::from_f64(fill));
                (rest, column) = (&mut rest[n..], 0);
                place.next(k);
                continue;
            }
            let offset = place.offset;
            let (now, later) = rest.split_at_mut((len - column).min(rest.len()));
            let mut now = now;
            if PADDED {
                let clip = |place: usize| place.saturating_sub(column).min(now.len());
                let inside = clip(last.inside.0)..clip(last.inside.1);
                if inside.len() < now.len() {
                    now.fill(F::from_f64(fill));
                }
                column += inside.start;
                now = &mut now[inside];
            }
            let from = start.wrapping_offset(offset + column as isize * step);
            match step {
                _ if PADDED && now.is_empty() => {}
                // SAFETY: an element of the input by its index.
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
            (rest, column) = (later, 0);
            place.next(outer.len());
        }
    }
}

/// A row among all: its place on each of the outer axes.
struct Place<'a> {
    axes: &'a [Steps],
    at: SmallVec<[usize; 6]>,
    /// Its first element, counted from the first of all.
    offset: isize,
}

impl<'a> Place<'a> {
    fn new(axes: &'a [Steps], mut row: usize) -> Self {
        let mut place = Place { axes, at: SmallVec::from_elem(0, axes.len()), offset: 0 };
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

    /// Of the rows that have the same place on the first axes, up to the `k`-th: how many come before this one, and how many there are.
    fn behind(&self, k: usize) -> (usize, usize) {
        let inner = self.axes.iter().zip(&self.at).skip(k + 1);
        inner.fold((0, 1), |(done, all), (axis, at)| (done * axis.len + at, all * axis.len))
    }

    /// The first row with another place on one of the first axes, up to the `k`-th; the next row, if that is more than there are.
    fn next(&mut self, k: usize) {
        for (i, (at, axis)) in self.at.iter_mut().zip(self.axes).enumerate().rev() {
            let past = if i > k { axis.len } else { *at + 1 };
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
