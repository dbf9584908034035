//! The method of Dormand and Prince, of fifth order with an embedded fourth, with steps of adaptive length and dense output.
//!
//! J. R. Dormand and P. J. Prince, "A family of embedded Runge-Kutta formulae" (1980); the interpolation is the one of fourth order in
//! E. Hairer, S. P. Nørsett and G. Wanner, "Solving Ordinary Differential Equations I" (1993), section II.6.

use super::{combined, fits};
use crate::error::{Result, Within, err};
use crate::tensor::Data;
use crate::{DType, Tensor, Tree};

const C: [f64; 7] = [0.0, 1.0 / 5.0, 3.0 / 10.0, 4.0 / 5.0, 8.0 / 9.0, 1.0, 1.0];
const A: [&[f64]; 7] = [
    &[],
    &[1.0 / 5.0],
    &[3.0 / 40.0, 9.0 / 40.0],
    &[44.0 / 45.0, -56.0 / 15.0, 32.0 / 9.0],
    &[19372.0 / 6561.0, -25360.0 / 2187.0, 64448.0 / 6561.0, -212.0 / 729.0],
    &[9017.0 / 3168.0, -355.0 / 33.0, 46732.0 / 5247.0, 49.0 / 176.0, -5103.0 / 18656.0],
    &[35.0 / 384.0, 0.0, 500.0 / 1113.0, 125.0 / 192.0, -2187.0 / 6784.0, 11.0 / 84.0],
];
/// Fifth order less fourth.
const E: [f64; 7] =
    [71.0 / 57600.0, 0.0, -71.0 / 16695.0, 71.0 / 1920.0, -17253.0 / 339200.0, 22.0 / 525.0, -1.0 / 40.0];
/// The last coefficient of the interpolation.
const D: [f64; 7] = [
    -12715105075.0 / 11282082432.0,
    0.0,
    87487479700.0 / 32700410799.0,
    -10690763975.0 / 1880347072.0,
    701980252875.0 / 199316789632.0,
    -1453857185.0 / 822651844.0,
    69997945.0 / 29380423.0,
];

/// The solver, with its accuracy.
///
/// The lengths of the steps are chosen from values alone: they are not differentiated, as the solution does not depend on them but
/// for its error. Under [`vmap`](crate::vmap) all lanes take the same steps, as short as the one that needs the shortest. In a function that is
/// traced ([`compile`](crate::compile), [`checkpoint`](crate::checkpoint)) values are not known, and it is an error:
/// there are [`rk4`](super::rk4) and [`adjoint`](super::adjoint) for it, and [`Policy::rerun`](crate::Policy::rerun) for checkpoints, which does not trace.
///
/// ```
/// use pullback::{ode::Dopri5, prelude::*};
/// let f = |_t: f64, y: &Tensor, p: &Tensor| p * y;
/// let solution = Dopri5::default().solve(f, &Tensor::scalar(1.0), &Tensor::scalar(1.0), 0.0, 1.0).unwrap();
/// assert!((solution.end().item() - 1f64.exp()).abs() < 1e-6);
/// assert!((solution.at(0.5).item() - 0.5f64.exp()).abs() < 1e-5);
/// ```
#[derive(Clone, Debug)]
pub struct Dopri5 {
    /// Error of a step that is accepted, relative to the state.
    pub relative: f64,
    /// The same, absolute.
    pub absolute: f64,
    /// Steps, accepted or not, after which it gives up.
    pub max_steps: usize,
}

impl Default for Dopri5 {
    fn default() -> Self {
        Dopri5 { relative: 1e-7, absolute: 1e-9, max_steps: 100_000 }
    }
}

/// A solution between two times.
pub struct Solution<Y> {
    start: (f64, Y),
    steps: Vec<Step<Y>>,
    /// Steps that were tried and found too inaccurate.
    pub rejected: usize,
}

/// An accepted step, with the coefficients of its interpolation.
struct Step<Y> {
    t: f64,
    h: f64,
    rest: [Y; 5],
    end: Y,
}

impl Dopri5 {
    /// Solves from `y0` at `t0` to `t1`; time may run backward.
    #[track_caller]
    pub fn solve<Y: Tree, P>(
        &self,
        f: impl Fn(f64, &Y, &P) -> Y,
        p: &P,
        y0: &Y,
        t0: f64,
        t1: f64,
    ) -> Result<Solution<Y>> {
        let _entered = crate::location::entered(crate::location::caller());
        self.run(f, p, y0, t0, t1).within("dopri5")
    }

    fn run<Y: Tree, P>(
        &self,
        f: impl Fn(f64, &Y, &P) -> Y,
        p: &P,
        y0: &Y,
        t0: f64,
        t1: f64,
    ) -> Result<Solution<Y>> {
        if !(t0.is_finite() && t1.is_finite()) {
            return Err(err!(Value, "the times {t0} and {t1} must be finite"));
        }
        let f = |t: f64, y: &Y, p: &P| {
            let slope = f(t, y, p);
            fits(y, &slope).map(|()| slope)
        };
        let copy = |y: &Y| y.map(&mut |t| t.clone());
        let mut solution = Solution { start: (t0, copy(y0)), steps: Vec::new(), rejected: 0 };
        let (mut t, mut y, mut k1) = (t0, copy(y0), f(t0, y0, p)?);
        let mut h = self.first_step(&y, &k1)?.min((t1 - t0).abs()).copysign(t1 - t0);
        let mut tried = 0;
        while (t1 - t) * (t1 - t0) > 0.0 {
            tried += 1;
            if tried > self.max_steps {
                return Err(err!(
                    Value,
                    "{} steps were not enough to come from {t0} to {t1}, it is at {t}; the equation may be stiff, or the accuracy \
                     ({}, {}) too high; raise max_steps, or lower the accuracy",
                    self.max_steps,
                    self.relative,
                    self.absolute
                ));
            }
            if (t + h - t1) * (t1 - t0) > 0.0 {
                h = t1 - t;
            }
            let (end, ks) = stages(&f, p, &y, &k1, t, h)?;
            let error = self.error(&y, &end, &ks, h)?;
            if !error.is_finite() && h.abs() < 1e-12 * (1.0 + t.abs()) {
                return Err(err!(Value, "the solution is not finite near t = {t}"));
            }
            // Larger steps for smaller errors, in moderation; an error that is not a number shrinks the step.
            let scale = if error.is_finite() { (0.9 * error.powf(-0.2)).clamp(0.2, 5.0) } else { 0.2 };
            if error <= 1.0 {
                let rest = interpolation(&y, &end, &ks, h);
                // Arriving is exact, whatever the rounding of t + h.
                let next = if h == t1 - t { t1 } else { t + h };
                solution.steps.push(Step { t, h, rest, end: copy(&end) });
                let [.., last] = ks;
                (t, y, k1) = (next, end, last);
            } else {
                solution.rejected += 1;
            }
            h *= scale;
        }
        Ok(solution)
    }

    /// A first guess, from the sizes of the state and of its derivative.
    fn first_step<Y: Tree>(&self, y: &Y, k1: &Y) -> Result<f64> {
        let (d0, d1) = (self.norm(y, y, y)?, self.norm(k1, y, y)?);
        Ok(if d0 < 1e-5 || d1 < 1e-5 || !d1.is_finite() { 1e-6 } else { 0.01 * d0 / d1 })
    }

    /// The error of a step, where 1 is just good enough.
    fn error<Y: Tree>(&self, y: &Y, end: &Y, ks: &[Y; 7], h: f64) -> Result<f64> {
        let zero = y.map(&mut |t| t.zeros_like());
        let terms: Vec<(f64, &Y)> = E.iter().map(|e| e * h).zip(ks).collect();
        let error = crate::no_grad(|| combined(&zero, &terms));
        self.norm(&error, y, end)
    }

    /// Root mean square of `x` in units of the accuracy at `a` and `b`; under `vmap`, that of the worst lane.
    fn norm<Y: Tree>(&self, x: &Y, a: &Y, b: &Y) -> Result<f64> {
        let all = || x.leaves().into_iter().zip(a.leaves()).zip(b.leaves()).map(|((x, a), b)| [x, a, b]);
        let n = all().map(|[x, ..]| x.numel()).sum::<usize>().max(1) as f64;
        let known = all().flatten().all(|t| t.is_known());
        let sum = if known { all().map(|t| self.squares(t)).sum() } else { self.worst(all())? };
        Ok((sum / n).sqrt())
    }

    /// The sum of squares of numbers.
    fn squares(&self, [x, a, b]: [&Tensor; 3]) -> f64 {
        let [x, a, b] = [x, a, b].map(|t| t.to_vec::<f64>());
        let unit = |(a, b): (f64, f64)| self.absolute + self.relative * a.abs().max(b.abs());
        x.into_iter().zip(a.into_iter().zip(b).map(unit)).map(|(x, unit)| (x / unit).powi(2)).sum()
    }

    /// The largest sum of squares of all lanes.
    fn worst<'a>(&self, leaves: impl Iterator<Item = [&'a Tensor; 3]>) -> Result<f64> {
        let mut sum = Tensor::scalar(0.0);
        for each in leaves {
            let [x, a, b] = each.map(|t| t.detach().cast(DType::F64));
            sum += (x / (a.abs().maximum(b.abs()) * self.relative + self.absolute)).square().sum();
        }
        let larger = |m: f64, v: f64| if v > m || v.is_nan() { v } else { m };
        Ok(lanes(&sum)?.into_iter().fold(0.0, larger))
    }
}

/// The values of a scalar in all lanes that there are.
fn lanes(t: &Tensor) -> Result<Vec<f64>> {
    match t.data() {
        Data::Dual(d) => lanes(&d.primal),
        Data::Mapped(m) => lanes(&m.value),
        Data::Traced(_) => Err(err!(
            Value,
            "the lengths of the steps depend on values, which are not known while a function is traced; use rk4 or \
             rk4_with there, or ode::adjoint for a value or a gradient; or checkpoint_with(Policy::rerun(), f)"
        )),
        _ => Ok(t.to_vec()),
    }
}

/// The state after a step, and the seven slopes; the last is the first of the next step.
fn stages<Y: Tree, P>(
    f: &impl Fn(f64, &Y, &P) -> Result<Y>,
    p: &P,
    y: &Y,
    k1: &Y,
    t: f64,
    h: f64,
) -> Result<(Y, [Y; 7])> {
    let mut ks: Vec<Y> = vec![k1.map(&mut |t| t.clone())];
    let mut end = None;
    for (c, a) in C.iter().zip(A).skip(1) {
        let terms: Vec<(f64, &Y)> = a.iter().map(|a| a * h).zip(&ks).collect();
        let at = combined(y, &terms);
        ks.push(f(t + c * h, &at, p)?);
        end = Some(at);
    }
    let ks = ks.try_into().unwrap_or_else(|_| unreachable!("seven stages"));
    Ok((end.expect("seven stages"), ks))
}

/// Coefficients such that the state at `t + θ h` is `r0 + θ (r1 + (1-θ) (r2 + θ (r3 + (1-θ) r4)))`.
fn interpolation<Y: Tree>(y: &Y, end: &Y, ks: &[Y; 7], h: f64) -> [Y; 5] {
    let zero = y.map(&mut |t| t.zeros_like());
    let rise = combined(end, &[(-1.0, y)]);
    let bend = combined(&zero, &[(h, &ks[0]), (-1.0, &rise)]);
    let twist = combined(&rise, &[(-h, &ks[6]), (-1.0, &bend)]);
    let terms: Vec<(f64, &Y)> = D.iter().map(|d| d * h).zip(ks).collect();
    let last = combined(&zero, &terms);
    [y.map(&mut |t: &Tensor| t.clone()), rise, bend, twist, last]
}

impl<Y: Tree> Solution<Y> {
    /// The state at the end.
    pub fn end(&self) -> &Y {
        self.steps.last().map_or(&self.start.1, |s| &s.end)
    }

    /// The state at any time in between, to fourth order; times outside give the nearest end.
    pub fn at(&self, t: f64) -> Y {
        let forward = self.steps.first().is_none_or(|s| s.h > 0.0);
        let k = self.steps.partition_point(|s| if forward { s.t + s.h < t } else { s.t + s.h > t });
        let Some(s) = self.steps.get(k) else { return self.end().map(&mut |t| t.clone()) };
        let x = ((t - s.t) / s.h).clamp(0.0, 1.0);
        let z = 1.0 - x;
        let [r0, r1, r2, r3, r4] = &s.rest;
        combined(r0, &[(x, r1), (x * z, r2), (x * z * x, r3), (x * z * x * z, r4)])
    }

    /// The times at which steps begin, and the last end.
    pub fn times(&self) -> Vec<f64> {
        let last = self.steps.last().map(|s| s.t + s.h);
        let begin = self.steps.iter().map(|s| s.t);
        if self.steps.is_empty() { vec![self.start.0] } else { begin.chain(last).collect() }
    }
}
