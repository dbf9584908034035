//! Memory that a kernel needs while it runs.

use super::pages::{PAGE, in_large_pages};
use std::cell::RefCell;

thread_local! {
    /// One for each kernel that runs inside of another.
    static KEPT: RefCell<Vec<Scratch>> = const { RefCell::new(Vec::new()) };
}

/// Memory for at least `size` elements, at a boundary of cache lines, kept by the thread from kernel to kernel. What is in it is not
/// specified, but it is initialised.
pub(crate) fn with_scratch<T: bytemuck::Pod>(size: usize, f: impl FnOnce(*mut T)) {
    let bytes = size * size_of::<T>();
    let kept = KEPT.with_borrow_mut(Vec::pop).filter(|kept| kept.bytes() >= bytes);
    let mut scratch = kept.unwrap_or_else(|| Scratch::new(bytes));
    f(scratch.memory().as_mut_ptr().cast());
    KEPT.with_borrow_mut(|kept| kept.push(scratch));
}

struct Scratch {
    words: Vec<u64>,
    /// Of the first byte in use.
    align: usize,
}

/// From so many bytes on, a kernel that reads and writes them over and over needs twice its time where their pages share places of
/// the second cache, which small ones do by chance.
const PAGED: usize = 8 << 10;

impl Scratch {
    fn new(bytes: usize) -> Scratch {
        let (bytes, align) = if bytes < PAGED { (bytes, 64) } else { (bytes.next_multiple_of(PAGE), PAGE) };
        let mut scratch = Scratch { words: vec![0; (bytes + align).div_ceil(8)], align };
        if align == PAGE {
            in_large_pages(scratch.memory());
        }
        scratch
    }

    fn bytes(&self) -> usize {
        self.words.len() * 8 - self.align
    }

    fn memory(&mut self) -> &mut [u64] {
        let start = self.words.as_ptr().align_offset(self.align);
        let words = self.bytes() / 8;
        &mut self.words[start..start + words]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scratch_is_large_enough_aligned_and_kept() {
        for (size, align) in [(3, 64), (PAGED, PAGE), (3 * PAGE + 1, PAGE)] {
            let mut first = std::ptr::null_mut();
            with_scratch(size, |outer: *mut u8| {
                first = outer;
                assert_eq!(outer.addr() % align, 0, "{size}");
                // SAFETY: as many bytes as were asked for.
                unsafe { outer.write_bytes(1, size) };
                with_scratch(size, |inner: *mut u8| {
                    assert!(inner.addr().abs_diff(outer.addr()) >= size, "another kernel's")
                });
            });
            with_scratch(size, |again: *mut u8| assert_eq!(again, first));
        }
    }
}
