//! The training step of a small convolutional network.

use super::perceptron::{Layers, of};
use crate::task::Task;
use pullback::Conv;
use pullback::prelude::*;

const BATCH: usize = 64;

/// Two convolutions with 32 and 64 channels, and a linear layer from 64 channels of 7x7 pixels.
fn layers() -> Layers {
    let normal = |k: u64, shape: &[usize], inputs: usize| {
        Tensor::randn(Key::new(k), shape, DType::F32) * (2.0 / inputs as f64).sqrt()
    };
    let zeros = |shape: &[usize]| Tensor::zeros(shape).cast(DType::F32);
    vec![
        (normal(1, &[32, 1, 3, 3], 9), zeros(&[32, 1, 1])),
        (normal(2, &[64, 32, 3, 3], 32 * 9), zeros(&[64, 1, 1])),
        (normal(3, &[64 * 49, 10], 64 * 49), zeros(&[10])),
    ]
}

fn network(layers: &Layers, x: &Tensor) -> Tensor {
    let ((w, b), hidden) = layers.split_last().expect("there are layers");
    let block =
        |x: Tensor, (k, b): &(Tensor, Tensor)| (x.conv2d(k, Conv::new().padding(1)) + b).relu().max_pool2d(2);
    hidden.iter().fold(x.clone(), block).reshape([BATCH as isize, -1]).matmul(w) + b
}

pub fn tasks() -> Vec<Task> {
    let images = || {
        let x = Tensor::randn(Key::new(7), [BATCH, 1, 28, 28], DType::F32);
        (x, Tensor::randint(Key::new(8), [BATCH], 0, 10))
    };
    let loss = |p: &Layers, (x, labels): &(Tensor, Tensor)| network(p, x).cross_entropy(labels).mean();
    of("cnn_28x28_32_64,batch_64", layers, images, loss)
}
