//! Kernels for the host processor, over plain slices and strided views.
//!
//! Outputs are always contiguous and row-major. Shapes were checked before a kernel is called.

pub(crate) mod parallel;
pub(crate) mod view;
