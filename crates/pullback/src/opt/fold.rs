//! Constant folding: what depends on literals alone is computed now.

use super::Options;
use super::rewrite::rewrite;
use crate::graph::constant::{self, SMALL};
use crate::graph::{Graph, Ref, Step};
use crate::ops::Op;
use crate::shape::Shape;
use crate::tensor::{Tensor, bind};

/// Computes operations on literals, where the result is small or repeats one element, which it then is stored as.
pub(super) fn fold(graph: &Graph, _: &Options) -> Graph {
    let mut graph = graph.clone();
    for c in &mut graph.consts {
        if let Some(single) = constant::compact(c) {
            *c = single;
        }
    }
    rewrite(&graph, |w, step| {
        let args: Option<Vec<&Tensor>> = step
            .args
            .iter()
            .map(|a| match a {
                Ref::Const(k) => Some(&w.out.graph().consts[*k]).filter(|t| constant::is_literal(t)),
                _ => None,
            })
            .collect();
        let value = evaluate(step, &args?)?;
        Some(w.out.constant(value))
    })
}

/// The value of a step, if it is worth keeping. An operation that fails, such as a division of integers by zero, is left to fail when it is run.
fn evaluate(step: &Step, args: &[&Tensor]) -> Option<Tensor> {
    if matches!(step.op, Op::Block(_)) || args.is_empty() {
        return None;
    }
    let shape = &step.avals[0].shape;
    let splats = args.iter().all(|t| constant::is_splat(t));
    if splats && step.op.elementwise() {
        let one: Vec<Tensor> = args.iter().map(|t| constant::resized(t, Shape::default())).collect();
        let value = bind(step.op.clone(), &one.iter().collect::<Vec<_>>()).ok()?;
        let value = constant::compact(&value).unwrap_or(value);
        return Some(constant::resized(&value, shape.clone()));
    }
    // Reductions do not loop over a repeated element.
    let stays_one =
        splats && (step.op.is_view() || (step.op.reduction().is_some() && step.avals[0].dtype.is_float()));
    if shape.numel() > SMALL && !stays_one {
        return None;
    }
    let value = bind(step.op.clone(), args).ok()?;
    Some(constant::compact(&value).unwrap_or(value))
}
