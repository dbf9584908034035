//! Scans along an axis.

use super::methods;
use crate::error::{Result, Within, or_panic};
use crate::location::{caller, with_caller};
use crate::ops::*;
use crate::shape::axis;
use crate::tensor::operand::align;
use crate::tensor::{Operand, Tensor, bind};
use std::borrow::Cow;

#[track_caller]
fn cumulative(name: &'static str, x: &Tensor, of: Accumulation, at: isize) -> Result<Tensor> {
    let axis = axis(at, x.rank()).within(name)?;
    bind(Cumulative { axis, of, reverse: false }, &[x]).map_err(|e| e.renamed(name))
}

/// The extremes so far, picked by their places.
#[track_caller]
fn extremes(name: &'static str, x: &Tensor, largest: bool, at: isize) -> Result<Tensor> {
    let axis = axis(at, x.rank()).within(name)?;
    let pick = || bind(Gather { axis }, &[x, &bind(CumExtreme { axis, largest }, &[x])?]);
    with_caller(caller(), pick).map_err(|e| e.renamed(name))
}

methods! { $ scan_methods;
    /// Sums along an axis: of the first element, the first two, .. Integers and truth values are summed as i64.
    ///
    /// Floats are summed in f64 and rounded once. A scan of numbers that are not negative never falls.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = Tensor::from([3.0, 1.0, 2.0]);
    /// assert_eq!(x.cumsum(0).to_vec::<f64>(), [3.0, 4.0, 6.0]);
    /// assert_eq!(grad(|x: &Tensor| x.cumsum(0).sum())(&x).to_vec::<f64>(), [3.0, 2.0, 1.0]);
    /// ```
    cumsum try_cumsum(&self, at: isize) -> Tensor { cumulative("cumsum", self, Accumulation::Sum, at) }

    /// Products along an axis: of the first element, the first two, .. Integers and truth values are multiplied as i64.
    ///
    /// Derivatives of every order are exact where factors are zero. Narrower floats are multiplied as f64: a product that leaves their range
    /// is zero or infinite there, and what follows goes on from the product itself, in values and in derivatives.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = Tensor::from([2.0, 0.0, 3.0]);
    /// assert_eq!(x.cumprod(0).to_vec::<f64>(), [2.0, 0.0, 0.0]);
    /// assert_eq!(grad(|x: &Tensor| x.cumprod(0).sum())(&x).to_vec::<f64>(), [1.0, 8.0, 0.0]);
    /// ```
    cumprod try_cumprod(&self, at: isize) -> Tensor { cumulative("cumprod", self, Accumulation::Product, at) }

    /// `ln Σ exp(x)` along an axis: of the first element, the first two, .., without overflow.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = Tensor::from([1000.0, 1000.0]);
    /// assert_eq!(x.cumlogsumexp(0).to_vec::<f64>(), [1000.0, 1000.0 + 2f64.ln()]);
    /// ```
    #[doc(alias = "logcumsumexp")]
    cumlogsumexp try_cumlogsumexp(&self, at: isize) -> Tensor {
        cumulative("cumlogsumexp", self, Accumulation::LogSumExp, at)
    }

    /// The largest element so far along an axis. NaN is larger than every number.
    ///
    /// The derivative goes to the element that is the largest; of equal ones to the latest.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = Tensor::from([1.0, 3.0, 2.0, 4.0]);
    /// assert_eq!(x.cummax(0).to_vec::<f64>(), [1.0, 3.0, 3.0, 4.0]);
    /// assert_eq!(grad(|x: &Tensor| x.cummax(0).sum())(&x).to_vec::<f64>(), [1.0, 2.0, 0.0, 1.0]);
    /// ```
    cummax try_cummax(&self, at: isize) -> Tensor { extremes("cummax", self, true, at) }

    /// The smallest element so far along an axis. NaN is smaller than every number here, as it is for [`min`](Tensor::min).
    ///
    /// The derivative goes to the element that is the smallest; of equal ones to the latest.
    cummin try_cummin(&self, at: isize) -> Tensor { extremes("cummin", self, false, at) }

    /// The linear recurrence `y[j] = factors[j] y[j-1] + x[j]` along an axis, which begins with `y[0] = x[0]`. Both operands broadcast.
    ///
    /// Moving averages, discounted returns and linear state spaces are such, and need no loop.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = Tensor::from([1.0, 1.0, 1.0]);
    /// assert_eq!(x.linear_scan(0.5, 0).to_vec::<f64>(), [1.0, 1.5, 1.75]);
    /// ```
    #[doc(alias = "associative_scan")]
    linear_scan try_linear_scan<'a>(&self, factors: impl Into<Operand<'a>>, at: isize) -> Tensor {
        let axis = axis(at, self.rank()).within("linear_scan")?;
        let location = caller();
        // Not in a closure, which would hide the caller from what broadcasting records.
        let aligned = match factors.into().tensor_like(self) {
            Ok(factors) => align(Cow::Borrowed(self), factors),
            Err(e) => Err(e),
        };
        let (x, factors) = aligned.map_err(|e| e.renamed("linear_scan").at(location))?;
        // Broadcasting adds axes in front.
        let axis = axis + x.rank() - self.rank();
        bind(LinearScan { axis, reverse: false }, &[&factors, &x])
    }
}
