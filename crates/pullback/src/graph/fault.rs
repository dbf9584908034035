//! Deliberate faults in passes, in the planner and in fused groups, to see that random programs find them.
//!
//! Each changes what a stage has made, as a mistake in that stage would. None can lead outside of the memory that a stage has taken.

use super::{Graph, Ref};
use crate::ops::{LogSumExp, Max, Min, Op, Sum};
use std::cell::Cell;

macro_rules! faults {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// A mistake that someone could make.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Fault {
            $($(#[$doc])* $name,)*
        }

        impl Fault {
            pub const ALL: &[Fault] = &[$(Fault::$name),*];
        }
    };
}

faults! {
    /// Passes: a difference or quotient the other way round.
    SwappedOperands,
    /// Passes: values of different operands taken for equal.
    MergedValues,
    /// Passes: a reduction of the neighbouring axis.
    WrongAxis,
    /// Passes: a permutation taken for one that changes nothing.
    ForgottenPermutation,
    /// Passes: one term of a sum.
    DroppedTerm,
    /// Passes: a slice that begins one element later.
    ShiftedSlice,
    /// Passes: parts put together in another order.
    ReversedParts,
    /// Fused groups: operands of an instruction the other way round.
    SwappedRegisters,
    /// Fused groups: a register that holds another value.
    StaleRegister,
    /// Fused groups: two values that are needed together in one register.
    SharedRegister,
    /// Fused groups: what belongs to each tile is read for the first one alone.
    ReadOnce,
    /// Fused groups: a result that is not stored.
    MissingStore,
    /// Fused groups: a reduction that nothing is added to.
    MissingAccumulation,
    /// Fused groups: maxima for sums.
    WrongReduction,
    /// Fused groups: a pad that is one element too wide.
    WidePad,
    /// Fused groups: a pad of another number.
    WrongPad,
    /// Fused groups: the last row is left out.
    MissingRow,
    /// Fused groups: an input read along the other axis.
    TransposedInput,
    /// Planner: a view with its strides exchanged.
    TransposedView,
    /// Planner: the operands of a kernel exchanged.
    SwappedInputs,
    /// Planner: the results of a group exchanged.
    SwappedResults,
    /// Planner: memory that is given up one kernel too early.
    FreedEarly,
    /// Planner: a result in the place of a value that is still needed.
    OverwrittenValue,
}

thread_local! {
    static PLANTED: Cell<Option<Fault>> = const { Cell::new(None) };
}

/// Runs `f`, which does not panic, with a fault.
pub(crate) fn with<T>(fault: Fault, f: impl FnOnce() -> T) -> T {
    PLANTED.set(Some(fault));
    let out = f();
    PLANTED.set(None);
    out
}

/// The fault that there is.
pub(crate) fn planted() -> Option<Fault> {
    PLANTED.get()
}

/// Puts a fault of passes into an optimised graph.
pub(crate) fn in_graph(graph: &mut Graph) {
    let Some(fault) = planted() else { return };
    let shape = |graph: &Graph, at: Ref| graph.aval(at).shape;
    let beside = |axes: &[usize], shape: &[usize]| {
        let next = (axes.first()? + 1) % shape.len();
        (axes.len() == 1 && shape[next] == shape[axes[0]]).then(|| [next].as_slice().into())
    };
    for k in 0..graph.steps.len() {
        let (op, args) = (graph.steps[k].op.clone(), graph.steps[k].args.clone());
        match (fault, &op) {
            (Fault::SwappedOperands, Op::Sub(_) | Op::Div(_)) => graph.steps[k].args.reverse(),
            (Fault::MergedValues, op) if !matches!(op, Op::Block(_)) => {
                let other = &graph.steps[k];
                let equal = |j: &usize| graph.steps[*j].op == *op && graph.steps[*j].avals == other.avals;
                if let Some(j) = (0..k).find(equal) {
                    replace(graph, Ref::Step(k, 0), Ref::Step(j, 0));
                }
            }
            (Fault::WrongAxis, op) => {
                let wrong = |axes: &[usize]| beside(axes, &shape(graph, args[0]));
                let new = match op {
                    Op::Sum(r) => wrong(&r.axes).map(|axes| Sum { axes }.into()),
                    Op::Max(r) => wrong(&r.axes).map(|axes| Max { axes }.into()),
                    Op::Min(r) => wrong(&r.axes).map(|axes| Min { axes }.into()),
                    Op::LogSumExp(r) => wrong(&r.axes).map(|axes| LogSumExp { axes }.into()),
                    _ => None,
                };
                if let Some(op) = new {
                    graph.steps[k].op = op;
                }
            }
            (Fault::ForgottenPermutation, Op::Permute(_))
                if shape(graph, args[0]) == graph.steps[k].avals[0].shape =>
            {
                replace(graph, Ref::Step(k, 0), args[0]);
            }
            (Fault::DroppedTerm, Op::Add(_)) => replace(graph, Ref::Step(k, 0), args[0]),
            (Fault::ShiftedSlice, Op::Slice(s)) => {
                let mut s = s.clone();
                for (part, &n) in s.region.axes.iter_mut().zip(&shape(graph, args[0])[..]) {
                    let last = part.0 as isize + part.1 * part.2.saturating_sub(1) as isize;
                    part.0 += usize::from(part.2 > 0 && part.0.max(last as usize) + 1 < n);
                }
                graph.steps[k].op = s.into();
            }
            (Fault::ReversedParts, Op::Concat(_))
                if args.iter().all(|&a| shape(graph, a) == shape(graph, args[0])) =>
            {
                graph.steps[k].args.reverse();
            }
            _ => {}
        }
    }
}

/// Another value in the place of one.
fn replace(graph: &mut Graph, old: Ref, new: Ref) {
    let all = graph.steps.iter_mut().flat_map(|s| s.args.iter_mut()).chain(graph.outputs.iter_mut());
    all.filter(|a| **a == old).for_each(|a| *a = new);
}
