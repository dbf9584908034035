//! Loops of a number of steps that nobody knows before, reversed from a fixed number of states.

use super::checkpointed::Dynamic;
use super::steps::traced_body;
use super::while_loop::{Masked, endless, masked};
use crate::error::{Error, Result, err, or_panic};
use crate::graph::control::{Known, is_placeholder, known};
use crate::graph::control::{Loop, LoopStep};
use crate::ops::Aval;
use crate::schedule::{Kept, Schedule};
use crate::tensor::{Block, Ran, Tensor, bind_block_at};
use crate::transform::checkpoint::graph_of;
use crate::transform::{Tree, from_leaves};
use std::panic::Location;
use std::sync::{Arc, Mutex};

const TRACED: &str = "while_loop_checkpointed";
const DYNAMIC: &str = "while_loop_checkpointed_dynamic";

/// [`while_loop_bounded`](crate::while_loop_bounded) of which at most `slots` states are kept for the pullback, however many steps there are; those between
/// them run again, as [`Schedule::Online`] says.
///
/// Condition and body are traced once, so they may borrow: what they capture becomes an input, and gets its gradient. They may not
/// branch on values; for that there is [`while_loop_checkpointed_dynamic`]. Under [`vmap`](crate::vmap) inside of a gradient the outer gradient
/// keeps every step: take the gradient inside.
///
/// ```
/// use pullback::prelude::*;
/// let rate = Tensor::scalar(0.999).requires_grad();
/// let decay = |x: &Tensor| while_loop_checkpointed(100_000, |x: &Tensor| x.gt(1.0), |x: &Tensor| x * &rate, x, 8);
/// let last = decay(&Tensor::scalar(20.0)); // x r^2995
/// last.backward();
/// assert!((rate.grad().unwrap().item() - 2995.0 * last.item() / 0.999).abs() < 1e-6);
/// ```
#[track_caller]
pub fn while_loop_checkpointed<C: Tree>(
    max: usize,
    condition: impl Fn(&C) -> Tensor,
    body: impl Fn(&C) -> C,
    init: &C,
    slots: usize,
) -> C {
    let location = Location::caller();
    let _entered = crate::location::entered(location);
    let run = || {
        let (step, mut shared, ()) = traced_body(&|state: &C, _: &()| (body(state), ()), init, &max)?;
        let (graph, captured) = graph_of(&condition, init)?.0.lift();
        let own = shared.len();
        shared.extend(captured);
        if init.leaves().into_iter().chain(&shared).any(is_placeholder) {
            return masked(
                &condition,
                &body,
                init,
                Masked { name: TRACED, location, max, schedule: Some(Schedule::Online { slots }) },
            );
        }
        let condition: Condition = Arc::new(move |state, shared| {
            let mut truth = graph.eval(&[state, &shared[own..]].concat())?;
            Ok(truth.pop().expect("a condition returns one tensor"))
        });
        While { name: TRACED, step, condition, max, slots }.bind(location, init, &shared)
    };
    or_panic(run().map_err(|e: Error| e.in_op(TRACED).at(location)))
}

/// [`while_loop_checkpointed`] by running the closures themselves again, so that they may branch on values. They own what they
/// capture; captured tensors get their gradients.
///
/// ```
/// use pullback::prelude::*;
/// // Collatz: 6, 3, 10, 5, 16, 8, 4, 2, 1
/// let step = |x: &Tensor| if x.item() % 2.0 == 0.0 { x / 2.0 } else { x * 3.0 + 1.0 };
/// let f = move |x: &Tensor| while_loop_checkpointed_dynamic(1000, |x: &Tensor| x.ne(1.0), step, x, 3);
/// assert_eq!(f(&Tensor::scalar(6.0)).item(), 1.0);
/// assert_eq!(grad(f)(&Tensor::scalar(6.0)).item(), 9.0 / 64.0);
/// ```
#[track_caller]
pub fn while_loop_checkpointed_dynamic<C: Tree + Send + Sync + 'static>(
    max: usize,
    condition: impl Fn(&C) -> Tensor + Send + Sync + 'static,
    body: impl Fn(&C) -> C + Send + Sync + 'static,
    init: &C,
    slots: usize,
) -> C {
    let location = Location::caller();
    let _entered = crate::location::entered(location);
    let run = || {
        if init.leaves().into_iter().any(is_placeholder) {
            return masked(
                &condition,
                &body,
                init,
                Masked { name: DYNAMIC, location, max, schedule: Some(Schedule::Online { slots }) },
            );
        }
        let step = Dynamic::new(move |state: &C, _: &()| (body(state), ()), init, ());
        let like = init.map(&mut |t| Tensor::zeros_of(t.dtype(), t.node().shape.clone()));
        let condition: Condition =
            Arc::new(move |state, _| Ok(condition(&from_leaves(&like, state.iter().cloned()))));
        While { name: DYNAMIC, step: Arc::new(step), condition, max, slots }.bind(location, init, &[])
    };
    or_panic(run().map_err(|e: Error| e.in_op(DYNAMIC).at(location)))
}

/// Whether to go on, from the state and the shared inputs.
type Condition = Arc<dyn Fn(&[Tensor], &[Tensor]) -> Result<Tensor> + Send + Sync>;

/// The loop while it runs; when it has ended, it is recorded as a [`Loop`] of the steps that there were.
struct While {
    name: &'static str,
    step: Arc<dyn LoopStep>,
    condition: Condition,
    max: usize,
    slots: usize,
}

impl While {
    fn bind<C: Tree>(self, location: &'static Location<'static>, init: &C, shared: &[Tensor]) -> Result<C> {
        let inputs: Vec<&Tensor> = init.leaves().into_iter().chain(shared).collect();
        Ok(from_leaves(init, bind_block_at(location, Arc::new(self), &inputs)?))
    }
}

impl Block for While {
    fn name(&self) -> &'static str {
        self.name
    }

    fn expand(&self, x: &[Tensor]) -> Result<Vec<Tensor>> {
        Ok(self.run_to_record(x)?.0)
    }

    fn run_to_record(&self, x: &[Tensor]) -> Result<Ran> {
        let schedule = Schedule::Online { slots: self.slots };
        let mut kept = Kept::new(schedule, 0)?;
        let mut step = self.step.clone();
        let (state, shared) = x.split_at(step.width());
        let mut state = state.to_vec();
        for k in 0.. {
            match known(&(self.condition)(&state, shared)?)? {
                Known::One(true) => {}
                Known::Lanes { any: true } => {
                    step =
                        Arc::new(WhileLanes { step: self.step.clone(), condition: self.condition.clone() });
                }
                Known::One(false) | Known::Lanes { any: false } => {
                    let mut run = Loop::new(self.name, step, k, schedule)?;
                    run.kept = Arc::new(Mutex::new(Some(kept.ended(k))));
                    return Ok((state, Some(Arc::new(run))));
                }
                Known::Nothing => {
                    return Err(err!(
                        Value,
                        "the condition depends on a captured tensor of a function that is traced; make it a part of the state, or \
                         use while_loop_checkpointed"
                    ));
                }
            }
            if k == self.max {
                return Err(endless(self.max));
            }
            kept.offer(k, || state.clone());
            state = step.step(&state, &[], shared)?;
        }
        unreachable!("the loop returns")
    }
}

/// A step in which the lanes of a `vmap` that have finished keep their state.
struct WhileLanes {
    step: Arc<dyn LoopStep>,
    condition: Condition,
}

impl LoopStep for WhileLanes {
    fn width(&self) -> usize {
        self.step.width()
    }

    fn step(&self, state: &[Tensor], item: &[Tensor], shared: &[Tensor]) -> Result<Vec<Tensor>> {
        let next = self.step.step(state, item, shared)?;
        let truth = (self.condition)(state, shared)?;
        next.iter().zip(state).map(|(next, old)| Tensor::try_where(&truth, next, old)).collect()
    }

    fn types(&self) -> Option<Vec<Aval>> {
        self.step.types()
    }
}
