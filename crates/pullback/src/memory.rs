//! How much memory tensors hold, and how much is kept for reuse.

mod report;

pub use report::{Report, Row, report};

use crate::error::{Result, err};
use crate::tensor::{alive, buffer};

/// The bytes from which on the system is asked before memory is taken: refused, they are an error, where Rust's own containers would end the
/// process. To ask costs less than a hundredth of what the first touch of so many pages does.
const ASKED: usize = 1 << 20;

/// Operations on fewer elements take no memory that is asked for.
pub(crate) const ALWAYS_THERE: usize = ASKED / 16;

/// An error if there is no memory for `n` elements of `T`.
#[inline]
pub(crate) fn ask_for<T>(n: usize) -> Result<()> {
    if n < ASKED / size_of::<T>().max(1) { Ok(()) } else { ask(n, size_of::<T>()) }
}

#[cold]
fn ask(n: usize, size: usize) -> Result<()> {
    let bytes = n as u128 * size as u128;
    let refused = usize::try_from(bytes).map_or(true, |n| Vec::<u8>::new().try_reserve_exact(n).is_err());
    if refused {
        return Err(err!(Memory, "out of memory: there are no {bytes} bytes"));
    }
    Ok(())
}

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
