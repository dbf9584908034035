//! Scaled dot-product attention.

use super::operand::{check_dtypes, conform};
use super::{Key, Tensor, bind};
use crate::DType;
use crate::error::{Result, err, or_panic};
use crate::location::{caller, with_caller};
use crate::ops;
use crate::shape::Shape;
use std::borrow::Cow;

/// Options of [`attention`]: everything counts, scores are divided by the square root of the length of a query, and nothing is dropped, unless it is said
/// otherwise.
///
/// ```
/// use pullback::{Attention, attention, prelude::*};
/// let x = Tensor::randn(Key::new(1), [8, 5, 4], DType::F64);
/// let y = attention(&x, &x, &x, Attention::new().causal().dropout(0.1, Key::new(2)));
/// assert_eq!(y.shape(), [8, 5, 4]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Attention {
    causal: bool,
    mask: Option<Tensor>,
    scale: Option<f64>,
    dropout: Option<(f64, Key)>,
}

impl Attention {
    /// Every query sees every key.
    pub fn new() -> Attention {
        Attention::default()
    }

    /// Query `i` sees the keys up to `i`, both counted from 0.
    #[must_use]
    pub fn causal(mut self) -> Attention {
        self.causal = true;
        self
    }

    /// A mask that broadcasts to `[.., queries, keys]`: truth values say which keys count, floats are added to the scores. The gradient of a float mask takes
    /// memory for all scores.
    #[must_use]
    #[doc(alias = "attn_mask")]
    pub fn mask(mut self, mask: &Tensor) -> Attention {
        self.mask = Some(mask.clone());
        self
    }

    /// What products of queries and keys are multiplied by.
    #[must_use]
    pub fn scale(mut self, scale: f64) -> Attention {
        self.scale = Some(scale);
        self
    }

    /// Each weight is dropped with this probability, and the others are divided by that to stay.
    #[must_use]
    pub fn dropout(mut self, p: f64, key: impl Into<Key>) -> Attention {
        self.dropout = Some((p, key.into()));
        self
    }
}

/// Scaled dot-product attention: `softmax(q kᵀ / √d) v`, with queries `[.., n, d]`, keys `[.., m, d]` and values `[.., m, v]`, of which the leading axes broadcast. The
/// result is `[.., n, v]`.
///
/// It works through the scores in tiles, forward and backward, so that it needs memory for `n + m` rows and not for `n m` scores. (Forward mode and
/// derivatives of second order make all scores.)
///
/// Keys and values may have fewer heads (the third axis from the end) than queries: as many queries' heads as that is less share each of them. A query
/// that sees no key, because a mask hides all, has a result of 0 and gives no gradient.
///
/// ```
/// use pullback::{Attention, attention, prelude::*};
/// let (q, k) = (Tensor::from([[0.0], [100.0]]), Tensor::from([[1.0], [-1.0]]));
/// let v = Tensor::from([[1.0], [3.0]]);
/// let y = attention(&q, &k, &v, Attention::new());
/// assert_eq!(y.to_vec::<f64>(), [2.0, 1.0]);
/// let y = attention(&q, &k, &v, Attention::new().causal());
/// assert_eq!(y.to_vec::<f64>(), [1.0, 1.0]);
/// ```
#[must_use]
#[doc(alias = "scaled_dot_product_attention")]
#[track_caller]
pub fn attention(q: &Tensor, k: &Tensor, v: &Tensor, options: Attention) -> Tensor {
    or_panic(try_attention(q, k, v, options))
}

/// [`attention()`], with bad arguments as an error.
#[track_caller]
pub fn try_attention(q: &Tensor, k: &Tensor, v: &Tensor, options: Attention) -> Result<Tensor> {
    let line = caller();
    with_caller(line, || attend(q, k, v, &options)).map_err(|e| e.renamed("attention").at(line))
}

fn attend(q: &Tensor, k: &Tensor, v: &Tensor, options: &Attention) -> Result<Tensor> {
    if [q, k, v].iter().any(|t| t.rank() < 2) || k.shape()[k.rank() - 1] != q.shape()[q.rank() - 1] {
        return Err(misfit(q, k, v));
    }
    let dtype = DType::promote(DType::promote(q.dtype(), k.dtype()), v.dtype());
    check_dtypes(q, k, dtype)?;
    check_dtypes(k, v, dtype)?;
    if !dtype.is_float() {
        return Err(ops::needs_float(dtype));
    }
    let (heads, shared) = (heads(q), heads(k).max(heads(v)));
    if shared > 1 && shared < heads && heads.is_multiple_of(shared) {
        let each = heads / shared;
        let apart = |t: &Tensor| match (t.rank() > 2, super::attention::heads(t)) {
            (true, n) if n == heads => split(t, shared, each),
            (true, n) => split(t, n, 1),
            (false, _) => Ok(t.clone()),
        };
        let options = Attention { mask: options.mask.as_ref().map(apart).transpose()?, ..options.clone() };
        let y = attend(&apart(q)?, &apart(k)?, &apart(v)?, &options)?;
        let mut shape = y.shape().to_vec();
        let at = shape.len() - 4;
        shape.splice(at..at + 2, [heads]);
        return y.try_reshape(shape);
    }
    let (n, m) = (q.shape()[q.rank() - 2], k.shape()[k.rank() - 2]);
    let (d, width) = (q.shape()[q.rank() - 1], v.shape()[v.rank() - 1]);
    let front = |t: &Tensor| -> Shape { t.shape()[..t.rank() - 2].into() };
    let mut lead = Shape::broadcast(&front(q), &front(k)).map_err(|_| misfit(q, k, v))?;
    lead = Shape::broadcast(&lead, &front(v)).map_err(|_| misfit(q, k, v))?;
    if v.shape()[v.rank() - 2] != m {
        return Err(misfit(q, k, v));
    }
    if d == 0 && options.scale.is_none() {
        return Err(err!(Shape, "queries {:?} have no elements; say a scale", q.shape()));
    }
    let computed = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
    let full = |a: usize, b: usize| -> Shape { lead.iter().copied().chain([a, b]).collect() };
    let brought = |t: &Tensor, dtype: DType, a: usize, b: usize| {
        conform(Cow::Borrowed(t), dtype, &full(a, b)).map(Cow::into_owned)
    };
    let mut inputs =
        vec![brought(q, computed, n, d)?, brought(k, computed, m, d)?, brought(v, computed, m, width)?];
    if let Some(mask) = &options.mask {
        let kind = if mask.dtype() == DType::Bool { DType::Bool } else { computed };
        let fits = (mask.dtype() == DType::Bool || mask.dtype().is_float())
            && Shape::broadcast(mask.shape(), &full(n, m)).is_ok_and(|s| s == full(n, m));
        if !fits {
            return Err(err!(
                Shape,
                "a mask of bool or floats broadcasts to the scores, which are {:?}; got {} {:?}",
                full(n, m),
                mask.dtype(),
                mask.shape()
            ));
        }
        inputs.push(brought(mask, kind, n, m)?);
    }
    let dropout = match &options.dropout {
        Some((p, _)) if !(0.0..1.0).contains(p) => {
            return Err(err!(Value, "a probability to drop is from 0 to below 1, got {p}"));
        }
        Some((p, key)) if *p > 0.0 => {
            inputs.push(key.words.clone());
            *p
        }
        _ => 0.0,
    };
    let scale = options.scale.unwrap_or_else(|| 1.0 / (d as f64).sqrt());
    let op = ops::Attention { scale, causal: options.causal, dropout };
    let packed = bind(op, &inputs.iter().collect::<Vec<_>>())?;
    let y = packed.try_narrow(-1, 0, n.saturating_mul(width))?.try_reshape(full(n, width))?;
    if computed == dtype { Ok(y) } else { y.try_cast(dtype) }
}

fn misfit(q: &Tensor, k: &Tensor, v: &Tensor) -> crate::Error {
    err!(
        Shape,
        "queries {:?}, keys {:?} and values {:?} do not fit: they are [.., n, d], [.., m, d] and [.., m, v], with leading axes that broadcast",
        q.shape(),
        k.shape(),
        v.shape()
    )
}

/// The length of the third axis from the end.
fn heads(t: &Tensor) -> usize {
    t.rank().checked_sub(3).map_or(1, |k| t.shape()[k])
}

/// The third axis from the end as two.
fn split(t: &Tensor, a: usize, b: usize) -> Result<Tensor> {
    let mut shape = t.shape().to_vec();
    let at = shape.len() - 3;
    shape.splice(at..at + 1, [a, b]);
    t.try_reshape(shape)
}
