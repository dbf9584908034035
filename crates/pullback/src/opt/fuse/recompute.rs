//! Values that are computed again in the group that reads them, instead of being kept for it: an addition or a product costs less than to
//! write its result to memory and to read it there.

use super::super::measure::work;
use super::Groups;
use crate::graph::operands::repeated;
use crate::graph::{Builder, Graph, Ref, Step};
use std::collections::{BTreeMap, HashMap};

/// How much shorter than a value its operand is at least if it may be read for it in addition.
const SHORTER: usize = 16;

impl Groups<'_> {
    /// The graph with such values in each group that reads them, as long as there is work to spare for it; `None` if there are none.
    pub(super) fn with_copies(&self, mut spare: u64) -> Option<Graph> {
        let needed = self.needed();
        // Which values are computed again, and in which groups.
        let mut copies: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for k in (0..self.graph.len()).filter(|&k| needed[k] && self.is_grouped(k)) {
            let kept = |base: &Ref| !matches!(base, Ref::Step(j, _) if copies.contains_key(j));
            let (Some(work), Some(groups)) = (self.cheap(k), self.readers_elsewhere(k, &needed)) else {
                continue;
            };
            let work = work * groups.len() as u64;
            if work <= spare && self.operands[k].iter().all(|(base, _)| kept(base)) {
                spare -= work;
                copies.insert(k, groups);
            }
        }
        (!copies.is_empty()).then(|| self.copied(&copies))
    }

    /// The work for a value of one operation for each element.
    fn cheap(&self, k: usize) -> Option<u64> {
        let step = &self.graph.steps[k];
        let work = step.op.elementwise().then(|| work(self.graph, step));
        work.filter(|&work| work <= step.avals[0].shape.numel() as u64)
    }

    /// The groups that read a value of another one, if only groups do and all of them read what it is made of anyway.
    fn readers_elsewhere(&self, k: usize, needed: &[bool]) -> Option<Vec<usize>> {
        let at = Ref::Step(k, 0);
        if self.is_output[k] {
            return None;
        }
        let mut groups = Vec::new();
        for &reader in self.readers[k].iter().filter(|&&r| self.group[r] != self.group[k]) {
            let group = self.group[reader];
            if self.moves[reader] && !needed[reader] {
                continue;
            }
            let args = self.graph.steps[reader].args.iter().zip(&self.operands[reader]);
            let direct = args.into_iter().all(|(&arg, (base, _))| *base != at || arg == at);
            if !self.is_grouped(reader) || !direct {
                return None;
            }
            groups.push(group);
        }
        groups.sort_unstable();
        groups.dedup();
        let numel = |at: Ref| self.graph.aval(at).shape.numel();
        let has = |group: usize| {
            let inputs = self.inputs(&self.members[group]);
            self.operands[k].iter().all(|&(base, _)| {
                repeated(self.graph, base).is_some()
                    || inputs.contains(&base)
                    || numel(base) * SHORTER <= numel(at)
            })
        };
        (!groups.is_empty() && groups.iter().all(|&g| has(g))).then_some(groups)
    }

    fn copied(&self, copies: &BTreeMap<usize, Vec<usize>>) -> Graph {
        let graph = self.graph;
        let mut out = Builder::like(graph);
        let mut moved: HashMap<Ref, Ref> = HashMap::new();
        // The copy of a value for a group.
        let mut own: HashMap<(usize, usize), Ref> = HashMap::new();
        for (k, step) in graph.steps.iter().enumerate() {
            let group = self.group[k];
            let place = |out: &mut Builder, step: &Step, own: &HashMap<(usize, usize), Ref>| {
                let to = |&a: &Ref| match a {
                    Ref::Step(j, _) => own.get(&(j, group)).copied().unwrap_or_else(|| moved[&a]),
                    other => other,
                };
                let args = step.args.iter().map(to).collect();
                out.place(Step { args, ..step.clone() })
            };
            for &arg in &step.args {
                if let Ref::Step(j, _) = arg
                    && copies.get(&j).is_some_and(|groups| groups.binary_search(&group).is_ok())
                    && !own.contains_key(&(j, group))
                {
                    let copy = place(&mut out, &graph.steps[j], &own);
                    own.insert((j, group), copy);
                }
            }
            let at = place(&mut out, step, &own);
            (0..step.avals.len()).for_each(|slot| {
                moved.insert(Ref::Step(k, slot), at.slot(slot));
            });
        }
        let to = |a: &Ref| moved.get(a).copied().unwrap_or(*a);
        let outputs = graph.outputs.iter().map(to).collect();
        let names = graph.names.iter().map(|(name, a)| (name.clone(), to(a))).collect();
        out.finish(outputs, names).pruned()
    }
}
