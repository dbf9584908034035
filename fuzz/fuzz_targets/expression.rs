//! Any text as an expression and as a point: parsed, run on numbers, differentiated, and every message shown.
//! `cargo +nightly fuzz run expression`

#![no_main]

use libfuzzer_sys::fuzz_target;
use pullback_expr::picture::of_trace;
use pullback_expr::scalar::{self, Array};
use pullback_expr::{Digits, parse, parse_point};

fuzz_target!(|text: &str| {
    let _ = parse_point(text).map_err(|p| p.show("point", text));
    let program = match parse(text) {
        Ok(program) => program,
        Err(problem) => return drop(problem.show("expression", text)),
    };
    let point: Vec<(String, Array)> =
        program.inputs().iter().map(|n| (n.clone(), Array::number(1.5))).collect();
    match scalar::trace(&program, &point) {
        Ok(trace) if trace.steps.len() < 1000 => drop(of_trace(&trace, 0, Digits::Significant(6))),
        Ok(_) => {}
        Err(problem) => drop(problem.show("expression", text)),
    }
});
