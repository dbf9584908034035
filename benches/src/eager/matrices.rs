//! Solvers and decompositions of one matrix, and of many small ones.

use super::random;
use crate::task::Task;
use pullback::{DType, Tensor, linalg};
use std::hint::black_box;

/// An operation on a matrix and on one that is positive definite.
type Operation = fn(&Tensor, &Tensor) -> Tensor;

const TASKS: [(&str, usize, Operation); 6] = [
    ("cholesky", 1024, |_, p| linalg::cholesky(p)),
    ("solve", 1024, |a, _| linalg::solve(a, &a.get(0))),
    ("inv", 1024, |a, _| linalg::inv(a)),
    ("qr", 512, |a, _| linalg::qr(a).0),
    ("eigh", 256, |_, p| linalg::eigh(p).1),
    ("svd", 256, |a, _| linalg::svd(a).0),
];

pub fn tasks() -> Vec<Task> {
    let mut tasks: Vec<Task> = TASKS
        .into_iter()
        .map(|(name, n, f)| {
            Task::new(format!("linalg/{name}_{n},f64"), move || {
                let a = random(1, [n, n], DType::F64);
                let definite = a.matmul(&a.transpose(0, 1)) / n as f64 + Tensor::eye(n);
                move || drop(black_box(f(&a, &definite)))
            })
        })
        .collect();
    tasks.push(Task::new("linalg/solve_1000_of_8,f64", || {
        let (a, b) = (random(1, [1000, 8, 8], DType::F64), random(2, [1000, 8, 1], DType::F64));
        move || drop(black_box(linalg::solve(&a, &b)))
    }));
    tasks
}
