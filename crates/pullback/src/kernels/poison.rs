//! Memory that is handed out holds no numbers in test builds, so that nothing stale looks right.

use bytemuck::Pod;

/// Most bytes that are filled: of more than that, a test may use the first pages only.
const MAX_BYTES: usize = 1 << 26;

/// Whether memory is poisoned: where debug assertions are on, and in unit tests.
pub(crate) const POISONED: bool = cfg!(any(test, debug_assertions));

/// Says that nothing may be read from this memory before it is written: in builds that are [`POISONED`] it is filled with bytes that are
/// NaN in every float type, and -1 in integers.
#[inline(always)]
pub(crate) fn poison<T: Pod>(memory: &mut [T]) {
    if POISONED {
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(memory);
        let most = bytes.len().min(MAX_BYTES);
        bytes[..most].fill(0xff);
    }
}
