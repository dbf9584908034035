//! Reverse-mode automatic differentiation.
mod backend;
pub mod number;
mod ops;
pub mod scalar;
