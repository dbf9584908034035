//! Writing a graph anew, operation by operation: what most passes are made of.

use super::measure::use_counts;
use super::pipeline::has_blocks;
use crate::dtype::Scalar;
use crate::graph::constant;
use crate::graph::{Body, Builder, Graph, Ref, Step, effort};
use crate::ops::{Aval, Op};
use crate::shape::Shape;
use smallvec::{SmallVec, smallvec};
use std::panic::Location;

/// The values that stand for the outputs of an operation.
pub(super) type Refs = SmallVec<[Ref; 1]>;

/// Stands for an output that nothing reads.
pub(super) const NOWHERE: Ref = Ref::Input(usize::MAX);

/// A graph that is being written anew. All references are to values of the new graph.
pub(super) struct Rewrite {
    pub out: Builder,
    /// How often the values of each new operation are read, as far as the old graph says.
    uses: Vec<usize>,
    location: &'static Location<'static>,
}

/// Writes the graph anew. The rule sees each operation with its operands in the new graph, and says what stands for its result; the operation
/// is copied if it has nothing to say. What is no longer needed is dropped.
pub(super) fn rewrite(graph: &Graph, mut rule: impl FnMut(&mut Rewrite, &Step) -> Option<Ref>) -> Graph {
    rewrite_all(graph, |w, step| rule(w, step).map(|r| smallvec![r]))
}

/// [`rewrite`] for operations of several outputs.
pub(super) fn rewrite_all(graph: &Graph, mut rule: impl FnMut(&mut Rewrite, &Step) -> Option<Refs>) -> Graph {
    effort::note(graph.len());
    let counts = use_counts(graph);
    let mut w = Rewrite { out: Builder::like(graph), uses: Vec::new(), location: Location::caller() };
    let mut map: Vec<Refs> = Vec::with_capacity(graph.len());
    let moved = |a: Ref, map: &[Refs]| match a {
        Ref::Step(k, slot) => map[k][slot],
        other => other,
    };
    for (k, step) in graph.steps.iter().enumerate() {
        let args = step.args.iter().map(|&a| moved(a, &map)).collect();
        let step = Step { args, ..step.clone() };
        w.location = step.location;
        let refs = rule(&mut w, &step).unwrap_or_else(|| w.place(step));
        for &r in &refs {
            w.note_uses(r, counts[k]);
        }
        map.push(refs);
    }
    let outputs = graph.outputs.iter().map(|&a| moved(a, &map)).collect();
    let names = graph.names.iter().map(|(n, a)| (n.clone(), moved(*a, &map)));
    let names = names.filter(|(_, a)| *a != NOWHERE).collect();
    w.out.finish(outputs, names).pruned()
}

/// [`rewrite_all`] by a rule that has something to say of blocks alone.
pub(super) fn rewrite_blocks(graph: &Graph, rule: impl FnMut(&mut Rewrite, &Step) -> Option<Refs>) -> Graph {
    if has_blocks(graph) { rewrite_all(graph, rule) } else { graph.clone() }
}

impl Rewrite {
    /// Adds a step as it is.
    pub fn place(&mut self, step: Step) -> Refs {
        let n = step.avals.len();
        let at = self.out.place(step);
        (0..n).map(|slot| at.slot(slot)).collect()
    }

    fn note_uses(&mut self, at: Ref, n: usize) {
        if let Ref::Step(k, _) = at {
            self.uses.resize(self.uses.len().max(k + 1), 0);
            self.uses[k] += n;
        }
    }

    /// Whether the value is read only once, so that it goes away with its reader. An input or a constant does not.
    pub fn single(&self, at: Ref) -> bool {
        match at {
            Ref::Step(k, _) => self.uses.get(k).is_none_or(|&n| n <= 1),
            _ => false,
        }
    }

    /// The operation of one output that makes a value.
    pub fn step(&self, at: Ref) -> Option<&Step> {
        match at {
            Ref::Step(k, _) => Some(&self.out.graph().steps[k]).filter(|s| !matches!(s.op, Op::Block(_))),
            _ => None,
        }
    }

    /// The operand of an operation of a kind.
    pub fn operand(&self, at: Ref, kind: impl FnOnce(&Op) -> bool) -> Option<Ref> {
        self.step(at).filter(|s| kind(&s.op)).map(|s| s.args[0])
    }

    pub fn aval(&self, at: Ref) -> Aval {
        self.out.graph().aval(at)
    }

    pub fn shape(&self, at: Ref) -> Shape {
        self.aval(at).shape
    }

    /// The number that is repeated over the whole of a constant.
    pub fn splat(&self, at: Ref) -> Option<f64> {
        self.out.graph().number(at)
    }

    /// A number repeated over a type.
    pub fn number(&mut self, v: f64, like: &Aval) -> Ref {
        let v = if like.dtype.is_differentiable() { Scalar::F64(v) } else { Scalar::I64(v as i64) };
        self.out.constant(crate::Tensor::full_of(v, like.dtype, like.shape.clone()))
    }

    /// A constant that repeats a number, in another shape.
    pub fn resized(&mut self, at: Ref, shape: &Shape) -> Ref {
        let Ref::Const(k) = at else { unreachable!("only constants repeat a number") };
        let value = constant::resized(&self.out.graph().consts[k], shape.clone());
        self.out.constant(value)
    }

    /// Adds a block that runs other graphs, which fits its operands.
    pub fn push_body(&mut self, body: Body, args: &[Ref]) -> Refs {
        let at = self.push(Op::Block(body.block()), args);
        let Ref::Step(k, _) = at else { unreachable!("an operation was added") };
        (0..self.out.graph().steps[k].avals.len()).map(|slot| at.slot(slot)).collect()
    }

    /// Adds an operation, which fits its operands.
    pub fn push(&mut self, op: impl Into<Op>, args: &[Ref]) -> Ref {
        self.out.push(op, args, self.location).expect("a rewrite keeps types")
    }
}
