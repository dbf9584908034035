//! Graphs as plans: which kernels run in which order over which memory, decided once; run many times.

pub(crate) mod fused;
mod lower;
mod order;
mod run;
mod storage;

#[cfg(test)]
mod tests;

use crate::error::{Result, err};
use crate::graph::Graph;
use crate::tensor::{Data, Memory, Tensor, Value};
use lower::Program;
use order::Liveness;
use run::{Frame, data, is_packed, tensor};
use smallvec::SmallVec;
use std::borrow::Borrow;
use std::sync::Mutex;
use storage::Storage;

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
        let mut program = Program::new(graph, donated)?;
        let order = order::choose(&program);
        program.reorder(&order);
        let order: Vec<usize> = (0..order.len()).collect();
        let storage = Storage::new(&program, &Liveness::new(&program, &order));
        Ok(Plan { program, storage, frames: Mutex::new(Vec::new()) })
    }

    /// Runs the graph.
    pub fn run<T: Borrow<Tensor>>(&self, inputs: &[T]) -> Result<Vec<Tensor>> {
        self.check(inputs)?;
        let mut frame = self.lease();
        for (r, &k) in self.program.donated.iter().enumerate() {
            frame.values[r] = row_major(inputs[k].borrow());
        }
        let values: SmallVec<[Value; 8]> = inputs.iter().map(|t| t.borrow().value()).collect();
        let outputs = self.finish(&mut frame, &values)?;
        self.give_back(frame);
        Ok(outputs)
    }

    /// Runs the graph on inputs that are handed over: the donated ones are overwritten, unless someone else holds them.
    pub fn run_owned(&self, mut inputs: Vec<Tensor>) -> Result<Vec<Tensor>> {
        self.check(&inputs)?;
        let mut frame = self.lease();
        for (r, &k) in self.program.donated.iter().enumerate() {
            frame.values[r] = match is_packed(&inputs[k].value()) {
                true => taken(&mut inputs[k]),
                false => row_major(&inputs[k]),
            };
        }
        let values: SmallVec<[Value; 8]> = inputs.iter().map(Tensor::value).collect();
        let outputs = self.finish(&mut frame, &values)?;
        self.give_back(frame);
        Ok(outputs)
    }

    fn finish(&self, frame: &mut Frame, values: &[Value]) -> Result<Vec<Tensor>> {
        let mut given: [Option<Memory>; 0] = [];
        self.execute(frame, values, &mut given, None, |y| y.iter().map(|y| tensor(*y)).collect())
    }

    /// An error unless the inputs are concrete and of the types that the plan was made for.
    fn check<T: Borrow<Tensor>>(&self, inputs: &[T]) -> Result<()> {
        let expected = &self.program.inputs;
        if inputs.len() != expected.len() {
            return Err(err!(Structure, "{} inputs were given to a plan of {}", inputs.len(), expected.len()));
        }
        for (k, (x, expected)) in inputs.iter().map(T::borrow).zip(expected).enumerate() {
            if x.dtype() != expected.dtype || x.node().shape != expected.shape {
                return Err(err!(
                    Shape,
                    "input {k} is planned as {} {:?}, but is {} {:?}",
                    expected.dtype,
                    expected.shape,
                    x.dtype(),
                    x.shape()
                ));
            }
            if x.data().frame() != 0 {
                return Err(err!(Value, "input {k} of a plan is not concrete"));
            }
        }
        Ok(())
    }
}

/// The value of a tensor: shared, or a copy if it is not row-major.
fn row_major(t: &Tensor) -> Data {
    if is_packed(&t.value()) { data(&t.value()) } else { run::pack(&t.value()) }
}

/// The value of a tensor that is handed over: with its memory, if this is the only handle.
fn taken(t: &mut Tensor) -> Data {
    match t.data_mut() {
        Some(own) => std::mem::replace(own, Data::Gone),
        None => t.data().clone(),
    }
}
