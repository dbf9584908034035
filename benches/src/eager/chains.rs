//! Long chains of small operations: what an operation costs beside its arithmetic.

use crate::task::Task;
use pullback::Tensor;
use std::hint::black_box;

const LENGTH: usize = 1000;
const DEEP: usize = 100_000;

/// `y = y * a + b` again and again, with leaves `a` and `b`.
fn chain(a: &Tensor, b: &Tensor) -> Tensor {
    let mut y = a.clone();
    for _ in 0..LENGTH / 2 {
        y = &y * a;
        y = &y + b;
    }
    y
}

fn leaves(n: usize) -> (Tensor, Tensor) {
    let leaf = |v: f64| if n == 1 { Tensor::scalar(v) } else { Tensor::from(vec![v; n]) };
    (leaf(0.999).requires_grad(), leaf(0.001).requires_grad())
}

pub fn tasks() -> Vec<Task> {
    let mut tasks = Vec::new();
    for n in [1, 10] {
        tasks.push(Task::new(format!("chain/n={n},forward"), move || {
            let (a, b) = leaves(n);
            move || drop(black_box(chain(&a, &b)))
        }));
        tasks.push(Task::new(format!("chain/n={n},forward+backward"), move || {
            let (a, b) = leaves(n);
            move || {
                chain(&a, &b).sum().into_backward();
                a.zero_grad();
                b.zero_grad();
            }
        }));
    }
    let mut tasks: Vec<Task> = tasks.into_iter().map(|t| t.units(LENGTH)).collect();
    tasks.push(
        Task::new("chain/deep,forward+backward", || {
            let x = Tensor::scalar(1.0).requires_grad();
            move || {
                let mut y = x.clone();
                for _ in 0..DEEP {
                    y = &y * 1.000001;
                }
                y.into_backward();
                x.zero_grad();
            }
        })
        .units(DEEP),
    );
    tasks
}
