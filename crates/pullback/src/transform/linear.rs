//! Linear parts of functions: a derivative that can be applied again and again, a transpose, and a value without derivative.

use super::checkpoint::avals;
use super::{Tree, from_leaves, jvp, vjp};
use crate::Tensor;
use crate::error::{Result, err, or_panic};
use crate::graph::{Graph, trace_leaves};
use crate::location::entered;
use std::panic::Location;

/// The value of a function and its derivative as a linear function of tangents, which can be called again and again.
///
/// The function runs once. What depends on the input alone is computed then; of what depends on the tangent a program
/// is kept, and each call runs that.
///
/// ```
/// use pullback::{linearize, prelude::*};
/// let (y, push) = linearize(|x: &Tensor| x.sin(), &Tensor::from([0.0, 1.0]));
/// assert_eq!(y.shape(), [2]);
/// assert_eq!(push(&Tensor::from([3.0, 0.0])).to_vec::<f64>(), [3.0, 0.0]);
/// ```
#[track_caller]
pub fn linearize<X: Tree, Y: Tree, F: FnOnce(&X) -> Y>(f: F, x: &X) -> (Y, impl Fn(&X) -> Y + use<X, Y, F>) {
    let location = Location::caller();
    let _entered = entered(location);
    or_panic(super::forward::check(x, x).map_err(|e| e.in_op("linearize").at(location)));
    let mut value = None;
    let run = |tangents: &[Tensor]| {
        let (y, dy) = jvp(f, x, &from_leaves(x, tangents.iter().cloned()));
        value = Some(y);
        Ok(dy.leaves().into_iter().cloned().collect())
    };
    let graph = or_panic(trace_leaves(run, avals(x)).map_err(|e| e.in_op("linearize").at(location)));
    let y = value.expect("the function has run");
    let structure = y.map(&mut Tensor::clone);
    let names = x.names();
    let push = move |t: &X| {
        let _entered = entered(location);
        let leaves: Vec<Tensor> = t.leaves().into_iter().cloned().collect();
        let out = check(&graph, &names, &leaves).and_then(|()| graph.eval(&leaves));
        from_leaves(&structure, or_panic(out.map_err(|e| e.in_op("linearize").at(location))))
    };
    (y, push)
}

/// Whether these are tangents of the input that the program was made for.
fn check(graph: &Graph, names: &[String], tangents: &[Tensor]) -> Result<()> {
    if graph.inputs.len() != tangents.len() {
        let (n, m) = (graph.inputs.len(), tangents.len());
        return Err(err!(Gradient, "the input has {n} tensors, the tangent {m}"));
    }
    for ((x, t), name) in graph.inputs.iter().zip(tangents).zip(names) {
        if t.shape() != &x.shape[..] || t.dtype() != x.dtype {
            let (shape, dtype) = (t.shape(), t.dtype());
            return Err(err!(
                Gradient,
                "input `{name}` is {} {:?}, its tangent {dtype} {shape:?}",
                x.dtype,
                x.shape
            ));
        }
    }
    Ok(())
}

/// The transpose of a linear function: `<g, f(x)> = <transpose(f)(g), x>` for all `x` and `g`. Of `like`, only the
/// structure, shapes and types are read.
///
/// A function that is not zero at zero is not linear, and is refused. Other functions that are not linear are not noticed: what comes back
/// is then the transpose of their derivative at zero.
///
/// ```
/// use pullback::{prelude::*, transpose};
/// let a = Tensor::from([[1.0, 2.0], [3.0, 4.0]]);
/// let t = transpose(|x: &Tensor| a.matmul(x), &Tensor::zeros([2]));
/// assert_eq!(t(&Tensor::from([1.0, 0.0])).to_vec::<f64>(), [1.0, 2.0]);
/// ```
#[track_caller]
pub fn transpose<X: Tree, Y: Tree, F: FnOnce(&X) -> Y>(f: F, like: &X) -> impl Fn(&Y) -> X + use<X, Y, F> {
    let zero = like.map(&mut |t| t.detach().zeros_like());
    let (y, pull) = vjp(f, &zero);
    for (t, name) in y.leaves().into_iter().zip(y.names()) {
        if t.dtype().is_differentiable() && t.is_known() && t.numbers().iter().any(|v| *v != 0.0) {
            let e = err!(Gradient, "the function is not linear: at zero, its output `{name}` is not zero");
            or_panic(Err(e.in_op("transpose").at(Location::caller())))
        }
    }
    pull
}

/// The same tensors, which every transform takes for constants.
///
/// ```
/// use pullback::prelude::*;
/// let g = grad(|x: &Tensor| x * stop_gradient(x))(&Tensor::scalar(3.0));
/// assert_eq!(g.item(), 3.0);
/// ```
#[must_use]
#[track_caller]
pub fn stop_gradient<X: Tree>(x: &X) -> X {
    let location = crate::location::caller();
    x.map(&mut |t| crate::location::with_caller(location, || t.detach()))
}
