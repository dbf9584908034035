//! Factors of a pullback that are computed in the group whose values they are made of, instead of keeping those values for the backward
//! pass: of `gelu` its derivative alone is kept, and not the argument and the error function. (Tapes call this preaccumulation.)

use super::super::measure::bytes;
use super::Groups;
use crate::graph::operands::repeated;
use crate::graph::{Ref, effort};

impl Groups<'_> {
    /// Moves what depends on one earlier group alone into that group, where fewer bytes have to be kept then.
    pub(super) fn preaccumulate(&mut self) {
        for late in 0..self.graph.len() {
            for early in self.makers(late) {
                self.move_between(early, late);
            }
        }
    }

    /// The groups that make what a group reads.
    fn makers(&self, group: usize) -> Vec<usize> {
        let mut makers = Vec::new();
        if self.members[group].len() > 1 {
            for at in self.inputs(&self.members[group]) {
                if let Ref::Step(k, _) = at
                    && self.can[k]
                    && !makers.contains(&self.group[k])
                {
                    makers.push(self.group[k]);
                }
            }
        }
        makers
    }

    fn move_between(&mut self, early: usize, late: usize) {
        let known = self.inputs(&self.members[early]);
        let mut moved: Vec<usize> = Vec::new();
        for &m in &self.members[late] {
            let there = |&(base, _): &(Ref, _)| match base {
                _ if repeated(self.graph, base).is_some() || known.contains(&base) => true,
                Ref::Step(k, _) => self.group[k] == early || moved.contains(&k),
                _ => false,
            };
            if self.operands[m].iter().all(there) {
                moved.push(m);
            }
        }
        let left: Vec<usize> =
            self.members[late].iter().copied().filter(|m| moved.binary_search(m).is_err()).collect();
        let mut grown = [self.members[early].as_slice(), &moved].concat();
        grown.sort_unstable();
        let some = !moved.is_empty() && !left.is_empty();
        if !(some && self.saves_memory(early, &moved) && self.is_group(&grown) && self.is_group(&left)) {
            return;
        }
        let place = self.members[early].iter().map(|&m| self.place[m]).max().expect("a group has members");
        for &m in &moved {
            (self.group[m], self.place[m]) = (early, place);
        }
        self.members[early] = grown;
        // A group is named by one of its own.
        self.members[late].clear();
        let name = left[0];
        left.iter().for_each(|&m| self.group[m] = name);
        self.members[name] = left;
    }

    /// [`needed`](Groups::needed) for one step that only says how its operand is read.
    fn is_needed(&self, step: usize) -> bool {
        let mut open = vec![step];
        while let Some(k) = open.pop() {
            effort::note(1);
            let mut alone = self.users[k].iter().copied().filter(|&u| !self.is_grouped(u));
            if self.is_output[k]
                || self.readers[k].iter().any(|&r| self.is_grouped(r))
                || alone.clone().any(|u| !self.moves[u])
            {
                return true;
            }
            open.extend(&mut alone);
        }
        false
    }

    /// Whether the values of a group that only the moved operations read are more bytes than what these give to others.
    fn saves_memory(&self, early: usize, moved: &[usize]) -> bool {
        let outside = |k: usize, own: &dyn Fn(usize) -> bool| {
            self.is_output[k]
                || self.readers[k].iter().any(|&r| !own(r) && (!self.moves[r] || self.is_needed(r)))
        };
        let is_moved = |r: usize| moved.binary_search(&r).is_ok();
        let bytes = |k: &usize| bytes(self.graph, *k);
        let reads = |k: usize| self.readers[k].iter().any(|&r| is_moved(r));
        let freed = self.members[early].iter().filter(|&&k| reads(k));
        let freed = freed.filter(|&&k| !outside(k, &|r| self.group[r] == early || is_moved(r)));
        let kept = moved.iter().filter(|&&k| outside(k, &is_moved));
        kept.map(bytes).sum::<usize>() < freed.map(bytes).sum()
    }
}
