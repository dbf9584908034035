//! Losses of classification, from logits.

use super::index::positions;
use super::methods;
use crate::error::{Result, Within, err, or_panic};
use crate::location::{caller, with_caller};
use crate::ops::{self, SoftCrossEntropy};
use crate::tensor::operand::align;
use crate::tensor::{Operand, Tensor, bind};
use std::borrow::Cow;

/// What becomes of the losses of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Reduced {
    #[default]
    Not,
    Mean,
    Sum,
}

/// Options of [`cross_entropy_with`](Tensor::cross_entropy_with): one loss for each row, unless [`mean`](CrossEntropy::mean) or
/// [`sum`](CrossEntropy::sum) is asked for.
///
/// ```
/// use pullback::{CrossEntropy, prelude::*};
/// let logits = Tensor::from([[2.0, 0.0], [0.0, 0.0], [7.0, 7.0]]);
/// let labels = Tensor::from([0i64, 1, -100]);
/// let loss = logits.cross_entropy_with(&labels, CrossEntropy::new().ignore(-100).mean());
/// assert!((loss.item() - (0.1269280110 + 0.6931471806) / 2.0).abs() < 1e-9);
/// ```
#[derive(Clone, Debug, Default)]
pub struct CrossEntropy {
    smoothing: f64,
    ignored: Option<i64>,
    weights: Option<Tensor>,
    reduced: Reduced,
}

impl CrossEntropy {
    /// One loss for each row, no smoothing, no weights.
    pub fn new() -> CrossEntropy {
        CrossEntropy::default()
    }

    /// A part `s` of every target, from 0 to 1, is spread evenly over all classes.
    #[must_use]
    pub fn smoothing(mut self, s: f64) -> CrossEntropy {
        self.smoothing = s;
        self
    }

    /// Rows with this label have a loss of 0, whatever their logits are, and do not count in a mean.
    #[must_use]
    pub fn ignore(mut self, label: i64) -> CrossEntropy {
        self.ignored = Some(label);
        self
    }

    /// The terms of each class are multiplied with its weight.
    #[must_use]
    pub fn weights(mut self, weights: &Tensor) -> CrossEntropy {
        self.weights = Some(weights.clone());
        self
    }

    /// The mean of all rows. With class labels, that is weighed: the sum of the losses over the sum of the weights of the labels that are not ignored, NaN if all are. With
    /// distributions as labels it is the sum over the number of rows.
    #[must_use]
    pub fn mean(mut self) -> CrossEntropy {
        self.reduced = Reduced::Mean;
        self
    }

    /// The sum of all rows.
    #[must_use]
    pub fn sum(mut self) -> CrossEntropy {
        self.reduced = Reduced::Sum;
        self
    }

    fn check(&self, x: &Tensor) -> Result<usize> {
        let Some(&classes) = x.shape().last() else {
            return Err(err!(Shape, "logits have an axis of classes, got a scalar"));
        };
        if !(0.0..=1.0).contains(&self.smoothing) {
            return Err(err!(Value, "smoothing is from 0 to 1, got {}", self.smoothing));
        }
        match &self.weights {
            Some(w) if w.shape() != [classes] => Err(err!(
                Shape,
                "one weight for each of the {classes} classes is needed, got {:?}",
                w.shape()
            )),
            _ => Ok(classes),
        }
    }

    /// Against distributions.
    fn soft(&self, x: &Tensor, t: &Tensor) -> Result<Tensor> {
        let classes = self.check(x)?;
        if self.ignored.is_some() {
            return Err(err!(
                Value,
                "labels to ignore are class numbers; give a row of zeros to a distribution instead"
            ));
        }
        if t.shape() != x.shape() {
            return Err(err!(
                Shape,
                "labels {:?} are no distributions for logits {:?}: a number for each class is needed",
                t.shape(),
                x.shape()
            ));
        }
        let mut t = Cow::Borrowed(t);
        if self.smoothing > 0.0 {
            t = Cow::Owned(t.try_mul(1.0 - self.smoothing)?.try_add(self.smoothing / classes as f64)?);
        }
        if let Some(w) = &self.weights {
            t = Cow::Owned(t.try_mul(w)?);
        }
        let (x, t) = align(Cow::Borrowed(x), t)?;
        let rows = bind(SoftCrossEntropy, &[&x, &t])?;
        match self.reduced {
            Reduced::Not => Ok(rows),
            Reduced::Mean => rows.try_mean(),
            Reduced::Sum => rows.try_sum(),
        }
    }

    /// Against classes.
    fn hard(&self, x: &Tensor, labels: &Tensor) -> Result<Tensor> {
        let classes = self.check(x)?;
        let labels = positions(labels)?;
        let kept = self.ignored.map(|label| labels.try_ne(label)).transpose()?;
        let labels = match &kept {
            Some(kept) => Cow::Owned(Tensor::try_where(kept, &*labels, 0)?),
            None => labels,
        };
        let of_kept = |t: Tensor| match &kept {
            Some(kept) => Tensor::try_where(kept, t, 0),
            None => Ok(t),
        };
        let (rows, counts) = match &self.weights {
            None => (bind(ops::CrossEntropy { smoothing: self.smoothing }, &[x, &labels])?, None),
            Some(w) => {
                let plain = bind(ops::CrossEntropy { smoothing: 0.0 }, &[x, &labels])?;
                let own = w.try_index_select(0, &labels.try_flatten()?)?.try_reshape(labels.shape())?;
                let mut rows = plain.try_mul(&own)?;
                if self.smoothing > 0.0 {
                    let even = w.try_mul(self.smoothing / classes as f64)?;
                    let (x, even) = align(Cow::Borrowed(x), Cow::Owned(even))?;
                    rows =
                        rows.try_mul(1.0 - self.smoothing)?.try_add(bind(SoftCrossEntropy, &[&x, &even])?)?;
                }
                (rows, Some(own))
            }
        };
        let rows = of_kept(rows)?;
        match self.reduced {
            Reduced::Not => Ok(rows),
            Reduced::Sum => rows.try_sum(),
            Reduced::Mean if kept.is_none() && counts.is_none() => rows.try_mean(),
            Reduced::Mean => {
                let counts = counts.unwrap_or_else(|| rows.detach().ones_like());
                rows.try_sum()?.try_div(of_kept(counts)?.try_sum()?)
            }
        }
    }

    fn of(&self, x: &Tensor, labels: &Tensor) -> Result<Tensor> {
        let soft = labels.dtype().is_float() && labels.rank() == x.rank();
        if soft { self.soft(x, labels) } else { self.hard(x, labels) }
    }
}

/// `softplus(x) - x t`, the positive part with a weight.
#[track_caller]
fn binary(x: &Tensor, t: &Tensor, weight: Option<&Tensor>) -> Result<Tensor> {
    match weight {
        None => x.try_softplus()?.try_sub(x.try_mul(t)?),
        Some(w) => {
            let factor = t.try_mul(w.try_sub(1.0)?)?.try_add(1.0)?;
            let apart = x.try_sub(x.try_mul(t)?)?;
            x.try_neg()?.try_softplus()?.try_mul(factor)?.try_add(apart)
        }
    }
}

methods! { $ loss_methods;
    /// Cross entropy of each row of logits (over the last axis) against its class, an integer label, or against a distribution, a row of floats:
    /// `ln Σ exp(x) - x[label]`, or `Σ t (ln Σ exp(x) - x)`, where a logit does not count whose `t` is 0.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let logits = Tensor::from([[2.0, 0.0], [0.0, 0.0]]);
    /// let loss = logits.cross_entropy(&Tensor::from([0i64, 1])).mean();
    /// assert!((loss.item() - (0.1269280110 + 0.6931471806) / 2.0).abs() < 1e-9);
    /// let soft = logits.cross_entropy(&Tensor::from([[1.0, 0.0], [0.5, 0.5]])).mean();
    /// assert!((soft.item() - loss.item()).abs() < 1e-9);
    /// ```
    cross_entropy try_cross_entropy(&self, labels: &Tensor) -> Tensor {
        with_caller(caller(), || CrossEntropy::new().of(self, labels)).map_err(|e| e.renamed("cross_entropy")).within("cross_entropy")
    }

    /// [`cross_entropy`](Tensor::cross_entropy) with [options](CrossEntropy): smoothing, weights of classes, a label to ignore, a mean or a sum.
    ///
    /// ```
    /// use pullback::{CrossEntropy, prelude::*};
    /// let (logits, labels) = (Tensor::zeros([3, 4]), Tensor::from([0i64, 1, 2]));
    /// let loss = logits.cross_entropy_with(&labels, CrossEntropy::new().smoothing(0.1).mean());
    /// assert!((loss.item() - 4f64.ln()).abs() < 1e-12);
    /// ```
    cross_entropy_with try_cross_entropy_with(&self, labels: &Tensor, options: CrossEntropy) -> Tensor {
        with_caller(caller(), || options.of(self, labels)).map_err(|e| e.renamed("cross_entropy_with")).within("cross_entropy_with")
    }

    /// `-t ln σ(x) - (1 - t) ln(1 - σ(x))` of each logit `x` and probability `t`, without overflow, and as a function of `x` accurate everywhere.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let loss = Tensor::from([0.0, 100.0]).binary_cross_entropy_with_logits(&Tensor::from([1.0, 0.0]));
    /// assert_eq!(loss.to_vec::<f64>(), [2f64.ln(), 100.0]);
    /// ```
    #[doc(alias = "sigmoid_binary_cross_entropy")]
    binary_cross_entropy_with_logits try_binary_cross_entropy_with_logits(&self, targets: &Tensor) -> Tensor {
        with_caller(caller(), || binary(self, targets, None))
            .map_err(|e| e.renamed("binary_cross_entropy_with_logits"))
    }

    /// [`binary_cross_entropy_with_logits`](Tensor::binary_cross_entropy_with_logits) with the term of `t` multiplied by a weight: above 1 it makes false negatives
    /// dearer.
    #[doc(alias = "pos_weight")]
    weighted_binary_cross_entropy_with_logits try_weighted_binary_cross_entropy_with_logits<'a>(&self, targets: &Tensor, weight: impl Into<Operand<'a>>) -> Tensor {
        let weight = weight.into().tensor_like(targets).within("weighted_binary_cross_entropy_with_logits")?;
        with_caller(caller(), || binary(self, targets, Some(&weight)))
            .map_err(|e| e.renamed("weighted_binary_cross_entropy_with_logits"))
    }
}
