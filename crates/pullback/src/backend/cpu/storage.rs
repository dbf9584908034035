//! Which registers share memory: by liveness, in place where an operand dies, and in donated inputs.

use super::work::{Program, Work};
use crate::graph::liveness::Liveness;
use crate::graph::lower::{Root, Work as _};
use smallvec::SmallVec;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};

/// Where a register's memory comes from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Placement {
    /// Memory of the plan.
    Slot(usize),
    /// It becomes a part of an output, of this one if it is that output as it is.
    Output(Option<usize>),
    /// Memory from elsewhere: that of a donated input, or whatever a block returns.
    Foreign,
}

/// The memory of a program whose kernels stand in order.
pub(super) struct Storage {
    /// Of each register.
    pub places: Vec<Placement>,
    /// The sizes of the slots in bytes.
    pub slots: Vec<usize>,
    /// Of each kernel, the operands whose memory its results take: the operand, and the register of the result.
    pub over: Vec<SmallVec<[(usize, usize); 1]>>,
    /// Of each register, the donated input whose memory it takes after its last use.
    pub after: Vec<Option<usize>>,
    /// Of each kernel, the registers to be freed when it has run.
    pub frees: Vec<Vec<usize>>,
    /// Registers to be freed at the end of the run, when outputs have been taken.
    pub rest: Vec<usize>,
    /// The bytes of slots, outputs and scratch together.
    pub peak: usize,
}

/// Registers in one place, each written over the one before.
struct Group {
    members: Vec<usize>,
    span: (usize, usize),
}

/// How many slots are tried for a value, so that the time of planning grows no faster than the graph.
const MAX_TRIED: usize = 256;

impl Storage {
    /// Outputs from `given` on have memory of their own to go to.
    pub fn new(program: &Program, live: &Liveness, given: usize) -> Storage {
        let n = program.registers.len();
        let donated = program.donated.len();
        let escaping = program.escaping();
        // The first output that a register is as it is.
        let mut direct = vec![None; n];
        for (k, output) in program.outputs.iter().enumerate().rev().filter(|(_, o)| o.window.is_none()) {
            if let Root::Register(r) = output.root {
                direct[r] = Some(k);
            }
        }
        let mut over = vec![SmallVec::new(); program.kernels.len()];
        let mut group_of: Vec<usize> = (0..n).collect();
        let mut groups: Vec<Group> =
            (0..n).map(|r| Group { members: vec![r], span: live.spans[r] }).collect();
        for (at, kernel) in program.kernels.iter().enumerate() {
            let dying = |k: usize| match kernel.operands[k].root {
                Root::Register(r) if !escaping[r] && live.spans[r].1 == at => {
                    let once = kernel.reads().filter(|&other| other == r).count() == 1;
                    (once && kernel.operands[k].window.is_none()).then_some(r)
                }
                _ => None,
            };
            let mut left: Vec<usize> = (0..kernel.operands.len()).filter(|&k| dying(k).is_some()).collect();
            for (j, result) in kernel.results.clone().enumerate() {
                let aval = &program.registers[result];
                let fits = |k: usize| {
                    let donor = dying(k).is_some_and(|r| groups[group_of[r]].members[0] < donated);
                    let fits = kernel.operands[k].aval == *aval && kernel.work.overwrites(aval.dtype, j, k);
                    let goes_elsewhere = direct[result].is_some_and(|output| output >= given);
                    (fits && !(donor && goes_elsewhere)).then_some((donor != escaping[result], k))
                };
                // What becomes an output takes a donated input rather than memory of the plan, and the other way round.
                let Some((_, k)) = left.iter().filter_map(|&k| fits(k)).min() else { continue };
                left.retain(|&other| other != k);
                let Some(operand) = dying(k) else { continue };
                over[at].push((k, result));
                let into = group_of[operand];
                group_of[result] = into;
                groups[into].members.push(result);
                groups[into].span.1 = live.spans[result].1;
                groups[result].members.clear();
            }
        }
        groups.retain(|g| !g.members.is_empty());

        let mut places = vec![Placement::Foreign; n];
        let mut after = vec![None; n];
        let mut spare: Vec<usize> = (0..donated).filter(|&r| !escaping[r]).collect();
        groups.iter().filter(|g| g.members.len() > 1).for_each(|g| spare.retain(|&r| r != g.members[0]));
        let mut foreign = vec![false; n];
        for kernel in program.kernels.iter().filter(|k| matches!(k.work, Work::Block(_))) {
            foreign[kernel.results.clone()].fill(true);
        }
        let mut outputs = 0;
        let mut shared: Vec<&Group> = Vec::new();
        for group in &groups {
            let (first, last) = (group.members[0], group.members[group.members.len() - 1]);
            if first < donated || foreign[first] {
                if escaping[last] && last >= donated {
                    places[last] = Placement::Output(direct[last]);
                }
                continue;
            }
            if !escaping[last] {
                shared.push(group);
                continue;
            }
            group.members.iter().for_each(|&r| places[r] = Placement::Output(direct[last]));
            let fits = |&r: &usize| live.spans[r].1 < group.span.0 && live.bytes[r] == live.bytes[first];
            match spare.iter().position(fits) {
                Some(k) => after[first] = Some(spare.swap_remove(k)),
                None => outputs += live.bytes[first],
            }
        }

        // The largest first: each goes to the smallest slot that is free while it lives. Of several it takes the one that was in use last,
        // which is the one most likely to be in a cache.
        shared.sort_by_key(|g| (Reverse(live.bytes[g.members[0]]), g.span));
        let mut slots: Vec<(usize, BTreeMap<usize, usize>)> = Vec::new();
        for group in shared {
            let (start, end) = group.span;
            // The end of what is in a slot before, if nothing is in it while the value lives.
            let free = |spans: &BTreeMap<usize, usize>| match spans.range(..=end).next_back() {
                Some((_, &before)) => (before < start).then_some(before + 1),
                None => Some(0),
            };
            let last = slots.len().saturating_sub(MAX_TRIED);
            let found = (last..slots.len()).filter_map(|s| Some((s, free(&slots[s].1)?)));
            let found = found.min_by_key(|&(s, before)| (slots[s].0, Reverse(before))).map(|(s, _)| s);
            let slot = found.unwrap_or_else(|| {
                slots.push((live.bytes[group.members[0]], BTreeMap::new()));
                slots.len() - 1
            });
            slots[slot].1.insert(start, end);
            group.members.iter().for_each(|&r| places[r] = Placement::Slot(slot));
        }

        let mut frees = vec![Vec::new(); program.kernels.len()];
        let mut rest = Vec::new();
        let taken: HashSet<usize> = after.iter().flatten().copied().collect();
        for r in 0..n {
            let last = live.spans[r].1;
            let list = if last < frees.len() && !taken.contains(&r) { &mut frees[last] } else { &mut rest };
            list.push(r);
        }
        let slots: Vec<usize> = slots.into_iter().map(|(bytes, _)| bytes).collect();
        let scratch = program.kernels.iter().map(|k| k.work.scratch()).max().unwrap_or(0);
        let peak = slots.iter().sum::<usize>() + outputs + scratch;
        Storage { places, slots, over, after, frees, rest, peak }
    }
}
