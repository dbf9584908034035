//! Functions of whole rows: softmax, log-softmax, logsumexp and cross entropy, with their pullbacks.
//!
//! A row is the last axis of a view. Half types are computed in `f32`.

mod kernel;
mod norm;

use super::compute::Compute;
use super::movement::index::OutOfRange;
use super::movement::{self, Target};
use super::parallel;
use super::scratch::{filled, refill};
use super::strided::{Axes, row_major};
use super::view::View;
pub(crate) use kernel::RowMath;
pub(crate) use norm::{Normalisation, norm, norm_pullback};
use smallvec::SmallVec;

/// Elements a thread should have before another one is worth waking.
const GRAIN: usize = 1 << 14;

/// The rows of a view, as slices of the type they are computed in.
struct Rows<'a, T> {
    x: View<'a, T>,
    outer: Axes<1>,
    len: usize,
    step: isize,
}

impl<'a, T: Compute> Rows<'a, T> {
    fn new(x: View<'a, T>) -> Self {
        let last = x.shape.len().checked_sub(1).expect("rows: a scalar has none");
        Rows {
            x,
            outer: Axes::of(&x.shape[..last], &x.strides[..last]),
            len: x.shape[last],
            step: x.strides[last],
        }
    }

    /// The offset of a row.
    fn at(&self, i: usize) -> isize {
        let mut found = 0;
        self.outer.walk(i..i + 1, |_, [at]| found = at);
        found
    }

    fn count(&self) -> usize {
        self.outer.len()
    }

    /// The row at an offset: in place if it is contiguous and needs no conversion, else in `scratch`.
    fn row<'s>(&self, at: isize, scratch: &'s mut Vec<T::Wide>) -> &'s [T::Wide]
    where
        'a: 's,
    {
        let start = self.x.offset as isize + at;
        if self.step == 1 || self.len == 1 {
            let slice = &self.x.data[start as usize..start as usize + self.len];
            if let Some(row) = T::as_wide(slice) {
                return row;
            }
            resize(scratch, self.len);
            T::widen_all(slice, scratch);
            return scratch;
        }
        let element = |i: usize| self.x.data[(start + i as isize * self.step) as usize].widen();
        refill(scratch, (0..self.len).map(element));
        scratch
    }

    /// All rows, if they are short, lie one after the other and need no conversion.
    fn short(&self) -> Option<&'a [T::Wide]> {
        let follow = match self.outer.0.as_slice() {
            [] => true,
            [axis] => axis.strides == [self.len as isize],
            _ => false,
        };
        let fits = follow && (self.step == 1 || self.len == 1) && (1..kernel::LANES).contains(&self.len);
        fits.then(|| T::as_wide(&self.x.data[self.x.offset..][..self.count() * self.len])).flatten()
    }

    /// Calls `f` with the number of each row and the row, in parallel.
    fn for_each(&self, f: impl Fn(usize, &[T::Wide]) + Sync) {
        parallel::split(self.count(), GRAIN.div_ceil(self.len.max(1)), 1, |range| {
            let mut scratch = Vec::new();
            self.outer.walk(range, |i, [at]| f(i, self.row(at, &mut scratch)));
        });
    }

    /// Writes a row of the output for each row; `f` gets the number of the row, the row, and the output.
    fn map(&self, out: &mut [T], f: impl Fn(usize, &[T::Wide], &mut [T::Wide]) + Sync) {
        assert_eq!(out.len(), self.count() * self.len, "rows: the output has the shape of the view");
        let len = self.len;
        let out = parallel::Disjoint::new(out);
        parallel::split(self.count(), GRAIN.div_ceil(len.max(1)), 1, |range| {
            let (mut scratch, mut result) = (Vec::new(), Vec::new());
            self.outer.walk(range, |i, [at]| {
                // SAFETY: each row belongs to one thread.
                let out = unsafe { out.part(i * len..(i + 1) * len) };
                write(out, &mut result, |out| f(i, self.row(at, &mut scratch), out));
            });
        });
    }

    /// As [`Rows::map`], with a second view of the same shape.
    fn map_with(
        &self,
        other: View<T>,
        out: &mut [T],
        f: impl Fn(&[T::Wide], &[T::Wide], &mut [T::Wide]) + Sync,
    ) {
        assert_eq!(self.x.shape, other.shape, "rows: equal shapes");
        assert_eq!(out.len(), self.count() * self.len, "rows: the output has the shape of the view");
        let (len, other) = (self.len, Rows::new(other));
        let last = self.x.shape.len() - 1;
        let both = self.x.strides.iter().zip(other.x.strides).map(|(&s, &t)| [s, t]);
        let outer = Axes::new(self.x.shape[..last].iter().copied().zip(both));
        let out = parallel::Disjoint::new(out);
        parallel::split(self.count(), GRAIN.div_ceil(len.max(1)), 1, |range| {
            let (mut scratch, mut scratch_other, mut result) = (Vec::new(), Vec::new(), Vec::new());
            outer.walk(range, |i, at| {
                // SAFETY: each row belongs to one thread.
                let out = unsafe { out.part(i * len..(i + 1) * len) };
                let (x, y) = (self.row(at[0], &mut scratch), other.row(at[1], &mut scratch_other));
                write(out, &mut result, |out| f(x, y, out));
            });
        });
    }
}

/// Makes a row's scratch memory as long as the row: it is, from the second row on.
fn resize<W: Copy + Default>(scratch: &mut Vec<W>, n: usize) {
    if scratch.len() != n {
        *scratch = filled(W::default(), n);
    }
}

/// Lets `f` write a row in the type it is computed in.
fn write<T: Compute>(out: &mut [T], scratch: &mut Vec<T::Wide>, f: impl FnOnce(&mut [T::Wide])) {
    if let Some(wide) = T::as_wide_mut(out) {
        return f(wide);
    }
    resize(scratch, out.len());
    f(scratch);
    T::narrow_all(scratch, out);
}

/// `exp(x) / Σ exp(x)` along the last axis. A row of only `-∞` gives NaN.
pub(crate) fn softmax<T: Compute<Wide: RowMath>>(x: View<T>, out: &mut [T]) {
    Rows::new(x).map(out, |_, x, out| {
        let sum = kernel::exp_shifted(x, kernel::max(x), out);
        kernel::scale(out, T::Wide::ONE / sum);
    });
}

/// `x - ln Σ exp(x)` along the last axis. A row of only `-∞` gives NaN.
pub(crate) fn log_softmax<T: Compute<Wide: RowMath>>(x: View<T>, out: &mut [T]) {
    Rows::new(x).map(out, |_, x, out| {
        let max = kernel::max(x);
        kernel::subtract(x, max, kernel::sum_exp_shifted(x, max).ln(), out);
    });
}

/// The cotangent of the input of [`softmax`], from its output `y`: `y (g - Σ g y)`.
pub(crate) fn softmax_pullback<T: Compute<Wide: RowMath>>(y: View<T>, g: View<T>, out: &mut [T]) {
    Rows::new(y).map_with(g, out, |y, g, out| kernel::times_centred(y, g, kernel::dot(y, g), out));
}

/// The cotangent of the input of [`log_softmax`], from its output `y`: `g - exp(y) Σ g`.
pub(crate) fn log_softmax_pullback<T: Compute<Wide: RowMath>>(y: View<T>, g: View<T>, out: &mut [T]) {
    Rows::new(y).map_with(g, out, |y, g, out| kernel::minus_exp_times(y, g, kernel::sum(g), out));
}

/// `ln Σ exp(x)` along the last axis: `-∞` if all are `-∞`, `+∞` if one is `+∞`.
pub(crate) fn logsumexp_last<T: Compute<Wide: RowMath>>(x: View<T>, out: &mut [T]) {
    let rows = Rows::new(x);
    assert_eq!(out.len(), rows.count(), "logsumexp: one output for each row");
    if let Some((x, out)) = rows.short().zip(T::as_wide_mut(out)) {
        let (n, out) = (rows.len, parallel::Disjoint::new(out));
        return parallel::split(rows.count(), GRAIN.div_ceil(n), 1, |range| {
            // SAFETY: parts are disjoint.
            let out = unsafe { out.part(range.clone()) };
            kernel::short_logsumexp(&x[range.start * n..range.end * n], n, out);
        });
    }
    let out = Target::new(out);
    // SAFETY: each output belongs to one thread.
    rows.for_each(|i, x| unsafe { *out.at(i as isize) = T::narrow(kernel::logsumexp(x)) });
}

/// `ln Σ exp(x)` over any axes, `-∞` over none; the output has the other axes, in their order.
pub(crate) fn logsumexp<T: Compute<Wide: RowMath>>(x: View<T>, axes: &[usize], out: &mut [T]) {
    let order = || (0..x.shape.len()).filter(|k| !axes.contains(k)).chain(axes.iter().copied());
    let shape: SmallVec<[usize; 6]> = order().map(|k| x.shape[k]).collect();
    let strides: SmallVec<[isize; 6]> = order().map(|k| x.strides[k]).collect();
    let kept = x.shape.len() - axes.len();
    let reduced = Axes::of(&shape[kept..], &strides[kept..]);
    let n = reduced.len();
    if n == 0 {
        // ln 0.
        return out.fill(T::narrow(T::Wide::LOWEST));
    }
    let mut rows: SmallVec<[usize; 6]> = shape[..kept].into();
    rows.push(n);
    // One axis left of the reduced ones, with unit stride: read in place. Else rows are gathered first.
    if let [] | [super::strided::Axis { strides: [1], .. }] = reduced.0.as_slice() {
        let mut steps: SmallVec<[isize; 6]> = strides[..kept].into();
        steps.push(1);
        return logsumexp_last(View { shape: &rows, strides: &steps, ..x }, out);
    }
    let mut packed = filled(T::default(), x.len());
    movement::copy(View { shape: &shape, strides: &strides, ..x }, &mut packed);
    logsumexp_last(View::new(&packed, 0, &rows, &row_major(&rows)), out);
}

/// Labels as a slice, each of them checked to be one of `0..classes`.
fn checked<'a>(
    labels: View<'a, i64>,
    classes: usize,
    packed: &'a mut Vec<i64>,
) -> Result<&'a [i64], OutOfRange> {
    let slice = match labels.as_slice() {
        Some(slice) => slice,
        None => {
            *packed = filled(0, labels.len());
            movement::copy(labels, packed);
            packed
        }
    };
    match slice.iter().position(|&i| i < 0 || i >= classes as i64) {
        Some(position) => Err(OutOfRange { position, value: slice[position] }),
        None => Ok(slice),
    }
}

/// `ln Σ exp(x) - (1 - s) x[label] - s mean(x)` with smoothing `s`, for each row of `x`; the labels have the leading shape of `x`.
pub(crate) fn cross_entropy<T: Compute<Wide: RowMath>>(
    x: View<T>,
    labels: View<i64>,
    smoothing: f64,
    out: &mut [T],
) -> Result<(), OutOfRange> {
    let rows = Rows::new(x);
    assert!(
        labels.len() == rows.count() && out.len() == rows.count(),
        "cross_entropy: one label for each row"
    );
    let mut packed = Vec::new();
    let labels = checked(labels, rows.len, &mut packed)?;
    let (smooth, n) = (T::Wide::of(smoothing), T::Wide::of(rows.len as f64));
    let out = Target::new(out);
    rows.for_each(|i, x| {
        let shift = kernel::shift(kernel::max(x));
        let total = kernel::sum_exp_shifted(x, shift).ln();
        let mut loss = (shift - x[labels[i] as usize]) + total;
        if smoothing != 0.0 {
            let even = (shift - kernel::sum(x) / n) + total;
            loss = loss * (T::Wide::ONE - smooth) + even * smooth;
        }
        // SAFETY: each output belongs to one thread.
        unsafe { *out.at(i as isize) = T::narrow(loss) };
    });
    Ok(())
}

/// The cotangent of the logits of [`cross_entropy`]: `(softmax(x) - (1 - s) onehot(label) - s/n) g`, one `g` for each row. Where it is 0 the
/// row is, whatever the logits are.
pub(crate) fn cross_entropy_pullback<T: Compute<Wide: RowMath>>(
    x: View<T>,
    labels: View<i64>,
    g: View<T>,
    smoothing: f64,
    out: &mut [T],
) -> Result<(), OutOfRange> {
    let rows = Rows::new(x);
    assert!(labels.len() == rows.count() && g.len() == rows.count(), "cross_entropy: one label for each row");
    let mut packed = Vec::new();
    let labels = checked(labels, rows.len, &mut packed)?;
    let cotangents = each_row(g);
    let (smooth, n) = (T::Wide::of(smoothing), T::Wide::of(rows.len as f64));
    rows.map(out, |i, x, out| {
        let g = cotangents[i].widen();
        if g == T::Wide::default() {
            return out.fill(g);
        }
        let sum = kernel::exp_shifted(x, kernel::max(x), out);
        match smoothing == 0.0 {
            true => kernel::scale(out, g / sum),
            false => kernel::scale_and_shift(out, g / sum, g * smooth / n),
        }
        let hit = &mut out[labels[i] as usize];
        *hit = *hit - g * (T::Wide::ONE - smooth);
    });
    Ok(())
}

/// The elements of a view that has one for each row.
fn each_row<T: Compute>(g: View<T>) -> Vec<T> {
    let mut all = filled(T::default(), g.len());
    movement::copy(g, &mut all);
    all
}

/// `Σ t (ln Σ exp(x) - x)` for each row; where `t` is 0 a logit does not count.
pub(crate) fn soft_cross_entropy<T: Compute<Wide: RowMath>>(x: View<T>, t: View<T>, out: &mut [T]) {
    let (rows, targets) = (Rows::new(x), Rows::new(t));
    assert!(x.shape == t.shape && out.len() == rows.count(), "soft_cross_entropy: one target for each row");
    let out = Target::new(out);
    parallel::split(rows.count(), GRAIN.div_ceil(rows.len.max(1)), 1, |range| {
        let (mut scratch, mut scratch_t) = (Vec::new(), Vec::new());
        for i in range {
            let x = rows.row(rows.at(i), &mut scratch);
            let t = targets.row(targets.at(i), &mut scratch_t);
            let loss = kernel::weighted(x, t, kernel::logsumexp(x));
            // SAFETY: each output belongs to one thread.
            unsafe { *out.at(i as isize) = T::narrow(loss) };
        }
    });
}

/// The cotangent of the logits of [`soft_cross_entropy`]: `(softmax(x) Σt - t) g`, one `g` for each row. Where it is 0 the row is.
pub(crate) fn soft_cross_entropy_pullback<T: Compute<Wide: RowMath>>(
    x: View<T>,
    t: View<T>,
    g: View<T>,
    out: &mut [T],
) {
    let targets = Rows::new(t);
    let cotangents = each_row(g);
    assert!(
        x.shape == t.shape && cotangents.len() == targets.count(),
        "soft_cross_entropy: a target for each row"
    );
    Rows::new(x).map(out, |i, x, out| {
        let g = cotangents[i].widen();
        if g == T::Wide::default() {
            return out.fill(g);
        }
        let mut scratch = Vec::new();
        let t = targets.row(targets.at(i), &mut scratch);
        let sum = kernel::exp_shifted(x, kernel::max(x), out);
        kernel::minus_scaled(out, g * kernel::sum(t) / sum, t, g);
    });
}

#[cfg(test)]
mod tests;
