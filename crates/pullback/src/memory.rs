//! How much memory tensors hold, and how much is kept for reuse.

mod report;

pub use report::{Report, Row, report};

use crate::tensor::{alive, buffer};

/// Bytes held by the tensors of all threads, saved values included.
pub fn live_bytes() -> usize {
    buffer::live_bytes()
}

/// The most that [`live_bytes`] has been since the start, or since [`reset_peak`].
///
/// ```
/// use pullback::{memory, prelude::*};
/// memory::reset_peak();
/// let x = Tensor::zeros([1000]) + Tensor::arange(0.0, 1000.0, 1.0);
/// assert!(memory::peak_bytes() >= 8000);
/// # drop(x);
/// ```
pub fn peak_bytes() -> usize {
    buffer::peak_bytes()
}

/// Starts a new measurement of [`peak_bytes`].
pub fn reset_peak() {
    buffer::reset_peak();
}

/// Tensors and records made less those freed by this thread: what is alive, where one thread does both.
pub fn live_tensors() -> isize {
    alive()
}

/// Sets how many freed bytes are kept for reuse (1 GiB unless set), and frees what is over.
pub fn set_pool_limit(bytes: usize) {
    buffer::set_pool_limit(bytes);
}
