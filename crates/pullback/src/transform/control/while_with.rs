//! Loops with a bound on their steps: those that can be traced, and those that are reversed from few of their states.

use super::scan_with::{Dynamic, scan_with};
use super::steps::traced_body;
use super::while_loop::{endless, run};
use super::{same_carry, scan, select};
use crate::error::{Result, err, or_panic};
use crate::graph::control::{Known, Loop, LoopStep, is_placeholder, known};
use crate::ops::Aval;
use crate::schedule::{Kept, Schedule};
use crate::tensor::{Block, Ran, Tensor, bind_block_at};
use crate::transform::checkpoint::graph_of;
use crate::transform::{Rerun, Tree, from_leaves};
use std::panic::Location;
use std::sync::{Arc, Mutex};

const NAME: &str = "while_loop_with";

/// How many steps a loop may take, and which of its states are kept.
///
/// ```
/// use pullback::{Bound, Schedule, prelude::*, while_loop_with};
/// // Collatz: 6, 3, 10, 5, 16, 8, 4, 2, 1
/// let step = |x: &Tensor| if x.item() % 2.0 == 0.0 { x / 2.0 } else { x * 3.0 + 1.0 };
/// let few = Bound::at_most(1000).schedule(Schedule::Online { slots: 3 }.rerun());
/// let f = move |x: &Tensor| while_loop_with(few, |x: &Tensor| x.ne(1.0), step, x);
/// assert_eq!(f(&Tensor::scalar(6.0)).item(), 1.0);
/// assert_eq!(grad(f)(&Tensor::scalar(6.0)).item(), 9.0 / 64.0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound<S = ()> {
    max: usize,
    schedule: S,
}

impl Bound {
    /// At most `max` steps. More are an error; in a graph, which cannot raise one, the floats of the state are NaN then.
    pub fn at_most(max: usize) -> Bound {
        Bound { max, schedule: () }
    }

    /// The states that a [`Schedule`] names are kept for the pullback, and the steps between them run again. [`Schedule::Online`] suits loops of which
    /// nobody knows the number of steps; the others take the bound for it.
    pub fn schedule<S>(self, schedule: S) -> Bound<S> {
        Bound { max: self.max, schedule }
    }
}

/// [`while_loop`](crate::while_loop) with a [`Bound`] on its steps.
///
/// Traced, it is a loop of as many steps as there may be, of which those after the end change nothing.
///
/// Without a schedule it runs as [`while_loop`](crate::while_loop) does. With one, condition and body are traced once, so they may borrow: what they
/// capture becomes an input, and gets its gradient. They may not branch on values; for that there is [`Schedule::rerun`].
/// Under [`vmap`](crate::vmap) inside of a gradient the outer gradient keeps every step: take the gradient inside.
///
/// ```
/// use pullback::{Bound, Schedule, prelude::*, while_loop_with};
/// let halve = |x: &Tensor| while_loop_with(Bound::at_most(8), |x: &Tensor| x.gt(1.0), |x: &Tensor| x * 0.5, x);
/// assert_eq!(grad(checkpoint(halve))(&Tensor::scalar(6.0)).item(), 0.125);
///
/// let rate = Tensor::scalar(0.999).requires_grad();
/// let few = Bound::at_most(100_000).schedule(Schedule::Online { slots: 8 });
/// let last = while_loop_with(few, |x: &Tensor| x.gt(1.0), |x: &Tensor| x * &rate, &Tensor::scalar(20.0)); // x r^2995
/// last.backward();
/// assert!((rate.grad().unwrap().item() - 2995.0 * last.item() / 0.999).abs() < 1e-6);
/// ```
#[track_caller]
pub fn while_loop_with<C: Tree, P: Fn(&C) -> Tensor, F: Fn(&C) -> C>(
    options: impl WhileOptions<C, P, F>,
    condition: P,
    body: F,
    init: &C,
) -> C {
    let location = Location::caller();
    let _entered = crate::location::entered(location);
    or_panic(options.while_loop(condition, body, init, location).map_err(|e| e.in_op(NAME).at(location)))
}

/// What [`while_loop_with`] takes: a [`Bound`], which may have a [`Schedule`] or its re-running form.
pub trait WhileOptions<C, P, F> {
    #[doc(hidden)]
    fn while_loop(self, condition: P, body: F, init: &C, location: &'static Location<'static>) -> Result<C>;
}

impl<C: Tree, P: Fn(&C) -> Tensor, F: Fn(&C) -> C> WhileOptions<C, P, F> for Bound {
    fn while_loop(self, condition: P, body: F, init: &C, location: &'static Location<'static>) -> Result<C> {
        match run(self.max, &condition, &body, init)? {
            Some(last) => Ok(last),
            None => Ok(masked(&condition, &body, location, |step| scan(step, init, self.max))),
        }
    }
}

impl<C: Tree, P: Fn(&C) -> Tensor, F: Fn(&C) -> C> WhileOptions<C, P, F> for Bound<Schedule> {
    fn while_loop(self, condition: P, body: F, init: &C, location: &'static Location<'static>) -> Result<C> {
        let Bound { max, schedule } = self;
        let (step, mut shared, ()) = traced_body(&|state: &C, _: &()| (body(state), ()), init, &max)?;
        let (graph, captured) = graph_of(&condition, init)?.0.lift();
        let own = shared.len();
        shared.extend(captured);
        if init.leaves().into_iter().chain(&shared).any(is_placeholder) {
            return Ok(masked(&condition, &body, location, |step| scan_with(schedule, step, init, max)));
        }
        let condition: Condition = Arc::new(move |state, shared| {
            let mut truth = graph.eval(&[state, &shared[own..]].concat())?;
            Ok(truth.pop().expect("a condition returns one tensor"))
        });
        While { step, condition, max, schedule }.bind(location, init, &shared)
    }
}

impl<C, P, F> WhileOptions<C, P, F> for Bound<Rerun<Schedule>>
where
    C: Tree + Send + Sync + 'static,
    P: Fn(&C) -> Tensor + Send + Sync + 'static,
    F: Fn(&C) -> C + Send + Sync + 'static,
{
    fn while_loop(self, condition: P, body: F, init: &C, location: &'static Location<'static>) -> Result<C> {
        let Bound { max, schedule: Rerun(schedule) } = self;
        if init.leaves().into_iter().any(is_placeholder) {
            return Ok(masked(&condition, &body, location, |step| scan_with(schedule, step, init, max)));
        }
        let step = Dynamic::new(move |state: &C, _: &()| (body(state), ()), init, ());
        let like = init.map(&mut |t| Tensor::zeros_of(t.dtype(), t.node().shape.clone()));
        let condition: Condition =
            Arc::new(move |state, _| Ok(condition(&from_leaves(&like, state.iter().cloned()))));
        While { step: Arc::new(step), condition, max, schedule }.bind(location, init, &[])
    }
}

/// The loop in a graph: all steps that there may be, each with an effect only while the condition holds.
fn masked<C: Tree>(
    condition: &impl Fn(&C) -> Tensor,
    body: &impl Fn(&C) -> C,
    location: &'static Location<'static>,
    scan: impl FnOnce(&dyn Fn(&C, &()) -> (C, ())) -> (C, ()),
) -> C {
    let step = |state: &C, _: &()| {
        let next = body(state);
        let next = same_carry(state, &next).and_then(|()| select(&condition(state), &next, state));
        (or_panic(next.map_err(|e| e.in_op(NAME).at(location))), ())
    };
    let (last, ()) = scan(&step);
    let goes_on = condition(&last);
    last.map(&mut |t| match t.dtype().is_differentiable() {
        true => Tensor::where_(&goes_on, t.zeros_like() + f64::NAN, t),
        false => t.clone(),
    })
}

/// Whether to go on, from the state and the shared inputs.
type Condition = Arc<dyn Fn(&[Tensor], &[Tensor]) -> Result<Tensor> + Send + Sync>;

/// The loop while it runs; when it has ended, it is recorded as a [`Loop`] of the steps that there were.
struct While {
    step: Arc<dyn LoopStep>,
    condition: Condition,
    max: usize,
    schedule: Schedule,
}

impl While {
    fn bind<C: Tree>(self, location: &'static Location<'static>, init: &C, shared: &[Tensor]) -> Result<C> {
        let inputs: Vec<&Tensor> = init.leaves().into_iter().chain(shared).collect();
        Ok(from_leaves(init, bind_block_at(location, Arc::new(self), &inputs)?))
    }
}

impl Block for While {
    fn name(&self) -> &'static str {
        NAME
    }

    fn expand(&self, x: &[Tensor]) -> Result<Vec<Tensor>> {
        Ok(self.run_to_record(x)?.0)
    }

    fn run_to_record(&self, x: &[Tensor]) -> Result<Ran> {
        let mut kept = Kept::new(self.schedule, self.max)?;
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
                    let mut run = Loop::new(NAME, step, k, self.schedule)?;
                    run.kept = Arc::new(Mutex::new(Some(kept.ended(k))));
                    return Ok((state, Some(Arc::new(run))));
                }
                Known::Nothing => {
                    return Err(err!(
                        Value,
                        "the condition depends on a captured tensor of a function that is traced; make it a part of the state, or \
                         use a schedule that does not rerun the closures"
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
