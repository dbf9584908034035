//! A formula over ten million numbers, and its gradient.

use crate::task::Task;
use pullback::prelude::*;

fn formula(x: &Tensor) -> Tensor {
    (x.sin() * (-x.square()).exp() + (x * 0.5).tanh()).sum()
}

pub fn tasks() -> Vec<Task> {
    let x = || Tensor::randn(Key::new(1), [10_000_000], DType::F32);
    vec![
        Task::new("elementwise_10M/value", move || {
            let (f, x) = (compile(formula), x());
            move || drop(f.call(&x))
        })
        .of("compiled"),
        Task::new("elementwise_10M/value+gradient", move || {
            let (f, x) = (compile(value_and_grad(formula)), x());
            move || drop(f.call(&x))
        })
        .of("compiled"),
    ]
}
