//! Common subexpressions: equal operations on equal operands are done once, equal constants are one.

use super::Options;
use super::rewrite::{Refs, rewrite_all};
use crate::graph::constant;
use crate::graph::{Body, Graph, Ref, Step};
use crate::ops::Op;
use crate::shape::Shape;
use smallvec::SmallVec;
use std::collections::HashMap;

pub(super) fn cse(graph: &Graph, _: &Options) -> Graph {
    let graph = with_one_of_each_constant(graph);
    let mut seen: HashMap<(&'static str, SmallVec<[Ref; 2]>), Vec<Refs>> = HashMap::new();
    rewrite_all(&graph, |w, step| {
        let known = seen.entry((step.op.name(), operands(step))).or_default();
        let equal = known.iter().find(|refs| match refs[0] {
            Ref::Step(k, _) => same_op(&w.out.graph().steps[k].op, &step.op),
            _ => false,
        });
        if let Some(refs) = equal {
            return Some(refs.clone());
        }
        let refs = w.place(step.clone());
        if !refs.is_empty() {
            known.push(refs.clone());
        }
        Some(refs)
    })
}

/// The operands, in one order for operations that give the same bits in both.
pub(super) fn operands(step: &Step) -> SmallVec<[Ref; 2]> {
    let mut args = step.args.clone();
    if step.op.commutes() {
        args.sort_unstable_by_key(|a| match *a {
            Ref::Input(k) => (0, k, 0),
            Ref::Const(k) => (1, k, 0),
            Ref::Step(k, slot) => (2, k, slot),
        });
    }
    args
}

/// Whether two operations do the same.
pub(super) fn same_op(a: &Op, b: &Op) -> bool {
    match (a, b) {
        // Equal bounds may be zeros of different signs.
        (Op::Clamp(c), Op::Clamp(d)) => {
            c.low.to_bits() == d.low.to_bits() && c.high.to_bits() == d.high.to_bits()
        }
        (Op::Block(x), Op::Block(y)) => {
            let bodies = a.body().zip(b.body());
            a == b || (x.name() == y.name() && bodies.is_some_and(|(a, b)| same_body(&a, &b)))
        }
        _ => a == b,
    }
}

fn same_body(a: &Body, b: &Body) -> bool {
    a.name() == b.name()
        && a.attributes() == b.attributes()
        && a.bodies().iter().zip(b.bodies()).all(|(a, b)| std::sync::Arc::ptr_eq(a, b) || same_graph(a, b))
}

/// Whether two graphs are the same, operation by operation.
pub(super) fn same_graph(a: &Graph, b: &Graph) -> bool {
    a.inputs == b.inputs
        && a.outputs == b.outputs
        && a.len() == b.len()
        && a.consts.len() == b.consts.len()
        && a.consts.iter().zip(&b.consts).all(|(a, b)| constant::equal(a, b))
        && a.steps
            .iter()
            .zip(&b.steps)
            .all(|(a, b)| a.args == b.args && a.avals == b.avals && same_op(&a.op, &b.op))
}

fn with_one_of_each_constant(graph: &Graph) -> Graph {
    let mut graph = graph.clone();
    let mut seen: HashMap<(Shape, Vec<u64>), Vec<usize>> = HashMap::new();
    let mut first: Vec<usize> = (0..graph.consts.len()).collect();
    for (k, c) in graph.consts.iter().enumerate() {
        let key = constant::words(c).unwrap_or_else(|| vec![c.address()]);
        let alike = seen.entry((c.node().shape.clone(), key)).or_default();
        match alike.iter().find(|&&j| constant::equal(&graph.consts[j], c)) {
            Some(&j) => first[k] = j,
            None => alike.push(k),
        }
    }
    let moved = |a: &mut Ref| {
        if let Ref::Const(k) = *a {
            *a = Ref::Const(first[k]);
        }
    };
    graph.steps.iter_mut().flat_map(|s| s.args.iter_mut()).for_each(moved);
    graph.outputs.iter_mut().for_each(moved);
    graph
}
