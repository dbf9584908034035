//! What tensors and their gradients mean: the hard cases of guide/semantics.md, one test each, and tensors and trees as containers.

use pullback::{AxisRange, ErrorKind, prelude::*, try_grad_of};
use pullback_testing::message;
use std::sync::{Arc, Mutex};

mod accumulation;
mod attention_and_losses;
mod complex;
mod control_flow;
mod convolutions;
mod eager_and_functional;
mod files;
#[cfg(feature = "fft")]
mod fourier;
mod hooks_and_anomalies;
mod integers;
mod kinks;
#[cfg(feature = "linalg")]
mod linalg;
mod mutation;
mod nesting;
mod orders;
mod saving;
mod sparse;
mod special;
mod stopping_gradients;
mod tensors;
mod threads;
mod trees;
mod views;
mod worked_cases;
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
