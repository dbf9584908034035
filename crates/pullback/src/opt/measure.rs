//! What a graph costs, counted without running it: by this passes judge each other, and `optimize` judges itself.

use crate::graph::{Graph, Ref, Region, Step};
use crate::ops::Op;
use crate::shape::Shape;
use smallvec::SmallVec;

/// The cost of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Operations, those of the graphs inside of loops and branches included, each once.
    pub operations: usize,
    /// Arithmetic, in additions; an element that is moved counts as one. Views cost nothing; loops count every step.
    pub work: u64,
    /// The most bytes of results that are alive at once, in the order of the graph.
    pub peak: usize,
}

impl Cost {
    /// Whether nothing of it is more. A power may become several products, which are less work.
    pub(super) fn within(&self, limit: &Cost, fast_math: bool) -> bool {
        (fast_math || self.operations <= limit.operations)
            && self.work <= limit.work
            && self.peak <= limit.peak
    }
}

/// Whether the result is the input seen another way, so that it needs neither work nor memory.
pub(super) fn is_view(op: &Op) -> bool {
    matches!(
        op,
        Op::Identity(_)
            | Op::StopGradient(_)
            | Op::Reshape(_)
            | Op::Permute(_)
            | Op::Broadcast(_)
            | Op::Slice(_)
    )
}

/// How many operations read the values of each operation, and one more for each output that it is.
pub(super) fn use_counts(graph: &Graph) -> Vec<usize> {
    let mut counts = vec![0; graph.len()];
    for step in &graph.steps {
        for (k, a) in step.args.iter().enumerate() {
            if let Ref::Step(j, _) = *a
                && !step.args[..k].contains(a)
            {
                counts[j] += 1;
            }
        }
    }
    for a in &graph.outputs {
        if let Ref::Step(j, _) = *a {
            counts[j] += 1;
        }
    }
    counts
}

/// Operations, those of the graphs inside included.
pub(super) fn operations(graph: &Graph) -> usize {
    let inside = |step: &Step| step.op.region().map_or(0, |r| r.bodies().iter().map(|b| operations(b)).sum());
    graph.len() + graph.steps.iter().map(inside).sum::<usize>()
}

pub(super) fn cost(graph: &Graph) -> Cost {
    Cost { operations: operations(graph), work: work(graph), peak: peak(graph) }
}

fn work(graph: &Graph) -> u64 {
    let mut total = 0;
    for step in &graph.steps {
        if let Some(region) = step.op.region() {
            let most = region.bodies().into_iter().map(|b| work(b)).max().unwrap_or(0);
            total += match region {
                Region::Scan { from, to, .. } => most * (to - from) as u64,
                _ => most,
            };
            continue;
        }
        if !is_view(&step.op) && !matches!(step.op, Op::Block(_)) {
            let shapes: SmallVec<[Shape; 3]> = step.args.iter().map(|&a| graph.aval(a).shape).collect();
            let shapes: SmallVec<[&[usize]; 3]> = shapes.iter().map(|s| &s[..]).collect();
            total += step.op.flops(&shapes, &step.avals[0].shape);
        }
    }
    total
}

/// Where the elements of a step's results lie: its own memory, or that of the step it is a view of; `None` for a view of an input.
pub(super) fn roots(graph: &Graph) -> Vec<Option<usize>> {
    let mut roots: Vec<Option<usize>> = Vec::with_capacity(graph.len());
    for (k, step) in graph.steps.iter().enumerate() {
        roots.push(match is_view(&step.op) {
            false => Some(k),
            true => match step.args[0] {
                Ref::Step(j, _) => roots[j],
                _ => None,
            },
        });
    }
    roots
}

/// The bytes of a step's results.
pub(super) fn bytes(graph: &Graph, k: usize) -> usize {
    graph.steps[k].avals.iter().map(|a| a.shape.numel() * a.dtype.size()).sum()
}

/// The last step that reads the memory of each step; the length of the graph if an output does.
pub(super) fn last_reads(graph: &Graph, roots: &[Option<usize>]) -> Vec<usize> {
    let mut last: Vec<usize> = (0..graph.len()).collect();
    let mut read = |a: &Ref, at: usize| {
        if let Ref::Step(j, _) = *a
            && let Some(root) = roots[j]
        {
            last[root] = at;
        }
    };
    for (k, step) in graph.steps.iter().enumerate() {
        step.args.iter().for_each(|a| read(a, k));
    }
    graph.outputs.iter().for_each(|a| read(a, graph.len()));
    last
}

/// The bytes alive while each step runs. Inputs and constants are not counted.
pub(super) fn profile(graph: &Graph) -> Vec<usize> {
    let roots = roots(graph);
    let last = last_reads(graph, &roots);
    let mut dying = vec![0; graph.len() + 1];
    let mut live = 0;
    let during = |(k, step): (usize, &Step)| {
        if roots[k] == Some(k) {
            live += bytes(graph, k);
            dying[last[k]] += bytes(graph, k);
        }
        let inside =
            step.op.region().map_or(0, |r| r.bodies().into_iter().map(|b| peak(b)).max().unwrap_or(0));
        let now = live + inside;
        live -= dying[k];
        now
    };
    graph.steps.iter().enumerate().map(during).collect()
}

/// The most bytes alive at once.
pub(super) fn peak(graph: &Graph) -> usize {
    profile(graph).into_iter().max().unwrap_or(0)
}
