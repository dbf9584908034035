//! The loss of a recurrent network whose weights are diagonal.

use crate::protocol::{Outcome, measure, parse, unknown};
use pullback::scalar::{self, Real};
use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Deserialize)]
struct Input {
    main_params: Vec<Vec<f64>>,
    extra_params: Vec<Vec<f64>>,
    state: Vec<Vec<f64>>,
    sequence: Vec<Vec<f64>>,
}

struct Network {
    bits: usize,
    layers: usize,
    /// Hidden and cell state of each layer, at the start.
    state: Vec<Vec<f64>>,
    sequence: Vec<Vec<f64>>,
}

impl Network {
    /// The mean negative log-likelihood of each character after those before it; `x` holds the main parameters, layer by layer, and
    /// then the extra ones.
    fn loss<T: Real>(&self, x: &[T]) -> T {
        let b = self.bits;
        let (main, extra) = x.split_at(8 * b * self.layers);
        let mut state: Vec<Vec<T>> =
            self.state.iter().map(|row| row.iter().map(|&v| T::constant(v)).collect()).collect();
        let mut total = T::constant(0.0);
        let mut v = vec![T::constant(0.0); b];
        for pair in self.sequence.windows(2) {
            for j in 0..b {
                v[j] = extra[j] * pair[0][j];
            }
            for layer in 0..self.layers {
                let (weights, biases) = main[8 * b * layer..][..8 * b].split_at(4 * b);
                let [hidden, cell] = &mut state[2 * layer..2 * layer + 2] else { unreachable!() };
                for j in 0..b {
                    let gate = |input: T, k: usize| input * weights[k * b + j] + biases[k * b + j];
                    let forget = gate(v[j], 0).sigmoid();
                    let ingate = gate(hidden[j], 1).sigmoid();
                    let outgate = gate(v[j], 2).sigmoid();
                    let change = gate(hidden[j], 3).tanh();
                    cell[j] = cell[j] * forget + ingate * change;
                    hidden[j] = outgate * cell[j].tanh();
                    v[j] = hidden[j];
                }
            }
            let mut sum = T::constant(2.0);
            let mut wanted = T::constant(0.0);
            for j in 0..b {
                let y = v[j] * extra[b + j] + extra[2 * b + j];
                sum += y.exp();
                wanted += y * pair[1][j];
            }
            total += wanted - sum.ln() * pair[1].iter().sum::<f64>();
        }
        total * (-1.0 / ((self.sequence.len() - 1) * b) as f64)
    }
}

pub fn run(function: &str, input: &RawValue) -> Outcome {
    let Input { main_params, extra_params, state, sequence } = parse(input)?;
    let network = Network { bits: state[0].len(), layers: state.len() / 2, state, sequence };
    let x = [main_params.concat(), extra_params.concat()].concat();
    match function {
        "objective" => measure(input, || (), |()| network.loss(&x), |_, y| y),
        "jacobian" => measure(
            input,
            || vec![0.0; x.len()],
            |gradient| {
                scalar::gradient_into(|x| network.loss(x), &x, gradient);
            },
            |gradient, ()| gradient.clone(),
        ),
        _ => unknown(function),
    }
}
