//! Memory for elements: shared, always initialised, recycled.
//!
//! Fresh pages cost more than most kernels that would fill them, so freed buffers are kept: small ones by
//! the thread that freed them, large ones by all threads together. A miss gives back as many kept bytes as it asks
//! for, so the memory in use never exceeds what the program itself had at its peak.
//!
//! Large buffers begin where lines of the cache do, because a vector of 64 bytes that lies across two of them costs two accesses; and the
//! largest ones where pages do.

use crate::allocation::ask_for;
use crate::error::{Result, or_panic};
use crate::kernels::pages;
use crate::kernels::poison::{POISONED, poison};
use bytemuck::{Pod, Zeroable};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicUsize, Ordering::Acquire, Ordering::Relaxed, fence};
use std::sync::{Arc, Mutex};

/// The unit of allocation; its alignment is what `calloc` gives, so that fresh memory is zeroed by the system.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(16))]
struct Chunk([u64; 2]);

const CHUNK: usize = size_of::<Chunk>();

/// Bytes shared by tensors. Cloning shares; writing needs to be the only holder.
#[derive(Clone)]
pub(crate) struct Buffer(ManuallyDrop<Arc<[Chunk]>>);

impl Buffer {
    /// At least `bytes` bytes, with any contents; an error if there are not so many.
    pub fn try_new(bytes: usize) -> Result<Buffer> {
        #[cfg(test)]
        REQUESTS.set(REQUESTS.get() + 1);
        let chunks = bytes.div_ceil(CHUNK).max(1);
        let arc = if chunks <= SMALL { take_small(chunks) } else { take_large(chunks)? };
        LIVE.add(usable(&arc) * CHUNK);
        let mut buffer = Buffer(ManuallyDrop::new(arc));
        buffer.poison();
        Ok(buffer)
    }

    /// [`try_new`](Buffer::try_new) where an error is raised: in a kernel, whose caller returns it.
    pub fn new(bytes: usize) -> Buffer {
        or_panic(Buffer::try_new(bytes))
    }

    /// Says that its elements are not needed any more, and may not be read: see [`poison`].
    #[inline(always)]
    pub fn poison(&mut self) {
        if POISONED && let Some(chunks) = self.slice_mut::<Chunk>() {
            poison(chunks);
        }
    }

    /// The same buffer in large pages, if it is large: for memory that is used again and again. The system may take its time to find them.
    pub fn in_large_pages(mut self) -> Buffer {
        if alignment(self.0.len()) == PAGE
            && let Some(chunks) = self.slice_mut::<Chunk>()
        {
            pages::in_large_pages(chunks);
        }
        self
    }

    /// The bytes that a new buffer for `bytes` bytes has, unless a larger one is found among the freed.
    pub fn rounded(bytes: usize) -> usize {
        let chunks = bytes.div_ceil(CHUNK).max(1);
        CHUNK * if chunks <= SMALL { chunks.next_power_of_two() } else { chunks }
    }

    /// Whether nobody else holds it. There are no weak holders.
    pub fn is_unique(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    /// The whole buffer as elements of `T`.
    pub fn slice<T: Pod>(&self) -> &[T] {
        bytemuck::cast_slice(&self.0[start(&self.0)..][..usable(&self.0)])
    }

    /// The whole buffer for writing, if nobody else holds it.
    pub fn slice_mut<T: Pod>(&mut self) -> Option<&mut [T]> {
        if !is_alone(&self.0) {
            return None;
        }
        // Asked before the elements are borrowed: to look at them through the `Arc` again would end that borrow.
        let (start, usable) = (start(&self.0), usable(&self.0));
        // SAFETY: this is the only holder, borrowed for as long as the slice is.
        let chunks = unsafe { &mut *Arc::as_ptr(&self.0).cast_mut() };
        Some(bytemuck::cast_slice_mut(&mut chunks[start..][..usable]))
    }
}

/// The chunks of a line of the cache, and of a large page.
const LINE: usize = 64 / CHUNK;
const PAGE: usize = pages::PAGE / CHUNK;

/// How the elements of a buffer are aligned, in chunks, by how many chunks it has with those that the alignment may leave out.
fn alignment(all: usize) -> usize {
    match all {
        ..=SMALL => 1,
        _ if all < 2 * PAGE - 1 => LINE,
        _ => PAGE,
    }
}

/// The chunk that elements begin at.
#[inline]
fn start(arc: &Arc<[Chunk]>) -> usize {
    match alignment(arc.len()) {
        1 => 0,
        align => arc.as_ptr().align_offset(align * CHUNK),
    }
}

/// The chunks that hold elements.
#[inline]
fn usable(arc: &Arc<[Chunk]>) -> usize {
    arc.len() - (alignment(arc.len()) - 1)
}

/// What `Arc::get_mut` asks, without locking the count of weak handles: there are none.
#[inline]
fn is_alone(arc: &Arc<[Chunk]>) -> bool {
    let alone = Arc::strong_count(arc) == 1;
    fence(Acquire); // what other holders did came before they let go
    alone
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: the field is not used again.
        let arc = unsafe { ManuallyDrop::take(&mut self.0) };
        if is_alone(&arc) {
            LIVE.sub(usable(&arc) * CHUNK);
            if arc.len() <= SMALL { keep_small(arc) } else { keep_large(arc) }
        }
    }
}

/// Largest buffer, in chunks, that a thread keeps for itself.
const SMALL: usize = 256;
/// How many small buffers of one size class a thread keeps.
const MAX_CACHED_OF_A_SIZE: usize = 256;

thread_local! {
    static SMALL_POOL: RefCell<[Vec<Arc<[Chunk]>>; 9]> = const { RefCell::new([const { Vec::new() }; 9]) };
}

fn class(chunks: usize) -> usize {
    chunks.next_power_of_two().trailing_zeros() as usize
}

fn take_small(chunks: usize) -> Arc<[Chunk]> {
    let class = class(chunks);
    let kept = SMALL_POOL.try_with(|p| p.borrow_mut()[class].pop()).ok().flatten();
    kept.unwrap_or_else(|| zeroed(1 << class))
}

fn keep_small(arc: Arc<[Chunk]>) {
    // After the thread's destructors have run there is no pool: the buffer is simply freed.
    let _ = SMALL_POOL.try_with(|p| {
        let list = &mut p.borrow_mut()[class(arc.len())];
        if list.len() < MAX_CACHED_OF_A_SIZE {
            list.push(arc);
        }
    });
}

/// Freed large buffers by size.
struct LargePool {
    by_size: BTreeMap<usize, Vec<Arc<[Chunk]>>>,
    chunks: usize,
}

static LARGE_POOL: Mutex<LargePool> = Mutex::new(LargePool { by_size: BTreeMap::new(), chunks: 0 });
/// Most bytes that the large pool keeps.
static POOL_LIMIT: AtomicUsize = AtomicUsize::new(1 << 30);

impl LargePool {
    fn remove(&mut self, size: usize) -> Option<Arc<[Chunk]>> {
        let list = self.by_size.get_mut(&size)?;
        let arc = list.pop();
        if list.is_empty() {
            self.by_size.remove(&size);
        }
        self.chunks -= size;
        arc
    }

    fn evict(&mut self, mut chunks: usize) -> Vec<Arc<[Chunk]>> {
        let mut out = Vec::new();
        while chunks > 0
            && let Some((&size, _)) = self.by_size.last_key_value()
        {
            out.extend(self.remove(size));
            chunks = chunks.saturating_sub(size);
        }
        out
    }
}

fn take_large(usable: usize) -> Result<Arc<[Chunk]>> {
    let chunks = usable + if usable < PAGE { LINE } else { PAGE } - 1;
    let mut pool = LARGE_POOL.lock().unwrap_or_else(|e| e.into_inner());
    // An eighth too large is good enough.
    let fit = pool.by_size.range(chunks..=chunks + usable / 8).next().map(|(&size, _)| size);
    if let Some(arc) = fit.and_then(|size| pool.remove(size)) {
        return Ok(arc);
    }
    let evicted = pool.evict(chunks);
    drop(pool);
    drop(evicted);
    ask_for::<Chunk>(chunks)?;
    Ok(zeroed(chunks))
}

fn keep_large(arc: Arc<[Chunk]>) {
    let mut pool = LARGE_POOL.lock().unwrap_or_else(|e| e.into_inner());
    if (pool.chunks + arc.len()) * CHUNK <= POOL_LIMIT.load(Relaxed) {
        pool.chunks += arc.len();
        pool.by_size.entry(arc.len()).or_default().push(arc);
    }
}

fn zeroed(chunks: usize) -> Arc<[Chunk]> {
    let arc = Arc::<[Chunk]>::new_zeroed_slice(chunks);
    // SAFETY: `Chunk` is plain data for which all-zero bytes are valid.
    unsafe { arc.assume_init() }
}

/// Bytes now and at most.
struct Counter {
    now: AtomicUsize,
    peak: AtomicUsize,
}

static LIVE: Counter = Counter { now: AtomicUsize::new(0), peak: AtomicUsize::new(0) };

impl Counter {
    fn add(&self, bytes: usize) {
        let now = self.now.fetch_add(bytes, Relaxed) + bytes;
        if now > self.peak.load(Relaxed) {
            self.peak.fetch_max(now, Relaxed);
        }
    }

    fn sub(&self, bytes: usize) {
        self.now.fetch_sub(bytes, Relaxed);
    }
}

/// Bytes held by tensors of all threads.
pub(crate) fn live_bytes() -> usize {
    LIVE.now.load(Relaxed)
}

/// The most that [`live_bytes`] has been since the last [`reset_peak`].
pub(crate) fn peak_bytes() -> usize {
    LIVE.peak.load(Relaxed)
}

/// Starts a new measurement of [`peak_bytes`].
pub(crate) fn reset_peak() {
    LIVE.peak.store(live_bytes(), Relaxed);
}

/// Sets how many freed bytes may be kept for reuse, and frees what is over.
pub(crate) fn set_pool_limit(bytes: usize) {
    POOL_LIMIT.store(bytes, Relaxed);
    let mut pool = LARGE_POOL.lock().unwrap_or_else(|e| e.into_inner());
    let excess = (pool.chunks * CHUNK).saturating_sub(bytes);
    let evicted = pool.evict(excess.div_ceil(CHUNK));
    drop(pool);
    drop(evicted);
}

#[cfg(test)]
thread_local! {
    static REQUESTS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// How many buffers this thread has asked for.
#[cfg(test)]
pub(crate) fn requests() -> usize {
    REQUESTS.get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_freed_large_buffer_comes_back() {
        let bytes = 123_456 * CHUNK;
        let first = Buffer::new(bytes);
        let at = first.slice::<u8>().as_ptr();
        drop(first);
        assert_eq!(Buffer::new(bytes - CHUNK).slice::<u8>().as_ptr(), at);
    }

    #[test]
    fn large_buffers_begin_where_lines_and_pages_do() {
        let starts = |bytes: usize| {
            let buffer = Buffer::new(bytes);
            let elements = buffer.slice::<u8>();
            assert!(bytes <= elements.len() && elements.len() <= bytes + bytes / 8 + CHUNK, "{bytes}");
            elements.as_ptr() as usize
        };
        let page = PAGE * CHUNK;
        for bytes in [SMALL * CHUNK + 1, 100_000, page - CHUNK + 1, page, page + 1, 5_000_000] {
            let align = if bytes.div_ceil(CHUNK) < PAGE { 64 } else { page };
            assert_eq!(starts(bytes) % align, 0, "{bytes}");
        }
    }

    #[test]
    fn memory_that_is_handed_out_holds_no_number() {
        for bytes in [64, 100_000] {
            for _ in 0..2 {
                let mut buffer = Buffer::new(bytes);
                let elements = buffer.slice_mut::<f64>().unwrap();
                assert!(elements.iter().all(|x| x.is_nan()), "{bytes}");
                elements.fill(1.5);
            }
        }
    }

    #[test]
    fn only_the_last_holder_may_write() {
        let mut a = Buffer::new(64);
        a.slice_mut::<f64>().unwrap()[3] = 1.5;
        let b = a.clone();
        assert!(a.slice_mut::<f64>().is_none());
        drop(b);
        assert_eq!(a.slice_mut::<f64>().unwrap()[3], 1.5);
    }
}
