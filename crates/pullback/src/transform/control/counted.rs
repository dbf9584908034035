//! Loops without outputs, and loops without a state.

use super::scan::scan;
use super::{Steps, same_carry};
use crate::error::or_panic;
use crate::tensor::Tensor;
use crate::transform::Tree;
use std::panic::Location;

/// Applies `f(k, state)` for `k` from 0 to `n`, and returns the last state.
///
/// ```
/// use pullback::{fori, prelude::*};
/// let horner = |x: &Tensor| fori(4, |k, sum: &Tensor| sum * x + k as f64, &Tensor::scalar(0.0)); // x^2 + 2 x + 3
/// assert_eq!(horner(&Tensor::scalar(2.0)).item(), 11.0);
/// assert_eq!(grad(horner)(&Tensor::scalar(2.0)).item(), 6.0);
/// ```
#[track_caller]
pub fn fori<C: Tree>(n: usize, f: impl Fn(usize, &C) -> C, init: &C) -> C {
    let location = Location::caller();
    let _entered = crate::location::entered(location);
    let mut state = init.map(&mut Tensor::clone);
    for k in 0..n {
        let next = f(k, &state);
        or_panic(same_carry(&state, &next).map_err(|e| e.in_op("fori").at(location)));
        state = next;
    }
    state
}

/// Applies `f` to one slice after the other of stacked inputs, and stacks the results: [`vmap`](crate::vmap) in the memory of a
/// single example, for functions that branch on values.
///
/// ```
/// use pullback::{map_over, prelude::*};
/// let f = |x: &Tensor| if x.item() > 0.0 { x.sqrt() } else { x * 0.0 };
/// assert_eq!(map_over(f, &Tensor::from([4.0, -1.0, 9.0])).to_vec::<f64>(), [2.0, 0.0, 3.0]);
/// ```
#[track_caller]
pub fn map_over<S: Steps, Y: Tree>(f: impl Fn(&S::Item) -> Y, xs: S) -> Y {
    scan(|_: &(), x| ((), f(x)), &(), xs).1
}
