//! Slices along the first axis, reduced by the segment that each belongs to.

use super::index::positions;
use super::methods;
use crate::DType;
use crate::error::{Result, or_panic};
use crate::location::{caller, with_caller};
use crate::ops::*;
use crate::shape::Shape;
use crate::tensor::{Tensor, bind};

/// The sum of the slices of each segment; of integers and truth values in their own type.
fn summed(x: &Tensor, ids: &Tensor, segments: usize) -> Result<Tensor> {
    let mut shape = x.shape().to_vec();
    match shape.first_mut() {
        Some(n) => *n = segments,
        None => return Err(crate::error::err!(Shape, "takes slices along a first axis, got a scalar")),
    }
    let shape: Shape = shape.into();
    shape.checked_len()?;
    Tensor::zeros_of(x.dtype(), shape).try_index_add(0, &*positions(ids)?, x)
}

fn extreme(x: &Tensor, ids: &Tensor, segments: usize, largest: bool) -> Result<Tensor> {
    bind(SegmentExtreme { segments, largest }, &[x, &*positions(ids)?])
}

/// The steps of `f` as one of the caller's.
#[track_caller]
fn step<T>(name: &'static str, f: impl FnOnce() -> Result<T>) -> Result<T> {
    with_caller(caller(), f).map_err(|e| e.renamed(name))
}

methods! { $ segment_methods;
    /// The sum of the slices along the first axis that have the same id, an integer below `segments`. A segment of nothing is 0.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = Tensor::from([1.0, 2.0, 4.0]);
    /// assert_eq!(x.segment_sum(&Tensor::from([2, 0, 2]), 3).to_vec::<f64>(), [2.0, 0.0, 5.0]);
    /// ```
    #[doc(alias = "scatter_reduce")]
    segment_sum try_segment_sum(&self, ids: &Tensor, segments: usize) -> Tensor {
        step("segment_sum", || summed(self, ids, segments))
    }

    /// The mean of the slices along the first axis that have the same id, an integer below `segments`. A segment of nothing is 0.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = Tensor::from([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]);
    /// let mean = x.segment_mean(&Tensor::from([1, 1, 0]), 2);
    /// assert_eq!(mean.to_vec::<f64>(), [5.0, 6.0, 2.0, 3.0]);
    /// ```
    segment_mean try_segment_mean(&self, ids: &Tensor, segments: usize) -> Tensor {
        step("segment_mean", || {
            if !self.dtype().is_float() {
                return Err(needs_float(self.dtype()));
            }
            let halves = matches!(self.dtype(), DType::F16 | DType::BF16);
            let x = if halves { self.try_cast(DType::F32)? } else { self.clone() };
            let sum = summed(&x, ids, segments)?;
            let count = summed(&Tensor::ones_of(x.dtype(), ids.shape()), ids, segments)?.try_maximum(1.0)?;
            let mut shape = vec![1; x.rank()];
            shape[0] = segments;
            let mean = sum.try_div(count.try_reshape(shape)?)?;
            if halves { mean.try_cast(self.dtype()) } else { Ok(mean) }
        })
    }

    /// The largest of the elements, slice by slice along the first axis, that have the same id, an integer below `segments`. NaN wins, and
    /// equal ones share the derivative. A segment of nothing is -∞, or the lowest integer.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = Tensor::from([1.0, 7.0, 4.0]);
    /// assert_eq!(x.segment_max(&Tensor::from([0, 1, 0]), 2).to_vec::<f64>(), [4.0, 7.0]);
    /// ```
    segment_max try_segment_max(&self, ids: &Tensor, segments: usize) -> Tensor {
        step("segment_max", || extreme(self, ids, segments, true))
    }

    /// The smallest of the elements, slice by slice along the first axis, that have the same id, an integer below `segments`. NaN wins, and
    /// equal ones share the derivative. A segment of nothing is ∞, or the highest integer.
    segment_min try_segment_min(&self, ids: &Tensor, segments: usize) -> Tensor {
        step("segment_min", || extreme(self, ids, segments, false))
    }
}
