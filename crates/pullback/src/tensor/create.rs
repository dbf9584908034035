//! Making tensors: from Rust values, and by pattern.

use super::data::{Bits, Data, Strided};
use super::{Tensor, buffer::Buffer, device};
use crate::dtype::{DType, Element, Scalar};
use crate::error::{Result, Within, err, or_panic};
use crate::location::caller;
use crate::shape::Shape;
use bytemuck::Zeroable;

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

    #[track_caller]
    pub(crate) fn try_from_slice<T: Element>(elements: &[T], shape: impl Into<Shape>) -> Result<Tensor> {
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
        let copy = |out: &mut [T::Stored]| out.iter_mut().zip(elements).for_each(|(o, v)| *o = v.store());
        Tensor::written::<T>(shape, copy).map_err(|e| e.in_op("from_slice").at(at))
    }

    /// A tensor whose elements `write` puts where they stay, in row-major order.
    fn written<T: Element>(shape: Shape, write: impl FnOnce(&mut [T::Stored])) -> Result<Tensor> {
        let n = shape.checked_len()?;
        if n == 1 {
            let mut one = [T::Stored::zeroed()];
            write(&mut one);
            return Ok(Tensor::new(T::DTYPE, shape, Data::Splat(Bits::of(one[0]))));
        }
        let mut buffer = Buffer::try_new(n * size_of::<T::Stored>())?;
        write(&mut buffer.slice_mut().expect("a new buffer has one holder")[..n]);
        let strides = shape.strides();
        device::on_current(Tensor::new(
            T::DTYPE,
            shape,
            Data::Strided(Strided { buffer, offset: 0, strides }),
        ))
    }

    /// A tensor in the memory of the host whose elements `write` puts there as they are stored, in row-major order.
    pub(crate) fn from_bytes(
        dtype: DType,
        shape: Shape,
        write: impl FnOnce(&mut [u8]) -> Result<()>,
    ) -> Result<Tensor> {
        let bytes = shape.numel() * dtype.size();
        let mut buffer = Buffer::try_new(bytes)?;
        write(&mut buffer.slice_mut().expect("a new buffer has one holder")[..bytes])?;
        let strides = shape.strides();
        Ok(Tensor::new(dtype, shape, Data::Strided(Strided { buffer, offset: 0, strides })))
    }

    /// The elements `f(0)`, `f(1)`, .. in row-major order.
    pub(super) fn generated<T: Element>(shape: Shape, f: impl Fn(usize) -> T) -> Result<Tensor> {
        Tensor::written::<T>(shape, |out| out.iter_mut().enumerate().for_each(|(k, o)| *o = f(k).store()))
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

    /// This number everywhere, in this tensor's shape and type.
    pub(crate) fn filled(&self, value: f64) -> Tensor {
        Tensor::full_of(Scalar::F64(value), self.dtype(), self.node().shape.clone())
    }

    /// Ones of this tensor's shape and type.
    #[must_use]
    pub fn ones_like(&self) -> Tensor {
        Tensor::ones_of(self.dtype(), &self.node().shape)
    }
}

/// Functions that panic with a message, each with a `try_` form that returns the error, as `methods!` has them.
macro_rules! makers {
    ($dollar:tt $list:ident; $($(#[$doc:meta])* $name:ident $try:ident$(<$T:ident>)?($($arg:ident: $t:ty),* $(,)?) $body:block)*) => {
        impl Tensor {
            $(
                $(#[$doc])*
                #[must_use]
                #[track_caller]
                pub fn $name$(<$T: Element>)?($($arg: $t),*) -> Tensor {
                    or_panic(Tensor::$try($($arg),*))
                }

                #[track_caller]
                pub(crate) fn $try$(<$T: Element>)?($($arg: $t),*) -> Result<Tensor> $body
            )*
        }

        macro_rules! $list {
            ($dollar emit:ident) => {
                $($dollar emit! { $name $try$(<$T>)?($($arg: $t),*) })*
            };
        }
        pub(in crate::tensor) use $list;
    };
}

pub(super) use makers;

makers! { $ create_makers;
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

    /// The identity matrix of `n` rows, or of `[n, m]` rows and columns with ones on the main diagonal; f64.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// assert_eq!(Tensor::eye(2).to_vec::<f64>(), [1.0, 0.0, 0.0, 1.0]);
    /// assert_eq!(Tensor::eye([1, 3]).to_vec::<f64>(), [1.0, 0.0, 0.0]);
    /// ```
    eye try_eye(shape: impl Into<Shape>) {
        let shape = shape.into();
        let (n, m) = match shape[..] {
            [n] => (n, n),
            [n, m] => (n, m),
            _ => return Err(err!(Shape, "a matrix has rows and columns, got shape {shape:?}")).within("eye"),
        };
        Tensor::generated([n, m].into(), |k| (k / m == k % m) as u8 as f64).within("eye")
    }

    /// The numbers `start`, `start + step`, .. below `end` (above it, if the step is negative).
    ///
    /// ```
    /// use pullback::prelude::*;
    /// assert_eq!(Tensor::arange(0, 10, 3).to_vec::<i64>(), [0, 3, 6, 9]);
    /// assert_eq!(Tensor::arange(1.0, 0.0, -0.25).to_vec::<f64>(), [1.0, 0.75, 0.5, 0.25]);
    /// ```
    arange try_arange<T>(start: T, end: T, step: T) {
        if T::DTYPE.is_complex() {
            return Err(err!(DType, "complex numbers have no order to count in; cast a list of real ones")).within("arange");
        }
        let all = [start, end, step].map(|v| v.to_scalar());
        let [a, b, h] = all.map(|v| v.to_f64());
        let endless = || err!(Value, "from {a} to {b} by steps of {h} is not a finite list");
        if let [Scalar::F64(_), ..] = all {
            let n = ((b - a) / h).ceil();
            if h == 0.0 || !n.is_finite() {
                return Err(endless()).within("arange");
            }
            let at = |k: usize| T::from_scalar(Scalar::F64(a + k as f64 * h));
            return Tensor::generated((n.max(0.0) as usize).into(), at).within("arange");
        }
        // Exactly: floats would miscount the largest integers.
        let [a, b, h] = all.map(|v| v.to_i64() as i128);
        if h == 0 {
            return Err(endless()).within("arange");
        }
        let n = usize::try_from((b - a + h - h.signum()) / h).unwrap_or(if (b > a) == (h > 0) { usize::MAX } else { 0 });
        Tensor::generated(n.into(), |k| T::from_scalar(Scalar::I64((a + k as i128 * h) as i64))).within("arange")
    }

    /// `n` numbers from `start` to `end`, both included, at equal distances; f64.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// assert_eq!(Tensor::linspace(0.0, 1.0, 5).to_vec::<f64>(), [0.0, 0.25, 0.5, 0.75, 1.0]);
    /// ```
    linspace try_linspace(start: f64, end: f64, n: usize) {
        let last = n.saturating_sub(1).max(1) as f64;
        // From both ends, so that each end is exact and the points are symmetric.
        let at = |k: usize| {
            let h = (end - start) / last;
            if 2 * k < n { start + k as f64 * h } else { end - (n - 1 - k) as f64 * h }
        };
        Tensor::generated(n.into(), at).within("linspace")
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
