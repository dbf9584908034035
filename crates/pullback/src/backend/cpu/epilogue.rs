//! Epilogues: what is done with every element of a matrix product alone is done while its rows are still in cache; likewise for any
//! operation that [makes its result in rows](crate::ops::Primitive::in_rows).
//!
//! Such an operation whose only reader is an elementwise operation or a fused group becomes one kernel with it. Its result is written to
//! where one of the group's results will be, some rows at a time, and the group follows over these rows.

use super::Plan;
use super::fused::{Group, Lead};
use super::work::{Kernel, Program, Work};
use crate::graph::lower::Root;
use crate::graph::{Graph, Ref, Step};
use crate::ops::{Op, is_row_major};

/// An operation with what is done to the elements of its result. The operands of the kernel are those of the operation, and then what else
/// the group reads.
pub(super) struct Joined {
    pub name: &'static str,
    pub op: Op,
    pub group: Group,
    pub lead: Lead,
    /// How many operations of the graph it stands for, besides those inside of the group.
    pub operations: u64,
}

impl Joined {
    /// Whether a result may take the memory of an operand. Those of the operation are read to the end, and its result is in the way of others.
    pub fn overwrites(&self, result: usize, operand: usize) -> bool {
        result != self.lead.output
            && operand >= self.lead.operands
            && self.group.program.may_share(result, self.lead.place(operand - self.lead.operands))
    }
}

impl Plan {
    /// How many operations were joined with what follows them.
    pub fn epilogues(&self) -> usize {
        self.program.kernels.iter().filter(|k| matches!(k.work, Work::Joined(_))).count()
    }
}

impl Program {
    /// Joins operations that make their results in rows with the kernels that read these.
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
            let (Work::Op(op), [reader]) = (&kernel.work, readers[r].as_slice()) else { continue };
            let Some(name) = op.joined_name() else { continue };
            let empty = kernel.operands.iter().any(|o| o.aval.shape.numel() == 0);
            if escaping[r] || empty {
                continue;
            }
            let Some((group, lead)) = self.epilogue(&self.kernels[*reader], r, kernel.operands.len()) else {
                continue;
            };
            let operations = 1 + matches!(self.kernels[*reader].work, Work::Fused(_)) as u64;
            let joined = Joined { name, op: op.clone(), group, lead, operations };
            let mut operands = kernel.operands.clone();
            let rest = self.kernels[*reader].operands.iter().enumerate();
            operands.extend(rest.filter(|(k, _)| *k != joined.lead.input).map(|(_, o)| o.clone()));
            let kernel = &mut self.kernels[*reader];
            (kernel.work, kernel.operands) = (Work::Joined(Box::new(joined)), operands);
            gone.push(r);
        }
        self.drop_writers(&gone);
    }

    /// The kernel as a group that can follow an operation of so many operands, whose result is in register `r`.
    fn epilogue(&self, kernel: &Kernel, r: usize, operands: usize) -> Option<(Group, Lead)> {
        let input = kernel.operands.iter().position(|o| o.root == Root::Register(r))?;
        let operand = &kernel.operands[input];
        // The result may be seen in another shape, but in its own order.
        let window = operand.window.map(|w| &self.windows[w]);
        if window.is_some_and(|w| w.offset != 0 || !is_row_major(&operand.aval.shape, &w.strides)) {
            return None;
        }
        let group = match &kernel.work {
            Work::Fused(group) => group.clone(),
            // Its kernel adds in another order than a group does.
            Work::Op(op) if op.is_rowwise() => return None,
            Work::Op(op) => Group::new(self.alone(op, kernel).into()).ok()?,
            _ => return None,
        };
        let lead = group.program.lead(input, operands)?;
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
