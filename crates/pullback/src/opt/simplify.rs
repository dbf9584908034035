//! Algebra: operations that change nothing, or that another operation does at once.
//!
//! A rule is exact unless it asks for `fast_math`: the result has the same bits for all operands, infinities and zeros of either sign included
//! (and is NaN where it was). So `x + 0` goes only where `x` cannot be -0, which the sum would turn into 0; `x * 0`, `x - x` and
//! `x / x` stay, for what is not finite; and sums are not reordered.

use super::Options;
use super::rewrite::{Rewrite, rewrite};
use crate::DType;
use crate::graph::constant::{is_moderate, is_power_of_two};
use crate::graph::{Graph, Ref, Step};
use crate::ops::Compare;
use crate::ops::{
    Abs, Add, Aval, Cast, Connective, Mul, Neg, Not, Op, Recip, Relation, Relu, Square, Sub, Sum, Where,
};

pub(super) fn simplify(graph: &Graph, options: &Options) -> Graph {
    rewrite(graph, |w, step| rule(w, step, options))
}

/// Signs of zero do not matter for integers, which have one zero.
fn loose(w: &Rewrite, a: Ref, options: &Options) -> bool {
    options.fast_math || w.aval(a).dtype.is_int()
}

fn rule(w: &mut Rewrite, step: &Step, options: &Options) -> Option<Ref> {
    match (&step.op, &step.args[..]) {
        (Op::Identity(_), &[x]) => Some(x),
        (Op::StopGradient(_), &[x]) => (!options.differentiable || is_constant(x)).then_some(x),
        (Op::Neg(_), &[x]) => negation(w, x, options),
        (Op::Add(_), &[a, b]) => sum(w, a, b, options),
        (Op::Sub(_), &[a, b]) => difference(w, a, b, options),
        (Op::Mul(_), &[a, b]) => product(w, a, b, options),
        (Op::Div(_), &[a, b]) => quotient(w, a, b, options),
        (Op::Gate(_), &[a, b]) => gated(w, a, b, options),
        (Op::Maximum(_) | Op::Minimum(_), &[a, b]) if a == b => Some(a),
        (Op::Abs(_), &[x]) => {
            even(w, x).map(|x| w.push(Abs, &[x])).or_else(|| w.operand(x, is_abs).map(|_| x))
        }
        (Op::Square(_), &[x]) => even(w, x).or_else(|| w.operand(x, is_abs)).map(|x| w.push(Square, &[x])),
        (Op::Relu(_), &[x]) => w.operand(x, |op| *op == Op::Relu(Relu)).map(|_| x),
        (Op::Where(_), &[m, a, b]) => choice(w, m, a, b),
        (Op::Cast(c), &[x]) => cast(w, x, c.to),
        (Op::Sum(s), &[x]) if step.avals[0].dtype.is_float() => sum_of_negated(w, s, x, &step.avals[0]),
        (Op::Not(_), &[x]) => negated_truth(w, x),
        (Op::Logic(l), &[a, b]) => connected(w, l.connective, a, b),
        _ => None,
    }
}

fn is_constant(a: Ref) -> bool {
    matches!(a, Ref::Const(_))
}

fn is_neg(op: &Op) -> bool {
    matches!(op, Op::Neg(_))
}

fn is_abs(op: &Op) -> bool {
    matches!(op, Op::Abs(_))
}

/// `x` of `-x`, for functions that do not see the sign.
fn even(w: &Rewrite, x: Ref) -> Option<Ref> {
    w.operand(x, is_neg)
}

/// The two operands of a product with a number, the number last.
fn scaled(w: &Rewrite, at: Ref) -> Option<(Ref, f64)> {
    let step = w.step(at).filter(|s| matches!(s.op, Op::Mul(_)))?;
    let (a, b) = (step.args[0], step.args[1]);
    w.splat(b).map(|c| (a, c)).or_else(|| w.splat(a).map(|c| (b, c)))
}

fn negation(w: &mut Rewrite, x: Ref, options: &Options) -> Option<Ref> {
    if let Some(inner) = w.operand(x, is_neg) {
        return Some(inner);
    }
    let like = w.aval(x);
    if let Some((a, c)) = scaled(w, x).filter(|_| like.dtype.is_float()) {
        let c = w.number(-c, &like);
        return Some(w.push(Mul, &[a, c]));
    }
    // -(a - b) is b - a but for the sign of zero.
    let step = w.step(x).filter(|s| matches!(s.op, Op::Sub(_)) && loose(w, x, options))?;
    let (a, b) = (step.args[0], step.args[1]);
    Some(w.push(Sub, &[b, a]))
}

fn sum(w: &mut Rewrite, a: Ref, b: Ref, options: &Options) -> Option<Ref> {
    for (a, b) in [(a, b), (b, a)] {
        let zero = w.splat(b).filter(|&v| v == 0.0);
        if zero.is_some_and(|v| v.is_sign_negative() || loose(w, a, options) || never_negative_zero(w, a, 8))
        {
            return Some(a);
        }
    }
    for (a, b) in [(a, b), (b, a)] {
        if let Some(b) = w.operand(b, is_neg) {
            return Some(w.push(Sub, &[a, b]));
        }
    }
    // A complex product with 2 would make NaN of infinities.
    if a == b && !w.aval(a).dtype.is_complex() {
        let two = w.number(2.0, &w.aval(a));
        return Some(w.push(Mul, &[a, two]));
    }
    None
}

/// The sum of `-x` is 0 minus the sum of `x`: rounding does not see signs, and a sum of zeros is not -0.
fn sum_of_negated(w: &mut Rewrite, sum: &Sum, x: Ref, like: &Aval) -> Option<Ref> {
    let inner = w.operand(x, is_neg).filter(|_| w.single(x))?;
    let (zero, sum) = (w.number(0.0, like), w.push(sum.clone(), &[inner]));
    Some(w.push(Sub, &[zero, sum]))
}

fn difference(w: &mut Rewrite, a: Ref, b: Ref, options: &Options) -> Option<Ref> {
    if let Some(zero) = w.splat(b).filter(|&v| v == 0.0)
        && (zero.is_sign_positive() || loose(w, a, options) || never_negative_zero(w, a, 8))
    {
        return Some(a);
    }
    if let Some(zero) = w.splat(a).filter(|&v| v == 0.0)
        && (zero.is_sign_negative() || loose(w, b, options))
    {
        return Some(w.push(Neg, &[b]));
    }
    if let Some(b) = w.operand(b, is_neg) {
        return Some(w.push(Add, &[a, b]));
    }
    (a == b && loose(w, a, options)).then(|| w.number(0.0, &w.aval(a)))
}

fn product(w: &mut Rewrite, a: Ref, b: Ref, options: &Options) -> Option<Ref> {
    let like = w.aval(a);
    for (a, b) in [(a, b), (b, a)] {
        match w.splat(b) {
            Some(1.0) => return Some(a),
            Some(-1.0) => return Some(w.push(Neg, &[a])),
            Some(0.0) if loose(w, a, options) => return Some(b),
            _ => {}
        }
    }
    for (a, b) in [(a, b), (b, a)] {
        let (Some(c), true) = (w.splat(b), like.dtype.is_float()) else { continue };
        if let Some(a) = w.operand(a, is_neg) {
            let c = w.number(-c, &like);
            return Some(w.push(Mul, &[a, c]));
        }
        if let Some((a, d)) = scaled(w, a)
            && (options.fast_math || (grows(c) && grows(d)))
            && is_moderate(c * d, like.dtype)
        {
            let c = w.number(c * d, &like);
            return Some(w.push(Mul, &[a, c]));
        }
    }
    if a == b {
        return Some(w.push(Square, &[a]));
    }
    let (a, b) = (w.operand(a, is_neg)?, w.operand(b, is_neg)?);
    Some(w.push(Mul, &[a, b]))
}

/// Powers of two that are not less than one. A product with one is exact unless it overflows, so that two in a row are as one.
fn grows(c: f64) -> bool {
    is_power_of_two(c) && c.abs() >= 1.0
}

fn quotient(w: &mut Rewrite, a: Ref, b: Ref, options: &Options) -> Option<Ref> {
    let float = w.aval(a).dtype.is_float();
    match w.splat(b) {
        Some(1.0) => return Some(a),
        Some(-1.0) if float => return Some(w.push(Neg, &[a])),
        _ => {}
    }
    if float && w.splat(a) == Some(1.0) {
        return Some(w.push(Recip, &[b]));
    }
    if a == b && options.fast_math && float {
        return Some(w.number(1.0, &w.aval(a)));
    }
    let (a, b) = (w.operand(a, is_neg)?, w.operand(b, is_neg)?);
    float.then(|| w.push(crate::ops::Div, &[a, b]))
}

/// The chain rule's product: a zero on either side wins, and keeps its sign.
fn gated(w: &mut Rewrite, a: Ref, b: Ref, options: &Options) -> Option<Ref> {
    match (w.splat(a), w.splat(b)) {
        (Some(0.0), _) => Some(a),
        (_, Some(1.0)) => Some(a),
        // The sign of a zero on the other side would change with a negative factor.
        (Some(c), _) if as_product(c, options) => Some(w.push(Mul, &[b, a])),
        (_, Some(c)) if as_product(c, options) => Some(w.push(Mul, &[a, b])),
        _ => None,
    }
}

/// Whether a gate with this factor is a product with it.
fn as_product(c: f64, options: &Options) -> bool {
    c.is_finite() && (c > 0.0 || options.fast_math && c != 0.0)
}

fn choice(w: &mut Rewrite, mask: Ref, a: Ref, b: Ref) -> Option<Ref> {
    match w.splat(mask) {
        Some(0.0) => return Some(b),
        Some(_) => return Some(a),
        None if a == b => return Some(a),
        None => {}
    }
    let inner = w.operand(mask, |op| matches!(op, Op::Not(_)))?;
    Some(w.push(Where, &[inner, b, a]))
}

fn cast(w: &mut Rewrite, x: Ref, to: DType) -> Option<Ref> {
    let from = w.aval(x).dtype;
    if from == to {
        return Some(x);
    }
    let inner = w.operand(x, |op| matches!(op, Op::Cast(_)))?;
    let first = w.aval(inner).dtype;
    holds(from, first).then(|| if first == to { inner } else { w.push(Cast { to }, &[inner]) })
}

/// Whether every number of a type is one of the wider type.
fn holds(wide: DType, narrow: DType) -> bool {
    use DType::*;
    matches!(
        (wide, narrow),
        (_, Bool) | (F64, F32 | F16 | BF16 | I32 | U8) | (F32, F16 | BF16 | U8) | (I64, I32 | U8) | (I32, U8)
    )
}

fn negated_truth(w: &mut Rewrite, x: Ref) -> Option<Ref> {
    let step = w.step(x)?;
    match step.op {
        Op::Not(_) => Some(step.args[0]),
        // Only these two are opposites for NaN too.
        Op::Compare(Compare { relation: relation @ (Relation::Eq | Relation::Ne) }) => {
            let args = step.args.clone();
            let relation = if relation == Relation::Eq { Relation::Ne } else { Relation::Eq };
            Some(w.push(Compare { relation }, &args))
        }
        _ => None,
    }
}

fn connected(w: &mut Rewrite, connective: Connective, a: Ref, b: Ref) -> Option<Ref> {
    if a == b {
        return match connective {
            Connective::Xor => Some(w.number(0.0, &w.aval(a))),
            _ => Some(a),
        };
    }
    [(a, b), (b, a)].into_iter().find_map(|(a, b)| {
        let truth = w.splat(b)? != 0.0;
        match (connective, truth) {
            (Connective::And, true) | (Connective::Or | Connective::Xor, false) => Some(a),
            (Connective::And, false) | (Connective::Or, true) => Some(b),
            (Connective::Xor, true) => Some(w.push(Not, &[a])),
        }
    })
}

/// Whether no element can be -0.
fn never_negative_zero(w: &Rewrite, at: Ref, depth: usize) -> bool {
    if let Some(v) = w.splat(at) {
        return v != 0.0 || v.is_sign_positive();
    }
    let Some(step) = w.step(at).filter(|_| depth > 0) else { return false };
    let all = || step.args.iter().all(|&a| never_negative_zero(w, a, depth - 1));
    match &step.op {
        Op::Exp(_)
        | Op::Exp2(_)
        | Op::Square(_)
        | Op::Abs(_)
        | Op::Sigmoid(_)
        | Op::Cosh(_)
        | Op::Step(_)
        | Op::Share(_) => true,
        // -0 only if both are.
        Op::Add(_) => step.args.iter().any(|&a| never_negative_zero(w, a, depth - 1)),
        Op::Cast(_) => !w.aval(step.args[0]).dtype.is_float(),
        Op::Where(_) => step.args[1..].iter().all(|&a| never_negative_zero(w, a, depth - 1)),
        Op::Maximum(_) | Op::Minimum(_) | Op::Sqrt(_) | Op::Concat(_) => all(),
        op if op.is_view() => all(),
        _ => false,
    }
}
