//! Checkpoints that keep some values: between all and nothing.

use super::{graph_of, traced};
use crate::error::{Result, or_panic};
use crate::graph::{Graph, Ref, Region, give_name};
use crate::ops::{Aval, Op};
use crate::tensor::{Block, BlockAt, Link, Ran, Tensor, bind_block, replay};
use crate::transform::{Tree, from_leaves};
use std::panic::Location;
use std::sync::Arc;

/// What a checkpoint keeps besides the inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Policy {
    /// All that the pullback reads: as without a checkpoint.
    Everything,
    /// Nothing: as [`checkpoint`](crate::checkpoint).
    Nothing,
    /// The results of products of matrices, which cost the most to compute.
    Products,
    /// The values that were given one of these names by [`name`].
    Named(&'static [&'static str]),
}

/// Gives a value a name that [`Policy::Named`] knows it by.
///
/// ```
/// use pullback::{name, prelude::*};
/// let f = |x: &Tensor| name(&x.sin().exp(), "hidden").tanh();
/// let kept = checkpoint_policy(f, Policy::Named(&["hidden"]));
/// let x = Tensor::scalar(0.5);
/// assert_eq!(grad(kept)(&x).item(), grad(f)(&x).item());
/// ```
pub fn name(x: &Tensor, name: &'static str) -> Tensor {
    give_name(x, name);
    x.clone()
}

/// [`checkpoint`](crate::checkpoint) that keeps what the [`Policy`] says, and does not compute it again.
///
/// ```
/// use pullback::prelude::*;
/// let w = Tensor::from([[0.5, 1.0], [-1.0, 2.0]]);
/// let layer = |x: &Tensor| w.matmul(x).tanh().exp();
/// let x = Tensor::from([0.1, 0.2]);
/// let kept = checkpoint_policy(layer, Policy::Products);
/// assert_eq!(grad(|x: &Tensor| kept(x).sum())(&x).to_vec::<f64>(), grad(|x: &Tensor| layer(x).sum())(&x).to_vec::<f64>());
/// ```
#[track_caller]
pub fn checkpoint_policy<X: Tree, Y: Tree, F: Fn(&X) -> Y>(f: F, policy: Policy) -> impl Fn(&X) -> Y {
    let location = Location::caller();
    move |x| {
        let run = match policy {
            Policy::Everything => return f(x),
            Policy::Nothing => traced(&f, x),
            _ => keeping(&f, x, policy),
        };
        or_panic(run.map_err(|e| e.in_op("checkpoint").at(location)))
    }
}

fn keeping<X: Tree, Y: Tree>(f: &impl Fn(&X) -> Y, x: &X, policy: Policy) -> Result<Y> {
    let (graph, structure) = graph_of(f, x)?;
    let (graph, captured) = graph.lift();
    let wanted = |k: usize| match policy {
        Policy::Named(names) => {
            graph.names.iter().any(|(n, at)| *at == Ref::Step(k, 0) && names.contains(&&**n))
        }
        _ => matches!(graph.steps[k].op, Op::Dot(_)),
    };
    // A block within has its own way of keeping.
    let plain = |k: &usize| !matches!(graph.steps[*k].op, Op::Block(_));
    let saved: Vec<usize> = (0..graph.len()).filter(plain).filter(|&k| wanted(k)).collect();
    let inputs: Vec<&Tensor> = x.leaves().into_iter().chain(&captured).collect();
    let block = Keeping { graph: Arc::new(graph), saved: saved.into(), values: Vec::new() };
    Ok(from_leaves(&structure, bind_block(Arc::new(block), &inputs)?))
}

/// A graph of which the results of some steps are kept.
struct Keeping {
    graph: Arc<Graph>,
    /// The steps, in order.
    saved: Arc<[usize]>,
    /// Their results in the run that this is the record of.
    values: Vec<Tensor>,
}

impl Block for Keeping {
    fn name(&self) -> &'static str {
        "checkpoint"
    }

    fn expand(&self, x: &[Tensor]) -> Result<Vec<Tensor>> {
        self.graph.eval(x)
    }

    fn run_to_record(&self, x: &[Tensor]) -> Result<Ran> {
        let mut more = Graph::clone(&self.graph);
        more.outputs.extend(self.saved.iter().map(|&k| Ref::Step(k, 0)));
        let mut outputs = more.eval(x)?;
        let values = outputs.split_off(self.graph.outputs.len());
        let ran = Keeping { graph: self.graph.clone(), saved: self.saved.clone(), values };
        Ok((outputs, Some(Arc::new(ran))))
    }

    fn residuals(&self) -> Vec<Tensor> {
        self.values.clone()
    }

    fn signature(&self) -> Option<Vec<Aval>> {
        Some(self.graph.types())
    }

    fn region(&self) -> Option<Region> {
        Some(Region::Call { name: "checkpoint", body: self.graph.clone() })
    }

    fn pullback(&self, at: &BlockAt, gs: &[Option<Tensor>]) -> Result<Vec<(Link, Tensor)>> {
        let known = |k: usize| self.saved.binary_search(&k).ok().and_then(|i| self.values.get(i));
        replay(at, gs, |x| self.graph.eval_knowing(x, known))
    }
}
