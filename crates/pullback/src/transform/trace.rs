//! Functions of trees as graphs.

use super::{Tree, avals, from_leaves};
use crate::error::{Result, caught, or_panic};
use crate::graph::{Graph, trace_leaves};
use crate::location::entered;
use crate::tensor::Tensor;
use std::panic::Location;

/// What a function does, as a graph: the function runs once, on placeholders of the shapes and types of `x`. Tensors that it captures
/// become constants.
///
/// ```
/// use pullback::prelude::*;
/// let g = trace(|x: &Tensor| x.sin() * x, &Tensor::zeros([3]));
/// assert_eq!(g.len(), 2);
/// assert_eq!(g.run(&[Tensor::from([0.0, 1.0, 2.0])])?[0].to_vec::<f64>()[0], 0.0);
/// # Ok::<(), pullback::Error>(())
/// ```
#[must_use]
#[track_caller]
pub fn trace<X: Tree, Y: Tree>(f: impl Fn(&X) -> Y, x: &X) -> Graph {
    or_panic(try_trace(f, x))
}

/// [`trace`], with an error where the function asks for a value that is not known, or fails otherwise.
///
/// ```
/// use pullback::prelude::*;
/// let e = pullback::try_trace(|x: &Tensor| x * x.item(), &Tensor::scalar(1.0)).unwrap_err();
/// assert!(e.to_string().contains("not known while a function is traced"));
/// ```
#[track_caller]
pub fn try_trace<X: Tree, Y: Tree>(f: impl Fn(&X) -> Y, x: &X) -> Result<Graph> {
    let location = Location::caller();
    let _entered = entered(location);
    let run = |leaves: &[Tensor]| caught(|| f(&from_leaves(x, leaves.iter().cloned())).flatten());
    trace_leaves(run, avals(x)).map_err(|e| e.in_op("trace").at(location))
}
