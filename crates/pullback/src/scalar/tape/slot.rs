//! Where the running operation finds the tape: a few thread-local cells, without destructor or
//! initialisation, so that recording an operation is a comparison and a handful of stores.

use super::store::{MANY, Record, Room, Store, THIRD};
use crate::scalar::{Dual, Lanes, Real, Single, Var};
use std::any::TypeId;
use std::cell::Cell;

mod sealed {
    /// Which types these are is up to this library: the tape trusts their slots, and that zero bits are the number zero.
    pub trait Sealed {}
    impl Sealed for f64 {}
    impl Sealed for crate::scalar::Single {}
    impl<T: Sealed, const N: usize> Sealed for crate::scalar::Dual<T, N> {}
    impl<const N: usize> Sealed for crate::scalar::Lanes<N> {}
    impl<T: Sealed> Sealed for crate::scalar::Var<T> {}
}

/// A number that a tape can be made of: `f64`, [`Single`], [`Lanes`], and [`Dual`] and [`Var`] of those. No others can be added.
///
/// A type has a slot, the place of the tape that is recording its variables. `f64` and [`Single`] have
/// one each; the families `Dual<T, N>`, `Lanes<N>` and `Var<T>` share one for each depth of nesting, and there each
/// operation checks that the tape in it is of its own type.
///
/// ```
/// use pullback::scalar::{Tape, Taped};
/// /// The slope of `f` at `x`, in any precision, and with derivatives of its own.
/// fn slope<T: Taped>(f: fn(pullback::scalar::Var<T>) -> pullback::scalar::Var<T>, x: T) -> T {
///     Tape::new().record(|t| {
///         let x = t.input(x);
///         t.derivative(f(x), x)
///     })
/// }
/// assert_eq!(slope(|x| x * x, 3.0), 6.0);
/// ```
///
/// ```compile_fail,E0277
/// #[derive(Clone, Copy)]
/// struct Mine(f64);
/// fn is_taped<T: pullback::scalar::Taped>() {}
/// is_taped::<Mine>();
/// ```
pub trait Taped: Real + sealed::Sealed {
    #[doc(hidden)]
    const SLOT: usize;
    #[doc(hidden)]
    const SHARED: bool;
    /// How many tapes are at work inside this type.
    #[doc(hidden)]
    const DEPTH: usize;
    /// Whether value and derivatives are all zero, so that nothing comes of multiplying with it.
    #[doc(hidden)]
    fn is_nothing(self) -> bool;
    /// Whether a product with it is the other factor.
    #[doc(hidden)]
    fn is_one(self) -> bool;
    /// Whether a product takes longer than to find out that one factor is 1, as it is after every record.
    #[doc(hidden)]
    const SLOW_PRODUCT: bool = false;
    /// `self + p * g` by the plain product, rounded once if `FUSED` and the type can.
    #[doc(hidden)]
    #[inline(always)]
    fn plus_product<const FUSED: bool>(self, p: Self, g: Self) -> Self {
        self + p.ungated_mul(g)
    }
}

impl Taped for f64 {
    const SLOT: usize = 0;
    const SHARED: bool = false;
    const DEPTH: usize = 0;

    #[inline(always)]
    fn is_nothing(self) -> bool {
        self == 0.0
    }

    #[inline(always)]
    fn is_one(self) -> bool {
        // An integer comparison, without the second branch for NaN.
        self.to_bits() == 1f64.to_bits()
    }

    #[inline(always)]
    fn plus_product<const FUSED: bool>(self, p: Self, g: Self) -> Self {
        if FUSED { p.mul_add(g, self) } else { self + p * g }
    }
}

impl Taped for Single {
    const SLOT: usize = 1;
    const SHARED: bool = false;
    const DEPTH: usize = 0;

    #[inline(always)]
    fn is_nothing(self) -> bool {
        self.0 == 0.0
    }

    #[inline(always)]
    fn is_one(self) -> bool {
        self.0 == 1.0
    }
}

impl<T: Taped, const N: usize> Taped for Dual<T, N> {
    const SLOT: usize = 2 + T::DEPTH;
    const SHARED: bool = true;
    const DEPTH: usize = T::DEPTH;

    #[inline(always)]
    fn is_nothing(self) -> bool {
        self.real().is_nothing() && self.tangents().iter().all(|t| t.is_nothing())
    }

    const SLOW_PRODUCT: bool = true;

    #[inline(always)]
    fn is_one(self) -> bool {
        self.real().is_one() && self.tangents().iter().all(|t| t.is_nothing())
    }
}

impl<const N: usize> Taped for Lanes<N> {
    const SLOT: usize = 2;
    const SHARED: bool = true;
    const DEPTH: usize = 0;

    #[inline(always)]
    fn is_nothing(self) -> bool {
        self.0.iter().fold(true, |nothing, v| nothing & (*v == 0.0))
    }

    #[inline(always)]
    fn is_one(self) -> bool {
        self.0.iter().fold(true, |one, v| one & (*v == 1.0))
    }

    #[inline(always)]
    fn plus_product<const FUSED: bool>(mut self, p: Self, g: Self) -> Self {
        (0..N).for_each(|k| self.0[k] = self.0[k].plus_product::<FUSED>(p.0[k], g.0[k]));
        self
    }
}

impl<T: Taped> Taped for Var<T> {
    const SLOT: usize = 2 + Self::DEPTH;
    const SHARED: bool = true;
    const DEPTH: usize = T::DEPTH + 1;

    #[inline(always)]
    fn is_nothing(self) -> bool {
        self.is_constant() && self.inner().is_nothing()
    }

    const SLOW_PRODUCT: bool = true;

    #[inline(always)]
    fn is_one(self) -> bool {
        self.is_constant() && self.inner().is_one()
    }

    #[inline(always)]
    fn plus_product<const FUSED: bool>(self, p: Self, g: Self) -> Self {
        p.mul_add(g, self)
    }
}

pub(super) const SLOTS: usize = 8;

/// The state of the tape that is recording. One number moves with each record.
pub(super) struct Slot {
    /// The node that the next record defines in the low half, the generation of the tape in the high half, as in a `Var`:
    /// the variable takes the number as it is.
    at: Cell<u64>,
    /// The first such number that does not fit in the current chunk. While no tape records it is equal to `at`, so that
    /// the first operation takes the cold path and is told.
    end: Cell<u64>,
    /// Where the record with the number 0 would be, were the current chunk long enough. Only an origin for addresses,
    /// which wrap around.
    origin: Cell<*mut u8>,
    /// The same for the third node of a record.
    thirds: Cell<*mut u8>,
    /// The `Store<T>`, and the `T` it is for.
    owner: Cell<*mut u8>,
    of: Cell<TypeId>,
}

impl Slot {
    // A constant to be copied, not a static to be shared.
    #[allow(clippy::declare_interior_mutable_const)]
    const EMPTY: Slot = Slot {
        at: Cell::new(0),
        end: Cell::new(0),
        origin: Cell::new(std::ptr::null_mut()),
        thirds: Cell::new(std::ptr::null_mut()),
        owner: Cell::new(std::ptr::null_mut()),
        of: Cell::new(TypeId::of::<()>()),
    };

    #[inline(always)]
    fn swap(&self, other: &Slot) {
        self.at.swap(&other.at);
        self.end.swap(&other.end);
        self.origin.swap(&other.origin);
        self.thirds.swap(&other.thirds);
        self.owner.swap(&other.owner);
        self.of.swap(&other.of);
    }

    #[inline(always)]
    fn set(&self, other: &Slot) {
        self.at.set(other.at.get());
        self.end.set(other.end.get());
        self.origin.set(other.origin.get());
        self.thirds.set(other.thirds.get());
        self.owner.set(other.owner.get());
        self.of.set(other.of.get());
    }

    fn node(&self) -> u32 {
        self.at.get() as u32
    }

    fn generation(&self) -> u32 {
        (self.at.get() >> 32) as u32
    }

    /// Sets where records go, given for the nodes alone as the store does.
    #[inline(always)]
    fn set_room<T>(&self, room: Room<T>) {
        let generation = self.at.get() >> 32 << 32;
        self.origin.set(room.records.cast::<u8>().wrapping_sub(offset::<Record<T>>(generation)));
        self.thirds.set(room.thirds.cast::<u8>().wrapping_sub(offset::<u32>(generation)));
        self.end.set(generation | u64::from(room.end));
    }
}

/// How far what belongs to the number `at` is from the origin, in bytes.
#[inline(always)]
fn offset<E>(at: u64) -> usize {
    (at as usize).wrapping_mul(size_of::<E>())
}

thread_local! {
    static ALL: [Slot; SLOTS] = const { [const { Slot::EMPTY }; SLOTS] };
}

#[inline(always)]
fn slot<T: Taped, R>(f: impl FnOnce(&Slot) -> R) -> R {
    // SAFETY: the slots have no destructor, so that they are there for as long as their thread, which `f` does not leave.
    f(unsafe { &*here::<T>() })
}

/// The slot of a type, out of the closure that thread-local variables ask for: which is not inlined if it is long.
#[inline(always)]
fn here<T: Taped>() -> *const Slot {
    ALL.with(|all| &raw const all[T::SLOT])
}

/// Records `d(node) = pa d(a) + pb d(b)` on the tape of this thread; the node in the low half, the generation in the high, as in `a`
/// and `b`, which have to be of that tape. `partials` gives `pa` and `pb`, and what is to be known of them afterwards.
#[inline(always)]
pub(in crate::scalar) fn push<T: Taped>(
    a: u64,
    b: u64,
    partials: impl FnOnce() -> (T, T, bool),
) -> (u64, bool) {
    write(a as u32, b as u32, partials, |at| ((a ^ at) | (b ^ at)) >> 32 == 0)
}

/// As [`push`], for `d(node) = pa d(a) + pb d(b) + d(c)`.
#[inline(always)]
pub(in crate::scalar) fn push_third<T: Taped>(
    a: u64,
    b: u64,
    c: u64,
    partials: impl FnOnce() -> (T, T, bool),
) -> (u64, bool) {
    let own = |at: u64| ((a ^ at) | (b ^ at) | (c ^ at)) >> 32 == 0;
    let (at, known) = write(a as u32 | THIRD, b as u32, partials, own);
    // SAFETY: every record of the current chunk, such as the one that was just written, has a place for a third node.
    slot::<T, _>(|slot| unsafe {
        slot.thirds.get().wrapping_add(offset::<u32>(at)).cast::<u32>().write(c as u32);
    });
    (at, known)
}

/// Records an operation that is described elsewhere, as number `which`.
pub(super) fn push_described<T: Taped>(which: u32) -> u64 {
    let zero = T::constant(0.0);
    write(MANY, which, || (zero, zero, false), |_| true).0
}

/// Writes a record, if `own` says that its operands are of the generation of the node that it defines.
#[inline(always)]
fn write<T: Taped>(
    a: u32,
    b: u32,
    partials: impl FnOnce() -> (T, T, bool),
    own: impl FnOnce(u64) -> bool,
) -> (u64, bool) {
    // SAFETY: the slots have no destructor, so that they are there for as long as their thread, which this does not leave. No closure: a
    // long one is not inlined.
    let slot = unsafe { &*here::<T>() };
    if slot.at.get() == slot.end.get() || (T::SHARED && slot.of.get() != TypeId::of::<T>()) {
        make_room::<T>(slot);
    }
    // Not before there is room: they would have to be kept somewhere while it is made. Where variables are nested they are records
    // themselves, of another slot.
    let (pa, pb, known) = partials();
    let at = slot.at.get();
    let place = slot.origin.get().wrapping_add(offset::<Record<T>>(at)).cast::<Record<T>>();
    // SAFETY: `at` is not the end, so this is a free record of the current chunk of a `Store<T>`: the slot is T's
    // alone, or the type was compared, and the partials did not change it. The fields are written one by one from registers: a record put together
    // on the stack first would be copied in wider pieces than it was written in, which stalls the processor.
    unsafe {
        (&raw mut (*place).pa).write(pa);
        (&raw mut (*place).pb).write(pb);
        (&raw mut (*place).a).write(a);
        (&raw mut (*place).b).write(b);
    }
    // A foreign node would be a wrong number. After the stores, which do not wait for it.
    if !cfg!(pullback_unchecked_tapes) && !own(at) {
        foreign();
    }
    // The record first, then the length: an unwinding never shows an unwritten record.
    slot.at.set(at + 1);
    (at, known)
}

/// Replaces the partial derivatives of the last record by products of the chain rule.
#[cold]
#[inline(never)]
pub(in crate::scalar) fn correct<T: Taped>([p, c]: [T; 2], [q, d]: [T; 2]) {
    let (pa, pb) = (p.chain_mul(c), q.chain_mul(d));
    slot::<T, _>(|slot| {
        let place =
            slot.origin.get().wrapping_add(offset::<Record<T>>(slot.at.get() - 1)).cast::<Record<T>>();
        // SAFETY: the record was just written, in the current chunk: to go on to the next is left to the record after it.
        unsafe { ((*place).pa, (*place).pb) = (pa, pb) };
    });
}

/// Goes on to the next chunk.
#[cold]
#[inline(never)]
fn make_room<T: Taped>(slot: &Slot) {
    assert!(
        slot.of.get() == TypeId::of::<T>(),
        "a tape variable was used when its tape was not recording; derivatives end with the call that made them"
    );
    // SAFETY: the owner is the `Store<T>` of the guard that installed it, which outlives its installation and
    // touches the store through this pointer only.
    slot.set_room(unsafe { (*slot.owner.get().cast::<Store<T>>()).advance(slot.node()) });
}

/// Stops the program: a variable is not of the tape that records.
#[cold]
#[inline(never)]
pub(super) fn foreign() -> ! {
    panic!(
        "a tape variable was used on another tape, on another thread, or after its tape was reset: it is of another generation. What an \
         inner derivative needs of an outer one goes in by its value, or through nested types (`Var<Var>`, `scalar::record`)"
    )
}

/// Puts a store in the slot of its type for the life of the guard.
pub(super) struct Installed<T: Taped> {
    store: *mut Store<T>,
    previous: Slot,
}

impl<T: Taped> Installed<T> {
    /// # Safety
    /// The store must outlive the guard and be reached through this pointer only, and guards of one thread must
    /// be dropped in the opposite order of their creation.
    #[inline]
    pub unsafe fn new(store: *mut Store<T>, generation: u32) -> Self {
        // SAFETY: the caller's promise.
        unsafe { Self::with_inputs(store, generation, 0) }
    }

    /// As [`new`](Self::new), with the nodes `1..=inputs` taken for inputs.
    ///
    /// # Safety
    /// The same.
    #[inline(always)]
    pub unsafe fn with_inputs(store: *mut Store<T>, generation: u32, inputs: u32) -> Self {
        let first = 1 + inputs;
        let here = Slot {
            owner: Cell::new(store.cast()),
            of: Cell::new(TypeId::of::<T>()),
            at: Cell::new(u64::from(generation) << 32 | u64::from(first)),
            ..Slot::EMPTY
        };
        // SAFETY: by the caller's promise the store is there, and nobody else looks at it.
        here.set_room(unsafe { (*store).start(first) });
        slot::<T, _>(|slot| slot.swap(&here));
        Installed { store, previous: here }
    }

    /// Runs `f` on the slot, if this is the tape in it.
    pub fn with<R>(&self, f: impl FnOnce(&SlotView<'_, T>) -> R) -> R {
        f(&self.view())
    }

    /// The slot, if this is the tape in it.
    #[inline(always)]
    pub fn view(&self) -> SlotView<'_, T> {
        let slot = here::<T>();
        // SAFETY: the slots are there for as long as their thread, which the guard does not leave.
        let slot = unsafe { &*slot };
        assert!(
            slot.owner.get() == self.store.cast(),
            "this tape is not recording: another one was started inside"
        );
        SlotView { slot, store: self.store }
    }

    pub fn generation(&self) -> u32 {
        slot::<T, _>(Slot::generation)
    }
}

impl<T: Taped> Drop for Installed<T> {
    #[inline(always)]
    fn drop(&mut self) {
        // What is in the slot is not read: it was written in other pieces just now, and the processor would wait for them.
        slot::<T, _>(|slot| slot.set(&self.previous));
    }
}

/// Runs `f` on the tape of `T` that is recording on this thread.
pub(super) fn with_current<T: Taped, R>(f: impl FnOnce(&SlotView<'_, T>) -> R) -> R {
    slot::<T, _>(|slot| {
        assert!(
            slot.of.get() == TypeId::of::<T>(),
            "no tape of this type is recording; derivatives end with the call that made them"
        );
        f(&SlotView { slot, store: slot.owner.get().cast() })
    })
}

/// Whether a tape of `T` is recording on this thread.
pub(super) fn is_recording<T: Taped>() -> bool {
    slot::<T, _>(|slot| slot.of.get() == TypeId::of::<T>())
}

/// The recording tape: its cells and its store together.
pub(super) struct SlotView<'a, T> {
    slot: &'a Slot,
    store: *mut Store<T>,
}

impl<T: Taped> SlotView<'_, T> {
    /// The node after the last one.
    pub fn node(&self) -> u32 {
        self.slot.node()
    }

    pub fn generation(&self) -> u32 {
        self.slot.generation()
    }

    /// Stops the program if the variable is not of this tape.
    #[inline(always)]
    pub fn check(&self, x: Var<T>) {
        if !x.is_constant() && x.generation() != self.generation() {
            foreign();
        }
    }

    /// The store. User code must not run while the reference lives.
    #[allow(clippy::mut_from_ref)]
    pub fn store(&self) -> &mut Store<T> {
        // SAFETY: the installation's promise; no other reference is made while user code does not run.
        unsafe { &mut *self.store }
    }

    /// Whether nothing has been recorded.
    pub fn is_fresh(&self) -> bool {
        self.slot.node() == self.store().first()
    }

    /// Takes `n` nodes without records, of a fresh tape.
    pub fn skip_nodes(&self, n: u32) {
        debug_assert!(self.is_fresh());
        let node = self.slot.node().checked_add(n).expect("a tape holds at most 2^31 nodes");
        let at = self.slot.at.get() + u64::from(n);
        self.slot.at.set(at);
        self.slot.set_room(self.store().start(node));
    }

    /// Takes the tape out of its slot for a sweep, until the guard is dropped: what external functions do cannot reach it.
    #[inline]
    pub fn pause(&self) -> Option<Paused<T>> {
        if self.store().many.is_empty() {
            return None;
        }
        let away = Slot::EMPTY;
        self.slot.swap(&away);
        Some(Paused { away, of: std::marker::PhantomData })
    }

    /// Makes `node` the next one, forgetting what came after, under a new generation if one is given.
    pub fn rewind(&self, node: u32, generation: Option<u32>) {
        let generation = generation.unwrap_or(self.slot.generation());
        self.slot.at.set(u64::from(generation) << 32 | u64::from(node));
        self.slot.set_room(self.store().rewind(node));
    }
}

/// A tape that is away from its slot, and returns when this is dropped.
pub(super) struct Paused<T: Taped> {
    away: Slot,
    of: std::marker::PhantomData<T>,
}

impl<T: Taped> Drop for Paused<T> {
    fn drop(&mut self) {
        slot::<T, _>(|slot| slot.swap(&self.away));
    }
}
