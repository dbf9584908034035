//! The one error type of the library.

use crate::location::{caller, is_ours, users_line};
use std::cell::Cell;
use std::fmt;
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};

/// What went wrong, in a form that a program can act on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Shapes do not fit together, or a shape is impossible.
    Shape,
    /// An element type that the operation does not take.
    DType,
    /// An axis that the tensor does not have, or that was named twice.
    Axis,
    /// An index outside its axis.
    Index,
    /// An argument outside the values it may take.
    Value,
    /// A derivative that was asked for and does not exist.
    Gradient,
    /// A cotangent that is not finite, found by [`detect_anomaly`](crate::detect_anomaly).
    NotFinite,
    /// A value that had to be copied in [`strict`](crate::strict) mode.
    Copied,
    /// Trees that do not have the same structure.
    Structure,
    /// Memory that the system does not give.
    Memory,
    /// A file that could not be read or written.
    Io,
    /// Bytes that are not what the format asks for.
    Format,
}

/// Why an operation could not be done: the operation, its inputs, the rule that was broken, the line of the
/// caller and, where there is one, the way out.
///
/// ```
/// use pullback::{ErrorKind, prelude::*};
/// let e = Tensor::zeros([2, 3]).try_matmul(&Tensor::zeros([4, 5])).unwrap_err();
/// assert_eq!(e.kind(), ErrorKind::Shape);
/// assert!(e.to_string().starts_with("matmul: "));
/// ```
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    op: Option<&'static str>,
    message: String,
    location: Option<&'static Location<'static>>,
}

/// The result of an operation that can fail.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Error(Box::new(Inner { kind, op: None, message: message.into(), location: None }))
    }

    /// Puts the place where it happened before the message.
    pub(crate) fn within(mut self, place: impl fmt::Display) -> Self {
        self.0.message = format!("{place}: {}", self.0.message);
        self
    }

    /// Names the operation, unless an inner one was named already.
    pub(crate) fn in_op(mut self, op: &'static str) -> Self {
        self.0.op.get_or_insert(op);
        self
    }

    /// Names the operation as the user called it, whatever it was made of.
    pub(crate) fn renamed(mut self, op: &'static str) -> Self {
        self.0.op = Some(op);
        self
    }

    /// Adds the line of the user's code, unless a closer one is known.
    pub(crate) fn at(mut self, location: &'static Location<'static>) -> Self {
        self.0.location.get_or_insert_with(|| users_line(location));
        self
    }

    /// The line of the user's code, where a closer one is known than the last call.
    pub(crate) fn made_at(mut self, location: &'static Location<'static>) -> Self {
        self.0.location = Some(users_line(location));
        self
    }

    /// The class of the error.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The operation that failed, where there is one.
    pub fn op(&self) -> Option<&'static str> {
        self.0.op
    }

    /// The line of the caller's code.
    pub fn location(&self) -> Option<&'static Location<'static>> {
        self.0.location
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_words(f)?;
        match self.0.location {
            Some(l) => write!(f, " [{l}]"),
            None => Ok(()),
        }
    }
}

impl Error {
    fn write_words(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(op) = self.0.op {
            write!(f, "{op}: ")?;
        }
        f.write_str(&self.0.message)
    }
}

/// The error with its line first, as compilers have it.
struct LineFirst<'a>(&'a Error, &'static Location<'static>);

impl fmt::Display for LineFirst<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.1)?;
        self.0.write_words(f)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {}

/// Says which operation an error came from, and where that was called: not from within a closure, which would hide the caller.
pub(crate) trait Within {
    #[track_caller]
    fn within(self, op: &'static str) -> Self;
}

impl<T> Within for Result<T> {
    #[track_caller]
    fn within(self, op: &'static str) -> Self {
        let location = caller();
        self.map_err(|e| e.in_op(op).at(location))
    }
}

/// Builds an error from a kind and a format string.
macro_rules! err {
    ($kind:ident, $($message:tt)+) => {
        $crate::error::Error::new($crate::error::ErrorKind::$kind, format!($($message)+))
    };
}
pub(crate) use err;

/// The value, or a panic with the error's message at the caller's line. Where the caller is this library, in a closure that a transform has
/// returned or behind a trait of `std`, the message begins with the user's line.
#[track_caller]
pub(crate) fn or_panic<T>(result: Result<T>) -> T {
    match result {
        Ok(value) => value,
        Err(e) => fail(e),
    }
}

#[cold]
#[track_caller]
fn fail(e: Error) -> ! {
    // Without the panic hook: nobody is to be told of what comes back as an error.
    if CATCHING.get() {
        resume_unwind(Box::new(e));
    }
    let here = Location::caller();
    match is_ours(here) {
        true => panic!("{}", LineFirst(&e, e.location().unwrap_or(users_line(here)))),
        false => panic!("{e}"),
    }
}

thread_local! {
    /// Whether a panic with an error is on its way to [`caught`].
    static CATCHING: Cell<bool> = const { Cell::new(false) };
}

/// Runs a user's function in which operations may fail: what would be a panic with an error is returned as that error. Other
/// panics go on.
pub(crate) fn caught<T>(f: impl FnOnce() -> T) -> Result<T> {
    let outer = CATCHING.replace(true);
    let result = catch_unwind(AssertUnwindSafe(f));
    CATCHING.set(outer);
    result.map_err(|payload| match payload.downcast::<Error>() {
        Ok(e) => *e,
        Err(other) => resume_unwind(other),
    })
}
