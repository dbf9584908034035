//! Operations that have kernels of their own, forward and backward: normalisation, attention, losses; and products by their indices.

use super::random;
use crate::task::Task;
use pullback::{Attention, CrossEntropy, DType, Key, Norm, Tensor, attention, einsum};

const ROWS: [usize; 2] = [4096, 1024];

/// `f` on leaves, and back from a given cotangent.
fn there_and_back(name: &str, shapes: &'static [&'static [usize]], f: fn(&[Tensor]) -> Tensor) -> Task {
    Task::new(format!("fused/{name}"), move || {
        let leaf =
            |(k, s): (usize, &&[usize])| Tensor::randn(Key::new(k as u64), *s, DType::F32).requires_grad();
        let x: Vec<Tensor> = shapes.iter().enumerate().map(leaf).collect();
        let g = Tensor::randn(Key::new(9), f(&x).shape(), DType::F32);
        move || {
            f(&x).backward_with(&g);
            x.iter().for_each(Tensor::zero_grad);
        }
    })
}

fn of_three(x: &[Tensor], options: Attention) -> Tensor {
    attention(&x[0], &x[1], &x[2], options)
}

pub fn tasks() -> Vec<Task> {
    const SHORT: &[usize] = &[8, 512, 64];
    const LONG: &[usize] = &[8, 2048, 64];
    let rows: &[&[usize]] = &[&ROWS, &[ROWS[1]], &[ROWS[1]]];
    vec![
        there_and_back("layer_norm", rows, |x| x[0].layer_norm(Norm::new().weight(&x[1]).bias(&x[2]))),
        there_and_back("rms_norm", &rows[..2], |x| x[0].rms_norm(Norm::new().weight(&x[1]))),
        there_and_back("attention_512", &[SHORT; 3], |x| of_three(x, Attention::new())),
        there_and_back("attention_2048", &[LONG; 3], |x| of_three(x, Attention::new())),
        there_and_back("causal_attention_2048", &[LONG; 3], |x| of_three(x, Attention::new().causal())),
        Task::new("fused/attention_2048,forward", || {
            let x = [0, 1, 2].map(|k| random(k, [8, 2048, 64], DType::F32));
            move || drop(std::hint::black_box(of_three(&x, Attention::new())))
        }),
        Task::new("fused/cross_entropy,smoothed", || {
            let x = random(1, ROWS, DType::F32).requires_grad();
            let labels = Tensor::randint(Key::new(2), [ROWS[0]], 0, ROWS[1] as i64);
            move || {
                x.cross_entropy_with(&labels, CrossEntropy::new().smoothing(0.1).mean()).into_backward();
                x.zero_grad();
            }
        }),
        Task::new("fused/cross_entropy,distributions", || {
            let x = random(1, ROWS, DType::F32).requires_grad();
            let targets = random(2, ROWS, DType::F32).softmax(-1);
            move || {
                x.cross_entropy(&targets).mean().into_backward();
                x.zero_grad();
            }
        }),
        there_and_back("einsum_bhqd_bhkd", &[&[4, 8, 256, 64], &[4, 8, 256, 64]], |x| {
            einsum("bhqd,bhkd->bhqk", x)
        }),
        there_and_back("einsum_chain", &[&[64, 512], &[512, 512], &[512, 512], &[512, 8]], |x| {
            einsum("ab,bc,cd,de->ae", x)
        }),
    ]
}
