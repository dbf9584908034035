//! Memory in large pages: it needs few entries of the address cache, and its parts never fall on the same places of the caches by
//! chance, as small pages do.

/// The bytes of a large page.
pub(crate) const PAGE: usize = 2 << 20;

/// Asks that memory that begins with a page be held in large ones; a part of a page at its end is not. Where they are refused, or the system has
/// no such advice, pages are small.
#[cfg(all(target_os = "linux", not(miri)))]
pub(crate) fn in_large_pages<T>(memory: &mut [T]) {
    let bytes = size_of_val(memory) / PAGE * PAGE;
    // SAFETY: the pages are ours alone, and the advice changes nothing in them.
    unsafe { libc::madvise(memory.as_mut_ptr().cast(), bytes, libc::MADV_HUGEPAGE) };
}

#[cfg(not(all(target_os = "linux", not(miri))))]
pub(crate) fn in_large_pages<T>(_: &mut [T]) {}
