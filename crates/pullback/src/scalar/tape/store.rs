//! The memory of a tape: records in chunks that stay where they are while the tape grows.

use super::many::{Many, Terms};
use super::slot::Taped;
use std::alloc::{Layout, alloc, alloc_zeroed, dealloc};
use std::marker::PhantomData;
use std::ptr::NonNull;

/// What the tape keeps of an operation on two different nodes: `d(self) = pa d(a) + pb d(b)`.
///
/// Operations on one node are folded into the variable, so nothing else is ever recorded, but for `a b + c`, whose `a` is marked
/// with [`THIRD`], and the rare operations on many nodes: their `a` is [`MANY`], and `b` says which it is.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(in crate::scalar) struct Record<T> {
    pub pa: T,
    pub pb: T,
    pub a: u32,
    pub b: u32,
}

/// Stands for the first node of a record that is described elsewhere.
pub(in crate::scalar) const MANY: u32 = u32::MAX;

/// Marks the first node of a record that has a third one: `d(self) = pa d(a) + pb d(b) + d(c)`. Nodes are smaller than the mark.
pub(in crate::scalar) const THIRD: u32 = 1 << 31;

/// Records in a chunk. 64 Ki records are 1.5 MiB of `f64`: few enough that a short tape wastes little, many
/// enough that the cold path is rare.
const CHUNK: usize = if cfg!(miri) { 1 << 10 } else { 1 << 16 };

/// Records, and behind them a third node for each. Most have none, and then that memory is never touched.
struct Chunk<T>(NonNull<Record<T>>);

impl<T> Chunk<T> {
    fn layout() -> Layout {
        let (records, thirds) = (size_of::<Record<T>>() * CHUNK, size_of::<u32>() * CHUNK);
        Layout::from_size_align(records + thirds, align_of::<Record<T>>())
            .expect("a chunk of records is far smaller than the address space")
    }

    /// The third node of the first record.
    fn thirds(&self) -> *mut u32 {
        self.0.as_ptr().wrapping_add(CHUNK).cast()
    }

    fn new() -> Self {
        // SAFETY: the layout is not empty.
        let memory = unsafe { alloc(Self::layout()) };
        match NonNull::new(memory.cast()) {
            Some(memory) => Chunk(memory),
            None => out_of_memory(
                Self::layout().size(),
                "the next records of a tape; a checkpointed loop keeps fewer",
            ),
        }
    }
}

/// Stops the program, or the thread of it that asked for too much.
#[cold]
#[inline(never)]
pub(in crate::scalar) fn out_of_memory(bytes: usize, purpose: &str) -> ! {
    panic!("out of memory: {bytes} bytes were asked for, for {purpose}")
}

/// So many numbers zero.
pub(super) fn zeros<T: Taped>(n: usize) -> Vec<T> {
    let layout = Layout::array::<T>(n).ok().filter(|layout| layout.size() > 0);
    let Some(layout) = layout else { return vec![T::constant(0.0); n] };
    // SAFETY: the layout is not empty.
    let memory = unsafe { alloc_zeroed(layout) };
    if memory.is_null() {
        out_of_memory(layout.size(), "the adjoints of a tape; a checkpointed loop needs fewer");
    }
    // SAFETY: allocated just now for `n` of them; zero bits are the zero of every type that is `Taped`, which are all known here.
    unsafe { Vec::from_raw_parts(memory.cast(), n, n) }
}

impl<T> Drop for Chunk<T> {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout; records have no destructor.
        unsafe { dealloc(self.0.as_ptr().cast(), Self::layout()) }
    }
}

/// Where records go: the rest of a chunk.
pub(in crate::scalar) struct Room<T> {
    /// Where the record of node 0 would be, were the chunk long enough.
    pub records: *mut Record<T>,
    /// The same for third nodes.
    pub thirds: *mut u32,
    /// The node that does not fit any more.
    pub end: u32,
}

impl<T> Room<T> {
    /// None: the record of `node` asks for its chunk.
    fn full(node: u32) -> Self {
        Room { records: std::ptr::null_mut(), thirds: std::ptr::null_mut(), end: node }
    }
}

/// Consecutive records.
pub(in crate::scalar) struct Stretch<'s, T> {
    /// The node of the first.
    pub first: u32,
    pub records: &'s [Record<T>],
    /// Where the third node of the record of node 0 would be.
    thirds: *const u32,
    of: PhantomData<&'s [u32]>,
}

impl<T> Stretch<'_, T> {
    /// The third node of a record of this stretch, that of `node`; 0 if it has none.
    ///
    /// # Safety
    /// It must be that record.
    #[inline(always)]
    pub unsafe fn third(&self, record: &Record<T>, node: usize) -> u32 {
        let marked = record.a & THIRD != 0 && record.a != MANY;
        // SAFETY: a third node was written for each record with the mark, and the record is of this chunk.
        if marked { unsafe { self.thirds.wrapping_add(node).read() } } else { 0 }
    }
}

/// The records of a tape and the buffers of its sweeps.
pub(in crate::scalar) struct Store<T> {
    chunks: Vec<Chunk<T>>,
    /// The node of the first record. Those before it are inputs, and node 0, which is no variable.
    first: u32,
    /// The operations on many nodes, in the order of their records.
    pub many: Vec<Many<T>>,
    pub terms: Terms<T>,
    /// Inputs that came after the first record.
    pub late_inputs: Vec<u32>,
    /// Adjoints by node, all zero between sweeps.
    pub adjoints: Vec<T>,
}

impl<T> Store<T> {
    pub fn new() -> Self {
        let terms = Terms { partials: Vec::new(), nodes: Vec::new() };
        Store {
            chunks: Vec::new(),
            first: 1,
            many: Vec::new(),
            terms,
            late_inputs: Vec::new(),
            adjoints: Vec::new(),
        }
    }

    /// Forgets all records; the place for new ones, of which the first is that of `node`.
    #[inline(always)]
    pub fn start(&mut self, node: u32) -> Room<T> {
        self.first = node;
        self.many.clear();
        self.terms.truncate(0);
        self.late_inputs.clear();
        if self.chunks.is_empty() || node as usize + CHUNK >= THIRD as usize {
            return Room::full(node);
        }
        self.room(0)
    }

    pub fn first(&self) -> u32 {
        self.first
    }

    /// The place for `node` and those after it, when the chunk before is full.
    pub fn advance(&mut self, node: u32) -> Room<T> {
        let k = (node - self.first) as usize;
        debug_assert!(k.is_multiple_of(CHUNK));
        assert!(
            (node as usize) + CHUNK < THIRD as usize,
            "a tape holds at most 2^31 nodes; use a checkpoint"
        );
        if k / CHUNK == self.chunks.len() {
            self.chunks.push(Chunk::new());
        }
        self.room(k)
    }

    /// Drops the records from `node` on; the place for new ones.
    pub fn rewind(&mut self, node: u32) -> Room<T> {
        while self.many.last().is_some_and(|m| m.node >= node) {
            let many = self.many.pop().expect("there is a last one");
            self.terms.truncate(many.terms.start);
        }
        while self.late_inputs.last().is_some_and(|&late| late >= node) {
            self.late_inputs.pop();
        }
        let k = node.saturating_sub(self.first) as usize;
        self.first = self.first.min(node);
        if k.is_multiple_of(CHUNK) {
            return Room::full(node);
        }
        self.room(k)
    }

    /// The chunk of the `k`-th record.
    #[inline(always)]
    fn room(&self, k: usize) -> Room<T> {
        let chunk = &self.chunks[k / CHUNK];
        let first = self.first + (k - k % CHUNK) as u32;
        Room {
            records: chunk.0.as_ptr().wrapping_sub(first as usize),
            thirds: chunk.thirds().wrapping_sub(first as usize),
            end: first + CHUNK as u32,
        }
    }

    /// The records of the nodes `from..to`, the last ones first.
    ///
    /// # Safety
    /// The records up to node `to` must have been written.
    pub unsafe fn backward(&self, from: u32, to: u32) -> impl Iterator<Item = Stretch<'_, T>> {
        // SAFETY: the caller's promise.
        self.slices(from, to).rev().map(|(k, n)| unsafe { self.slice(k, n) })
    }

    /// As [`backward`](Self::backward), the first ones first.
    ///
    /// # Safety
    /// The same.
    pub unsafe fn forward(&self, from: u32, to: u32) -> impl Iterator<Item = Stretch<'_, T>> {
        // SAFETY: the caller's promise.
        self.slices(from, to).map(|(k, n)| unsafe { self.slice(k, n) })
    }

    /// Start and length of the stretches of records `from..to` that lie in one chunk.
    fn slices(&self, from: u32, to: u32) -> impl DoubleEndedIterator<Item = (usize, usize)> + use<T> {
        let from = from.saturating_sub(self.first) as usize;
        let to = to.saturating_sub(self.first) as usize;
        (from / CHUNK..to.div_ceil(CHUNK)).filter_map(move |chunk| {
            let start = from.max(chunk * CHUNK);
            let end = to.min((chunk + 1) * CHUNK);
            (start < end).then(|| (start, end - start))
        })
    }

    /// # Safety
    /// The `n` records from the `k`-th must lie in one chunk and be written.
    unsafe fn slice(&self, k: usize, n: usize) -> Stretch<'_, T> {
        let chunk = &self.chunks[k / CHUNK];
        Stretch {
            first: self.first + k as u32,
            // SAFETY: in one chunk and written, by the caller's promise.
            records: unsafe { std::slice::from_raw_parts(chunk.0.as_ptr().add(k % CHUNK), n) },
            thirds: self.room(k).thirds,
            of: PhantomData,
        }
    }

    /// Bytes held, in use or not, but for third nodes: where there are none, the system gives no memory for them.
    pub fn bytes(&self) -> usize {
        let term = size_of::<T>() + size_of::<u32>();
        self.chunks.len() * CHUNK * size_of::<Record<T>>()
            + self.terms.len() * term
            + self.adjoints.capacity() * size_of::<T>()
    }
}
