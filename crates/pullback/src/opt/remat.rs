//! Rematerialisation: cheap values are computed again next to a late use, instead of being kept, until the graph fits a limit of memory.

use super::measure::{bytes, is_view, last_reads, profile, roots};
use crate::graph::{Graph, Ref, Step};
use crate::ops::Op;
use std::collections::HashMap;

/// How many values are tried at a peak, and how many operations a value may be made of when it is computed again.
const TRIES: usize = 8;
const CHAIN: usize = 8;

/// Computes elementwise values again where that lowers the peak, until it is within the limit or nothing helps. Products, reductions
/// and loops are never done twice. The bits stay the same.
pub(super) fn remat(graph: &Graph, limit: usize) -> Graph {
    let mut graph = graph.clone();
    // The first is the one to lower; the second, how often it is reached, tells progress from none where there are several.
    let height = |g: &Graph| {
        let profile = profile(g);
        let most = profile.iter().copied().max().unwrap_or(0);
        (
            most,
            profile.iter().filter(|&&n| n == most).count(),
            profile.iter().position(|&n| n == most).unwrap_or(0),
        )
    };
    let mut now = height(&graph);
    // Each round makes the pair smaller, so that there is an end; a limit on the rounds bounds the time.
    for _ in 0..2 * graph.len() {
        if now.0 <= limit {
            break;
        }
        let better = candidates(&graph, now.2).into_iter().take(TRIES).find_map(|k| {
            let next = recomputed(&graph, k, now.2)?;
            let height = height(&next);
            ((height.0, height.1) < (now.0, now.1)).then_some((next, height))
        });
        let Some((next, height)) = better else { break };
        (graph, now) = (next, height);
    }
    graph
}

fn is_cheap(op: &Op) -> bool {
    op.elementwise() || is_view(op)
}

/// Cheap values that are only kept while step `at` runs, the largest first.
fn candidates(graph: &Graph, at: usize) -> Vec<usize> {
    let last = last_reads(graph, &roots(graph));
    let reads = |k: usize| graph.steps[at].args.iter().any(|a| matches!(a, Ref::Step(j, _) if *j == k));
    let mut all: Vec<usize> = (0..at)
        .filter(|&k| last[k] > at && last[k] < graph.len() && !reads(k))
        .filter(|&k| is_cheap(&graph.steps[k].op) && !is_view(&graph.steps[k].op))
        .collect();
    all.sort_by_key(|&k| std::cmp::Reverse(bytes(graph, k)));
    all
}

/// The graph in which value `k` is computed again before its first use after step `at`. `None` if that takes too many operations.
fn recomputed(graph: &Graph, k: usize, at: usize) -> Option<Graph> {
    let roots = roots(graph);
    let last = last_reads(graph, &roots);
    let lies_in = |a: &Ref| matches!(a, Ref::Step(j, _) if roots[*j] == Some(k));
    let first = (at + 1..graph.len())
        .find(|&u| !is_view(&graph.steps[u].op) && graph.steps[u].args.iter().any(lies_in))?;
    let mut copies = Copies {
        graph,
        roots: &roots,
        last: &last,
        of: k,
        before: first,
        steps: Vec::new(),
        made: HashMap::new(),
    };
    // Views that come after are made again from the copy, so they count as uses too.
    let mut late: Vec<Ref> = Vec::new();
    for step in &graph.steps[first..] {
        late.extend(step.args.iter().filter(|a| lies_in(a) && matches!(a, Ref::Step(j, _) if *j < first)));
    }
    for a in late {
        copies.copy(a)?;
    }
    let Copies { steps, made, .. } = copies;
    let added = steps.len();
    let moved = |a: &Ref| match *a {
        Ref::Step(j, slot) if j >= first => Ref::Step(j + added, slot),
        other => made.get(&other).copied().unwrap_or(other),
    };
    let mut out = graph.clone();
    for step in &mut out.steps[first..] {
        step.args.iter_mut().for_each(|a| *a = moved(a));
    }
    let shifted = |a: &Ref| match *a {
        Ref::Step(j, slot) if j >= first => Ref::Step(j + added, slot),
        other => other,
    };
    out.outputs.iter_mut().for_each(|a| *a = shifted(a));
    out.names.iter_mut().for_each(|(_, a)| *a = shifted(a));
    out.steps.splice(first..first, steps);
    Some(out.pruned())
}

/// Copies of values, to stand before a step.
struct Copies<'a> {
    graph: &'a Graph,
    roots: &'a [Option<usize>],
    last: &'a [usize],
    /// The value that is no longer there.
    of: usize,
    before: usize,
    steps: Vec<Step>,
    made: HashMap<Ref, Ref>,
}

impl Copies<'_> {
    /// The value where it is wanted: itself if it is there anyway or is not cheap, else a copy.
    fn copy(&mut self, a: Ref) -> Option<Ref> {
        let Ref::Step(j, _) = a else { return Some(a) };
        if let Some(&made) = self.made.get(&a) {
            return Some(made);
        }
        let there = match self.roots[j] {
            None => true,
            Some(root) => {
                root != self.of && (self.last[root] >= self.before || !is_cheap(&self.graph.steps[root].op))
            }
        };
        if there || !is_cheap(&self.graph.steps[j].op) {
            return Some(a);
        }
        if self.steps.len() >= CHAIN {
            return None;
        }
        let step = &self.graph.steps[j];
        let args = step.args.iter().map(|&a| self.copy(a)).collect::<Option<_>>()?;
        self.steps.push(Step { args, ..step.clone() });
        let made = Ref::Step(self.before + self.steps.len() - 1, 0);
        self.made.insert(a, made);
        Some(made)
    }
}
