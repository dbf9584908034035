//! The hard cases of docs/semantics.md, one test each.

use pullback::{AxisRange, ErrorKind, prelude::*, try_grad_of};
use std::sync::{Arc, Mutex};

mod accumulation;
mod both_faces;
mod control_flow;
mod cutting;
mod integers;
mod kinks;
mod mutation;
mod nesting;
mod threads;
mod views;
mod watching;
mod zeros_and_domains;

fn scalar(v: f64) -> Tensor {
    Tensor::scalar(v)
}

fn leaf(v: f64) -> Tensor {
    scalar(v).requires_grad()
}

fn slope(f: impl Fn(&Tensor) -> Tensor, at: f64) -> f64 {
    grad(f)(&scalar(at)).item()
}

fn message(panics: impl FnOnce() + std::panic::UnwindSafe) -> String {
    let payload = std::panic::catch_unwind(panics).expect_err("should have panicked");
    payload.downcast_ref::<String>().expect("a message").clone()
}
