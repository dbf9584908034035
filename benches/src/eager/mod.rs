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
    let all = [
        chains::tasks(),
        arrays::tasks(),
        rows::tasks(),
        orders::tasks(),
        convolutions::tasks(),
        fused::tasks(),
        networks::tasks(),
    ];
    #[cfg(feature = "fft")]
    let all = all.into_iter().chain([fourier::tasks()]);
    #[cfg(feature = "linalg")]
    let all = all.into_iter().chain([matrices::tasks()]);
    all.into_iter().flatten().collect()
}

const FLOATS: [(DType, &str); 2] = [(DType::F32, "f32"), (DType::F64, "f64")];

/// Cheap to make: half of the large arrays' elements are negative.
fn uniform<const N: usize>(seed: u64, shape: [usize; N], dtype: DType) -> Tensor {
    Tensor::uniform(Key::new(seed), shape, dtype) - 0.5
}

fn random<const N: usize>(seed: u64, shape: [usize; N], dtype: DType) -> Tensor {
    Tensor::randn(Key::new(seed), shape, dtype)
}
