//! Runge and Kutta's method for a chain of equations, on tensors.

use crate::protocol::{Outcome, measure, parse, unknown};
use pullback::{Tensor, checkpoint, compile, grad};
use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Deserialize)]
struct Input {
    x: Vec<f64>,
    s: usize,
}

/// The derivative of the state: `x[0]`, then `x[i] y[i - 1]`.
fn slope_into(x: &[f64], y: &[f64], slope: &mut [f64]) {
    slope[0] = x[0];
    for i in 1..x.len() {
        slope[i] = x[i] * y[i - 1];
    }
}

fn plain(x: &[f64], steps: usize) -> Vec<f64> {
    let n = x.len();
    let h = 2.0 / steps as f64;
    let mut y = vec![0.0; n];
    let [mut k1, mut k2, mut k3, mut k4, mut at] = std::array::from_fn(|_| vec![0.0; n]);
    let move_to = |at: &mut [f64], y: &[f64], k: &[f64], h: f64| (0..n).for_each(|i| at[i] = y[i] + h * k[i]);
    for _ in 0..steps {
        slope_into(x, &y, &mut k1);
        move_to(&mut at, &y, &k1, h / 2.0);
        slope_into(x, &at, &mut k2);
        move_to(&mut at, &y, &k2, h / 2.0);
        slope_into(x, &at, &mut k3);
        move_to(&mut at, &y, &k3, h);
        slope_into(x, &at, &mut k4);
        for i in 0..n {
            y[i] += h / 6.0 * (k1[i] + 2.0 * k2[i] + 2.0 * k3[i] + k4[i]);
        }
    }
    y
}

/// One step on tensors. The state has a leading 1, so that its first elements are the factors of the slopes.
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

/// The last element of the state after all steps.
fn last(x: &Tensor, steps: usize) -> Tensor {
    /// Numbers that may be kept for the way back: so many stay in the caches. Beyond them each step keeps its state alone and runs
    /// again, which takes less time than to fetch the slopes from memory.
    const KEPT: usize = 1 << 20;
    let n = x.shape()[0];
    let h = 2.0 / steps as f64;
    // A step keeps its state and the three that its slopes are taken at.
    let long = 4 * n * steps > KEPT;
    let again = checkpoint(|(x, y): &(Tensor, Tensor)| step(x, y, h));
    let mut y = Tensor::concat(&[&Tensor::ones([1]), &Tensor::zeros([n])], 0);
    for _ in 0..steps {
        y = if long { again(&(x.clone(), y)) } else { step(x, &y, h) };
    }
    y.slice(n..).sum()
}

pub fn run(function: &str, input: &RawValue) -> Outcome {
    let Input { x, s } = parse(input)?;
    match function {
        "primal" => measure(input, || (), |()| plain(&x, s), |_, y| y),
        "gradient" => measure(
            input,
            || {
                let x = Tensor::from_slice(&x, [x.len()]);
                let gradient = compile(grad(move |x: &Tensor| last(x, s)));
                // The first call compiles.
                gradient.call(&x);
                (gradient, x)
            },
            |(gradient, x)| gradient.call(x),
            |_, g| g.to_vec::<f64>(),
        ),
        _ => unknown(function),
    }
}
