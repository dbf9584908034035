//! Picking and adding by integer positions.

use super::methods;
use crate::DType;
use crate::error::{Result, Within, or_panic};
use crate::ops::*;
use crate::shape::axis;
use crate::tensor::{Tensor, bind};
use std::borrow::Cow;

#[track_caller]
fn named(op: &'static str, at: isize, x: &Tensor) -> Result<usize> {
    axis(at, x.rank()).within(op)
}

/// Positions of any integer type, as the operations take them.
#[track_caller]
pub(in crate::tensor) fn positions(index: &Tensor) -> Result<Cow<'_, Tensor>> {
    if matches!(index.dtype(), DType::I32 | DType::U8) {
        return index.try_cast(DType::I64).map(Cow::Owned);
    }
    Ok(Cow::Borrowed(index))
}

methods! { $ index_methods;
    /// For each element of `index`, the element of this at that position along the axis, the other positions being equal.
    /// `index` holds integers, and has the same rank; [`take_along_axis`](Tensor::take_along_axis) broadcasts it.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = Tensor::from([[1.0, 2.0], [3.0, 4.0]]);
    /// let picked = x.gather(1, &Tensor::from([[1i64], [0]]));
    /// assert_eq!(picked.to_vec::<f64>(), [2.0, 3.0]);
    /// ```
    gather try_gather(&self, at: isize, index: &Tensor) -> Tensor {
        bind(Gather { axis: named("gather", at, self)? }, &[self, &*positions(index)?])
    }

    /// This with each element of `src` added at the position along the axis that `index` says. Positions may repeat:
    /// contributions add up.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let y = Tensor::zeros([3]).scatter_add(0, &Tensor::from([2i64, 2, 0]), &Tensor::from([1.0, 2.0, 5.0]));
    /// assert_eq!(y.to_vec::<f64>(), [5.0, 0.0, 3.0]);
    /// ```
    scatter_add try_scatter_add(&self, at: isize, index: &Tensor, src: &Tensor) -> Tensor {
        bind(ScatterAdd { axis: named("scatter_add", at, self)? }, &[self, &*positions(index)?, src])
    }

    /// Whole slices along the axis, in the order of an index of one axis; rows of an embedding, say.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let rows = Tensor::from([[1.0, 2.0], [3.0, 4.0]]).index_select(0, &Tensor::from([1i64, 1, 0]));
    /// assert_eq!(rows.shape(), [3, 2]);
    /// ```
    index_select try_index_select(&self, at: isize, index: &Tensor) -> Tensor {
        bind(IndexSelect { axis: named("index_select", at, self)? }, &[self, &*positions(index)?])
    }

    /// This with slice `j` of `src` added to slice `index[j]`.
    index_add try_index_add(&self, at: isize, index: &Tensor, src: &Tensor) -> Tensor {
        bind(IndexAdd { axis: named("index_add", at, self)? }, &[self, &*positions(index)?, src])
    }
}

impl Tensor {
    /// [`IndexPut`] for rules, whose arguments the forward pass has checked.
    #[track_caller]
    pub(crate) fn index_put(&self, op: IndexPut, index: &Tensor, src: &Tensor) -> Tensor {
        or_panic(bind(op, &[self, index, src]))
    }
}
