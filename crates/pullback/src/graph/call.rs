//! A graph as an operation.

use super::{Body, Builder, Graph, Ref, Step};
use crate::error::Result;
use crate::ops::{Aval, Op};
use crate::tensor::{Block, Tensor, bind_block_at};
use std::any::Any;
use std::panic::Location;
use std::sync::Arc;

/// Applies a graph. Of the forward pass only the inputs are kept: the pullback runs it again. But a quiet one is as if its
/// operations stood in its place, in `no_grad`.
#[derive(Clone)]
pub(crate) struct Call {
    pub name: &'static str,
    pub body: Arc<Graph>,
}

impl Block for Call {
    fn name(&self) -> &'static str {
        self.name
    }

    fn expand(&self, x: &[Tensor]) -> Result<Vec<Tensor>> {
        self.body.accepts(x)?;
        self.body.eval(x)
    }

    fn signature(&self) -> Option<Vec<Aval>> {
        Some(self.body.types())
    }

    fn is_quiet(&self) -> bool {
        self.name == QUIET
    }

    fn body(&self) -> Option<Box<dyn Any>> {
        Some(Box::new(Body::Call(self.clone())))
    }
}

/// The name of a call in which nothing is recorded for `backward`.
pub(super) const QUIET: &str = "no_grad";

/// A step, with inputs of these types, as it is in [`no_grad`](crate::no_grad).
pub(super) fn quiet(step: Step, inputs: Vec<Aval>) -> Op {
    let args = (0..inputs.len()).map(Ref::Input).collect();
    let mut body = Builder::new(inputs);
    let slots = step.avals.len();
    let at = body.place(Step { args, ..step });
    let graph = body.finish((0..slots).map(|k| at.slot(k)).collect(), Vec::new());
    Op::Block(Arc::new(Call { name: QUIET, body: Arc::new(graph) }))
}

/// Applies a graph with captured constants to inputs, as one operation.
pub(crate) fn call(
    location: &'static Location<'static>,
    name: &'static str,
    graph: Graph,
    inputs: &[&Tensor],
) -> Result<Vec<Tensor>> {
    // Numbers stay inside, where whatever reads them sees that they are numbers.
    let (graph, captured) = graph.lift_large();
    let all: Vec<&Tensor> = inputs.iter().copied().chain(&captured).collect();
    bind_block_at(location, Arc::new(Call { name, body: Arc::new(graph) }), &all)
}
