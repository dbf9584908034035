//! The twelve evals, a file each.

mod ba;
mod det;
mod gmm;
mod hello;
mod ht;
mod kmeans;
mod llsq;
mod lse;
mod lstm;
mod nested;
mod ode;
mod particle;
mod saddle;

use crate::protocol::Outcome;
use pullback::Tensor;
use serde_json::value::RawValue;

/// Numbers that stay in the cache from one operation to the next: half a megabyte of them.
const CACHED: usize = 1 << 16;

/// Rows of a given length as a tensor.
fn matrix(rows: &[Vec<f64>], columns: usize) -> Tensor {
    Tensor::from_slice(&rows.concat(), [rows.len(), columns])
}

/// The rows of a matrix.
fn rows(x: &Tensor) -> Vec<Vec<f64>> {
    let (n, columns) = (x.shape()[0], x.shape()[1]);
    let flat = x.to_vec::<f64>();
    (0..n).map(|k| flat[k * columns..][..columns].to_vec()).collect()
}

/// An eval runs one of its functions, by name, on an input.
type Eval = fn(&str, &RawValue) -> Outcome;

/// The eval of that name.
pub fn find(module: &str) -> Option<Eval> {
    Some(match module {
        "ba" => ba::run,
        "det" => det::run,
        "gmm" => gmm::run,
        "hello" => hello::run,
        "ht" => ht::run,
        "kmeans" => kmeans::run,
        "llsq" => llsq::run,
        "lse" => lse::run,
        "lstm" => lstm::run,
        "ode" => ode::run,
        "particle" => particle::run,
        "saddle" => saddle::run,
        _ => return None,
    })
}
