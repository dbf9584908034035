//! The classical Runge-Kutta method of fourth order, with equal steps.

use super::{combined, fits};
use crate::error::{Within, or_panic};
use crate::location::entered;
use crate::schedule::Schedule;
use crate::transform::scan_with;
use crate::{Tensor, Tree};
use std::panic::Location;

/// One step of length `h`.
#[track_caller]
fn step<Y: Tree, P>(f: &impl Fn(f64, &Y, &P) -> Y, p: &P, y: &Y, t: f64, h: f64) -> Y {
    let k1 = f(t, y, p);
    or_panic(fits(y, &k1).within("rk4"));
    let k2 = f(t + h / 2.0, &combined(y, &[(h / 2.0, &k1)]), p);
    let k3 = f(t + h / 2.0, &combined(y, &[(h / 2.0, &k2)]), p);
    let k4 = f(t + h, &combined(y, &[(h, &k3)]), p);
    combined(y, &[(h / 6.0, &k1), (h / 3.0, &k2), (h / 3.0, &k3), (h / 6.0, &k4)])
}

/// The state at `t1`, from `y0` at `t0`, in `steps` equal steps. Time may run backward.
///
/// ```
/// use pullback::{ode, prelude::*};
/// // A circle: after one turn it is back.
/// let f = |_t: f64, (x, v): &(Tensor, Tensor), _: &()| (v.clone(), -x);
/// let start = (Tensor::scalar(1.0), Tensor::scalar(0.0));
/// let (x, _) = ode::rk4(f, &(), &start, 0.0, std::f64::consts::TAU, 200);
/// assert!((x.item() - 1.0).abs() < 1e-6);
/// ```
#[track_caller]
pub fn rk4<Y: Tree, P>(f: impl Fn(f64, &Y, &P) -> Y, p: &P, y0: &Y, t0: f64, t1: f64, steps: usize) -> Y {
    let _entered = entered(Location::caller());
    let h = (t1 - t0) / steps.max(1) as f64;
    let mut y = y0.map(&mut |t| t.clone());
    for k in 0..steps {
        y = step(&f, p, &y, t0 + k as f64 * h, h);
    }
    y
}

/// [`rk4`] that keeps the states of a few steps, as the schedule says, and computes the others again for the pullback: the same
/// result in less memory.
///
/// ```
/// use pullback::{Schedule, ode, prelude::*};
/// let f = |_t: f64, y: &Tensor, p: &Tensor| -(p * y);
/// let few = Schedule::Binomial { slots: 5 };
/// let end = move |p: &Tensor| ode::rk4_with(few, f, p, &Tensor::scalar(1.0), 0.0, 1.0, 100);
/// let all = |p: &Tensor| ode::rk4(f, p, &Tensor::scalar(1.0), 0.0, 1.0, 100);
/// let p = Tensor::scalar(0.5);
/// assert!((grad(end)(&p).item() - grad(all)(&p).item()).abs() < 1e-14);
/// ```
#[track_caller]
pub fn rk4_with<Y, P, F>(schedule: Schedule, f: F, p: &P, y0: &Y, t0: f64, t1: f64, steps: usize) -> Y
where
    Y: Tree + Send + Sync + 'static,
    P: Tree + Clone + Send + Sync + 'static,
    F: Fn(f64, &Y, &P) -> Y + Send + Sync + 'static,
{
    let _entered = entered(Location::caller());
    let h = (t1 - t0) / steps.max(1) as f64;
    let times = Tensor::from((0..steps).map(|k| t0 + k as f64 * h).collect::<Vec<f64>>());
    let p = p.clone();
    let advance = move |y: &Y, t: &Tensor| (step(&f, &p, y, t.item(), h), ());
    scan_with(schedule.rerun(), advance, y0, &times).0
}
