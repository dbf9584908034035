//! Forward mode: tangents ride along with values, so memory does not grow with the length of the program.

use super::{Tree, from_leaves};
use crate::error::{err, or_panic};
use crate::location::entered;
use crate::tape::Level;
use crate::tensor::{Data, Tensor};
use std::panic::Location;

/// The value of a function, and its derivative along a tangent of the input.
///
/// ```
/// use pullback::prelude::*;
/// let (y, dy) = jvp(|x: &Tensor| x.square(), &Tensor::from([1.0, 2.0]), &Tensor::from([1.0, 10.0]));
/// assert_eq!(y.to_vec::<f64>(), [1.0, 4.0]);
/// assert_eq!(dy.to_vec::<f64>(), [2.0, 40.0]);
/// ```
#[must_use]
#[track_caller]
pub fn jvp<X: Tree, Y: Tree>(f: impl FnOnce(&X) -> Y, x: &X, t: &X) -> (Y, Y) {
    let location = Location::caller();
    let _entered = entered(location);
    or_panic(check(x, t).map_err(|e| e.in_op("jvp").at(location)));
    let level = Level::new();
    let pairs: Vec<Tensor> =
        x.leaves().into_iter().zip(t.leaves()).map(|(x, t)| x.with_tangent(level.id(), t)).collect();
    let y = f(&from_leaves(x, pairs));
    or_panic(super::reverse::check_some_differentiable(&y.leaves()).map_err(|e| e.in_op("jvp").at(location)));
    (y.map(&mut |t| primal(t, level.id())), y.map(&mut |t| tangent(t, level.id())))
}

pub(super) fn check<X: Tree>(x: &X, t: &X) -> crate::Result<()> {
    let (xs, ts) = (x.leaves(), t.leaves());
    if xs.len() != ts.len() {
        return Err(err!(Gradient, "the input has {} tensors, the tangent {}", xs.len(), ts.len()));
    }
    for ((x, t), name) in xs.iter().zip(ts).zip(x.names()) {
        let place = if name.is_empty() { "the input".into() } else { format!("the input `{name}`") };
        if !x.dtype().is_differentiable() {
            let dtype = x.dtype();
            return Err(err!(
                Gradient,
                "{place} is {dtype}, and only floats and complex numbers have a tangent; capture it in the closure instead"
            ));
        }
        if x.shape() != t.shape() || x.dtype() != t.dtype() {
            return Err(err!(
                Gradient,
                "{place} is {} {:?}, its tangent {} {:?}; they must agree",
                x.dtype(),
                x.shape(),
                t.dtype(),
                t.shape()
            ));
        }
    }
    Ok(())
}

fn primal(t: &Tensor, level: u64) -> Tensor {
    match t.data() {
        Data::Dual(d) if d.level == level => d.primal.clone(),
        _ => t.clone(),
    }
}

fn tangent(t: &Tensor, level: u64) -> Tensor {
    match t.data() {
        Data::Dual(d) if d.level == level => d.tangent.clone(),
        _ => t.zeros_like(),
    }
}
