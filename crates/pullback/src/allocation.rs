//! Asking the system before much memory is taken.

use crate::error::{Result, err};

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
