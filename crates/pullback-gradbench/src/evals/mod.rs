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
use serde_json::value::RawValue;

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
