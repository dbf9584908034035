//! Least squares of a polynomial against the sign function: a compiled function of the coefficients and one place, summed over the places.

use crate::protocol::{Outcome, measure, parse, unknown};
use pullback::scalar::{Function, Real, Total};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::cell::OnceCell;

#[derive(Deserialize)]
struct Input {
    x: Vec<f64>,
    n: usize,
}

/// Half the squared residual at one place: coefficients, then the place and the value that is to be met there.
fn element<T: Real>(x: &[T]) -> T {
    let (coefficients, place) = x.split_at(x.len() - 2);
    let (at, aim) = (place[0], place[1]);
    let (mut sum, mut power) = (T::constant(0.0), T::constant(1.0));
    for &coefficient in coefficients {
        sum += coefficient * power;
        power *= at;
    }
    let residual = aim - sum;
    residual * residual * 0.5
}

/// The places -1 .. 1 and their signs.
fn places(n: usize) -> impl Iterator<Item = [f64; 2]> {
    (0..n).map(move |i| {
        let t = -1.0 + 2.0 * i as f64 / (n as f64 - 1.0);
        [t, if t == 0.0 { 0.0 } else { t.signum() }]
    })
}

/// The coefficients, and the sums over all places, which are recorded in the first run.
struct Sum {
    x: Vec<f64>,
    n: usize,
    total: OnceCell<Total>,
}

impl Sum {
    fn evaluate(&self, record: impl FnOnce(usize) -> Total) -> Vec<f64> {
        let total = self.total.get_or_init(|| record(self.x.len()));
        total.evaluate(&self.x, places(self.n).collect::<Vec<_>>().as_flattened())
    }
}

fn cost(m: usize) -> Total {
    Function::record(element, m + 2).total(m)
}

fn gradient(m: usize) -> Total {
    Function::record(element, m + 2).gradient_function().select(0..m).total(m)
}

pub fn run(function: &str, input: &RawValue) -> Outcome {
    let Input { x, n } = parse(input)?;
    let prepare = || Sum { x, n, total: OnceCell::new() };
    match function {
        "primal" => measure(input, prepare, |sum| sum.evaluate(cost), |_, y| y[0]),
        "gradient" => measure(input, prepare, |sum| sum.evaluate(gradient), |_, g| g),
        _ => unknown(function),
    }
}
