//! Strength reduction: divisions and powers as cheaper operations.
//!
//! All but trivial powers asks for `fast_math`, for it is rounded differently: division by a number, by a root, by a repeated value, and powers
//! as products, each within a few units in the last place. (A division by a power of two is exact as a product: that is [algebra](crate::algebra).)

use super::Options;
use super::rewrite::{Rewrite, rewrite};
use crate::algebra::is_moderate;
use crate::graph::{Graph, Ref, Step};
use crate::ops::{Broadcast, Mul, Op, Recip, Rsqrt, Sqrt, Square};

pub(super) fn strength(graph: &Graph, options: &Options) -> Graph {
    rewrite(graph, |w, step| match (&step.op, &step.args[..]) {
        (Op::Div(_), &[a, b]) if options.fast_math && step.avals[0].dtype.is_float() => quotient(w, a, b),
        (Op::Pow(_), &[a, b]) => power(w, step, a, w.splat(b)?, options),
        (Op::Recip(_), &[x]) if options.fast_math => {
            let x = w.operand(x, |op| matches!(op, Op::Sqrt(_)))?;
            Some(w.push(Rsqrt, &[x]))
        }
        _ => None,
    })
}

fn quotient(w: &mut Rewrite, a: Ref, b: Ref) -> Option<Ref> {
    let like = w.aval(b);
    if let Some(c) = w.splat(b) {
        return is_moderate(c, like.dtype).then(|| {
            let inverse = w.number(1.0 / c, &like);
            w.push(Mul, &[a, inverse])
        });
    }
    let step = w.step(b).filter(|_| w.single(b))?;
    let (op, x) = (step.op.clone(), step.args[0]);
    match op {
        Op::Sqrt(_) => {
            let inverse = w.push(Rsqrt, &[x]);
            Some(w.push(Mul, &[a, inverse]))
        }
        // Few divisions instead of many; one operation more only where a broadcast was no work.
        Op::Broadcast(Broadcast { to })
            if w.operand(x, |op| matches!(op, Op::Sqrt(_))).is_some() && w.single(x) =>
        {
            let under = w.operand(x, |_| true)?;
            let inverse = w.push(Rsqrt, &[under]);
            let inverse = w.push(Broadcast { to }, &[inverse]);
            Some(w.push(Mul, &[a, inverse]))
        }
        _ => None,
    }
}

/// `x^0` is 1 and `x^1` is `x` for every `x`, as the power itself has it.
fn power(w: &mut Rewrite, step: &Step, x: Ref, exponent: f64, options: &Options) -> Option<Ref> {
    if exponent == 0.0 {
        return Some(w.number(1.0, &step.avals[0]));
    }
    if exponent == 1.0 {
        return Some(x);
    }
    if !options.fast_math {
        return None;
    }
    match exponent {
        2.0 => Some(w.push(Square, &[x])),
        -1.0 => Some(w.push(Recip, &[x])),
        0.5 => Some(w.push(Sqrt, &[x])),
        -0.5 => Some(w.push(Rsqrt, &[x])),
        3.0 => {
            let square = w.push(Square, &[x]);
            Some(w.push(Mul, &[square, x]))
        }
        4.0 => {
            let square = w.push(Square, &[x]);
            Some(w.push(Square, &[square]))
        }
        _ => None,
    }
}
