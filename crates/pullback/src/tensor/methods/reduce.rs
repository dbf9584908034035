//! Reductions: over all axes, over some, and keeping them with length 1.

use super::methods;
use super::order::{Between, quantile};
use crate::DType;
use crate::error::{Result, Within, err, or_panic};
use crate::location::{caller, with_caller};
use crate::ops::*;
use crate::shape::{Axes, axes, axis, signed};
use crate::tensor::{Tensor, bind};
use smallvec::SmallVec;

/// One axis or several; negative ones count from the end.
pub struct AxisList(pub(crate) SmallVec<[isize; 4]>);

impl AxisList {
    /// Distinct axes, counted from the first, in the order in which they were named.
    pub(crate) fn in_order(&self, rank: usize) -> Result<Axes> {
        axes(&self.0, rank)?;
        self.0.iter().map(|&a| axis(a, rank)).collect()
    }
}

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
fn widened(x: &Tensor, over: Axes, f: impl FnOnce(&Tensor, Axes) -> Result<Tensor>) -> Result<Tensor> {
    match x.dtype() {
        DType::F16 | DType::BF16 => f(&x.try_cast(DType::F32)?, over)?.try_cast(x.dtype()),
        _ => f(x, over),
    }
}

#[track_caller]
fn mean(x: &Tensor, over: Axes) -> Result<Tensor> {
    if !x.dtype().is_complex() {
        float("mean", x)?;
    }
    widened(x, over, |x, over| {
        let n = count(x, &over);
        bind(Sum { axes: over }, &[x])?.try_div(n)
    })
}

/// `Σ (x - mean)² / (n - correction)`, by nothing if that is negative. Two passes: the textbook formula in one cancels.
#[track_caller]
fn var(x: &Tensor, over: Axes, correction: f64) -> Result<Tensor> {
    float("var", x)?;
    widened(x, over, |x, over| {
        let centre = mean(x, over.clone())?.try_reshape(x.node().shape.with_ones(&over))?;
        let n = count(x, &over) - correction;
        bind(Sum { axes: over }, &[&(x - centre).square()])?.try_div(n.max(0.0))
    })
}

/// The root has an infinite slope at 0, and equal numbers lie in a kink, where nothing is to move.
#[track_caller]
fn std(x: &Tensor, over: Axes, correction: f64) -> Result<Tensor> {
    let var = var(x, over, correction)?;
    Tensor::try_where(&var.try_eq(0.0)?, var.detach().zeros_like(), &var.try_sqrt()?)
}

/// A root of a sum of powers. Its slope is infinite where the sum is 0, which is led around it: nothing is to move there.
#[track_caller]
fn root_of(sum: Tensor, root: impl FnOnce(&Tensor) -> Result<Tensor>) -> Result<Tensor> {
    let zero = sum.try_eq(0.0)?;
    Tensor::try_where(&zero, 0.0, root(&Tensor::try_where(&zero, 1.0, sum)?)?)
}

#[track_caller]
fn norm(x: &Tensor, over: Axes) -> Result<Tensor> {
    if !x.dtype().is_complex() {
        float("norm", x)?;
    }
    widened(x, over, |x, axes| root_of(bind(Sum { axes }, &[&x.abs_squared()?])?, |s| s.try_sqrt()))
}

/// `(Σ |x|^p)^(1/p)`, and its limits.
#[track_caller]
fn p_norm(x: &Tensor, over: Axes, p: f64) -> Result<Tensor> {
    if x.dtype().is_complex() {
        return p_norm(&x.try_abs()?, over, p);
    }
    float("p_norm", x)?;
    if p.is_nan() {
        return Err(err!(Value, "there is no norm of order NaN").in_op("p_norm").at(caller()));
    }
    widened(x, over, |x, axes| match p {
        0.0 => bind(Sum { axes }, &[&x.try_ne(0.0)?.try_cast(x.dtype())?]),
        1.0 => bind(Sum { axes }, &[&x.try_abs()?]),
        2.0 => norm(x, axes),
        f64::INFINITY => bind(Max { axes }, &[&x.try_abs()?]),
        f64::NEG_INFINITY => bind(Min { axes }, &[&x.try_abs()?]),
        _ => root_of(bind(Sum { axes }, &[&x.try_abs()?.try_pow(p)?])?, |s| s.try_pow(1.0 / p)),
    })
}

/// The reduced axes as one, behind the others.
pub(super) fn in_rows(x: &Tensor, over: &[usize]) -> Tensor {
    let kept = (0..x.rank()).filter(|a| !over.contains(a));
    let shape = x.node().shape.without(over);
    let n: usize = over.iter().map(|&a| x.shape()[a]).product();
    x.permuted(kept.chain(over.iter().copied()).collect()).reshape_to(&shape.inserted(shape.len(), n))
}

/// Products of halves, again and again: exact derivatives of every order, zeros among the factors included, where a
/// rule that divides by the factor would fail.
#[track_caller]
fn prod(x: &Tensor, over: Axes) -> Result<Tensor> {
    // As sums are.
    let x = &if x.dtype().is_differentiable() { x.clone() } else { x.try_cast(DType::I64)? };
    if over.is_empty() {
        return Ok(x.clone());
    }
    let shape = x.node().shape.without(&over);
    let mut y = in_rows(x, &over);
    let last = shape.len();
    let mut n = y.shape()[last];
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
    /// Variance: the mean squared distance from the mean. It divides by n; for another divisor see [`var_with`](Tensor::var_with).
    var try_var var_axes try_var_axes var_axes_keep try_var_axes_keep = |x: &Tensor, axes| var(x, axes, 0.0);
    /// Standard deviation, the square root of [`var`](Tensor::var). Of equal numbers it is 0, with derivatives of 0.
    std try_std std_axes try_std_axes std_axes_keep try_std_axes_keep = |x: &Tensor, axes| std(x, axes, 0.0);
    /// The Euclidean norm, `√Σ x²`; its derivative at 0 is 0. For others see [`p_norm`](Tensor::p_norm).
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = Tensor::from([[3.0, 4.0], [0.0, 0.0]]);
    /// assert_eq!(x.norm_axes(-1).to_vec::<f64>(), [5.0, 0.0]);
    /// let g = grad(|x: &Tensor| x.norm_axes(-1).sum())(&x);
    /// assert_eq!(g.get(1).to_vec::<f64>(), [0.0, 0.0]);
    /// ```
    norm try_norm norm_axes try_norm_axes norm_axes_keep try_norm_axes_keep = norm;
    /// How many elements are not zero, as i64.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = Tensor::from([[1.0, 0.0], [2.0, 3.0]]);
    /// assert_eq!(x.count_nonzero_axes(-1).to_vec::<i64>(), [1, 2]);
    /// ```
    count_nonzero try_count_nonzero count_nonzero_axes try_count_nonzero_axes count_nonzero_axes_keep try_count_nonzero_axes_keep
        = |x: &Tensor, axes| bind(Sum { axes }, &[&x.try_ne(0)?]);
    /// The median: the middle one of the sorted elements, or the mean of the two in the middle. NaN if there is one.
    ///
    /// The derivative goes to the elements in the middle; of equal ones, to those that a stable sort puts there. For the lower one of the two
    /// (as in PyTorch) see [`quantile_with`](Tensor::quantile_with).
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = Tensor::from([[3.0, 1.0, 2.0], [9.0, 7.0, 8.0]]);
    /// assert_eq!(x.median_axes(-1).to_vec::<f64>(), [2.0, 8.0]);
    /// assert_eq!(x.median().item(), 5.0);
    /// ```
    median try_median median_axes try_median_axes median_axes_keep try_median_axes_keep
        = |x: &Tensor, axes| quantile(x, axes, 0.5, Between::Linear);
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

    /// Position of the first largest element of all, counted in row-major order, as i64. NaN counts as the largest.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = Tensor::from([[1.0, 3.0], [9.0, 0.0]]);
    /// assert_eq!((x.argmax_all().item(), x.argmin_all().item()), (2.0, 3.0));
    /// ```
    argmax_all try_argmax_all(&self) -> Tensor {
        of_all("argmax_all", self, |x, axes| bind(ArgExtreme { axes, largest: true }, &[x]))
    }

    /// Position of the first smallest element of all, counted in row-major order, as i64. NaN counts as the smallest.
    argmin_all try_argmin_all(&self) -> Tensor {
        of_all("argmin_all", self, |x, axes| bind(ArgExtreme { axes, largest: false }, &[x]))
    }

    /// Variance over axes, which are dropped: `Σ (x - mean)² / (n - correction)`. A correction of 1 estimates the variance of what `n`
    /// numbers were drawn from. With no more numbers than the correction the result is NaN or ∞.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = Tensor::from([1.0, 2.0, 3.0, 4.0]);
    /// assert_eq!((x.var().item(), x.var_with(0, 1.0).item()), (1.25, 5.0 / 3.0));
    /// ```
    #[doc(alias = "correction")]
    #[doc(alias = "ddof")]
    var_with try_var_with(&self, over: impl Into<AxisList>, correction: f64) -> Tensor {
        reduced("var_with", self, over.into(), |x, axes| var(x, axes, correction))
    }

    /// Standard deviation over axes, which are dropped: the square root of [`var_with`](Tensor::var_with). Of equal numbers it is 0, with
    /// derivatives of 0.
    #[doc(alias = "correction")]
    #[doc(alias = "ddof")]
    std_with try_std_with(&self, over: impl Into<AxisList>, correction: f64) -> Tensor {
        reduced("std_with", self, over.into(), |x, axes| std(x, axes, correction))
    }

    /// The norm of order p over axes, which are dropped: `(Σ |x|^p)^(1/p)`. Order ∞ is the largest absolute value, -∞ the smallest, and 0 says
    /// how many elements are not zero.
    ///
    /// The derivative is 0 where the norm is 0, and with respect to elements that are 0. Equal extremes share it.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = Tensor::from([3.0, -4.0, 0.0]);
    /// let norms = [0.0, 1.0, 2.0, f64::INFINITY].map(|p| x.p_norm(p, 0).item());
    /// assert_eq!(norms, [2.0, 7.0, 5.0, 4.0]);
    /// ```
    #[doc(alias = "vector_norm")]
    p_norm try_p_norm(&self, p: f64, over: impl Into<AxisList>) -> Tensor {
        reduced("p_norm", self, over.into(), |x, axes| p_norm(x, axes, p))
    }

    /// The quantile over axes, which are dropped: of the sorted elements the one at `q (n - 1)`, on a line between the two next to it.
    ///
    /// `q` is from 0 to 1. NaN if an element is. The derivative goes to the two elements; of equal ones, to those that a stable sort puts there.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = Tensor::from([40.0, 10.0, 30.0, 20.0]);
    /// assert_eq!(x.quantile(0.25, 0).item(), 17.5);
    /// ```
    #[doc(alias = "percentile")]
    quantile try_quantile(&self, q: f64, over: impl Into<AxisList>) -> Tensor {
        reduced("quantile", self, over.into(), |x, axes| quantile(x, axes, q, Between::Linear))
    }

    /// [`quantile`](Tensor::quantile) with another choice between the two elements next to it.
    ///
    /// ```
    /// use pullback::{Between, prelude::*};
    /// let x = Tensor::from([40.0, 10.0, 30.0, 20.0]);
    /// assert_eq!(x.quantile_with(0.5, 0, Between::Lower).item(), 20.0);
    /// ```
    quantile_with try_quantile_with(&self, q: f64, over: impl Into<AxisList>, between: Between) -> Tensor {
        reduced("quantile_with", self, over.into(), |x, axes| quantile(x, axes, q, between))
    }
}

impl Tensor {
    /// The sum over axes that are known to be right.
    pub(crate) fn summed(&self, axes: Axes) -> Tensor {
        or_panic(bind(Sum { axes }, &[self]))
    }
}
