//! A graph made ready to run: fused, in slots that are used again when their value is no longer needed.

use super::builder::Builder;
use super::graph::{Comparison, Graph, Op};
use std::sync::OnceLock;

/// One step: `slots[dst] = op(slots[a], slots[b], slots[c])`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub op: Op,
    pub dst: u32,
    pub args: [u32; 3],
}

/// A comparison to check once both sides are computed, before step number `before`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Check {
    pub before: usize,
    pub comparison: Comparison,
    pub a: u32,
    pub b: u32,
    pub outcome: bool,
    pub guard: usize,
}

/// The steps of a function over numbered slots.
#[derive(Debug)]
pub(super) struct Program {
    pub slots: usize,
    /// Constants and their slots, which nothing else uses.
    pub constants: Vec<(f64, u32)>,
    /// Inputs, in their order, and the slots they are loaded to.
    pub inputs: Vec<(u32, u32)>,
    pub steps: Vec<Step>,
    pub checks: Vec<Check>,
    /// The slots of the outputs.
    pub outputs: Vec<u32>,
}

/// Replaces products that are only added to something by fused operations. The fused product stays in the graph, unread.
fn fuse(graph: &Graph) -> Graph {
    let mut uses = vec![0u32; graph.nodes.len()];
    for &a in graph.nodes.iter().flat_map(|n| n.reads()) {
        uses[a as usize] += 1;
    }
    for &a in graph.outputs.iter().chain(graph.guards.iter().flat_map(|g| [&g.a, &g.b])) {
        uses[a as usize] += 1;
    }
    let mut fused = graph.clone();
    for k in 0..graph.nodes.len() {
        let node = graph.nodes[k];
        let product = |a: u32| {
            let n = graph.nodes[a as usize];
            (n.op == Op::Mul && uses[a as usize] == 1).then_some(n.args)
        };
        let [a, b, _] = node.args;
        let replacement = match node.op {
            Op::Add if a != b => match (product(a), product(b)) {
                (_, Some([x, y, _])) => Some((Op::MulAdd, [x, y, a])),
                (Some([x, y, _]), None) => Some((Op::MulAdd, [x, y, b])),
                _ => None,
            },
            Op::Sub if a != b => match (product(a), product(b)) {
                (_, Some([x, y, _])) => Some((Op::NegMulAdd, [x, y, a])),
                (Some([x, y, _]), None) => Some((Op::MulSub, [x, y, b])),
                _ => None,
            },
            _ => None,
        };
        if let Some((op, args)) = replacement {
            fused.nodes[k].op = op;
            fused.nodes[k].args = args;
        }
    }
    fused.pruned()
}

/// The same graph with its nodes in the order in which the outputs need them: a value is computed shortly before its first
/// use, so that fewer are alive at a time than in the order of recording, where all values come before all derivatives.
fn scheduled(graph: &Graph) -> Graph {
    let mut place = vec![u32::MAX; graph.nodes.len()];
    let mut order = Vec::with_capacity(graph.nodes.len());
    let mut stack: Vec<(u32, bool)> = Vec::new();
    let roots = graph.guards.iter().flat_map(|g| [g.a, g.b]).chain(graph.outputs.iter().copied());
    for root in roots {
        stack.push((root, false));
        while let Some((k, ready)) = stack.pop() {
            if place[k as usize] != u32::MAX {
                continue;
            }
            if ready {
                place[k as usize] = order.len() as u32;
                order.push(k);
            } else {
                stack.push((k, true));
                stack.extend(graph.nodes[k as usize].reads().iter().rev().map(|&a| (a, false)));
            }
        }
    }
    let mut new = graph.clone();
    new.nodes = order.iter().map(|&k| graph.nodes[k as usize]).collect();
    new.values = order.iter().map(|&k| graph.values[k as usize]).collect();
    for node in &mut new.nodes {
        let arity = node.op.arity();
        node.args[..arity].iter_mut().for_each(|a| *a = place[*a as usize]);
    }
    new.outputs.iter_mut().for_each(|y| *y = place[*y as usize]);
    for guard in &mut new.guards {
        (guard.a, guard.b) = (place[guard.a as usize], place[guard.b as usize]);
    }
    new
}

/// The ways to run a function: with plain products, and with those of the chain rule where a result of the former is NaN. A zero that
/// met an infinity is found that way, and the others pay nothing for it.
#[derive(Debug)]
pub(super) struct Programs {
    pub plain: Program,
    graph: Option<Graph>,
    kept: usize,
    careful: OnceLock<Program>,
}

impl Programs {
    /// Programs that leave the slots of the first `kept` inputs as they are, so that they need to be loaded once only.
    pub fn new(graph: &Graph, kept: usize) -> Programs {
        let plain = Builder::plain(graph);
        Programs {
            plain: Program::with_kept_inputs(plain.as_ref().unwrap_or(graph), kept),
            graph: plain.is_some().then(|| graph.clone()),
            kept,
            careful: OnceLock::new(),
        }
    }

    /// The program to run again where results are NaN, if it is another.
    pub fn careful(&self) -> Option<&Program> {
        let graph = self.graph.as_ref()?;
        Some(self.careful.get_or_init(|| Program::with_kept_inputs(graph, self.kept)))
    }
}

impl Program {
    fn with_kept_inputs(graph: &Graph, kept: usize) -> Program {
        let graph = scheduled(&fuse(graph));
        let n = graph.nodes.len();
        let mut last_use = vec![0usize; n];
        for (k, node) in graph.nodes.iter().enumerate() {
            node.reads().iter().for_each(|&a| last_use[a as usize] = k);
        }
        // A guard is checked as soon as both sides are there.
        let mut checked_after = vec![Vec::new(); n];
        for (k, g) in graph.guards.iter().enumerate() {
            let at = g.a.max(g.b) as usize;
            checked_after[at].push(k);
            for x in [g.a, g.b] {
                last_use[x as usize] = last_use[x as usize].max(at);
            }
        }
        graph.outputs.iter().for_each(|&y| last_use[y as usize] = usize::MAX);

        let mut program = Program {
            slots: 0,
            constants: vec![],
            inputs: vec![],
            steps: vec![],
            checks: vec![],
            outputs: vec![],
        };
        let mut slot = vec![u32::MAX; n];
        let mut free: Vec<u32> = Vec::new();
        // Constants and inputs are there from the start, whatever their place in the graph.
        for (k, node) in graph.nodes.iter().enumerate().filter(|(_, node)| node.op.arity() == 0) {
            slot[k] = program.slots as u32;
            program.slots += 1;
            if node.op == Op::Constant {
                last_use[k] = usize::MAX;
                program.constants.push((graph.constants[node.args[0] as usize], slot[k]));
            } else {
                if (node.args[0] as usize) < kept {
                    last_use[k] = usize::MAX;
                }
                program.inputs.push((node.args[0], slot[k]));
            }
        }
        program.inputs.sort_unstable();
        for (k, node) in graph.nodes.iter().enumerate() {
            if node.op.arity() > 0 {
                // A destination is never one of the sources, so that loops over lanes need not fear overlap.
                slot[k] = free.pop().unwrap_or_else(|| {
                    program.slots += 1;
                    program.slots as u32 - 1
                });
                let mut args = [0; 3];
                for (to, &a) in args.iter_mut().zip(node.reads()) {
                    *to = slot[a as usize];
                }
                program.steps.push(Step { op: node.op, dst: slot[k], args });
            }
            for &g in &checked_after[k] {
                let guard = graph.guards[g];
                program.checks.push(Check {
                    before: program.steps.len(),
                    comparison: guard.comparison,
                    a: slot[guard.a as usize],
                    b: slot[guard.b as usize],
                    outcome: guard.outcome,
                    guard: g,
                });
            }
            let mut done: Vec<u32> = node.reads().to_vec();
            done.extend(checked_after[k].iter().flat_map(|&g| [graph.guards[g].a, graph.guards[g].b]));
            done.push(k as u32);
            done.sort_unstable();
            done.dedup();
            // A value that nothing reads is freed where it was made.
            free.extend(done.iter().filter(|&&a| last_use[a as usize] <= k).map(|&a| slot[a as usize]));
        }
        program.outputs = graph.outputs.iter().map(|&y| slot[y as usize]).collect();
        program
    }
}
