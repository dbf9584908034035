//! Operations on more than two nodes: fused sums, external functions, and inputs that come late.

use super::slot::{self, Taped};
use super::store::{Store, out_of_memory};
use crate::scalar::Var;
use crate::scalar::real::chained;
use std::ops::Range;

/// The pullback of an external function: from the cotangents of its outputs to those of its inputs.
pub(super) type Pullback<T> = Box<dyn Fn(&[T], &mut [T])>;

/// One operation on many nodes.
pub(in crate::scalar) struct Many<T> {
    /// Its (first) node.
    pub node: u32,
    /// Its arguments, in the terms of the store.
    pub terms: Range<usize>,
    pub kind: Kind<T>,
}

pub(in crate::scalar) enum Kind<T> {
    /// The adjoint stays where it is: for an input, or for an external function whose first output comes later in the sweep.
    Keep,
    /// `d(self) = factor Σ partial d(node)`.
    Sum(T),
    /// So many outputs on consecutive nodes, with a pullback written by the user.
    Call(u32, Pullback<T>),
}

/// The arguments of all operations on many nodes: partial derivatives and nodes.
pub(in crate::scalar) struct Terms<T> {
    pub partials: Vec<T>,
    pub nodes: Vec<u32>,
}

impl<T> Terms<T> {
    pub fn push(&mut self, partial: T, node: u32) {
        self.partials.push(partial);
        self.nodes.push(node);
    }

    pub fn reserve(&mut self, more: usize) {
        if self.partials.try_reserve(more).is_err() || self.nodes.try_reserve(more).is_err() {
            let bytes = (self.len() + more) * (size_of::<T>() + size_of::<u32>());
            out_of_memory(bytes, "the terms of sums on a tape; a checkpointed loop keeps fewer");
        }
    }

    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    pub fn truncate(&mut self, len: usize) {
        self.partials.truncate(len);
        self.nodes.truncate(len);
    }
}

/// Records the operation that the terms from `start` on belong to; its node.
fn push_many<T: Taped>(start: usize, kind: Kind<T>) -> u32 {
    let b = slot::with_current::<T, _>(|tape| {
        let store: &mut Store<T> = tape.store();
        store.many.push(Many { node: tape.node(), terms: start..store.terms.len(), kind });
        store.many.len() as u32 - 1
    });
    slot::push_described::<T>(b) as u32
}

/// A node whose adjoint the sweep leaves in place.
pub(super) fn push_kept<T: Taped>() -> u32 {
    let start = slot::with_current::<T, _>(|tape| tape.store().terms.len());
    push_many::<T>(start, Kind::Keep)
}

/// Collects the terms of one operation on many nodes on the tape that is recording.
pub(in crate::scalar) struct Gather<T: Taped> {
    start: usize,
    generation: u32,
    /// The last term that was not a constant.
    last: Option<(Var<T>, T)>,
}

impl<T: Taped> Gather<T> {
    /// Gathers `terms`, variables with their partial derivatives. Constants are left out.
    pub fn new(mut terms: impl Iterator<Item = (Var<T>, T)>) -> Self {
        let mut gather = Gather { start: 0, generation: 0, last: None };
        if !slot::is_recording::<T>() {
            if terms.any(|(x, _)| !x.is_constant()) {
                slot::foreign();
            }
            return gather;
        }
        slot::with_current::<T, _>(|tape| {
            let store = tape.store();
            gather.start = store.terms.len();
            gather.generation = tape.generation();
            store.terms.reserve(terms.size_hint().0);
            for (x, p) in terms {
                if !x.is_constant() {
                    tape.check(x);
                    store.terms.push(chained(p, x.scale()), x.node());
                    gather.last = Some((x, p));
                }
            }
        });
        gather
    }

    /// The variable with the given value whose partials are those that were gathered, times `factor`.
    pub fn finish(self, value: T, factor: T) -> Var<T> {
        let Some((x, p)) = self.last else { return Var::fixed(value) };
        let many = slot::with_current::<T, _>(|tape| {
            let terms = &mut tape.store().terms;
            if terms.len() == self.start + 1 {
                terms.truncate(self.start);
                return false;
            }
            true
        });
        if !many {
            return x.scaled_node(value, p.chain_mul(factor));
        }
        Var::on_node(value, push_many::<T>(self.start, Kind::Sum(factor)), self.generation)
    }
}

/// Puts a function with a hand-written pullback on the tape: a linear solve, the root of an equation, a call into another library.
///
/// `outputs` are its values at `inputs`. In the sweep, `pullback(g, d)` gets the cotangents `g` of the outputs and
/// writes the cotangents of the inputs into `d`, which is zero before. It must be linear in `g`.
///
/// ```
/// use pullback::scalar::{external, Tape};
/// // x with x² = a, found by any means; the implicit function theorem gives dx = da / (2 x).
/// let mut tape = Tape::new();
/// let slope = tape.record(|t| {
///     let a = t.input(9.0);
///     let x = external(&[a], &[3.0], |g, d| d[0] = g[0] / 6.0);
///     t.derivative(x[0], a)
/// });
/// assert_eq!(slope, 1.0 / 6.0);
/// ```
///
/// # Panics
/// If no tape of this type is recording.
pub fn external<T: Taped>(
    inputs: &[Var<T>],
    outputs: &[T],
    pullback: impl Fn(&[T], &mut [T]) + 'static,
) -> Vec<Var<T>> {
    if outputs.is_empty() {
        return Vec::new();
    }
    let (start, generation) = slot::with_current::<T, _>(|tape| {
        let store = tape.store();
        let start = store.terms.len();
        store.terms.reserve(inputs.len());
        for x in inputs {
            tape.check(*x);
            store.terms.push(x.scale(), x.node());
        }
        (start, tape.generation())
    });
    let first = push_many(start, Kind::Call(outputs.len() as u32, Box::new(pullback)));
    for _ in 1..outputs.len() {
        push_kept::<T>();
    }
    outputs.iter().zip(first..).map(|(&y, node)| Var::on_node(y, node, generation)).collect()
}
