//! Fused groups: several elementwise operations and reductions that run as one, a tile at a time in cache.
//!
//! A group is compiled from the graph that says what it does: its iteration [space](space) is found, its operations are
//! [lowered](lower) to values of three extents, these become [instructions](code) over registers of a tile, and a
//! [run](run) takes all instructions for one tile after the other.

mod ahead;
mod code;
mod formulas;
mod function;
mod gather;
mod geometry;
mod lower;
mod pads;
mod run;
pub(crate) mod space;

#[cfg(test)]
mod fault;
#[cfg(test)]
mod shifts;
#[cfg(test)]
mod tests;

use crate::DType;
use crate::dtype::with_bits;
use crate::error::{Result, err};
use crate::graph::operands::{moved, operands};
use crate::graph::{Graph, Ref};
use crate::kernels::dispatch::loop2_into_left;
use crate::kernels::in_rows::{InRows, RowKernel};
use crate::kernels::math::Float;
use crate::kernels::movement::Target;
use crate::kernels::reduce;
use crate::ops::{self, Aval, Op, Reduction};
use crate::shape::Strides;
use crate::tensor::{Output, Value};
use ahead::Ahead;
use bytemuck::Pod;
use code::Code;
use geometry::Geometry;
use lower::Reach;
use smallvec::SmallVec;
use space::Extent;
use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

/// The floats that programs compute with.
pub(crate) trait Real: Float + Pod + Into<f64> {
    /// The reduction of nothing.
    fn identity(fold: Reduction) -> Self;
    /// The reduction of all elements.
    fn fold(fold: Reduction, x: &[Self]) -> Self;
    /// Joins each element of the second into the first.
    fn merge(fold: Reduction, into: &mut [Self], x: &[Self]);
}

macro_rules! real {
    ($($F:ident)*) => {$(
        impl Real for $F {
            fn identity(fold: Reduction) -> $F {
                match fold {
                    Reduction::Sum => 0.0,
                    Reduction::Max => $F::NEG_INFINITY,
                    Reduction::Min => $F::INFINITY,
                }
            }

            fn fold(fold: Reduction, x: &[$F]) -> $F {
                match fold {
                    Reduction::Sum => reduce::block::<$F, reduce::Sum>(x),
                    Reduction::Max => reduce::block::<$F, reduce::Max>(x),
                    Reduction::Min => reduce::block::<$F, reduce::Min>(x),
                }
            }

            fn merge(fold: Reduction, into: &mut [$F], x: &[$F]) {
                match fold {
                    Reduction::Sum => loop2_into_left::<ops::Add, $F>(into, x),
                    Reduction::Max => loop2_into_left::<ops::Maximum, $F>(into, x),
                    Reduction::Min => loop2_into_left::<ops::Minimum, $F>(into, x),
                }
            }
        }
    )*};
}
real!(f32 f64);

/// An input of a program: its first element, and the strides of its axes in elements.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    pub start: *const u8,
    pub strides: &'a [isize],
}

impl<'a> Source<'a> {
    fn of(v: &Value<'a>) -> Source<'a> {
        with_bits!(v.dtype, T => {
            let view = v.view::<T>();
            Source { start: view.data[view.offset..].as_ptr().cast(), strides: view.strides }
        })
    }
}

/// A compiled group.
pub(crate) struct Program {
    code: AnyCode,
    geometry: Geometry,
    /// The types of inputs and outputs.
    inputs: Vec<Aval>,
    outputs: Vec<Aval>,
    /// The strides of inputs without gaps.
    strides: Vec<Strides>,
    /// Which outputs have a float for each element of the iteration space.
    full: Vec<bool>,
}

enum AnyCode {
    F32(Code<f32>),
    F64(Code<f64>),
}

impl Program {
    /// Compiles a graph of elementwise operations and reductions over one iteration space; an error if it is not one.
    pub fn new(graph: &Graph) -> Result<Program> {
        let members: Vec<usize> =
            (0..graph.len()).filter(|&k| moved(graph, &graph.steps[k]).is_none()).collect();
        let fits = members.iter().all(|&k| space::is_member(graph, k));
        let operands = operands(graph);
        let space = if fits { space::of(graph, &operands, &members) } else { None };
        let program = space.and_then(|space| {
            let spans = geometry::spans(&space);
            #[cfg_attr(not(test), expect(unused_mut, reason = "tests put faults into it"))]
            let mut code = match space.dtype {
                DType::F64 => AnyCode::F64(code::assemble(
                    lower::lower(graph, &operands, &members, &space, spans)?,
                    spans,
                )),
                _ => AnyCode::F32(code::assemble(
                    lower::lower(graph, &operands, &members, &space, spans)?,
                    spans,
                )),
            };
            let extent = |at: &Ref| match at {
                Ref::Step(k, _) => members.binary_search(k).ok().map(|m| space.extents[m]),
                _ => None,
            };
            let outputs: Vec<Aval> = graph.outputs.iter().map(|&a| graph.aval(a)).collect();
            let full = graph.outputs.iter().zip(&outputs);
            let full = full.map(|(at, o)| o.dtype.is_float() && extent(at) == Some(Extent::Full)).collect();
            let columns = space.extents.contains(&Extent::Columns);
            #[cfg_attr(not(test), expect(unused_mut, reason = "tests put faults into it"))]
            let mut geometry = Geometry::new(&space, columns);
            #[cfg(test)]
            fault::in_program(&mut code, &mut geometry);
            let strides = graph.inputs.iter().map(|a| a.shape.strides()).collect();
            Some(Program { code, geometry, inputs: graph.inputs.clone(), outputs, strides, full })
        });
        program.ok_or_else(|| err!(Structure, "these operations have no common iteration space"))
    }

    /// Whether an output may be the memory of an input: both have a float for each element, at the same place.
    ///
    /// That the input lies without gaps is for the caller to see to.
    pub fn may_share(&self, output: usize, input: usize) -> bool {
        let loads = match &self.code {
            AnyCode::F32(c) => &c.loads,
            AnyCode::F64(c) => &c.loads,
        };
        let mut reads = loads.iter().filter(|l| l.input == input);
        let shape = &self.inputs[input].shape;
        self.full[output]
            && self.inputs[input].dtype == self.outputs[output].dtype
            && reads.all(|l| l.reach == Reach::Full && !l.beyond && l.view.is_whole(shape))
    }

    /// How this group can follow a kernel of so many operands that makes one of its inputs, if it can: that is made where a result will be.
    pub fn lead(&self, input: usize, operands: usize) -> Option<Lead> {
        let shifted = match &self.code {
            AnyCode::F32(c) => c.shifted,
            AnyCode::F64(c) => c.shifted,
        };
        // A shifted read may be of rows that are not made yet.
        if shifted {
            return None;
        }
        let output = (0..self.outputs.len()).find(|&o| self.may_share(o, input))?;
        self.geometry.block_elements().map(|_| Lead { input, output, operands })
    }

    /// Computes the outputs. One that takes the place of an input is one that it [may share](Program::may_share) memory with.
    pub fn run<'a>(&'a self, inputs: &[Value<'a>], outputs: &mut [Output]) {
        let memory = self.memory(outputs);
        let source = |(k, v): (usize, &Value<'a>)| self.source(k, v, k, outputs, &memory);
        let sources: SmallVec<[Source; 8]> = inputs.iter().enumerate().map(source).collect();
        // SAFETY: the types are those of the program. An output is new memory, or that of an input that it may share.
        unsafe { self.run_at(&sources, &memory, None) };
    }

    /// [`run`](Program::run) on the result of `op` of the first operands, and on the other inputs after them.
    pub fn run_after<'a>(&'a self, op: &Op, lead: &Lead, x: &[Value<'a>], outputs: &mut [Output]) {
        let memory = self.memory(outputs);
        let made = memory[lead.output];
        let source = |k: usize| match k.cmp(&lead.input) {
            Ordering::Equal => Source { start: made, strides: &self.strides[k] },
            Ordering::Less => self.source(k, &x[lead.operands + k], lead.operands + k, outputs, &memory),
            Ordering::Greater => {
                self.source(k, &x[lead.operands + k - 1], lead.operands + k - 1, outputs, &memory)
            }
        };
        let sources: SmallVec<[Source; 8]> = (0..self.inputs.len()).map(source).collect();
        op.in_rows(&x[..lead.operands], &mut |kernel| match kernel {
            // SAFETY: as in `run`; the result has the type of the output that it takes the place of.
            RowKernel::F32(k) => unsafe { self.follow(k, made.cast(), &sources, &memory) },
            // SAFETY: as above.
            RowKernel::F64(k) => unsafe { self.follow(k, made.cast(), &sources, &memory) },
        });
    }

    /// Makes the result of a kernel, and the outputs from it.
    ///
    /// # Safety
    /// As for [`run_at`](Program::run_at); the result goes to one of the outputs, and is read there.
    unsafe fn follow<T: Copy + Send + Sync>(
        &self,
        kernel: &dyn InRows<T>,
        to: *mut T,
        inputs: &[Source],
        outputs: &[*mut u8],
    ) {
        let target = Target::from(to);
        // SAFETY: each thread makes the rows that it then reads.
        let make = |rows: Range<usize>| unsafe { kernel.compute(rows, target) };
        let elements = self.geometry.block_elements().expect("a group that can follow has such blocks");
        let ahead = Ahead::new(kernel, elements, self.geometry.blocks(), &make);
        if ahead.is_none() {
            let len = kernel.rows() * kernel.columns();
            // SAFETY: the memory of the output, which has the size of the result.
            kernel.all(unsafe { std::slice::from_raw_parts_mut(to, len) });
        }
        // SAFETY: by the caller's promise.
        unsafe { self.run_at(inputs, outputs, ahead) };
    }

    fn memory(&self, outputs: &mut [Output]) -> SmallVec<[*mut u8; 4]> {
        let memory = outputs.iter_mut().zip(&self.outputs);
        memory.map(|(o, a)| with_bits!(a.dtype, T => o.fill::<T>().as_mut_ptr().cast::<u8>())).collect()
    }

    /// Where input `k` is, which the kernel knows as its operand `operand`.
    fn source<'a>(
        &'a self,
        k: usize,
        v: &Value<'a>,
        operand: usize,
        outputs: &[Output],
        memory: &[*mut u8],
    ) -> Source<'a> {
        debug_assert!(v.dtype == self.inputs[k].dtype && *v.shape == self.inputs[k].shape[..]);
        match outputs.iter().position(|o| o.takes() == Some(operand)) {
            Some(o) => Source { start: memory[o], strides: &self.strides[k] },
            None => Source::of(v),
        }
    }

    /// [`run`](Program::run) on memory, perhaps with an input that is still to be made.
    ///
    /// # Safety
    /// Inputs and outputs have the types and shapes of the graph that was compiled. Outputs have no gaps and lie apart from each
    /// other, and from the inputs, unless [`may_share`](Program::may_share) allows it and the input has no gaps either.
    unsafe fn run_at(&self, inputs: &[Source], outputs: &[*mut u8], ahead: Option<Ahead>) {
        let shared = |o: &*mut u8| inputs.iter().any(|i| std::ptr::eq(i.start, *o));
        let staged: SmallVec<[bool; 8]> =
            outputs.iter().zip(&self.full).map(|(o, full)| *full && shared(o)).collect();
        // SAFETY: by the caller's promise.
        unsafe {
            match &self.code {
                AnyCode::F32(code) => run::run(code, &self.geometry, inputs, outputs, staged, ahead),
                AnyCode::F64(code) => run::run(code, &self.geometry, inputs, outputs, staged, ahead),
            }
        }
    }
}

/// The place of a kernel's result in a group that follows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lead {
    /// The input that is the result.
    pub input: usize,
    /// The output whose memory it is made in.
    pub output: usize,
    /// How many operands the kernel has.
    pub operands: usize,
}

impl Lead {
    /// Which input of the group is the `k`-th that is not the result.
    pub fn place(&self, k: usize) -> usize {
        k + (k >= self.input) as usize
    }
}

/// A fused group with its program.
#[derive(Clone)]
pub(crate) struct Group {
    pub body: Arc<Graph>,
    pub program: Arc<Program>,
}

impl Group {
    /// The group that does what `body` says; an error if that cannot run as one.
    pub fn new(body: Arc<Graph>) -> Result<Group> {
        let program = Arc::new(Program::new(&body)?);
        Ok(Group { body, program })
    }
}
