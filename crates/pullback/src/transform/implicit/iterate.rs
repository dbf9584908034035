//! The ways to a solution. They run on numbers, and nothing of them is differentiated.

use super::linear::{dot, norm, numbers, plus, solve, tensors};
use super::{Options, TwoFn, slope};
use crate::error::{Result, err};
use crate::{DType, Error, Tensor};

impl Options {
    /// How small a step is none.
    fn tolerance(&self, x: &[Tensor]) -> f64 {
        let precise = x.iter().all(|t| t.dtype() == DType::F64);
        self.tolerance.unwrap_or(if precise { 1e-12 } else { 1e-6 })
    }

    fn exhausted(&self, what: &str, size: f64) -> Error {
        err!(
            Value,
            "did not converge in {} iterations: {what} is still {size:e}; start closer, or change the tolerance or the number \
             of iterations with Options",
            self.max_iterations
        )
    }
}

/// `x`, `f(x)`, `f(f(x))`, ..
pub(super) fn repeat(f: &TwoFn, p: &[Tensor], x: &[Tensor], options: &Options) -> Result<Vec<Tensor>> {
    let tolerance = options.tolerance(x);
    let mut x = x.to_vec();
    let mut moved = f64::INFINITY;
    for _ in 0..options.max_iterations {
        let next = f(p, &x)?;
        let (a, b) = (numbers(&x), numbers(&next));
        moved = norm(&plus(&b, -1.0, &a));
        x = next;
        if !moved.is_finite() {
            break;
        }
        if moved <= tolerance * (1.0 + norm(&b)) {
            return Ok(x);
        }
    }
    Err(options.exhausted("the step", moved))
}

/// Of two infinities neither is small.
fn is_small(step: &[f64], at: &[f64], limit: f64) -> bool {
    norm(step).is_finite() && norm(step) <= limit * (1.0 + norm(at))
}

/// How often a step is halved before it counts as hopeless.
const HALVINGS: i32 = 40;

/// Newton's method for a root, with steps halved until the residual shrinks.
pub(super) fn newton(f: &TwoFn, p: &[Tensor], x: &[Tensor], options: &Options) -> Result<Vec<Tensor>> {
    let tolerance = options.tolerance(x);
    let a = slope(f, p.len());
    let mut at = numbers(x);
    let mut r = numbers(&f(p, x)?);
    for _ in 0..options.max_iterations {
        if norm(&r) == 0.0 {
            return Ok(tensors(&at, x));
        }
        let here = tensors(&at, x);
        let step = numbers(&solve(&a, &[p, &here].concat(), &tensors(&r, x), options.solver)?);
        let small = |limit: f64| is_small(&step, &at, limit);
        if small(tolerance) {
            return Ok(tensors(&plus(&at, -1.0, &step), x));
        }
        let shorter = (0..HALVINGS).map(|k| 0.5f64.powi(k));
        let mut better = None;
        for t in shorter {
            let next = plus(&at, -t, &step);
            let residual = numbers(&f(p, &tensors(&next, x))?);
            // A NaN is not smaller than anything.
            if norm(&residual) <= (1.0 - 1e-4 * t) * norm(&r) {
                better = Some((next, residual));
                break;
            }
        }
        match better {
            Some(next) => (at, r) = next,
            // Rounding keeps the residual from shrinking, next to the root.
            None if small(tolerance.sqrt()) => return Ok(here),
            None => break,
        }
    }
    Err(options.exhausted("the residual", norm(&r)))
}

/// Newton's method for a minimum: where the curvature does not lead downhill the gradient does, and steps are halved until the
/// function shrinks enough (Armijo).
pub(super) fn minimize(
    f: &TwoFn,
    gradient: &TwoFn,
    p: &[Tensor],
    x: &[Tensor],
    options: &Options,
) -> Result<Vec<Tensor>> {
    let tolerance = options.tolerance(x);
    let hessian = slope(gradient, p.len());
    let value = |at: &[f64]| Ok::<f64, Error>(f(p, &tensors(at, x))?[0].item());
    let mut at = numbers(x);
    let mut y = value(&at)?;
    let mut size = f64::INFINITY;
    for _ in 0..options.max_iterations {
        let here = tensors(&at, x);
        let g = numbers(&gradient(p, &here)?);
        size = norm(&g);
        if size == 0.0 {
            return Ok(here);
        }
        let newton = solve(&hessian, &[p, &here].concat(), &tensors(&g, x), options.solver);
        let newton = newton.map(|step| numbers(&step)).ok().filter(|d| dot(d, &g) > 0.0);
        let small = |limit: f64| newton.as_ref().is_some_and(|d| is_small(d, &at, limit));
        if small(tolerance) {
            let step = newton.as_ref().expect("there is a small step");
            return Ok(tensors(&plus(&at, -1.0, step), x));
        }
        let step = newton.as_ref().unwrap_or(&g);
        let slope = dot(step, &g);
        let mut better = None;
        for k in 0..HALVINGS {
            let t = 0.5f64.powi(k);
            let next = plus(&at, -t, step);
            let lower = value(&next)?;
            // Next to the minimum a decrease drowns in the rounding of the value.
            if lower <= y - 1e-4 * t * slope + 4.0 * f64::EPSILON * y.abs() {
                better = Some((next, lower));
                break;
            }
        }
        match better {
            Some(next) => (at, y) = next,
            None if small(tolerance.sqrt()) => return Ok(here),
            None => break,
        }
    }
    Err(options.exhausted("the gradient", size))
}
