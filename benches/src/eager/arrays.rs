//! Operations on large arrays, without a backward pass: products, elementwise operations and reductions.

use super::{FLOATS, random, uniform};
use crate::task::Task;
use pullback::{DType, Tensor};
use std::hint::black_box;

const SHAPE: [usize; 2] = [10_000, 1000];

/// The usual approximation of gelu, as people write it with operators.
fn gelu(x: &Tensor) -> Tensor {
    0.5 * x * (1.0 + (0.797884 * (x + 0.044715 * x * x * x)).tanh())
}

/// An operation on two arrays of ten million elements and a row.
type Operation = fn(&Tensor, &Tensor, &Tensor) -> Tensor;

// A peer that asks the system for fresh pages for every result gets a second try with a result made beforehand
// (`out=`), against the same operation here.
const ELEMENTWISE: [(&str, Operation); 11] = [
    ("add", |a, b, _| a + b),
    ("add_(out=)", |a, b, _| a + b),
    ("exp_(out=)", |a, _, _| a.exp()),
    ("mul", |a, b, _| a * b),
    ("mul_add", |a, b, _| a * b + a),
    ("exp", |a, _, _| a.exp()),
    ("tanh", |a, _, _| a.tanh()),
    ("relu", |a, _, _| a.relu()),
    ("where", |a, b, _| Tensor::where_(&a.gt(0.0), a, b)),
    ("gelu_by_hand", |a, _, _| gelu(a)),
    ("broadcast_add", |a, _, row| a + row),
];

const REDUCTIONS: [(&str, Operation); 6] = [
    ("sum", |a, _, _| a.sum()),
    ("sum_axis_0", |a, _, _| a.sum_axes(0)),
    ("sum_axis_1", |a, _, _| a.sum_axes(1)),
    ("mean", |a, _, _| a.mean()),
    ("max", |a, _, _| a.max()),
    ("max_axis_1", |a, _, _| a.max_axes(1)),
];

fn on_large(group: &str, name: &str, dtype: (DType, &str), f: Operation) -> Task {
    let (dtype, suffix) = dtype;
    Task::new(format!("{group}/{name},{suffix}"), move || {
        let (a, b, row) = (uniform(1, SHAPE, dtype), uniform(2, SHAPE, dtype), uniform(3, [SHAPE[1]], dtype));
        move || drop(black_box(f(&a, &b, &row)))
    })
}

pub fn tasks() -> Vec<Task> {
    let mut tasks = Vec::new();
    for (dtype, suffix) in FLOATS {
        for n in [64, 256, 1024] {
            tasks.push(Task::new(format!("matmul/{n},{suffix}"), move || {
                let (a, b) = (random(1, [n, n], dtype), random(2, [n, n], dtype));
                move || drop(black_box(a.matmul(&b)))
            }));
        }
    }
    for dtype in FLOATS {
        tasks.extend(ELEMENTWISE.map(|(name, f)| on_large("elementwise", name, dtype, f)));
    }
    for dtype in FLOATS {
        tasks.extend(REDUCTIONS.map(|(name, f)| on_large("reduction", name, dtype, f)));
    }
    tasks
}
