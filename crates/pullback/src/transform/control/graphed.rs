//! The pullback of a loop that stands in a graph, as a loop: the graph of a gradient is as long as that of the function, whatever the
//! number of steps.

use super::looped::{Body, Loop, Traced};
use super::schedule::Schedule;
use crate::error::{Result, or_panic};
use crate::graph::{Graph, Ref, trace_leaves};
use crate::ops::Aval;
use crate::tape::{caller, is_ambient};
use crate::tensor::{BlockAt, Link, Tensor};
use crate::transform::checkpoint::avals;
use crate::transform::pulled_for;
use std::sync::Arc;

/// Contributions to the inputs of a loop by two others: one that stacks its states, and one over these in reverse, which carries the
/// cotangents of the state and the sums of those of the shared inputs.
pub(super) fn pullback(of: &Loop, at: &BlockAt, gs: &[Option<Tensor>]) -> Result<Vec<(Link, Tensor)>> {
    let (x, n) = (at.x(), of.range.len());
    let (state, stacked, shared) = of.split(&x);
    let step = Step::new(of, at, gs);
    let name = "scan";

    let history: Arc<dyn Body> = Arc::new(History::new(of.body.clone()));
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
    let types = avals(&carry).into_iter().chain(items.iter().map(slice)).chain(avals(&shared.to_vec()));
    let graph = trace_leaves(|leaves| step.pull(leaves), types.collect())?;
    let (body, captured) = Traced::of(graph, carry.len());
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
    body: Arc<dyn Body>,
    /// The same as a graph, if the step is one.
    graph: Option<Arc<Graph>>,
}

impl History {
    fn new(body: Arc<dyn Body>) -> History {
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

impl Body for History {
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
struct Step<'a> {
    of: &'a Loop,
    /// Whether it is that of `backward`.
    ambient: bool,
    states: Vec<usize>,
    items: Vec<usize>,
    shared: Vec<usize>,
    rows: Vec<usize>,
}

impl<'a> Step<'a> {
    fn new(of: &'a Loop, at: &BlockAt, gs: &[Option<Tensor>]) -> Step<'a> {
        let (state, stacked, shared) = of.split(at.inputs);
        let which = |wanted: &dyn Fn(usize) -> bool, n: usize| (0..n).filter(|&k| wanted(k)).collect();
        // A state gets its cotangent from the next one even if the first of all needs none.
        let float = |k: usize| state[k].node().dtype.is_float();
        let needed = |i: &crate::tape::Input| i.node().dtype.is_float() && i.node().deps.contains(at.level);
        Step {
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
        let inputs = [pick(state, &self.states), pick(item, &self.items), pick(shared, &self.shared)];
        let put = |into: &[Tensor], at: &[usize], x: &[Tensor]| {
            let mut all = into.to_vec();
            at.iter().zip(x).for_each(|(&k, x)| all[k] = x.clone());
            all
        };
        let run = |[states, items, others]: &[Vec<Tensor>; 3]| -> [Vec<Tensor>; 2] {
            let state = put(state, &self.states, states);
            let (item, shared) = (put(item, &self.items, items), put(shared, &self.shared, others));
            let mut next = or_panic(self.of.body.step(&state, &item, &shared));
            let ys = next.split_off(state.len());
            [pick(&next, &self.states), pick(&ys, &self.rows)]
        };
        let [states, items, others] = pulled_for(self.ambient, run, &inputs, &[gs.to_vec(), rows.to_vec()])?;
        let sums = sums.iter().zip(&others).map(|(sum, g)| sum + g);
        Ok(states.into_iter().chain(sums).chain(items).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transform::checkpoint::graph_of;
    use crate::transform::{Tree, from_leaves};
    use crate::{DType, grad, scan, while_loop_bounded};

    type P = (Tensor, (Tensor, Tensor));

    fn start(n: usize) -> P {
        let xs = Tensor::linspace(-1.0, 1.0, 2 * n).reshape([n, 2]);
        (Tensor::from([[0.3, -0.2], [0.5, 0.7]]), (Tensor::from([0.1, 0.2]), xs))
    }

    /// A state with a counter, shared weights, items, outputs of two types.
    fn recurrent((w, (h, xs)): &P) -> Tensor {
        let step = |(h, k): &(Tensor, Tensor), x: &Tensor| {
            let h = (w.matmul(h) + x).tanh();
            ((h.clone(), k + 1), (h.square().sum() * k.cast(DType::F64), h.gt(0.0)))
        };
        let ((h, _), (ys, _)) = scan(step, &(h.clone(), Tensor::scalar(0)), xs);
        h.sum() + ys.sin().sum()
    }

    fn near(a: &P, b: &P) {
        for (a, b) in a.leaves().into_iter().zip(b.leaves()) {
            let (a, b) = (a.to_vec::<f64>(), b.to_vec::<f64>());
            assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-12 * (1.0 + b.abs())), "{a:?} {b:?}");
        }
    }

    #[test]
    fn the_graph_of_a_gradient_does_not_grow_with_the_steps() {
        let second = |p: &P| grad(|p: &P| grad(recurrent)(p).0.square().sum())(p);
        for f in [&grad(recurrent) as &dyn Fn(&P) -> P, &second] {
            let lengths = [2, 5, 50].map(|n| graph_of(&f, &start(n)).unwrap().0.len());
            assert!(lengths[0] == lengths[1] && lengths[1] == lengths[2], "{lengths:?}");
            let p = start(7);
            let graph = graph_of(&f, &p).unwrap().0;
            assert!(graph.to_string().parse::<Graph>().is_ok(), "all loops are made of graphs");
            let traced = graph.eval(&p.flatten()).unwrap();
            near(&from_leaves(&p, traced), &f(&p));
        }
    }

    #[test]
    fn a_bounded_loop_too() {
        let f = |x: &Tensor| while_loop_bounded(40, |x: &Tensor| x.gt(2.0), |x: &Tensor| x.sqrt() * 1.1, x);
        let x = Tensor::scalar(900.0);
        let graph = graph_of(&grad(f), &x).unwrap().0;
        assert!(graph.len() < 40);
        let traced = graph.eval(std::slice::from_ref(&x)).unwrap()[0].item();
        assert!((traced - grad(f)(&x).item()).abs() < 1e-15);
    }
}
