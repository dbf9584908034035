//! Slices by ranges, steps, positions and new axes.

use super::methods::{update_like, whole};
use super::{Operand, Tensor, bind};
use crate::error::{Error, Result, err, or_panic};
use crate::location::caller;
use crate::ops::{Slice, SliceAssign, SliceSpec};
use crate::shape::{Shape, signed};
use std::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

/// What to take of one axis. Made from ranges and integers, whose negative ends count from the end, and from [`NewAxis`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AxisRange {
    /// Positions `start`, `start + step`, .. before `end`; `None` for the end of the axis in the direction of the step.
    Range {
        /// First position.
        start: Option<isize>,
        /// First position that is not taken.
        end: Option<isize>,
        /// Distance, not 0.
        step: isize,
    },
    /// One position; the axis is dropped.
    Index(isize),
    /// A new axis of length 1.
    New,
}

/// A new axis of length 1 in a slice.
#[derive(Clone, Copy, Debug)]
pub struct NewAxis;

impl AxisRange {
    /// The same range with another step.
    ///
    /// ```
    /// use pullback::{AxisRange, prelude::*};
    /// let x = Tensor::arange(0, 6, 1);
    /// assert_eq!(x.slice(AxisRange::from(..).step(-2)).to_vec::<i32>(), [5, 3, 1]);
    /// ```
    pub fn step(self, step: isize) -> AxisRange {
        match self {
            AxisRange::Range { start, end, .. } => AxisRange::Range { start, end, step },
            other => other,
        }
    }

    /// Start, step and count on an axis of length `n`.
    pub(super) fn resolve(self, n: usize) -> Result<(usize, isize, usize)> {
        let AxisRange::Range { start, end, step } = self else { unreachable!("only ranges are resolved") };
        if step == 0 {
            return Err(err!(Value, "the step of a slice cannot be 0"));
        }
        let n = n as isize;
        // As in NumPy, ends outside of the axis are moved to it.
        let (low, high) = if step > 0 { (0, n) } else { (-1, n - 1) };
        let place = |p: isize| (if p < 0 { p.saturating_add(n) } else { p }).clamp(low, high);
        let start = start.map_or(if step > 0 { low } else { high }, place);
        let end = end.map_or(if step > 0 { high } else { low }, place);
        let span = if step > 0 { end - start } else { start - end };
        let count = if span <= 0 { 0 } else { (span as usize).div_ceil(step.unsigned_abs()) };
        Ok((if count == 0 { 0 } else { start as usize }, step, count))
    }
}

/// Conversions into [`AxisRange`], and so into a slice of the first axis.
macro_rules! ranges {
    ($($from:ty, $r:ident => $to:expr;)*) => {$(
        impl From<$from> for AxisRange {
            fn from($r: $from) -> Self { $to }
        }
        impl IntoRanges for $from {
            fn ranges(self) -> Vec<AxisRange> { vec![self.into()] }
        }
    )*};
}
macro_rules! ranges_of {
    ($($t:ty),*) => {$(ranges! {
        Range<$t>, r => AxisRange::Range { start: Some(signed(r.start)), end: Some(signed(r.end)), step: 1 };
        RangeFrom<$t>, r => AxisRange::Range { start: Some(signed(r.start)), end: None, step: 1 };
        RangeTo<$t>, r => AxisRange::Range { start: None, end: Some(signed(r.end)), step: 1 };
        RangeInclusive<$t>, r => AxisRange::Range { start: Some(signed(*r.start())), end: after(signed(*r.end())), step: 1 };
        RangeToInclusive<$t>, r => AxisRange::Range { start: None, end: after(signed(r.end)), step: 1 };
        $t, k => AxisRange::Index(signed(k));
    })*};
}
ranges_of!(i32, isize, usize);
ranges! {
    RangeFull, _r => AxisRange::Range { start: None, end: None, step: 1 };
    NewAxis, _r => AxisRange::New;
}

/// The position after an included end; after -1 comes the end of the axis.
fn after(end: isize) -> Option<isize> {
    if end == -1 { None } else { Some(end.saturating_add(1)) }
}

/// One [`AxisRange`], a tuple of them, or a slice; axes that are not named are taken whole.
pub trait IntoRanges {
    /// The ranges, in the order of the axes.
    fn ranges(self) -> Vec<AxisRange>;
}

impl IntoRanges for AxisRange {
    fn ranges(self) -> Vec<AxisRange> {
        vec![self]
    }
}

impl IntoRanges for &[AxisRange] {
    fn ranges(self) -> Vec<AxisRange> {
        self.to_vec()
    }
}

macro_rules! tuples {
    ($(($($T:ident),+))*) => {$(
        impl<$($T: Into<AxisRange>),+> IntoRanges for ($($T,)+) {
            #[allow(non_snake_case)]
            fn ranges(self) -> Vec<AxisRange> {
                let ($($T,)+) = self;
                vec![$($T.into()),+]
            }
        }
    )*};
}
tuples! { (A) (A, B) (A, B, C) (A, B, C, D) (A, B, C, D, E) (A, B, C, D, E, F) }

/// What a slice takes: the region, its shape without the indexed axes, and that shape with the new ones.
fn plan(x: &Tensor, ranges: Vec<AxisRange>) -> Result<(SliceSpec, Shape)> {
    let mut region = whole(x.shape());
    let mut shape = Vec::new();
    let mut k = 0;
    let named = ranges.iter().filter(|r| **r != AxisRange::New).count();
    if named > x.rank() {
        return Err(err!(Axis, "{named} ranges for a tensor of {} axes", x.rank()));
    }
    for range in ranges {
        match range {
            AxisRange::New => shape.push(1),
            AxisRange::Index(at) => {
                region.axes[k] = (position(at, x.shape()[k])?, 1, 1);
                k += 1;
            }
            range => {
                region.axes[k] = range.resolve(x.shape()[k])?;
                shape.push(region.axes[k].2);
                k += 1;
            }
        }
    }
    shape.extend_from_slice(&x.shape()[k..]);
    Ok((region, shape.into()))
}

pub(super) fn position(at: isize, n: usize) -> Result<usize> {
    let k = if at < 0 { at.saturating_add(n as isize) } else { at };
    if k >= 0 && (k as usize) < n {
        Ok(k as usize)
    } else {
        Err(err!(Index, "position {at} is out of range for an axis of length {n}"))
    }
}

impl Tensor {
    /// A part of the tensor, by a range, position or new axis for each axis; it shares the buffer.
    ///
    /// ```
    /// use pullback::{NewAxis, prelude::*};
    /// let x = Tensor::arange(0, 12, 1).reshape([3, 4]);
    /// assert_eq!(x.slice((1.., -1)).to_vec::<i32>(), [7, 11]);
    /// assert_eq!(x.slice((.., 1..3)).shape(), [3, 2]);
    /// assert_eq!(x.slice((NewAxis, 0)).shape(), [1, 4]);
    /// ```
    #[must_use]
    #[track_caller]
    pub fn slice(&self, ranges: impl IntoRanges) -> Tensor {
        or_panic(self.try_slice(ranges))
    }

    #[track_caller]
    pub(crate) fn try_slice(&self, ranges: impl IntoRanges) -> Result<Tensor> {
        let location = caller();
        let named = |e: Error| e.in_op("slice").at(location);
        let (region, shape) = plan(self, ranges.ranges()).map_err(named)?;
        bind(Slice { region }, &[self])?.try_reshape(&shape)
    }

    /// The part at one position of the first axis, which is dropped.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// assert_eq!(Tensor::from([[1.0, 2.0], [3.0, 4.0]]).get(-1).to_vec::<f64>(), [3.0, 4.0]);
    /// ```
    #[must_use]
    #[track_caller]
    pub fn get(&self, at: isize) -> Tensor {
        or_panic(self.try_get(at))
    }

    #[track_caller]
    pub(crate) fn try_get(&self, at: isize) -> Result<Tensor> {
        self.try_slice(at).map_err(|e| e.renamed("get"))
    }

    /// Replaces a part of this tensor: the handle gets a new value, other handles keep the old one. `part` broadcasts.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let mut x = Tensor::zeros([2, 3]);
    /// x.slice_assign((.., 1), 5.0);
    /// assert_eq!(x.to_vec::<f64>(), [0.0, 5.0, 0.0, 0.0, 5.0, 0.0]);
    /// ```
    #[track_caller]
    pub fn slice_assign<'a>(&mut self, ranges: impl IntoRanges, part: impl Into<Operand<'a>>) {
        or_panic(self.try_slice_assign(ranges, part))
    }

    #[track_caller]
    pub(crate) fn try_slice_assign<'a>(
        &mut self,
        ranges: impl IntoRanges,
        part: impl Into<Operand<'a>>,
    ) -> Result<()> {
        let location = caller();
        let named = |e: Error| e.in_op("slice_assign").at(location);
        let (region, shape) = plan(self, ranges.ranges()).map_err(named)?;
        let part = update_like(self, part.into(), &shape).map_err(named)?;
        let taken: Shape = region.axes.iter().map(|a| a.2).collect();
        let part = part.try_reshape(&taken)?;
        let op = SliceAssign { region };
        if self.update(&op, &part) {
            return Ok(());
        }
        self.check_not_saved().map_err(named)?;
        let result = bind(op, &[self, &part])?;
        self.rename(result);
        Ok(())
    }
}
