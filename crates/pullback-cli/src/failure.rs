//! Why the program ends without a result, and the number that it tells the shell.

use pullback_expr::Problem;
use std::fmt::Display;

/// A message for standard error, and an exit code.
#[derive(Debug)]
pub struct Failure {
    pub message: String,
    pub code: u8,
}

/// Input that cannot be used.
pub const BAD_INPUT: u8 = 2;
/// The input was fine, and the answer is no: a check that failed, a search that has not converged.
pub const NO: u8 = 1;

pub type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    pub fn new(message: impl Display) -> Failure {
        Failure { message: message.to_string(), code: BAD_INPUT }
    }

    /// A mistake in a text, with its line and a caret.
    pub fn in_text(problem: &Problem, name: &str, text: &str) -> Failure {
        Failure::new(problem.show(name, text))
    }
}

impl From<pullback::Error> for Failure {
    fn from(e: pullback::Error) -> Failure {
        Failure::new(plain(&e))
    }
}

/// An error of the library without the line of our own code that it happened in.
pub fn plain(e: &pullback::Error) -> String {
    let text = e.to_string();
    match e.location() {
        Some(l) => text.replace(&format!(" [{}:{}:{}]", l.file(), l.line(), l.column()), ""),
        None => text,
    }
}

/// A file or a stream that could not be used.
pub fn io(what: impl Display) -> impl FnOnce(std::io::Error) -> Failure {
    move |e| Failure::new(format!("{what}: {e}"))
}
