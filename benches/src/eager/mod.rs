//! The eager side: operations as they run, with and without a backward pass.

mod arrays;
mod chains;
mod convolutions;
#[cfg(feature = "fft")]
mod fourier;
mod fused;
#[cfg(feature = "linalg")]
mod matrices;
mod networks;
mod orders;
mod rows;

use crate::task::Task;
use pullback::{DType, Key, Tensor};

pub fn tasks() -> Vec<Task> {
    let groups = [chains::tasks(), arrays::tasks(), rows::tasks(), networks::tasks()];
    groups.into_iter().flatten().chain(vocabulary()).collect()
}

/// Operations with kernels of their own, which have a suite of their own.
fn vocabulary() -> impl Iterator<Item = Task> {
    let groups = [
        orders::tasks(),
        convolutions::tasks(),
        fused::tasks(),
        #[cfg(feature = "fft")]
        fourier::tasks(),
        #[cfg(feature = "linalg")]
        matrices::tasks(),
    ];
    groups.into_iter().flatten().map(|task| task.of("vocabulary"))
}

const FLOATS: [(DType, &str); 2] = [(DType::F32, "f32"), (DType::F64, "f64")];

/// Cheap to make: half of the large arrays' elements are negative.
fn uniform<const N: usize>(seed: u64, shape: [usize; N], dtype: DType) -> Tensor {
    Tensor::uniform(Key::new(seed), shape, dtype) - 0.5
}

fn random<const N: usize>(seed: u64, shape: [usize; N], dtype: DType) -> Tensor {
    Tensor::randn(Key::new(seed), shape, dtype)
}
