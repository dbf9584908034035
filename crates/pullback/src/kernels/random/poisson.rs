//! Poisson variables.

use super::gamma::ln_factorial;
use super::{Philox, inside};

/// From this rate on, rejection from a hat that fits all of them; below, the distribution function is searched.
const LARGE: f64 = 10.0;

/// A number of events at a rate that is finite and not negative. The stream is used for nothing else.
pub(crate) fn poisson(stream: Philox, rate: f64) -> i64 {
    if rate < LARGE { searched(stream, rate) } else { rejected(stream, rate) }
}

fn searched(stream: Philox, rate: f64) -> i64 {
    let u = inside(stream.word(0));
    let (mut k, mut p) = (0i64, (-rate).exp());
    let mut sum = p;
    while u > sum && k < 1000 {
        k += 1;
        p *= rate / k as f64;
        sum += p;
    }
    k
}

/// Transformed rejection: the algorithm PTRS of Hörmann, "The transformed rejection method for generating Poisson random variables", 1993.
fn rejected(stream: Philox, rate: f64) -> i64 {
    let b = 0.931 + 2.53 * rate.sqrt();
    let a = -0.059 + 0.02483 * b;
    let (height, limit) = (1.1239 + 1.1328 / (b - 3.4), 0.9277 - 3.6224 / (b - 2.0));
    for counter in 0.. {
        let [u, v] = stream.words(counter);
        let (u, v) = (inside(u) - 0.5, inside(v));
        let us = 0.5 - u.abs();
        let k = ((2.0 * a / us + b) * u + rate + 0.43).floor();
        if us >= 0.07 && v <= limit {
            return k as i64;
        }
        if k < 0.0 || (us < 0.013 && v > us) {
            continue;
        }
        let weight = (v * height / (a / (us * us) + b)).ln();
        if weight <= k * rate.ln() - rate - ln_factorial(k) {
            return k as i64;
        }
    }
    unreachable!("some number is taken")
}
