//! The other side of a binary operation: a tensor, or a Rust number that takes the tensor's type.

use super::Tensor;
use crate::dtype::{DType, Scalar};
use crate::error::{Result, err};
use crate::ops::{Broadcast, Cast};
use crate::shape::Shape;
use crate::tape::refuses_promotion;
use num_complex::Complex;
use std::borrow::Cow;

/// A tensor, a reference to one, or a Rust number. Methods take `impl Into<Operand>`.
///
/// ```
/// use pullback::prelude::*;
/// let x = Tensor::from([1.0f32, 4.0]);
/// assert_eq!(x.maximum(2.0).dtype(), DType::F32); // a Rust number never changes the type
/// assert_eq!(x.maximum(&x).to_vec::<f32>(), [1.0, 4.0]);
/// ```
pub enum Operand<'a> {
    /// A tensor that is only looked at.
    Borrowed(&'a Tensor),
    /// A tensor that is handed over.
    Owned(Tensor),
    /// A Rust number.
    Number(Scalar),
}

impl<'a> From<&'a Tensor> for Operand<'a> {
    fn from(t: &'a Tensor) -> Self {
        Operand::Borrowed(t)
    }
}

impl From<Tensor> for Operand<'_> {
    fn from(t: Tensor) -> Self {
        Operand::Owned(t)
    }
}

macro_rules! numbers {
    ($($t:ty),*) => {$(
        impl From<$t> for Operand<'_> {
            fn from(v: $t) -> Self { Operand::Number(Scalar::from(v)) }
        }
    )*};
}
numbers!(f64, f32, i64, i32, u8, usize, bool, Complex<f64>, Complex<f32>);

impl<'a> Operand<'a> {
    /// The tensor, if it is one.
    pub(crate) fn as_tensor(&self) -> Option<&Tensor> {
        match self {
            Operand::Borrowed(t) => Some(t),
            Operand::Owned(t) => Some(t),
            Operand::Number(_) => None,
        }
    }

    /// The operand as a tensor; a number takes the type and shape of `like`.
    pub(crate) fn tensor_like(self, like: &Tensor) -> Result<Cow<'a, Tensor>> {
        match self {
            Operand::Borrowed(t) => Ok(Cow::Borrowed(t)),
            Operand::Owned(t) => Ok(Cow::Owned(t)),
            Operand::Number(v) => literal(v, like).map(Cow::Owned),
        }
    }

    /// The operand as a tensor; a number becomes a scalar of its own type.
    pub(crate) fn into_tensor(self) -> Cow<'a, Tensor> {
        match self {
            Operand::Borrowed(t) => Cow::Borrowed(t),
            Operand::Owned(t) => Cow::Owned(t),
            Operand::Number(v) => Cow::Owned(Tensor::full_of(v, v.dtype(), Shape::default())),
        }
    }
}

/// A Rust number beside `like`: of its type, and repeated over its shape at no cost.
pub(crate) fn literal(v: Scalar, like: &Tensor) -> Result<Tensor> {
    if !v.fits(like.dtype()) {
        return Err(err!(
            DType,
            "the number {} does not fit a tensor of {}, and a number never changes a tensor's type; cast the tensor first",
            v,
            like.dtype()
        ));
    }
    Ok(Tensor::full_of(v, like.dtype(), like.node().shape.clone()))
}

/// An error if operands of different types would both become `to`, and [`strict_dtypes`](crate::strict_dtypes) is on.
pub(crate) fn check_dtypes(a: &Tensor, b: &Tensor, to: DType) -> Result<()> {
    if a.dtype() == b.dtype() || !refuses_promotion() {
        return Ok(());
    }
    Err(err!(
        DType,
        "{} {:?} and {} {:?} would both become {to}; cast one of them, or make it of the other's type, as DType::F32.tensor(..) does",
        a.dtype(),
        a.shape(),
        b.dtype(),
        b.shape()
    ))
}

/// Two tensors brought to a common type and shape.
#[track_caller]
pub(crate) fn align<'a>(
    a: Cow<'a, Tensor>,
    b: Cow<'a, Tensor>,
) -> Result<(Cow<'a, Tensor>, Cow<'a, Tensor>)> {
    if a.dtype() == b.dtype() && a.shape() == b.shape() {
        return Ok((a, b));
    }
    let dtype = DType::promote(a.dtype(), b.dtype());
    check_dtypes(&a, &b, dtype)?;
    let shape = Shape::broadcast(a.shape(), b.shape())?;
    Ok((conform(a, dtype, &shape)?, conform(b, dtype, &shape)?))
}

/// A tensor cast and broadcast, if it has to be.
#[track_caller]
pub(crate) fn conform<'a>(t: Cow<'a, Tensor>, dtype: DType, shape: &Shape) -> Result<Cow<'a, Tensor>> {
    let t = if t.dtype() == dtype { t } else { Cow::Owned(super::bind(Cast { to: dtype }, &[&t])?) };
    if t.node().shape == *shape {
        return Ok(t);
    }
    super::bind(Broadcast { to: shape.clone() }, &[&t]).map(Cow::Owned)
}
