//! Running a plan: kernels in order, over memory that is leased for the run.

use super::Plan;
use super::storage::Placement;
use super::work::{Kernel, Work};
use crate::dtype::with_bits;
use crate::error::{Error, Result};
use crate::graph::lower::{Operand, Root, Window};
use crate::kernels::movement;
use crate::ops::is_row_major;
use crate::shape::Shape;
use crate::tape::forgetting;
use crate::tensor::buffer::Buffer;
use crate::tensor::{Block, Data, Memory, Output, Strided, Tensor, Value, no_captures};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::time::{Duration, Instant};

/// The memory of one run.
pub(super) struct Frame {
    /// Of each register, its value while it lives.
    pub values: Vec<Data>,
    /// Slots that no value is in.
    slots: Vec<Option<Buffer>>,
}

#[cfg(test)]
impl Frame {
    /// The memory of its slots.
    pub fn bytes(&self) -> usize {
        self.slots.iter().flatten().map(|b| b.slice::<u8>().len()).sum()
    }
}

/// Everything that operands refer to.
#[derive(Clone, Copy)]
struct Sources<'a> {
    inputs: &'a [Value<'a>],
    consts: &'a [Tensor],
    windows: &'a [Window],
}

impl<'a> Sources<'a> {
    #[inline]
    fn value(self, operand: &'a Operand, values: &'a [Data]) -> Value<'a> {
        let whole = match operand.root {
            Root::Register(r) => Value {
                dtype: operand.aval.dtype,
                shape: &operand.aval.shape,
                data: &values[r],
                window: None,
            },
            Root::Input(k) => Value { shape: &operand.aval.shape, ..self.inputs[k] },
            Root::Const(k) => Value { shape: &operand.aval.shape, ..self.consts[k].value() },
        };
        match (operand.window, whole.layout()) {
            (Some(w), Some((origin, _))) => {
                let window = &self.windows[w];
                let offset = (origin as isize + window.offset) as usize;
                Value { window: Some((offset, &window.strides)), ..whole }
            }
            _ => whole,
        }
    }
}

impl Plan {
    /// Memory for a run: that of an earlier one, if it has ended.
    pub(super) fn lease(&self) -> Frame {
        let kept = self.frames.lock().unwrap_or_else(|e| e.into_inner()).pop();
        kept.unwrap_or_else(|| Frame {
            values: std::iter::repeat_with(|| Data::Gone).take(self.program.registers.len()).collect(),
            slots: self.storage.slots.iter().map(|&b| Some(Buffer::new(b).in_large_pages())).collect(),
        })
    }

    /// Gives the memory of a run back, for the next one.
    pub(super) fn give_back(&self, mut frame: Frame) {
        self.storage.rest.iter().for_each(|&r| frame.values[r] = Data::Gone);
        let mut frames = self.frames.lock().unwrap_or_else(|e| e.into_inner());
        if frames.len() < MAX_FRAMES {
            frames.push(frame);
        }
    }

    /// Runs all kernels, with the donated inputs in the first registers of the frame. Outputs go to the memory that is given, where
    /// there is some and they can. A clock is told how long each kernel took.
    pub(super) fn execute(
        &self,
        frame: &mut Frame,
        inputs: &[Value],
        given: &mut [Option<Memory>],
        mut clock: Option<&mut [Duration]>,
    ) -> Result<SmallVec<[Data; 4]>> {
        let mut packed = Vec::new();
        let windows = self.windows(inputs, &mut packed);
        let replaced: Vec<Value>;
        let inputs = match packed.is_empty() {
            true => inputs,
            false => {
                let mut all = inputs.to_vec();
                packed.iter().for_each(|(k, data)| all[*k] = Value { data, window: None, ..all[*k] });
                replaced = all;
                &replaced
            }
        };
        let from = Sources { inputs, consts: &self.program.consts, windows: &windows };
        for (at, kernel) in self.program.kernels.iter().enumerate() {
            let start = clock.is_some().then(Instant::now);
            self.kernel(at, kernel, frame, from, given)
                .map_err(|e: Error| e.in_op(kernel.work.name()).at(kernel.location))?;
            if let (Some(clock), Some(start)) = (&mut clock, start) {
                clock[at] += start.elapsed();
            }
            for &r in &self.storage.frees[at] {
                self.free(r, frame);
            }
        }
        let outputs = &self.program.outputs;
        let seen = |(k, o): (usize, &Operand)| match self.made(k) {
            Some(_) => Data::Gone,
            None => data(&from.value(o, &frame.values)),
        };
        let mut out: SmallVec<[Data; 4]> = outputs.iter().enumerate().map(seen).collect();
        for (k, out) in out.iter_mut().enumerate() {
            if let Some(r) = self.made(k) {
                *out = std::mem::replace(&mut frame.values[r], Data::Gone);
            }
        }
        Ok(out)
    }

    /// The register that an output is as it is, with its memory.
    fn made(&self, output: usize) -> Option<usize> {
        match self.program.outputs[output].root {
            Root::Register(r) if self.storage.places[r] == Placement::Output(Some(output)) => Some(r),
            _ => None,
        }
    }

    #[inline]
    fn kernel(
        &self,
        at: usize,
        kernel: &Kernel,
        frame: &mut Frame,
        from: Sources,
        given: &mut [Option<Memory>],
    ) -> Result<()> {
        match &kernel.work {
            Work::Op(op) => {
                let r = kernel.results.start;
                let shape = &self.program.registers[r].shape;
                let mut data = Data::Gone;
                let mut out = self.output(at, r, shape, &mut data, frame, given);
                let value = |o| from.value(o, &frame.values);
                // In an array for the usual numbers: collecting costs as much as a small kernel.
                match &kernel.operands[..] {
                    [x] => op.eval(&[value(x)], &mut out),
                    [a, b] => op.eval(&[value(a), value(b)], &mut out),
                    more => op.eval(&more.iter().map(value).collect::<SmallVec<[Value; 4]>>(), &mut out),
                }?;
                let unused = out.finish();
                // Of an input that is not row-major a reshape may be a view where it was planned as a copy; registers are row-major.
                let made = Value { dtype: self.program.registers[r].dtype, shape, data: &data, window: None };
                if op.is_view() && !is_packed(&made) {
                    data = pack(&made);
                }
                self.put(r, data, unused, frame, given);
            }
            Work::Fused(_) | Work::Joined(_) => {
                let shapes = &self.program.registers[kernel.results.clone()];
                let mut made: SmallVec<[Data; 4]> = kernel.results.clone().map(|_| Data::Gone).collect();
                let mut outs: SmallVec<[Output; 4]> = kernel
                    .results
                    .clone()
                    .zip(shapes)
                    .zip(&mut made)
                    .map(|((r, a), data)| self.output(at, r, &a.shape, data, frame, given))
                    .collect();
                let x: SmallVec<[Value; 8]> =
                    kernel.operands.iter().map(|o| from.value(o, &frame.values)).collect();
                match &kernel.work {
                    Work::Joined(j) => j.group.program.run_after(&j.op, &j.lead, &x, &mut outs),
                    Work::Fused(group) => group.program.run(&x, &mut outs),
                    _ => unreachable!("these are the kernels that run programs"),
                }
                drop(x);
                let unused: SmallVec<[Option<Memory>; 4]> = outs.into_iter().map(Output::finish).collect();
                for ((r, data), unused) in kernel.results.clone().zip(made).zip(unused) {
                    self.put(r, data, unused, frame, given);
                }
            }
            Work::Scan(_) | Work::Cond(_) => {
                let memory = kernel.results.clone().map(|r| self.memory(r, frame, given)).collect();
                let x: SmallVec<[Value; 8]> =
                    kernel.operands.iter().map(|o| from.value(o, &frame.values)).collect();
                let results = match &kernel.work {
                    Work::Scan(scan) => scan.run(&x, memory)?,
                    Work::Cond(cond) => cond.run(&x, memory)?,
                    _ => unreachable!("these are the kernels with plans of their own"),
                };
                drop(x);
                for (r, (data, unused)) in kernel.results.clone().zip(results) {
                    self.put(r, data, unused, frame, given);
                }
            }
            Work::Block(block) => {
                let x: Vec<Tensor> =
                    kernel.operands.iter().map(|o| tensor(from.value(o, &frame.values))).collect();
                for (r, data) in kernel.results.clone().zip(call(&**block, &x)?) {
                    frame.values[r] = data;
                }
            }
        }
        Ok(())
    }

    /// Where a kernel is to put one of its results.
    #[inline]
    fn output<'a>(
        &self,
        at: usize,
        r: usize,
        shape: &'a Shape,
        data: &'a mut Data,
        frame: &mut Frame,
        given: &mut [Option<Memory>],
    ) -> Output<'a> {
        match self.overwritten(at, r, frame) {
            Some((k, memory)) => Output::over(shape, memory, k, data),
            None => Output::within(shape, self.memory(r, frame, given), data),
        }
    }

    /// The memory of the operand that a result takes the place of, if it is there and nobody else holds it.
    fn overwritten(&self, at: usize, r: usize, frame: &mut Frame) -> Option<(usize, Memory)> {
        let k = self.storage.over[at].iter().find(|(_, result)| *result == r)?.0;
        let Root::Register(r) = self.program.kernels[at].operands[k].root else { return None };
        match std::mem::replace(&mut frame.values[r], Data::Gone) {
            Data::Strided(s) if s.buffer.is_unique() => {
                Some((k, Memory { buffer: s.buffer, offset: s.offset }))
            }
            other => {
                frame.values[r] = other;
                None
            }
        }
    }

    /// Memory for a register.
    fn memory(&self, r: usize, frame: &mut Frame, given: &mut [Option<Memory>]) -> Option<Memory> {
        match self.storage.places[r] {
            Placement::Slot(s) => frame.slots[s].take().map(|buffer| Memory { buffer, offset: 0 }),
            Placement::Output(Some(k)) if given.get(k).is_some_and(Option::is_some) => given[k].take(),
            Placement::Output(_) => {
                match std::mem::replace(&mut frame.values[self.storage.after[r]?], Data::Gone) {
                    Data::Strided(s) => Some(Memory { buffer: s.buffer, offset: s.offset }),
                    _ => None,
                }
            }
            Placement::Foreign => None,
        }
    }

    /// Keeps the result of a kernel, and memory that it has not used.
    fn put(
        &self,
        r: usize,
        data: Data,
        unused: Option<Memory>,
        frame: &mut Frame,
        given: &mut [Option<Memory>],
    ) {
        frame.values[r] = data;
        if let Some(memory) = unused {
            match self.storage.places[r] {
                Placement::Slot(s) => frame.slots[s] = Some(memory.buffer),
                Placement::Output(Some(k)) if k < given.len() => given[k] = Some(memory),
                _ => {}
            }
        }
    }

    /// Ends the life of a register.
    fn free(&self, r: usize, frame: &mut Frame) {
        let data = std::mem::replace(&mut frame.values[r], Data::Gone);
        // Where the slot still has its memory, the value is a view of something else.
        if let (Placement::Slot(s), Data::Strided(mut own)) = (self.storage.places[r], data)
            && frame.slots[s].is_none()
        {
            own.buffer.poison();
            frame.slots[s] = Some(own.buffer);
        }
    }

    /// The windows for these inputs. They were made for row-major ones: others get their own or, where a view is impossible, are
    /// copied.
    fn windows(&self, inputs: &[Value], packed: &mut Vec<(usize, Data)>) -> Cow<'_, [Window]> {
        let program = &self.program;
        let mut windows = Cow::Borrowed(&program.windows[..]);
        for view in program.input_views.iter().filter(|l| !is_packed(&inputs[l.input])) {
            let input = &inputs[view.input];
            let Some((origin, own)) = input.layout() else { continue };
            let (offset, strides) = match view.from {
                None => (origin as isize, own),
                Some(w) => (origin as isize + windows[w].offset, &*windows[w].strides),
            };
            match view.op.view(&view.shape, offset as usize, strides) {
                _ if packed.iter().any(|(k, _)| *k == view.input) => {}
                Some(seen) => {
                    let offset = seen.offset as isize - origin as isize;
                    windows.to_mut()[view.to] = Window { offset, strides: seen.strides };
                }
                None => {
                    packed.push((view.input, pack(input)));
                    let again = program.input_views.iter().filter(|l| l.input == view.input);
                    again.for_each(|l| windows.to_mut()[l.to] = program.windows[l.to].clone());
                }
            }
        }
        windows
    }
}

/// How many frames a plan keeps: for so many threads that run it at once, again and again.
const MAX_FRAMES: usize = 8;

/// Whether the elements lie in row-major order without gaps, or are one repeated.
pub(super) fn is_packed(x: &Value) -> bool {
    x.layout().is_none_or(|(_, strides)| is_row_major(x.shape, strides))
}

/// A row-major copy.
pub(super) fn pack(x: &Value) -> Data {
    let shape = x.shape.into();
    let mut data = Data::Gone;
    with_bits!(x.dtype, T => movement::copy::<T>(x.view(), Output::new(&shape, &mut data).fill()));
    data
}

/// The value as data of its own; the buffer is shared.
pub(super) fn data(x: &Value) -> Data {
    match (x.data, x.layout()) {
        (Data::Strided(s), Some((offset, strides))) => {
            let strides = strides.iter().copied().collect();
            Data::Strided(Strided { buffer: s.buffer.clone(), offset, strides })
        }
        (other, _) => other.clone(),
    }
}

fn tensor(x: Value) -> Tensor {
    Tensor::new(x.dtype, x.shape.into(), data(&x))
}

/// What a block does, on concrete values; its results are row-major.
fn call(block: &dyn Block, x: &[Tensor]) -> Result<Vec<Data>> {
    let outputs = forgetting(0, || block.expand(x)).0?;
    no_captures(&outputs, 0).map_err(|e| e.in_op(block.name()))?;
    let packed = |t: &Tensor| if is_packed(&t.value()) { t.data().clone() } else { pack(&t.value()) };
    Ok(outputs.iter().map(packed).collect())
}
