//! Ordinary differential equations, `dy/dt = f(t, y, p)`, whose solutions can be differentiated.
//!
//! The state `y` and the parameters `p` are any [`Tree`]s. The gradient comes in three ways, which agree up to the accuracy of the
//! solution:
//!
//! - through the solver: [`rk4`] and [`Dopri5`] are made of ordinary operations, so every transform applies to them (but [`Dopri5`], which
//!   chooses its steps by values, cannot be traced). Exact for the numbers that were computed, of any order, with memory in proportion
//!   to the number of steps;
//! - with checkpoints: [`rk4_with`] keeps the states of a few steps and computes the others again, with the same result;
//! - by the continuous adjoint: [`adjoint`] keeps nothing between the passes and solves a second equation backward. Its error is
//!   that of the backward solution.
//!
//! ```
//! use pullback::{ode, prelude::*};
//! // dy/dt = -p y: y(1) = exp(-p)
//! let f = |_t: f64, y: &Tensor, p: &Tensor| -(p * y);
//! let end = |p: &Tensor| ode::rk4(f, p, &Tensor::scalar(1.0), 0.0, 1.0, 50);
//! let g = grad(end)(&Tensor::scalar(0.5));
//! assert!((g.item() + (-0.5f64).exp()).abs() < 1e-8);
//! ```

mod adjoint;
mod dopri5;
mod rk4;

pub use adjoint::adjoint;
pub use dopri5::{Dopri5, Solution};
pub use rk4::{rk4, rk4_with};

use crate::error::{Result, err};
use crate::transform::control::first_misfit;
use crate::{Tensor, Tree};

/// An error unless the right-hand side has returned a slope for each number of the state.
fn fits<Y: Tree>(y: &Y, slope: &Y) -> Result<()> {
    let wrong = |e| err!(Structure, "the right-hand side does not return the structure of the state: {e}");
    y.same_structure(slope).map_err(wrong)?;
    match first_misfit(y, slope) {
        None => Ok(()),
        Some((place, y, slope)) => Err(err!(
            Shape,
            "the state{place} is {} {:?}, but the right-hand side returns {} {:?} for it; it must return a slope for each \
             number of the state",
            y.dtype(),
            y.shape(),
            slope.dtype(),
            slope.shape()
        )),
    }
}

/// `y + Σ c k`, leaf by leaf.
#[track_caller]
fn combined<Y: Tree>(y: &Y, terms: &[(f64, &Y)]) -> Y {
    let ks: Vec<Vec<&Tensor>> = terms.iter().map(|(_, k)| k.leaves()).collect();
    let mut leaf = 0;
    y.map(&mut |y| {
        let mut sum = y.clone();
        for ((c, _), k) in terms.iter().zip(&ks) {
            if *c != 0.0 {
                sum += k[leaf] * *c;
            }
        }
        leaf += 1;
        sum
    })
}
