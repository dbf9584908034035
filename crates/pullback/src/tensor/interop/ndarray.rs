//! Tensors from arrays of `ndarray`, and back.

use crate::dtype::Element;
use crate::error::or_panic;
use crate::tensor::Tensor;
use ::ndarray::{ArrayBase, ArrayD, ArrayViewD, Axis, Data, Dimension, IxDyn, ShapeBuilder};

/// An array as a tensor of its shape and element type; the elements are copied.
///
/// ```
/// use ndarray::array;
/// use pullback::prelude::*;
/// let x = Tensor::from(&array![[1.0, 2.0], [3.0, 4.0]].t());
/// assert_eq!(x.to_vec::<f64>(), [1.0, 3.0, 2.0, 4.0]);
/// ```
impl<T: Element, S: Data<Elem = T>, D: Dimension> From<&ArrayBase<S, D>> for Tensor {
    #[track_caller]
    fn from(array: &ArrayBase<S, D>) -> Tensor {
        or_panic(match array.as_slice() {
            Some(elements) => Tensor::try_from_slice(elements, array.shape()),
            None => Tensor::try_from_slice(&array.iter().copied().collect::<Vec<T>>(), array.shape()),
        })
    }
}

impl<T: Element, S: Data<Elem = T>, D: Dimension> From<ArrayBase<S, D>> for Tensor {
    #[track_caller]
    fn from(array: ArrayBase<S, D>) -> Tensor {
        Tensor::from(&array)
    }
}

impl Tensor {
    /// An `ndarray` array of the elements, converted to `T`.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let a = Tensor::from([[1.0, 2.0], [3.0, 4.0]]).to_ndarray::<f32>();
    /// assert_eq!(a[[1, 0]], 3.0);
    /// ```
    #[must_use]
    #[track_caller]
    pub fn to_ndarray<T: Element>(&self) -> ArrayD<T> {
        ArrayD::from_shape_vec(IxDyn(self.shape()), self.to_vec()).expect("as many elements as the shape has")
    }

    /// The elements where they are, in any layout, as an array of `ndarray`; `None` if they are not of type `T`, or not in the memory of the host.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = Tensor::from([[1.0, 2.0], [3.0, 4.0]]).t();
    /// let a = x.ndarray_view::<f64>().unwrap();
    /// assert_eq!((a[[0, 1]], a.sum()), (3.0, 10.0));
    /// ```
    #[must_use]
    pub fn ndarray_view<T: Element<Stored = T>>(&self) -> Option<ArrayViewD<'_, T>> {
        let x = self.host_view::<T>()?;
        // Their strides are not negative when they are given; axes are turned round afterwards.
        let turned: Vec<usize> = (0..x.shape.len()).filter(|&k| x.strides[k] < 0 && x.shape[k] > 1).collect();
        let first =
            turned.iter().fold(x.offset as isize, |at, &k| at + (x.shape[k] as isize - 1) * x.strides[k]);
        let strides: Vec<usize> = x.strides.iter().map(|s| s.unsigned_abs()).collect();
        let data = if x.len() == 0 { &[] } else { &x.data[first as usize..] };
        let mut view = ArrayViewD::from_shape(IxDyn(x.shape).strides(IxDyn(&strides)), data).ok()?;
        turned.into_iter().for_each(|k| view.invert_axis(Axis(k)));
        Some(view)
    }
}
