//! A graph as kernels: which run, what they read, and what is only another view.

use super::epilogue::Product;
use super::fused::Fused;
use super::region::{Cond, Scan};
use crate::DType;
use crate::graph::{Graph, Ref, Region, Step};
use crate::ops::{Aval, Op};
use crate::shape::{Shape, Strides};
use crate::tensor::{Block, Data, Tensor};
use smallvec::SmallVec;
use std::ops::Range;
use std::panic::Location;
use std::sync::Arc;

/// The kernels of a graph, in an order in which they can run.
pub(super) struct Program {
    pub inputs: Vec<Aval>,
    /// Inputs whose memory may be overwritten: the first registers.
    pub donated: Vec<usize>,
    pub consts: Vec<Tensor>,
    pub kernels: Vec<Kernel>,
    /// Donated inputs, and what kernels write: row-major arrays.
    pub registers: Vec<Aval>,
    pub windows: Vec<Window>,
    /// How windows on inputs came about: these are made anew for an input that is not row-major.
    pub looks: Vec<Look>,
    pub outputs: Vec<Operand>,
    /// How many operations were only views.
    pub views: usize,
}

/// One piece of work.
pub(super) struct Kernel {
    pub work: Work,
    pub operands: Vec<Operand>,
    /// The registers it writes.
    pub results: Range<usize>,
    pub location: &'static Location<'static>,
}

/// What a kernel does.
pub(super) enum Work {
    Op(Op),
    Scan(Box<Scan>),
    Cond(Box<Cond>),
    Fused(Fused),
    /// A matrix product, and what is done with its elements.
    Product(Box<Product>),
    /// A function of which nothing is known: it is called.
    Block(Arc<dyn Block>),
}

/// What a kernel reads: the elements of a root, seen through a window.
#[derive(Clone)]
pub(super) struct Operand {
    pub root: Root,
    pub aval: Aval,
    /// Which window; none where the root is read as it is.
    pub window: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Root {
    Input(usize),
    Const(usize),
    Register(usize),
}

/// Where elements lie relative to the first element of their root.
#[derive(Clone)]
pub(super) struct Window {
    pub offset: isize,
    pub strides: Strides,
}

/// A view of an input, or of another view of it.
pub(super) struct Look {
    pub op: Op,
    pub input: usize,
    /// The shape and window of what is looked at.
    pub shape: Shape,
    pub from: Option<usize>,
    pub to: usize,
}

impl Work {
    pub fn name(&self) -> &'static str {
        match self {
            Work::Op(op) => op.name(),
            Work::Scan(_) => "scan",
            Work::Cond(_) => "cond",
            Work::Fused(_) => "fused",
            Work::Product(_) => "matmul+fused",
            Work::Block(block) => block.name(),
        }
    }

    /// Bytes that it needs while it runs.
    pub fn scratch(&self) -> usize {
        match self {
            Work::Op(_) | Work::Fused(_) | Work::Product(_) | Work::Block(_) => 0,
            Work::Scan(scan) => scan.scratch(),
            Work::Cond(cond) => cond.then.storage.peak.max(cond.otherwise.storage.peak),
        }
    }

    /// Whether a result of type `dtype` may take the memory of an operand of its type and shape.
    pub fn overwrites(&self, dtype: DType, result: usize, operand: usize) -> bool {
        match self {
            Work::Op(op) => op.overwrites(dtype),
            Work::Fused(group) => group.program.may_share(result, operand),
            Work::Product(product) => product.overwrites(result, operand),
            Work::Scan(_) | Work::Cond(_) | Work::Block(_) => false,
        }
    }
}

impl Kernel {
    /// The registers it reads, with repetitions.
    pub fn reads(&self) -> impl Iterator<Item = usize> + '_ {
        self.operands.iter().filter_map(|o| match o.root {
            Root::Register(r) => Some(r),
            _ => None,
        })
    }
}

impl Program {
    pub fn new(graph: &Graph, donated: &[usize]) -> Program {
        let graph = graph.clone().pruned();
        let mut program = Program {
            inputs: graph.inputs.clone(),
            donated: donated.to_vec(),
            consts: Vec::new(),
            kernels: Vec::new(),
            registers: donated.iter().map(|&k| graph.inputs[k].clone()).collect(),
            windows: Vec::new(),
            looks: Vec::new(),
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
            && let Some(seen) = self.look(&step.op, x, &step.avals[0])
        {
            self.views += 1;
            return [seen].into();
        }
        let work = match (&step.op, step.op.region()) {
            (_, Some(Region::Call { body, .. })) => return self.inline(&body, &operands).into(),
            (_, Some(Region::Scan { body, state, items, from, to, stacks })) => {
                Work::Scan(Box::new(Scan::new(&body, state, items, from..to, stacks)))
            }
            (_, Some(Region::Cond { then, otherwise, inputs })) => {
                Work::Cond(Box::new(Cond::new(&then, &otherwise, inputs)))
            }
            (_, Some(Region::Fused(group))) => Work::Fused(group),
            (Op::Block(block), _) => Work::Block(block.clone()),
            (op, _) => Work::Op(op.clone()),
        };
        let first = self.registers.len();
        self.registers.extend(step.avals.iter().cloned());
        let results = first..self.registers.len();
        self.kernels.push(Kernel { work, operands, results: results.clone(), location: step.location });
        let result =
            |k: usize| Operand { root: Root::Register(k), aval: self.registers[k].clone(), window: None };
        results.map(result).collect()
    }

    /// The result of an operation that only looks at its input another way.
    fn look(&mut self, op: &Op, x: &Operand, aval: &Aval) -> Option<Operand> {
        let shape = &x.aval.shape;
        let (origin, own) = match x.root {
            Root::Input(k) => (0, self.inputs[k].shape.strides()),
            Root::Register(k) => (0, self.registers[k].shape.strides()),
            Root::Const(k) => match self.consts[k].data() {
                Data::Strided(s) => (s.offset as isize, s.strides.clone()),
                // A repeated element looks the same from everywhere.
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
            self.looks.push(Look { op: op.clone(), input, shape: shape.clone(), from: x.window, to });
        }
        Some(Operand { root: x.root, aval: aval.clone(), window: Some(to) })
    }

    /// Puts the kernels into another order.
    pub fn reorder(&mut self, order: &[usize]) {
        let mut kernels: Vec<Option<Kernel>> =
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
