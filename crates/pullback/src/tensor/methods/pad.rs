//! More elements at the ends of axes.

use super::arrange::composed;
use super::{methods, whole};
use crate::allocation::ask_for;
use crate::error::{Result, err, or_panic};
use crate::ops::*;
use crate::shape::Shape;
use crate::tensor::{Tensor, bind};

/// What [`pad`](Tensor::pad) puts at the ends of an axis `a b c d`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum PadMode {
    /// One number: `0 0 a b c d 0 0`. A Rust float is this.
    Constant(f64),
    /// The elements mirrored at the last one: `c b a b c d c b`. An axis of one element repeats it.
    Reflect,
    /// The elements mirrored behind the last one: `b a a b c d d c`.
    Symmetric,
    /// The last element: `a a a b c d d d`.
    Edge,
    /// The elements from the other end: `c d a b c d a b`.
    Wrap,
}

impl From<f64> for PadMode {
    fn from(v: f64) -> PadMode {
        PadMode::Constant(v)
    }
}

methods! { $ pad_methods;
    /// With `before` and `after` more elements at the ends of each axis: of the given value, or as [`PadMode`] says, along one axis after the
    /// other. Widths may be larger than the axis, which is then mirrored or repeated again and again.
    ///
    /// ```
    /// use pullback::{PadMode, prelude::*};
    /// let x = Tensor::from([1.0, 2.0, 3.0]);
    /// assert_eq!(x.pad(&[(1, 2)], 0.0).to_vec::<f64>(), [0.0, 1.0, 2.0, 3.0, 0.0, 0.0]);
    /// assert_eq!(x.pad(&[(1, 2)], PadMode::Reflect).to_vec::<f64>(), [2.0, 1.0, 2.0, 3.0, 2.0, 1.0]);
    /// assert_eq!(x.pad(&[(1, 2)], PadMode::Edge).to_vec::<f64>(), [1.0, 1.0, 2.0, 3.0, 3.0, 3.0]);
    /// assert_eq!(x.pad(&[(1, 2)], PadMode::Wrap).to_vec::<f64>(), [3.0, 1.0, 2.0, 3.0, 1.0, 2.0]);
    /// ```
    pad try_pad(&self, widths: &[(usize, usize)], with: impl Into<PadMode>) -> Tensor {
        let with = with.into();
        composed("pad", || {
            if widths.len() != self.rank() {
                return Err(err!(Shape, "one pair of widths for each axis: got {} for shape {:?}", widths.len(), self.shape()));
            }
            let long = |(&n, &(a, b)): (&usize, &(usize, usize))| n.checked_add(a)?.checked_add(b);
            let shape: Option<Shape> = self.shape().iter().zip(widths).map(long).collect();
            let shape = shape.ok_or_else(|| err!(Shape, "the padded shape overflows"))?;
            shape.checked_len()?;
            if let PadMode::Constant(value) = with {
                let axes = self.shape().iter().zip(widths).map(|(&n, &(a, _))| (a, 1, n)).collect();
                let base = Tensor::full_of(value.into(), self.dtype(), shape);
                return bind(SliceAssign { region: SliceSpec { axes } }, &[&base, self]);
            }
            widths.iter().enumerate().try_fold(self.clone(), |x, (axis, &widths)| extended(&x, axis, widths, with))
        })
    }
}

/// One axis with its own elements at both ends: slices that run forward, backward or on the spot, one after the other.
fn extended(x: &Tensor, axis: usize, (before, after): (usize, usize), with: PadMode) -> Result<Tensor> {
    let n = x.shape()[axis];
    if before == 0 && after == 0 {
        return Ok(x.clone());
    }
    if n == 0 {
        return Err(err!(Shape, "axis {axis} of shape {:?} has no elements to repeat", x.shape()));
    }
    let mut parts = Vec::new();
    if with == PadMode::Edge || n == 1 {
        let repeated = |place: usize, count: usize| {
            let mut shape = x.shape().to_vec();
            shape[axis] = count;
            x.try_narrow(axis as isize, place, 1)?.try_broadcast_to(shape)
        };
        parts.extend([repeated(0, before)?, x.clone(), repeated(n - 1, after)?]);
    } else {
        // Places repeat: forward through the axis, then backward from the place `turn`, if there is such a way back.
        let (turn, back) = match with {
            PadMode::Reflect => (n - 2, n - 2),
            PadMode::Symmetric => (n - 1, n),
            _ => (0, 0),
        };
        let period = n + back;
        let (mut at, mut left) = ((period - before % period) % period, before + n + after);
        ask_for::<Tensor>(left / n + 2)?;
        while left > 0 {
            let (start, step, run) = match at < n {
                true => (at, 1, n - at),
                false => (turn - (at - n), -1, period - at),
            };
            let count = run.min(left);
            let mut region = whole(x.shape());
            region.axes[axis] = (start, step, count);
            parts.push(bind(Slice { region }, &[x])?);
            (at, left) = ((at + count) % period, left - count);
        }
    }
    Tensor::try_concat(&parts, axis as isize)
}
