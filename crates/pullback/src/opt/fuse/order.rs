//! Which groups may become one: not those between which a path leads through a third, which would have to run both before and after them.
//!
//! To search all that a group depends on each time would take time quadratic in the graph. So two things are kept. Groups stand in an
//! order in which each comes after what it reads: a path from one group to another leads only through groups that stand between them,
//! and where two are joined, only these change places (D. J. Pearce and P. H. J. Kelly, "A dynamic topological sort algorithm for
//! directed acyclic graphs", 2006). And most paths, such as those from the forward pass through the loss to the backward pass, touch a longest path of
//! the graph, the spine: whether one does is known from two numbers for each step.

use super::Groups;
use crate::graph::operands::Operands;
use crate::graph::{Ref, effort};

/// The most reads that are followed to see whether a path leads from one group to another. Beyond so many it is taken for granted that one does,
/// and the groups stay apart: that keeps the time in proportion to the length of a graph, and changes nothing for one that has no more
/// reads than this.
const MAX_READS_FOLLOWED: usize = 1 << 12;

pub(super) struct Order {
    /// The place of each group: after those that it reads.
    place: Vec<usize>,
    /// The first step of the spine that depends on each step, and the last one that it depends on.
    to: Vec<Option<usize>>,
    from: Vec<Option<usize>>,
    /// The last search that has seen each group.
    seen: Vec<usize>,
    searches: usize,
}

/// The step that a value is of.
pub(super) fn step_of(at: Ref) -> Option<usize> {
    match at {
        Ref::Step(k, _) => Some(k),
        _ => None,
    }
}

impl Order {
    /// Of steps that are all for themselves.
    pub fn new(operands: &Operands, readers: &[Vec<usize>]) -> Order {
        let n = operands.len();
        let reads = |k: usize| operands[k].iter().filter_map(|(base, _)| step_of(*base));
        let mut depth = vec![0usize; n];
        for k in 0..n {
            depth[k] = reads(k).map(|p| depth[p] + 1).max().unwrap_or(0);
        }
        let mut spine = Vec::new();
        let mut next = (0..n).max_by_key(|&k| depth[k]);
        while let Some(k) = next {
            spine.push(k);
            next = reads(k).find(|&p| depth[p] + 1 == depth[k]);
        }
        let (mut to, mut from) = (vec![None; n], vec![None; n]);
        for (at, &k) in spine.iter().rev().enumerate() {
            (to[k], from[k]) = (Some(at), Some(at));
        }
        for k in 0..n {
            from[k] = from[k].or_else(|| reads(k).filter_map(|p| from[p]).max());
        }
        for k in (0..n).rev() {
            to[k] = to[k].or_else(|| readers[k].iter().filter_map(|&r| to[r]).min());
        }
        Order { place: (0..n).collect(), to, from, seen: vec![0; n], searches: 0 }
    }
}

impl Groups<'_> {
    /// What stands between two groups; `None` if a path leads from one of them through a third and into the other.
    pub(super) fn between(&mut self, a: usize, b: usize) -> Option<Between> {
        let (first, last) = self.in_place(a, b);
        let mut left = MAX_READS_FOLLOWED;
        let after = self.search(first, last, &mut left, |groups, g| {
            let readers = groups.members[g].iter().flat_map(|&m| &groups.readers[m]);
            readers.take(MAX_READS_FOLLOWED + 1).copied().collect()
        })?;
        let before = self.search(last, first, &mut left, |groups, g| {
            let operands = groups.members[g].iter().flat_map(|&m| &groups.operands[m]);
            operands.filter_map(|(base, _)| step_of(*base)).collect()
        })?;
        Some(Between { first, last, before, after })
    }

    /// Two groups, that which may read the other last.
    fn in_place(&self, a: usize, b: usize) -> (usize, usize) {
        if self.order.place[a] < self.order.place[b] { (a, b) } else { (b, a) }
    }

    /// Whether a path leads from one of the groups along the spine to a third one that the other reads. The quick answer to most questions.
    pub(super) fn apart(&self, a: usize, b: usize) -> bool {
        let (first, last) = self.in_place(a, b);
        effort::note(self.members[first].len() + self.members[last].len());
        let to = self.members[first].iter().filter_map(|&m| self.order.to[m]).min();
        let operands = self.members[last].iter().flat_map(|&m| &self.operands[m]);
        let others = operands.filter_map(|(base, _)| step_of(*base));
        let others = others.filter(|&p| self.group[p] != first && self.group[p] != last);
        let from = others.filter_map(|p| self.order.from[p]).max();
        to.is_some_and(|to| from.is_some_and(|from| to <= from))
    }

    /// The groups that can be reached from one of two by steps to neighbours, and stand between the two. `None` if the other one is reached through
    /// them, or if there is too much to search.
    fn search(
        &mut self,
        start: usize,
        end: usize,
        left: &mut usize,
        neighbours: impl Fn(&Self, usize) -> Vec<usize>,
    ) -> Option<Vec<usize>> {
        self.order.searches += 1;
        let (from, to) = (self.order.place[start], self.order.place[end]);
        let between = from.min(to)..=from.max(to);
        let mut found = vec![start];
        let mut open = 0;
        while open < found.len() {
            let g = found[open];
            open += 1;
            for step in neighbours(self, g) {
                effort::note(1);
                *left = left.checked_sub(1)?;
                let next = self.group[step];
                if next == end && g != start {
                    return None;
                }
                let order = &mut self.order;
                let new = next != start && next != end && order.seen[next] != order.searches;
                if new && between.contains(&order.place[next]) {
                    order.seen[next] = order.searches;
                    found.push(next);
                }
            }
        }
        found.swap_remove(0);
        Some(found)
    }

    /// Gives places to the groups between two that have become one, named `as_one`: first those that the second reads, then the one, then
    /// those that read the first.
    pub(super) fn place_again(&mut self, between: Between, as_one: usize) {
        let Between { first, last, mut before, mut after } = between;
        let place = &mut self.order.place;
        let all = before.iter().chain(&after).chain([&first, &last]);
        let mut places: Vec<usize> = all.map(|&g| place[g]).collect();
        places.sort_unstable();
        before.sort_unstable_by_key(|&g| place[g]);
        after.sort_unstable_by_key(|&g| place[g]);
        for (g, at) in before.into_iter().chain([as_one]).chain(after).zip(places) {
            place[g] = at;
        }
    }
}

/// Two groups that may become one, and what stands between them in the order: what the second depends on, and what depends on the first.
pub(super) struct Between {
    first: usize,
    last: usize,
    before: Vec<usize>,
    after: Vec<usize>,
}
