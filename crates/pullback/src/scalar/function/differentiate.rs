//! Derivatives of a recorded function as more operations of the same kind, by the partials of the elementwise table.

use super::graph::{Graph, Op};
use super::symbol::{Symbol, existing};
use crate::scalar::Real;
use crate::scalar::slope::{self, Slope};
use pullback_table::elementwise_table;

macro_rules! slopes_by_row {
    ($($(#[$doc:meta])* $P:ident $m:ident $try:ident($($x:ident),+) = $value:tt;
        d = $d:tt; reads $([$($r:ident)*])+; $facts:tt)*) => {
        /// The partial derivatives of a row, as operations appended to the graph being built.
        fn slopes(op: Op, x: &[Symbol], y: Symbol) -> [Slope<Symbol>; 2] {
            match op {
                $(Op::$P => slopes_by_row!(@call $m x y $($x)+),)*
                Op::Chain => [Slope::Of(x[1]), Slope::Of(x[0])],
                _ => [Slope::Zero, Slope::Zero],
            }
        }
    };
    (@call $m:ident $args:ident $y:ident $x:ident) => {{
        let [p] = slope::$m($args[0], $y);
        [p, Slope::Zero]
    }};
    (@call $m:ident $args:ident $y:ident $a:ident $b:ident) => { slope::$m($args[0], $args[1], $y) };
}
elementwise_table!(slopes_by_row);

/// The arguments of a node.
fn arguments(graph: &Graph, k: usize) -> Vec<Symbol> {
    graph.nodes[k].reads().iter().map(|&a| existing(a)).collect()
}

/// Pulls cotangents of nodes of `graph` back to its inputs; `None` where an input gets nothing.
///
/// The builder must have started with `graph`.
pub(super) fn pull(graph: &Graph, seeds: &[(u32, Symbol)]) -> Vec<Option<Symbol>> {
    let mut cotangents: Vec<Option<Symbol>> = vec![None; graph.nodes.len()];
    let add = |to: &mut Option<Symbol>, g: Symbol| *to = Some(to.map_or(g, |sum| sum + g));
    for &(node, g) in seeds {
        add(&mut cotangents[node as usize], g);
    }
    let mut inputs = vec![None; graph.inputs];
    for k in (0..graph.nodes.len()).rev() {
        let Some(g) = cotangents[k] else { continue };
        let node = graph.nodes[k];
        match node.op {
            Op::Input => inputs[node.args[0] as usize] = Some(g),
            Op::Select => {
                let (mask, zero) = (existing(node.args[0]), Symbol::constant(0.0));
                add(&mut cotangents[node.args[1] as usize], mask.choose(g, zero));
                add(&mut cotangents[node.args[2] as usize], mask.choose(zero, g));
            }
            op if op.arity() == 0 => {}
            op => {
                let x = arguments(graph, k);
                let p = slopes(op, &x, existing(k as u32));
                for ((&a, x), p) in node.reads().iter().zip(x).zip(p) {
                    if !matches!(p, Slope::Zero) && x.node().is_some() {
                        add(&mut cotangents[a as usize], p.times(g));
                    }
                }
            }
        }
    }
    inputs
}

/// Pushes tangents of the inputs of `graph` forward to its nodes; `None` where a node gets nothing.
///
/// The builder must have started with `graph`.
pub(super) fn push(graph: &Graph, inputs: &[Option<Symbol>]) -> Vec<Option<Symbol>> {
    let mut tangents: Vec<Option<Symbol>> = vec![None; graph.nodes.len()];
    for (k, node) in graph.nodes.iter().enumerate() {
        tangents[k] = match node.op {
            Op::Input => inputs[node.args[0] as usize],
            Op::Select => {
                let [mask, a, b] = node.args;
                match (tangents[a as usize], tangents[b as usize]) {
                    (None, None) => None,
                    (a, b) => Some(existing(mask).choose(a.unwrap_or_default(), b.unwrap_or_default())),
                }
            }
            op if op.arity() == 0 => None,
            _ if node.reads().iter().all(|&a| tangents[a as usize].is_none()) => None,
            op => {
                let p = slopes(op, &arguments(graph, k), existing(k as u32));
                let terms = node.reads().iter().zip(p).filter_map(|(&a, p)| match p {
                    Slope::Zero => None,
                    p => tangents[a as usize].map(|t| p.times(t)),
                });
                terms.reduce(|a, b| a + b)
            }
        };
    }
    tangents
}
