//! The scalar side: derivatives of functions on numbers. Peers have the same functions in their own languages.

use crate::task::Task;
use pullback::scalar::{self, Function, Real, Var};
use std::hint::black_box;

fn product<T: Real>(x: &[T]) -> T {
    x.iter().product()
}

fn rosenbrock<T: Real>(x: &[T]) -> T {
    let mut s = T::constant(0.0);
    for i in 0..x.len() - 1 {
        let (a, b) = (x[i] - 1.0, x[i + 1] - x[i] * x[i]);
        s += a * a + b * b * 100.0;
    }
    s
}

/// 1000 steps of a recurrent cell with eight parameters.
fn recurrent<T: Real>(p: &[T]) -> T {
    let (mut hidden, mut cell) = (T::constant(0.1), T::constant(0.0));
    for _ in 0..1000 {
        let gate = |k: usize| hidden * p[k] + p[4 + k];
        let sigmoid = |x: T| ((-x).exp() + 1.0).recip();
        cell = cell * sigmoid(gate(0)) + sigmoid(gate(1)) * gate(2).tanh();
        hidden = sigmoid(gate(3)) * cell.tanh();
    }
    hidden
}

fn log_sum_exp<T: Real>(x: &[T]) -> T {
    x.iter().map(|x| x.exp()).sum::<T>().ln()
}

/// Numbers in `[0.5, 1.5)` without a pattern.
fn numbers(n: usize) -> Vec<f64> {
    (1..=n).map(|k| 0.5 + (k as f64 * 0.618_033_988_749_894_9).fract()).collect()
}

fn gradient(name: &str, f: fn(&[Var]) -> Var, n: usize) -> Task {
    let set_up = move || {
        let (x, mut g) = (numbers(n), vec![0.0; n]);
        move || {
            black_box(scalar::gradient_into(f, black_box(&x), &mut g));
        }
    };
    Task { suite: "scalar", ..Task::new(format!("gradient/{name}"), set_up) }
}

/// Points at which a gradient is taken again and again.
const POINTS: usize = 10_000;

pub fn tasks() -> Vec<Task> {
    let hessian = || {
        let x = numbers(10);
        move || {
            black_box(scalar::hessian(rosenbrock, black_box(&x)));
        }
    };
    let compiled = || {
        let f = Function::record(rosenbrock, 10);
        let (x, mut g) = (numbers(10 * POINTS), vec![0.0; 10 * POINTS]);
        move || f.gradient_function().try_evaluate_many_into(black_box(&x), &mut g).expect("no branch")
    };
    vec![
        gradient("rosenbrock_10", rosenbrock, 10),
        gradient("rosenbrock_1000", rosenbrock, 1000),
        gradient("product_10000", product, 10_000),
        gradient("log_sum_exp_10000", log_sum_exp, 10_000),
        gradient("recurrent_8", recurrent, 8),
        Task { suite: "scalar", ..Task::new("hessian/rosenbrock_10", hessian) },
        Task { suite: "scalar", ..Task::new("gradients/rosenbrock_10", compiled).units(POINTS) },
    ]
}
