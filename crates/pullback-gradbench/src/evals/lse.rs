//! Log-sum-exp of a vector, on tensors.

use crate::protocol::{Outcome, measure, parse, unknown};
use pullback::{Tensor, compile, grad};
use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Deserialize)]
struct Input {
    x: Vec<f64>,
}

fn log_sum_exp(x: &Tensor) -> Tensor {
    let top = x.max();
    (x - &top).exp().sum().ln() + top
}

pub fn run(function: &str, input: &RawValue) -> Outcome {
    let Input { x } = parse(input)?;
    let tensor = || Tensor::from_slice(&x, [x.len()]);
    match function {
        "primal" => measure(input, || (compile(log_sum_exp), tensor()), |(f, x)| f.call(x), |_, y| y.item()),
        "gradient" => measure(
            input,
            || (compile(grad(log_sum_exp)), tensor()),
            |(gradient, x)| gradient.call(x),
            |_, g| g.to_vec::<f64>(),
        ),
        _ => unknown(function),
    }
}
