//! Reductions: over all axes, over some, and keeping them with length 1.

use super::methods;
use crate::DType;
use crate::error::{Result, Within, or_panic};
use crate::location::{caller, with_caller};
use crate::ops::*;
use crate::shape::{Axes, axes, signed};
use crate::tensor::{Tensor, bind};
use smallvec::SmallVec;

/// One axis or several; negative ones count from the end.
pub struct AxisList(SmallVec<[isize; 4]>);

macro_rules! axis_list {
    ($($t:ty),*) => {$(
        impl From<$t> for AxisList {
            fn from(a: $t) -> Self { [a].into() }
        }
        impl<const N: usize> From<[$t; N]> for AxisList {
            fn from(a: [$t; N]) -> Self { a.as_slice().into() }
        }
        impl From<&[$t]> for AxisList {
            fn from(a: &[$t]) -> Self { AxisList(a.iter().map(|&a| signed(a)).collect()) }
        }
    )*};
}
axis_list!(isize, i32, usize);

fn all(x: &Tensor) -> Axes {
    (0..x.rank()).collect()
}

/// `name`, `name_axes` and `name_axes_keep`, from a function of the axes.
macro_rules! reductions {
    ($($(#[$doc:meta])* $name:ident $try:ident $over:ident $try_over:ident $keep:ident $try_keep:ident = $f:expr;)*) => {
        methods! { $ reduction_methods;
            $(
                $(#[$doc])*
                $name $try(&self) -> Tensor { of_all(stringify!($name), self, $f) }

                #[doc = concat!("[`", stringify!($name), "`](Tensor::", stringify!($name), ") over the given axes, which are dropped.")]
                $over $try_over(&self, over: impl Into<AxisList>) -> Tensor {
                    reduced(stringify!($name), self, over.into(), $f)
                }

                #[doc = concat!("[`", stringify!($name), "`](Tensor::", stringify!($name), ") over the given axes, which stay with length 1.")]
                $keep $try_keep(&self, over: impl Into<AxisList>) -> Tensor {
                    let over = over.into();
                    let shape = self.node().shape.with_ones(&named(stringify!($name), self, &over)?);
                    reduced(stringify!($name), self, over, $f)?.try_reshape(&shape)
                }
            )*
        }
    };
}

#[track_caller]
fn named(op: &'static str, x: &Tensor, list: &AxisList) -> Result<Axes> {
    axes(&list.0, x.rank()).within(op)
}

/// A reduction of all axes, as a step of the caller's.
#[track_caller]
fn of_all(op: &'static str, x: &Tensor, f: impl FnOnce(&Tensor, Axes) -> Result<Tensor>) -> Result<Tensor> {
    with_caller(caller(), || f(x, all(x))).map_err(|e| e.renamed(op))
}

/// A reduction of some axes, as a step of the caller's.
#[track_caller]
fn reduced(
    op: &'static str,
    x: &Tensor,
    over: AxisList,
    f: impl FnOnce(&Tensor, Axes) -> Result<Tensor>,
) -> Result<Tensor> {
    let over = named(op, x, &over)?;
    with_caller(caller(), || f(x, over)).map_err(|e| e.renamed(op))
}

/// How many elements go into each result.
fn count(x: &Tensor, over: &[usize]) -> f64 {
    over.iter().map(|&a| x.shape()[a] as f64).product()
}

#[track_caller]
fn float(op: &'static str, x: &Tensor) -> Result<()> {
    if x.dtype().is_float() { Ok(()) } else { Err(needs_float(x.dtype()).in_op(op).at(caller())) }
}

/// Applies `f` to halves as single precision: a sum of 1000 numbers of 100 is too large for f16, their mean is not.
#[track_caller]
fn widened(x: &Tensor, over: Axes, f: fn(&Tensor, Axes) -> Result<Tensor>) -> Result<Tensor> {
    match x.dtype() {
        DType::F16 | DType::BF16 => f(&x.try_cast(DType::F32)?, over)?.try_cast(x.dtype()),
        _ => f(x, over),
    }
}

#[track_caller]
fn mean(x: &Tensor, over: Axes) -> Result<Tensor> {
    float("mean", x)?;
    widened(x, over, |x, over| {
        let n = count(x, &over);
        bind(Sum { axes: over }, &[x])?.try_div(n)
    })
}

/// Mean of the squared distances from the mean. Two passes: the textbook formula in one cancels.
#[track_caller]
fn var(x: &Tensor, over: Axes) -> Result<Tensor> {
    float("var", x)?;
    widened(x, over, squared_deviation)
}

#[track_caller]
fn squared_deviation(x: &Tensor, over: Axes) -> Result<Tensor> {
    let centre = mean(x, over.clone())?.try_reshape(x.node().shape.with_ones(&over))?;
    mean(&(x - centre).square(), over)
}

/// The root has an infinite slope at 0, and equal numbers lie in a kink, where nothing is to move.
#[track_caller]
fn std(x: &Tensor, over: Axes) -> Result<Tensor> {
    let var = var(x, over)?;
    Tensor::try_where(&var.try_eq(0.0)?, var.detach().zeros_like(), &var.try_sqrt()?)
}

/// Products of halves, again and again: exact derivatives of every order, zeros among the factors included, where a
/// rule that divides by the factor would fail.
#[track_caller]
fn prod(x: &Tensor, over: Axes) -> Result<Tensor> {
    // As sums are.
    let x = &if x.dtype().is_float() { x.clone() } else { x.try_cast(DType::I64)? };
    if over.is_empty() {
        return Ok(x.clone());
    }
    let kept: Axes = (0..x.rank()).filter(|a| !over.contains(a)).collect();
    let shape = x.node().shape.without(&over);
    let n: usize = over.iter().map(|&a| x.shape()[a]).product();
    let perm: Axes = kept.iter().chain(&over).copied().collect();
    let mut y = x.permuted(perm).reshape_to(&shape.inserted(shape.len(), n));
    let last = shape.len();
    let mut n = n;
    while n > 1 {
        let half = n / 2;
        let pairs = y.narrowed(last, 0, half) * y.narrowed(last, half, half);
        y = if n.is_multiple_of(2) {
            pairs
        } else {
            Tensor::concat(&[&pairs, &y.narrowed(last, n - 1, 1)], last as isize)
        };
        n -= half;
    }
    if n == 0 { Ok(Tensor::ones_of(x.dtype(), shape)) } else { y.try_reshape(&shape) }
}

reductions! {
    /// Sum of all elements.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = Tensor::from([[1.0, 2.0], [3.0, 4.0]]);
    /// assert_eq!(x.sum().item(), 10.0);
    /// assert_eq!(x.sum_axes(0).to_vec::<f64>(), [4.0, 6.0]);
    /// assert_eq!(x.sum_axes_keep(-1).shape(), [2, 1]);
    /// ```
    sum try_sum sum_axes try_sum_axes sum_axes_keep try_sum_axes_keep = |x: &Tensor, axes| bind(Sum { axes }, &[x]);
    /// Mean of all elements; NaN if there are none.
    mean try_mean mean_axes try_mean_axes mean_axes_keep try_mean_axes_keep = mean;
    /// Product of all elements; of integers and truth values as i64.
    prod try_prod prod_axes try_prod_axes prod_axes_keep try_prod_axes_keep = prod;
    /// Largest element; equal ones share the gradient. NaN wins.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let g = grad(|x: &Tensor| x.max())(&Tensor::from([5.0, 5.0, 1.0]));
    /// assert_eq!(g.to_vec::<f64>(), [0.5, 0.5, 0.0]);
    /// ```
    max try_max max_axes try_max_axes max_axes_keep try_max_axes_keep = |x: &Tensor, axes| bind(Max { axes }, &[x]);
    /// Smallest element; equal ones share the gradient. NaN wins.
    min try_min min_axes try_min_axes min_axes_keep try_min_axes_keep = |x: &Tensor, axes| bind(Min { axes }, &[x]);
    /// Whether any element is not zero.
    any try_any any_axes try_any_axes any_axes_keep try_any_axes_keep = |x: &Tensor, axes| bind(Truth { axes, every: false }, &[x]);
    /// Whether all elements are not zero.
    all try_all all_axes try_all_axes all_axes_keep try_all_axes_keep = |x: &Tensor, axes| bind(Truth { axes, every: true }, &[x]);
    /// `ln Σ exp(x)`, without overflow.
    logsumexp try_logsumexp logsumexp_axes try_logsumexp_axes logsumexp_axes_keep try_logsumexp_axes_keep
        = |x: &Tensor, axes| bind(LogSumExp { axes }, &[x]);
    /// Variance: the mean squared distance from the mean (division by n; multiply by `n / (n - 1)` for the sample's).
    var try_var var_axes try_var_axes var_axes_keep try_var_axes_keep = var;
    /// Standard deviation, the square root of [`var`](Tensor::var). Of equal numbers it is 0, with derivatives of 0.
    std try_std std_axes try_std_axes std_axes_keep try_std_axes_keep = std;
}

methods! { $ extreme_methods;
    /// Position of the first largest element along an axis, as i64. NaN counts as the largest.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = Tensor::from([[1.0, 3.0, 2.0], [9.0, 0.0, 9.0]]);
    /// assert_eq!(x.argmax(-1).to_vec::<i64>(), [1, 0]);
    /// ```
    argmax try_argmax(&self, axis: isize) -> Tensor {
        reduced("argmax", self, axis.into(), |x, axes| bind(ArgExtreme { axes, largest: true }, &[x]))
    }

    /// Position of the first smallest element along an axis, as i64. NaN counts as the smallest.
    argmin try_argmin(&self, axis: isize) -> Tensor {
        reduced("argmin", self, axis.into(), |x, axes| bind(ArgExtreme { axes, largest: false }, &[x]))
    }
}

impl Tensor {
    /// The sum over axes that are known to be right.
    pub(crate) fn summed(&self, axes: Axes) -> Tensor {
        or_panic(bind(Sum { axes }, &[self]))
    }
}
