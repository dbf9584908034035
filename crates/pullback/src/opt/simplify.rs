//! Algebra: operations that change nothing, or that another operation does at once.
//!
//! Rules are [exact](crate::algebra) unless they ask for `fast_math`, to which a sign of zero does not matter and everything is finite.

use super::Options;
use super::rewrite::{Rewrite, rewrite};
use crate::DType;
use crate::algebra::{Arithmetic, Expressions, is_moderate, is_power_of_two, simpler};
use crate::graph::{Graph, Ref, Step};
use crate::ops::Compare;
use crate::ops::{
    Abs, Add, Aval, Cast, Connective, Div, Mul, Neg, Not, Op, Recip, Relation, Relu, Square, Sub, Sum, Where,
};

pub(super) fn simplify(graph: &Graph, options: &Options) -> Graph {
    rewrite(graph, |w, step| rule(w, step, options))
}

fn rule(w: &mut Rewrite, step: &Step, options: &Options) -> Option<Ref> {
    match (&step.op, &step.args[..]) {
        (Op::Identity(_), &[x]) => Some(x),
        (Op::StopGradient(_), &[x]) => (!options.differentiable || is_constant(x)).then_some(x),
        (Op::Mul(_), &[a, b]) if a == b => Some(w.push(Square, &[a])),
        (Op::Div(_), &[a, b]) if w.splat(a) == Some(1.0) && w.aval(a).dtype.is_float() => {
            Some(w.push(Recip, &[b]))
        }
        (op, x) if let Some(op) = arithmetic(op) => simpler(&mut Pass { w, options }, op, x),
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

/// A graph that is being written anew, as expressions.
struct Pass<'a> {
    w: &'a mut Rewrite,
    options: &'a Options,
}

fn arithmetic(op: &Op) -> Option<Arithmetic> {
    Some(match op {
        Op::Neg(_) => Arithmetic::Neg,
        Op::Add(_) => Arithmetic::Add,
        Op::Sub(_) => Arithmetic::Sub,
        Op::Mul(_) => Arithmetic::Mul,
        Op::Div(_) => Arithmetic::Div,
        _ => return None,
    })
}

impl Expressions for Pass<'_> {
    type Value = Ref;

    fn is_same(&self, a: Ref, b: Ref) -> bool {
        a == b
    }

    fn dtype(&self, x: Ref) -> DType {
        self.w.aval(x).dtype
    }

    fn number(&self, x: Ref) -> Option<f64> {
        self.w.splat(x)
    }

    fn operands(&self, x: Ref, op: Arithmetic) -> Option<[Ref; 2]> {
        let step = self.w.step(x).filter(|s| arithmetic(&s.op) == Some(op))?;
        Some([step.args[0], step.args[step.args.len() - 1]])
    }

    fn constant(&mut self, number: f64, like: Ref) -> Ref {
        self.w.number(number, &self.w.aval(like))
    }

    fn apply(&mut self, op: Arithmetic, x: &[Ref]) -> Ref {
        match op {
            Arithmetic::Neg => self.w.push(Neg, x),
            Arithmetic::Add => self.w.push(Add, x),
            Arithmetic::Sub => self.w.push(Sub, x),
            Arithmetic::Mul => self.w.push(Mul, x),
            Arithmetic::Div => self.w.push(Div, x),
        }
    }

    /// Integers have one zero.
    fn ignores_sign_of_zero(&self, x: Ref) -> bool {
        self.options.fast_math || self.dtype(x).is_int()
    }

    fn is_never_negative_zero(&self, x: Ref) -> bool {
        never_negative_zero(self.w, x, 8)
    }

    fn is_taken_for_finite(&self, x: Ref) -> bool {
        self.options.fast_math || self.dtype(x).is_int()
    }

    /// A product with a power of two that is not less than one is exact unless it overflows, so that two in a row are as one.
    fn merges(&self, c: f64, d: f64, x: Ref) -> bool {
        let grows = |c: f64| is_power_of_two(c) && c.abs() >= 1.0;
        (self.options.fast_math || grows(c) && grows(d)) && is_moderate(c * d, self.dtype(x))
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

/// The sum of `-x` is 0 minus the sum of `x`: rounding does not see signs, and a sum of zeros is not -0.
fn sum_of_negated(w: &mut Rewrite, sum: &Sum, x: Ref, like: &Aval) -> Option<Ref> {
    let inner = w.operand(x, is_neg).filter(|_| w.single(x))?;
    let (zero, sum) = (w.number(0.0, like), w.push(sum.clone(), &[inner]));
    Some(w.push(Sub, &[zero, sum]))
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
