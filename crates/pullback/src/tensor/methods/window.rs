//! Windows along an axis, and back.

use super::arrange::composed;
use super::methods;
use crate::dtype::DType;
use crate::error::{Result, Within, err, or_panic};
use crate::ops::*;
use crate::shape::{Axes, Shape, axis};
use crate::tensor::{Tensor, bind};

methods! { $ window_methods;
    /// Windows of `size` elements that begin at every `step`-th place of an axis. That axis counts the windows, and a new last axis
    /// the places in them. They share the buffer, where they overlap too: a sum over windows needs no memory for them.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = Tensor::from([1.0, 2.0, 4.0, 8.0]);
    /// assert_eq!(x.unfold(0, 2, 1).to_vec::<f64>(), [1.0, 2.0, 2.0, 4.0, 4.0, 8.0]);
    /// assert_eq!(x.unfold(0, 2, 2).sum_axes(-1).to_vec::<f64>(), [3.0, 12.0]);
    /// // The patches of images, to multiply with a kernel: `im2col`.
    /// let patches = Tensor::zeros([5, 3, 8, 8]).unfold(2, 3, 1).unfold(3, 3, 1);
    /// assert_eq!(patches.shape(), [5, 3, 6, 6, 3, 3]);
    /// ```
    #[doc(alias("sliding_window_view", "im2col", "frame"))]
    unfold try_unfold(&self, at: isize, size: usize, step: usize) -> Tensor {
        bind(Windows { axis: axis(at, self.rank()).within("unfold")?, size, step }, &[self])
    }

    /// Windows put back to where [`unfold`](Tensor::unfold) took them from, along an axis of the given length; where they overlap they are
    /// added. It is the transpose of `unfold`, and the inverse where windows do not overlap and leave nothing out.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let windows = Tensor::from([[1.0, 2.0], [3.0, 4.0]]);
    /// assert_eq!(windows.fold(0, 1, 3).to_vec::<f64>(), [1.0, 5.0, 4.0]);
    /// assert_eq!(windows.fold(0, 2, 5).to_vec::<f64>(), [1.0, 2.0, 3.0, 4.0, 0.0]);
    /// ```
    #[doc(alias("overlap_add", "col2im"))]
    fold try_fold(&self, at: isize, step: usize, length: usize) -> Tensor {
        composed("fold", || {
            let Some((&size, outer)) = self.shape().split_last() else {
                return Err(err!(Shape, "takes windows along the last axis, got a scalar"));
            };
            let k = axis(at, outer.len().max(1))?;
            let Some(&count) = outer.get(k) else {
                return Err(err!(Shape, "takes windows along the last axis and an axis that counts them, got shape {:?}", self.shape()));
            };
            let ends = count.checked_sub(1).map_or(Some(0), |last| last.checked_mul(step)?.checked_add(size));
            if ends.is_none_or(|end| end > length) {
                return Err(err!(Shape, "{count} windows of {size} elements at steps of {step} are longer than {length}"));
            }
            let place = (Tensor::try_arange(0, count as i64, 1)? * step as i64).try_unsqueeze(1)?
                + Tensor::try_arange(0, size as i64, 1)?;
            let perm: Axes = (0..=k).chain([outer.len()]).chain(k + 1..outer.len()).collect();
            let with = |n: usize| (0..outer.len()).map(|a| if a == k { n } else { outer[a] }).collect::<Shape>();
            with(length).checked_len()?;
            let parts = bind(Permute { perm }, &[self])?.try_reshape(with(count * size))?;
            let zeros = Tensor::zeros_of(if self.dtype() == DType::Bool { DType::I64 } else { self.dtype() }, with(length));
            bind(IndexAdd { axis: k }, &[&zeros, &place.try_flatten()?.beside(self)?, &parts.try_cast(zeros.dtype())?])
        })
    }
}
