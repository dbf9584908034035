//! Reading elements.

use super::{Data, Tensor, Value};
use crate::allocation::ask_for;
use crate::dtype::{DType, Element, Scalar, with_bits, with_real};
use crate::error::{Result, Within, err, or_panic};
use crate::kernels::movement;
use crate::kernels::view::View;
use bytemuck::Zeroable;
use num_complex::Complex;

impl Tensor {
    /// The only element, as f64.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// assert_eq!(Tensor::from([[3]]).item(), 3.0);
    /// ```
    #[must_use]
    #[track_caller]
    pub fn item(&self) -> f64 {
        or_panic(self.try_item())
    }

    #[track_caller]
    pub(crate) fn try_item(&self) -> Result<f64> {
        if self.numel() != 1 {
            let e =
                err!(Shape, "needs a single element, got shape {:?}; index it, or use to_vec", self.shape());
            return Err(e.in_op("item").at(crate::location::caller()));
        }
        if self.dtype().is_complex() {
            let e = err!(
                DType,
                "a complex number is no f64; use .real() and .imag(), or to_vec::<Complex<f64>>()"
            );
            return Err(e.in_op("item").at(crate::location::caller()));
        }
        self.host().map(|t| first(t.value())).map_err(|e| e.in_op("item"))
    }

    /// The element at a position, as f64; negative numbers count from the end. ([`at`](Tensor::at) names elements to be replaced.)
    ///
    /// ```
    /// use pullback::prelude::*;
    /// assert_eq!(Tensor::from([[1.0, 2.0], [3.0, 4.0]]).item_at([1, -2]), 3.0);
    /// ```
    #[must_use]
    #[track_caller]
    pub fn item_at<const N: usize>(&self, position: [isize; N]) -> f64 {
        if N != self.rank() {
            panic!(
                "{}",
                err!(Index, "a position of {N} numbers does not fit shape {:?}", self.shape())
                    .in_op("item_at")
            );
        }
        position.iter().fold(self.stripped(), |t, &k| t.get(k)).item()
    }

    /// All elements in row-major order, converted to `T`.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = Tensor::from([[1.0, 2.0], [3.0, 4.0]]);
    /// assert_eq!(x.t().to_vec::<f32>(), [1.0, 3.0, 2.0, 4.0]);
    /// ```
    #[must_use]
    #[track_caller]
    pub fn to_vec<T: Element>(&self) -> Vec<T> {
        or_panic(self.try_to_vec())
    }

    #[track_caller]
    pub(crate) fn try_to_vec<T: Element>(&self) -> Result<Vec<T>> {
        let x = self.host().map_err(|e| e.in_op("to_vec"))?.bare().try_cast(T::DTYPE)?;
        ask_for::<T>(x.numel()).within("to_vec")?;
        let mut out = vec![T::Stored::zeroed(); x.numel()];
        movement::copy(x.value().view::<T::Stored>(), &mut out);
        Ok(out.into_iter().map(T::load).collect())
    }

    /// The elements where they are, without copying: if they are of type `T`, in the memory of the host, and contiguous in row-major order. `None`
    /// otherwise; [`to_vec`](Tensor::to_vec) always works. A number that is repeated, such as `Tensor::ones` has, is stored once, and not
    /// contiguous unless it is alone.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = Tensor::from([[1.0, 2.0], [3.0, 4.0]]);
    /// assert_eq!(x.as_slice::<f64>(), Some(&[1.0, 2.0, 3.0, 4.0][..]));
    /// assert_eq!(x.get(1).as_slice::<f64>(), Some(&[3.0, 4.0][..]));
    /// assert_eq!(x.t().as_slice::<f64>(), None);
    /// assert_eq!(x.as_slice::<f32>(), None);
    /// ```
    #[must_use]
    pub fn as_slice<T: Element<Stored = T>>(&self) -> Option<&[T]> {
        let elements = self.host_view::<T>()?;
        if elements.len() == 0 { Some(&[]) } else { elements.as_slice() }
    }

    /// The elements where they are, if they are of type `T` and in the memory of the host.
    pub(super) fn host_view<T: Element>(&self) -> Option<View<'_, T::Stored>> {
        let here = matches!(self.data(), Data::Splat(_) | Data::Strided(_));
        (here && self.dtype() == T::DTYPE).then(|| self.value().view::<T::Stored>())
    }

    /// Whether every element is near that of `other`: `|a - b| <= absolute + relative |b|`. Shapes must be equal; NaN is near
    /// nothing.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = Tensor::from([1.0, 2.0]);
    /// assert!(x.is_close(&(&x + 1e-9), 1e-6, 0.0));
    /// assert!(!x.is_close(&(&x + 1e-3), 1e-6, 0.0));
    /// ```
    #[must_use]
    #[track_caller]
    pub fn is_close(&self, other: &Tensor, relative: f64, absolute: f64) -> bool {
        let near = |(a, b): (f64, f64)| a == b || (a - b).abs() <= absolute + relative * b.abs();
        let of = |t: &Tensor| t.dtype().is_complex();
        if of(self) || of(other) {
            let near = |(a, b): (Complex<f64>, Complex<f64>)| {
                a == b || (a - b).norm() <= absolute + relative * b.norm()
            };
            return self.shape() == other.shape() && self.to_vec().into_iter().zip(other.to_vec()).all(near);
        }
        self.shape() == other.shape() && self.to_vec::<f64>().into_iter().zip(other.to_vec()).all(near)
    }

    /// Whether no element is infinite or NaN.
    pub(crate) fn is_finite_everywhere(&self) -> bool {
        // A finite value times zero is zero; anything else makes the sum NaN.
        !self.dtype().is_differentiable()
            || !self.is_known()
            || (self.stripped() * 0.0).sum().numbers().iter().all(|&v| v == 0.0)
    }

    /// The first element that is infinite or NaN, for messages.
    pub(crate) fn first_not_finite(&self) -> f64 {
        self.numbers().into_iter().find(|v| !v.is_finite()).unwrap_or(0.0)
    }

    /// The elements as words, for tests that compare them to the last bit. A NaN is any NaN: its sign is neither Rust's nor the processor's
    /// to promise, and changes with what the compiler computes ahead.
    #[cfg(test)]
    pub(crate) fn bits(&self) -> Vec<u64> {
        let word = |v: f64| if v.is_nan() { f64::NAN.to_bits() } else { v.to_bits() };
        self.numbers().into_iter().map(word).collect()
    }

    /// The elements as f64; those of a complex tensor as their real and imaginary parts, in turn.
    #[track_caller]
    pub(crate) fn numbers(&self) -> Vec<f64> {
        match self.dtype().is_complex() {
            true => self.to_vec::<Complex<f64>>().into_iter().flat_map(|v| [v.re, v.im]).collect(),
            false => self.to_vec(),
        }
    }

    /// The concrete value alone, without history or tangents.
    pub(super) fn stripped(&self) -> Tensor {
        match self.data() {
            Data::Dual(d) => d.primal.stripped(),
            _ => self.bare(),
        }
    }

    /// The elements in row-major order, as they are stored.
    pub(crate) fn row_major_bytes(&self) -> Result<Vec<u8>> {
        with_bits!(self.dtype(), T => {
            ask_for::<T>(self.numel())?;
            let mut elements = vec![T::zeroed(); self.numel()];
            movement::copy(self.value().view::<T>(), &mut elements);
            Ok(bytemuck::cast_slice(&elements).to_vec())
        })
    }

    /// Any element as a number, for printing.
    pub(super) fn scalars(&self) -> Vec<Scalar> {
        match self.dtype() {
            d if d.is_float() => self.to_vec::<f64>().into_iter().map(Scalar::F64).collect(),
            d if d.is_complex() => self.to_vec::<Complex<f64>>().into_iter().map(Scalar::Complex).collect(),
            DType::Bool => self.to_vec::<bool>().into_iter().map(Scalar::Bool).collect(),
            _ => self.to_vec::<i64>().into_iter().map(Scalar::I64).collect(),
        }
    }
}

fn first(v: Value) -> f64 {
    match v.dtype {
        DType::F64 => v.view::<f64>().data[index(&v)],
        DType::F32 => v.view::<f32>().data[index(&v)] as f64,
        dtype => with_real!(dtype, T => v.view::<T>().data[index(&v)].to_scalar().to_f64()),
    }
}

/// Where the first element lies.
fn index(v: &Value) -> usize {
    v.layout().map_or(0, |(offset, _)| offset)
}
