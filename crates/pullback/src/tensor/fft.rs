//! Discrete Fourier transforms, with the feature `fft`.
//!
//! `fft` of `x` is `X[k] = Σ x[j] exp(-2πi j k / n)`, and `ifft` its inverse, `x[j] = 1/n Σ X[k] exp(2πi j k / n)`. Of real numbers one half of
//! the transform tells the other, and `rfft` computes that half; `irfft` makes real numbers of it again. The functions of this module
//! transform the last axis, the last two (`2`) or all axes (`n`); [`over`] takes other axes, lengths and normalisations.
//!
//! All are differentiable to any order, in the convention of [the guide](crate::guide::semantics): a gradient with respect to complex numbers
//! is `∂L/∂x + i ∂L/∂y`.
//!
//! ```
//! use pullback::{fft, prelude::*};
//! let x = Tensor::from([1.0, 2.0, 3.0, 4.0]);
//! let power = |x: &Tensor| fft::fft(x).abs().square().sum(); // 4 Σ x², by Parseval's theorem
//! assert!(grad(power)(&x).is_close(&(&x * 8.0), 1e-12, 0.0));
//! assert!(fft::irfft(&fft::rfft(&x), 4).is_close(&x, 1e-12, 0.0));
//! ```

use super::{AxisList, Tensor, bind};
use crate::error::{Result, Within, err, or_panic};
use crate::location::{caller, with_caller};
use crate::ops::{Fft, Irfft, Rfft};
use crate::shape::{self, Axes};

/// Which direction is divided by the number of elements, `n`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Norm {
    /// The inverse, by `n`.
    #[default]
    Backward,
    /// Both, by `√n`: the transform is then unitary.
    Ortho,
    /// The forward transform, by `n`.
    Forward,
}

impl Norm {
    fn scale(self, n: f64, inverse: bool) -> f64 {
        match (self, inverse) {
            (Norm::Ortho, _) => n.sqrt().recip(),
            (Norm::Backward, true) | (Norm::Forward, false) => n.recip(),
            _ => 1.0,
        }
    }
}

/// A transform over some axes. Made by [`over`].
///
/// ```
/// use pullback::{fft, prelude::*};
/// let image = Tensor::ones([3, 4]);
/// let spectrum = fft::over([0, 1]).norm(fft::Norm::Ortho).rfft(&image);
/// assert_eq!(spectrum.shape(), [3, 3]);
/// assert_eq!(fft::over(-1).lengths([8]).fft(&image).shape(), [3, 8]); // padded with zeros
/// ```
#[derive(Clone, Debug)]
pub struct Transform {
    axes: Vec<isize>,
    lengths: Option<Vec<usize>>,
    norm: Norm,
}

/// A transform over these axes; negative ones count from the end. Of a transform of real numbers the last one named is that which becomes
/// half as long.
#[must_use]
#[doc(alias("dim", "axis"))]
pub fn over(axes: impl Into<AxisList>) -> Transform {
    Transform { axes: axes.into().0.to_vec(), lengths: None, norm: Norm::default() }
}

/// A transform that panics with a message, and its `try_` form.
macro_rules! transforms {
    ($($(#[$doc:meta])* $name:ident $try:ident = $f:expr;)*) => {$(
        $(#[$doc])*
        #[must_use]
        #[track_caller]
        pub fn $name(&self, x: &Tensor) -> Tensor {
            or_panic(self.$try(x))
        }

        #[doc = concat!("[`", stringify!($name), "`](Transform::", stringify!($name), "), with bad arguments as an error.")]
        #[track_caller]
        pub fn $try(&self, x: &Tensor) -> Result<Tensor> {
            let (location, f): (_, fn(&Transform, &Tensor) -> Result<Tensor>) = (caller(), $f);
            with_caller(location, || f(self, x)).map_err(|e| e.renamed(stringify!($name)).at(location))
        }
    )*};
}

impl Transform {
    /// How long each of the axes is before it is transformed: it is cut, or padded with zeros at its end. `irfft` takes the lengths of its
    /// result.
    #[must_use]
    #[doc(alias("n", "s"))]
    pub fn lengths(mut self, lengths: impl Into<Vec<usize>>) -> Transform {
        self.lengths = Some(lengths.into());
        self
    }

    /// How the transform is normalised.
    #[must_use]
    pub fn norm(mut self, norm: Norm) -> Transform {
        self.norm = norm;
        self
    }

    transforms! {
        /// The transform. Real numbers are taken for complex ones.
        fft try_fft = |t, x| t.complex(x, false);
        /// The inverse of [`fft`](Transform::fft).
        ifft try_ifft = |t, x| t.complex(x, true);
        /// The transform of real numbers: of the last axis named only the first `n / 2 + 1` elements, which tell the others.
        rfft try_rfft = Transform::half;
        /// The inverse of [`rfft`](Transform::rfft): real numbers. The last axis named has `2 (m - 1)` elements for `m` of `x`, unless
        /// [`lengths`](Transform::lengths) says otherwise, as it must for an odd number. Imaginary parts that belong to no real numbers, as
        /// that of the first element does, are not read, and have the derivative 0.
        irfft try_irfft = Transform::whole;
    }

    /// The axes in the order in which they were named, and the length of each.
    fn resolve(&self, x: &Tensor, halved: bool) -> Result<(Vec<usize>, Vec<usize>)> {
        shape::axes(&self.axes, x.rank())?;
        let axes = self.axes.iter().map(|&a| shape::axis(a, x.rank())).collect::<Result<Vec<usize>>>()?;
        let mut lengths: Vec<usize> = axes.iter().map(|&a| x.shape()[a]).collect();
        if let (true, Some(m)) = (halved, lengths.last_mut()) {
            *m = 2 * m.saturating_sub(1);
        }
        match &self.lengths {
            Some(given) if given.len() != axes.len() => {
                Err(err!(Shape, "{} lengths were given for {} axes", given.len(), axes.len()))
            }
            Some(given) => Ok((axes, given.clone())),
            None => Ok((axes, lengths)),
        }
    }

    fn scale(&self, lengths: &[usize], inverse: bool) -> f64 {
        self.norm.scale(lengths.iter().map(|&n| n as f64).product(), inverse)
    }

    fn complex(&self, x: &Tensor, inverse: bool) -> Result<Tensor> {
        let (axes, lengths) = self.resolve(x, false)?;
        let x = fitted(&x.try_cast(x.dtype().complex())?, &axes, &lengths)?;
        let scale = self.scale(&lengths, inverse);
        bind(Fft { axes: sorted(&axes), inverse, scale }, &[&x])
    }

    fn half(&self, x: &Tensor) -> Result<Tensor> {
        if x.dtype().is_complex() {
            return Err(err!(DType, "takes real numbers, got {}; use fft, or .real()", x.dtype()));
        }
        let (axes, lengths) = self.resolve(x, false)?;
        let Some((&last, rest)) = axes.split_last() else { return Err(no_axes()) };
        let x = fitted(&x.try_cast(x.dtype().complex().real())?, &axes, &lengths)?;
        let half = Rfft { scale: self.scale(&lengths, false) };
        let y = along(last, &x, |x| bind(half, &[x]))?;
        match rest {
            [] => Ok(y),
            _ => bind(Fft { axes: sorted(rest), inverse: false, scale: 1.0 }, &[&y]),
        }
    }

    fn whole(&self, x: &Tensor) -> Result<Tensor> {
        let (axes, lengths) = self.resolve(x, true)?;
        let (Some((&last, rest)), Some(&n)) = (axes.split_last(), lengths.last()) else {
            return Err(no_axes());
        };
        let mut halved = lengths.clone();
        halved[rest.len()] = n / 2 + 1;
        let x = fitted(&x.try_cast(x.dtype().complex())?, &axes, &halved)?;
        let y = match rest {
            [] => x,
            _ => bind(Fft { axes: sorted(rest), inverse: true, scale: 1.0 }, &[&x])?,
        };
        let whole = Irfft { n, scale: self.scale(&lengths, true) };
        along(last, &y, |y| bind(whole, &[y]))
    }
}

fn no_axes() -> crate::Error {
    err!(Axis, "needs an axis, of which it transforms one half")
}

fn sorted(axes: &[usize]) -> Axes {
    let mut axes: Axes = axes.into();
    axes.sort_unstable();
    axes
}

/// What `f` does to the last axis, done to another.
fn along(axis: usize, x: &Tensor, f: impl FnOnce(&Tensor) -> Result<Tensor>) -> Result<Tensor> {
    if axis + 1 == x.rank() {
        return f(x);
    }
    f(&x.try_transpose(axis as isize, -1)?)?.try_transpose(axis as isize, -1)
}

/// Cut, or padded with zeros, to these lengths.
fn fitted(x: &Tensor, axes: &[usize], lengths: &[usize]) -> Result<Tensor> {
    let mut x = x.clone();
    for (&axis, &n) in axes.iter().zip(lengths) {
        let have = x.shape()[axis];
        if n < have {
            x = x.narrowed(axis, 0, n);
        } else if n > have {
            let mut shape = x.node().shape.to_vec();
            shape[axis] = n - have;
            let zeros = Tensor::zeros_of(x.dtype(), shape);
            x = Tensor::try_concat(&[&x, &zeros], axis as isize)?;
        }
    }
    Ok(x)
}

/// Shortcuts: over the last axis, the last two, and all.
macro_rules! shortcuts {
    ($($(#[$doc:meta])* $name:ident = $method:ident over $axes:expr;)*) => {$(
        $(#[$doc])*
        #[must_use]
        #[track_caller]
        pub fn $name(x: &Tensor) -> Tensor {
            let axes: fn(&Tensor) -> AxisList = $axes;
            or_panic(over(axes(x)).$method(x).map_err(|e| e.renamed(stringify!($name))))
        }
    )*};
}

fn last(_: &Tensor) -> AxisList {
    AxisList::from(-1)
}

fn last_two(_: &Tensor) -> AxisList {
    AxisList::from([-2, -1])
}

fn all(x: &Tensor) -> AxisList {
    AxisList((0..x.rank() as isize).collect())
}

shortcuts! {
    /// The transform of the last axis, `X[k] = Σ x[j] exp(-2πi j k / n)`.
    ///
    /// ```
    /// use pullback::{Complex, fft, prelude::*};
    /// let y = fft::fft(&Tensor::from([1.0, 0.0, -1.0, 0.0]));
    /// assert_eq!(y.real().to_vec::<f64>(), [0.0, 2.0, 0.0, 2.0]);
    /// ```
    fft = try_fft over last;
    /// The inverse of [`fft()`], `x[j] = 1/n Σ X[k] exp(2πi j k / n)`.
    ifft = try_ifft over last;
    /// The first `n / 2 + 1` elements of the transform of `n` real numbers along the last axis.
    ///
    /// ```
    /// use pullback::{fft, prelude::*};
    /// assert_eq!(fft::rfft(&Tensor::ones([6])).shape(), [4]);
    /// ```
    rfft = try_rfft over last;
    /// [`fft()`] of the last two axes.
    fft2 = try_fft over last_two;
    /// [`ifft`] of the last two axes.
    ifft2 = try_ifft over last_two;
    /// [`rfft`] of the last axis, and [`fft()`] of the one before it.
    rfft2 = try_rfft over last_two;
    /// [`fft()`] of all axes.
    fftn = try_fft over all;
    /// [`ifft`] of all axes.
    ifftn = try_ifft over all;
    /// [`rfft`] of the last axis, and [`fft()`] of all others.
    rfftn = try_rfft over all;
}

/// Shortcuts of inverses, of which the result has `n` elements along the last axis.
macro_rules! real_inverses {
    ($($(#[$doc:meta])* $name:ident over $axes:expr;)*) => {$(
        $(#[$doc])*
        #[must_use]
        #[track_caller]
        pub fn $name(x: &Tensor, n: usize) -> Tensor {
            let axes: fn(&Tensor) -> AxisList = $axes;
            or_panic(with_last(over(axes(x)), x, n).and_then(|t| t.try_irfft(x)).map_err(|e| e.renamed(stringify!($name)).at(caller())))
        }
    )*};
}

/// The same transform with `n` elements along the last axis.
fn with_last(transform: Transform, x: &Tensor, n: usize) -> Result<Transform> {
    let (_, mut lengths) = transform.resolve(x, true)?;
    if let Some(last) = lengths.last_mut() {
        *last = n;
    }
    Ok(transform.lengths(lengths))
}

real_inverses! {
    /// The inverse of [`rfft`]: `n` real numbers along the last axis.
    ///
    /// ```
    /// use pullback::{fft, prelude::*};
    /// let x = Tensor::from([1.0, 2.0, 3.0]);
    /// assert!(fft::irfft(&fft::rfft(&x), 3).is_close(&x, 1e-12, 0.0));
    /// ```
    irfft over last;
    /// The inverse of [`rfft2`]: real numbers, `n` along the last axis.
    irfft2 over last_two;
    /// The inverse of [`rfftn`]: real numbers, `n` along the last axis.
    irfftn over all;
}

/// The frequencies of the elements of a transform of `n` samples that are `spacing` apart, in cycles per unit: `0, 1, .., -2, -1` over
/// `n spacing`; f64.
///
/// ```
/// use pullback::fft;
/// assert_eq!(fft::fftfreq(4, 0.5).to_vec::<f64>(), [0.0, 0.5, -1.0, -0.5]);
/// ```
#[must_use]
#[track_caller]
pub fn fftfreq(n: usize, spacing: f64) -> Tensor {
    let signed = |k: usize| if k < n.div_ceil(2) { k as f64 } else { k as f64 - n as f64 };
    or_panic(Tensor::generated(n.into(), |k| signed(k) / (n as f64 * spacing)).within("fftfreq"))
}

/// The frequencies of the elements of [`rfft`]: the first `n / 2 + 1` of [`fftfreq`], all of them positive.
///
/// ```
/// use pullback::fft;
/// assert_eq!(fft::rfftfreq(4, 0.5).to_vec::<f64>(), [0.0, 0.5, 1.0]);
/// ```
#[must_use]
#[track_caller]
pub fn rfftfreq(n: usize, spacing: f64) -> Tensor {
    or_panic(Tensor::generated((n / 2 + 1).into(), |k| k as f64 / (n as f64 * spacing)).within("rfftfreq"))
}

/// The frequency 0 moved to the middle of each of these axes.
///
/// ```
/// use pullback::{fft, prelude::*};
/// let x = Tensor::from([0.0, 1.0, 2.0, -2.0, -1.0]);
/// assert_eq!(fft::fftshift(&x, 0).to_vec::<f64>(), [-2.0, -1.0, 0.0, 1.0, 2.0]);
/// ```
#[must_use]
#[track_caller]
pub fn fftshift(x: &Tensor, axes: impl Into<AxisList>) -> Tensor {
    or_panic(shifted(x, axes.into(), |n| n.div_ceil(2)).within("fftshift"))
}

/// The inverse of [`fftshift`].
///
/// ```
/// use pullback::{fft, prelude::*};
/// let x = Tensor::from([-2.0, -1.0, 0.0, 1.0, 2.0]);
/// assert_eq!(fft::ifftshift(&x, 0).to_vec::<f64>(), [0.0, 1.0, 2.0, -2.0, -1.0]);
/// ```
#[must_use]
#[track_caller]
pub fn ifftshift(x: &Tensor, axes: impl Into<AxisList>) -> Tensor {
    or_panic(shifted(x, axes.into(), |n| n / 2).within("ifftshift"))
}

/// Axes of which the elements before the `first(n)`-th come after the others.
#[track_caller]
fn shifted(x: &Tensor, list: AxisList, first: fn(usize) -> usize) -> Result<Tensor> {
    let mut x = x.clone();
    for axis in shape::axes(&list.0, x.rank())? {
        let n = x.shape()[axis];
        let at = first(n);
        let parts = [x.narrowed(axis, at, n - at), x.narrowed(axis, 0, at)];
        x = Tensor::try_concat(&parts, axis as isize)?;
    }
    Ok(x)
}
