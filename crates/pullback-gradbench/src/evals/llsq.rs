//! Least squares of a polynomial against the sign function: a compiled function of the coefficients and one place, summed over the places.

use crate::protocol::{Outcome, measure, parse, unknown};
use pullback::scalar::{Function, Real};
use serde::Deserialize;
use serde_json::value::RawValue;

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

pub fn run(function: &str, input: &RawValue) -> Outcome {
    let Input { x, n } = parse(input)?;
    let m = x.len();
    match function {
        "primal" => measure(
            input,
            || x.clone(),
            |x| {
                let mut sum = 0.0;
                for place in places(n) {
                    x.truncate(m);
                    x.extend(place);
                    sum += element(x);
                }
                sum
            },
            |_, y| y,
        ),
        "gradient" => measure(
            input,
            || Function::record(element, m + 2).gradient_function().select(0..m).total(m),
            |gradient| gradient.evaluate(&x, places(n).collect::<Vec<_>>().as_flattened()),
            |_, g| g,
        ),
        _ => unknown(function),
    }
}
