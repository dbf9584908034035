//! What a graph or a plan costs, counted without running it.

use super::Plan;
use super::lower::{Kernel, Operand, Program, Root, Work};
use super::order::Liveness;
use crate::graph::Graph;
use crate::tensor::Data;

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
    fn combined(self, other: Statistics, f: impl Fn(u64, u64) -> u64) -> Statistics {
        Statistics {
            operations: self.operations + other.operations,
            kernels: f(self.kernels, other.kernels),
            flops: f(self.flops, other.flops),
            bytes_read: f(self.bytes_read, other.bytes_read),
            bytes_written: f(self.bytes_written, other.bytes_written),
            peak_bytes: self.peak_bytes.max(other.peak_bytes),
        }
    }
}

impl Program {
    /// What all kernels cost together, apart from memory.
    pub fn cost(&self) -> Statistics {
        let start = Statistics { operations: self.views as u64, ..Statistics::default() };
        self.kernels.iter().fold(start, |sum, k| sum.combined(self.cost_of(k), |a, b| a + b))
    }

    /// What one kernel costs, apart from memory.
    pub fn cost_of(&self, kernel: &Kernel) -> Statistics {
        let read = kernel.operands.iter().map(|o| self.bytes_read(o)).sum();
        let results = &self.registers[kernel.results.clone()];
        let written = results.iter().map(|a| (a.shape.numel() * a.dtype.size()) as u64).sum();
        let whole = |flops: u64| Statistics {
            operations: 1,
            kernels: 1,
            flops,
            bytes_read: read,
            bytes_written: written,
            peak_bytes: 0,
        };
        match &kernel.work {
            Work::Product(product) => {
                let shapes: Vec<&[usize]> = kernel.operands[..2].iter().map(|o| &*o.aval.shape).collect();
                let inside = Program::new(&product.group.body, &[]).cost();
                let own = product.op.flops(&shapes, &results[product.lead.output].shape);
                Statistics { operations: product.operations + inside.operations, ..whole(own + inside.flops) }
            }
            Work::Op(op) => {
                let shapes: Vec<&[usize]> = kernel.operands.iter().map(|o| &*o.aval.shape).collect();
                whole(op.flops(&shapes, &results[0].shape))
            }
            Work::Block(_) => whole(0),
            Work::Fused(group) => {
                let inside = Program::new(&group.body, &[]).cost();
                Statistics { operations: 1 + inside.operations, ..whole(inside.flops) }
            }
            Work::Scan(scan) => {
                let (step, n) = (scan.body.program.cost(), scan.steps.len() as u64);
                Statistics {
                    operations: 1 + step.operations,
                    kernels: n * step.kernels,
                    flops: n * step.flops,
                    bytes_read: n * step.bytes_read,
                    bytes_written: n * step.bytes_written,
                    peak_bytes: 0,
                }
            }
            Work::Cond(cond) => {
                let choice = cond.then.program.cost().combined(cond.otherwise.program.cost(), u64::max);
                Statistics { operations: 1 + choice.operations, ..choice }
            }
        }
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

impl Plan {
    /// What a run costs. The peak is that of the memory as it is planned, slots and outputs together.
    pub fn statistics(&self) -> Statistics {
        Statistics { peak_bytes: self.storage.peak, ..self.program.cost() }
    }
}

impl Graph {
    /// What one run costs, operation by operation in the order of the graph.
    pub fn statistics(&self) -> Statistics {
        let program = Program::new(self, &[]);
        let order: Vec<usize> = (0..program.kernels.len()).collect();
        Statistics { peak_bytes: Liveness::new(&program, &order).peak, ..program.cost() }
    }
}
