//! One of two functions, or of several.

use super::{same_outputs, select};
use crate::error::{Result, err, or_panic};
use crate::graph::control::{Cond, Known, known};
use crate::graph::{Graph, trace_leaves};
use crate::tensor::{Tensor, bind_block_at};
use crate::transform::checkpoint::avals;
use crate::transform::{Tree, from_leaves};
use std::panic::Location;
use std::sync::Arc;

/// `then(x)` if the condition, a scalar of bool, holds, and `otherwise(x)` if not.
///
/// Where the condition is known only the chosen function runs. Under [`vmap`](crate::vmap) with a mapped condition both run, and the result is chosen
/// lane by lane. In a traced function the choice is one operation of the graph.
///
/// ```
/// use pullback::prelude::*;
/// let root = |x: &Tensor| cond(&x.gt(0.0), |x: &Tensor| x.sqrt(), |x: &Tensor| x * 0.0, x);
/// assert_eq!(grad(root)(&Tensor::scalar(4.0)).item(), 0.25);
/// assert_eq!(vmap(grad(root))(&Tensor::from([4.0, -1.0])).to_vec::<f64>(), [0.25, 0.0]);
/// assert_eq!(grad(checkpoint(root))(&Tensor::scalar(4.0)).item(), 0.25);
/// ```
#[track_caller]
pub fn cond<X: Tree, Y: Tree>(
    condition: &Tensor,
    then: impl FnOnce(&X) -> Y,
    otherwise: impl FnOnce(&X) -> Y,
    x: &X,
) -> Y {
    let location = Location::caller();
    let _entered = crate::location::entered(location);
    let run = known(condition).and_then(|known| match known {
        Known::One(true) => Ok(then(x)),
        Known::One(false) => Ok(otherwise(x)),
        Known::Lanes { .. } => select(condition, &then(x), &otherwise(x)),
        Known::Nothing => traced(condition, then, otherwise, x, location),
    });
    or_panic(run.map_err(|e| e.in_op("cond").at(location)))
}

/// `branches[index](x)` for an integer scalar; an index outside is moved to the nearest branch.
///
/// It is made of [`cond`], so the same holds for mapped and traced values.
///
/// ```
/// use pullback::{prelude::*, switch};
/// let branches: [&dyn Fn(&Tensor) -> Tensor; 3] = [&|x| x.sin(), &|x| x.cos(), &|x| x.exp()];
/// let x = Tensor::scalar(0.0);
/// assert_eq!(switch(&Tensor::scalar(1), &branches, &x).item(), 1.0);
/// let each = vmap(|k: &Tensor| switch(k, &branches, &x))(&Tensor::from([0, 1, 2, 3]));
/// assert_eq!(each.to_vec::<f64>(), [0.0, 1.0, 1.0, 1.0]);
/// ```
#[track_caller]
pub fn switch<X: Tree, Y: Tree>(index: &Tensor, branches: &[&dyn Fn(&X) -> Y], x: &X) -> Y {
    let location = Location::caller();
    let _entered = crate::location::entered(location);
    let index = match index.dtype().is_int() && index.rank() == 0 && !branches.is_empty() {
        true => index,
        false => {
            let e = err!(
                DType,
                "needs an integer scalar and at least one branch, but was given {} {:?} and {}",
                index.dtype(),
                index.shape(),
                branches.len()
            );
            or_panic(Err(e.in_op("switch").at(location)))
        }
    };
    choose(index, 0, branches, x)
}

#[track_caller]
fn choose<X: Tree, Y: Tree>(index: &Tensor, k: i32, branches: &[&dyn Fn(&X) -> Y], x: &X) -> Y {
    match branches {
        [last] => last(x),
        [first, rest @ ..] => cond(&index.le(k), first, |x| choose(index, k + 1, rest, x), x),
        [] => unreachable!("the caller has checked"),
    }
}

fn traced<X: Tree, Y: Tree>(
    condition: &Tensor,
    then: impl FnOnce(&X) -> Y,
    otherwise: impl FnOnce(&X) -> Y,
    x: &X,
    location: &'static Location<'static>,
) -> Result<Y> {
    let mut results = Vec::new();
    let mut graph = |f: &mut dyn FnMut(&X) -> Y| {
        trace_leaves(
            |leaves| {
                let y = f(&from_leaves(x, leaves.iter().cloned()));
                let outputs = y.flatten();
                results.push(y);
                Ok(outputs)
            },
            avals(x),
        )
        .map(Graph::lift)
    };
    let (mut then, mut otherwise) = (Some(then), Some(otherwise));
    let (then, captured) = graph(&mut |x| then.take().expect("runs once")(x))?;
    let (otherwise, more) = graph(&mut |x| otherwise.take().expect("runs once")(x))?;
    same_outputs(&results[0], &results[1])?;
    let block = Cond { then: Arc::new(then), otherwise: Arc::new(otherwise), inputs: x.leaves().len() };
    let mut inputs = vec![condition];
    inputs.extend(x.leaves());
    inputs.extend(&captured);
    inputs.extend(&more);
    Ok(from_leaves(&results[0], bind_block_at(location, Arc::new(block), &inputs)?))
}
