//! Operations on more than two nodes: fused sums, external functions, and inputs that come late.

use super::slot::{self, Taped};
use super::store::{MANY, Record, Store};
use crate::scalar::Var;
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
    /// `d(self) = Σ partial d(node)`.
    Sum,
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
    let zero = T::constant(0.0);
    slot::push(Record { pa: zero, pb: zero, a: MANY, b })
}

/// A node whose adjoint the sweep leaves in place.
pub(super) fn push_kept<T: Taped>() -> u32 {
    let start = slot::with_current::<T, _>(|tape| tape.store().terms.len());
    push_many::<T>(start, Kind::Keep)
}

/// `value` as one operation with the given partial derivatives. Constant arguments are left out.
pub(in crate::scalar) fn linear<T: Taped>(value: T, terms: impl Iterator<Item = (Var<T>, T)> + Clone) -> Var<T> {
    let mut active = terms.clone().filter(|(x, _)| !x.is_constant());
    let (Some(first), second) = (active.next(), active.next()) else {
        return Var::fixed(value);
    };
    if second.is_none() {
        return first.0.scaled_node(value, first.1);
    }
    let generation = first.0.generation();
    let start = slot::with_current::<T, _>(|tape| {
        let store = tape.store();
        let start = store.terms.len();
        for (x, p) in terms {
            if !x.is_constant() {
                slot_check(&x);
                store.terms.push(p * x.scale(), x.node());
            }
        }
        start
    });
    Var::on_node(value, push_many::<T>(start, Kind::Sum), generation)
}

fn slot_check<T: Taped>(x: &Var<T>) {
    slot::check::<T>(x.node(), x.generation());
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
        for x in inputs {
            slot_check(x);
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
