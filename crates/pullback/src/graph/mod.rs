//! Traced programs: a typed straight line of operations, in which every value is computed once.

mod call;
mod inspect;
mod trace;

pub(crate) use call::call;
pub use inspect::{Place, StepView};
pub(crate) use trace::{Trace, give_name, trace_leaves};

use crate::error::Result;
use crate::ops::{Aval, Op};
use crate::tensor::{Tensor, bind, bind_block, bind_known};
use smallvec::SmallVec;
use std::panic::Location;

/// A program over tensors: inputs, captured constants, operations in order, outputs.
#[derive(Clone)]
pub struct Graph {
    pub(crate) inputs: Vec<Aval>,
    pub(crate) consts: Vec<Tensor>,
    pub(crate) steps: Vec<Step>,
    pub(crate) outputs: Vec<Ref>,
    /// Values that were given a name.
    pub(crate) names: Vec<(&'static str, Ref)>,
}

/// One operation of a graph.
#[derive(Clone)]
pub(crate) struct Step {
    pub op: Op,
    pub args: SmallVec<[Ref; 2]>,
    /// The types of its outputs.
    pub avals: SmallVec<[Aval; 1]>,
    pub location: &'static Location<'static>,
}

/// A value of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Ref {
    Input(usize),
    Const(usize),
    /// An output of a step.
    Step(usize, usize),
}

impl Ref {
    /// Another output of the same step.
    pub fn slot(self, slot: usize) -> Ref {
        match self {
            Ref::Step(k, _) => Ref::Step(k, slot),
            other => other,
        }
    }
}

impl Graph {
    /// The number of operations.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether there is no operation: the outputs are inputs or constants.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    pub(crate) fn aval(&self, at: Ref) -> Aval {
        match at {
            Ref::Input(k) => self.inputs[k].clone(),
            Ref::Const(k) => {
                Aval { dtype: self.consts[k].dtype(), shape: self.consts[k].node().shape.clone() }
            }
            Ref::Step(k, slot) => self.steps[k].avals[slot].clone(),
        }
    }

    /// Runs the program through `bind`, so that any transform may look on. A value is dropped after its last use.
    pub(crate) fn eval(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        self.eval_knowing(inputs, |_| None)
    }

    /// [`eval`](Graph::eval) in which the results of some steps of one output are known: they are recorded, but not computed.
    pub(crate) fn eval_knowing<'a>(
        &self,
        inputs: &[Tensor],
        known: impl Fn(usize) -> Option<&'a Tensor>,
    ) -> Result<Vec<Tensor>> {
        let mut last = vec![usize::MAX; self.steps.len()];
        for (k, step) in self.steps.iter().enumerate() {
            step.args.iter().for_each(|a| {
                if let Ref::Step(j, _) = a {
                    last[*j] = k
                }
            });
        }
        self.outputs.iter().for_each(|a| {
            if let Ref::Step(j, _) = a {
                last[*j] = usize::MAX
            }
        });
        let mut values: Vec<Vec<Tensor>> = Vec::with_capacity(self.steps.len());
        for (k, step) in self.steps.iter().enumerate() {
            let args: SmallVec<[&Tensor; 4]> =
                step.args.iter().map(|&a| self.value(a, inputs, &values)).collect();
            let result = crate::tape::with_caller(step.location, || match (&step.op, known(k)) {
                (Op::Block(b), _) => bind_block(b.clone(), &args),
                (op, Some(value)) => Ok(vec![bind_known(op, &args, value)]),
                (op, None) => bind(op.clone(), &args).map(|t| vec![t]),
            })?;
            drop(args);
            values.push(result);
            for a in &step.args {
                if let Ref::Step(j, _) = *a
                    && last[j] == k
                {
                    values[j].clear();
                }
            }
        }
        Ok(self.outputs.iter().map(|&a| self.value(a, inputs, &values).clone()).collect())
    }

    fn value<'a>(&'a self, at: Ref, inputs: &'a [Tensor], values: &'a [Vec<Tensor>]) -> &'a Tensor {
        match at {
            Ref::Input(k) => &inputs[k],
            Ref::Const(k) => &self.consts[k],
            Ref::Step(k, slot) => &values[k][slot],
        }
    }

    /// Turns captured tensors into trailing inputs, so that no dependence hides inside the graph.
    pub(crate) fn lift(mut self) -> (Graph, Vec<Tensor>) {
        let base = self.inputs.len();
        let lifted = |a: &mut Ref| {
            if let Ref::Const(k) = *a {
                *a = Ref::Input(base + k);
            }
        };
        self.steps.iter_mut().flat_map(|s| s.args.iter_mut()).for_each(lifted);
        self.outputs.iter_mut().for_each(lifted);
        let captured = std::mem::take(&mut self.consts);
        self.inputs.extend(captured.iter().map(|t| Aval { dtype: t.dtype(), shape: t.node().shape.clone() }));
        (self, captured)
    }

    /// Without the operations that no output needs.
    pub(crate) fn pruned(self) -> Graph {
        let mut live = vec![false; self.steps.len()];
        let mark = |a: &Ref, live: &mut Vec<bool>| {
            if let Ref::Step(k, _) = *a {
                live[k] = true;
            }
        };
        self.outputs.iter().for_each(|a| mark(a, &mut live));
        for k in (0..self.steps.len()).rev() {
            if live[k] {
                self.steps[k].args.iter().for_each(|a| mark(a, &mut live));
            }
        }
        let mut place = vec![0; live.len()];
        let moved = |a: &Ref, place: &[usize]| match *a {
            Ref::Step(k, slot) => Ref::Step(place[k], slot),
            other => other,
        };
        let mut steps = Vec::new();
        for (k, mut step) in self.steps.into_iter().enumerate().filter(|(k, _)| live[*k]) {
            step.args.iter_mut().for_each(|a| *a = moved(a, &place));
            place[k] = steps.len();
            steps.push(step);
        }
        let outputs = self.outputs.iter().map(|a| moved(a, &place)).collect();
        let kept = |a: &Ref| !matches!(a, Ref::Step(k, _) if !live[*k]);
        let names = self.names.iter().filter(|(_, a)| kept(a)).map(|(n, a)| (*n, moved(a, &place))).collect();
        Graph { steps, outputs, names, inputs: self.inputs, consts: self.consts }
    }
}
