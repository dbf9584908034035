//! What a compiled function has been made into, in words.

use super::run::Compiled;
use std::fmt;
use std::panic::Location;

/// What [`compile`](crate::compile) has made of a function, to be printed.
pub struct Explanation {
    text: String,
}

impl Explanation {
    pub(super) fn new<'a>(
        location: &'static Location<'static>,
        traces: usize,
        reasons: &[String],
        compiled: impl Iterator<Item = &'a Compiled>,
    ) -> Explanation {
        use fmt::Write;
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = writeln!(text, "compiled at {location}, traced {traces} times");
        for reason in reasons {
            let _ = writeln!(text, "  again, because {reason}");
        }
        for c in compiled {
            let _ = writeln!(text, "{:#}", c.optimised());
        }
        Explanation { text }
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
