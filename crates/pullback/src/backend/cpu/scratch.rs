//! Memory that a kernel needs while it runs.

use std::cell::RefCell;

thread_local! {
    /// One for each kernel that runs inside of another.
    static KEPT: RefCell<Vec<Vec<u64>>> = const { RefCell::new(Vec::new()) };
}

/// Memory for at least `size` elements, at a boundary of cache lines, kept by the thread from kernel to kernel. What is in it is not
/// specified, but it is initialised.
pub(crate) fn with_scratch<T: bytemuck::Pod>(size: usize, f: impl FnOnce(*mut T)) {
    let mut memory = KEPT.with_borrow_mut(Vec::pop).unwrap_or_default();
    let words = (size * size_of::<T>()).div_ceil(8) + 8;
    memory.resize(words.max(memory.len()), 0);
    let start = memory.as_mut_ptr().cast::<u8>();
    // SAFETY: at most 63 bytes further, for which there are 64 more.
    f(unsafe { start.add(start.align_offset(64)) }.cast());
    KEPT.with_borrow_mut(|kept| kept.push(memory));
}
