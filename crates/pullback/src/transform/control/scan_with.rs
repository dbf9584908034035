//! Loops in little memory: some states are kept, and the steps between them run again for the pullback.

use super::scan::unpack;
use super::steps::traced_body;
use super::{Steps, same_carry};
use crate::error::{Result, or_panic};
use crate::graph::control::empty_slices;
use crate::graph::control::{Loop, LoopStep};
use crate::ops::Aval;
use crate::schedule::Schedule;
use crate::tensor::Tensor;
use crate::transform::{Rerun, Tree, avals, from_leaves};
use std::panic::Location;
use std::sync::{Arc, Mutex};

/// [`scan`](crate::scan) of which only some states are kept for the pullback, as the [`Schedule`] says.
///
/// The step is traced once, so it may borrow: what it captures becomes an input, and gets its gradient. It may not branch on values; for
/// that there is [`Schedule::rerun`]. Under [`vmap`](crate::vmap) inside of a gradient the outer gradient keeps every step:
/// take the gradient inside, or carry the batch in the state.
///
/// ```
/// use pullback::{Schedule, prelude::*, scan_with};
/// let r = Tensor::scalar(2.9).requires_grad();
/// let step = |x: &Tensor, _: &()| (&r * x * (1.0 - x), ());
/// let (last, ()) = scan_with(Schedule::Binomial { slots: 5 }, step, &Tensor::scalar(0.3), 50);
/// last.backward();
/// assert!(r.grad().is_some());
/// ```
#[track_caller]
pub fn scan_with<C: Tree, S: Steps, Y: Tree, F: Fn(&C, &S::Item) -> (C, Y)>(
    options: impl ScanOptions<C, S, Y, F>,
    f: F,
    init: &C,
    steps: S,
) -> (C, Y) {
    let location = Location::caller();
    let _entered = crate::location::entered(location);
    or_panic(options.scan(f, init, &steps, location).map_err(|e| e.in_op(NAME).at(location)))
}

const NAME: &str = "scan_with";

/// What [`scan_with`] takes: a [`Schedule`] or its re-running form.
pub trait ScanOptions<C, S, Y, F> {
    #[doc(hidden)]
    fn scan(self, f: F, init: &C, steps: &S, location: &'static Location<'static>) -> Result<(C, Y)>;
}

impl<C: Tree, S: Steps, Y: Tree, F: Fn(&C, &S::Item) -> (C, Y)> ScanOptions<C, S, Y, F> for Schedule {
    fn scan(self, f: F, init: &C, steps: &S, location: &'static Location<'static>) -> Result<(C, Y)> {
        let (body, shared, y) = traced_body(&f, init, steps)?;
        let run = Loop::new(NAME, body, steps.count()?, self)?;
        Ok(unpack(init, &y, run.bind(location, &init.leaves(), &steps.stacked(), &shared)?))
    }
}

impl<C, S, Y, F> ScanOptions<C, S, Y, F> for Rerun<Schedule>
where
    C: Tree + Send + Sync + 'static,
    S: Steps,
    S::Item: Send + Sync + 'static,
    Y: Tree + Send + 'static,
    F: Fn(&C, &S::Item) -> (C, Y) + Send + Sync + 'static,
{
    fn scan(self, f: F, init: &C, steps: &S, location: &'static Location<'static>) -> Result<(C, Y)> {
        let n = steps.count()?;
        let item = steps.item(&empty_slices(&steps.stacked()));
        let last: Arc<Mutex<Option<Y>>> = Arc::default();
        let mut types = None;
        // Without a step, the types of the outputs are found by a trial on zeros.
        if n == 0 {
            let (state, y) = f(init, &item);
            types = Some(avals(&state).into_iter().chain(avals(&y)).collect());
            *last.lock().unwrap_or_else(|e| e.into_inner()) = Some(y);
        }
        let body = Dynamic { types, last: last.clone(), ..Dynamic::new(f, init, item) };
        let run = Loop::new(NAME, Arc::new(body), n, self.0)?;
        let outputs = run.bind(location, &init.leaves(), &steps.stacked(), &[])?;
        let y = last.lock().unwrap_or_else(|e| e.into_inner()).take().expect("the step has run");
        Ok(unpack(init, &y, outputs))
    }
}

/// A step that is run as it is.
pub(super) struct Dynamic<C, X, Y, F> {
    f: F,
    /// The structures of the inputs.
    state: C,
    item: X,
    types: Option<Vec<Aval>>,
    /// The last output, for its structure.
    last: Arc<Mutex<Option<Y>>>,
}

impl<C: Tree, X, Y, F: Fn(&C, &X) -> (C, Y)> Dynamic<C, X, Y, F> {
    pub fn new(f: F, state: &C, item: X) -> Self {
        // Zeros need no memory: whether the state itself is kept is for the schedule to say.
        let state = state.map(&mut |t| Tensor::zeros_of(t.dtype(), t.node().shape.clone()));
        Dynamic { f, state, item, types: None, last: Arc::default() }
    }
}

impl<C, X, Y, F> LoopStep for Dynamic<C, X, Y, F>
where
    C: Tree + Send + Sync,
    X: Tree + Send + Sync,
    Y: Tree + Send,
    F: Fn(&C, &X) -> (C, Y) + Send + Sync,
{
    fn width(&self) -> usize {
        self.state.leaves().len()
    }

    fn step(&self, state: &[Tensor], item: &[Tensor], _: &[Tensor]) -> Result<Vec<Tensor>> {
        let before = from_leaves(&self.state, state.iter().cloned());
        let (after, y) = (self.f)(&before, &from_leaves(&self.item, item.iter().cloned()));
        same_carry(&before, &after)?;
        let outputs = after.leaves().into_iter().chain(y.leaves()).cloned().collect();
        *self.last.lock().unwrap_or_else(|e| e.into_inner()) = Some(y);
        Ok(outputs)
    }

    fn types(&self) -> Option<Vec<Aval>> {
        self.types.clone()
    }
}
