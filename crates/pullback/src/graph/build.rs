//! Making a graph operation by operation: how passes write their results, and the parser its graph.

use super::{Graph, Ref, Step};
use crate::error::{Result, err};
use crate::ops::{Arg, Aval, Op};
use crate::tensor::Tensor;
use smallvec::SmallVec;
use std::panic::Location;
use std::sync::Arc;

/// A graph that grows by one operation at a time. Types are inferred, so that a wrong rewrite fails where it is made.
pub(crate) struct Builder {
    graph: Graph,
}

impl Builder {
    pub fn new(inputs: Vec<Aval>) -> Builder {
        Builder {
            graph: Graph {
                inputs,
                consts: Vec::new(),
                steps: Vec::new(),
                outputs: Vec::new(),
                names: Vec::new(),
            },
        }
    }

    /// An empty graph with the inputs and constants of another, whose references to these stay valid.
    pub fn like(graph: &Graph) -> Builder {
        let mut out = Builder::new(graph.inputs.clone());
        out.graph.consts = graph.consts.clone();
        out.graph.steps.reserve(graph.len());
        out
    }

    /// What has been built so far.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    pub fn constant(&mut self, value: Tensor) -> Ref {
        self.graph.consts.push(value);
        Ref::Const(self.graph.consts.len() - 1)
    }

    /// Adds an operation and infers its types; the result is its first output.
    pub fn push(
        &mut self,
        op: impl Into<Op>,
        args: &[Ref],
        location: &'static Location<'static>,
    ) -> Result<Ref> {
        let op = op.into();
        let types: SmallVec<[Aval; 4]> = args.iter().map(|&a| self.graph.aval(a)).collect();
        let avals = infer(&op, &types)?;
        Ok(self.place(Step { op, args: args.into(), avals, location }))
    }

    /// Adds a step whose types are known; the result is its first output.
    pub fn place(&mut self, step: Step) -> Ref {
        self.graph.steps.push(step);
        Ref::Step(self.graph.steps.len() - 1, 0)
    }

    /// The finished graph.
    pub fn finish(mut self, outputs: Vec<Ref>, names: Vec<(Arc<str>, Ref)>) -> Graph {
        self.graph.outputs = outputs;
        self.graph.names = names;
        self.graph
    }
}

/// The types of an operation's outputs.
pub(crate) fn infer(op: &Op, inputs: &[Aval]) -> Result<SmallVec<[Aval; 1]>> {
    match op {
        Op::Block(b) => {
            if let Some(body) = op.body() {
                body.check(inputs)?;
            }
            match b.signature() {
                Some(avals) => Ok(avals.into()),
                None => Err(err!(Structure, "`{}` cannot stand in a graph", b.name())),
            }
        }
        Op::Slot(_) => Err(err!(Structure, "an output of a block is not an operation of its own")),
        op => {
            if op.arity().map_or(inputs.is_empty(), |n| n != inputs.len()) {
                return Err(err!(Structure, "`{}` does not take {} inputs", op.name(), inputs.len()));
            }
            let args: SmallVec<[Arg; 4]> =
                inputs.iter().map(|a| Arg { dtype: a.dtype, shape: &a.shape }).collect();
            Ok([op.infer(&args)?].into())
        }
    }
}
