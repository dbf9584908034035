//! The memory of a tape: records in chunks that stay where they are while the tape grows.

use super::many::{Many, Terms};
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::NonNull;

/// What the tape keeps of an operation on two different nodes: `d(self) = pa d(a) + pb d(b)`.
///
/// Operations on one node are folded into the variable, so nothing else is ever recorded, but for the
/// rare operations on many nodes: their `a` is [`MANY`], and `b` says which it is.
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

/// Records in a chunk. 64 Ki records are 1.5 MiB of `f64`: few enough that a short tape wastes little, many
/// enough that the cold path is rare.
const CHUNK: usize = 1 << 16;

struct Chunk<T>(NonNull<Record<T>>);

impl<T> Chunk<T> {
    fn layout() -> Layout {
        Layout::array::<Record<T>>(CHUNK).expect("a chunk of records is far smaller than the address space")
    }

    fn new() -> Self {
        // SAFETY: the layout is not empty.
        let memory = unsafe { alloc(Self::layout()) };
        match NonNull::new(memory.cast()) {
            Some(memory) => Chunk(memory),
            None => handle_alloc_error(Self::layout()),
        }
    }
}

impl<T> Drop for Chunk<T> {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout; records have no destructor.
        unsafe { dealloc(self.0.as_ptr().cast(), Self::layout()) }
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

    /// Forgets all records, and puts the first one at `node`.
    pub fn start(&mut self, node: u32) {
        self.first = node;
        self.many.clear();
        self.terms.truncate(0);
        self.late_inputs.clear();
    }

    pub fn first(&self) -> u32 {
        self.first
    }

    /// The place for `node` and those after it, when the chunk before is full: where the record of node 0 would be, and the
    /// node that ends the chunk.
    pub fn advance(&mut self, node: u32) -> (*mut Record<T>, u32) {
        let k = (node - self.first) as usize;
        debug_assert!(k.is_multiple_of(CHUNK));
        // Two nodes are names for something else: none (0) and many (the last).
        assert!(
            (node as usize) + CHUNK < MANY as usize,
            "a tape holds at most 2^32 - 2 nodes; use a checkpoint"
        );
        if k / CHUNK == self.chunks.len() {
            self.chunks.push(Chunk::new());
        }
        self.bounds(k)
    }

    /// Drops the records from `node` on; the place for new ones, as from [`advance`](Self::advance).
    pub fn rewind(&mut self, node: u32) -> (*mut Record<T>, u32) {
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
            // The next record asks for its chunk.
            return (std::ptr::null_mut(), node);
        }
        self.bounds(k)
    }

    /// The chunk of the `k`-th record.
    fn bounds(&self, k: usize) -> (*mut Record<T>, u32) {
        let chunk = k / CHUNK;
        let first = self.first + (chunk * CHUNK) as u32;
        (self.chunks[chunk].0.as_ptr().wrapping_sub(first as usize), first + CHUNK as u32)
    }

    /// The records of the nodes `from..to` in slices, the last ones first; each with the node of its first.
    ///
    /// # Safety
    /// The records up to node `to` must have been written.
    pub unsafe fn backward(&self, from: u32, to: u32) -> impl Iterator<Item = (u32, &[Record<T>])> {
        // SAFETY: the caller's promise.
        self.slices(from, to).rev().map(|(k, n)| unsafe { self.slice(k, n) })
    }

    /// As [`backward`](Self::backward), the first ones first.
    ///
    /// # Safety
    /// The same.
    pub unsafe fn forward(&self, from: u32, to: u32) -> impl Iterator<Item = (u32, &[Record<T>])> {
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
    unsafe fn slice(&self, k: usize, n: usize) -> (u32, &[Record<T>]) {
        let base = self.chunks[k / CHUNK].0.as_ptr();
        // SAFETY: in one chunk and written, by the caller's promise.
        (self.first + k as u32, unsafe { std::slice::from_raw_parts(base.add(k % CHUNK), n) })
    }

    /// Bytes held, in use or not.
    pub fn bytes(&self) -> usize {
        let term = size_of::<T>() + size_of::<u32>();
        self.chunks.len() * Chunk::<T>::layout().size()
            + self.terms.len() * term
            + self.adjoints.capacity() * size_of::<T>()
    }
}
