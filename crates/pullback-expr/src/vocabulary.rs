//! The words of the language: keywords, functions, constants, and what a misspelt one was meant to be.

use crate::function::Function;
use crate::problem::{Problem, Span};
use crate::program::CONSTANTS;

pub(crate) const KEYWORDS: &[&str] = &["let", "if", "then", "else", "and", "or", "not"];

const OTHERS: &[&str] = &["sum", "mean", "prod", "norm", "max", "min", "dot", "matmul", "transpose"];

pub(crate) fn is_function(name: &str) -> bool {
    OTHERS.contains(&name) || Function::named(name).is_some()
}

pub(crate) fn check_name(name: &str, span: Span) -> Result<(), Problem> {
    let what = if KEYWORDS.contains(&name) {
        "a word of the language"
    } else if is_function(name) {
        "a function"
    } else if CONSTANTS.iter().any(|c| c.0 == name) {
        "a constant"
    } else {
        return Ok(());
    };
    Err(Problem::at(span, format!("`{name}` is {what}, and cannot be given another meaning")))
}

pub(crate) fn unknown_function(name: &str, span: Span) -> Problem {
    let problem = Problem::at(span, format!("there is no function `{name}`"));
    let near = Function::ALL
        .iter()
        .map(|f| f.name())
        .chain(OTHERS.iter().copied())
        .min_by_key(|f| (distance(f, name), !is_within(f, name)));
    match near {
        Some(f) if distance(f, name) <= 1 + name.len() / 4 => problem.help(format!("did you mean `{f}`?")),
        _ => problem.help("a product is written with `*`; docs/expressions.md lists the functions"),
    }
}

/// Whether letters left out of `b` give `a`: a key that was hit twice is a likelier slip than a wrong one.
fn is_within(a: &str, b: &str) -> bool {
    let mut letters = b.chars();
    a.chars().all(|x| letters.any(|y| y == x))
}

/// The number of letters to insert, delete or replace.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut corner = i;
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = corner + usize::from(x != *y);
            corner = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(corner + 1);
        }
    }
    row[b.len()]
}
