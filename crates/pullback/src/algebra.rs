//! Arithmetic that need not be done: the rules that graphs of tensors, fused groups and recorded functions have in common.
//!
//! A rule is exact: the result has the same bits for all operands, infinities and zeros of either sign included (and is NaN where it was),
//! unless the expressions say that something of it does not matter. So `x + 0` goes only where `x` cannot be -0, which the sum would turn
//! into 0; `x * 0`, `x - x` and `x / x` stay, for what is not finite; and sums are not reordered.

use crate::dtype::DType;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Arithmetic {
    Neg,
    Add,
    Sub,
    Mul,
    Div,
}
use Arithmetic::*;

/// Expressions under construction, and what is known of them.
pub(crate) trait Expressions {
    type Value: Copy;

    fn is_same(&self, a: Self::Value, b: Self::Value) -> bool;

    fn dtype(&self, x: Self::Value) -> DType;

    /// The number that it is, or that all of its elements are.
    fn number(&self, x: Self::Value) -> Option<f64>;

    /// The operands, if it is the result of this operation. A negation has its one twice.
    fn operands(&self, x: Self::Value, op: Arithmetic) -> Option<[Self::Value; 2]>;

    /// A number in the place of `like`.
    fn constant(&mut self, number: f64, like: Self::Value) -> Self::Value;

    fn apply(&mut self, op: Arithmetic, x: &[Self::Value]) -> Self::Value;

    /// Whether 0 is as good as -0.
    fn ignores_sign_of_zero(&self, x: Self::Value) -> bool;

    fn is_never_negative_zero(&self, _: Self::Value) -> bool {
        false
    }

    /// Whether it may be taken for finite and not NaN.
    fn is_taken_for_finite(&self, _: Self::Value) -> bool {
        false
    }

    /// Whether `(x c) d` may be `x (c d)`.
    fn merges(&self, c: f64, d: f64, x: Self::Value) -> bool;
}

/// The same result from less.
pub(crate) fn simpler<E: Expressions>(e: &mut E, op: Arithmetic, x: &[E::Value]) -> Option<E::Value> {
    match (op, x) {
        (Neg, &[x]) => negation(e, x),
        (Add, &[a, b]) => sum(e, a, b),
        (Sub, &[a, b]) => difference(e, a, b),
        (Mul, &[a, b]) => product(e, a, b),
        (Div, &[a, b]) => quotient(e, a, b),
        _ => unreachable!("a negation has one operand, and all others two"),
    }
}

/// `x` of `-x`.
fn negated<E: Expressions>(e: &E, x: E::Value) -> Option<E::Value> {
    e.operands(x, Neg).map(|[x, _]| x)
}

/// The two operands of a product with a number, the number last.
fn scaled<E: Expressions>(e: &E, x: E::Value) -> Option<(E::Value, f64)> {
    let [a, b] = e.operands(x, Mul)?;
    e.number(b).map(|c| (a, c)).or_else(|| e.number(a).map(|c| (b, c)))
}

fn times<E: Expressions>(e: &mut E, x: E::Value, c: f64) -> E::Value {
    let c = e.constant(c, x);
    e.apply(Mul, &[x, c])
}

fn negation<E: Expressions>(e: &mut E, x: E::Value) -> Option<E::Value> {
    if let Some(x) = negated(e, x) {
        return Some(x);
    }
    if let Some((x, c)) = scaled(e, x).filter(|_| e.dtype(x).is_float()) {
        return Some(times(e, x, -c));
    }
    // -(a - b) is b - a but for the sign of zero.
    let [a, b] = e.operands(x, Sub).filter(|_| e.ignores_sign_of_zero(x))?;
    Some(e.apply(Sub, &[b, a]))
}

fn sum<E: Expressions>(e: &mut E, a: E::Value, b: E::Value) -> Option<E::Value> {
    for (a, b) in [(a, b), (b, a)] {
        let stays = |z: f64| z.is_sign_negative() || e.ignores_sign_of_zero(a) || e.is_never_negative_zero(a);
        if e.number(b).is_some_and(|z| z == 0.0 && stays(z)) {
            return Some(a);
        }
    }
    if let (Some(a), Some(b), true) = (negated(e, a), negated(e, b), e.ignores_sign_of_zero(a)) {
        let sum = e.apply(Add, &[a, b]);
        return Some(e.apply(Neg, &[sum]));
    }
    for (a, b) in [(a, b), (b, a)] {
        if let Some(b) = negated(e, b) {
            return Some(e.apply(Sub, &[a, b]));
        }
    }
    // A complex product with 2 would make NaN of infinities.
    (e.is_same(a, b) && !e.dtype(a).is_complex()).then(|| times(e, a, 2.0))
}

fn difference<E: Expressions>(e: &mut E, a: E::Value, b: E::Value) -> Option<E::Value> {
    let stays = |z: f64| z.is_sign_positive() || e.ignores_sign_of_zero(a) || e.is_never_negative_zero(a);
    if e.number(b).is_some_and(|z| z == 0.0 && stays(z)) {
        return Some(a);
    }
    let turns = |z: f64| z.is_sign_negative() || e.ignores_sign_of_zero(b);
    if e.number(a).is_some_and(|z| z == 0.0 && turns(z)) {
        return Some(e.apply(Neg, &[b]));
    }
    if let Some(b) = negated(e, b) {
        return Some(e.apply(Add, &[a, b]));
    }
    match negated(e, a) {
        Some(a) if e.is_same(a, b) && e.dtype(a).is_float() => return Some(times(e, a, -2.0)),
        Some(a) if e.ignores_sign_of_zero(a) => {
            let sum = e.apply(Add, &[a, b]);
            return Some(e.apply(Neg, &[sum]));
        }
        _ => {}
    }
    (e.is_same(a, b) && e.is_taken_for_finite(a)).then(|| e.constant(0.0, a))
}

fn product<E: Expressions>(e: &mut E, a: E::Value, b: E::Value) -> Option<E::Value> {
    for (a, b) in [(a, b), (b, a)] {
        match e.number(b) {
            Some(1.0) => return Some(a),
            Some(-1.0) => return Some(e.apply(Neg, &[a])),
            Some(0.0) if e.is_taken_for_finite(a) => return Some(b),
            Some(c) if e.dtype(a).is_float() => {
                if let Some(a) = negated(e, a) {
                    return Some(times(e, a, -c));
                }
                if let Some((a, d)) = scaled(e, a).filter(|&(a, d)| e.merges(d, c, a)) {
                    return Some(times(e, a, c * d));
                }
            }
            _ => {}
        }
    }
    let (a, b) = (negated(e, a)?, negated(e, b)?);
    Some(e.apply(Mul, &[a, b]))
}

fn quotient<E: Expressions>(e: &mut E, a: E::Value, b: E::Value) -> Option<E::Value> {
    let dtype = e.dtype(a);
    match e.number(b) {
        Some(1.0) => return Some(a),
        _ if !dtype.is_float() => return None,
        Some(-1.0) => return Some(e.apply(Neg, &[a])),
        Some(c) if is_power_of_two(c) && is_moderate(c, dtype) => return Some(times(e, a, c.recip())),
        _ => {}
    }
    if e.is_same(a, b) && e.is_taken_for_finite(a) {
        return Some(e.constant(1.0, a));
    }
    let (a, b) = (negated(e, a)?, negated(e, b)?);
    Some(e.apply(Div, &[a, b]))
}

/// Whether multiplying by a number only changes exponents, and so does dividing, as far as the range goes.
pub(crate) fn is_power_of_two(c: f64) -> bool {
    c.is_normal() && c.to_bits() & ((1 << 52) - 1) == 0
}

/// Whether a number is far from the ends of a type's range.
pub(crate) fn is_moderate(c: f64, dtype: DType) -> bool {
    let most: f64 = if dtype == DType::F16 { 1e4 } else { 1e30 };
    (most.recip()..=most).contains(&c.abs())
}
