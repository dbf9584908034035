//! Tapes that a thread keeps for the next call that needs one.

use super::slot::{SLOTS, Taped};
use super::{Recording, Tape};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::ptr::NonNull;

thread_local! {
    /// For each slot the tape that worked there last, out of its box. A gradient of a dozen records takes no longer than a search
    /// through a list, or than asking whether a destructor has run; so there is neither, and [`Idle`] does the cleaning up.
    static LATEST: [Cell<Option<NonNull<dyn Any>>>; SLOTS] = const { [const { Cell::new(None) }; SLOTS] };
    /// The other tapes that are not at work, of all types.
    static IDLE: Idle = const { Idle(RefCell::new(Vec::new())) };
}

struct Idle(RefCell<Vec<Box<dyn Any>>>);

impl Drop for Idle {
    fn drop(&mut self) {
        (0..SLOTS).for_each(|slot| drop(exchange(slot, None)));
    }
}

/// Puts a tape in the place of the latest one; the one that was there.
#[inline(always)]
fn exchange(slot: usize, tape: Option<Box<dyn Any>>) -> Option<Box<dyn Any>> {
    let tape = tape.map(|tape| NonNull::from(Box::leak(tape)));
    let before = LATEST.with(|latest| latest[slot].replace(tape));
    // SAFETY: what is in the cell came out of a box, and nobody else has it any more.
    before.map(|before| unsafe { Box::from_raw(before.as_ptr()) })
}

/// Keeps a tape that is not the latest of its slot.
#[cold]
fn keep(tape: Box<dyn Any>) {
    IDLE.with(|idle| idle.0.borrow_mut().push(tape));
}

/// A tape that is not the latest of its slot, or a new one. This is also what makes the thread clean up in the end.
#[cold]
fn search<T: Taped>() -> Box<Tape<T>> {
    let found = IDLE.with(|idle| {
        let mut idle = idle.0.borrow_mut();
        let at = idle.iter().rposition(|tape| tape.is::<Tape<T>>())?;
        idle.swap_remove(at).downcast::<Tape<T>>().ok()
    });
    found.unwrap_or_default()
}

/// A tape whose memory is warm from an earlier call on this thread, if there was one.
#[inline(always)]
pub(super) fn take_idle_tape<T: Taped>() -> Box<Tape<T>> {
    let latest = exchange(T::SLOT, None).and_then(|tape| tape.downcast::<Tape<T>>().map_err(keep).ok());
    latest.unwrap_or_else(search)
}

/// Keeps a tape for the next call.
#[inline(always)]
pub(super) fn keep_idle_tape<T: Taped>(tape: Box<Tape<T>>) {
    if let Some(other) = exchange(T::SLOT, Some(tape)) {
        keep(other);
    }
}

/// Runs `f` with a tape whose memory is warm from an earlier call on this thread, if there was one.
pub(in crate::scalar) fn with_idle_tape<T: Taped, R>(f: impl FnOnce(&mut Tape<T>) -> R) -> R {
    let mut tape = take_idle_tape();
    let result = f(&mut tape);
    keep_idle_tape(tape);
    result
}

/// Runs `f` with a tape of this thread recording, whose memory is kept for the next call: [`Tape::record`] for when there is no place
/// to keep a tape.
///
/// ```
/// use pullback::scalar::{self, Real, Recording, Taped};
/// /// The derivative of a cube, at numbers that may have derivatives themselves.
/// fn slope<T: Taped>(x: T) -> T {
///     scalar::record(|t: &Recording<'_, T>| {
///         let x = t.input(x);
///         t.derivative(x.powi(3), x)
///     })
/// }
/// assert_eq!(slope(2.0), 12.0);
/// assert_eq!(scalar::gradient(|x| slope(x[0]), &[2.0]), [12.0]);
/// ```
pub fn record<T: Taped, R>(f: impl FnOnce(&Recording<'_, T>) -> R) -> R {
    with_idle_tape(|tape: &mut Tape<T>| tape.record(f))
}

/// Gives back the memory that the convenience functions keep on this thread.
pub fn free_tapes() {
    (0..SLOTS).for_each(|slot| drop(exchange(slot, None)));
    IDLE.with(|idle| idle.0.borrow_mut().clear());
}
