//! Traced programs: a typed straight line of operations, in which every value is computed once.

mod body;
mod build;
mod call;
pub(crate) mod constant;
pub(crate) mod control;
pub(crate) mod effort;
mod export;
mod file;
mod inspect;
pub(crate) mod liveness;
pub(crate) mod lower;
pub(crate) mod operands;
mod parse;
mod print;
pub(crate) mod statistics;
mod trace;
mod verify;

#[cfg(test)]
pub(crate) mod fault;
#[cfg(test)]
mod tests;

pub(crate) use body::{Body, Fused, Scan};
pub(crate) use build::Builder;
pub(crate) use call::{Call, call};
pub(crate) use control::Cond;
pub(crate) use export::Json;
pub use inspect::{Place, StepView};
pub use statistics::Statistics;
pub(crate) use trace::{give_name, trace_leaves};

use crate::DType;
use crate::error::{Result, Within, err};
use crate::ops::{Aval, Op};
use crate::tensor::{Data, Tensor, bind, bind_block, bind_known};
use smallvec::SmallVec;
use std::borrow::Borrow;
use std::panic::Location;
use std::sync::Arc;

/// A program over tensors: inputs, captured constants, operations in order, outputs.
#[derive(Clone)]
pub struct Graph {
    pub(crate) inputs: Vec<Aval>,
    pub(crate) consts: Vec<Tensor>,
    pub(crate) steps: Vec<Step>,
    pub(crate) outputs: Vec<Ref>,
    /// Values that were given a name.
    pub(crate) names: Vec<(Arc<str>, Ref)>,
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

/// An error unless there is one input for each of the types expected, and of that type.
pub(crate) fn accepts<T: Borrow<Tensor>>(expected: &[Aval], inputs: &[T]) -> Result<()> {
    if inputs.len() != expected.len() {
        return Err(err!(Structure, "the graph takes {} inputs, got {}", expected.len(), inputs.len()));
    }
    for (k, (x, expected)) in inputs.iter().map(T::borrow).zip(expected).enumerate() {
        if x.dtype() != expected.dtype || x.node().shape != expected.shape {
            let (dtype, shape) = (x.dtype(), x.shape());
            return Err(err!(
                Shape,
                "input {k} is {expected} in the graph, but was given as {dtype}{shape:?}"
            ));
        }
    }
    Ok(())
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

    pub(crate) fn dtype(&self, at: Ref) -> DType {
        match at {
            Ref::Input(k) => self.inputs[k].dtype,
            Ref::Const(k) => self.consts[k].dtype(),
            Ref::Step(k, slot) => self.steps[k].avals[slot].dtype,
        }
    }

    /// The program applied to inputs, one for each of the graph's, as operations that are visible to active transforms.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let g: pullback::Graph = "graph(x0: f64[]) {\n %0 = exp(x0) : f64[]\n return %0\n}".parse()?;
    /// assert_eq!(g.run(&[Tensor::scalar(0.0)])?[0].item(), 1.0);
    /// assert!(g.run(&[Tensor::zeros([2])]).is_err());
    /// # Ok::<(), pullback::Error>(())
    /// ```
    #[track_caller]
    pub fn run(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        self.accepts(inputs).and_then(|()| self.eval(inputs)).within("run")
    }

    /// An error unless there is one input of the right type for each of the graph's.
    pub(crate) fn accepts(&self, inputs: &[Tensor]) -> Result<()> {
        accepts(&self.inputs, inputs)
    }

    /// The types of the outputs.
    pub(crate) fn types(&self) -> Vec<Aval> {
        self.outputs.iter().map(|&a| self.aval(a)).collect()
    }

    /// Runs the program through `bind`, visible to active transforms. A value is dropped after its last use.
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
            let result = crate::location::with_caller(step.location, || match (&step.op, known(k)) {
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
    pub(crate) fn lift(self) -> (Graph, Vec<Tensor>) {
        self.lift_some(|_| true)
    }

    /// [`lift`](Graph::lift) of the captured tensors that are part of an active transform.
    pub(crate) fn lift_watched(self) -> (Graph, Vec<Tensor>) {
        self.lift_some(|t| !t.node().deps.is_empty() || t.data().interpreter() != 0)
    }

    fn lift_some(mut self, lifts: impl Fn(&Tensor) -> bool) -> (Graph, Vec<Tensor>) {
        let base = self.inputs.len();
        let (mut captured, mut kept) = (Vec::new(), Vec::new());
        let mut place = |t: Tensor| match lifts(&t) {
            true => {
                captured.push(t);
                Ref::Input(base + captured.len() - 1)
            }
            false => {
                kept.push(t);
                Ref::Const(kept.len() - 1)
            }
        };
        let places: Vec<Ref> = std::mem::take(&mut self.consts).into_iter().map(&mut place).collect();
        let moved = |a: &mut Ref| {
            if let Ref::Const(k) = *a {
                *a = places[k];
            }
        };
        self.steps.iter_mut().flat_map(|s| s.args.iter_mut()).for_each(moved);
        self.outputs.iter_mut().for_each(moved);
        self.consts = kept;
        self.inputs.extend(captured.iter().map(|t| Aval { dtype: t.dtype(), shape: t.node().shape.clone() }));
        (self, captured)
    }

    /// [`lift`](Graph::lift) of what was captured, but for small plain values, which the optimiser can work with.
    pub(crate) fn lift_large(self) -> (Graph, Vec<Tensor>) {
        const SMALL: usize = 16;
        let plain = |t: &Tensor| {
            t.node().deps.is_empty()
                && match t.data() {
                    Data::Splat(_) => true,
                    Data::Strided(_) => t.numel() <= SMALL,
                    _ => false,
                }
        };
        self.lift_some(|t| !plain(t))
    }

    /// With these tensors as constants in the place of the last inputs: the inverse of [`lift`](Graph::lift).
    pub(crate) fn bound(mut self, values: Vec<Tensor>) -> Graph {
        let (kept, first) = (self.inputs.len() - values.len(), self.consts.len());
        self.inputs.truncate(kept);
        self.consts.extend(values);
        let bound = |a: &mut Ref| match *a {
            Ref::Input(k) if k >= kept => *a = Ref::Const(first + k - kept),
            _ => {}
        };
        self.steps.iter_mut().flat_map(|s| s.args.iter_mut()).for_each(bound);
        self.outputs.iter_mut().for_each(bound);
        self.names.iter_mut().for_each(|(_, a)| bound(a));
        self
    }

    /// Without the operations that no output needs, and the constants that nothing reads any more. The body of a block may have been traced
    /// twice: what its first run has captured must not live on as an input.
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
        // In the order in which they are read, so that the text does not depend on how the graph came about.
        let mut consts = Vec::new();
        let mut place_of_const = vec![None; self.consts.len()];
        let mut moved = |a: &Ref, place: &[usize]| match *a {
            Ref::Step(k, slot) => Ref::Step(place[k], slot),
            Ref::Const(k) => Ref::Const(*place_of_const[k].get_or_insert_with(|| {
                consts.push(self.consts[k].clone());
                consts.len() - 1
            })),
            input => input,
        };
        let mut steps = Vec::with_capacity(live.iter().filter(|live| **live).count());
        for (k, mut step) in self.steps.into_iter().enumerate().filter(|(k, _)| live[*k]) {
            step.args.iter_mut().for_each(|a| *a = moved(a, &place));
            place[k] = steps.len();
            steps.push(step);
        }
        let outputs = self.outputs.iter().map(|a| moved(a, &place)).collect();
        // A name does not keep a value.
        let kept = |a: &Ref| match *a {
            Ref::Step(k, _) => live[k],
            Ref::Const(_) => false,
            Ref::Input(_) => true,
        };
        let names =
            self.names.iter().filter(|(_, a)| kept(a)).map(|(n, a)| (n.clone(), moved(a, &place))).collect();
        Graph { steps, outputs, names, inputs: self.inputs, consts }
    }
}
