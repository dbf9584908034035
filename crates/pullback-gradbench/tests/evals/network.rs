//! The recurrent network.

use crate::tool::{BY_DIFFERENCES, differences, evaluate, numbers, some_rows};
use pullback_testing::assert_close;
use serde_json::json;

/// The loss, in which `x` holds the parameters as the output does: main rows, then extra rows.
fn loss(x: &[f64], state: &[Vec<f64>], sequence: &[Vec<f64>]) -> f64 {
    let (b, layers) = (state[0].len(), state.len() / 2);
    let main = |layer: usize, bias: usize, gate: usize, j: usize| x[((2 * layer + bias) * 4 + gate) * b + j];
    let extra = |row: usize, j: usize| x[(8 * layers + row) * b + j];
    let sigmoid = |z: f64| 0.5 + 0.5 * (z / 2.0).tanh();
    let mut state = state.to_vec();
    let mut total = 0.0;
    for t in 0..sequence.len() - 1 {
        let mut y = vec![0.0; b];
        for (j, y) in y.iter_mut().enumerate() {
            let mut v = sequence[t][j] * extra(0, j);
            for layer in 0..layers {
                let (h, c) = (state[2 * layer][j], state[2 * layer + 1][j]);
                let gate = |input: f64, k: usize| input * main(layer, 0, k, j) + main(layer, 1, k, j);
                let cell = c * sigmoid(gate(v, 0)) + sigmoid(gate(h, 1)) * gate(h, 3).tanh();
                let hidden = sigmoid(gate(v, 2)) * cell.tanh();
                (state[2 * layer][j], state[2 * layer + 1][j]) = (hidden, cell);
                v = hidden;
            }
            *y = v * extra(1, j) + extra(2, j);
        }
        let norm = (2.0 + y.iter().map(|y| y.exp()).sum::<f64>()).ln();
        total += y.iter().zip(&sequence[t + 1]).map(|(y, s)| s * (y - norm)).sum::<f64>();
    }
    -total / ((sequence.len() - 1) * b) as f64
}

#[test]
fn lstm() {
    // The bits of a character are not a round number in the suite either.
    for (layers, characters, bits) in [(1, 2, 3), (2, 40, 14), (3, 9, 5)] {
        let (main, extra) = (some_rows(2 * layers, 4 * bits, 10), some_rows(3, bits, 11));
        let state = some_rows(2 * layers, bits, 12);
        let sequence: Vec<Vec<f64>> = some_rows(characters, bits, 13)
            .iter()
            .map(|row| row.iter().map(|v| v.round()).collect())
            .collect();
        let input = json!({"main_params": main, "extra_params": extra, "state": state, "sequence": sequence});
        let x = [main.concat(), extra.concat()].concat();
        let value = evaluate("lstm", "objective", input.clone());
        assert_close(&numbers(&value), &[loss(&x, &state, &sequence)], 1e-13);
        let gradient = evaluate("lstm", "jacobian", input);
        let expected = differences(|x| loss(x, &state, &sequence), &x);
        assert_close(&numbers(&gradient), &expected, BY_DIFFERENCES);
    }
}
