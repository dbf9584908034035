//! The determinant by minors.

use crate::protocol::{Outcome, measure, parse, unknown};
use pullback::scalar::{self, Real};
use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Deserialize)]
struct Input {
    #[serde(rename = "A")]
    a: Vec<f64>,
    ell: usize,
}

/// The determinant of the rows from `row` on and the columns of the list `next`, in which each column names the one that
/// follows it; the entry before the first column is at `start`.
fn minors<T: Real>(a: &[T], n: usize, row: usize, next: &mut [usize], start: usize) -> T {
    if row + 1 == n {
        return a[row * n + next[start]];
    }
    let mut sum = T::constant(0.0);
    let (mut before, mut negative) = (start, false);
    while next[before] < n {
        let column = next[before];
        // Out of the list for the smaller determinant, and back again.
        next[before] = next[column];
        let minor = minors(a, n, row + 1, next, start);
        next[before] = column;
        let entry = a[row * n + column];
        sum = if negative { -entry } else { entry }.mul_add(minor, sum);
        (before, negative) = (column, !negative);
    }
    sum
}

fn determinant<T: Real>(a: &[T]) -> T {
    let n = a.len().isqrt();
    // Column k is followed by k + 1, and the last by n, the end. Place n + 1 is before the first.
    let mut next: Vec<usize> = (1..=n + 1).collect();
    next.push(0);
    minors(a, n, 0, &mut next, n + 1)
}

pub fn run(function: &str, input: &RawValue) -> Outcome {
    let Input { a, ell } = parse(input)?;
    if a.len() != ell * ell {
        return Err(format!("a matrix of order {ell} has {} elements, got {}", ell * ell, a.len()));
    }
    match function {
        "primal" => measure(input, || (), |()| determinant(&a), |_, y| y),
        "gradient" => measure(
            input,
            || vec![0.0; a.len()],
            |gradient| {
                scalar::gradient_into(determinant, &a, gradient);
            },
            |gradient, ()| gradient.clone(),
        ),
        _ => unknown(function),
    }
}
