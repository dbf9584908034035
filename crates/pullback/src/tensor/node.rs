//! The node behind a tensor: its value, and the record of how it was made, with separate lifetimes.
//!
//! A record must outlive a value that no pullback reads: of `y = x + b` the graph needs to know that `y` came from
//! `x`, but not what `x` was. So a node has two counts, as `Arc` has strong and weak ones: [`Tensor`] handles keep
//! the value, [`Link`]s keep only the record. Nodes are recycled by each thread, because allocation would cost more
//! than a small operation.

use super::Tensor;
use super::data::Data;
use crate::DType;
use crate::shape::Shape;
use crate::tape::{Deps, Leaf, Record};
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::cell::{Cell, RefCell, UnsafeCell};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering, fence};
use std::sync::{Arc, OnceLock};

pub(crate) struct Node {
    /// [`Tensor`] handles.
    values: AtomicU32,
    /// [`Link`]s, and one more while there are values.
    links: AtomicU32,
    /// The pullback reads the output, so the value lives as long as the node.
    keep: bool,
    pub dtype: DType,
    pub shape: Shape,
    /// Read through [`Tensor`] handles only; cleared when the last of them goes.
    data: UnsafeCell<Data>,
    /// The live transforms that this value depends on.
    pub deps: Deps,
    /// Grows with time among nodes that are recorded; 0 for others.
    pub id: u64,
    /// The transform that this node is an input of, or 0.
    pub leaf_of: u64,
    pub record: Option<Record>,
    /// Accumulated gradient and hooks, of the nodes that have any.
    pub leaf: OnceLock<Arc<Leaf>>,
}

/// How a value came about, as far as a live transform needs to know.
#[derive(Default)]
pub(crate) struct History {
    pub record: Option<Record>,
    pub deps: Deps,
    pub id: u64,
    pub leaf_of: u64,
    /// The pullback reads the value.
    pub keep: bool,
}

// SAFETY: everything in a node is Send and Sync but the cell, which is written only while its last handle is dropped.
unsafe impl Send for Node {}
// SAFETY: as above.
unsafe impl Sync for Node {}

impl Node {
    #[inline(always)]
    pub fn new(dtype: DType, shape: Shape, data: Data, history: History) -> Node {
        Node {
            values: AtomicU32::new(1),
            links: AtomicU32::new(1),
            keep: history.keep,
            dtype,
            shape,
            data: UnsafeCell::new(data),
            deps: history.deps,
            id: history.id,
            leaf_of: history.leaf_of,
            record: history.record,
            leaf: OnceLock::new(),
        }
    }

    #[inline(always)]
    pub fn into_tensor(self) -> Tensor {
        Tensor { node: place(self) }
    }
}

// Memory for nodes ------------------------------------------------------------------------------------------------

/// How many free nodes a thread keeps: enough for a large graph to be built from the one before, in some tens of megabytes if
/// there ever was one so large. Given back and asked for again, the pages of a node cost more than the operation.
const KEPT: usize = 1 << 17;

struct Blocks(Vec<NonNull<Node>>);

impl Drop for Blocks {
    fn drop(&mut self) {
        for block in self.0.drain(..) {
            // SAFETY: blocks in the list were allocated with this layout and hold no node.
            unsafe { dealloc(block.as_ptr().cast(), Layout::new::<Node>()) }
        }
    }
}

thread_local! {
    static BLOCKS: RefCell<Blocks> = const { RefCell::new(Blocks(Vec::new())) };
    static DOOMED: RefCell<Vec<NonNull<Node>>> = const { RefCell::new(Vec::new()) };
    static SWEEPING: Cell<bool> = const { Cell::new(false) };
    static ALIVE: Cell<isize> = const { Cell::new(0) };
}

#[inline(always)]
fn place(node: Node) -> NonNull<Node> {
    ALIVE.set(ALIVE.get() + 1);
    let block = BLOCKS.try_with(|b| b.borrow_mut().0.pop()).ok().flatten().unwrap_or_else(|| {
        let layout = Layout::new::<Node>();
        // SAFETY: the layout is not empty.
        NonNull::new(unsafe { alloc(layout) }.cast()).unwrap_or_else(|| handle_alloc_error(layout))
    });
    // SAFETY: the block is free and of the right layout.
    unsafe { block.write(node) };
    block
}

/// Drops a node and whatever only it kept alive, by a loop: a chain of a million records must not recurse.
#[cold]
#[inline(never)]
fn bury(node: NonNull<Node>) {
    if SWEEPING.get() {
        if DOOMED.try_with(|d| d.borrow_mut().push(node)).is_err() {
            free(node); // The thread is ending and its lists are gone.
        }
        return;
    }
    SWEEPING.set(true);
    let mut next = Some(node);
    while let Some(node) = next {
        free(node);
        next = DOOMED.try_with(|d| d.borrow_mut().pop()).ok().flatten();
    }
    SWEEPING.set(false);
}

fn free(node: NonNull<Node>) {
    ALIVE.set(ALIVE.get() - 1);
    // SAFETY: both counts are zero, so this is the last use of the node; the block goes back to the list or the system.
    unsafe {
        node.drop_in_place();
        let keep = BLOCKS.try_with(|b| {
            let list = &mut b.borrow_mut().0;
            let room = list.len() < KEPT;
            if room {
                list.push(node);
            }
            room
        });
        if keep != Ok(true) {
            dealloc(node.as_ptr().cast(), Layout::new::<Node>());
        }
    }
}

/// Nodes made less nodes freed by this thread.
pub(crate) fn alive() -> isize {
    ALIVE.get()
}

// Handles ---------------------------------------------------------------------------------------------------------

impl Tensor {
    pub(crate) fn node(&self) -> &Node {
        // SAFETY: a handle keeps its node.
        unsafe { self.node.as_ref() }
    }

    pub(crate) fn data(&self) -> &Data {
        // SAFETY: the cell is written only when no value handle is left.
        unsafe { &*self.node().data.get() }
    }

    /// The value for writing, if this is the only handle of any kind and no pullback reads the value.
    pub(crate) fn data_mut(&mut self) -> Option<&mut Data> {
        let node = self.node();
        let alone = node.values.load(Ordering::Acquire) == 1 && !node.keep;
        // SAFETY: no other value handle exists, and links do not read the value of a node that is not kept.
        alone.then(|| unsafe { &mut *node.data.get() })
    }

    /// Whether the operation that made the value reads it in its pullback.
    pub(crate) fn is_kept(&self) -> bool {
        self.node().keep
    }

    /// Whether there are other handles of the value.
    pub(crate) fn is_shared(&self) -> bool {
        self.node().values.load(Ordering::Acquire) > 1
    }

    pub(crate) fn link(&self) -> Link {
        self.node().links.fetch_add(1, Ordering::Relaxed);
        Link { node: self.node }
    }
}

impl Clone for Tensor {
    fn clone(&self) -> Tensor {
        self.node().values.fetch_add(1, Ordering::Relaxed);
        Tensor { node: self.node }
    }
}

impl Drop for Tensor {
    fn drop(&mut self) {
        let node = self.node();
        if node.values.fetch_sub(1, Ordering::Release) != 1 {
            return;
        }
        fence(Ordering::Acquire);
        if !node.keep {
            // SAFETY: the last value handle is going, and links never read the value of a node that is not kept.
            let data = unsafe { &mut *node.data.get() };
            // A repeated number holds no memory that could be given back.
            if !matches!(data, Data::Splat(_)) {
                *data = Data::Gone;
            }
        }
        unlink(self.node);
    }
}

fn unlink(node: NonNull<Node>) {
    // SAFETY: the caller gives up one count, so the node is still there.
    if unsafe { node.as_ref() }.links.fetch_sub(1, Ordering::Release) == 1 {
        fence(Ordering::Acquire);
        bury(node);
    }
}

/// A handle that keeps the record of a node, but not its value.
pub(crate) struct Link {
    node: NonNull<Node>,
}

// SAFETY: a node may be used from any thread.
unsafe impl Send for Link {}
// SAFETY: as above.
unsafe impl Sync for Link {}

impl Link {
    pub fn node(&self) -> &Node {
        // SAFETY: a link keeps its node.
        unsafe { self.node.as_ref() }
    }

    /// The value, if the node keeps it for its pullback.
    pub fn kept(&self) -> Option<Tensor> {
        let node = self.node();
        if !node.keep {
            return None;
        }
        if node.values.fetch_add(1, Ordering::Acquire) == 0 {
            // All values together hold one link.
            node.links.fetch_add(1, Ordering::Relaxed);
        }
        Some(Tensor { node: self.node })
    }
}

impl Clone for Link {
    fn clone(&self) -> Link {
        self.node().links.fetch_add(1, Ordering::Relaxed);
        Link { node: self.node }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        unlink(self.node);
    }
}
