//! Functions written out where most of their work is done anyway: `gelu(x)`, whose derivative needs the same error function, `x sigmoid(x)`,
//! or `a ln(b)` beside the logarithm.

use super::Options;
use super::cse::{cse, operands, same_op};
use super::fuse::fuse;
use super::inline::spliced;
use super::measure::{peak, work};
use super::pipeline::Target;
use super::rewrite::rewrite;
use crate::graph::constant;
use crate::graph::{Graph, Ref, Step, trace_leaves};
use crate::shape::Shape;
use smallvec::SmallVec;
use std::collections::HashMap;

/// At least three quarters of the work must be done already: this many parts for each one that is left.
const MIN_SHARED_RATIO: u64 = 3;

/// The graph with such functions written out. It has less work, but more operations and often more values that are kept: that pays only
/// where fusion takes care of both.
pub(super) fn share(graph: &Graph, target: &Target) -> Graph {
    let Some(shared) = written_out(graph) else { return graph.clone() };
    let (before, after) = (fuse(graph, target), fuse(&shared, target));
    if after.len() <= before.len() && peak(&after) <= peak(&before) { shared } else { graph.clone() }
}

/// The graph with such functions written out, if there are some.
fn written_out(graph: &Graph) -> Option<Graph> {
    let values = Values::new(graph);
    let (mut steps, mut changed) = (graph.steps.iter(), false);
    let shared = rewrite(graph, |w, step| {
        let old = steps.next().expect("the rule sees every operation once");
        let formula = formula(graph, old)?;
        if values.left(&formula, &old.args) * (MIN_SHARED_RATIO + 1) > work(graph, old) {
            return None;
        }
        changed = true;
        spliced(w, &formula, &step.args).first().copied()
    });
    // What there was of a formula becomes one with it.
    changed.then(|| cse(&shared, &Options::default()))
}

/// What an operation does, in simpler ones. Operators and other cheap operations are not worth asking.
fn formula(graph: &Graph, step: &Step) -> Option<Graph> {
    let cheap = MIN_SHARED_RATIO * step.avals.first()?.shape.numel() as u64;
    if !step.op.elementwise() || !step.avals[0].dtype.is_float() || work(graph, step) <= cheap {
        return None;
    }
    let inputs = step.args.iter().map(|&a| graph.aval(a)).collect();
    let mut formula = trace_leaves(|x| Ok(step.op.formula(x).into_iter().collect()), inputs).ok()?;
    formula.steps.iter_mut().for_each(|s| s.location = step.location);
    (!formula.outputs.is_empty()).then_some(formula)
}

/// The values of a graph, to be found by how they are computed.
struct Values<'a> {
    graph: &'a Graph,
    steps: HashMap<(&'static str, SmallVec<[Ref; 2]>), Vec<usize>>,
    /// The constants that formulas may need: by their elements.
    consts: HashMap<(Shape, Vec<u64>), Vec<usize>>,
}

impl<'a> Values<'a> {
    fn new(graph: &'a Graph) -> Self {
        let mut steps: HashMap<_, Vec<usize>> = HashMap::new();
        for (k, step) in graph.steps.iter().enumerate().filter(|(_, s)| s.op.elementwise()) {
            steps.entry((step.op.name(), operands(step))).or_default().push(k);
        }
        let mut consts: HashMap<_, Vec<usize>> = HashMap::new();
        for (k, c) in graph.consts.iter().enumerate() {
            if let Some(words) = constant::words(c) {
                consts.entry((c.node().shape.clone(), words)).or_default().push(k);
            }
        }
        Values { graph, steps, consts }
    }

    /// The work of a formula, but for what the graph computes of it.
    fn left(&self, formula: &Graph, args: &[Ref]) -> u64 {
        let consts: Vec<Option<Ref>> = formula.consts.iter().map(|c| self.constant(c)).collect();
        let mut found: Vec<Option<Ref>> = Vec::new();
        let mut left = 0;
        for step in &formula.steps {
            let to = |&a: &Ref| match a {
                Ref::Input(k) => Some(args[k]),
                Ref::Const(k) => consts[k],
                Ref::Step(k, _) => found[k],
            };
            let args: Option<SmallVec<[Ref; 2]>> = step.args.iter().map(to).collect();
            let at = args.and_then(|args| self.find(&Step { args, ..step.clone() }));
            left += if at.is_some() { 0 } else { work(formula, step) };
            found.push(at);
        }
        left
    }

    fn constant(&self, value: &crate::Tensor) -> Option<Ref> {
        let alike = self.consts.get(&(value.node().shape.clone(), constant::words(value)?))?;
        let mut alike = alike.iter().copied();
        alike.find(|&k| constant::equal(&self.graph.consts[k], value)).map(Ref::Const)
    }

    fn find(&self, step: &Step) -> Option<Ref> {
        let alike = self.steps.get(&(step.op.name(), operands(step)))?;
        alike.iter().find(|&&k| same_op(&self.graph.steps[k].op, &step.op)).map(|&k| Ref::Step(k, 0))
    }
}
