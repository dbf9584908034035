//! Memory that a kernel needs while it runs.

use super::pages::{PAGE, in_large_pages};
use super::poison::poison;
use crate::allocation::ask_for;
use crate::error::or_panic;
use std::cell::RefCell;

thread_local! {
    /// One for each kernel that runs inside of another.
    static CACHED: RefCell<Vec<Scratch>> = const { RefCell::new(Vec::new()) };
}

/// Memory for at least `size` elements, at a boundary of cache lines, kept by the thread from kernel to kernel. What is in it is not
/// specified, but it is initialised.
///
/// A kernel that goes `through` many bytes gets large pages: where small ones share places of the second cache, as they do by chance, it
/// would need up to twice its time to read and write them over and over. For one that goes through few they are too much memory.
pub(crate) fn with_scratch<T: bytemuck::Pod>(size: usize, through: usize, f: impl FnOnce(*mut T)) {
    let bytes = size * size_of::<T>();
    let align = if through < MANY { LINE } else { PAGE };
    let kept = CACHED.with_borrow_mut(Vec::pop).filter(|kept| kept.bytes() >= bytes && kept.align >= align);
    let mut scratch = kept.unwrap_or_else(|| Scratch::new(bytes, align));
    poison(&mut scratch.memory()[..bytes.div_ceil(8)]);
    f(scratch.memory().as_mut_ptr().cast());
    CACHED.with_borrow_mut(|kept| kept.push(scratch));
}

/// `n` copies of a number. Where there is no memory for them an error is raised, which the operation returns.
pub(crate) fn filled<T: Clone>(v: T, n: usize) -> Vec<T> {
    or_panic(ask_for::<T>(n));
    vec![v; n]
}

/// Fills an emptied vector. Errors are those of [`filled`].
pub(crate) fn refill<T>(to: &mut Vec<T>, from: impl ExactSizeIterator<Item = T>) {
    to.clear();
    if to.capacity() < from.len() {
        or_panic(ask_for::<T>(from.len()));
    }
    to.extend(from);
}

/// The bytes that are worth a large page.
const MANY: usize = PAGE / 2;
/// The bytes of a line of the cache.
const LINE: usize = 64;

struct Scratch {
    words: Vec<u64>,
    /// Of the first byte in use.
    align: usize,
}

impl Scratch {
    fn new(bytes: usize, align: usize) -> Scratch {
        let bytes = bytes.next_multiple_of(align);
        let mut scratch = Scratch { words: filled(0, (bytes + align) / 8), align };
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
    fn scratch_holds_no_number() {
        for _ in 0..2 {
            with_scratch(100, 0, |memory: *mut f32| {
                // SAFETY: as many elements as were asked for, that nobody else uses.
                let elements = unsafe { std::slice::from_raw_parts_mut(memory, 100) };
                assert!(elements.iter().all(|x| x.is_nan()));
                elements.fill(1.5);
            });
        }
    }

    #[test]
    fn scratch_is_large_enough_aligned_and_kept() {
        let cases = [(3, MANY - 1, LINE), (3, MANY, PAGE), (9, 0, PAGE), (3 * PAGE + 1, MANY, PAGE)];
        for (size, through, align) in cases {
            let mut first = std::ptr::null_mut();
            with_scratch(size, through, |outer: *mut u8| {
                first = outer;
                assert_eq!(outer.addr() % align, 0, "{size}");
                // SAFETY: as many bytes as were asked for.
                unsafe { outer.write_bytes(1, size) };
                with_scratch(size, through, |inner: *mut u8| {
                    assert!(inner.addr().abs_diff(outer.addr()) >= size, "another kernel's")
                });
            });
            with_scratch(size, through, |again: *mut u8| assert_eq!(again, first));
        }
    }
}
