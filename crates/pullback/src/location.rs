//! Which line of the user's code an operation or an error belongs to.

use std::cell::Cell;
use std::panic::Location;

thread_local! {
    static CALLER: Cell<Option<&'static Location<'static>>> = const { Cell::new(None) };
    static ENTERED: Cell<Option<&'static Location<'static>>> = const { Cell::new(None) };
}

/// Runs its closure when dropped, so that a panic in user code leaves no state behind.
pub(crate) struct Restore<F: FnMut()>(pub F);

impl<F: FnMut()> Drop for Restore<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// The line that an operation is recorded under: inside a rule, that of the forward operation it belongs to.
#[track_caller]
pub(crate) fn caller() -> &'static Location<'static> {
    match CALLER.get() {
        Some(location) => location,
        None => Location::caller(), // not in a closure, which would hide the caller
    }
}

/// Runs `f` as if all its operations stood at `location`.
pub(crate) fn with_caller<T>(location: &'static Location<'static>, f: impl FnOnce() -> T) -> T {
    let before = CALLER.replace(Some(location));
    let _restore = Restore(|| CALLER.set(before));
    f()
}

/// For as long as it lives, lines of this library that errors would name are said to be the line of the user's that it was made with.
pub(crate) struct Entered(Option<&'static Location<'static>>);

impl Drop for Entered {
    fn drop(&mut self) {
        ENTERED.set(self.0);
    }
}

/// The user has called a transform at `location`. It goes on to call closures, to which Rust does not hand the line on.
pub(crate) fn entered(location: &'static Location<'static>) -> Entered {
    Entered(ENTERED.replace(Some(users_line(location))))
}

/// A line of the user's code for one that may be of this library: that of the innermost transform which was [`entered`]. Paths are compared
/// only when something has failed, or a transform is entered inside of another.
pub(crate) fn users_line(location: &'static Location<'static>) -> &'static Location<'static> {
    match ENTERED.get() {
        Some(users) if is_ours(location) => users,
        _ => location,
    }
}

/// Whether a line is of this library.
pub(crate) fn is_ours(location: &Location) -> bool {
    location.file().starts_with(file!().trim_end_matches("location.rs"))
}
