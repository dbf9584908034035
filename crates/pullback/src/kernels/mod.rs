//! Kernels for the host processor, over plain slices and strided views; they know nothing of tensors or derivatives.
//!
//! Outputs are always contiguous and row-major. Shapes were checked before a kernel is called.

pub(crate) mod attention;
pub(crate) mod combined;
pub(crate) mod complex;
pub(crate) mod compute;
pub(crate) mod conv;
pub(crate) mod cost;
pub(crate) mod dispatch;
#[cfg(feature = "fft")]
pub(crate) mod fourier;
pub(crate) mod in_rows;
pub(crate) mod isa;
pub(crate) mod lane;
#[cfg(feature = "linalg")]
pub(crate) mod linalg;
pub(crate) mod map;
pub(crate) mod math;
pub(crate) mod matmul;
pub(crate) mod movement;
pub(crate) mod order;
pub(crate) mod pages;
pub(crate) mod parallel;
pub(crate) mod poison;
pub(crate) mod pool;
pub(crate) mod random;
pub(crate) mod reduce;
pub(crate) mod rows;
pub(crate) mod scan;
pub(crate) mod scratch;
pub(crate) mod segment;
pub(crate) mod sparse;
mod strided;
mod tiles;
mod vectorised;
pub(crate) mod view;

#[cfg(test)]
mod sample;
#[cfg(test)]
mod tests;
