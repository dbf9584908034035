//! Strength reduction: divisions and powers as cheaper operations.
//!
//! A division by a power of two is exact as a product. Everything else is rounded differently, and asks for `fast_math`: division by another
//! number, by a root, by a repeated value, and powers as products, each within a few units in the last place.

use super::Options;
use super::rewrite::{Rewrite, rewrite};
use crate::graph::constant::{is_moderate, is_power_of_two};
use crate::graph::{Graph, Ref, Step};
use crate::ops::{Broadcast, Mul, Op, Recip, Rsqrt, Sqrt, Square};

pub(super) fn strength(graph: &Graph, options: &Options) -> Graph {
    rewrite(graph, |w, step| match (&step.op, &step.args[..]) {
        (Op::Div(_), &[a, b]) if step.avals[0].dtype.is_float() => quotient(w, a, b, options),
        (Op::Pow(_), &[a, b]) => power(w, step, a, w.splat(b)?, options),
        (Op::Recip(_), &[x]) if options.fast_math => {
            let x = w.operand(x, |op| matches!(op, Op::Sqrt(_)))?;
            Some(w.push(Rsqrt, &[x]))
        }
        _ => None,
    })
}

fn quotient(w: &mut Rewrite, a: Ref, b: Ref, options: &Options) -> Option<Ref> {
    let like = w.aval(b);
    if let Some(c) = w.splat(b) {
        let near = is_power_of_two(c) || options.fast_math;
        if near && is_moderate(c, like.dtype) {
            let inverse = w.number(1.0 / c, &like);
            return Some(w.push(Mul, &[a, inverse]));
        }
        return None;
    }
    if !options.fast_math {
        return None;
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
