//! What the current thread is doing: which transforms are suspended, and which checks are on.

use smallvec::SmallVec;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::panic::Location;
use std::ptr;

use super::level::{AMBIENT, Deps, newest};
#[cfg(doc)]
use crate::DType;
use crate::location::Restore;

type SavedBy = (&'static str, &'static Location<'static>);

thread_local! {
    static PAUSES: Cell<*const Pause> = const { Cell::new(ptr::null()) };
    static FORGETS: Cell<*const Forget> = const { Cell::new(ptr::null()) };
    static STAND_INS: RefCell<SmallVec<[u64; 2]>> = const { RefCell::new(SmallVec::new_const()) };
    static ANOMALY: Cell<bool> = const { Cell::new(false) };
    static STRICT_DTYPES: Cell<bool> = const { Cell::new(false) };
    static STRICT: RefCell<Option<HashMap<u64, SavedBy>>> = const { RefCell::new(None) };
}

/// A scope in which nothing is recorded for some transforms, or is again. It lies in the frame of the function that runs
/// the scope, so that every operation can ask at the price of a pointer.
struct Pause {
    levels: *const [u64],
    suspended: bool,
    outer: *const Pause,
}

#[inline]
pub(super) fn is_suspended(level: u64) -> bool {
    says(level, 0) == Some(true)
}

/// What the innermost scope that says something of `level` decides, of those inside of the one at the address `until`.
#[inline]
fn says(level: u64, until: usize) -> Option<bool> {
    let mut at = PAUSES.get();
    while at.addr() != until {
        // SAFETY: a scope is in the list only while `paused` runs, which keeps it and its levels alive.
        let Some(pause) = (unsafe { at.as_ref() }) else { break };
        // SAFETY: as above.
        if unsafe { &*pause.levels }.contains(&level) {
            return Some(pause.suspended);
        }
        at = pause.outer;
    }
    None
}

fn paused<T>(levels: &[u64], suspended: bool, f: impl FnOnce() -> T) -> T {
    let outer = PAUSES.get();
    let pause = Pause { levels, suspended, outer };
    PAUSES.set(&pause);
    let _restore = Restore(|| PAUSES.set(outer));
    f()
}

/// Runs `f` while nothing is recorded for `level`: a rule sees its values without the transform that it serves.
pub(crate) fn suspended<T>(level: u64, f: impl FnOnce() -> T) -> T {
    suspended_all(&[level], f)
}

/// [`suspended`] for several.
pub(crate) fn suspended_all<T>(levels: &[u64], f: impl FnOnce() -> T) -> T {
    paused(levels, true, f)
}

/// Runs `f` without recording anything for [`backward`](crate::Tensor::backward).
///
/// Function transforms such as [`grad`](crate::grad) are not affected: they ask for derivatives explicitly.
///
/// ```
/// use pullback::prelude::*;
/// let x = Tensor::scalar(2.0).requires_grad();
/// assert!(!no_grad(|| x.square()).needs_grad());
/// ```
pub fn no_grad<T>(f: impl FnOnce() -> T) -> T {
    suspended_all(&ambient(), f)
}

/// Records again inside [`no_grad`].
///
/// ```
/// use pullback::{enable_grad, prelude::*};
/// let x = Tensor::scalar(2.0).requires_grad();
/// assert!(no_grad(|| enable_grad(|| x.square())).needs_grad());
/// ```
pub fn enable_grad<T>(f: impl FnOnce() -> T) -> T {
    paused(&ambient(), false, f)
}

/// The transform behind `requires_grad`, and those that stand in for it.
fn ambient() -> SmallVec<[u64; 2]> {
    STAND_INS.with_borrow(|levels| levels.iter().copied().chain([AMBIENT]).collect())
}

/// Whether [`no_grad`] means this transform.
pub(crate) fn is_ambient(level: u64) -> bool {
    level == AMBIENT || STAND_INS.with_borrow(|levels| levels.contains(&level))
}

/// Runs `f` while `level` stands in for the transform behind `requires_grad`: what [`no_grad`] suspends.
pub(crate) fn standing_in<T>(level: u64, f: impl FnOnce() -> T) -> T {
    STAND_INS.with_borrow_mut(|levels| levels.push(level));
    let _restore = Restore(|| {
        STAND_INS.with_borrow_mut(|levels| levels.pop());
    });
    f()
}

/// A point in the nesting of scopes of this thread.
#[derive(Clone, Copy)]
pub(crate) struct Scope(usize);

impl Scope {
    pub fn here() -> Scope {
        Scope(PAUSES.get().addr())
    }

    /// Whether [`no_grad`] holds because of a scope that has begun since.
    pub fn is_quiet(self) -> bool {
        says(AMBIENT, self.0) == Some(true)
    }
}

/// Runs `f` with `level` recording again, inside [`suspended`].
pub(crate) fn resumed<T>(level: u64, f: impl FnOnce() -> T) -> T {
    paused(&[level], false, f)
}

/// A scope in which nothing is saved for the transforms `after < id <= upto`.
struct Forget {
    after: u64,
    upto: u64,
    /// The newest frame of one of these that an operation has worked in.
    entered: Cell<u64>,
    outer: *const Forget,
}

/// Runs `f` so that results know which of the transforms newer than `frame` that exist now they depend on, but not how they were made:
/// nothing is saved for them. Older transforms, and those that begin inside, record as ever. Tells also the newest frame of these that an
/// operation has worked in: that of a captured value, or 0.
pub(crate) fn forgetting<T>(frame: u64, f: impl FnOnce() -> T) -> (T, u64) {
    let outer = FORGETS.get();
    let forget = Forget { after: frame, upto: newest(), entered: Cell::new(0), outer };
    FORGETS.set(&forget);
    let _restore = Restore(|| FORGETS.set(outer));
    (f(), forget.entered.get())
}

/// Is told that an operation works in a frame.
pub(crate) fn enters(frame: u64) {
    forgetful().filter(|f| f.covers(frame)).for_each(|f| f.entered.set(f.entered.get().max(frame)));
}

/// Whether no transform that records wants a value with these dependencies.
#[inline]
pub(crate) fn forgets(deps: &Deps) -> bool {
    !FORGETS.get().is_null() && deps.ids().iter().all(|&id| forgetful().any(|f| f.covers(id)))
}

impl Forget {
    fn covers(&self, id: u64) -> bool {
        self.after < id && id <= self.upto
    }
}

/// The scopes that this thread is in, the innermost first.
fn forgetful<'a>() -> impl Iterator<Item = &'a Forget> {
    // SAFETY: a scope is in the list only while `forgetting` runs, which keeps it alive; nobody keeps what is iterated over.
    let scope = |at: *const Forget| unsafe { at.as_ref() };
    std::iter::successors(scope(FORGETS.get()), move |f| scope(f.outer))
}

/// Runs `f` as if it were called outside of all scopes: what it computes is kept for longer than they last.
pub(crate) fn outside_of_scopes<T>(f: impl FnOnce() -> T) -> T {
    let (pauses, forgets) = (PAUSES.replace(ptr::null()), FORGETS.replace(ptr::null()));
    let _restore = Restore(|| {
        PAUSES.set(pauses);
        FORGETS.set(forgets);
    });
    f()
}

/// Runs `f` and makes every backward pass in it stop at the first cotangent that is not finite, with an error that
/// names the operation and the line of forward code that it came from. [Compiled](crate::compile) functions run as they are written in it, operation by
/// operation, so that it finds what goes wrong in them too; they take longer there.
///
/// ```
/// use pullback::prelude::*;
/// let x = Tensor::scalar(0.0).requires_grad();
/// let e = detect_anomaly(|| x.ln().try_backward()).unwrap_err();
/// assert!(e.to_string().contains("ln"), "{e}");
/// ```
pub fn detect_anomaly<T>(f: impl FnOnce() -> T) -> T {
    let before = ANOMALY.replace(true);
    let _restore = Restore(|| ANOMALY.set(before));
    f()
}

pub(crate) fn detects_anomaly() -> bool {
    ANOMALY.get()
}

/// Runs `f` and makes every operation fail whose operands are of different types, instead of [promoting](DType::promote) them: so an f64 that has
/// come into a model of f32 is found where it came in. The error names the operation, both types and the line. Rust numbers are no operands of
/// another type: `x * 2.0` has the type of `x`. It holds on this thread, for as long as `f` runs.
///
/// ```
/// use pullback::{ErrorKind, prelude::*, strict_dtypes};
/// let w = DType::F32.ones([3]);
/// let scale = Tensor::from([0.1, 0.2, 0.3]); // f64
/// assert_eq!((&w * &scale).dtype(), DType::F64);
/// let e = strict_dtypes(|| w.try_mul(&scale)).unwrap_err();
/// assert_eq!(e.kind(), ErrorKind::DType);
/// assert!(e.to_string().starts_with("mul: f32 [3] and f64 [3] would both become f64"), "{e}");
/// assert_eq!(strict_dtypes(|| &w * DType::F32.tensor([0.1, 0.2, 0.3])).dtype(), DType::F32);
/// ```
pub fn strict_dtypes<T>(f: impl FnOnce() -> T) -> T {
    let before = STRICT_DTYPES.replace(true);
    let _restore = Restore(|| STRICT_DTYPES.set(before));
    f()
}

/// Whether types may not be mixed.
pub(crate) fn refuses_promotion() -> bool {
    STRICT_DTYPES.get()
}

/// Runs `f` and makes an update in place fail where it would have to copy, because an operation in `f` has saved the value for
/// its pullback. The error names that operation and its line.
///
/// ```
/// use pullback::{prelude::*, strict};
/// let e = strict(|| {
///     let mut x = Tensor::from([1.0, 2.0]).requires_grad().square();
///     let _y = x.square(); // keeps x
///     x.try_add_assign(1.0)
/// })
/// .unwrap_err();
/// assert!(e.to_string().contains("square"), "{e}");
/// ```
pub fn strict<T>(f: impl FnOnce() -> T) -> T {
    let before = STRICT.replace(Some(HashMap::new()));
    let mut before = Some(before);
    let _restore = Restore(|| STRICT.set(before.take().flatten()));
    f()
}

pub(crate) fn in_strict_mode() -> bool {
    STRICT.with_borrow(|s| s.is_some())
}

/// In strict mode, remembers which operation saved the value at address `node`.
pub(crate) fn note_saved(node: u64, op: &'static str, location: &'static Location<'static>) {
    STRICT.with_borrow_mut(|s| {
        if let Some(map) = s {
            map.entry(node).or_insert((op, location));
        }
    });
}

pub(crate) fn saved_by(node: u64) -> Option<SavedBy> {
    STRICT.with_borrow(|s| s.as_ref()?.get(&node).copied())
}
