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
use crate::transform::{Tree, from_leaves};
use std::panic::Location;
use std::sync::{Arc, Mutex};

/// [`scan`](crate::scan) of which only some states are kept for the pullback, as the [`Schedule`] says.
///
/// The step is traced once, so it may borrow: what it captures becomes an input, and gets its gradient. It may not branch on values; for
/// that there is [`scan_checkpointed_dynamic`]. Under [`vmap`](crate::vmap) inside of a gradient the outer gradient keeps every step:
/// take the gradient inside, or carry the batch in the state.
///
/// ```
/// use pullback::prelude::*;
/// let r = Tensor::scalar(2.9).requires_grad();
/// let step = |x: &Tensor, _: &()| (&r * x * (1.0 - x), ());
/// let (last, ()) = scan_checkpointed(step, &Tensor::scalar(0.3), 50, Schedule::Binomial { slots: 5 });
/// last.backward();
/// assert!(r.grad().is_some());
/// ```
#[track_caller]
pub fn scan_checkpointed<C: Tree, S: Steps, Y: Tree>(
    f: impl Fn(&C, &S::Item) -> (C, Y),
    init: &C,
    steps: S,
    schedule: Schedule,
) -> (C, Y) {
    let location = Location::caller();
    let _entered = crate::location::entered(location);
    let run = || {
        let (body, shared, y) = traced_body(&f, init, &steps)?;
        let run = Loop::new(NAME, body, steps.count()?, schedule)?;
        Ok(unpack(init, &y, run.bind(location, &init.leaves(), &steps.stacked(), &shared)?))
    };
    or_panic(run().map_err(|e: crate::Error| e.in_op(NAME).at(location)))
}

const NAME: &str = "scan_checkpointed";
const DYNAMIC: &str = "scan_checkpointed_dynamic";

/// [`scan_checkpointed`] by running the closure itself again, so that it may branch on values. It owns what it captures;
/// captured tensors get their gradients.
///
/// ```
/// use pullback::prelude::*;
/// // Collatz: 6, 3, 10, 5, 16, 8, 4, 2, 1
/// let step = |x: &Tensor, _: &()| (if x.item() % 2.0 == 0.0 { x / 2.0 } else { x * 3.0 + 1.0 }, ());
/// let f = move |x: &Tensor| scan_checkpointed_dynamic(step, x, 8, Schedule::Sqrt).0;
/// assert_eq!(f(&Tensor::scalar(6.0)).item(), 1.0);
/// assert_eq!(grad(f)(&Tensor::scalar(6.0)).item(), 9.0 / 64.0);
/// ```
#[track_caller]
pub fn scan_checkpointed_dynamic<C, S, Y, F>(f: F, init: &C, steps: S, schedule: Schedule) -> (C, Y)
where
    C: Tree + Send + Sync + 'static,
    S: Steps,
    S::Item: Send + Sync + 'static,
    Y: Tree + Send + 'static,
    F: Fn(&C, &S::Item) -> (C, Y) + Send + Sync + 'static,
{
    let location = Location::caller();
    let _entered = crate::location::entered(location);
    let run = || {
        let n = steps.count()?;
        let item = steps.item(&empty_slices(&steps.stacked()));
        let last: Arc<Mutex<Option<Y>>> = Arc::default();
        let mut types = None;
        // Without a step, the types of the outputs are found by a trial on zeros.
        if n == 0 {
            let (state, y) = f(init, &item);
            let avals = |t: &Tensor| Aval { dtype: t.dtype(), shape: t.node().shape.clone() };
            types = Some(state.leaves().into_iter().chain(y.leaves()).map(avals).collect());
            *last.lock().unwrap_or_else(|e| e.into_inner()) = Some(y);
        }
        let body = Dynamic { types, last: last.clone(), ..Dynamic::new(f, init, item) };
        let run = Loop::new(DYNAMIC, Arc::new(body), n, schedule)?;
        let outputs = run.bind(location, &init.leaves(), &steps.stacked(), &[])?;
        let y = last.lock().unwrap_or_else(|e| e.into_inner()).take().expect("the step has run");
        Ok(unpack(init, &y, outputs))
    };
    or_panic(run().map_err(|e: crate::Error| e.in_op(DYNAMIC).at(location)))
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
