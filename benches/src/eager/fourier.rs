//! Fourier transforms, and the convolution that they are used for.

use super::random;
use crate::task::Task;
use pullback::{DType, Tensor, fft};
use std::hint::black_box;

const LONG: usize = 1 << 20;

fn complex<const N: usize>(seed: u64, shape: [usize; N]) -> Tensor {
    Tensor::complex(random(seed, shape, DType::F32), random(seed + 1, shape, DType::F32))
}

fn forward<const N: usize>(name: &str, shape: [usize; N], f: fn(&Tensor) -> Tensor) -> Task {
    Task::new(format!("fourier/{name}"), move || {
        let x = complex(1, shape);
        move || drop(black_box(f(&x)))
    })
}

pub fn tasks() -> Vec<Task> {
    vec![
        forward("fft,2^20,c64", [LONG], fft::fft),
        forward("fft,1024x1024,c64", [1024, 1024], fft::fft),
        forward("fft2,1024x1024,c64", [1024, 1024], fft::fft2),
        Task::new("fourier/rfft,2^20,f32", || {
            let x = random(1, [LONG], DType::F32);
            move || drop(black_box(fft::rfft(&x)))
        }),
        Task::new("fourier/filter,2^20,f32,forward+backward", || {
            let x = random(1, [LONG], DType::F32).requires_grad();
            let (h, g) = (fft::rfft(&random(2, [LONG], DType::F32)), random(3, [LONG], DType::F32));
            move || {
                fft::irfft(&(fft::rfft(&x) * &h), LONG).backward_with(&g);
                x.zero_grad();
            }
        }),
    ]
}
