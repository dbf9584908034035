//! Arrays of other libraries, each behind the feature of its name.
//!
//! A tensor owns memory of its own kind, so that an array becomes a tensor by one copy. The other way, an array sees the elements of a tensor where
//! they are, if they are of its type and in the memory of the host.

#[cfg(feature = "nalgebra")]
mod nalgebra;
#[cfg(feature = "ndarray")]
mod ndarray;
