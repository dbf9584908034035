//! The pullback of a loop: its steps in reverse, each from the state before it.

use super::in_trace;
use super::rows::{Slices, stack};
use super::scan::Loop;
use crate::error::Result;
use crate::schedule::Kept;
use crate::tape::{Deps, Seeds, Walk, pull, resumed};
use crate::tensor::{Block, BlockAt, Link, Node, Tensor, bind_block};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What the pullback of a loop works on.
pub(super) struct Reversal<'a> {
    of: &'a Loop,
    at: &'a BlockAt<'a>,
    /// The inputs.
    x: Vec<Tensor>,
    /// Slices of the stacked inputs.
    items: Slices,
    /// Slices of the cotangents of the stacked outputs, for those outputs that have any.
    rows: Slices,
    /// Which outputs those are.
    has_rows: Vec<bool>,
    kept: Option<Kept<Vec<Tensor>>>,
    /// Another transform is active: an outer one that differentiates this pullback, or a trace.
    watched: bool,
}

/// The cotangents on their way.
struct Cotangents {
    /// Those of the state.
    state: Vec<Option<Tensor>>,
    /// Those of the items, for each stacked input from the last step to the first.
    items: Vec<Vec<Option<Tensor>>>,
    /// Those of what the steps share or have captured, by the id of the node.
    shared: BTreeMap<u64, (Link, Tensor)>,
}

impl<'a> Reversal<'a> {
    pub fn new(of: &'a Loop, at: &'a BlockAt<'a>, gs: &'a [Option<Tensor>]) -> Result<Reversal<'a>> {
        let x = at.x();
        // The transform that is served here is suspended, so these are the others.
        let mut others = Deps::default();
        let kept = of.kept.lock().unwrap_or_else(|e| e.into_inner()).take();
        let states = kept.iter().flat_map(|k| k.states()).flat_map(|(_, state)| state);
        x.iter().chain(states).for_each(|t| others.join(&t.node().deps, 0));
        let stacked: Vec<Tensor> = of.split(&x).1.iter().map(|t| t.without(at.level)).collect();
        let items = Slices::new(&stacked.iter().collect::<Vec<_>>())?;
        let has_rows: Vec<bool> = gs.iter().skip(of.body.width()).map(Option::is_some).collect();
        let rows = Slices::new(&gs.iter().skip(of.body.width()).flatten().collect::<Vec<_>>())?;
        let watched = !others.is_empty() || in_trace(&x.iter().collect::<Vec<_>>());
        Ok(Reversal { of, at, x, items, rows, has_rows, kept, watched })
    }

    /// The contributions to the inputs and to what the steps have captured.
    pub fn run(mut self, gs: &[Option<Tensor>]) -> Result<Vec<(Link, Tensor)>> {
        let width = self.of.body.width();
        let mut state = gs[..gs.len().min(width)].to_vec();
        state.resize(width, None);
        let mut to = Cotangents { state, items: vec![Vec::new(); self.of.items], shared: BTreeMap::new() };
        let kept = self.kept.take();
        self.kept(kept)?.reverse(
            |state, from, to| self.advance(state, from, to),
            |state, from, end| self.pull(state, from, end, &mut to),
        )?;
        let (first, stacked, _) = self.of.split(self.at.inputs);
        let mut out: Vec<(Link, Tensor)> = Vec::new();
        for (input, g) in first.iter().zip(to.state) {
            out.extend(g.map(|g| (input.link(), g)));
        }
        for (input, rows) in stacked.iter().zip(to.items) {
            out.extend(self.restacked(input.node(), rows)?.map(|g| (input.link(), g)));
        }
        out.extend(to.shared.into_values());
        Ok(out)
    }

    /// The kept states. For an outer transform they are computed again from the inputs, so that it sees where they come from.
    fn kept(&self, kept: Option<Kept<Vec<Tensor>>>) -> Result<Kept<Vec<Tensor>>> {
        let kept = match kept {
            Some(kept) if !self.watched => return Ok(kept),
            Some(kept) => kept,
            None => self.of.places()?,
        };
        let mut state: Vec<Tensor> =
            self.of.split(&self.x).0.iter().map(|t| t.without(self.at.level)).collect();
        let mut states: Vec<Vec<Tensor>> = Vec::new();
        let mut last = 0;
        for &(at, _) in kept.states() {
            if at > last {
                state = self.advance(state, last, at)?;
            }
            last = at;
            states.push(state.clone());
        }
        Ok(kept.with_states(states))
    }

    fn advance(&self, state: Vec<Tensor>, from: usize, to: usize) -> Result<Vec<Tensor>> {
        let start = self.of.range.start;
        let part = self.of.part(start + from..start + to);
        let x = [state.as_slice(), &self.x[state.len()..]].concat();
        // An outer transform sees a loop, and keeps as little of it as this one does.
        if self.watched { bind_block(Arc::new(part), &x.iter().collect::<Vec<_>>()) } else { part.expand(&x) }
    }

    /// Runs some steps again, recorded, and pulls the cotangents back through them.
    fn pull(&self, state: Vec<Tensor>, from: usize, end: usize, to: &mut Cotangents) -> Result<()> {
        let level = self.at.level;
        let leaf = |t: &Tensor| if t.dtype().is_differentiable() { t.leaf(level) } else { t.clone() };
        let leaves: Vec<Tensor> = state.iter().map(leaf).collect();
        let start = self.of.range.start;
        let items: Vec<Vec<Tensor>> =
            (from..end).map(|k| self.items.at(start + k).iter().map(leaf).collect()).collect();
        let mut seeds = Seeds::new();
        let mut seed = |y: &Tensor, g: Tensor| {
            if y.node().deps.contains(level) {
                seeds.push((y.link(), g));
            }
        };
        let mut state = leaves.clone();
        for (k, item) in (from..end).zip(&items) {
            let (_, _, shared) = self.of.split(&self.x);
            let mut next = resumed(level, || self.of.body.step(&state, item, shared))?;
            let ys = next.split_off(state.len());
            if self.has_rows.contains(&true) {
                let with = ys.iter().zip(&self.has_rows).filter(|(_, has)| **has);
                with.zip(self.rows.at(k)).for_each(|((y, _), g)| seed(y, g));
            }
            state = next;
        }
        for (y, g) in state.iter().zip(&mut to.state) {
            g.take().into_iter().for_each(|g| seed(y, g));
        }
        drop(state);
        let mut found: BTreeMap<u64, Tensor> = BTreeMap::new();
        pull(level, seeds, |link, g| {
            let node = link.node();
            if node.leaf_of == level && node.id > self.at.id {
                found.insert(node.id, g.clone());
                return Ok(Walk::Stop);
            }
            // Values older than the loop are left to the outer walk.
            if node.id < self.at.id {
                match to.shared.get_mut(&node.id) {
                    Some((_, sum)) => *sum += g,
                    None => drop(to.shared.insert(node.id, (link.clone(), g.clone()))),
                }
                return Ok(Walk::Stop);
            }
            Ok(Walk::On)
        })?;
        to.state = leaves.iter().map(|t| found.remove(&t.node().id)).collect();
        for item in items.iter().rev() {
            for (rows, t) in to.items.iter_mut().zip(item) {
                rows.push(found.remove(&t.node().id));
            }
        }
        Ok(())
    }

    /// The cotangent of a stacked input from those of its slices, the last first.
    fn restacked(&self, x: &Node, rows: Vec<Option<Tensor>>) -> Result<Option<Tensor>> {
        if rows.iter().all(Option::is_none) {
            return Ok(None);
        }
        let zero = Tensor::zeros_of(x.dtype, x.shape.without(&[0]));
        let outside = |n: usize| std::iter::repeat_n(zero.clone(), n);
        let rows = rows.into_iter().rev().map(|g| g.unwrap_or_else(|| zero.clone()));
        let range = &self.of.range;
        let rows: Vec<Tensor> =
            outside(range.start).chain(rows).chain(outside(x.shape[0] - range.end)).collect();
        stack(&rows, &zero).map(Some)
    }
}
