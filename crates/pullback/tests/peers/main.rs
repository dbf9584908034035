//! Values and gradients as PyTorch and SciPy compute them. The scripts in `record/` wrote the files in `cases/`; one module a family says
//! how each case is written here.

mod complex;
mod convolution;
#[cfg(feature = "fft")]
mod fourier;
mod fused;
mod indexing;
#[cfg(feature = "linalg")]
mod linalg;
mod order;
mod recorded;
mod softmax;
mod sparse;
mod special;
