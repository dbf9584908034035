//! Kernels for the host processor, over plain slices and strided views.
//!
//! Outputs are always contiguous and row-major. Shapes were checked before a kernel is called.

pub(crate) mod compute;
pub(crate) mod matmul;
pub(crate) mod movement;
pub(crate) mod parallel;
pub(crate) mod reduce;
pub(crate) mod rows;
mod strided;
mod vectorised;
pub(crate) mod view;

#[cfg(test)]
mod sample;
