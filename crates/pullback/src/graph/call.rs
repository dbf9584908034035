//! A graph as an operation.

use super::{Graph, Region};
use crate::error::Result;
use crate::ops::Aval;
use crate::tensor::{Block, Tensor, bind_block_at};
use std::panic::Location;
use std::sync::Arc;

/// Applies a graph. Of the forward pass only the inputs are kept: the pullback runs it again.
pub(crate) struct Call {
    pub name: &'static str,
    pub graph: Arc<Graph>,
}

impl Block for Call {
    fn name(&self) -> &'static str {
        self.name
    }

    fn expand(&self, x: &[Tensor]) -> Result<Vec<Tensor>> {
        self.graph.accepts(x)?;
        self.graph.eval(x)
    }

    fn signature(&self) -> Option<Vec<Aval>> {
        Some(self.graph.types())
    }

    fn region(&self) -> Option<Region> {
        Some(Region::Call { name: self.name, body: self.graph.clone() })
    }
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
    bind_block_at(location, Arc::new(Call { name, graph: Arc::new(graph) }), &all)
}
