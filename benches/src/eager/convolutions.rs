//! Convolutions and pooling over batches of images, forward and backward.

use super::random;
use crate::task::Task;
use pullback::{Conv, DType, Tensor};

/// A name, the input, the kernel, and the options.
type Case = (&'static str, [usize; 4], [usize; 4], fn() -> Conv);

const CASES: [Case; 4] = [
    ("3x3,64_64,28x28,batch_32", [32, 64, 28, 28], [64, 64, 3, 3], || Conv::new().padding(1)),
    ("depthwise_3x3,64,28x28,batch_32", [32, 64, 28, 28], [64, 1, 3, 3], || {
        Conv::new().padding(1).groups(64)
    }),
    ("1x1,64_64,28x28,batch_32", [32, 64, 28, 28], [64, 64, 1, 1], Conv::new),
    ("7x7_stride_2,3_64,112x112,batch_8", [8, 3, 112, 112], [64, 3, 7, 7], || {
        Conv::new().stride(2).padding(3)
    }),
];

/// Forward alone, and forward and backward with a cotangent.
fn both(
    name: String,
    inputs: fn(usize) -> Vec<Tensor>,
    which: usize,
    f: fn(usize, &[Tensor]) -> Tensor,
) -> [Task; 2] {
    [
        Task::new(format!("convolution/{name},forward"), move || {
            let x = inputs(which);
            move || drop(f(which, &x))
        }),
        Task::new(format!("convolution/{name},forward+backward"), move || {
            let x: Vec<Tensor> = inputs(which).iter().map(Tensor::requires_grad).collect();
            let y = f(which, &x);
            let g = Tensor::randn(pullback::Key::new(9), y.shape(), DType::F32);
            drop(y);
            move || {
                f(which, &x).backward_with(&g);
                x.iter().for_each(Tensor::zero_grad);
            }
        }),
    ]
}

pub fn tasks() -> Vec<Task> {
    let inputs = |k: usize| vec![random(1, CASES[k].1, DType::F32), random(2, CASES[k].2, DType::F32)];
    let conv = |k: usize, x: &[Tensor]| x[0].conv2d(&x[1], CASES[k].3());
    let cases = (0..CASES.len()).flat_map(|k| both(CASES[k].0.into(), inputs, k, conv));
    let images = |_: usize| vec![random(1, [64, 32, 28, 28], DType::F32)];
    cases.chain(both("max_pool_2,32,28x28,batch_64".into(), images, 0, |_, x| x[0].max_pool2d(2))).collect()
}
