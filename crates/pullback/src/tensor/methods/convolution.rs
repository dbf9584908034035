//! Convolutions and transposed convolutions, channels first.

use super::methods;
use crate::dtype::DType;
use crate::error::{Result, err, or_panic};
use crate::location::{caller, with_caller};
use crate::ops::*;
use crate::shape::Shape;
use crate::tensor::operand::{check_dtypes, conform};
use crate::tensor::{Tensor, bind};
use smallvec::SmallVec;
use std::borrow::Cow;

/// One number for all spatial axes, or one for each of them.
#[derive(Clone, Debug, PartialEq)]
pub struct PerAxis(SmallVec<[usize; 3]>);

impl From<usize> for PerAxis {
    fn from(n: usize) -> Self {
        PerAxis([n].as_slice().into())
    }
}

impl<const N: usize> From<[usize; N]> for PerAxis {
    fn from(n: [usize; N]) -> Self {
        n.as_slice().into()
    }
}

impl From<&[usize]> for PerAxis {
    fn from(n: &[usize]) -> Self {
        PerAxis(n.into())
    }
}

impl PerAxis {
    /// The numbers for so many axes.
    pub(super) fn over(&self, what: &str, axes: usize) -> Result<Shape> {
        match self.0[..] {
            [n] => Ok(std::iter::repeat_n(n, axes).collect()),
            ref all if all.len() == axes => Ok(all.into()),
            ref all => Err(err!(Shape, "{what} {all:?}: one number, or one for each of {axes} spatial axes")),
        }
    }
}

/// What stands around the spatial axes of an input.
#[derive(Clone, Debug, PartialEq)]
enum Around {
    /// Zeros in front and behind.
    Zeros(PerAxis, PerAxis),
    Same,
    Causal,
}

/// Zeros on both sides of the spatial axes: one number for all, one for each axis, or `(low, high)` for each axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Padding(PerAxis, PerAxis);

impl From<usize> for Padding {
    fn from(n: usize) -> Self {
        Padding(n.into(), n.into())
    }
}

impl<const N: usize> From<[usize; N]> for Padding {
    fn from(n: [usize; N]) -> Self {
        Padding(n.into(), n.into())
    }
}

impl<const N: usize> From<[(usize, usize); N]> for Padding {
    fn from(n: [(usize, usize); N]) -> Self {
        Padding(n.map(|n| n.0).into(), n.map(|n| n.1).into())
    }
}

impl Padding {
    pub(super) fn over(&self, axes: usize) -> Result<(Shape, Shape)> {
        Ok((self.0.over("padding", axes)?, self.1.over("padding", axes)?))
    }
}

/// How a kernel goes over its input; see [`conv2d`](Tensor::conv2d).
///
/// ```
/// use pullback::{Conv, prelude::*};
/// let x = Tensor::ones([1, 4, 28, 28]);
/// let half = x.conv2d(&Tensor::ones([8, 4, 3, 3]), Conv::new().stride(2).padding(1));
/// assert_eq!(half.shape(), [1, 8, 14, 14]);
/// let depthwise = x.conv2d(&Tensor::ones([4, 1, 3, 5]), Conv::new().groups(4).same());
/// assert_eq!(depthwise.shape(), [1, 4, 28, 28]);
/// let wide = x.conv2d(&Tensor::ones([8, 4, 3, 3]), Conv::new().stride([1, 2]).padding([(0, 2), (1, 1)]).dilation(2));
/// assert_eq!(wide.shape(), [1, 8, 26, 13]);
/// ```
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct Conv {
    stride: PerAxis,
    dilation: PerAxis,
    output_padding: PerAxis,
    around: Around,
    groups: usize,
}

impl Default for Conv {
    fn default() -> Self {
        Conv::new()
    }
}

impl Conv {
    /// Stride 1, no padding, no dilation, one group.
    pub fn new() -> Conv {
        Conv {
            stride: 1.into(),
            dilation: 1.into(),
            output_padding: 0.into(),
            around: Around::Zeros(0.into(), 0.into()),
            groups: 1,
        }
    }

    /// Steps from one window to the next.
    pub fn stride(mut self, stride: impl Into<PerAxis>) -> Conv {
        self.stride = stride.into();
        self
    }

    /// Zeros around the input: a number, one for each axis, or `(low, high)` for each axis.
    pub fn padding(mut self, padding: impl Into<Padding>) -> Conv {
        let Padding(low, high) = padding.into();
        self.around = Around::Zeros(low, high);
        self
    }

    /// As many zeros that the output has the length of the input over the stride, rounded up; where they are odd, the last one is behind.
    pub fn same(mut self) -> Conv {
        self.around = Around::Same;
        self
    }

    /// As many zeros in front that an output sees no input behind its own place.
    pub fn causal(mut self) -> Conv {
        self.around = Around::Causal;
        self
    }

    /// Steps from one element of a window to the next.
    #[doc(alias = "rhs_dilation")]
    pub fn dilation(mut self, dilation: impl Into<PerAxis>) -> Conv {
        self.dilation = dilation.into();
        self
    }

    /// Groups of channels that do not see each other: as many as channels for a depthwise convolution.
    #[doc(alias = "feature_group_count")]
    pub fn groups(mut self, groups: usize) -> Conv {
        self.groups = groups;
        self
    }

    /// Elements by which the result of a transposed convolution is longer than the shortest one that fits: less than the stride, which leaves so many open.
    pub fn output_padding(mut self, longer: impl Into<PerAxis>) -> Conv {
        self.output_padding = longer.into();
        self
    }

    /// The window for a kernel of these lengths; where the padding depends on the input, one of these.
    fn window(&self, kernel: &[usize], input: Option<&[usize]>) -> Result<Window> {
        let axes = kernel.len();
        let (stride, dilation) = (self.stride.over("stride", axes)?, self.dilation.over("dilation", axes)?);
        let reach = |a: usize| dilation[a].saturating_mul(kernel[a].saturating_sub(1));
        let (low, high) = match &self.around {
            Around::Zeros(low, high) => (low.over("padding", axes)?, high.over("padding", axes)?),
            Around::Causal => ((0..axes).map(reach).collect(), (0..axes).map(|_| 0).collect()),
            Around::Same => {
                let input = input.ok_or_else(|| {
                    err!(Value, "a transposed convolution has no padding `same`: give numbers")
                })?;
                let total = |a: usize| {
                    let (n, s) = (input[a], stride[a].max(1));
                    (n.div_ceil(s).saturating_sub(1) * s)
                        .saturating_add(reach(a))
                        .saturating_add(1)
                        .saturating_sub(n)
                };
                ((0..axes).map(|a| total(a) / 2).collect(), (0..axes).map(|a| total(a).div_ceil(2)).collect())
            }
        };
        Ok(Window { stride, low, high, dilation })
    }
}

/// Both in one float type, the input with an axis of images, which is taken away again where it was not there.
#[track_caller]
fn prepared(
    op: &'static str,
    x: &Tensor,
    kernel: &Tensor,
    axes: usize,
    f: impl FnOnce(&Tensor, &Tensor) -> Result<Tensor>,
) -> Result<Tensor> {
    let run = || {
        if !(axes + 1..=axes + 2).contains(&x.rank()) || kernel.rank() != axes + 2 {
            return Err(err!(
                Shape,
                "takes an input [images, channels, ..] and a kernel [.., .., ..] with {axes} spatial axes each; the input may have no axis of images; got \
                 {:?} and {:?}",
                x.shape(),
                kernel.shape()
            ));
        }
        let dtype = DType::promote(x.dtype(), kernel.dtype());
        check_dtypes(x, kernel, dtype)?;
        let a = conform(Cow::Borrowed(x), dtype, &x.node().shape)?;
        let b = conform(Cow::Borrowed(kernel), dtype, &kernel.node().shape)?;
        match x.rank() == axes + 1 {
            true => f(&a.try_unsqueeze(0)?, &b)?.try_squeeze(0),
            false => f(&a, &b),
        }
    };
    with_caller(caller(), run).map_err(|e| e.renamed(op))
}

#[track_caller]
fn conv(op: &'static str, x: &Tensor, kernel: &Tensor, axes: usize, options: &Conv) -> Result<Tensor> {
    prepared(op, x, kernel, axes, |x, k| {
        let window = options.window(&k.shape()[2..], Some(&x.shape()[2..]))?;
        bind(Convolve { window, groups: options.groups }, &[x, k])
    })
}

/// The input of a convolution with the same options whose output is `x`.
#[track_caller]
fn conv_transpose(
    op: &'static str,
    x: &Tensor,
    kernel: &Tensor,
    axes: usize,
    options: &Conv,
) -> Result<Tensor> {
    prepared(op, x, kernel, axes, |x, k| {
        let window = options.window(&k.shape()[2..], None)?;
        let more = options.output_padding.over("output_padding", axes)?;
        let length = |a: usize| {
            let (n, k) = (x.shape()[2 + a], k.shape()[2 + a]);
            let full = (n.checked_sub(1)?.checked_mul(window.stride[a])?)
                .checked_add(window.dilation[a].checked_mul(k.checked_sub(1)?)?)?
                .checked_add(more[a])?
                .checked_add(1)?;
            full.checked_sub(window.low[a].checked_add(window.high[a])?)
                .filter(|_| more[a] < window.stride[a])
        };
        let extent = (0..axes).map(length).collect::<Option<Shape>>().ok_or_else(|| {
            err!(
                Shape,
                "an input of {:?} by a kernel of {:?} leaves nothing of {options:?}: the padding is taken off the result, and output_padding is \
                 less than the stride",
                x.shape(),
                k.shape()
            )
        })?;
        if x.shape()[1] != k.shape()[0] {
            return Err(err!(
                Shape,
                "an input of {:?} and a kernel of {:?}: the kernel is [channels of the input, channels of the result / groups, ..]",
                x.shape(),
                k.shape()
            ));
        }
        bind(ConvolveInput { window, groups: options.groups, extent }, &[x, k])
    })
}

methods! { $ convolution_methods;
    /// Convolution of `[n, c, w]` by a kernel `[o, c / groups, k]`; see [`conv2d`](Tensor::conv2d).
    conv1d try_conv1d(&self, kernel: &Tensor, options: Conv) -> Tensor { conv("conv1d", self, kernel, 1, &options) }

    /// Convolution of an input `[n, c, h, w]` by a kernel `[o, c / groups, kh, kw]`: `y[n, o, i] = Σ x[n, c, i stride + t dilation - low] k[o, c, t]`, over
    /// channels `c` and places `t` of the kernel. The kernel is not flipped, as everywhere in machine learning. The input may have no axis of images.
    ///
    /// ```
    /// use pullback::{Conv, prelude::*};
    /// let x = Tensor::from([[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]]);
    /// let k = Tensor::from([[[[1.0, -1.0]]]]);
    /// assert_eq!(x.conv2d(&k, Conv::new()).to_vec::<f64>(), [-1.0, -1.0, -1.0, -1.0]);
    /// ```
    #[doc(alias = "conv_general_dilated")]
    #[doc(alias = "correlate2d")]
    conv2d try_conv2d(&self, kernel: &Tensor, options: Conv) -> Tensor { conv("conv2d", self, kernel, 2, &options) }

    /// Convolution of `[n, c, d, h, w]` by a kernel `[o, c / groups, kd, kh, kw]`; see [`conv2d`](Tensor::conv2d).
    conv3d try_conv3d(&self, kernel: &Tensor, options: Conv) -> Tensor { conv("conv3d", self, kernel, 3, &options) }

    /// Transposed convolution over one axis; see [`conv_transpose2d`](Tensor::conv_transpose2d).
    conv_transpose1d try_conv_transpose1d(&self, kernel: &Tensor, options: Conv) -> Tensor {
        conv_transpose("conv_transpose1d", self, kernel, 1, &options)
    }

    /// Transposed convolution: what the gradient of [`conv2d`](Tensor::conv2d) does to a cotangent. The input is `[n, c, h, w]` and the kernel `[c, o / groups,
    /// kh, kw]`; a result has the length `(n - 1) stride - padding + dilation (k - 1) + 1 + output_padding`, the padding that of both sides.
    ///
    /// ```
    /// use pullback::{Conv, prelude::*};
    /// let x = Tensor::from([[[1.0, 2.0]]]);
    /// let y = x.conv_transpose2d(&Tensor::from([[[[1.0, 10.0]]]]), Conv::new().stride([1, 2]));
    /// assert_eq!(y.to_vec::<f64>(), [1.0, 10.0, 2.0, 20.0]);
    /// ```
    #[doc(alias = "deconvolution")]
    conv_transpose2d try_conv_transpose2d(&self, kernel: &Tensor, options: Conv) -> Tensor {
        conv_transpose("conv_transpose2d", self, kernel, 2, &options)
    }

    /// Transposed convolution over three axes; see [`conv_transpose2d`](Tensor::conv_transpose2d).
    conv_transpose3d try_conv_transpose3d(&self, kernel: &Tensor, options: Conv) -> Tensor {
        conv_transpose("conv_transpose3d", self, kernel, 3, &options)
    }
}
