//! Kernels for the host processor, over plain slices and strided views.
//!
//! Outputs are always contiguous and row-major. Shapes were checked before a kernel is called.

mod cost;
pub(crate) mod dispatch;
pub(crate) mod element;
pub(crate) mod lane;
pub(crate) mod map;
pub(crate) mod math;
pub(crate) mod parallel;
#[cfg(test)]
mod tests;
mod tiles;
pub(crate) mod view;
