//! Making tensors: from Rust values, and by pattern.

use super::data::{Bits, Data, Strided};
use super::{Tensor, buffer::Buffer};
use crate::dtype::{DType, Element, Scalar};
use crate::error::{Result, Within, err, or_panic};
use crate::shape::Shape;
use crate::tape::caller;

impl Tensor {
    /// A tensor of rank 0. A bare Rust float makes an f64.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = Tensor::scalar(2.0);
    /// assert_eq!((x.shape(), x.dtype(), x.item()), (&[][..], DType::F64, 2.0));
    /// ```
    #[must_use]
    pub fn scalar<T: Element>(v: T) -> Tensor {
        Tensor::new(T::DTYPE, Shape::default(), Data::Splat(Bits::of(v.store())))
    }

    /// The elements of a slice, in row-major order, as a tensor of the given shape.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = Tensor::from_slice(&[1, 2, 3, 4, 5, 6], [2, 3]);
    /// assert_eq!((x.dtype(), x.shape()), (DType::I32, &[2, 3][..]));
    /// ```
    #[must_use]
    #[track_caller]
    pub fn from_slice<T: Element>(elements: &[T], shape: impl Into<Shape>) -> Tensor {
        or_panic(Tensor::try_from_slice(elements, shape))
    }

    /// Like [`from_slice`](Tensor::from_slice), with an error if the shape does not hold that many elements.
    #[track_caller]
    pub fn try_from_slice<T: Element>(elements: &[T], shape: impl Into<Shape>) -> Result<Tensor> {
        let shape = shape.into();
        let at = std::panic::Location::caller();
        let n = shape.checked_len().map_err(|e| e.in_op("from_slice").at(at))?;
        if n != elements.len() {
            let e = err!(
                Shape,
                "a tensor of shape {shape:?} has {n} elements, but {} were given",
                elements.len()
            );
            return Err(e.in_op("from_slice").at(at));
        }
        if let [one] = elements {
            return Ok(Tensor::new(T::DTYPE, shape, Data::Splat(Bits::of(one.store()))));
        }
        let mut buffer = Buffer::new(std::mem::size_of_val(elements));
        let out = buffer.slice_mut::<T::Stored>().expect("a new buffer has one holder");
        out.iter_mut().zip(elements).for_each(|(o, v)| *o = v.store());
        let strides = shape.strides();
        Ok(Tensor::new(T::DTYPE, shape, Data::Strided(Strided { buffer, offset: 0, strides })))
    }

    pub(crate) fn full_of(v: Scalar, dtype: DType, shape: Shape) -> Tensor {
        Tensor::new(dtype, shape, Data::Splat(Bits::scalar(v, dtype)))
    }

    pub(crate) fn zeros_of(dtype: DType, shape: impl Into<Shape>) -> Tensor {
        Tensor::full_of(Scalar::I64(0), dtype, shape.into())
    }

    pub(crate) fn ones_of(dtype: DType, shape: impl Into<Shape>) -> Tensor {
        Tensor::full_of(Scalar::I64(1), dtype, shape.into())
    }

    /// Zeros of this tensor's shape and type.
    #[must_use]
    pub fn zeros_like(&self) -> Tensor {
        Tensor::zeros_of(self.dtype(), &self.node().shape)
    }

    /// Ones of this tensor's shape and type.
    #[must_use]
    pub fn ones_like(&self) -> Tensor {
        Tensor::ones_of(self.dtype(), &self.node().shape)
    }
}

/// Functions that panic with a message, each with a `try_` form that returns the error.
macro_rules! makers {
    ($($(#[$doc:meta])* $name:ident $try:ident$(<$T:ident>)?($($arg:ident: $t:ty),*) $body:block)*) => {
        impl Tensor {
            $(
                $(#[$doc])*
                #[must_use]
                #[track_caller]
                pub fn $name$(<$T: Element>)?($($arg: $t),*) -> Tensor {
                    or_panic(Tensor::$try($($arg),*))
                }

                #[doc = concat!("[`", stringify!($name), "`](Tensor::", stringify!($name), "), with bad arguments as an error.")]
                #[track_caller]
                pub fn $try$(<$T: Element>)?($($arg: $t),*) -> Result<Tensor> $body
            )*
        }
    };
}

makers! {
    /// A tensor filled with one number, whose type it takes. It needs no memory until it is written to.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// assert_eq!(Tensor::full([2, 2], 1.5f32).to_vec::<f32>(), [1.5; 4]);
    /// ```
    full try_full<T>(shape: impl Into<Shape>, v: T) {
        let shape = shape.into();
        shape.checked_len().within("full")?;
        Ok(Tensor::new(T::DTYPE, shape, Data::Splat(Bits::of(v.store()))))
    }

    /// Zeros, of type f64; [`DType::zeros`] makes others.
    zeros try_zeros(shape: impl Into<Shape>) { Tensor::try_full(shape, 0.0) }

    /// Ones, of type f64; [`DType::ones`] makes others.
    ones try_ones(shape: impl Into<Shape>) { Tensor::try_full(shape, 1.0) }

    /// The identity matrix of `n` rows, f64.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// assert_eq!(Tensor::eye(2).to_vec::<f64>(), [1.0, 0.0, 0.0, 1.0]);
    /// ```
    eye try_eye(n: usize) {
        let shape = Shape::from([n, n]);
        let len = shape.checked_len().within("eye")?;
        let elements: Vec<f64> = (0..len).map(|k| (k % (n + 1) == 0) as u8 as f64).collect();
        Tensor::try_from_slice(&elements, shape)
    }

    /// The numbers `start`, `start + step`, .. below `end` (above it, if the step is negative).
    ///
    /// ```
    /// use pullback::prelude::*;
    /// assert_eq!(Tensor::arange(0, 10, 3).to_vec::<i64>(), [0, 3, 6, 9]);
    /// assert_eq!(Tensor::arange(1.0, 0.0, -0.25).to_vec::<f64>(), [1.0, 0.75, 0.5, 0.25]);
    /// ```
    arange try_arange<T>(start: T, end: T, step: T) {
        let (a, b, h) = (start.to_scalar().to_f64(), end.to_scalar().to_f64(), step.to_scalar().to_f64());
        let n = ((b - a) / h).ceil();
        if h == 0.0 || !n.is_finite() {
            return Err(err!(Value, "from {a} to {b} by steps of {h} is not a finite list")).within("arange");
        }
        let n = n.max(0.0) as usize;
        Shape::from(n).checked_len().within("arange")?;
        let at = |k: usize| match start.to_scalar() {
            Scalar::F64(_) => T::from_scalar(Scalar::F64(a + k as f64 * h)),
            s => T::from_scalar(Scalar::I64(s.to_i64() + k as i64 * step.to_scalar().to_i64())),
        };
        Tensor::try_from_slice(&(0..n).map(at).collect::<Vec<T>>(), n)
    }

    /// `n` numbers from `start` to `end`, both included, at equal distances; f64.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// assert_eq!(Tensor::linspace(0.0, 1.0, 5).to_vec::<f64>(), [0.0, 0.25, 0.5, 0.75, 1.0]);
    /// ```
    linspace try_linspace(start: f64, end: f64, n: usize) {
        Shape::from(n).checked_len().within("linspace")?;
        let last = n.saturating_sub(1).max(1) as f64;
        // From both ends, so that each end is exact and the points are symmetric.
        let at = |k: usize| {
            let h = (end - start) / last;
            if 2 * k < n { start + k as f64 * h } else { end - (n - 1 - k) as f64 * h }
        };
        Tensor::try_from_slice(&(0..n).map(at).collect::<Vec<f64>>(), n)
    }
}

impl<T: Element> From<T> for Tensor {
    fn from(v: T) -> Tensor {
        Tensor::scalar(v)
    }
}

impl<T: Element> From<Vec<T>> for Tensor {
    #[track_caller]
    fn from(v: Vec<T>) -> Tensor {
        Tensor::from_slice(&v, v.len())
    }
}

impl<T: Element> From<&[T]> for Tensor {
    #[track_caller]
    fn from(v: &[T]) -> Tensor {
        Tensor::from_slice(v, v.len())
    }
}

impl<T: Element, const N: usize> From<[T; N]> for Tensor {
    #[track_caller]
    fn from(v: [T; N]) -> Tensor {
        Tensor::from_slice(&v, N)
    }
}

impl<T: Element, const N: usize> From<&[T; N]> for Tensor {
    #[track_caller]
    fn from(v: &[T; N]) -> Tensor {
        Tensor::from_slice(v, N)
    }
}

/// Nested arrays, two to four deep.
macro_rules! nested {
    ($($array:ty, [$($N:ident),+], $flat:expr;)*) => {$(
        impl<T: Element, $(const $N: usize),+> From<$array> for Tensor {
            #[track_caller]
            fn from(v: $array) -> Tensor {
                let flatten: fn(&$array) -> &[T] = $flat;
                Tensor::from_slice(flatten(&v), [$($N),+])
            }
        }
    )*};
}
nested! {
    [[T; B]; A], [A, B], |v| v.as_flattened();
    [[[T; C]; B]; A], [A, B, C], |v| v.as_flattened().as_flattened();
    [[[[T; D]; C]; B]; A], [A, B, C, D], |v| v.as_flattened().as_flattened().as_flattened();
}

/// Rows of equal length; ragged rows panic with the first that differs.
impl<T: Element> From<Vec<Vec<T>>> for Tensor {
    #[track_caller]
    fn from(rows: Vec<Vec<T>>) -> Tensor {
        let n = rows.first().map_or(0, Vec::len);
        if let Some((k, row)) = rows.iter().enumerate().find(|(_, r)| r.len() != n) {
            let e = err!(Shape, "row {k} has {} elements, the first has {n}", row.len());
            or_panic(Err(e.in_op("from").at(caller())))
        }
        Tensor::from_slice(&rows.concat(), [rows.len(), n])
    }
}
