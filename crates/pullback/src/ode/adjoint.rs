//! The continuous adjoint: the gradient as the solution of a second equation, backward in time.
//!
//! With `a` the cotangent of the state, `da/dt = -aᵀ ∂f/∂y`, and that of the parameters gathers `-aᵀ ∂f/∂p` on the way (L. S.
//! Pontryagin; R. T. Q. Chen et al., "Neural ordinary differential equations", 2018). The state on the way comes from the dense
//! output of a second forward solution. Solving it backward too, as is often done, needs less memory and fails on dissipative
//! systems: what contracts forward explodes backward (the Lorenz system by e^14.6 in a unit of time).

use super::Dopri5;
use crate::Tree;
use crate::error::{Result, or_panic};
use crate::tensor::{Block, BlockAt, Link, Tensor, bind_block};
use crate::transform::{from_leaves, vjp};
use std::panic::Location;
use std::sync::Arc;

/// The state at `t1`, whose gradient is computed by the continuous adjoint. Between the passes nothing but the inputs is kept; the
/// pullback holds one solution without its derivatives.
///
/// What `f` captures gets no gradient, so everything that needs one belongs into `p`; a captured tensor that needs one is an error.
///
/// ```
/// use pullback::{ode::{self, Dopri5}, prelude::*};
/// let f = |_t: f64, y: &Tensor, p: &Tensor| -(p * y);
/// let end = |p: &Tensor| ode::adjoint(&Dopri5::default(), f, p, &Tensor::scalar(1.0), 0.0, 1.0);
/// let g = grad(end)(&Tensor::scalar(0.5));
/// assert!((g.item() + (-0.5f64).exp()).abs() < 1e-6);
/// ```
#[track_caller]
pub fn adjoint<Y, P, F>(solver: &Dopri5, f: F, p: &P, y0: &Y, t0: f64, t1: f64) -> Y
where
    Y: Tree + Clone + Send + Sync + 'static,
    P: Tree + Clone + Send + Sync + 'static,
    F: Fn(f64, &Y, &P) -> Y + Send + Sync + 'static,
{
    let location = Location::caller();
    let _entered = crate::tape::entered(location);
    let body = Adjoint { solver: solver.clone(), f, y: y0.clone(), p: p.clone(), t0, t1 };
    let inputs: Vec<&Tensor> = y0.leaves().into_iter().chain(p.leaves()).collect();
    let outputs = bind_block(Arc::new(body), &inputs).map_err(|e| e.in_op("adjoint").at(location));
    from_leaves(y0, or_panic(outputs))
}

struct Adjoint<Y, P, F> {
    solver: Dopri5,
    f: F,
    /// The structures of state and parameters.
    y: Y,
    p: P,
    t0: f64,
    t1: f64,
}

impl<Y, P, F> Adjoint<Y, P, F>
where
    Y: Tree + Clone,
    P: Tree + Clone,
    F: Fn(f64, &Y, &P) -> Y,
{
    fn split(&self, leaves: &[Tensor]) -> (Y, P) {
        let (y, p) = leaves.split_at(self.y.leaves().len());
        (from_leaves(&self.y, y.iter().cloned()), from_leaves(&self.p, p.iter().cloned()))
    }
}

impl<Y, P, F> Block for Adjoint<Y, P, F>
where
    Y: Tree + Clone + Send + Sync,
    P: Tree + Clone + Send + Sync,
    F: Fn(f64, &Y, &P) -> Y + Send + Sync,
{
    fn name(&self) -> &'static str {
        "adjoint"
    }

    fn expand(&self, x: &[Tensor]) -> Result<Vec<Tensor>> {
        let (y0, p) = self.split(x);
        let solution = self.solver.solve(&self.f, &p, &y0, self.t0, self.t1)?;
        Ok(solution.end().leaves().into_iter().cloned().collect())
    }

    fn reaches_captures(&self) -> bool {
        false
    }

    fn pullback(&self, at: &BlockAt, gs: &[Option<Tensor>]) -> Result<Vec<(Link, Tensor)>> {
        let (y0, p) = self.split(&at.x());
        let forward = self.solver.solve(&self.f, &p, &y0, self.t0, self.t1)?;
        let end = forward.end();
        let mut gs = gs.iter();
        let a = end.map(&mut |y| gs.next().cloned().flatten().unwrap_or_else(|| y.zeros_like()));
        let gathered = p.map(&mut |t| t.zeros_like());
        let backward = |t: f64, (a, _): &(Y, P), p: &P| {
            let (_, pull) = vjp(|(y, p): &(Y, P)| (self.f)(t, y, p), &(forward.at(t), p.clone()));
            let (ga, gp) = pull(a);
            (ga.map(&mut |g| -g), gp.map(&mut |g| -g))
        };
        let solution = self.solver.solve(backward, &p, &(a, gathered), self.t1, self.t0)?;
        let (a, gathered) = solution.end();
        let gs = a.leaves().into_iter().chain(gathered.leaves()).cloned();
        Ok(at.inputs.iter().map(|i| i.link()).zip(gs).collect())
    }
}
