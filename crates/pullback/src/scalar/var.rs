//! The variable of the reverse tape.

use super::chain::{Chain, chain_methods, chain_operators, chain_powers};
use super::operators::{compared_by_value, derived_operators};
use super::real::chained;
use super::slope::Slope;
use super::tape::{self, Gather, Taped, slot};
use super::{Real, checkpoint};
use pullback_table::Number;

/// A value on a tape: `v`, with `dv = c d(node)`.
///
/// The factor `c` is what keeps the tape short. A function of one variable, and any arithmetic with constants or
/// with a variable on the same node, only changes `v` and `c`; a record is written when two different nodes meet.
///
/// A `Var` has no lifetime, so that `fn f<T: Real>(x: &[T]) -> T` is passed by its name. It must not be used after
/// the recording that made it, nor in the recording of another tape or thread: the operation that records it there panics, and says so.
///
/// The layout avoids reading in wider pieces than were written, for which the processor has to wait: node and generation
/// are one field, and `c` is the last, since the compiler likes to load it into a vector with what follows.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Var<T = f64> {
    /// The node in the low half, 0 for a constant; the generation of the tape in the high half.
    at: u64,
    v: T,
    c: T,
}

impl<T: Taped> Var<T> {
    /// A constant.
    #[inline(always)]
    pub fn fixed(value: T) -> Self {
        Var { v: value, c: T::constant(0.0), at: 0 }
    }

    /// The value.
    #[inline(always)]
    pub fn inner(self) -> T {
        self.v
    }

    /// Whether nothing can be differentiated with respect to here.
    #[inline(always)]
    pub fn is_constant(self) -> bool {
        self.at == 0
    }

    #[inline(always)]
    pub(super) fn on_node(value: T, node: u32, generation: u32) -> Self {
        Var { v: value, c: T::constant(1.0), at: u64::from(generation) << 32 | u64::from(node) }
    }

    /// The value `y` with slope `p` on the same node.
    #[inline(always)]
    pub(super) fn scaled_node(self, y: T, p: T) -> Self {
        // A factor of 1, as after every record, is known before the function has been computed; the product is not.
        let c = if self.c.is_one() { p } else { chained(p, self.c) };
        Var { v: y, c, ..self }
    }

    #[inline(always)]
    pub(super) fn node(self) -> u32 {
        self.at as u32
    }

    #[inline(always)]
    pub(super) fn scale(self) -> T {
        self.c
    }

    #[inline(always)]
    pub(super) fn generation(self) -> u32 {
        (self.at >> 32) as u32
    }

    /// What `choose` takes in each lane of `then` and `otherwise`, where not all lanes take the same.
    fn mixed(then: Self, otherwise: Self, choose: impl Fn(T, T) -> T) -> Self {
        let (zero, one) = (T::constant(0.0), T::constant(1.0));
        let slopes = [Slope::Of(choose(one, zero)), Slope::Of(choose(zero, one))];
        then.binary(otherwise, choose(then.v, otherwise.v), slopes)
    }
}

/// The factor of a result with this slope along a variable whose factor is `c`.
#[inline(always)]
fn along<T: Taped>(slope: Slope<T>, c: T) -> T {
    if T::SLOW_PRODUCT && c.is_one() { slope.number() } else { slope.times(c) }
}

/// [`along`] for two variables by plain products, and whether those have to be made again with care.
#[inline(always)]
fn along_both<T: Taped>([p, q]: [Slope<T>; 2], c: T, d: T) -> (T, T, bool) {
    let (Slope::Of(slope), Slope::Of(other)) = (p, q) else { return (along(p, c), along(q, d), false) };
    let (a, b) = (plain(slope, c), plain(other, d));
    (a, b, a.have_nan(b))
}

/// The sum of two products of the chain rule.
#[inline(always)]
fn along_sum<T: Taped>([p, c]: [T; 2], [q, d]: [T; 2]) -> T {
    let sum = plain(p, c) + plain(q, d);
    if sum.has_nan() { sum_again([p, c], [q, d]) } else { sum }
}

#[cold]
#[inline(never)]
fn sum_again<T: Taped>([p, c]: [T; 2], [q, d]: [T; 2]) -> T {
    p.chain_mul(c) + q.chain_mul(d)
}

/// A slope times a factor, in which a zero does not win.
#[inline(always)]
fn plain<T: Taped>(slope: T, c: T) -> T {
    if T::SLOW_PRODUCT && c.is_one() { slope } else { slope.ungated_mul(c) }
}

impl<T: Taped> Chain for Var<T> {
    type Primal = T;

    #[inline(always)]
    fn primal(self) -> T {
        self.v
    }

    #[inline(always)]
    fn unary(self, y: T, slope: Slope<T>) -> Self {
        match slope {
            Slope::Zero => Self::fixed(y),
            Slope::One => Var { v: y, ..self },
            Slope::MinusOne => Var { v: y, c: -self.c, ..self },
            Slope::Of(p) => self.scaled_node(y, p),
        }
    }

    #[inline(always)]
    fn scaled(self, y: T, k: f64) -> Self {
        // Mostly the compiler sees which it is.
        let c = if k.is_finite() && k != 0.0 { self.c * k } else { self.c.chain_mul(T::constant(k)) };
        Var { v: y, c, ..self }
    }

    #[inline(always)]
    fn binary(self, other: Self, y: T, [p, q]: [Slope<T>; 2]) -> Self {
        if let (Slope::Zero, Slope::Zero) = (p, q) {
            return Self::fixed(y);
        }
        if self.at != other.at && self.at != 0 && other.at != 0 {
            let (at, again) = slot::push(
                self.at,
                other.at,
                #[inline(always)]
                || along_both([p, q], self.c, other.c),
            );
            if again {
                slot::correct([p.number(), self.c], [q.number(), other.c]);
            }
            return Var { v: y, c: T::constant(1.0), at };
        }
        // Where these are common the compiler mostly sees it, and there is no branch; elsewhere records come first.
        std::hint::cold_path();
        if self.at == other.at {
            // The same node, or two constants, whose factors are 0.
            let c = match (p, q) {
                (Slope::Of(p), Slope::Of(q)) => along_sum([p, self.c], [q, other.c]),
                _ => along(p, self.c) + along(q, other.c),
            };
            return Var { v: y, c, ..self };
        }
        if self.at != 0 {
            return Var { v: y, c: along(p, self.c), ..self };
        }
        Var { v: y, c: along(q, other.c), ..other }
    }
}

chain_operators! { [T: Taped] Var<T> }
compared_by_value! { [T: Taped] Var<T>, v }
derived_operators! { [T: Taped] Var<T> }

impl<T: Taped> Number for Var<T> {
    chain_methods!();
}

impl<T: Taped> Real for Var<T> {
    #[inline(always)]
    fn constant(value: f64) -> Self {
        Self::fixed(T::constant(value))
    }

    #[inline(always)]
    fn value(self) -> f64 {
        self.v.value()
    }

    chain_powers!();

    /// One record, where variables meet. Two of them may be the same, and then the record names it twice.
    #[inline(always)]
    fn mul_add(self, a: Self, b: Self) -> Self {
        // The record has no partial derivative for `b`. Constants have a factor of 0.
        if self.at == 0 || a.at == 0 || !b.c.is_one() {
            return self * a + b;
        }
        let v = self.v * a.v + b.v;
        // Without a product for the factor that is mostly 1: for two products the compiler would load value and factor at once, and
        // wait until both have left the processor's store queue.
        let (at, again) = slot::push_third(
            self.at,
            a.at,
            b.at,
            #[inline(always)]
            || {
                let q = if a.c.is_one() { self.v } else { self.v.ungated_mul(a.c) };
                let p = plain(a.v, self.c);
                (p, q, p.have_nan(q))
            },
        );
        if again {
            slot::correct([a.v, self.c], [self.v, a.c]);
        }
        Var { v, c: T::constant(1.0), at }
    }

    #[inline(always)]
    fn select_lt(self, than: Self, then: Self, otherwise: Self) -> Self {
        match self.v.all_lt(than.v) {
            Some(true) => then,
            Some(false) => otherwise,
            None => Self::mixed(then, otherwise, |a, b| self.v.select_lt(than.v, a, b)),
        }
    }

    #[inline(always)]
    fn select_le(self, than: Self, then: Self, otherwise: Self) -> Self {
        match self.v.all_le(than.v) {
            Some(true) => then,
            Some(false) => otherwise,
            None => Self::mixed(then, otherwise, |a, b| self.v.select_le(than.v, a, b)),
        }
    }

    #[inline(always)]
    fn saturates(self) -> bool {
        self.v.saturates()
    }

    #[inline(always)]
    fn held(self) -> Self {
        Self::fixed(self.v.held())
    }

    #[inline(always)]
    fn all_lt(self, other: Self) -> Option<bool> {
        self.v.all_lt(other.v)
    }

    #[inline(always)]
    fn all_le(self, other: Self) -> Option<bool> {
        self.v.all_le(other.v)
    }

    // Value, factor and node; the factor is by the chain rule in any case.
    const PARTS: usize = 3 * T::PARTS;

    #[inline(always)]
    fn chain_mul(self, other: Self) -> Self {
        self.binary(other, chained(self.v, other.v), [Slope::Of(other.v), Slope::Of(self.v)])
    }

    #[inline(always)]
    fn ungated_mul(self, other: Self) -> Self {
        self.binary(other, self.v.ungated_mul(other.v), [Slope::Of(other.v), Slope::Of(self.v)])
    }

    #[inline(always)]
    fn has_nan(self) -> bool {
        self.v.has_nan()
    }

    #[inline(always)]
    fn have_nan(self, other: Self) -> bool {
        self.v.have_nan(other.v)
    }

    /// Without a record.
    #[inline(always)]
    fn joined(self, other: Self) -> Self {
        Self::fixed(self.v.joined(other.v))
    }

    #[track_caller]
    fn dot(a: &[Self], b: &[Self]) -> Self {
        assert_eq!(a.len(), b.len(), "dot: the slices differ in length");
        let value = a.iter().zip(b).map(|(a, b)| a.v * b.v).sum();
        let terms = a.iter().zip(b).flat_map(|(&a, &b)| [(a, b.v), (b, a.v)]);
        Gather::new(terms).finish(value, T::constant(1.0))
    }

    fn log_sum_exp(x: &[Self]) -> Self {
        let shift = T::shift(x.iter().map(|x| x.v));
        let mut sum = T::constant(0.0);
        let gathered = Gather::new(x.iter().map(|&x| {
            let term = (x.v - shift).exp();
            sum += term;
            (x, term)
        }));
        gathered.finish(sum.ln() + shift, sum.recip())
    }

    fn preaccumulate<O: AsMut<[Self]>>(f: impl FnOnce() -> O) -> O {
        tape::preaccumulate(f)
    }

    fn checkpointed(
        steps: usize,
        snapshots: usize,
        state: &[Self],
        parameters: &[Self],
        step: impl Fn(usize, &[Self], &[Self]) -> Vec<Self> + 'static,
    ) -> Vec<Self> {
        checkpoint::checkpointed(steps, snapshots, state, parameters, step)
    }
}
