//! What may be known of a constant of a graph: its value, where it is one that nothing is differentiated through.

use super::{Graph, Ref};
use crate::dtype::Scalar;
use crate::shape::Shape;
use crate::tensor::{Data, Tensor};

/// Larger constants are not made, compared or read element by element.
pub(crate) const SMALL: usize = 4096;

/// Whether the elements are known and they are part of no active transform. Others, such as captured parameters, are only moved around.
pub(crate) fn is_literal(t: &Tensor) -> bool {
    t.node().deps.is_empty() && matches!(t.data(), Data::Splat(_) | Data::Strided(_))
}

pub(crate) fn is_splat(t: &Tensor) -> bool {
    is_literal(t) && matches!(t.data(), Data::Splat(_))
}

/// The repeated element.
pub(crate) fn splat(t: &Tensor) -> Option<Scalar> {
    is_splat(t).then(|| first(&resized(t, Shape::default())))
}

impl Graph {
    /// The number that is repeated over the whole of a constant.
    pub(crate) fn number(&self, at: Ref) -> Option<f64> {
        match at {
            // Passes reckon with real numbers; complex constants are only moved around.
            Ref::Const(k) if !self.consts[k].dtype().is_complex() => {
                splat(&self.consts[k]).map(Scalar::to_f64)
            }
            _ => None,
        }
    }
}

/// The same repeated element in another shape.
pub(crate) fn resized(t: &Tensor, shape: Shape) -> Tensor {
    debug_assert!(is_splat(t));
    Tensor::new(t.dtype(), shape, t.data().clone())
}

/// The element of a tensor that has one.
fn first(t: &Tensor) -> Scalar {
    match t.dtype() {
        d if d.is_complex() => Scalar::Complex(t.to_vec()[0]),
        d if d.is_float() => Scalar::F64(t.to_vec::<f64>()[0]),
        d if d.is_int() => Scalar::I64(t.to_vec::<i64>()[0]),
        _ => Scalar::Bool(t.to_vec::<bool>()[0]),
    }
}

/// A single element as a repeated one, so that it takes part in everything that literals do.
pub(crate) fn compact(t: &Tensor) -> Option<Tensor> {
    let single = is_literal(t) && !is_splat(t) && t.numel() == 1;
    single.then(|| Tensor::full_of(first(t), t.dtype(), t.node().shape.clone()))
}

/// The elements as words, equal for equal bits (and for any two NaN): two for a complex number, one for any other. Those of one element
/// for a repeated one; none for a large constant.
pub(crate) fn words(t: &Tensor) -> Option<Vec<u64>> {
    if let Some(v) = splat(t) {
        return Some(match v {
            Scalar::Complex(v) => vec![word(Scalar::F64(v.re)), word(Scalar::F64(v.im))],
            v => vec![word(v)],
        });
    }
    if !is_literal(t) || t.numel() > SMALL {
        return None;
    }
    Some(match t.dtype().is_differentiable() {
        true => t.numbers().into_iter().map(|v| word(Scalar::F64(v))).collect(),
        false => t.to_vec::<i64>().into_iter().map(|v| word(Scalar::I64(v))).collect(),
    })
}

fn word(v: Scalar) -> u64 {
    match v {
        Scalar::F64(v) if v.is_nan() => f64::NAN.to_bits(),
        Scalar::F64(v) => v.to_bits(),
        other => other.to_i64() as u64,
    }
}

/// Whether one may stand for the other.
pub(crate) fn equal(a: &Tensor, b: &Tensor) -> bool {
    if a.address() == b.address() {
        return true;
    }
    let alike = a.dtype() == b.dtype() && a.shape() == b.shape() && is_splat(a) == is_splat(b);
    alike && words(a).is_some_and(|words_of_a| words(b) == Some(words_of_a))
}
