//! Fusion: elementwise operations and reductions over one iteration space become one operation.
//!
//! Groups grow along the edges of the graph, slices and pads among them, then between operations that read the same value, as long as
//! the backend can run them [as one](Fusion) and no value would have to be computed both before and after it. A value that is used outside of its group is an
//! output of it. So forward and backward passes of an elementwise function become one group, an optimiser's update of a tensor
//! another, and a softmax or a normalisation a third.

use super::pipeline::Target;
use super::{Options, dce};
use crate::graph::operands::{Operands, moved, operands, repeated};
use crate::graph::{Builder, Fused, Graph, Ref, Step, effort};
use crate::ops::Op;
use order::{Order, step_of};
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap};
use std::sync::Arc;

mod order;
mod preaccumulate;
mod recompute;
#[cfg(test)]
mod tests;

/// Most operations of a group, and most values that it reads: beyond these its registers would leave the cache.
const MAX_MEMBERS: usize = 96;
const MAX_INPUTS: usize = 32;

/// Operations that read the same value at places no farther apart than this gain from being one group.
const NEARBY: usize = 64;

/// What a backend can run as one kernel.
pub(crate) trait Fusion {
    /// Whether a step can be part of a group at all.
    fn can_join(&self, graph: &Graph, step: usize) -> bool;

    /// Whether these steps, which rise and can all [join](Fusion::can_join), can be one group.
    fn is_group(&self, graph: &Graph, operands: &Operands, members: &[usize]) -> bool;
}

/// The graph with its operations grouped. It never has more of them.
pub(super) fn fuse(graph: &Graph, target: &Target) -> Graph {
    let groups = Groups::new(graph, target.backend);
    if let Some(copied) = groups.with_copies(target.spare) {
        let copied = Groups::new(&copied, target.backend);
        if copied.len() <= groups.len() {
            return copied.rebuilt();
        }
    }
    groups.rebuilt()
}

struct Groups<'a> {
    graph: &'a Graph,
    backend: &'a dyn Fusion,
    operands: Operands,
    /// The steps that read the result of each, through views or not.
    readers: Vec<Vec<usize>>,
    /// The steps of which each is an operand as it is.
    users: Vec<Vec<usize>>,
    is_output: Vec<bool>,
    /// The group of each step, named by one of its members.
    group: Vec<usize>,
    members: Vec<Vec<usize>>,
    can: Vec<bool>,
    /// Which steps only say how their operand is read.
    moves: Vec<bool>,
    /// The place of each step in the order of all: its own, unless it was moved.
    place: Vec<usize>,
    /// The order of the groups, while they grow.
    order: Order,
}

impl<'a> Groups<'a> {
    fn new(graph: &'a Graph, backend: &'a dyn Fusion) -> Self {
        let operands = operands(graph);
        let mut readers = vec![Vec::new(); graph.len()];
        for (k, list) in operands.iter().enumerate() {
            for (base, _) in list {
                if let Ref::Step(p, _) = *base
                    && readers[p].last() != Some(&k)
                {
                    readers[p].push(k);
                }
            }
        }
        let mut users = vec![Vec::new(); graph.len()];
        for (k, step) in graph.steps.iter().enumerate() {
            step.args.iter().filter_map(|&a| step_of(a)).for_each(|p| users[p].push(k));
        }
        let mut is_output = vec![false; graph.len()];
        graph.outputs.iter().filter_map(|&a| step_of(a)).for_each(|k| is_output[k] = true);
        let mut groups = Groups {
            graph,
            backend,
            users,
            is_output,
            order: Order::new(&operands, &readers),
            readers,
            operands,
            group: (0..graph.len()).collect(),
            members: (0..graph.len()).map(|k| vec![k]).collect(),
            can: (0..graph.len()).map(|k| backend.can_join(graph, k)).collect(),
            moves: graph.steps.iter().map(|s| moved(graph, s).is_some()).collect(),
            place: (0..graph.len()).collect(),
        };
        groups.along_edges();
        groups.between_siblings();
        groups.preaccumulate();
        groups
    }

    /// Joins producers and consumers, the last ones first: what is computed for the backward pass alone is computed there, and not
    /// kept for it by a group of the forward pass.
    fn along_edges(&mut self) {
        for k in (0..self.graph.len()).rev() {
            for r in 0..self.readers[k].len() {
                self.join(k, self.readers[k][r]);
            }
        }
    }

    /// Joins operations that read the same elements of a value, or nearly so.
    fn between_siblings(&mut self) {
        let mut readers: HashMap<Ref, Vec<(usize, isize)>> = HashMap::new();
        for k in (0..self.graph.len()).filter(|&k| self.can[k]) {
            for (base, view) in &self.operands[k] {
                if view.axes.iter().any(|a| a.of.is_some()) {
                    let first = view.first(&self.graph.aval(*base).shape);
                    readers.entry(*base).or_default().push((k, first));
                }
            }
        }
        // In the order of the graph, so that the result does not depend on the order of a hash table.
        let mut all: Vec<Vec<(usize, isize)>> = readers.into_values().filter(|r| r.len() > 1).collect();
        all.sort_unstable();
        for list in all {
            for pair in list.windows(2).filter(|p| p[0].1.abs_diff(p[1].1) <= NEARBY) {
                self.join(pair[0].0, pair[1].0);
            }
        }
    }

    fn join(&mut self, a: usize, b: usize) {
        let (ga, gb) = (self.group[a], self.group[b]);
        let size = self.members[ga].len() + self.members[gb].len();
        if ga == gb || !self.can[a] || !self.can[b] || size > MAX_MEMBERS || self.apart(ga, gb) {
            return;
        }
        let mut all = [self.members[ga].as_slice(), &self.members[gb]].concat();
        all.sort_unstable();
        if self.is_group(&all)
            && let Some(between) = self.between(ga, gb)
        {
            self.place_again(between, ga);
            self.members[gb].iter().for_each(|&m| self.group[m] = ga);
            self.members[gb].clear();
            self.members[ga] = all;
        }
    }

    /// Whether these could be one group, if nothing lies between them.
    fn is_group(&self, members: &[usize]) -> bool {
        effort::note(members.len());
        members.len() <= MAX_MEMBERS
            && self.inputs(members).len() <= MAX_INPUTS
            && self.backend.is_group(self.graph, &self.operands, members)
    }

    /// What a group reads from outside, numbers apart.
    fn inputs(&self, members: &[usize]) -> Vec<Ref> {
        let mut found = Vec::new();
        for (base, _) in members.iter().flat_map(|&m| &self.operands[m]) {
            let own = matches!(*base, Ref::Step(k, _) if members.binary_search(&k).is_ok());
            if !own && !found.contains(base) && repeated(self.graph, *base).is_none() {
                found.push(*base);
            }
        }
        found
    }

    fn is_grouped(&self, step: usize) -> bool {
        self.members[self.group[step]].len() > 1
    }

    /// Which values exist outside of groups, or are read outside of their own.
    fn needed(&self) -> Vec<bool> {
        effort::note(self.graph.len());
        let mut needed = vec![false; self.graph.len()];
        let need = |at: Ref, needed: &mut Vec<bool>| {
            if let Ref::Step(k, _) = at {
                needed[k] = true;
            }
        };
        self.graph.outputs.iter().for_each(|&a| need(a, &mut needed));
        for members in self.members.iter().filter(|m| m.len() > 1) {
            self.inputs(members).into_iter().for_each(|a| need(a, &mut needed));
        }
        for (k, step) in self.graph.steps.iter().enumerate().rev().filter(|(k, _)| !self.is_grouped(*k)) {
            if needed[k] || !self.moves[k] {
                step.args.iter().for_each(|&a| need(a, &mut needed));
            }
        }
        needed
    }

    /// How many operations there are, each group being one.
    fn len(&self) -> usize {
        self.in_order(&self.needed()).len()
    }

    /// The graph with one operation for each group.
    fn rebuilt(&self) -> Graph {
        let needed = self.needed();
        let graph = self.graph;
        let mut out = Builder::like(graph);
        let mut moved: HashMap<Ref, Ref> = HashMap::new();
        for group in self.in_order(&needed) {
            let members = &self.members[group];
            let to = |a: &Ref| moved.get(a).copied().unwrap_or(*a);
            if let [one] = members[..] {
                let step = &graph.steps[one];
                let args = step.args.iter().map(to).collect();
                let at = out.place(Step { args, ..step.clone() });
                (0..step.avals.len()).for_each(|slot| {
                    moved.insert(Ref::Step(one, slot), at.slot(slot));
                });
                continue;
            }
            let inputs = self.inputs(members);
            let outputs: Vec<usize> = members.iter().copied().filter(|&m| needed[m]).collect();
            if outputs.is_empty() {
                continue;
            }
            let body = Arc::new(self.body(members, &inputs, &outputs));
            let avals = outputs.iter().map(|&m| graph.steps[m].avals[0].clone()).collect();
            let location = graph.steps[outputs[0]].location;
            let op = Op::Block(Arc::new(Fused { body }));
            let at = out.place(Step { op, args: inputs.iter().map(to).collect(), avals, location });
            for (slot, &m) in outputs.iter().enumerate() {
                moved.insert(Ref::Step(m, 0), at.slot(slot));
            }
        }
        let to = |a: &Ref| match a {
            Ref::Step(..) => moved.get(a).copied(),
            other => Some(*other),
        };
        let outputs = graph.outputs.iter().map(|a| to(a).expect("an output is needed")).collect();
        let names = graph.names.iter().filter_map(|(name, a)| Some((name.clone(), to(a)?))).collect();
        // Numbers have gone into the groups.
        dce::dce(&out.finish(outputs, names), &Options::default())
    }

    /// Groups and single steps, each after what it reads, otherwise as they were.
    fn in_order(&self, needed: &[bool]) -> Vec<usize> {
        let lives = |k: &usize| needed[*k] || !self.moves[*k];
        let heads = || (0..self.graph.len()).filter(lives).filter(|&k| self.group[k] == k);
        let reads = |g: usize| -> BTreeSet<usize> {
            let members = &self.members[g];
            let refs =
                if members.len() > 1 { self.inputs(members) } else { self.graph.steps[g].args.to_vec() };
            let steps = refs.into_iter().filter_map(|a| if let Ref::Step(k, _) = a { Some(k) } else { None });
            steps.map(|k| self.group[k]).collect()
        };
        let mut left = vec![0; self.graph.len()];
        let mut next: Vec<Vec<usize>> = vec![Vec::new(); self.graph.len()];
        let mut ready = BinaryHeap::new();
        let last = |g: usize| {
            let places = self.members[g].iter().map(|&m| self.place[m]);
            Reverse((places.max().expect("a group has members"), g))
        };
        for g in heads() {
            let reads = reads(g);
            left[g] = reads.len();
            if reads.is_empty() {
                ready.push(last(g));
            }
            reads.into_iter().for_each(|p| next[p].push(g));
        }
        let mut order = Vec::new();
        while let Some(Reverse((_, g))) = ready.pop() {
            order.push(g);
            for &n in &next[g] {
                left[n] -= 1;
                if left[n] == 0 {
                    ready.push(last(n));
                }
            }
        }
        order
    }

    /// What a group does, as a graph of its own.
    fn body(&self, members: &[usize], inputs: &[Ref], outputs: &[usize]) -> Graph {
        let graph = self.graph;
        let mut body = Builder::new(inputs.iter().map(|&a| graph.aval(a)).collect());
        let mut place: HashMap<Ref, Ref> =
            inputs.iter().enumerate().map(|(k, &a)| (a, Ref::Input(k))).collect();
        for &m in members {
            for (&arg, (base, _)) in graph.steps[m].args.iter().zip(&self.operands[m]) {
                keep(&mut body, &mut place, graph, *base);
                // The views between the operand and what it reads.
                let mut chain = Vec::new();
                let mut at = arg;
                while !place.contains_key(&at) {
                    let Ref::Step(k, _) = at else { unreachable!("a view leads to its base") };
                    chain.push(k);
                    at = moved(graph, &graph.steps[k]).expect("a view, or a pad");
                }
                for k in chain.into_iter().rev() {
                    // What a pad is made of besides.
                    graph.steps[k].args.iter().for_each(|&a| keep(&mut body, &mut place, graph, a));
                    copy(&mut body, &mut place, &graph.steps[k], k);
                }
            }
            copy(&mut body, &mut place, &graph.steps[m], m);
        }
        let outputs = outputs.iter().map(|&m| place[&Ref::Step(m, 0)]).collect();
        body.finish(outputs, Vec::new())
    }
}

/// Makes a constant one of the body.
fn keep(body: &mut Builder, place: &mut HashMap<Ref, Ref>, graph: &Graph, at: Ref) {
    if let Ref::Const(k) = at {
        place.entry(at).or_insert_with(|| body.constant(graph.consts[k].clone()));
    }
}

fn copy(body: &mut Builder, place: &mut HashMap<Ref, Ref>, step: &Step, k: usize) {
    let args = step.args.iter().map(|a| place[a]).collect();
    place.insert(Ref::Step(k, 0), body.place(Step { args, ..step.clone() }));
}
