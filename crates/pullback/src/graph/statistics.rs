//! What a graph costs, counted without running it.

use super::liveness::Liveness;
use super::lower::{Kernel, Operand, Program, Root, Work};
use super::{Body, Graph};
use crate::ops::Op;
use crate::tensor::Data;
use crate::tensor::buffer::Buffer;

/// What one run of a graph costs.
///
/// ```
/// use pullback::prelude::*;
/// let s = trace(|x: &Tensor| (x.matmul(x) + 1.0).sum(), &Tensor::zeros([10, 10])).statistics();
/// assert_eq!((s.operations, s.kernels, s.flops), (3, 3, 2000 + 100 + 100));
/// assert_eq!(s.bytes_written, 800 + 800 + 8);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// The operations of the graph, and of graphs inside it, that an output needs.
    pub operations: u64,
    /// How many kernels run: a step of a loop counts each time, and a view of another value costs nothing.
    pub kernels: u64,
    /// The work, in additions: a matrix product is `2 m n k` of them, and an elementary function some tens.
    pub flops: u64,
    /// Bytes that kernels read; an element that is repeated counts once.
    pub bytes_read: u64,
    /// Bytes that kernels write.
    pub bytes_written: u64,
    /// The most bytes that are needed at once, besides inputs and constants.
    pub peak_bytes: usize,
}

impl Statistics {
    /// One after the other.
    fn then(self, other: Statistics) -> Statistics {
        self.joined(other, |a, b| a + b)
    }

    /// One of two, of which the dearer counts.
    pub(crate) fn or(self, other: Statistics) -> Statistics {
        let choice = self.joined(other, u64::max);
        Statistics { operations: 1 + choice.operations, ..choice }
    }

    fn joined(self, other: Statistics, f: impl Fn(u64, u64) -> u64) -> Statistics {
        Statistics {
            operations: self.operations + other.operations,
            kernels: f(self.kernels, other.kernels),
            flops: f(self.flops, other.flops),
            bytes_read: f(self.bytes_read, other.bytes_read),
            bytes_written: f(self.bytes_written, other.bytes_written),
            peak_bytes: 0,
        }
    }

    /// The steps of a loop.
    pub(crate) fn repeated(self, steps: usize) -> Statistics {
        let n = steps as u64;
        Statistics {
            operations: 1 + self.operations,
            kernels: n * self.kernels,
            flops: n * self.flops,
            bytes_read: n * self.bytes_read,
            bytes_written: n * self.bytes_written,
            peak_bytes: 0,
        }
    }

    pub(crate) fn with_flops(self, flops: u64) -> Statistics {
        Statistics { flops, ..self }
    }

    /// One kernel that does the work of others.
    pub(crate) fn around(self, inside: Statistics) -> Statistics {
        Statistics { operations: 1 + inside.operations, ..self.with_flops(inside.flops) }
    }
}

/// Work whose cost is known.
pub(crate) trait Costs: Work {
    /// What it costs, with operands and results of these shapes, apart from memory. `own` is one kernel that reads and writes them.
    fn cost(&self, own: Statistics, x: &[&[usize]], y: &[&[usize]]) -> Statistics;
}

impl<W: Costs> Program<W> {
    /// What all kernels cost together, apart from memory.
    pub fn cost(&self) -> Statistics {
        let views = Statistics { operations: self.views as u64, ..Statistics::default() };
        self.kernels.iter().fold(views, |sum, k| sum.then(self.cost_of(k)))
    }

    /// What one kernel costs, apart from memory.
    pub fn cost_of(&self, kernel: &Kernel<W>) -> Statistics {
        let results = &self.registers[kernel.results.clone()];
        let own = Statistics {
            operations: 1,
            kernels: 1,
            flops: 0,
            bytes_read: kernel.operands.iter().map(|o| self.bytes_read(o)).sum(),
            bytes_written: results.iter().map(|a| (a.shape.numel() * a.dtype.size()) as u64).sum(),
            peak_bytes: 0,
        };
        let x: Vec<&[usize]> = kernel.operands.iter().map(|o| &*o.aval.shape).collect();
        let y: Vec<&[usize]> = results.iter().map(|a| &*a.shape).collect();
        kernel.work.cost(own, &x, &y)
    }

    fn bytes_read(&self, operand: &Operand) -> u64 {
        let own = match operand.root {
            Root::Const(k) => match self.consts[k].data() {
                Data::Strided(s) => Some(&s.strides),
                _ => return operand.aval.dtype.size() as u64,
            },
            _ => None,
        };
        let strides = operand.window.map(|w| &self.windows[w].strides).or(own);
        let lengths = operand.aval.shape.iter().enumerate();
        let elements = lengths.map(|(k, &n)| if strides.is_some_and(|s| s[k] == 0) { n.min(1) } else { n });
        (elements.product::<usize>() * operand.aval.dtype.size()) as u64
    }
}

/// The operations of a graph, one by one.
enum Task {
    Op(Op),
    /// Of the steps of a loop, and the bytes of its state.
    Scan(Program<Task>, usize, usize),
    Cond(Program<Task>, Program<Task>),
    Fused(Program<Task>),
    /// A function of which nothing is known.
    Block,
}

impl Work for Task {
    fn of(op: &Op, body: Option<&Body>) -> Option<Task> {
        Some(match (op, body) {
            (_, Some(Body::Scan(scan))) => {
                let state = scan.body.inputs[..scan.state].iter();
                let bytes = state.map(|a| Buffer::rounded(a.shape.numel() * a.dtype.size())).sum();
                Task::Scan(Program::new(&scan.body, &[]), scan.steps.len(), bytes)
            }
            (_, Some(Body::Cond(cond))) => {
                Task::Cond(Program::new(&cond.then, &[]), Program::new(&cond.otherwise, &[]))
            }
            (_, Some(Body::Fused(group))) => Task::Fused(Program::new(&group.body, &[])),
            (Op::Block(_), _) => Task::Block,
            _ => Task::Op(op.clone()),
        })
    }

    fn scratch(&self) -> usize {
        match self {
            Task::Op(_) | Task::Fused(_) | Task::Block => 0,
            Task::Scan(body, _, state) => peak(body) + state,
            Task::Cond(then, otherwise) => peak(then).max(peak(otherwise)),
        }
    }
}

impl Costs for Task {
    fn cost(&self, own: Statistics, x: &[&[usize]], y: &[&[usize]]) -> Statistics {
        match self {
            Task::Op(op) => own.with_flops(op.flops(x, y[0])),
            Task::Block => own,
            Task::Fused(body) => own.around(body.cost()),
            Task::Scan(body, steps, _) => body.cost().repeated(*steps),
            Task::Cond(then, otherwise) => then.cost().or(otherwise.cost()),
        }
    }
}

/// The most bytes alive at once, in the order of the kernels.
fn peak(program: &Program<Task>) -> usize {
    let order: Vec<usize> = (0..program.kernels.len()).collect();
    Liveness::new(program, &order).peak
}

impl Graph {
    /// What one run costs, operation by operation in the order of the graph.
    pub fn statistics(&self) -> Statistics {
        let program = Program::new(self, &[]);
        Statistics { peak_bytes: peak(&program), ..program.cost() }
    }

    /// [`statistics`](Graph::statistics) apart from memory.
    pub(crate) fn cost(&self) -> Statistics {
        Program::<Task>::new(self, &[]).cost()
    }
}
