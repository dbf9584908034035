//! The pullback of a loop that stands in a graph, as a loop: the graph of a gradient is as long as that of the function, whatever the
//! number of steps.

use super::scan::{GraphStep, Loop, LoopStep};
use crate::error::Result;
use crate::graph::{Graph, Ref, trace_leaves};
use crate::location::caller;
use crate::ops::Aval;
use crate::schedule::Schedule;
use crate::tape::{is_ambient, pull_through};
use crate::tensor::{BlockAt, Link, Tensor};
use std::sync::Arc;

/// Contributions to the inputs of a loop by two others: one that stacks its states, and one over these in reverse, which carries the
/// cotangents of the state and the sums of those of the shared inputs.
pub(super) fn pullback(of: &Loop, at: &BlockAt, gs: &[Option<Tensor>]) -> Result<Vec<(Link, Tensor)>> {
    let (x, n) = (at.x(), of.range.len());
    let (state, stacked, shared) = of.split(&x);
    let step = StepPullback::new(of, at, gs);
    let name = "scan";

    let history: Arc<dyn LoopStep> = Arc::new(History::new(of.body.clone()));
    let states = Loop::new(name, history, n, Schedule::All)?
        .bind(caller(), &refs(state), &refs(stacked), shared)?
        .split_off(state.len());

    let mut carry: Vec<Tensor> = Vec::new();
    for &k in &step.states {
        let g = gs.get(k).cloned().flatten();
        carry.push(g.unwrap_or_else(|| zeros(&state[k])));
    }
    carry.extend(step.shared.iter().map(|&k| zeros(&shared[k])));
    let rows = step.rows.iter().filter_map(|&k| gs[state.len() + k].as_ref());
    let items =
        states.iter().chain(stacked).chain(rows).map(|t| t.try_flip(0)).collect::<Result<Vec<_>>>()?;

    let slice = |t: &Tensor| Aval { dtype: t.dtype(), shape: t.node().shape.without(&[0]) };
    let whole = |t: &Tensor| Aval { dtype: t.dtype(), shape: t.node().shape.clone() };
    let types = carry.iter().map(whole).chain(items.iter().map(slice)).chain(shared.iter().map(whole));
    let graph = trace_leaves(|leaves| step.pull(leaves), types.collect())?;
    let (body, captured) = GraphStep::of(graph, carry.len());
    let shared = [shared, &captured].concat();
    let mut out =
        Loop::new(name, body, n, Schedule::All)?.bind(caller(), &refs(&carry), &refs(&items), &shared)?;

    let rows = out.split_off(carry.len());
    let (first, stacked, shared) = of.split(at.inputs);
    let inputs = step.states.iter().map(|&k| &first[k]).chain(step.shared.iter().map(|&k| &shared[k]));
    let mut all: Vec<(Link, Tensor)> = inputs.map(|i| i.link()).zip(out).collect();
    for (&k, rows) in step.items.iter().zip(rows) {
        all.push((stacked[k].link(), rows.try_flip(0)?));
    }
    Ok(all)
}

fn refs(tensors: &[Tensor]) -> Vec<&Tensor> {
    tensors.iter().collect()
}

fn zeros(like: &Tensor) -> Tensor {
    Tensor::zeros_of(like.dtype(), like.node().shape.clone())
}

/// A step whose outputs are the states before all steps.
struct History {
    body: Arc<dyn LoopStep>,
    /// The same as a graph, if the step is one.
    graph: Option<Arc<Graph>>,
}

impl History {
    fn new(body: Arc<dyn LoopStep>) -> History {
        let width = body.width();
        let graph = body.graph().map(|g| {
            let mut g = Graph::clone(g);
            g.outputs.truncate(width);
            g.outputs.extend((0..width).map(Ref::Input));
            Arc::new(g.pruned())
        });
        History { body, graph }
    }
}

impl LoopStep for History {
    fn width(&self) -> usize {
        self.body.width()
    }

    fn step(&self, state: &[Tensor], item: &[Tensor], shared: &[Tensor]) -> Result<Vec<Tensor>> {
        let mut next = self.body.step(state, item, shared)?;
        next.truncate(state.len());
        next.extend_from_slice(state);
        Ok(next)
    }

    fn types(&self) -> Option<Vec<Aval>> {
        let state = &self.body.types()?[..self.width()];
        Some([state, state].concat())
    }

    fn graph(&self) -> Option<&Arc<Graph>> {
        self.graph.as_ref()
    }
}

/// The pullback of one step: which of the inputs, and of the outputs, have cotangents.
struct StepPullback<'a> {
    of: &'a Loop,
    /// Whether it is that of `backward`.
    ambient: bool,
    states: Vec<usize>,
    items: Vec<usize>,
    shared: Vec<usize>,
    rows: Vec<usize>,
}

impl<'a> StepPullback<'a> {
    fn new(of: &'a Loop, at: &BlockAt, gs: &[Option<Tensor>]) -> StepPullback<'a> {
        let (state, stacked, shared) = of.split(at.inputs);
        let which = |wanted: &dyn Fn(usize) -> bool, n: usize| (0..n).filter(|&k| wanted(k)).collect();
        // A state gets its cotangent from the next one even if the first of all needs none.
        let float = |k: usize| state[k].node().dtype.is_differentiable();
        let needed =
            |i: &crate::tape::Input| i.node().dtype.is_differentiable() && i.node().deps.contains(at.level);
        StepPullback {
            of,
            ambient: is_ambient(at.level),
            states: which(&float, state.len()),
            items: which(&|k| needed(&stacked[k]), stacked.len()),
            shared: which(&|k| needed(&shared[k]), shared.len()),
            rows: which(&|k| gs[state.len() + k].is_some(), gs.len().saturating_sub(state.len())),
        }
    }

    /// From the carried cotangents, the state before the step, its item, the cotangents of its outputs and the shared inputs, to the
    /// carried cotangents before it and those of the item.
    fn pull(&self, leaves: &[Tensor]) -> Result<Vec<Tensor>> {
        let (gs, rest) = leaves.split_at(self.states.len());
        let (sums, rest) = rest.split_at(self.shared.len());
        let (state, rest) = rest.split_at(self.of.body.width());
        let (item, rest) = rest.split_at(self.of.items);
        let (rows, shared) = rest.split_at(self.rows.len());
        let pick = |from: &[Tensor], at: &[usize]| at.iter().map(|&k| from[k].clone()).collect::<Vec<_>>();
        let inputs =
            [pick(state, &self.states), pick(item, &self.items), pick(shared, &self.shared)].concat();
        let put = |into: &[Tensor], at: &[usize], x: &[Tensor]| {
            let mut all = into.to_vec();
            at.iter().zip(x).for_each(|(&k, x)| all[k] = x.clone());
            all
        };
        let run = |x: &[Tensor]| {
            let (states, x) = x.split_at(self.states.len());
            let (items, others) = x.split_at(self.items.len());
            let state = put(state, &self.states, states);
            let (item, shared) = (put(item, &self.items, items), put(shared, &self.shared, others));
            let mut next = self.of.body.step(&state, &item, &shared)?;
            let ys = next.split_off(state.len());
            Ok([pick(&next, &self.states), pick(&ys, &self.rows)].concat())
        };
        let mut states = pull_through(self.ambient, run, &inputs, &[gs, rows].concat())?;
        let mut items = states.split_off(self.states.len());
        let others = items.split_off(self.items.len());
        let sums = sums.iter().zip(&others).map(|(sum, g)| sum + g);
        Ok(states.into_iter().chain(sums).chain(items).collect())
    }
}
