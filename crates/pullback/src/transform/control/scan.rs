//! A loop with a carried state, over steps, with stacked outputs.

use super::steps::traced_body;
use super::{Steps, same_carry};
use crate::error::{ErrorKind, Result, caught, or_panic};
use crate::graph::control::Loop;
use crate::graph::control::{Slices, empty_slices, in_trace, stack};
use crate::schedule::Schedule;
use crate::tensor::Tensor;
use crate::transform::{Tree, from_leaves};
use std::panic::Location;

/// Runs `f` over steps, with a carried state: `f(state, item)` returns the next state and an output. Returns the last state, and
/// the outputs stacked along a new first axis.
///
/// The steps are a number, or a tree of tensors whose first axis is that of the steps. In a traced function the loop is one
/// operation of the graph if its state, its inputs or what a step returns are traced, and its gradient there is two: one loop that stacks the states, and
/// one in reverse. (Only a step that reads the value of an item, which a loop of a graph cannot, is written out for each item.)
///
/// ```
/// use pullback::prelude::*;
/// let xs = Tensor::from([1.0, 2.0, 3.0]);
/// let (last, sums) = scan(|sum: &Tensor, x: &Tensor| (sum + x, sum + x), &Tensor::scalar(0.0), &xs);
/// assert_eq!(last.item(), 6.0);
/// assert_eq!(sums.to_vec::<f64>(), [1.0, 3.0, 6.0]);
///
/// // x <- x^2, three times: the derivative of x^8.
/// let f = |x: &Tensor| scan(|x: &Tensor, _: &()| (x.square(), ()), x, 3).0;
/// assert_eq!(grad(f)(&Tensor::scalar(1.0)).item(), 8.0);
/// ```
#[track_caller]
pub fn scan<C: Tree, S: Steps, Y: Tree>(f: impl Fn(&C, &S::Item) -> (C, Y), init: &C, steps: S) -> (C, Y) {
    let location = Location::caller();
    let _entered = crate::location::entered(location);
    or_panic(run(&f, init, &steps, location).map_err(|e| e.in_op("scan").at(location)))
}

fn run<C: Tree, S: Steps, Y: Tree>(
    f: &impl Fn(&C, &S::Item) -> (C, Y),
    init: &C,
    steps: &S,
    location: &'static Location<'static>,
) -> Result<(C, Y)> {
    let n = steps.count()?;
    let (stacked, state) = (steps.stacked(), init.leaves());
    let as_one = || {
        let (body, shared, y) = traced_body(f, init, steps)?;
        let outputs = Loop::new("scan", body, n, Schedule::All)?.bind(location, &state, &stacked, &shared)?;
        Ok(unpack(init, &y, outputs))
    };
    if in_trace(&[stacked.as_slice(), &state].concat()) {
        return as_one();
    }
    // Without a step, the types of the outputs are found by a trial on zeros.
    if n == 0 {
        let (state, y) = f(init, &steps.item(&empty_slices(&stacked)));
        same_carry(init, &state)?;
        let empty = y.leaves().into_iter().map(|t| stack(&[], t)).collect::<Result<Vec<Tensor>>>()?;
        return Ok((init.map(&mut Tensor::clone), from_leaves(&y, empty)));
    }
    let slices = Slices::new(&stacked)?;
    let mut rows = Rows::default();
    let mut carry: Option<C> = None;
    for k in 0..n {
        let before = carry.as_ref().unwrap_or(init);
        let (after, y) = f(before, &steps.item(&slices.at(k)));
        same_carry(before, &after)?;
        // What the body has captured is traced: state and inputs are known, but not for longer than this step, which was a trial.
        if k == 0 && n > 1 && in_trace(&[after.leaves(), y.leaves()].concat()) {
            match caught(as_one).flatten() {
                Err(e) if e.kind() == ErrorKind::Value => {}
                other => return other,
            }
        }
        rows.push(y)?;
        carry = Some(after);
    }
    Ok((carry.expect("there was a step"), rows.stacked()?))
}

/// The state and the stacked outputs from the leaves of both.
pub(super) fn unpack<C: Tree, Y: Tree>(like: &C, y: &Y, mut outputs: Vec<Tensor>) -> (C, Y) {
    let ys = outputs.split_off(like.leaves().len());
    (from_leaves(like, outputs), from_leaves(y, ys))
}

/// The outputs of the steps so far.
struct Rows<Y> {
    columns: Vec<Vec<Tensor>>,
    last: Option<Y>,
}

impl<Y> Default for Rows<Y> {
    fn default() -> Self {
        Rows { columns: Vec::new(), last: None }
    }
}

impl<Y: Tree> Rows<Y> {
    fn push(&mut self, y: Y) -> Result<()> {
        let leaves = y.flatten();
        match &self.last {
            None => self.columns.resize_with(leaves.len(), Vec::new),
            Some(last) if leaves.len() != self.columns.len() => last.same_structure(&y)?,
            Some(_) => {}
        }
        self.columns.iter_mut().zip(leaves).for_each(|(column, t)| column.push(t));
        self.last = Some(y);
        Ok(())
    }

    fn stacked(self) -> Result<Y> {
        let last = self.last.expect("there was a step");
        let columns =
            self.columns.iter().map(|rows| Tensor::try_stack(rows, 0)).collect::<Result<Vec<Tensor>>>()?;
        Ok(from_leaves(&last, columns))
    }
}
