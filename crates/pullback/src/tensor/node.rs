//! The node behind a tensor: its value, and the record of how it was made, with separate lifetimes.
//!
//! A record must outlive a value that no pullback reads: of `y = x + b` the graph needs to know that `y` came from
//! `x`, but not what `x` was. So a node has two counts, as `Arc` has strong and weak ones: [`Tensor`] handles keep
//! the value, [`Link`]s keep only the record. Nodes are recycled by each thread, because allocation would cost more
//! than a small operation.

use super::Tensor;
use super::data::{Data, Output};
use crate::DType;
use crate::shape::Shape;
use crate::tape::{Deps, Leaf, Record};
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::cell::{Cell, UnsafeCell};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering, fence};
use std::sync::{Arc, OnceLock};

pub(crate) struct Node {
    /// [`Tensor`] handles.
    values: AtomicU32,
    /// [`Link`]s, and one more while there are values.
    links: AtomicU32,
    /// The pullback reads the output, so the value lives as long as the node.
    pub keep: bool,
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
    /// The next in the list of nodes to be dropped, where this one is in it.
    next: Cell<Option<NonNull<Node>>>,
}

// SAFETY: everything in a node is Send and Sync but the cells. That of the value is written only while its last handle is
// dropped, that of the list after it.
unsafe impl Send for Node {}
// SAFETY: as above.
unsafe impl Sync for Node {}

/// A node that nobody else has seen yet. It is filled in where it lies: to make its parts elsewhere and move them would
/// cost more than a small operation.
pub(crate) struct Fresh(Tensor);

impl Fresh {
    /// A node without a value or a history.
    #[inline(always)]
    pub fn new(dtype: DType, shape: Shape) -> Fresh {
        let node = take_block();
        // SAFETY: the block is free and of the right layout.
        unsafe {
            node.write(Node {
                values: AtomicU32::new(1),
                links: AtomicU32::new(1),
                keep: false,
                dtype,
                shape,
                data: UnsafeCell::new(Data::Gone),
                deps: Deps::None,
                id: 0,
                leaf_of: 0,
                record: None,
                leaf: OnceLock::new(),
                next: Cell::new(None),
            });
        }
        Fresh(Tensor { node })
    }

    /// Where the value goes.
    #[inline(always)]
    pub fn output(&mut self) -> Output<'_> {
        let node = &mut **self;
        Output::new(&node.shape, node.data.get_mut())
    }

    #[inline(always)]
    pub fn into_tensor(self) -> Tensor {
        self.0
    }
}

impl Deref for Fresh {
    type Target = Node;
    #[inline(always)]
    fn deref(&self) -> &Node {
        self.0.node()
    }
}

impl DerefMut for Fresh {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Node {
        // SAFETY: this is the only handle, of either kind.
        unsafe { self.0.node.as_mut() }
    }
}

// Memory for nodes ------------------------------------------------------------------------------------------------

/// How many free nodes a thread keeps: enough for a large graph to be built from the one before, in some tens of megabytes if
/// there ever was one so large. Given back and asked for again, the pages of a node cost more than the operation.
const MAX_CACHED_NODES: usize = 1 << 17;

/// Memory for a node, while there is none in it.
struct Free {
    next: Option<NonNull<Free>>,
}

/// The free blocks of a thread. Without a destructor, which every use would have to ask whether it has run: that is
/// [`Closing`]'s.
struct Blocks {
    first: Cell<Option<NonNull<Free>>>,
    /// How many more may be kept; none before the first one is asked for, nor when the thread is ending.
    room: Cell<usize>,
    /// Nodes that wait to be dropped, while a sweep is under way.
    doomed: Cell<Option<NonNull<Node>>>,
    sweeping: Cell<bool>,
    /// Nodes made less nodes freed.
    alive: Cell<isize>,
}

/// Gives the blocks of an ending thread back.
struct Closing;

impl Drop for Closing {
    fn drop(&mut self) {
        BLOCKS.with(|b| {
            b.room.set(0);
            let mut next = b.first.take();
            while let Some(block) = next {
                // SAFETY: blocks in the list were allocated with this layout, and are in no other.
                unsafe {
                    next = block.read().next;
                    dealloc(block.as_ptr().cast(), Layout::new::<Node>());
                }
            }
        });
    }
}

thread_local! {
    static BLOCKS: Blocks = const {
        Blocks {
            first: Cell::new(None),
            room: Cell::new(0),
            doomed: Cell::new(None),
            sweeping: Cell::new(false),
            alive: Cell::new(0),
        }
    };
    static CLOSING: Closing = const { Closing };
    static OPEN: Cell<bool> = const { Cell::new(false) };
}

#[inline(always)]
fn take_block() -> NonNull<Node> {
    BLOCKS.with(|b| {
        b.alive.set(b.alive.get() + 1);
        let Some(block) = b.first.get() else { return new_block(b) };
        // SAFETY: a block in the list holds the next.
        b.first.set(unsafe { block.as_ref() }.next);
        b.room.set(b.room.get() + 1);
        block.cast()
    })
}

#[cold]
#[inline(never)]
fn new_block(b: &Blocks) -> NonNull<Node> {
    // From the first block on, until its destructors run, the thread keeps what is freed.
    if !OPEN.get() && CLOSING.try_with(|_| ()).is_ok() {
        OPEN.set(true);
        b.room.set(MAX_CACHED_NODES);
    }
    let layout = Layout::new::<Node>();
    // SAFETY: the layout is not empty.
    NonNull::new(unsafe { alloc(layout) }.cast()).unwrap_or_else(|| handle_alloc_error(layout))
}

/// Drops a node and whatever only it kept alive, by a loop: a chain of a million records must not recurse.
#[inline(never)]
fn bury(node: NonNull<Node>) {
    BLOCKS.with(|b| {
        if b.sweeping.get() {
            // SAFETY: both counts are zero, so nobody else sees the node.
            unsafe { node.as_ref() }.next.set(b.doomed.replace(Some(node)));
            return;
        }
        b.sweeping.set(true);
        let sweep = Sweep(b);
        free(b, node);
        sweep.the_rest();
    });
}

/// A sweep under way. A record may hold what is the user's, and if that panics when it is dropped, the rest is dropped while the panic passes, as the
/// other elements of a vector would be: a second panic ends the process, as it does there.
struct Sweep<'a>(&'a Blocks);

impl Sweep<'_> {
    #[inline(always)]
    fn the_rest(&self) {
        while let Some(node) = self.0.doomed.get() {
            // SAFETY: a node in the list is whole.
            self.0.doomed.set(unsafe { node.as_ref() }.next.get());
            free(self.0, node);
        }
    }
}

impl Drop for Sweep<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.the_rest();
        self.0.sweeping.set(false);
    }
}

#[inline(always)]
fn free(b: &Blocks, node: NonNull<Node>) {
    b.alive.set(b.alive.get() - 1);
    let _emptied = Emptied(b, node.cast());
    // SAFETY: both counts are zero, so this is the last use of the node.
    unsafe { node.drop_in_place() };
}

/// A block whose node is being dropped; then it goes back to the list or the system.
struct Emptied<'a>(&'a Blocks, NonNull<Free>);

impl Drop for Emptied<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        let Emptied(b, block) = *self;
        // SAFETY: there is no node in the block any more, and nobody else knows it.
        unsafe {
            let Some(room) = b.room.get().checked_sub(1) else {
                return dealloc(block.as_ptr().cast(), Layout::new::<Node>());
            };
            b.room.set(room);
            block.write(Free { next: b.first.replace(Some(block)) });
        }
    }
}

/// Nodes made less nodes freed by this thread.
pub(crate) fn alive() -> isize {
    BLOCKS.with(|b| b.alive.get())
}

// Handles ---------------------------------------------------------------------------------------------------------

/// The most handles of either kind. Half of what can be counted: every thread that has just gone past it may count one more before the
/// process ends.
const MAX_HANDLES: u32 = i32::MAX as u32;

/// Counts one more handle, and gives how many there were. As with `Arc`, a count that would wrap ends the process: handles can be forgotten in
/// safe code, and a node that is freed while others hold it cannot be made good.
#[inline(always)]
fn one_more(count: &AtomicU32, order: Ordering) -> u32 {
    let before = count.fetch_add(1, order);
    if before >= MAX_HANDLES {
        too_many();
    }
    before
}

#[cold]
#[inline(never)]
fn too_many() -> ! {
    eprintln!("pullback: there are more than {MAX_HANDLES} handles of one tensor");
    std::process::abort();
}

impl Node {
    /// Whether the handle that asks is the only one of the value, and no other can come about but from it: links bring
    /// back only values that are kept.
    #[inline]
    fn is_alone(&self) -> bool {
        !self.keep && self.values.load(Ordering::Acquire) == 1
    }
}

impl Tensor {
    pub(crate) fn node(&self) -> &Node {
        // SAFETY: a handle keeps its node.
        unsafe { self.node.as_ref() }
    }

    pub(crate) fn data(&self) -> &Data {
        // SAFETY: the cell is written only when no value handle is left.
        unsafe { &*self.node().data.get() }
    }

    /// The value for writing, with its shape, if this is the only handle of it and no pullback reads it.
    pub(crate) fn value_mut(&mut self) -> Option<(&Shape, &mut Data)> {
        let node = self.node();
        // SAFETY: no other value handle exists, and links do not read the value of a node that is not kept.
        node.is_alone().then(|| (&node.shape, unsafe { &mut *node.data.get() }))
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
        one_more(&self.node().links, Ordering::Relaxed);
        Link { node: self.node }
    }
}

impl Clone for Tensor {
    fn clone(&self) -> Tensor {
        one_more(&self.node().values, Ordering::Relaxed);
        Tensor { node: self.node }
    }
}

impl Drop for Tensor {
    fn drop(&mut self) {
        let node = self.node();
        if !node.is_alone() {
            if node.values.fetch_sub(1, Ordering::Release) != 1 {
                return;
            }
            fence(Ordering::Acquire);
        }
        // The one that all values together hold. It goes last, also if something in the value panics.
        let _link = Link { node: self.node };
        if !node.keep {
            // SAFETY: the last value handle is going, and links never read the value of a node that is not kept.
            let data = unsafe { &mut *node.data.get() };
            // A repeated number holds no memory that could be given back.
            if !matches!(data, Data::Splat(_)) {
                *data = Data::Gone;
            }
        }
    }
}

#[inline]
fn unlink(node: NonNull<Node>) {
    // SAFETY: the caller gives up one count, so the node is still there.
    let links = &unsafe { node.as_ref() }.links;
    // The only one is the caller's, and nobody is left who could make another: no need to lock the count to take it down.
    if links.load(Ordering::Acquire) == 1 {
        return bury(node);
    }
    if links.fetch_sub(1, Ordering::Release) == 1 {
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
        if one_more(&node.values, Ordering::Acquire) == 0 {
            // All values together hold one link.
            one_more(&node.links, Ordering::Relaxed);
        }
        Some(Tensor { node: self.node })
    }
}

impl Clone for Link {
    fn clone(&self) -> Link {
        one_more(&self.node().links, Ordering::Relaxed);
        Link { node: self.node }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        unlink(self.node);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a test of this binary by itself, where it may end the process: how it ended.
    #[cfg(not(miri))]
    fn in_another_process(test: &str, case: &str) -> std::process::Output {
        let mut child = std::process::Command::new(std::env::current_exe().expect("the tests are a file"));
        child.args(["--exact", test, "--nocapture"]).env(CASE, case).output().expect("the tests run again")
    }

    #[cfg(not(miri))]
    const CASE: &str = "PULLBACK_TEST_CASE";

    /// With 2³² forgotten clones a count would be back at where it was, and one more drop would free what others still hold.
    #[test]
    #[cfg(not(miri))]
    fn a_count_of_handles_that_would_wrap_ends_the_process() {
        type Case = (&'static str, fn());
        let x = || Tensor::from([1.0, 2.0]);
        let cases: [Case; 4] = [
            ("clone", || {
                let x = Tensor::from([1.0, 2.0]);
                x.node().values.store(MAX_HANDLES, Ordering::Relaxed);
                let _forgotten = [x.clone(), x.clone()];
            }),
            ("link", || {
                let x = Tensor::from([1.0, 2.0]);
                x.node().links.store(MAX_HANDLES, Ordering::Relaxed);
                let _forgotten = [x.link(), x.link()];
            }),
            ("clone of a link", || {
                let link = Tensor::from([1.0, 2.0]).link();
                link.node().links.store(MAX_HANDLES, Ordering::Relaxed);
                let _forgotten = [link.clone(), link.clone()];
            }),
            ("kept", || {
                let y = Tensor::from([1.0, 2.0]).requires_grad().exp();
                let link = y.link();
                y.node().values.store(MAX_HANDLES, Ordering::Relaxed);
                let _forgotten = [link.kept(), link.kept()];
            }),
        ];
        if let Ok(wanted) = std::env::var(CASE) {
            let (_, run) = cases.into_iter().find(|(name, _)| *name == wanted).expect("a case of this test");
            return run();
        }
        assert!(x().node().values.load(Ordering::Relaxed) == 1);
        for (name, _) in cases {
            let test = "tensor::node::tests::a_count_of_handles_that_would_wrap_ends_the_process";
            let ended = in_another_process(test, name);
            assert!(
                String::from_utf8_lossy(&ended.stderr).contains("handles of one tensor"),
                "{name}: {ended:?}"
            );
            // Neither success nor a test that failed.
            assert!(!matches!(ended.status.code(), Some(0 | 101)), "{name}: {:?}", ended.status);
        }
    }

    #[test]
    fn handles_and_links_come_and_go() {
        let before = alive();
        let x = Tensor::from([1.0, 2.0]).requires_grad();
        let y = x.exp();
        let link = y.link();
        assert!(y.is_kept() && !y.is_shared());
        let again = link.kept().expect("the rule of exp reads its output");
        assert!(y.is_shared());
        let value = y.to_vec::<f64>();
        drop((y, again));
        assert_eq!(link.kept().expect("the link keeps it").to_vec::<f64>(), value);
        let other = link.clone();
        std::thread::spawn(move || drop(other)).join().expect("a link may go on any thread");
        drop((link, x));
        assert_eq!(alive(), before);
    }

    /// The value of a node that its own pullback reads stays as it is, also where its last handle is handed over.
    #[test]
    fn a_kept_value_is_nobodys_to_write() {
        let x = Tensor::from([1.0, 2.0]).requires_grad();
        let mut y = x.exp();
        assert!(y.is_kept() && !y.is_shared());
        assert!(y.value_mut().is_none(), "the pullback of exp reads it");
        let mut plain = x.detach() * 2.0;
        assert!(plain.value_mut().is_some(), "nobody else sees this one");
    }
}
