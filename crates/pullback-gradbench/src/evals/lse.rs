//! Log-sum-exp of a vector, on tensors.

use crate::protocol::{Outcome, measure, parse, unknown};
use pullback::{Tensor, grad};
use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Deserialize)]
struct Input {
    x: Vec<f64>,
}

fn plain(x: &[f64]) -> f64 {
    let top = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    x.iter().map(|x| (x - top).exp()).sum::<f64>().ln() + top
}

fn on_tensors(x: &Tensor) -> Tensor {
    let top = x.max();
    (x - &top).exp().sum().ln() + top
}

pub fn run(function: &str, input: &RawValue) -> Outcome {
    let Input { x } = parse(input)?;
    match function {
        "primal" => measure(input, || (), |()| plain(&x), |_, y| y),
        "gradient" => measure(
            input,
            || Tensor::from_slice(&x, [x.len()]),
            |x| grad(on_tensors)(x),
            |_, g| g.to_vec::<f64>(),
        ),
        _ => unknown(function),
    }
}
