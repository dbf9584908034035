//! A step of training.

use super::random;
use crate::task::Task;
use pullback::{DType, Key, Tensor, no_grad};

const WIDTHS: [usize; 4] = [784, 512, 512, 10];
const BATCH: usize = 128;

pub fn tasks() -> Vec<Task> {
    vec![Task::new("training/mlp_784_512_512_10,batch_128", || {
        let mut layers: Vec<(Tensor, Tensor)> = WIDTHS
            .windows(2)
            .zip(0..)
            .map(|(w, k)| {
                let weights = random(k, [w[0], w[1]], DType::F32) * (2.0 / w[0] as f64).sqrt();
                let bias = Tensor::zeros([w[1]]).cast(DType::F32);
                (weights.requires_grad(), bias.requires_grad())
            })
            .collect();
        let x = random(7, [BATCH, WIDTHS[0]], DType::F32);
        let labels = Tensor::randint(Key::new(8), [BATCH], 0, 10);
        move || {
            let mut y = x.clone();
            for (k, (w, b)) in layers.iter().enumerate() {
                y = y.matmul(w) + b;
                if k + 1 < layers.len() {
                    y = y.relu();
                }
            }
            y.cross_entropy(&labels).mean().into_backward();
            no_grad(|| {
                for p in layers.iter_mut().flat_map(|(w, b)| [w, b]) {
                    let g = p.grad().expect("every parameter is used");
                    p.zero_grad();
                    *p -= 0.01 * g;
                }
            });
        }
    })]
}
