//! Deliberately wrong rules, to see that the laws find them.

use super::{At, Cotangents, Op};
use crate::error::Result;
use crate::tensor::Tensor;
use std::cell::Cell;

/// A mistake that someone could make in a rule.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// A wrong constant: the cotangent of this input is 0.1 % too large.
    Scaled(usize),
    /// The cotangents of the first two float inputs are exchanged.
    Swapped,
    /// The cotangents are right, but computed by something that is not differentiable.
    Detached,
    /// The rule of the operation with its axis off by one, where that does not show in the shape.
    Axis(fn(&Op) -> Option<Op>),
    /// The cotangent of the first input is missing.
    Missing,
    /// The batching rule of the operation with its axis off by one, where that does not show in the shape.
    BatchedAxis(fn(&Op) -> Option<Op>),
    /// The batching rule gives the lanes in another order.
    Lanes,
    /// A block inside of a frame takes its inputs without the history that transforms around the frame need.
    Stripped,
}

thread_local! {
    static FAULT: Cell<Option<(&'static str, Fault)>> = const { Cell::new(None) };
}

/// Runs `f` with a fault in the rule of the operation `name`.
pub(crate) fn with<T>(name: &'static str, fault: Fault, f: impl FnOnce() -> T) -> T {
    FAULT.set(Some((name, fault)));
    let out = std::panic::catch_unwind(std::panic::AssertUnwindSafe(f));
    FAULT.set(None);
    out.unwrap_or_else(|e| std::panic::resume_unwind(e))
}

/// The cotangents that the (possibly faulty) rule gives.
pub(crate) fn apply(op: &Op, _: &At, _: &Tensor, rule: impl Fn(&Op) -> Cotangents) -> Cotangents {
    let Some((_, fault)) = FAULT.get().filter(|(name, _)| *name == op.name()) else { return rule(op) };
    if let Fault::Axis(other) = fault {
        return rule(&other(op).unwrap_or_else(|| op.clone()));
    }
    let mut gs = rule(op);
    match fault {
        Fault::Scaled(k) => gs[k] = gs[k].take().map(|g| g * 1.001),
        Fault::Swapped => gs.swap(0, 1),
        Fault::Detached => gs.iter_mut().for_each(|g| *g = g.take().map(|g| g.detach())),
        Fault::Missing => gs[0] = None,
        Fault::Axis(_) => unreachable!("handled above"),
        Fault::BatchedAxis(_) | Fault::Lanes | Fault::Stripped => {}
    }
    gs
}

/// What the (possibly faulty) batching rule gives.
pub(crate) fn apply_batch(op: &Op, rule: impl Fn(&Op) -> Option<Result<Tensor>>) -> Option<Result<Tensor>> {
    match FAULT.get() {
        Some((name, Fault::BatchedAxis(other))) if name == op.name() => rule(&other(op)?),
        Some((name, Fault::Lanes)) if name == op.name() => Some(rule(op)?.map(|y| y.flip(0))),
        _ => rule(op),
    }
}

/// Whether [`Fault::Stripped`] is planted in the block of this name.
pub(crate) fn strips(block: &str) -> bool {
    matches!(FAULT.get(), Some((name, Fault::Stripped)) if name == block)
}
