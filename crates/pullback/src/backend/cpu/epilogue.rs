//! Epilogues: what is done with every element of a matrix product alone is done while its rows are still in cache.
//!
//! A product whose only reader is an elementwise operation or a fused group becomes one kernel with it. The product is written to
//! where one of the group's results will be, some rows at a time, and the group follows over these rows.

use super::Plan;
use super::fused::layout::is_rowwise;
use super::fused::{Group, Lead};
use super::work::{Kernel, Program, Work};
use crate::graph::lower::Root;
use crate::graph::{Graph, Ref, Step};
use crate::ops::{Op, is_row_major};

/// A matrix product with what is done to its elements. The operands of the kernel are the factors, and then what else the group reads.
pub(super) struct Product {
    pub op: Op,
    pub group: Group,
    pub lead: Lead,
    /// How many operations of the graph it stands for, besides those inside of the group.
    pub operations: u64,
}

impl Product {
    /// Whether a result may take the memory of an operand. The factors are read to the end, and the product is in the way of others.
    pub fn overwrites(&self, result: usize, operand: usize) -> bool {
        result != self.lead.output
            && operand >= 2
            && self.group.program.may_share(result, self.lead.place(operand - 2))
    }
}

impl Plan {
    /// How many products were joined with what follows them.
    pub fn epilogues(&self) -> usize {
        self.program.kernels.iter().filter(|k| matches!(k.work, Work::Product(_))).count()
    }
}

impl Program {
    /// Joins products with the kernels that read them.
    pub fn join_epilogues(&mut self) {
        let mut readers = vec![Vec::new(); self.registers.len()];
        for (k, kernel) in self.kernels.iter().enumerate() {
            kernel.reads().for_each(|r| readers[r].push(k));
        }
        let escaping = self.escaping();
        let mut gone = Vec::new();
        for at in 0..self.kernels.len() {
            let kernel = &self.kernels[at];
            let r = kernel.results.start;
            let (Work::Op(op @ Op::Dot(_)), [reader]) = (&kernel.work, readers[r].as_slice()) else {
                continue;
            };
            let empty = kernel.operands.iter().any(|o| o.aval.shape.numel() == 0);
            if escaping[r] || empty {
                continue;
            }
            let Some((group, lead)) = self.epilogue(&self.kernels[*reader], r) else { continue };
            let operations = 1 + matches!(self.kernels[*reader].work, Work::Fused(_)) as u64;
            let product = Product { op: op.clone(), group, lead, operations };
            let mut operands = kernel.operands.clone();
            let rest = self.kernels[*reader].operands.iter().enumerate();
            operands.extend(rest.filter(|(k, _)| *k != product.lead.input).map(|(_, o)| o.clone()));
            let joined = &mut self.kernels[*reader];
            (joined.work, joined.operands) = (Work::Product(Box::new(product)), operands);
            gone.push(r);
        }
        self.drop_writers(&gone);
    }

    /// The kernel as a group that can follow the product in register `r`.
    fn epilogue(&self, kernel: &Kernel, r: usize) -> Option<(Group, Lead)> {
        let input = kernel.operands.iter().position(|o| o.root == Root::Register(r))?;
        let operand = &kernel.operands[input];
        // The product may be seen in another shape, but in its own order.
        let window = operand.window.map(|w| &self.windows[w]);
        if window.is_some_and(|w| w.offset != 0 || !is_row_major(&operand.aval.shape, &w.strides)) {
            return None;
        }
        let group = match &kernel.work {
            Work::Fused(group) => group.clone(),
            // Its kernel adds in another order than a group does.
            Work::Op(op) if is_rowwise(op) => return None,
            Work::Op(op) => Group::new(self.alone(op, kernel).into()).ok()?,
            _ => return None,
        };
        let lead = group.program.lead(input)?;
        Some((group, lead))
    }

    /// A graph of one operation, that of a kernel.
    fn alone(&self, op: &Op, kernel: &Kernel) -> Graph {
        let avals = self.registers[kernel.results.clone()].to_vec();
        let args = (0..kernel.operands.len()).map(Ref::Input).collect();
        Graph {
            inputs: kernel.operands.iter().map(|o| o.aval.clone()).collect(),
            consts: Vec::new(),
            outputs: (0..avals.len()).map(|slot| Ref::Step(0, slot)).collect(),
            steps: vec![Step { op: op.clone(), args, avals: avals.into(), location: kernel.location }],
            names: Vec::new(),
        }
    }

    /// Takes out registers, with the kernels that write them and nothing else.
    fn drop_writers(&mut self, gone: &[usize]) {
        if gone.is_empty() {
            return;
        }
        let mut stays = vec![true; self.registers.len()];
        gone.iter().for_each(|&r| stays[r] = false);
        let number: Vec<usize> =
            stays.iter().scan(0, |n, &s| Some(std::mem::replace(n, *n + s as usize))).collect();
        // Each writes that register alone.
        self.kernels.retain(|k| k.results.len() != 1 || stays[k.results.start]);
        let mut kept = stays.iter();
        self.registers.retain(|_| *kept.next().expect("there is one for each register"));
        for kernel in &mut self.kernels {
            kernel.results =
                number[kernel.results.start]..number[kernel.results.start] + kernel.results.len();
        }
        let operands = self.kernels.iter_mut().flat_map(|k| &mut k.operands).chain(&mut self.outputs);
        for operand in operands {
            if let Root::Register(r) = &mut operand.root {
                *r = number[*r];
            }
        }
    }
}
