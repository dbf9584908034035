//! Loops and choices inside a plan: their bodies have plans of their own.

use super::Plan;
use super::run::{data, is_packed, pack};
use super::work::Work;
use crate::dtype::with_bits;
use crate::error::Result;
use crate::graph::{Cond, Scan};
use crate::kernels::movement;
use crate::ops::Aval;
use crate::tensor::buffer::Buffer;
use crate::tensor::{Data, Memory, Output, Strided, Value};
use smallvec::SmallVec;
use std::ops::Range;

/// The results of a kernel, each with the memory it was offered if it did not use it.
pub(super) type Results = SmallVec<[(Data, Option<Memory>); 4]>;

/// One of two plans. Its operands: the condition, `inputs` common ones, those of each branch alone.
pub(super) struct CondPlan {
    pub then: Plan,
    pub otherwise: Plan,
    inputs: usize,
}

impl CondPlan {
    pub fn new(cond: &Cond) -> CondPlan {
        let (then, otherwise) = (Plan::of(&cond.then, &[], 0), Plan::of(&cond.otherwise, &[], 0));
        CondPlan { then, otherwise, inputs: cond.inputs }
    }

    pub fn run(&self, x: &[Value], mut given: SmallVec<[Option<Memory>; 4]>) -> Result<Results> {
        let (condition, x) = x.split_first().expect("the condition is an operand");
        let (common, captured) = x.split_at(self.inputs);
        let (first, second) = captured.split_at(self.then.program.inputs.len() - self.inputs);
        let view = condition.view::<u8>();
        let (plan, own) =
            if view.data[view.offset] != 0 { (&self.then, first) } else { (&self.otherwise, second) };
        let inputs: SmallVec<[Value; 8]> = common.iter().chain(own).copied().collect();
        let mut frame = plan.lease();
        let outputs = plan.execute(&mut frame, &inputs, &mut given, None)?;
        plan.give_back(frame);
        let types = plan.program.outputs.iter().map(|o| &o.aval);
        Ok(outputs.into_iter().zip(types).zip(given).map(|((y, t), memory)| settle(y, t, memory)).collect())
    }
}

/// Steps of a loop. Its operands: the state, the stacked items of all steps, what all steps share. Its results: the last state and, if it
/// stacks them, the outputs of the steps.
pub(super) struct ScanPlan {
    pub body: Plan,
    state: usize,
    items: usize,
    pub steps: Range<usize>,
    stacks: bool,
    /// Rows of the stacked outputs are written in place. A block that nothing is known of might keep one.
    in_place: bool,
}

impl ScanPlan {
    pub fn new(scan: &Scan) -> ScanPlan {
        let Scan { body, state, items, steps, stacks } = scan.clone();
        let body = Plan::of(&body, &(0..state).collect::<Vec<_>>(), state);
        let in_place = !body.program.kernels.iter().any(|k| matches!(k.work, Work::Block(_)));
        ScanPlan { body, state, items, steps, stacks, in_place }
    }

    /// Bytes needed while it runs: a step, and the state before it.
    pub fn scratch(&self) -> usize {
        let inputs = &self.body.program.inputs[..self.state];
        let state = inputs.iter().map(|a| Buffer::rounded(a.shape.numel() * a.dtype.size()));
        self.body.storage.peak + state.sum::<usize>()
    }

    pub fn run(&self, x: &[Value], mut given: SmallVec<[Option<Memory>; 4]>) -> Result<Results> {
        let program = &self.body.program;
        let mut inputs: SmallVec<[Value; 8]> = x.into();
        let stacked = self.state..self.state + self.items;
        let mut state: SmallVec<[Data; 4]> = x[..self.state].iter().map(packed).collect();
        let ys = &program.outputs[self.state..];
        let mut rows: Vec<Rows> = match self.stacks {
            true => {
                ys.iter().zip(&mut given[self.state..]).map(|(y, m)| self.rows(&y.aval, m.take())).collect()
            }
            false => Vec::new(),
        };
        let mut lent: SmallVec<[Option<Memory>; 4]> = (0..program.outputs.len()).map(|_| None).collect();
        let mut frame = self.body.lease();
        for (n, step) in self.steps.clone().enumerate() {
            for (input, all) in inputs[stacked.clone()].iter_mut().zip(&x[stacked.clone()]) {
                *input = row(all, step);
            }
            for (register, value) in frame.values.iter_mut().zip(state.drain(..)) {
                *register = value;
            }
            if self.in_place {
                let rows = rows.iter_mut().zip(&mut lent[self.state..]);
                rows.for_each(|(rows, lent)| *lent = rows.lend(n));
            }
            let outputs = self.body.execute(&mut frame, &inputs, &mut lent, None)?;
            let mut outputs = outputs.into_iter();
            for (aval, next) in program.inputs.iter().zip(outputs.by_ref().take(self.state)) {
                state.push(match is_packed(&value(aval, &next)) {
                    true => next,
                    false => pack(&value(aval, &next)),
                });
            }
            for (rows, (y, lent)) in rows.iter_mut().zip(outputs.zip(&mut lent[self.state..])) {
                rows.keep(n, y, lent.take());
            }
        }
        self.body.give_back(frame);
        let state = state.into_iter().zip(&program.inputs).zip(given);
        let last = state.map(|((data, aval), memory)| settle(data, aval, memory));
        Ok(last.chain(rows.into_iter().map(|r| (r.whole(), None))).collect())
    }

    fn rows(&self, row: &Aval, memory: Option<Memory>) -> Rows {
        let aval = Aval { dtype: row.dtype, shape: row.shape.inserted(0, self.steps.len()) };
        let mut data = Data::Gone;
        with_bits!(row.dtype, T => {
            Output::within(&aval.shape, memory, &mut data).fill::<T>();
        });
        let Data::Strided(s) = data else { unreachable!("it was filled") };
        let memory = Memory { buffer: s.buffer, offset: s.offset };
        Rows { row: row.clone(), all: aval, offset: memory.offset, memory: Some(memory) }
    }
}

/// A stacked output that is being written.
struct Rows {
    row: Aval,
    all: Aval,
    /// Where the first row begins.
    offset: usize,
    /// None while it is lent to a step.
    memory: Option<Memory>,
}

impl Rows {
    /// The memory, to write row `n`.
    fn lend(&mut self, n: usize) -> Option<Memory> {
        let offset = self.offset + n * self.row.shape.numel();
        self.memory.take().map(|m| Memory { buffer: m.buffer, offset })
    }

    /// Takes row `n`: already in its place, or to be copied there.
    fn keep(&mut self, n: usize, y: Data, returned: Option<Memory>) {
        let unused = self.memory.take().or(returned);
        let Some(mut memory) = unused else {
            let Data::Strided(s) = y else {
                unreachable!("memory that was lent comes back, or holds the row")
            };
            self.memory = Some(Memory { buffer: s.buffer, offset: self.offset });
            return;
        };
        let offset = self.offset + n * self.row.shape.numel();
        with_bits!(self.row.dtype, T => {
            let elements = memory.buffer.slice_mut::<T>().expect("it was lent to nobody else");
            movement::copy_into::<T>(value(&self.row, &y).view(), elements, offset, &self.row.shape.strides());
        });
        memory.offset = self.offset;
        self.memory = Some(memory);
    }

    fn whole(self) -> Data {
        let buffer = self.memory.expect("every step has given it back").buffer;
        Data::Strided(Strided { buffer, offset: self.offset, strides: self.all.shape.strides() })
    }
}

fn value<'a>(aval: &'a Aval, data: &'a Data) -> Value<'a> {
    Value { dtype: aval.dtype, shape: &aval.shape, data, window: None }
}

/// One row of a stacked value.
fn row<'a>(all: &Value<'a>, n: usize) -> Value<'a> {
    let window = all
        .layout()
        .map(|(offset, strides)| ((offset as isize + n as isize * strides[0]) as usize, &strides[1..]));
    Value { shape: &all.shape[1..], window, ..*all }
}

/// The value, shared, or a copy if it is not row-major.
pub(super) fn packed(x: &Value) -> Data {
    if is_packed(x) { data(x) } else { pack(x) }
}

/// A result in row-major order, in the memory that is there for it unless it needs none.
fn settle(y: Data, aval: &Aval, memory: Option<Memory>) -> (Data, Option<Memory>) {
    let y_value = value(aval, &y);
    if y_value.layout().is_none() || (memory.is_none() && is_packed(&y_value)) {
        return (y, memory);
    }
    let mut data = Data::Gone;
    let mut out = Output::within(&aval.shape, memory, &mut data);
    with_bits!(aval.dtype, T => movement::copy::<T>(y_value.view(), out.fill()));
    (data, None)
}
