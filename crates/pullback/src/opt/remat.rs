//! Rematerialisation: cheap values are computed again next to a late use, instead of being kept, so that a graph fits a limit of memory.
//!
//! The graph is written anew in its order, with a count of the bytes alive. Where a result would exceed the limit, the cheap value that is needed
//! last is forgotten, and computed again when it is needed; as registers are spilled, with arithmetic instead of memory. Values are
//! cheap if they are elementwise in inputs and in values that are alive anyway, by a few operations. Products, reductions and
//! loops are never done twice. The bits stay the same.

use super::measure::{bytes, inside, last_reads, peak, roots};
use crate::graph::{Builder, Graph, Ref, Step, effort};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The most operations that a value may be made of to be computed again.
const CHAIN: usize = 8;

/// The graph with values computed again, if that lowers its peak.
pub(super) fn remat(graph: &Graph, limit: usize) -> Graph {
    let new = Spill::new(graph, limit).written().pruned();
    if peak(&new) < peak(graph) { new } else { graph.clone() }
}

struct Spill<'a> {
    graph: &'a Graph,
    limit: usize,
    roots: Vec<Option<usize>>,
    /// The steps whose results lie in the memory of each step: itself, and its views.
    views: Vec<Vec<usize>>,
    /// Whether each step may be forgotten and computed again.
    cheap: Vec<bool>,
    /// The steps that read the memory of each step, the next one last; the length of the graph for an output.
    uses: Vec<Vec<usize>>,
    out: Builder,
    /// Where the results of each step are now.
    at: Vec<Option<Ref>>,
    /// The steps whose memory is alive, and its bytes.
    alive: Vec<bool>,
    live: usize,
    /// The cheap ones by their next use, the last one first; also entries that are not true any more.
    next: BinaryHeap<(usize, Reverse<usize>)>,
    /// What is needed for the step that is being written.
    pinned: Vec<usize>,
    is_pinned: Vec<bool>,
}

impl<'a> Spill<'a> {
    fn new(graph: &'a Graph, limit: usize) -> Spill<'a> {
        let roots = roots(graph);
        let cheap = cheap(graph, &last_reads(graph, &roots));
        let mut uses = vec![Vec::new(); graph.len()];
        let mut note = |a: &Ref, k: usize| {
            if let Ref::Step(j, _) = *a
                && let Some(root) = roots[j]
            {
                uses[root].push(k);
            }
        };
        graph.outputs.iter().for_each(|a| note(a, graph.len()));
        for (k, step) in graph.steps.iter().enumerate().rev() {
            if !step.op.is_view() {
                step.args.iter().for_each(|a| note(a, k));
            }
        }
        let mut views = vec![Vec::new(); graph.len()];
        roots.iter().enumerate().for_each(|(k, root)| root.iter().for_each(|&r| views[r].push(k)));
        let (out, at) = (Builder::like(graph), vec![None; graph.len()]);
        Spill {
            graph,
            limit,
            roots,
            views,
            cheap,
            uses,
            out,
            at,
            alive: vec![false; graph.len()],
            live: 0,
            next: BinaryHeap::new(),
            pinned: Vec::new(),
            is_pinned: vec![false; graph.len()],
        }
    }

    fn written(mut self) -> Graph {
        for k in 0..self.graph.len() {
            self.place(k);
            self.release(k);
        }
        let outputs: Vec<Ref> = self.graph.outputs.iter().map(|&a| self.value(a)).collect();
        let names = self.graph.names.iter().filter_map(|(n, a)| match *a {
            Ref::Step(k, slot) => self.at[k].map(|r| (n.clone(), r.slot(slot))),
            other => Some((n.clone(), other)),
        });
        let names = names.collect();
        self.out.finish(outputs, names)
    }

    /// A value, computed again if it was forgotten.
    fn value(&mut self, a: Ref) -> Ref {
        let Ref::Step(j, slot) = a else { return a };
        if self.at[j].is_none() {
            self.place(j);
        }
        self.roots[j].into_iter().for_each(|root| self.pin(root));
        self.at[j].expect("it was just placed").slot(slot)
    }

    /// Writes step `k`, in its turn or for the sake of a later one.
    fn place(&mut self, k: usize) {
        let step = &self.graph.steps[k];
        let args = step.args.iter().map(|&a| self.value(a)).collect();
        if self.roots[k] == Some(k) {
            self.make_room(bytes(self.graph, k) + inside(step));
            self.live += bytes(self.graph, k);
            self.alive[k] = true;
            self.pin(k);
            self.note_next(k);
        }
        self.at[k] = Some(self.out.place(Step { args, ..step.clone() }));
    }

    fn pin(&mut self, root: usize) {
        if !std::mem::replace(&mut self.is_pinned[root], true) {
            self.pinned.push(root);
        }
    }

    /// When a value is needed next. What was read by earlier steps has been taken off the list.
    fn next_use(&self, root: usize) -> usize {
        self.uses[root].last().copied().unwrap_or(usize::MAX)
    }

    fn note_next(&mut self, root: usize) {
        if self.cheap[root] {
            self.next.push((self.next_use(root), Reverse(root)));
        }
    }

    /// Forgets values, the one that is needed last first, until there is room or nothing more to forget.
    fn make_room(&mut self, bytes_more: usize) {
        let mut kept = Vec::new();
        while self.live + bytes_more > self.limit
            && let Some((use_, Reverse(root))) = self.next.pop()
        {
            effort::note(1);
            if !self.alive[root] || self.next_use(root) != use_ {
                continue;
            }
            match self.is_pinned[root] {
                true => kept.push((use_, Reverse(root))),
                false => self.forget(root),
            }
        }
        self.next.extend(kept);
    }

    fn forget(&mut self, root: usize) {
        self.drop(root);
        for &k in &self.views[root] {
            self.at[k] = None;
        }
    }

    fn drop(&mut self, root: usize) {
        self.alive[root] = false;
        self.live -= bytes(self.graph, root);
    }

    /// Lets go of what no later step needs. Only what this step has read or made can have had its last use.
    fn release(&mut self, now: usize) {
        for k in std::mem::take(&mut self.pinned) {
            effort::note(1);
            self.is_pinned[k] = false;
            if !self.alive[k] {
                continue;
            }
            while self.uses[k].last().is_some_and(|&u| u <= now) {
                self.uses[k].pop();
            }
            if !self.uses[k].is_empty() {
                self.note_next(k);
            } else if self.cheap[k] {
                // A cheap value can come back for the sake of another.
                self.forget(k);
            } else {
                self.drop(k);
            }
        }
    }
}

/// The steps that may be computed again: elementwise, by a short chain of such steps, from inputs and from values that live until their last use.
fn cheap(graph: &Graph, last: &[usize]) -> Vec<bool> {
    // For each step: how many operations make it again, and until when that is possible.
    let mut chains: Vec<(usize, usize)> = Vec::with_capacity(graph.len());
    let mut cheap = Vec::with_capacity(graph.len());
    for (k, step) in graph.steps.iter().enumerate() {
        let (mut length, mut until) = (1, usize::MAX);
        for a in &step.args {
            if let Ref::Step(j, _) = *a {
                length += chains[j].0;
                until = until.min(chains[j].1);
            }
        }
        let view = step.op.is_view();
        let again = step.op.elementwise() && !view && length <= CHAIN && until >= last[k];
        cheap.push(again);
        chains.push(match view || again {
            true => (length, until),
            false => (0, last[k]),
        });
    }
    cheap
}
