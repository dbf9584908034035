//! What the kernels of a plan do.

use super::control::{CondPlan, ScanPlan};
use super::epilogue::Joined;
use super::fused::Group;
use crate::DType;
use crate::graph::statistics::Costs;
use crate::graph::{Body, Statistics, lower};
use crate::ops::Op;
use crate::tensor::Block;
use std::sync::Arc;

pub(super) type Program = lower::Program<Work>;
pub(super) type Kernel = lower::Kernel<Work>;

/// What a kernel does.
pub(super) enum Work {
    Op(Op),
    Scan(Box<ScanPlan>),
    Cond(Box<CondPlan>),
    Fused(Group),
    /// An operation, and what is done with the elements of its result.
    Joined(Box<Joined>),
    /// A function of which nothing is known: it is called.
    Block(Arc<dyn Block>),
}

impl Work {
    pub fn name(&self) -> &'static str {
        match self {
            Work::Op(op) => op.name(),
            Work::Scan(_) => "scan",
            Work::Cond(_) => "cond",
            Work::Fused(_) => "fused",
            Work::Joined(joined) => joined.name,
            Work::Block(block) => block.name(),
        }
    }

    /// Whether a result of type `dtype` may take the memory of an operand of its type and shape.
    pub fn overwrites(&self, dtype: DType, result: usize, operand: usize) -> bool {
        match self {
            Work::Op(op) => op.overwrites(operand, dtype),
            Work::Fused(group) => group.program.may_share(result, operand),
            Work::Joined(joined) => joined.overwrites(result, operand),
            Work::Scan(_) | Work::Cond(_) | Work::Block(_) => false,
        }
    }
}

impl lower::Work for Work {
    fn of(op: &Op, body: Option<&Body>) -> Option<Work> {
        Some(match (op, body) {
            (_, Some(Body::Scan(scan))) => Work::Scan(Box::new(ScanPlan::new(scan))),
            (_, Some(Body::Cond(cond))) => Work::Cond(Box::new(CondPlan::new(cond))),
            (_, Some(Body::Fused(group))) => Work::Fused(Group::new(group.body.clone()).ok()?),
            (Op::Block(block), _) => Work::Block(block.clone()),
            _ => Work::Op(op.clone()),
        })
    }

    fn scratch(&self) -> usize {
        match self {
            Work::Op(_) | Work::Fused(_) | Work::Joined(_) | Work::Block(_) => 0,
            Work::Scan(scan) => scan.scratch(),
            Work::Cond(cond) => cond.then.storage.peak.max(cond.otherwise.storage.peak),
        }
    }
}

impl Costs for Work {
    fn cost(&self, own: Statistics, x: &[&[usize]], y: &[&[usize]]) -> Statistics {
        match self {
            Work::Op(op) => own.with_flops(op.flops(x, y[0])),
            Work::Block(_) => own,
            Work::Fused(group) => own.around(group.body.cost()),
            Work::Joined(joined) => {
                let first = joined.op.flops(&x[..joined.lead.operands], y[joined.lead.output]);
                let inside = joined.group.body.cost();
                let operations = joined.operations + inside.operations;
                Statistics { operations, ..own.with_flops(first + inside.flops) }
            }
            Work::Scan(scan) => scan.body.program.cost().repeated(scan.steps.len()),
            Work::Cond(cond) => cond.then.program.cost().or(cond.otherwise.program.cost()),
        }
    }
}
