//! Functions of rows, and rows picked by index, forward and backward.

use super::random;
use crate::task::Task;
use pullback::{DType, Key, Tensor};

const SHAPE: [usize; 2] = [4096, 1000];

/// Rows brought to mean 0 and variance 1, then scaled and shifted.
fn layer_norm(x: &Tensor, scale: &Tensor, shift: &Tensor) -> Tensor {
    let centred = x - x.mean_axes_keep(-1);
    let variance = centred.square().mean_axes_keep(-1);
    centred * (variance + 1e-5).rsqrt() * scale + shift
}

/// `f` on an array that requires a gradient, and back from a given cotangent.
fn there_and_back(name: &str, f: fn(&Tensor) -> Tensor) -> Task {
    Task::new(format!("rows/{name}"), move || {
        let x = random(1, SHAPE, DType::F32).requires_grad();
        let g = random(2, SHAPE, DType::F32);
        move || {
            f(&x).backward_with(&g);
            x.zero_grad();
        }
    })
}

pub fn tasks() -> Vec<Task> {
    vec![
        there_and_back("softmax", |x| x.softmax(-1)),
        there_and_back("log_softmax", |x| x.log_softmax(-1)),
        Task::new("rows/cross_entropy", || {
            let x = random(1, SHAPE, DType::F32).requires_grad();
            let labels = Tensor::randint(Key::new(2), [SHAPE[0]], 0, SHAPE[1] as i64);
            move || {
                x.cross_entropy(&labels).mean().into_backward();
                x.zero_grad();
            }
        }),
        Task::new("rows/layer_norm_by_hand", || {
            let x = random(1, SHAPE, DType::F32).requires_grad();
            let scale = random(2, [SHAPE[1]], DType::F32).requires_grad();
            let shift = random(3, [SHAPE[1]], DType::F32).requires_grad();
            let g = random(4, SHAPE, DType::F32);
            move || {
                layer_norm(&x, &scale, &shift).backward_with(&g);
                [&x, &scale, &shift].into_iter().for_each(Tensor::zero_grad);
            }
        }),
        Task::new("rows/embedding", || {
            let table = random(1, [20_000, 256], DType::F32).requires_grad();
            let index = Tensor::randint(Key::new(2), [8192], 0, 20_000);
            let g = random(3, [8192, 256], DType::F32);
            move || {
                table.index_select(0, &index).backward_with(&g);
                table.zero_grad();
            }
        }),
        Task::new("rows/gather", || {
            let x = random(1, SHAPE, DType::F32).requires_grad();
            let index = Tensor::randint(Key::new(2), [SHAPE[0], 64], 0, SHAPE[1] as i64);
            let g = random(3, [SHAPE[0], 64], DType::F32);
            move || {
                x.gather(1, &index).backward_with(&g);
                x.zero_grad();
            }
        }),
    ]
}
