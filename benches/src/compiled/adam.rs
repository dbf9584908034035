//! Adam with decoupled weight decay, on a tree of parameters.

use pullback::prelude::*;

/// The moments of the gradients, and the number of steps.
#[derive(Tree)]
pub struct State<P> {
    first: P,
    second: P,
    steps: Tensor,
}

pub fn start<P: Tree>(parameters: &P) -> State<P> {
    let zeros = || parameters.map(&mut |p| p.zeros_like());
    State { first: zeros(), second: zeros(), steps: Tensor::scalar(0.0f32) }
}

const RATE: f64 = 1e-3;
const BETA: (f64, f64) = (0.9, 0.999);
const EPSILON: f64 = 1e-8;

/// The next parameters and state.
pub fn update<P: Tree>(parameters: &P, g: &P, state: &State<P>, decay: f64) -> (P, State<P>) {
    let steps = &state.steps + 1.0;
    let first = state.first.zip(g, |m, g| m * BETA.0 + g * (1.0 - BETA.0));
    let second = state.second.zip(g, |v, g| v * BETA.1 + g.square() * (1.0 - BETA.1));
    // 1 - beta^steps.
    let correction = |beta: f64| -((&steps * beta.ln()).exp() - 1.0);
    let (c1, c2) = (correction(BETA.0), correction(BETA.1));
    let moves = first.zip(&second, |m, v| (m / &c1) / ((v / &c2).sqrt() + EPSILON));
    let next = parameters.zip(&moves, |p, d| p * (1.0 - RATE * decay) - d * RATE);
    (next, State { first, second, steps })
}
