//! A graph as kernels: which run, what they read, and what is only another view.

use super::{Body, Graph, Ref, Step};
use crate::ops::{Aval, Op};
use crate::shape::{Shape, Strides};
use crate::tensor::{Data, Tensor};
use smallvec::SmallVec;
use std::ops::Range;
use std::panic::Location;

/// What the kernels of a program do: what a backend runs, or what is counted of it.
pub(crate) trait Work: Sized {
    /// The work of an operation; `None` for a body whose operations are kernels of their own.
    fn of(op: &Op, body: Option<&Body>) -> Option<Self>;

    /// Bytes that it needs while it runs.
    fn scratch(&self) -> usize;
}

/// The kernels of a graph, in an order in which they can run.
pub(crate) struct Program<W> {
    pub inputs: Vec<Aval>,
    /// Inputs whose memory may be overwritten: the first registers.
    pub donated: Vec<usize>,
    pub consts: Vec<Tensor>,
    pub kernels: Vec<Kernel<W>>,
    /// Donated inputs, and what kernels write: row-major arrays.
    pub registers: Vec<Aval>,
    pub windows: Vec<Window>,
    /// How windows on inputs came about: these are made anew for an input that is not row-major.
    pub input_views: Vec<InputView>,
    pub outputs: Vec<Operand>,
    /// How many operations were only views.
    pub views: usize,
}

/// One piece of work.
pub(crate) struct Kernel<W> {
    pub work: W,
    pub operands: Vec<Operand>,
    /// The registers it writes.
    pub results: Range<usize>,
    pub location: &'static Location<'static>,
}

/// What a kernel reads: the elements of a root, seen through a window.
#[derive(Clone)]
pub(crate) struct Operand {
    pub root: Root,
    pub aval: Aval,
    /// Which window; none where the root is read as it is.
    pub window: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Root {
    Input(usize),
    Const(usize),
    Register(usize),
}

/// Where elements lie relative to the first element of their root.
#[derive(Clone)]
pub(crate) struct Window {
    pub offset: isize,
    pub strides: Strides,
}

/// A view of an input, or of another view of it.
pub(crate) struct InputView {
    pub op: Op,
    pub input: usize,
    /// The shape and window of what it is a view of.
    pub shape: Shape,
    pub from: Option<usize>,
    pub to: usize,
}

impl<W> Kernel<W> {
    /// The registers it reads, with repetitions.
    pub fn reads(&self) -> impl Iterator<Item = usize> + '_ {
        self.operands.iter().filter_map(|o| match o.root {
            Root::Register(r) => Some(r),
            _ => None,
        })
    }
}

impl<W: Work> Program<W> {
    pub fn new(graph: &Graph, donated: &[usize]) -> Program<W> {
        let graph = graph.clone().pruned();
        let mut program = Program {
            inputs: graph.inputs.clone(),
            donated: donated.to_vec(),
            consts: Vec::new(),
            kernels: Vec::new(),
            registers: donated.iter().map(|&k| graph.inputs[k].clone()).collect(),
            windows: Vec::new(),
            input_views: Vec::new(),
            outputs: Vec::new(),
            views: 0,
        };
        let input = |(k, aval): (usize, &Aval)| {
            let root = donated.iter().position(|&d| d == k).map_or(Root::Input(k), Root::Register);
            Operand { root, aval: aval.clone(), window: None }
        };
        let inputs: Vec<Operand> = graph.inputs.iter().enumerate().map(input).collect();
        program.outputs = program.inline(&graph, &inputs);
        program
    }

    /// Adds the kernels of a graph that is applied to these operands.
    fn inline(&mut self, graph: &Graph, inputs: &[Operand]) -> Vec<Operand> {
        let first = self.consts.len();
        self.consts.extend(graph.consts.iter().map(Tensor::bare));
        let mut values: Vec<SmallVec<[Operand; 1]>> = Vec::with_capacity(graph.steps.len());
        let operand = |at: Ref, values: &[SmallVec<[Operand; 1]>]| match at {
            Ref::Input(k) => inputs[k].clone(),
            Ref::Const(k) => Operand { root: Root::Const(first + k), aval: graph.aval(at), window: None },
            Ref::Step(k, slot) => values[k][slot].clone(),
        };
        for step in &graph.steps {
            let operands = step.args.iter().map(|&a| operand(a, &values)).collect();
            let results = self.step(step, operands);
            values.push(results);
        }
        graph.outputs.iter().map(|&a| operand(a, &values)).collect()
    }

    fn step(&mut self, step: &Step, operands: Vec<Operand>) -> SmallVec<[Operand; 1]> {
        if let [x] = &operands[..]
            && let Some(seen) = self.view(&step.op, x, &step.avals[0])
        {
            self.views += 1;
            return [seen].into();
        }
        let body = step.op.body();
        let work = match body {
            Some(Body::Call(call)) => return self.inline(&call.body, &operands).into(),
            _ => W::of(&step.op, body.as_ref()),
        };
        let Some(work) = work else {
            let body = body.expect("what is not a kernel is made of other operations");
            return self.inline(body.bodies()[0], &operands).into();
        };
        let first = self.registers.len();
        self.registers.extend(step.avals.iter().cloned());
        let results = first..self.registers.len();
        self.kernels.push(Kernel { work, operands, results: results.clone(), location: step.location });
        let result =
            |k: usize| Operand { root: Root::Register(k), aval: self.registers[k].clone(), window: None };
        results.map(result).collect()
    }

    /// The result of an operation that is only another view of its input.
    fn view(&mut self, op: &Op, x: &Operand, aval: &Aval) -> Option<Operand> {
        let shape = &x.aval.shape;
        let (origin, own) = match x.root {
            Root::Input(k) => (0, self.inputs[k].shape.strides()),
            Root::Register(k) => (0, self.registers[k].shape.strides()),
            Root::Const(k) => match self.consts[k].data() {
                Data::Strided(s) => (s.offset as isize, s.strides.clone()),
                // A repeated element is the same everywhere.
                _ => {
                    op.view(shape, 0, &shape.strides())?;
                    return Some(Operand { aval: aval.clone(), ..x.clone() });
                }
            },
        };
        let (offset, strides) = match x.window {
            None => (0, own.clone()),
            Some(w) => (self.windows[w].offset, self.windows[w].strides.clone()),
        };
        let seen = op.view(shape, (origin + offset) as usize, &strides)?;
        let window = Window { offset: seen.offset as isize - origin, strides: seen.strides };
        let to = match x.window {
            None if window.offset == 0 && window.strides == own && aval.shape == *shape => {
                return Some(x.clone());
            }
            _ => self.windows.len(),
        };
        self.windows.push(window);
        if let Root::Input(input) = x.root {
            self.input_views.push(InputView {
                op: op.clone(),
                input,
                shape: shape.clone(),
                from: x.window,
                to,
            });
        }
        Some(Operand { root: x.root, aval: aval.clone(), window: Some(to) })
    }

    /// Puts the kernels into another order.
    pub fn reorder(&mut self, order: &[usize]) {
        let mut kernels: Vec<Option<Kernel<W>>> =
            std::mem::take(&mut self.kernels).into_iter().map(Some).collect();
        self.kernels =
            order.iter().map(|&k| kernels[k].take().expect("an order names each kernel once")).collect();
    }

    /// The registers that outputs are made of.
    pub fn escaping(&self) -> Vec<bool> {
        let mut out = vec![false; self.registers.len()];
        for operand in &self.outputs {
            if let Root::Register(r) = operand.root {
                out[r] = true;
            }
        }
        out
    }
}
