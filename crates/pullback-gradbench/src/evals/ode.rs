//! Runge and Kutta's method for a chain of equations, on tensors.

use crate::protocol::{Outcome, measure, parse, unknown};
use pullback::{Tensor, compile, grad};
use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Deserialize)]
struct Input {
    x: Vec<f64>,
    s: usize,
}

/// One step. The state has a leading 1, so that its first elements are the factors of the slopes.
fn step(x: &Tensor, y: &Tensor, h: f64) -> Tensor {
    let n = x.shape()[0];
    let slope = |y: &Tensor| x * y.slice(..n);
    let still = Tensor::zeros([1]);
    let moved = |k: &Tensor, h: f64| y + Tensor::concat(&[&still, &(k * h)], 0);
    let k1 = slope(y);
    let k2 = slope(&moved(&k1, h / 2.0));
    let k3 = slope(&moved(&k2, h / 2.0));
    let k4 = slope(&moved(&k3, h));
    moved(&(k1 + (k2 + k3) * 2.0 + k4), h / 6.0)
}

/// The state after all steps.
fn solution(x: &Tensor, steps: usize) -> Tensor {
    let n = x.shape()[0];
    let h = 2.0 / steps as f64;
    let mut y = Tensor::concat(&[&Tensor::ones([1]), &Tensor::zeros([n])], 0);
    for _ in 0..steps {
        y = step(x, &y, h);
    }
    y.slice(1..)
}

/// Its last element.
fn last(x: &Tensor, steps: usize) -> Tensor {
    solution(x, steps).slice(x.shape()[0] - 1..).sum()
}

pub fn run(function: &str, input: &RawValue) -> Outcome {
    let Input { x, s } = parse(input)?;
    let x = Tensor::from_slice(&x, [x.len()]);
    match function {
        "primal" => measure(
            input,
            || compile(move |x: &Tensor| solution(x, s)),
            |solution| solution.call(&x),
            |_, y| y.to_vec::<f64>(),
        ),
        "gradient" => measure(
            input,
            || compile(grad(move |x: &Tensor| last(x, s))),
            |gradient| gradient.call(&x),
            |_, g| g.to_vec::<f64>(),
        ),
        _ => unknown(function),
    }
}
