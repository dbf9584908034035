//! Sorting, choosing the largest, and sums so far, of one long row.

use super::random;
use crate::task::Task;
use pullback::{DType, Tensor};

fn of_row(name: &str, n: usize, f: fn(&Tensor) -> Tensor) -> Task {
    Task::new(format!("order/{name},f32"), move || {
        let x = random(1, [n], DType::F32);
        move || drop(f(&x))
    })
}

pub fn tasks() -> Vec<Task> {
    vec![
        of_row("sort_1e6", 1_000_000, |x| x.sort(-1).0),
        of_row("argsort_1e6", 1_000_000, |x| x.argsort(-1)),
        of_row("topk_100_of_1e6", 1_000_000, |x| x.topk(100, -1).0),
        of_row("cumsum_1e7", 10_000_000, |x| x.cumsum(-1)),
    ]
}
