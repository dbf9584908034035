//! Pooling: the largest, mean or norm of every window, channels first.

use super::convolution::{Padding, PerAxis};
use super::methods;
use crate::dtype::DType;
use crate::error::{Result, err, or_panic};
use crate::location::{caller, with_caller};
use crate::ops::*;
use crate::shape::Shape;
use crate::tensor::{Tensor, bind};

/// The windows of a pooling; see [`max_pool2d`](Tensor::max_pool2d). Wherever one is taken, a size alone will do.
///
/// ```
/// use pullback::{Pool, prelude::*};
/// let x = Tensor::ones([1, 3, 28, 28]);
/// assert_eq!(x.max_pool2d(2).shape(), [1, 3, 14, 14]);
/// assert_eq!(x.max_pool2d(Pool::new(3).stride(2).padding(1)).shape(), [1, 3, 14, 14]);
/// assert_eq!(x.avg_pool2d(Pool::new([3, 5]).stride(3).ceil()).shape(), [1, 3, 10, 9]);
/// ```
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct Pool {
    size: PerAxis,
    stride: Option<PerAxis>,
    padding: Padding,
    dilation: PerAxis,
    ceil: bool,
    counts_padding: bool,
}

impl<T: Into<PerAxis>> From<T> for Pool {
    fn from(size: T) -> Self {
        Pool::new(size)
    }
}

impl Pool {
    /// Windows of this size, side by side, without padding.
    pub fn new(size: impl Into<PerAxis>) -> Pool {
        Pool {
            size: size.into(),
            stride: None,
            padding: 0.into(),
            dilation: 1.into(),
            ceil: false,
            counts_padding: true,
        }
    }

    /// Steps from one window to the next; their size, if none are given.
    pub fn stride(mut self, stride: impl Into<PerAxis>) -> Pool {
        self.stride = Some(stride.into());
        self
    }

    /// Places around the input: a number, one for each axis, or `(low, high)` for each axis. Means and norms take zeros there, the largest does not look.
    pub fn padding(mut self, padding: impl Into<Padding>) -> Pool {
        self.padding = padding.into();
        self
    }

    /// Steps from one element of a window to the next.
    pub fn dilation(mut self, dilation: impl Into<PerAxis>) -> Pool {
        self.dilation = dilation.into();
        self
    }

    /// With a last window that reaches over the end, where otherwise elements would be left over.
    #[doc(alias = "ceil_mode")]
    pub fn ceil(mut self) -> Pool {
        self.ceil = true;
        self
    }

    /// Means are over the elements of the input alone, and not over the padding too.
    #[doc(alias = "count_include_pad")]
    pub fn exclude_padding(mut self) -> Pool {
        self.counts_padding = false;
        self
    }

    /// Size and window over axes of these lengths, and by how much windows reach over the end of the padding.
    fn over(&self, lengths: &[usize]) -> Result<(Shape, Window, Shape)> {
        let axes = lengths.len();
        let size = self.size.over("size", axes)?;
        let stride = self.stride.as_ref().unwrap_or(&self.size).over("stride", axes)?;
        let dilation = self.dilation.over("dilation", axes)?;
        let (low, high) = self.padding.over(axes)?;
        let beyond = |a: usize| {
            let reach = dilation[a].saturating_mul(size[a].saturating_sub(1)).saturating_add(1);
            let length = lengths[a].saturating_add(low[a]).saturating_add(high[a]);
            let rest = length.checked_sub(reach).filter(|_| self.ceil && stride[a] > 0)? % stride[a];
            let last = (length - rest - reach).saturating_add(stride[a]);
            // A window that begins in the padding behind the input sees nothing.
            (rest > 0 && last < lengths[a].saturating_add(low[a])).then(|| stride[a] - rest)
        };
        let beyond: Shape = (0..axes).map(|a| beyond(a).unwrap_or(0)).collect();
        let high = (0..axes).map(|a| high[a].saturating_add(beyond[a])).collect();
        Ok((size, Window { stride, low, high, dilation }, beyond))
    }
}

/// The lengths of the last `axes` axes.
fn inner(x: &Tensor, axes: usize) -> Result<&[usize]> {
    match x.rank().checked_sub(axes) {
        Some(leading) => Ok(&x.shape()[leading..]),
        None => Err(err!(
            Shape,
            "takes {axes} spatial axes behind those of images and channels, got shape {:?}",
            x.shape()
        )),
    }
}

/// The last axes replaced.
fn with_inner(x: &Tensor, axes: usize, to: &[usize]) -> Shape {
    x.shape()[..x.rank() - axes].iter().chain(to).copied().collect()
}

#[track_caller]
fn named<R>(op: &'static str, f: impl FnOnce() -> Result<R>) -> Result<R> {
    with_caller(caller(), f).map_err(|e| e.renamed(op))
}

/// The largest of every window, and where it is.
fn largest(x: &Tensor, axes: usize, pool: &Pool) -> Result<(Tensor, Tensor)> {
    let (size, window, _) = pool.over(inner(x, axes)?)?;
    let index = bind(PoolArgMax { size, window }, &[x])?;
    let flat = |t: &Tensor| t.try_reshape(with_inner(t, axes, &[inner(t, axes)?.iter().product()]));
    let picked = flat(x)?.try_gather(-1, &flat(&index)?)?;
    Ok((picked.try_reshape(&index.node().shape)?, index))
}

/// The sums of every window, each channel by itself.
fn sums(x: &Tensor, axes: usize, size: &Shape, window: Window) -> Result<Tensor> {
    let lengths: Shape = inner(x, axes)?.into();
    let kernel = Tensor::ones_of(x.dtype(), [1, 1].iter().chain(&size[..]).copied().collect::<Shape>());
    let channels = x.shape()[..x.rank() - axes].iter().product::<usize>();
    let images: Shape = [channels, 1].iter().chain(&lengths[..]).copied().collect();
    let y = bind(Convolve { window, groups: 1 }, &[&x.try_reshape(&images)?, &kernel])?;
    y.try_reshape(with_inner(x, axes, &y.shape()[2..]))
}

fn average(x: &Tensor, axes: usize, pool: &Pool) -> Result<Tensor> {
    let lengths: Shape = inner(x, axes)?.into();
    let (size, window, beyond) = pool.over(&lengths)?;
    let sum = sums(x, axes, &size, window.clone())?;
    if beyond.iter().all(|&n| n == 0)
        && (pool.counts_padding || window.low.iter().chain(window.high.iter()).all(|&n| n == 0))
    {
        return sum.try_div(size.numel() as f64);
    }
    // How many elements each window has: of the input, or of the padding too, but none beyond.
    let counted = match pool.counts_padding {
        true => {
            let padded = |a: usize| lengths[a] + window.low[a] + window.high[a] - beyond[a];
            let ones = Tensor::ones_of(x.dtype(), (0..axes).map(padded).collect::<Shape>());
            let none = (0..axes).map(|_| 0).collect();
            sums(&ones, axes, &size, Window { low: none, high: beyond, ..window })?
        }
        false => sums(&Tensor::ones_of(x.dtype(), lengths), axes, &size, window)?,
    };
    sum.try_div(&counted)
}

/// `(Σ |x|^p)^(1/p)`, with derivatives of 0 where all is 0.
fn norm(x: &Tensor, axes: usize, p: f64, pool: &Pool) -> Result<Tensor> {
    if !(p > 0.0 && p.is_finite()) {
        return Err(err!(Value, "the order {p} is not a positive number"));
    }
    let (size, window, _) = pool.over(inner(x, axes)?)?;
    let powers = if p == 2.0 { x.try_square()? } else { x.try_abs()?.try_pow(p)? };
    let total = sums(&powers, axes, &size, window)?;
    let zero = total.try_eq(0.0)?;
    let safe = Tensor::try_where(&zero, 1.0, &total)?;
    let root = if p == 2.0 { safe.try_sqrt()? } else { safe.try_pow(1.0 / p)? };
    Tensor::try_where(&zero, 0.0, root)
}

/// Where the windows of an adaptive pooling begin and end: `to` of them over `n` elements, as even as can be.
fn windows(n: usize, to: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..to).map(move |i| (i * n / to, ((i + 1) * n).div_ceil(to)))
}

/// Axes can be made of any length but none, and from any but none.
pub(super) fn check_lengths(x: &Tensor, from: &[usize], to: &[usize]) -> Result<()> {
    match to.iter().chain(from).all(|n| (1..1 << 31).contains(n)) {
        true => Ok(()),
        false => Err(err!(
            Shape,
            "takes axes that are not empty to lengths from 1 to 2³¹, got {:?} to {to:?}",
            x.shape()
        )),
    }
}

fn adaptive(x: &Tensor, axes: usize, to: PerAxis) -> Result<(Shape, Shape)> {
    let lengths: Shape = inner(x, axes)?.into();
    let to = to.over("size", axes)?;
    check_lengths(x, &lengths, &to)?;
    Ok((lengths, to))
}

/// Axis by axis: the mean over a box is the mean of means.
fn adaptive_average(x: &Tensor, axes: usize, to: PerAxis) -> Result<Tensor> {
    let (lengths, to) = adaptive(x, axes, to)?;
    if (0..axes).all(|a| lengths[a].is_multiple_of(to[a])) {
        let size: Shape = (0..axes).map(|a| lengths[a] / to[a]).collect();
        if to.iter().all(|&n| n == 1) {
            let over: Vec<usize> = (x.rank() - axes..x.rank()).collect();
            return x.try_mean_axes_keep(&over[..]);
        }
        return average(x, axes, &Pool::new(&size[..]));
    }
    let mut y = x.clone();
    for a in 0..axes {
        let at = x.rank() - axes + a;
        let means = windows(lengths[a], to[a])
            .map(|(start, end)| y.narrowed(at, start, end - start).try_mean_axes_keep(at));
        y = Tensor::try_concat(&means.collect::<Result<Vec<_>>>()?, at as isize)?;
    }
    Ok(y)
}

/// Every window is filled up to the longest one with its last element, so that all are of one size and lie side by side.
fn adaptive_largest(x: &Tensor, axes: usize, to: PerAxis) -> Result<(Tensor, Tensor)> {
    let (lengths, to) = adaptive(x, axes, to)?;
    if (0..axes).all(|a| lengths[a].is_multiple_of(to[a])) {
        let size: Shape = (0..axes).map(|a| lengths[a] / to[a]).collect();
        return largest(x, axes, &Pool::new(&size[..]));
    }
    let (mut y, mut size, mut from) = (x.clone(), Vec::new(), Vec::new());
    for a in 0..axes {
        let longest = windows(lengths[a], to[a]).map(|(start, end)| end - start).max().unwrap_or(1);
        let places = windows(lengths[a], to[a]);
        let places: Vec<i64> = places
            .flat_map(|(start, end)| (start..start + longest).map(move |p| p.min(end - 1) as i64))
            .collect();
        let places = Tensor::from(&places[..]);
        y = y.try_index_select((x.rank() - axes + a) as isize, &places)?;
        size.push(longest);
        from.push(places);
    }
    let (value, index) = largest(&y, axes, &Pool::new(&size[..]))?;
    // From positions in the filled axes to those in the input's.
    let (mut rest, mut position, mut step) = (index, None::<Tensor>, 1i64);
    for a in (0..axes).rev() {
        let n = (to[a] * size[a]) as i64;
        let quotient = rest.try_cast(DType::F64)?.try_div(n as f64)?.try_floor()?.try_cast(DType::I64)?;
        let here = rest.try_sub(&quotient.try_mul(n)?)?;
        let flat = here.try_reshape(here.numel())?;
        let place = from[a].try_gather(0, &flat)?.try_reshape(&here.node().shape)?.try_mul(step)?;
        position = Some(match position {
            Some(p) => p.try_add(&place)?,
            None => place,
        });
        rest = quotient;
        step *= lengths[a] as i64;
    }
    Ok((value, position.expect("there is an axis")))
}

methods! { $ pooling_methods;
    /// The largest element of every window over the last axis; see [`max_pool2d`](Tensor::max_pool2d).
    max_pool1d try_max_pool1d(&self, pool: impl Into<Pool>) -> Tensor { named("max_pool1d", || Ok(largest(self, 1, &pool.into())?.0)) }

    /// The largest element of every window over the last two axes, for each image and channel in front of them. The first of equal ones has the gradient, and NaN is
    /// larger than all numbers. Padding is never the largest.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = Tensor::from([[1.0, 2.0, 0.0, 0.0], [4.0, 3.0, 0.0, 7.0]]);
    /// assert_eq!(x.max_pool2d(2).to_vec::<f64>(), [4.0, 7.0]);
    /// let g = grad(|x: &Tensor| x.max_pool2d(2).sum())(&x);
    /// assert_eq!(g.to_vec::<f64>(), [0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0]);
    /// ```
    #[doc(alias = "reduce_window")]
    max_pool2d try_max_pool2d(&self, pool: impl Into<Pool>) -> Tensor { named("max_pool2d", || Ok(largest(self, 2, &pool.into())?.0)) }

    /// The largest element of every window over the last three axes; see [`max_pool2d`](Tensor::max_pool2d).
    max_pool3d try_max_pool3d(&self, pool: impl Into<Pool>) -> Tensor { named("max_pool3d", || Ok(largest(self, 3, &pool.into())?.0)) }

    /// [`max_pool1d`](Tensor::max_pool1d), and the positions of the largest along the axis.
    max_pool1d_with_indices try_max_pool1d_with_indices(&self, pool: impl Into<Pool>) -> (Tensor, Tensor) {
        named("max_pool1d_with_indices", || largest(self, 1, &pool.into()))
    }

    /// [`max_pool2d`](Tensor::max_pool2d), and the positions of the largest, counted row by row over the two axes.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = Tensor::from([[1.0, 2.0, 0.0, 0.0], [4.0, 3.0, 0.0, 7.0]]);
    /// assert_eq!(x.max_pool2d_with_indices(2).1.to_vec::<i64>(), [4, 7]);
    /// ```
    max_pool2d_with_indices try_max_pool2d_with_indices(&self, pool: impl Into<Pool>) -> (Tensor, Tensor) {
        named("max_pool2d_with_indices", || largest(self, 2, &pool.into()))
    }

    /// [`max_pool3d`](Tensor::max_pool3d), and the positions of the largest, counted row-major over the three axes.
    max_pool3d_with_indices try_max_pool3d_with_indices(&self, pool: impl Into<Pool>) -> (Tensor, Tensor) {
        named("max_pool3d_with_indices", || largest(self, 3, &pool.into()))
    }

    /// The mean of every window over the last axis; see [`avg_pool2d`](Tensor::avg_pool2d).
    avg_pool1d try_avg_pool1d(&self, pool: impl Into<Pool>) -> Tensor { named("avg_pool1d", || average(self, 1, &pool.into())) }

    /// The mean of every window over the last two axes, for each image and channel in front of them. Padding counts as zeros, unless it is
    /// [excluded](crate::Pool::exclude_padding).
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = Tensor::from([[1.0, 2.0, 0.0, 0.0], [4.0, 3.0, 0.0, 8.0]]);
    /// assert_eq!(x.avg_pool2d(2).to_vec::<f64>(), [2.5, 2.0]);
    /// ```
    avg_pool2d try_avg_pool2d(&self, pool: impl Into<Pool>) -> Tensor { named("avg_pool2d", || average(self, 2, &pool.into())) }

    /// The mean of every window over the last three axes; see [`avg_pool2d`](Tensor::avg_pool2d).
    avg_pool3d try_avg_pool3d(&self, pool: impl Into<Pool>) -> Tensor { named("avg_pool3d", || average(self, 3, &pool.into())) }

    /// The norm of order `p` of every window over the last axis; see [`lp_pool2d`](Tensor::lp_pool2d).
    lp_pool1d try_lp_pool1d(&self, p: f64, pool: impl Into<Pool>) -> Tensor { named("lp_pool1d", || norm(self, 1, p, &pool.into())) }

    /// The norm of order `p`, `(Σ |x|^p)^(1/p)`, of every window over the last two axes. Where all of a window is 0, so is the derivative.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// assert_eq!(Tensor::from([[3.0, 0.0], [0.0, -4.0]]).lp_pool2d(2.0, 2).to_vec::<f64>(), [5.0]);
    /// ```
    lp_pool2d try_lp_pool2d(&self, p: f64, pool: impl Into<Pool>) -> Tensor { named("lp_pool2d", || norm(self, 2, p, &pool.into())) }

    /// The norm of order `p` of every window over the last three axes; see [`lp_pool2d`](Tensor::lp_pool2d).
    lp_pool3d try_lp_pool3d(&self, p: f64, pool: impl Into<Pool>) -> Tensor { named("lp_pool3d", || norm(self, 3, p, &pool.into())) }

    /// Means over windows that make the last axis so long; see [`adaptive_avg_pool2d`](Tensor::adaptive_avg_pool2d).
    adaptive_avg_pool1d try_adaptive_avg_pool1d(&self, to: impl Into<PerAxis>) -> Tensor {
        named("adaptive_avg_pool1d", || adaptive_average(self, 1, to.into()))
    }

    /// Means over windows that make the last two axes so long: window `i` of `m` over `n` elements goes from `⌊i n / m⌋` to `⌈(i + 1) n / m⌉`.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = Tensor::from([[1.0, 2.0, 3.0]]);
    /// assert_eq!(x.adaptive_avg_pool2d([1, 2]).to_vec::<f64>(), [1.5, 2.5]);
    /// ```
    adaptive_avg_pool2d try_adaptive_avg_pool2d(&self, to: impl Into<PerAxis>) -> Tensor {
        named("adaptive_avg_pool2d", || adaptive_average(self, 2, to.into()))
    }

    /// Means over windows that make the last three axes so long; see [`adaptive_avg_pool2d`](Tensor::adaptive_avg_pool2d).
    adaptive_avg_pool3d try_adaptive_avg_pool3d(&self, to: impl Into<PerAxis>) -> Tensor {
        named("adaptive_avg_pool3d", || adaptive_average(self, 3, to.into()))
    }

    /// The largest of windows that make the last axis so long, and their positions; see [`adaptive_max_pool2d`](Tensor::adaptive_max_pool2d).
    adaptive_max_pool1d try_adaptive_max_pool1d(&self, to: impl Into<PerAxis>) -> (Tensor, Tensor) {
        named("adaptive_max_pool1d", || adaptive_largest(self, 1, to.into()))
    }

    /// The largest of windows that make the last two axes so long, and their positions, counted row by row over the two axes. The windows are those of
    /// [`adaptive_avg_pool2d`](Tensor::adaptive_avg_pool2d).
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let (largest, at) = Tensor::from([[1.0, 5.0, 3.0]]).adaptive_max_pool2d([1, 2]);
    /// assert_eq!((largest.to_vec::<f64>(), at.to_vec::<i64>()), (vec![5.0, 5.0], vec![1, 1]));
    /// ```
    adaptive_max_pool2d try_adaptive_max_pool2d(&self, to: impl Into<PerAxis>) -> (Tensor, Tensor) {
        named("adaptive_max_pool2d", || adaptive_largest(self, 2, to.into()))
    }

    /// The largest of windows that make the last three axes so long, and their positions; see [`adaptive_max_pool2d`](Tensor::adaptive_max_pool2d).
    adaptive_max_pool3d try_adaptive_max_pool3d(&self, to: impl Into<PerAxis>) -> (Tensor, Tensor) {
        named("adaptive_max_pool3d", || adaptive_largest(self, 3, to.into()))
    }
}
