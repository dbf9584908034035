//! The continuous adjoint: the gradient as the solution of a second equation, backward in time.
//!
//! With `a` the cotangent of the state, `da/dt = -aᵀ ∂f/∂y`, and that of the parameters gathers `-aᵀ ∂f/∂p` on the way (L. S.
//! Pontryagin; R. T. Q. Chen et al., "Neural ordinary differential equations", 2018). The state on the way comes from the dense
//! output of a second forward solution. Solving it backward too, as is often done, needs less memory and fails on dissipative
//! systems: what contracts forward explodes backward (the Lorenz system by e^14.6 in a unit of time).

use super::{Dopri5, Solution};
use crate::Tree;
use crate::error::{Result, or_panic};
use crate::ops::Aval;
use crate::tape::is_ambient;
use crate::tensor::{Block, BlockAt, Link, Tensor, bind_block};
use crate::transform::{avals, from_leaves, pulled_for};
use std::panic::Location;
use std::sync::Arc;

/// The state at `t1`, whose gradient is computed by the continuous adjoint. Between the passes nothing but the inputs is kept; the
/// pullback holds one solution without its derivatives.
///
/// Under [`vmap`](crate::vmap) inside of a gradient the outer gradient goes through the solver, and keeps every step: take the gradient
/// inside. In a function that is traced it is one operation, and so is its gradient. A second derivative in a compiled function, and a
/// [`vmap`](crate::vmap) or [`jvp`](crate::jvp) inside of a traced one, would look into it, where values are not known: that is an error.
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
    let _entered = crate::location::entered(location);
    // Of these only the structure is read.
    let (y, q) = (y0.map(&mut |_| Tensor::scalar(0.0)), p.map(&mut |_| Tensor::scalar(0.0)));
    let equation = Equation { solver: solver.clone(), f, y, p: q, t0, t1 };
    let types = [avals(y0), avals(p)].concat();
    let inputs: Vec<&Tensor> = y0.leaves().into_iter().chain(p.leaves()).collect();
    let block = Adjoint { of: Arc::new(equation), types };
    let outputs = bind_block(Arc::new(block), &inputs).map_err(|e| e.in_op(NAME).at(location));
    from_leaves(y0, or_panic(outputs))
}

const NAME: &str = "adjoint";

struct Equation<Y, P, F> {
    solver: Dopri5,
    f: F,
    /// The structures of state and parameters.
    y: Y,
    p: P,
    t0: f64,
    t1: f64,
}

impl<Y: Tree, P: Tree, F: Fn(f64, &Y, &P) -> Y> Equation<Y, P, F> {
    fn split(&self, leaves: &[Tensor]) -> (Y, P) {
        let (y, p) = leaves.split_at(self.y.leaves().len());
        (from_leaves(&self.y, y.iter().cloned()), from_leaves(&self.p, p.iter().cloned()))
    }

    fn solved(&self, y0: &Y, p: &P) -> Result<Solution<Y>> {
        self.solver.solve(&self.f, p, y0, self.t0, self.t1)
    }
}

/// The state at the end, from that at the start and the parameters.
struct Adjoint<Y, P, F> {
    of: Arc<Equation<Y, P, F>>,
    /// Those of the inputs.
    types: Vec<Aval>,
}

impl<Y, P, F> Block for Adjoint<Y, P, F>
where
    Y: Tree + Clone + Send + Sync + 'static,
    P: Tree + Clone + Send + Sync + 'static,
    F: Fn(f64, &Y, &P) -> Y + Send + Sync + 'static,
{
    fn name(&self) -> &'static str {
        NAME
    }

    fn expand(&self, x: &[Tensor]) -> Result<Vec<Tensor>> {
        let (y0, p) = self.of.split(x);
        Ok(self.of.solved(&y0, &p)?.end().flatten())
    }

    fn signature(&self) -> Option<Vec<Aval>> {
        Some(self.types[..self.of.y.leaves().len()].to_vec())
    }

    fn reaches_captures(&self) -> bool {
        false
    }

    fn pullback(&self, at: &BlockAt, gs: &[Option<Tensor>]) -> Result<Vec<(Link, Tensor)>> {
        let given = (0..self.of.y.leaves().len()).map(|k| gs.get(k).is_some_and(Option::is_some)).collect();
        let (of, types) = (self.of.clone(), self.types.clone());
        let backward = Backward { of, types, given, ambient: is_ambient(at.level) };
        let x = at.x();
        let inputs: Vec<&Tensor> = x.iter().chain(gs.iter().flatten()).collect();
        let cotangents = bind_block(Arc::new(backward), &inputs)?;
        Ok(at.inputs.iter().map(|i| i.link()).zip(cotangents).collect())
    }
}

/// The pullback, an operation too, so that it can stand in a graph: from the inputs and the cotangents that are given to the cotangents
/// of all inputs.
struct Backward<Y, P, F> {
    of: Arc<Equation<Y, P, F>>,
    types: Vec<Aval>,
    given: Vec<bool>,
    /// Whether it is that of `backward`.
    ambient: bool,
}

impl<Y, P, F> Block for Backward<Y, P, F>
where
    Y: Tree + Clone + Send + Sync + 'static,
    P: Tree + Clone + Send + Sync + 'static,
    F: Fn(f64, &Y, &P) -> Y + Send + Sync + 'static,
{
    fn name(&self) -> &'static str {
        NAME
    }

    fn expand(&self, all: &[Tensor]) -> Result<Vec<Tensor>> {
        let Equation { solver, f, t0, t1, .. } = &*self.of;
        let (x, gs) = all.split_at(self.types.len());
        let (y0, p) = self.of.split(x);
        let forward = self.of.solved(&y0, &p)?;
        let (mut given, mut gs) = (self.given.iter(), gs.iter().cloned());
        let a = forward.end().map(&mut |y| match given.next() {
            Some(true) => gs.next().expect("one for each"),
            _ => y.zeros_like(),
        });
        let gathered = p.map(&mut |t| t.zeros_like());
        let backward = |t: f64, (a, _): &(Y, P), p: &P| {
            let slope = |(y, p): &(Y, P)| f(t, y, p);
            let (ga, gp) = or_panic(pulled_for(self.ambient, slope, &(forward.at(t), p.clone()), a));
            (ga.map(&mut |g| -g), gp.map(&mut |g| -g))
        };
        Ok(solver.solve(backward, &p, &(a, gathered), *t1, *t0)?.end().flatten())
    }

    fn signature(&self) -> Option<Vec<Aval>> {
        Some(self.types.clone())
    }

    fn reaches_captures(&self) -> bool {
        false
    }
}
