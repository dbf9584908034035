//! What passes count of a graph: who reads what, and the memory that is alive while each operation runs.

use crate::graph::{Body, Graph, Ref, Step};
use crate::tensor::buffer::Buffer;
use smallvec::SmallVec;

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

/// Operations, those of the graphs inside included; a fused group is one.
pub(super) fn operations(graph: &Graph) -> usize {
    let body = |step: &Step| step.op.body().filter(|b| !matches!(b, Body::Fused(_)));
    let inside = |step: &Step| body(step).map_or(0, |b| b.bodies().iter().map(|g| operations(g)).sum());
    graph.len() + graph.steps.iter().map(inside).sum::<usize>()
}

/// Where the elements of a step's results lie: its own memory, or that of the step it is a view of; `None` for a view of an input.
pub(super) fn roots(graph: &Graph) -> Vec<Option<usize>> {
    let mut roots: Vec<Option<usize>> = Vec::with_capacity(graph.len());
    for (k, step) in graph.steps.iter().enumerate() {
        roots.push(match step.op.is_view() {
            false => Some(k),
            true => match step.args[0] {
                Ref::Step(j, _) => roots[j],
                _ => None,
            },
        });
    }
    roots
}

/// The bytes of a step's results, rounded as memory is.
pub(super) fn bytes(graph: &Graph, k: usize) -> usize {
    graph.steps[k].avals.iter().map(|a| Buffer::rounded(a.shape.numel() * a.dtype.size())).sum()
}

/// What a step of one result costs, in additions.
pub(super) fn work(graph: &Graph, step: &Step) -> u64 {
    let shapes: SmallVec<[_; 2]> = step.args.iter().map(|&a| graph.aval(a).shape).collect();
    let shapes: SmallVec<[&[usize]; 2]> = shapes.iter().map(|s| &**s).collect();
    step.op.flops(&shapes, &step.avals[0].shape)
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

/// The bytes alive inside of an operation that runs other graphs. Inside of a fused group there are only tiles.
pub(super) fn inside(step: &Step) -> usize {
    let body = step.op.body().filter(|r| !matches!(r, Body::Fused(_)));
    body.map_or(0, |r| r.bodies().into_iter().map(|b| peak(b)).max().unwrap_or(0))
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
        let now = live + inside(step);
        live -= dying[k];
        now
    };
    graph.steps.iter().enumerate().map(during).collect()
}

/// The most bytes alive at once.
pub(super) fn peak(graph: &Graph) -> usize {
    profile(graph).into_iter().max().unwrap_or(0)
}
