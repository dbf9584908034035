//! A loop as one operation, which keeps some of its states for the pullback.

use super::reversal::Reversal;
use super::rows::{Slices, stack};
use super::{in_trace, scan_pullback};
use crate::error::Result;
use crate::graph::{Body, Graph, Scan};
use crate::ops::Aval;
use crate::schedule::{Kept, Schedule};
use crate::tensor::{Block, BlockAt, Link, Ran, Tensor, bind_block_at};
use std::any::Any;
use std::ops::Range;
use std::panic::Location;
use std::sync::{Arc, Mutex};

/// One step of a loop on leaves: state, item and shared inputs to the next state and the outputs.
pub(crate) trait LoopStep: Send + Sync {
    /// How many tensors the state has.
    fn width(&self) -> usize;

    fn step(&self, state: &[Tensor], item: &[Tensor], shared: &[Tensor]) -> Result<Vec<Tensor>>;

    /// The types of what a step returns, where they are known before it has run.
    fn types(&self) -> Option<Vec<Aval>>;

    /// The step as a graph, if it was traced.
    fn graph(&self) -> Option<&Arc<Graph>> {
        None
    }
}

/// A traced step. What it captured are the shared inputs.
pub(crate) struct GraphStep {
    graph: Arc<Graph>,
    width: usize,
}

impl GraphStep {
    /// A traced step, and what it captured.
    pub fn of(graph: Graph, width: usize) -> (Arc<dyn LoopStep>, Vec<Tensor>) {
        let (graph, captured) = graph.lift();
        (Arc::new(GraphStep { graph: Arc::new(graph), width }), captured)
    }
}

impl LoopStep for GraphStep {
    fn width(&self) -> usize {
        self.width
    }

    fn step(&self, state: &[Tensor], item: &[Tensor], shared: &[Tensor]) -> Result<Vec<Tensor>> {
        self.graph.eval(&[state, item, shared].concat())
    }

    fn types(&self) -> Option<Vec<Aval>> {
        Some(self.graph.types())
    }

    fn graph(&self) -> Option<&Arc<Graph>> {
        Some(&self.graph)
    }
}

/// The steps `range` of a loop. Its inputs: the state, the stacked tensors of all steps, the shared ones. Its outputs: the last state and, unless
/// it is a part of a longer loop, the stacked outputs of the steps.
#[derive(Clone)]
pub(crate) struct Loop {
    name: &'static str,
    pub body: Arc<dyn LoopStep>,
    pub range: Range<usize>,
    schedule: Schedule,
    stacks: bool,
    /// How many of the inputs are stacked.
    pub items: usize,
    /// The states kept by the run that this is the record of. The first pullback takes them, since those that it has done with make
    /// room for others; a second one computes them again.
    pub kept: Arc<Mutex<Option<Kept<Vec<Tensor>>>>>,
}

impl Loop {
    pub fn new(
        name: &'static str,
        body: Arc<dyn LoopStep>,
        steps: usize,
        schedule: Schedule,
    ) -> Result<Loop> {
        Kept::<()>::new(schedule, steps)?;
        Ok(Loop { name, body, range: 0..steps, schedule, stacks: true, items: 0, kept: Arc::default() })
    }

    pub fn bind(
        mut self,
        location: &'static Location<'static>,
        state: &[&Tensor],
        stacked: &[&Tensor],
        shared: &[Tensor],
    ) -> Result<Vec<Tensor>> {
        self.items = stacked.len();
        let inputs: Vec<&Tensor> = state.iter().chain(stacked).copied().chain(shared).collect();
        bind_block_at(location, Arc::new(self), &inputs)
    }

    /// A part of the loop, for its states alone.
    pub fn part(&self, range: Range<usize>) -> Loop {
        Loop { range, stacks: false, kept: Arc::default(), ..self.clone() }
    }

    /// The inputs by their kinds.
    pub fn split<'a, T>(&self, inputs: &'a [T]) -> (&'a [T], &'a [T], &'a [T]) {
        let (state, rest) = inputs.split_at(self.body.width());
        let (stacked, shared) = rest.split_at(self.items);
        (state, stacked, shared)
    }

    /// Runs the steps, and hands every state to `visit`, with the number of steps before it.
    fn run(&self, x: &[Tensor], mut visit: impl FnMut(usize, &[Tensor])) -> Result<Vec<Tensor>> {
        let (state, stacked, shared) = self.split(x);
        let slices = Slices::new(&stacked.iter().collect::<Vec<_>>())?;
        let mut state = state.to_vec();
        let mut rows: Vec<Vec<Tensor>> = Vec::new();
        for (k, at) in self.range.clone().enumerate() {
            visit(k, &state);
            let mut next = self.body.step(&state, &slices.at(at), shared)?;
            let ys = next.split_off(state.len());
            if self.stacks {
                rows.resize_with(ys.len(), Vec::new);
                rows.iter_mut().zip(ys).for_each(|(row, y)| row.push(y));
            }
            state = next;
        }
        if self.stacks && rows.is_empty() {
            let types = self.body.types().into_iter().flatten().skip(self.body.width());
            state.extend(types.map(|t| Tensor::zeros_of(t.dtype, t.shape.inserted(0, 0))));
        }
        for row in rows {
            state.push(stack(&row, &row[0])?);
        }
        Ok(state)
    }

    /// Where states are kept, without the states.
    pub fn places(&self) -> Result<Kept<Vec<Tensor>>> {
        let mut kept = Kept::new(self.schedule, self.range.len())?;
        (0..self.range.len()).for_each(|k| kept.offer(k, Vec::new));
        Ok(kept)
    }
}

impl From<Scan> for Loop {
    fn from(scan: Scan) -> Loop {
        let Scan { body: graph, state: width, items, steps: range, stacks } = scan;
        let (body, schedule) = (Arc::new(GraphStep { graph, width }), Schedule::All);
        Loop { name: "scan", body, range, schedule, stacks, items, kept: Arc::default() }
    }
}

impl Block for Loop {
    fn name(&self) -> &'static str {
        self.name
    }

    fn expand(&self, x: &[Tensor]) -> Result<Vec<Tensor>> {
        self.run(x, |_, _| {})
    }

    fn run_to_record(&self, x: &[Tensor]) -> Result<Ran> {
        let mut kept = Kept::new(self.schedule, self.range.len())?;
        let outputs = self.run(x, |k, state| kept.offer(k, || state.to_vec()))?;
        Ok((outputs, Some(Arc::new(Loop { kept: Arc::new(Mutex::new(Some(kept))), ..self.clone() }))))
    }

    fn residuals(&self) -> Vec<Tensor> {
        let kept = self.kept.lock().unwrap_or_else(|e| e.into_inner());
        kept.iter().flat_map(|k| k.states()).flat_map(|(_, state)| state.clone()).collect()
    }

    fn signature(&self) -> Option<Vec<Aval>> {
        let n = self.range.len();
        let mut types = self.body.types()?;
        let ys = types.split_off(self.body.width());
        if self.stacks {
            types.extend(ys.into_iter().map(|t| Aval { dtype: t.dtype, shape: t.shape.inserted(0, n) }));
        }
        Some(types)
    }

    fn body(&self) -> Option<Box<dyn Any>> {
        let (body, state, steps) = (self.body.graph()?.clone(), self.body.width(), self.range.clone());
        Some(Box::new(Body::Scan(Scan { body, state, items: self.items, steps, stacks: self.stacks })))
    }

    fn pullback(&self, at: &BlockAt, gs: &[Option<Tensor>]) -> Result<Vec<(Link, Tensor)>> {
        let x = at.x();
        // Other schedules promise not to keep every state, and are unrolled in a graph; so is a step that is no graph, of which nobody knows
        // what it has captured.
        let is_graph = self.body.graph().is_some();
        let graphed = is_graph && self.schedule == Schedule::All && self.stacks && !self.range.is_empty();
        if graphed && in_trace(&x.iter().collect::<Vec<_>>()) {
            return scan_pullback::pullback(self, at, gs);
        }
        Reversal::new(self, at, gs)?.run(gs)
    }
}
