//! What other libraries ask of numbers, matrices and problems, each behind a feature of its name.

#[cfg(feature = "argmin")]
mod argmin;
#[cfg(feature = "faer")]
mod faer;
#[cfg(feature = "nalgebra")]
mod nalgebra;
#[cfg(feature = "num-traits")]
mod num_traits;
#[cfg(feature = "sprs")]
mod sprs;

#[cfg(feature = "argmin")]
pub use argmin::Problem;
