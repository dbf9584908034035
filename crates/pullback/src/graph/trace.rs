//! Running a function on placeholders, and keeping what it did.

use super::{Graph, Ref, Step};
use crate::error::{Result, err};
use crate::location::caller;
use crate::ops::{Aval, Op};
use crate::tape::{Level, Scope};
use crate::tensor::{Data, Tensor, Tracer};
use smallvec::SmallVec;
use std::any::Any;
use std::collections::HashMap;
use std::panic::Location;
use std::sync::{Arc, Mutex, MutexGuard};

/// A graph that is being built.
pub(crate) struct Trace {
    level: Level,
    /// Where it began: whether `no_grad` surrounds it is up to whoever runs the graph.
    began: Scope,
    state: Mutex<State>,
}

struct State {
    graph: Graph,
    /// Where each captured tensor is among the constants.
    captured: HashMap<u64, usize>,
    open: bool,
}

impl Trace {
    fn new(inputs: Vec<Aval>) -> Arc<Trace> {
        let graph =
            Graph { inputs, consts: Vec::new(), steps: Vec::new(), outputs: Vec::new(), names: Vec::new() };
        let state = State { graph, captured: HashMap::new(), open: true };
        Arc::new(Trace { level: Level::new(), began: Scope::here(), state: Mutex::new(state) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Where a value is in the graph; what comes from outside is captured.
    fn locate(&self, state: &mut State, t: &Tensor) -> Ref {
        match placeholder(t) {
            Some(p) if p.trace.level.id() == self.level.id() => p.at,
            _ => {
                let next = state.graph.consts.len();
                let at = *state.captured.entry(t.address()).or_insert(next);
                if at == next {
                    // Holding the tensor keeps its address from being used again.
                    state.graph.consts.push(t.clone());
                }
                Ref::Const(at)
            }
        }
    }

    /// Adds an operation at the line that `bind` works for; the result is its first output.
    fn push(&self, op: &Op, inputs: &[&Tensor], avals: SmallVec<[Aval; 1]>) -> Result<Ref> {
        let mut state = self.state();
        if !state.open {
            return Err(err!(
                Value,
                "a placeholder has left the function that was traced; return the value instead of storing it"
            ));
        }
        let args: SmallVec<[Ref; 2]> = inputs.iter().map(|t| self.locate(&mut state, t)).collect();
        let at = Ref::Step(state.graph.steps.len(), 0);
        let mut step = Step { op: op.clone(), args, avals, location: caller() };
        if self.began.is_quiet() {
            let types = step.args.iter().map(|&a| state.graph.aval(a)).collect();
            step.op = super::call::quiet(step.clone(), types);
        }
        state.graph.steps.push(step);
        Ok(at)
    }
}

/// A value of the graph that is being built.
struct Placeholder {
    trace: Arc<Trace>,
    at: Ref,
}

impl Tracer for Placeholder {
    fn level(&self) -> u64 {
        self.trace.level.id()
    }

    fn apply(
        &self,
        op: &Op,
        inputs: &[&Tensor],
        avals: SmallVec<[Aval; 1]>,
    ) -> Result<SmallVec<[Arc<dyn Tracer>; 1]>> {
        let slots = avals.len();
        let at = self.trace.push(op, inputs, avals)?;
        let output = |slot| Arc::new(Placeholder { trace: self.trace.clone(), at: at.slot(slot) });
        Ok((0..slots).map(|slot| output(slot) as Arc<dyn Tracer>).collect())
    }

    fn location(&self) -> Option<&'static Location<'static>> {
        match self.at {
            Ref::Step(k, _) => Some(self.trace.state().graph.steps[k].location),
            _ => None,
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The placeholder that a value is.
fn placeholder(t: &Tensor) -> Option<&Placeholder> {
    match t.data() {
        Data::Traced(p) => p.as_any().downcast_ref(),
        _ => None,
    }
}

/// Gives a value a name in the graph that is being traced, if one is.
pub(crate) fn give_name(t: &Tensor, name: &'static str) {
    match t.data() {
        Data::Dual(d) => give_name(&d.primal, name),
        Data::Mapped(m) => give_name(&m.value, name),
        _ => {
            if let Some(p) = placeholder(t) {
                p.trace.state().graph.names.push((name.into(), p.at));
            }
        }
    }
}

/// What `f` does to inputs of these types, with the tensors it captured as constants.
pub(crate) fn trace_leaves(
    f: impl FnOnce(&[Tensor]) -> Result<Vec<Tensor>>,
    inputs: Vec<Aval>,
) -> Result<Graph> {
    let trace = Trace::new(inputs.clone());
    let placeholder = |(k, aval): (usize, Aval)| {
        let data = Data::Traced(Arc::new(Placeholder { trace: trace.clone(), at: Ref::Input(k) }));
        Tensor::new(aval.dtype, aval.shape, data)
    };
    let placeholders: Vec<Tensor> = inputs.into_iter().enumerate().map(placeholder).collect();
    let outputs = f(&placeholders)?;
    let mut state = trace.state();
    state.open = false;
    state.graph.outputs = outputs.iter().map(|t| trace.locate(&mut state, t)).collect();
    Ok(state.graph.clone().pruned())
}
