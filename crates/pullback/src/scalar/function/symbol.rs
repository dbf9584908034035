//! The number type that a function runs on while it is recorded.

use super::builder::Builder;
use super::graph::{Comparison, Graph, Op};
use crate::scalar::Real;
use crate::scalar::operators::derived_operators;
use pullback_table::{Number, elementwise_table};
use std::cell::RefCell;
use std::cmp::Ordering;
use std::panic::Location;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// A number of a function that is being recorded by [`Function::record`](super::Function::record): its value at the
/// point of recording, and the operation that it comes from.
#[derive(Clone, Copy, Debug)]
pub struct Symbol {
    value: f64,
    /// The node, or `u32::MAX` for a constant.
    node: u32,
    generation: u32,
}

const CONSTANT: u32 = u32::MAX;

thread_local! {
    static BUILDER: RefCell<Option<Builder>> = const { RefCell::new(None) };
}

fn with_builder<R>(f: impl FnOnce(&mut Builder) -> R) -> R {
    BUILDER.with_borrow_mut(|builder| {
        f(builder.as_mut().expect("a symbol was used outside the recording of its function"))
    })
}

/// Runs `f` on a builder that starts with `graph`; the graph of the symbols that `f` returns.
pub(super) fn build(graph: Option<Graph>, f: impl FnOnce() -> Vec<Symbol>) -> Graph {
    /// Puts back what was being recorded before, also after a panic.
    struct Restore(Option<Builder>);
    impl Drop for Restore {
        fn drop(&mut self) {
            BUILDER.set(self.0.take());
        }
    }
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let generation = NEXT.fetch_add(1, Relaxed);
    let builder = match graph {
        Some(graph) => Builder::extending(graph, generation),
        None => Builder::new(generation),
    };
    let _restore = Restore(BUILDER.replace(Some(builder)));
    let outputs = f();
    BUILDER.take().expect("installed above").finish(&outputs)
}

/// A new input of the graph being built.
pub(super) fn input(value: f64) -> Symbol {
    with_builder(|b| b.input(value))
}

/// A node of the graph that the builder started with.
pub(super) fn existing(node: u32) -> Symbol {
    with_builder(|b| b.symbol(node))
}

/// The outputs of another graph of the same inputs, whose operations are appended.
pub(super) fn include(graph: &Graph) -> Vec<Symbol> {
    with_builder(|b| b.include(graph))
}

fn emit(op: Op, x: &[Symbol], value: f64) -> Symbol {
    if x.iter().all(|x| x.node == CONSTANT) {
        return Symbol::fixed(value);
    }
    with_builder(|b| b.emit(op, x, value))
}

impl Symbol {
    pub(super) fn fixed(value: f64) -> Self {
        Symbol { value, node: CONSTANT, generation: 0 }
    }

    pub(super) fn on_node(value: f64, node: u32, generation: u32) -> Self {
        Symbol { value, node, generation }
    }

    pub(super) fn node(self) -> Option<u32> {
        (self.node != CONSTANT).then_some(self.node)
    }

    pub(super) fn generation(self) -> u32 {
        self.generation
    }

    pub(super) fn at_recording(self) -> f64 {
        self.value
    }

    /// The second or third argument, by the first: `if self != 0 { then } else { otherwise }`.
    pub(super) fn choose(self, then: Self, otherwise: Self) -> Self {
        let value = if self.value != 0.0 { then.value } else { otherwise.value };
        emit(Op::Select, &[self, then, otherwise], value)
    }

    #[track_caller]
    fn compare(self, comparison: Comparison, other: Self) -> bool {
        let outcome = comparison.holds(self.value, other.value);
        if self.node != CONSTANT || other.node != CONSTANT {
            let location = Location::caller();
            with_builder(|b| b.guard(comparison, self, other, outcome, location));
        }
        outcome
    }
}

macro_rules! symbol_method {
    ($m:ident $P:ident ($($operator:tt)*) $($x:ident)+) => {};
    ($m:ident $P:ident $value:tt $x:ident) => {
        fn $m(self) -> Self {
            emit(Op::$P, &[self], Number::$m(self.value))
        }
    };
    ($m:ident $P:ident $value:tt $a:ident $b:ident) => {
        fn $m(self, other: Self) -> Self {
            emit(Op::$P, &[self, other], Number::$m(self.value, other.value))
        }
    };
}

macro_rules! number_for_symbol {
    ($($(#[$doc:meta])* $P:ident $m:ident $try:ident($($x:ident),+) = $value:tt;
        d = $d:tt; reads $([$($r:ident)*])+; $facts:tt)*) => {
        impl Number for Symbol {
            $(symbol_method! { $m $P $value $($x)+ })*
        }
    };
}
elementwise_table!(number_for_symbol);

impl std::ops::Neg for Symbol {
    type Output = Symbol;
    fn neg(self) -> Symbol {
        emit(Op::Neg, &[self], -self.value)
    }
}

macro_rules! symbol_operator {
    ($($Op:ident $op:ident),*) => {$(
        impl std::ops::$Op for Symbol {
            type Output = Symbol;
            fn $op(self, other: Symbol) -> Symbol {
                emit(Op::$Op, &[self, other], std::ops::$Op::$op(self.value, other.value))
            }
        }
        impl std::ops::$Op<f64> for Symbol {
            type Output = Symbol;
            fn $op(self, other: f64) -> Symbol {
                std::ops::$Op::$op(self, Symbol::fixed(other))
            }
        }
    )*};
}
symbol_operator!(Add add, Sub sub, Mul mul, Div div);
derived_operators! { [] Symbol }

impl PartialEq for Symbol {
    #[track_caller]
    fn eq(&self, other: &Self) -> bool {
        self.compare(Comparison::Equal, *other)
    }
}

impl PartialOrd for Symbol {
    #[track_caller]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        if self.lt(other) {
            return Some(Ordering::Less);
        }
        if other.lt(self) {
            return Some(Ordering::Greater);
        }
        self.eq(other).then_some(Ordering::Equal)
    }
    #[track_caller]
    fn lt(&self, other: &Self) -> bool {
        self.compare(Comparison::Less, *other)
    }
    #[track_caller]
    fn le(&self, other: &Self) -> bool {
        self.compare(Comparison::LessEqual, *other)
    }
    #[track_caller]
    fn gt(&self, other: &Self) -> bool {
        other.compare(Comparison::Less, *self)
    }
    #[track_caller]
    fn ge(&self, other: &Self) -> bool {
        other.compare(Comparison::LessEqual, *self)
    }
}

impl PartialEq<f64> for Symbol {
    #[track_caller]
    fn eq(&self, other: &f64) -> bool {
        self.eq(&Symbol::fixed(*other))
    }
}

impl PartialOrd<f64> for Symbol {
    #[track_caller]
    fn partial_cmp(&self, other: &f64) -> Option<Ordering> {
        self.partial_cmp(&Symbol::fixed(*other))
    }
    #[track_caller]
    fn lt(&self, other: &f64) -> bool {
        self.lt(&Symbol::fixed(*other))
    }
    #[track_caller]
    fn le(&self, other: &f64) -> bool {
        self.le(&Symbol::fixed(*other))
    }
    #[track_caller]
    fn gt(&self, other: &f64) -> bool {
        self.gt(&Symbol::fixed(*other))
    }
    #[track_caller]
    fn ge(&self, other: &f64) -> bool {
        self.ge(&Symbol::fixed(*other))
    }
}

impl std::fmt::Display for Symbol {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.node() {
            Some(node) => write!(f, "%{node}"),
            None => self.value.fmt(f),
        }
    }
}

impl Real for Symbol {
    fn constant(value: f64) -> Self {
        Symbol::fixed(value)
    }

    /// The value is guarded, as a comparison is: what becomes of it is not recorded.
    #[track_caller]
    fn value(self) -> f64 {
        if self.node != CONSTANT {
            let (fixed, location) = (Symbol::fixed(self.value), Location::caller());
            BUILDER.with_borrow_mut(|builder| {
                // After the recording nothing can come of it.
                if let Some(builder) = builder {
                    builder.guard(Comparison::Value, self, fixed, true, location);
                }
            });
        }
        self.value
    }

    /// By repeated squaring, so that equal factors are found. Of the reciprocal, where the power is negative: at 0 the slopes of a
    /// positive one are 0, and would win over the infinite one of the reciprocal.
    fn powi(self, n: i32) -> Self {
        let mut left = n.unsigned_abs();
        let (mut power, mut square) = (Symbol::fixed(1.0), if n < 0 { self.recip() } else { self });
        while left > 0 {
            if left & 1 == 1 {
                power *= square;
            }
            left >>= 1;
            if left > 0 {
                square = square * square;
            }
        }
        power
    }

    /// Small integer powers become products.
    fn powf(self, p: f64) -> Self {
        if p.fract() == 0.0 && p.abs() <= 16.0 {
            return self.powi(p as i32);
        }
        self.pow(Symbol::fixed(p))
    }

    fn select_lt(self, than: Self, then: Self, otherwise: Self) -> Self {
        emit(Op::Less, &[self, than], f64::from(u8::from(self.value < than.value))).choose(then, otherwise)
    }

    fn select_le(self, than: Self, then: Self, otherwise: Self) -> Self {
        emit(Op::LessEqual, &[self, than], f64::from(u8::from(self.value <= than.value)))
            .choose(then, otherwise)
    }

    /// Held fixed behind the last maximum: the derivatives of the others are dropped with it.
    fn shift(terms: impl Iterator<Item = Self>) -> Self {
        let Some(top) = terms.reduce(Number::maximum).map(Self::held) else { return Symbol::fixed(0.0) };
        top.abs().select_lt(Symbol::fixed(f64::INFINITY), top, Symbol::fixed(0.0))
    }

    fn held(self) -> Self {
        emit(Op::Fixed, &[self], self.value)
    }

    fn chain_mul(self, other: Self) -> Self {
        emit(Op::Chain, &[self, other], self.value.chain_mul(other.value))
    }
}
