//! Loops that end when a condition says so.

use super::{same_carry, select};
use crate::error::{Error, Result, err, or_panic};
use crate::graph::control::{Known, known};
use crate::tensor::Tensor;
use crate::transform::Tree;
use std::panic::Location;

/// After so many steps an unbounded loop is taken to be endless.
const ENDLESS: usize = 10_000_000;

/// Applies `body` to the state while `condition` of it holds: a function to a scalar of bool.
///
/// Under [`vmap`](crate::vmap) it runs until the last lane has finished, and finished lanes keep their state. It cannot be traced, since the
/// number of steps is not known then; [`while_loop_with`](crate::while_loop_with) a bound can. A loop of more than ten million steps is an error.
///
/// ```
/// use pullback::prelude::*;
/// let halve = |x: &Tensor| while_loop(|x: &Tensor| x.gt(1.0), |x: &Tensor| x * 0.5, x);
/// assert_eq!(halve(&Tensor::scalar(6.0)).item(), 0.75);
/// assert_eq!(grad(halve)(&Tensor::scalar(6.0)).item(), 0.125);
/// assert_eq!(vmap(halve)(&Tensor::from([1.0, 3.0, 6.0])).to_vec::<f64>(), [1.0, 0.75, 0.75]);
/// ```
#[track_caller]
pub fn while_loop<C: Tree>(condition: impl Fn(&C) -> Tensor, body: impl Fn(&C) -> C, init: &C) -> C {
    let location = Location::caller();
    let _entered = crate::location::entered(location);
    let run = run(ENDLESS, &condition, &body, init).and_then(|last| {
        last.ok_or_else(|| {
            err!(
                Value,
                "the function is traced, where the number of steps is not known; use while_loop_with(Bound::at_most(n), ..)"
            )
        })
    });
    or_panic(run.map_err(|e| e.in_op("while_loop").at(location)))
}

/// The last state, or nothing if the condition cannot be known now.
pub(super) fn run<C: Tree>(
    max: usize,
    condition: &impl Fn(&C) -> Tensor,
    body: &impl Fn(&C) -> C,
    init: &C,
) -> Result<Option<C>> {
    let mut state = init.map(&mut Tensor::clone);
    for k in 0.. {
        let truth = condition(&state);
        let lanes = match known(&truth)? {
            Known::Nothing => return Ok(None),
            Known::One(false) | Known::Lanes { any: false } => break,
            Known::One(true) => false,
            Known::Lanes { any: true } => true,
        };
        if k == max {
            return Err(endless(max));
        }
        let next = body(&state);
        same_carry(&state, &next)?;
        state = if lanes { select(&truth, &next, &state)? } else { next };
    }
    Ok(Some(state))
}

pub(super) fn endless(max: usize) -> Error {
    err!(Value, "the condition still holds after {max} steps; the loop does not seem to end")
}
