//! Running a function on placeholders, and keeping what it did.

use super::{Graph, Ref, Step};
use crate::error::{Result, caught, err, or_panic};
use crate::ops::{Aval, Op};
use crate::tape::{Level, Scope, caller, entered};
use crate::tensor::{Data, Tensor, Traced};
use crate::transform::{Tree, avals, from_leaves};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::panic::Location;
use std::sync::{Arc, Mutex, MutexGuard};

/// A graph that is being built.
pub(crate) struct Trace {
    level: Level,
    /// Where it began: what `no_grad` is around it is the business of whoever runs the graph.
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

    pub fn level(&self) -> u64 {
        self.level.id()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Where a value is in the graph; what comes from outside is captured.
    fn locate(&self, state: &mut State, t: &Tensor) -> Ref {
        match t.data() {
            Data::Traced(d) if d.trace.level() == self.level() => d.at,
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

    /// The line of code that made a value, or that reads it now if it is an input.
    #[track_caller]
    pub fn location(&self, at: Ref) -> &'static Location<'static> {
        match at {
            Ref::Step(k, _) => self.state().graph.steps[k].location,
            _ => caller(),
        }
    }

    /// Adds an operation; the result is its first output.
    #[track_caller]
    pub fn push(&self, op: &Op, inputs: &[&Tensor], avals: SmallVec<[Aval; 1]>) -> Result<Ref> {
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

/// Gives a value a name in the graph that is being traced, if one is.
pub(crate) fn give_name(t: &Tensor, name: &'static str) {
    match t.data() {
        Data::Traced(d) => d.trace.state().graph.names.push((name.into(), d.at)),
        Data::Dual(d) => give_name(&d.primal, name),
        Data::Mapped(m) => give_name(&m.value, name),
        _ => {}
    }
}

/// What `f` does to inputs of these types, with the tensors it captured as constants.
pub(crate) fn trace_leaves(
    f: impl FnOnce(&[Tensor]) -> Result<Vec<Tensor>>,
    inputs: Vec<Aval>,
) -> Result<Graph> {
    let trace = Trace::new(inputs.clone());
    let placeholder = |(k, aval): (usize, Aval)| {
        let data = Data::Traced(Box::new(Traced { trace: trace.clone(), at: Ref::Input(k) }));
        Tensor::new(aval.dtype, aval.shape, data)
    };
    let placeholders: Vec<Tensor> = inputs.into_iter().enumerate().map(placeholder).collect();
    let outputs = f(&placeholders)?;
    let mut state = trace.state();
    state.open = false;
    state.graph.outputs = outputs.iter().map(|t| trace.locate(&mut state, t)).collect();
    Ok(state.graph.clone().pruned())
}

/// What a function does, as a graph: the function runs once, on placeholders of the shapes and types of `x`. Tensors that it captures
/// become constants.
///
/// ```
/// use pullback::prelude::*;
/// let g = trace(|x: &Tensor| x.sin() * x, &Tensor::zeros([3]));
/// assert_eq!(g.len(), 2);
/// assert_eq!(g.run(&[Tensor::from([0.0, 1.0, 2.0])])?[0].to_vec::<f64>()[0], 0.0);
/// # Ok::<(), pullback::Error>(())
/// ```
#[must_use]
#[track_caller]
pub fn trace<X: Tree, Y: Tree>(f: impl Fn(&X) -> Y, x: &X) -> Graph {
    or_panic(try_trace(f, x))
}

/// [`trace`], with an error where the function asks for a value that is not known, or fails otherwise.
///
/// ```
/// use pullback::prelude::*;
/// let e = pullback::try_trace(|x: &Tensor| x * x.item(), &Tensor::scalar(1.0)).unwrap_err();
/// assert!(e.to_string().contains("not known while a function is traced"));
/// ```
#[track_caller]
pub fn try_trace<X: Tree, Y: Tree>(f: impl Fn(&X) -> Y, x: &X) -> Result<Graph> {
    let location = Location::caller();
    let _entered = entered(location);
    let run = |leaves: &[Tensor]| caught(|| f(&from_leaves(x, leaves.iter().cloned())).flatten());
    trace_leaves(run, avals(x)).map_err(|e| e.in_op("trace").at(location))
}
