//! Making tensors of a chosen type: the type itself makes them, so that a model takes it as a parameter, and no hidden state decides.

use super::{Key, Tensor};
use crate::dtype::{DType, Scalar};
use crate::error::{Result, Within, err, or_panic};
use crate::shape::Shape;

/// ```
/// use pullback::prelude::*;
///
/// /// A layer, in whatever precision.
/// fn layer(dtype: DType, key: Key, inputs: usize, outputs: usize) -> (Tensor, Tensor) {
///     (dtype.randn(key, [inputs, outputs]) * 0.1, dtype.zeros([outputs]))
/// }
///
/// let (w, b) = layer(DType::F32, Key::new(1), 3, 2);
/// let y = (DType::F32.tensor([1.0, 2.0, 3.0]).matmul(&w) + b).tanh() * 2.0;
/// assert_eq!(y.dtype(), DType::F32);
/// ```
impl DType {
    /// Numbers of any type as a tensor of this one: what [`Tensor::from`] makes of them, cast.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = DType::F32.tensor([[0.1, 0.2], [0.3, 0.4]]);
    /// assert_eq!((x.dtype(), x.to_vec::<f32>()[3]), (DType::F32, 0.4f32));
    /// ```
    #[must_use]
    #[track_caller]
    pub fn tensor(self, values: impl Into<Tensor>) -> Tensor {
        values.into().cast(self)
    }

    /// Zeros of this type.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// assert_eq!(DType::F32.zeros([2, 3]).dtype(), DType::F32);
    /// ```
    #[must_use]
    #[track_caller]
    pub fn zeros(self, shape: impl Into<Shape>) -> Tensor {
        or_panic(filled(self, Scalar::I64(0), shape.into()).within("zeros"))
    }

    /// Ones of this type.
    #[must_use]
    #[track_caller]
    pub fn ones(self, shape: impl Into<Shape>) -> Tensor {
        or_panic(filled(self, Scalar::I64(1), shape.into()).within("ones"))
    }

    /// A tensor of this type filled with one number, which it must be able to hold.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// assert_eq!(DType::F32.full([2], 0.5).to_vec::<f32>(), [0.5, 0.5]);
    /// ```
    #[must_use]
    #[track_caller]
    pub fn full(self, shape: impl Into<Shape>, v: impl Into<Scalar>) -> Tensor {
        or_panic(filled(self, v.into(), shape.into()).within("full"))
    }

    /// The identity matrix of this type: [`Tensor::eye`].
    #[must_use]
    #[track_caller]
    pub fn eye(self, shape: impl Into<Shape>) -> Tensor {
        Tensor::eye(shape).cast(self)
    }

    /// `n` numbers of this type from `start` to `end`, both included, at equal distances.
    #[must_use]
    #[track_caller]
    pub fn linspace(self, start: f64, end: f64, n: usize) -> Tensor {
        Tensor::linspace(start, end, n).cast(self)
    }

    /// Numbers of this type from the standard normal distribution: [`Tensor::randn`].
    #[must_use]
    #[track_caller]
    pub fn randn(self, key: impl Into<Key>, shape: impl Into<Shape>) -> Tensor {
        Tensor::randn(key, shape, self)
    }

    /// Numbers of this type drawn evenly from `[0, 1)`: [`Tensor::uniform`].
    #[must_use]
    #[track_caller]
    pub fn uniform(self, key: impl Into<Key>, shape: impl Into<Shape>) -> Tensor {
        Tensor::uniform(key, shape, self)
    }
}

fn filled(dtype: DType, v: Scalar, shape: Shape) -> Result<Tensor> {
    shape.checked_len()?;
    match v.fits(dtype) {
        true => Ok(Tensor::full_of(v, dtype, shape)),
        false => Err(err!(DType, "the number {} does not fit {dtype}", v.to_f64())),
    }
}
