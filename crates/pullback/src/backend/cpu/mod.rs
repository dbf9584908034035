//! Graphs as plans: which kernels run in which order over which memory, decided once; run many times.

mod control;
mod epilogue;
#[cfg(test)]
pub(crate) mod fault;
pub(crate) mod fused;
mod order;
mod profile;
mod run;
mod storage;
mod work;

#[cfg(test)]
mod random;
#[cfg(test)]
mod tests;

use super::{Backend, Executor, Profile};
use crate::error::{Result, caught, err};
use crate::graph::liveness::Liveness;
use crate::graph::operands::Operands;
use crate::graph::{Graph, Statistics, accepts};
use crate::opt::Fusion;
use crate::tensor::{Data, Tensor, Value};
use control::packed;
use run::{Frame, is_packed};
use smallvec::SmallVec;
use std::borrow::Borrow;
use std::sync::Mutex;
use storage::Storage;
use work::Program;

/// The host processor.
pub(crate) struct Cpu;

impl Fusion for Cpu {
    fn can_join(&self, graph: &Graph, step: usize) -> bool {
        fused::space::is_member(graph, step)
    }

    fn is_group(&self, graph: &Graph, operands: &Operands, members: &[usize]) -> bool {
        fused::space::of(graph, operands, members).is_some()
    }
}

impl Backend for Cpu {
    fn compile(&self, graph: &Graph, donated: &[usize]) -> Result<Box<dyn Executor>> {
        Ok(Box::new(Plan::new(graph, donated)?))
    }
}

impl Executor for Plan {
    fn run(&self, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
        Plan::run(self, inputs)
    }

    fn run_owned(&self, inputs: Vec<Tensor>) -> Result<Vec<Tensor>> {
        Plan::run_owned(self, inputs)
    }

    fn statistics(&self) -> Statistics {
        Plan::statistics(self)
    }

    fn epilogues(&self) -> usize {
        Plan::epilogues(self)
    }

    fn profile(&self, inputs: &[Tensor]) -> Result<Profile> {
        Plan::profile(self, inputs)
    }
}

/// How to run a graph on concrete tensors. Several threads may run it at once.
pub(crate) struct Plan {
    program: Program,
    storage: Storage,
    /// Memory of runs that have ended.
    frames: Mutex<Vec<Frame>>,
}

impl Plan {
    /// Plans a graph. The memory of `donated` inputs may be used for other values, where nobody else holds it.
    pub fn new(graph: &Graph, donated: &[usize]) -> Result<Plan> {
        match donated.iter().find(|&&k| k >= graph.inputs.len()) {
            Some(k) => Err(err!(Structure, "there is no input {k} that could be donated")),
            None => Ok(Plan::of(graph, donated, usize::MAX)),
        }
    }

    /// Plans a graph whose outputs from `given` on have memory of their own to go to.
    fn of(graph: &Graph, donated: &[usize], given: usize) -> Plan {
        let mut program = Program::new(graph, donated);
        program.join_epilogues();
        let order = order::choose(&program);
        program.reorder(&order);
        #[cfg(test)]
        fault::in_program(&mut program);
        let order: Vec<usize> = (0..order.len()).collect();
        #[cfg_attr(not(test), expect(unused_mut, reason = "tests put faults into it"))]
        let mut storage = Storage::new(&program, &Liveness::new(&program, &order), given);
        #[cfg(test)]
        fault::in_storage(&mut storage, &program);
        Plan { program, storage, frames: Mutex::new(Vec::new()) }
    }

    /// Runs the graph.
    pub fn run<T: Borrow<Tensor>>(&self, inputs: &[T]) -> Result<Vec<Tensor>> {
        self.check(inputs)?;
        // A run that finds no memory raises its error.
        caught(|| {
            let mut frame = self.lease();
            self.lend(&mut frame, inputs);
            let values: SmallVec<[Value; 8]> = inputs.iter().map(|t| t.borrow().value()).collect();
            let outputs = self.finish(&mut frame, &values)?;
            self.give_back(frame);
            Ok(outputs)
        })?
    }

    /// Puts donated inputs into their registers, where they are read and not overwritten.
    fn lend<T: Borrow<Tensor>>(&self, frame: &mut Frame, inputs: &[T]) {
        for (r, &k) in self.program.donated.iter().enumerate() {
            frame.values[r] = packed(&inputs[k].borrow().value());
        }
    }

    /// Runs the graph on inputs that are handed over: the donated ones are overwritten, unless someone else holds them.
    pub fn run_owned(&self, mut inputs: Vec<Tensor>) -> Result<Vec<Tensor>> {
        self.check(&inputs)?;
        caught(|| {
            let mut frame = self.lease();
            for (r, &k) in self.program.donated.iter().enumerate() {
                frame.values[r] = match is_packed(&inputs[k].value()) {
                    true => taken(&mut inputs[k]),
                    false => packed(&inputs[k].value()),
                };
            }
            let values: SmallVec<[Value; 8]> = inputs.iter().map(Tensor::value).collect();
            let outputs = self.finish(&mut frame, &values)?;
            self.give_back(frame);
            Ok(outputs)
        })?
    }

    fn finish(&self, frame: &mut Frame, values: &[Value]) -> Result<Vec<Tensor>> {
        let outputs = self.execute(frame, values, &mut [], None)?.into_iter().zip(&self.program.outputs);
        Ok(outputs.map(|(data, o)| Tensor::new(o.aval.dtype, o.aval.shape.clone(), data)).collect())
    }

    /// What a run costs. The peak is that of the memory as it is planned, slots and outputs together.
    pub fn statistics(&self) -> Statistics {
        Statistics { peak_bytes: self.storage.peak, ..self.program.cost() }
    }

    /// An error unless the inputs are concrete and of the types that the plan was made for.
    fn check<T: Borrow<Tensor>>(&self, inputs: &[T]) -> Result<()> {
        accepts(&self.program.inputs, inputs)?;
        match inputs.iter().position(|x| x.borrow().data().frame() != 0) {
            Some(k) => Err(err!(Value, "input {k} of a plan is not concrete")),
            None => Ok(()),
        }
    }
}

/// The value of a tensor that is handed over: with its memory, if this is the only handle.
fn taken(t: &mut Tensor) -> Data {
    match t.value_mut() {
        Some((_, own)) => std::mem::replace(own, Data::Gone),
        None => t.data().clone(),
    }
}
