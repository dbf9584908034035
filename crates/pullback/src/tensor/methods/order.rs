//! Sorting, selecting, searching and counting.

use super::index::positions;
use super::methods;
use super::reduce::in_rows;
use crate::DType;
use crate::error::{Result, err, or_panic};
use crate::location::{caller, with_caller};
use crate::ops::*;
use crate::shape::{Axes, Shape, axis};
use crate::tensor::operand::check_dtypes;
use crate::tensor::{Tensor, bind};

/// Which number stands for a place between two elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Between {
    /// The one on a line between them.
    Linear,
    /// The lower one.
    Lower,
    /// The higher one.
    Higher,
    /// The nearer one; in the middle, the one with the even place.
    Nearest,
    /// Their mean.
    Midpoint,
}

/// The element at `q (n - 1)` of the sorted ones, over axes that are dropped.
pub(super) fn quantile(x: &Tensor, over: Axes, q: f64, between: Between) -> Result<Tensor> {
    if !x.dtype().is_float() {
        return Err(needs_float(x.dtype()));
    }
    if !(0.0..=1.0).contains(&q) {
        return Err(err!(Value, "a quantile is from 0 to 1, not {q}"));
    }
    if over.is_empty() {
        return Ok(x.clone());
    }
    let rows = in_rows(x, &over);
    let last = rows.rank() - 1;
    let n = rows.shape()[last];
    if n == 0 {
        return Err(err!(Shape, "nothing to choose from in axes {over:?} of shape {:?}", x.shape()));
    }
    let sorted = bind(Gather { axis: last }, &[&rows, &order_of(&rows, last, false)?])?;
    let at = |k: usize| sorted.narrowed(last, k, 1).try_squeeze(-1);
    let place = q * (n - 1) as f64;
    let (low, high) = (place.floor(), place.ceil());
    let weight = match between {
        Between::Linear => place - low,
        Between::Lower => 0.0,
        Between::Higher => high - low,
        Between::Nearest => place.round_ties_even() - low,
        Between::Midpoint => (high - low) / 2.0,
    };
    let value = match weight {
        0.0 => at(low as usize)?,
        1.0 => at(high as usize)?,
        _ => {
            let (low, high) = (at(low as usize)?, at(high as usize)?);
            let gap = high.try_sub(&low)?;
            let finite = gap.try_abs()?.try_lt(f64::INFINITY)?;
            // Exact where both are equal; the other form keeps infinities.
            let line = low.try_add(gap.try_mul(weight)?)?;
            let mean = low.try_mul(1.0 - weight)?.try_add(high.try_mul(weight)?)?;
            Tensor::try_where(&finite, line, mean)?
        }
    };
    // NaN is sorted to the end.
    let largest = at(n - 1)?;
    Tensor::try_where(&largest.try_ne(&largest)?, &largest, &value)
}

/// The places of the elements in order.
fn order_of(x: &Tensor, axis: usize, descending: bool) -> Result<Tensor> {
    bind(ArgSort { axis, descending }, &[x])
}

/// Elements picked by places along an axis, and the places.
#[track_caller]
fn picked(
    name: &'static str,
    x: &Tensor,
    at: isize,
    places: impl FnOnce(&Tensor, usize) -> Result<Tensor>,
) -> Result<(Tensor, Tensor)> {
    let pick = || -> Result<(Tensor, Tensor)> {
        let axis = axis(at, x.rank())?;
        let places = places(x, axis)?;
        Ok((bind(Gather { axis }, &[x, &places])?, places))
    };
    with_caller(caller(), pick).map_err(|e| e.renamed(name))
}

fn extremes(x: &Tensor, axis: usize, k: usize, largest: bool) -> Result<Tensor> {
    bind(TopK { axis, k, largest }, &[x])
}

#[track_caller]
fn search(name: &'static str, sorted: &Tensor, values: &Tensor, right: bool) -> Result<Tensor> {
    let find = || {
        let dtype = DType::promote(sorted.dtype(), values.dtype());
        check_dtypes(sorted, values, dtype)?;
        bind(SearchSorted { right }, &[&sorted.try_cast(dtype)?, &values.try_cast(dtype)?])
    };
    with_caller(caller(), find).map_err(|e| e.renamed(name))
}

/// How often each of `n` numbers stands among the places.
fn counts(places: &Tensor, n: usize) -> Result<Tensor> {
    let flat = places.try_reshape([places.numel()])?;
    let ones = Tensor::ones_of(DType::I64, flat.shape());
    Shape::from(n).checked_len()?;
    Tensor::zeros_of(DType::I64, n).try_index_add(0, &flat, &ones)
}

methods! { $ order_methods;
    /// The elements along an axis in rising order, and the places they come from: `(values, order)`. Equal ones keep their order, and NaN is
    /// larger than every number.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = Tensor::from([3.0, 1.0, 2.0]);
    /// let (values, order) = x.sort(-1);
    /// assert_eq!(values.to_vec::<f64>(), [1.0, 2.0, 3.0]);
    /// assert_eq!(order.to_vec::<i64>(), [1, 2, 0]);
    /// ```
    sort try_sort(&self, at: isize) -> (Tensor, Tensor) {
        picked("sort", self, at, |x, axis| order_of(x, axis, false))
    }

    /// [`sort`](Tensor::sort) in falling order: equal elements keep their order, and NaN comes first.
    sort_descending try_sort_descending(&self, at: isize) -> (Tensor, Tensor) {
        picked("sort_descending", self, at, |x, axis| order_of(x, axis, true))
    }

    /// The places of the elements along an axis in rising order, as i64: those that [`sort`](Tensor::sort) takes them from.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = Tensor::from([[3.0, 1.0, 2.0], [5.0, 6.0, 4.0]]);
    /// assert_eq!(x.argsort(-1).to_vec::<i64>(), [1, 2, 0, 2, 0, 1]);
    /// ```
    argsort try_argsort(&self, at: isize) -> Tensor {
        with_caller(caller(), || order_of(self, axis(at, self.rank())?, false)).map_err(|e| e.renamed("argsort"))
    }

    /// The places of the elements along an axis in falling order, as i64: those that [`sort_descending`](Tensor::sort_descending) takes them from.
    argsort_descending try_argsort_descending(&self, at: isize) -> Tensor {
        with_caller(caller(), || order_of(self, axis(at, self.rank())?, true))
            .map_err(|e| e.renamed("argsort_descending"))
    }

    /// The `k` largest elements along an axis, the largest first, and their places: `(values, order)`. NaN is larger than every number, and of
    /// equal ones the first are taken.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let (values, order) = Tensor::from([3.0, 1.0, 2.0]).topk(2, -1);
    /// assert_eq!((values.to_vec::<f64>(), order.to_vec::<i64>()), (vec![3.0, 2.0], vec![0, 2]));
    /// ```
    #[doc(alias = "top_k")]
    topk try_topk(&self, k: usize, at: isize) -> (Tensor, Tensor) {
        picked("topk", self, at, |x, axis| extremes(x, axis, k, true))
    }

    /// The `k` smallest elements along an axis, the smallest first, and their places: `(values, order)`. NaN is larger than every number, and of
    /// equal ones the first are taken.
    #[doc(alias = "topk_smallest")]
    bottomk try_bottomk(&self, k: usize, at: isize) -> (Tensor, Tensor) {
        picked("bottomk", self, at, |x, axis| extremes(x, axis, k, false))
    }

    /// The `k`-th smallest element along an axis, which is dropped, and its place: `(values, order)`. `k` counts from 1. NaN is larger than every
    /// number.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let (value, place) = Tensor::from([30.0, 10.0, 20.0]).kthvalue(2, 0);
    /// assert_eq!((value.item(), place.item()), (20.0, 2.0));
    /// ```
    kthvalue try_kthvalue(&self, k: usize, at: isize) -> (Tensor, Tensor) {
        let kth = |x: &Tensor, axis: usize| match k {
            0 => Err(err!(Value, "k counts from 1")),
            _ => Ok(extremes(x, axis, k, false)?.narrowed(axis, k - 1, 1)),
        };
        let (value, place) = picked("kthvalue", self, at, kth)?;
        Ok((value.try_squeeze(at)?, place.try_squeeze(at)?))
    }

    /// How many elements of this, which is sorted along its last axis, are less than each value, as i64: the first place where the value
    /// could be put in. NaN is larger than every number.
    ///
    /// This has one axis, or the first axes of `values`, each of which is then looked up in its own lane.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let edges = Tensor::from([1.0, 2.0, 2.0, 5.0]);
    /// let x = Tensor::from([2.0, 0.0, 9.0]);
    /// assert_eq!(edges.searchsorted(&x).to_vec::<i64>(), [1, 0, 4]);
    /// assert_eq!(edges.searchsorted_right(&x).to_vec::<i64>(), [3, 0, 4]);
    /// ```
    #[doc(alias = "bucketize")]
    #[doc(alias = "digitize")]
    searchsorted try_searchsorted(&self, values: &Tensor) -> Tensor { search("searchsorted", self, values, false) }

    /// How many elements of this, which is sorted along its last axis, are less than or equal to each value, as i64: the last place where
    /// the value could be put in. See [`searchsorted`](Tensor::searchsorted).
    searchsorted_right try_searchsorted_right(&self, values: &Tensor) -> Tensor {
        search("searchsorted_right", self, values, true)
    }

    /// How often each of the integers below `n` is among the elements, as i64. (For sums of weights see [`segment_sum`](Tensor::segment_sum).)
    ///
    /// ```
    /// use pullback::prelude::*;
    /// assert_eq!(Tensor::from([1, 0, 1, 3]).bincount(4).to_vec::<i64>(), [1, 2, 0, 1]);
    /// ```
    bincount try_bincount(&self, n: usize) -> Tensor {
        with_caller(caller(), || counts(&*positions(self)?, n)).map_err(|e| e.renamed("bincount"))
    }

    /// How many elements are in each bin between two neighbours of the rising `edges`, as i64. A bin has its left edge, the last one both; what
    /// is in none, or NaN, is not counted.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = Tensor::from([0.1, 0.5, 0.9, 1.0, 7.0]);
    /// assert_eq!(x.histogram(&Tensor::linspace(0.0, 1.0, 3)).to_vec::<i64>(), [1, 3]);
    /// ```
    #[doc(alias = "histc")]
    histogram try_histogram(&self, edges: &Tensor) -> Tensor {
        let count = || {
            let n = match edges.shape() {
                [n] if *n >= 2 => *n,
                other => return Err(err!(Shape, "edges are two or more numbers along one axis, got shape {other:?}")),
            };
            // How many edges are not above: 0 below all, n above all.
            let bin = edges.try_searchsorted_right(self)?;
            let bin = bin.try_masked_fill(&self.try_eq(edges.try_get(n as isize - 1)?)?, n - 1)?;
            // Bin 0 has what is below, and n what is above.
            Ok(counts(&bin, n + 1)?.narrowed(0, 1, n - 1))
        };
        with_caller(caller(), count).map_err(|e| e.renamed("histogram"))
    }

    /// The different elements, in rising order; NaN is one of them, and the last. The derivative goes to the first of equal ones.
    ///
    /// How many there are depends on the values: a function that is compiled or mapped over lanes has none to look at, and this is an error there.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// assert_eq!(Tensor::from([3, 1, 3, 2, 1]).unique().to_vec::<i32>(), [1, 2, 3]);
    /// ```
    unique try_unique(&self) -> Tensor {
        let find = || {
            let flat = self.try_reshape([self.numel()])?;
            let n = self.numel();
            if n < 2 {
                return Ok(flat);
            }
            let order = order_of(&flat, 0, false)?;
            let sorted = flat.detach().try_index_select(0, &order)?;
            let (before, after) = (sorted.narrowed(0, 0, n - 1), sorted.narrowed(0, 1, n - 1));
            let same = after.try_eq(&before)?.try_or(&before.try_ne(&before)?)?;
            let same = same.try_to_vec::<bool>()?;
            let firsts: Vec<i64> = (0..n).filter(|&i| i == 0 || !same[i - 1]).map(|i| i as i64).collect();
            flat.try_index_select(0, &order.try_index_select(0, &Tensor::from(firsts))?)
        };
        with_caller(caller(), find).map_err(|e| e.renamed("unique"))
    }
}
