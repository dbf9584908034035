//! A graph as an operation.

use super::Graph;
use crate::error::{Result, err};
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
        for (k, (x, expected)) in x.iter().zip(&self.graph.inputs).enumerate() {
            if x.dtype() != expected.dtype || x.shape() != &expected.shape[..] {
                return Err(err!(
                    Shape,
                    "input {k} was traced as {} {:?}, but is {} {:?}",
                    expected.dtype,
                    expected.shape,
                    x.dtype(),
                    x.shape()
                ));
            }
        }
        self.graph.eval(x)
    }

    fn signature(&self) -> Option<Vec<Aval>> {
        Some(self.graph.outputs.iter().map(|&a| self.graph.aval(a)).collect())
    }
}

/// Applies a graph with captured constants to inputs, as one operation.
pub(crate) fn call(
    location: &'static Location<'static>,
    name: &'static str,
    graph: Graph,
    inputs: &[&Tensor],
) -> Result<Vec<Tensor>> {
    let (graph, captured) = graph.lift();
    let all: Vec<&Tensor> = inputs.iter().copied().chain(&captured).collect();
    bind_block_at(location, Arc::new(Call { name, graph: Arc::new(graph) }), &all)
}
