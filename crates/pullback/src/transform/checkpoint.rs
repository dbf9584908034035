//! Trading time for memory: keep the inputs of a function, and run it again for the pullback.

mod offload;
mod policy;
mod spill;
mod verified;

pub use policy::{Keep, Policy, name};

use super::{Rerun, Tree, from_leaves};
use crate::error::{Result, or_panic};
use crate::graph::{Graph, call, trace_leaves};
use crate::location::entered;
use crate::ops::Aval;
use crate::tensor::{Block, Tensor, bind_block_at};
use std::panic::Location;
use std::sync::{Arc, Mutex};

/// The types of a tree's leaves.
pub(crate) fn avals<X: Tree>(x: &X) -> Vec<Aval> {
    x.leaves().iter().map(|t| Aval { dtype: t.dtype(), shape: t.node().shape.clone() }).collect()
}

/// The same function, of which only the inputs are kept for the pullback, where it runs again.
///
/// The function is traced, so it may borrow: what it captures becomes an input, and gets its gradient. It may not branch on
/// values; for that, and for keeping more, there is [`checkpoint_with`]. Under [`vmap`](crate::vmap) or [`jvp`](crate::jvp) inside of a gradient the outer gradient looks into it, and
/// keeps what it reads: take the gradient inside.
///
/// ```
/// use pullback::prelude::*;
/// let w = Tensor::scalar(2.0).requires_grad();
/// let block = checkpoint(|x: &Tensor| (x * &w).sin().exp());
/// block(&Tensor::scalar(0.5)).backward();
/// assert!(w.grad().is_some());
/// ```
#[track_caller]
pub fn checkpoint<X: Tree, Y: Tree, F: Fn(&X) -> Y>(f: F) -> impl Fn(&X) -> Y {
    let location = Location::caller();
    move |x| or_panic(traced(&f, x, location).map_err(|e| e.in_op("checkpoint").at(location)))
}

fn traced<X: Tree, Y: Tree>(f: &impl Fn(&X) -> Y, x: &X, location: &'static Location<'static>) -> Result<Y> {
    let _entered = entered(location);
    let (graph, structure) = graph_of(f, x)?;
    let outputs = call(location, "checkpoint", graph, &x.leaves())?;
    Ok(from_leaves(&structure, outputs))
}

/// What a function does to inputs of the types of `x`, and a result for the structure.
pub(crate) fn graph_of<X: Tree, Y: Tree>(f: &impl Fn(&X) -> Y, x: &X) -> Result<(Graph, Y)> {
    let mut structure = None;
    let run = |leaves: &[Tensor]| {
        let y = f(&from_leaves(x, leaves.iter().cloned()));
        let outputs = y.flatten();
        structure = Some(y);
        Ok(outputs)
    };
    let graph = trace_leaves(run, avals(x))?;
    Ok((graph, structure.expect("the function was traced")))
}

/// [`checkpoint`] with options:
///
/// - A [`Policy`] says what is kept besides the inputs, and not computed again. [`offload`](Policy::offload) puts it all into files,
///   and [`verify`](Policy::verify) tests that the function is deterministic.
/// - [`Policy::rerun`] runs the closure itself again instead of a trace, so that it may branch on values.
///
/// ```
/// use pullback::{Policy, checkpoint_with, prelude::*};
/// let w = Tensor::from([[0.5, 1.0], [-1.0, 2.0]]);
/// let layer = |x: &Tensor| w.matmul(x).tanh().exp();
/// let x = Tensor::from([0.1, 0.2]);
/// let kept = checkpoint_with(Policy::Products, layer);
/// assert_eq!(grad(|x: &Tensor| kept(x).sum())(&x).to_vec::<f64>(), grad(|x: &Tensor| layer(x).sum())(&x).to_vec::<f64>());
///
/// let halve = checkpoint_with(Policy::rerun(), |x: &Tensor| {
///     let mut y = x.clone();
///     while y.item() > 1.0 {
///         y = y * 0.5;
///     }
///     y
/// });
/// assert_eq!(grad(halve)(&Tensor::scalar(6.0)).item(), 0.125);
/// ```
#[track_caller]
pub fn checkpoint_with<X: Tree, Y: Tree, F: Fn(&X) -> Y>(
    options: impl CheckpointOptions<X, Y, F>,
    f: F,
) -> impl Fn(&X) -> Y {
    options.checkpoint(f, Location::caller())
}

/// What [`checkpoint_with`] takes: a [`Policy`], a [`Keep`] or its re-running form.
pub trait CheckpointOptions<X, Y, F> {
    #[doc(hidden)]
    fn checkpoint(self, f: F, location: &'static Location<'static>) -> impl Fn(&X) -> Y;
}

impl<X: Tree, Y: Tree, F: Fn(&X) -> Y> CheckpointOptions<X, Y, F> for Policy {
    fn checkpoint(self, f: F, location: &'static Location<'static>) -> impl Fn(&X) -> Y {
        Keep::from(self).checkpoint(f, location)
    }
}

impl<X: Tree, Y: Tree, F: Fn(&X) -> Y> CheckpointOptions<X, Y, F> for Keep {
    fn checkpoint(self, f: F, location: &'static Location<'static>) -> impl Fn(&X) -> Y {
        move |x| {
            if self.is_plain(Policy::Everything) {
                return f(x);
            }
            let run = match self.is_plain(Policy::Nothing) {
                true => traced(&f, x, location),
                false => policy::keeping(&f, x, &self, location),
            };
            or_panic(run.map_err(|e| e.in_op("checkpoint").at(location)))
        }
    }
}

impl<X, Y, F> CheckpointOptions<X, Y, F> for Rerun<Keep>
where
    X: Tree + Clone + Send + Sync + 'static,
    Y: Tree + Send + 'static,
    F: Fn(&X) -> Y + Send + Sync + 'static,
{
    fn checkpoint(self, f: F, location: &'static Location<'static>) -> impl Fn(&X) -> Y {
        let f = Arc::new(f);
        move |x: &X| rerun(&f, x, &self.0, location)
    }
}

/// Applies the function as a block that runs it again.
fn rerun<X, Y, F>(f: &Arc<F>, x: &X, keep: &Keep, location: &'static Location<'static>) -> Y
where
    X: Tree + Clone + Send + Sync + 'static,
    Y: Tree + Send + 'static,
    F: Fn(&X) -> Y + Send + Sync + 'static,
{
    let _entered = entered(location);
    let last: Arc<Mutex<Option<Y>>> = Arc::default();
    // Zeros need no memory: whether the inputs themselves are kept is for the record to say.
    let like = x.map(&mut |t| Tensor::zeros_of(t.dtype(), t.node().shape.clone()));
    let body = keep.around(Arc::new(Dynamic { f: f.clone(), like, last: last.clone() }));
    let outputs =
        or_panic(bind_block_at(location, body, &x.leaves()).map_err(|e| e.in_op("checkpoint").at(location)));
    let structure = last.lock().unwrap_or_else(|e| e.into_inner()).take().expect("the function has run");
    from_leaves(&structure, outputs)
}

struct Dynamic<X, Y, F> {
    f: Arc<F>,
    /// The structure of the input.
    like: X,
    /// The last result, for its structure.
    last: Arc<Mutex<Option<Y>>>,
}

impl<X, Y, F> Block for Dynamic<X, Y, F>
where
    X: Tree + Send + Sync,
    Y: Tree + Send,
    F: Fn(&X) -> Y + Send + Sync,
{
    fn name(&self) -> &'static str {
        "checkpoint"
    }

    fn expand(&self, x: &[Tensor]) -> Result<Vec<Tensor>> {
        let y = (self.f)(&from_leaves(&self.like, x.iter().cloned()));
        let outputs = y.leaves().into_iter().cloned().collect();
        *self.last.lock().unwrap_or_else(|e| e.into_inner()) = Some(y);
        Ok(outputs)
    }
}
