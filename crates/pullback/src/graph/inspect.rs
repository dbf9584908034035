//! Looking at a graph from outside: its inputs, steps and outputs, and each step by itself.

use super::{Graph, Ref, Step, trace_leaves};
use crate::DType;
use crate::error::Result;
use crate::ops::{Aval, Op};
use crate::tensor::{Tensor, bind, bind_block};

/// Where a value of a graph comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// The input of this number.
    Input(usize),
    /// The captured tensor of this number.
    Constant(usize),
    /// A step, and which of its outputs.
    Step(usize, usize),
}

impl From<Ref> for Place {
    fn from(at: Ref) -> Place {
        match at {
            Ref::Input(k) => Place::Input(k),
            Ref::Const(k) => Place::Constant(k),
            Ref::Step(k, slot) => Place::Step(k, slot),
        }
    }
}

/// One operation of a graph, to be inspected and run by itself.
#[derive(Clone, Copy)]
pub struct StepView<'a>(&'a Step);

impl StepView<'_> {
    /// The name of the operation.
    pub fn name(&self) -> &'static str {
        self.0.op.name()
    }

    /// Its parameters, such as `axes: [0]`; empty if it has none.
    pub fn attributes(&self) -> String {
        self.0.op.parameters().to_string()
    }

    /// Where its arguments come from.
    pub fn args(&self) -> Vec<Place> {
        self.0.args.iter().map(|&a| a.into()).collect()
    }

    /// The types and shapes of its outputs.
    pub fn outputs(&self) -> Vec<(DType, Vec<usize>)> {
        self.0.avals.iter().map(|a| (a.dtype, a.shape.to_vec())).collect()
    }

    /// Applies the operation to tensors, visible to active transforms.
    #[track_caller]
    pub fn apply(&self, args: &[Tensor]) -> Result<Vec<Tensor>> {
        let args: Vec<&Tensor> = args.iter().collect();
        match &self.0.op {
            Op::Block(b) => bind_block(b.clone(), &args),
            op => bind(op.clone(), &args).map(|t| vec![t]),
        }
    }
}

impl Graph {
    /// What `f` does to inputs of these types and shapes.
    pub fn of(
        f: impl FnOnce(&[Tensor]) -> Result<Vec<Tensor>>,
        inputs: &[(DType, Vec<usize>)],
    ) -> Result<Graph> {
        trace_leaves(
            f,
            inputs.iter().map(|(dtype, s)| Aval { dtype: *dtype, shape: s.clone().into() }).collect(),
        )
    }

    /// The types and shapes of the inputs.
    pub fn input_types(&self) -> Vec<(DType, Vec<usize>)> {
        self.inputs.iter().map(|a| (a.dtype, a.shape.to_vec())).collect()
    }

    /// The operations in order.
    pub fn steps(&self) -> impl ExactSizeIterator<Item = StepView<'_>> {
        self.steps.iter().map(StepView)
    }

    /// Where the outputs come from.
    pub fn results(&self) -> Vec<Place> {
        self.outputs.iter().map(|&a| a.into()).collect()
    }

    /// The captured tensors.
    pub fn constants(&self) -> &[Tensor] {
        &self.consts
    }

    /// The values that were given a name.
    pub fn named_values(&self) -> Vec<(&str, Place)> {
        self.names.iter().map(|(name, at)| (&**name, (*at).into())).collect()
    }
}
