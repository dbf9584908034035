//! What is wrong with a text, and where.

use std::fmt;

/// A range of bytes of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// The byte after the last.
    pub end: usize,
}

impl Span {
    /// From `start` to before `end`.
    pub fn new(start: usize, end: usize) -> Span {
        Span { start, end }
    }

    /// The least range that covers both.
    pub fn to(self, other: Span) -> Span {
        Span { start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

/// A mistake in a text: what, where, and what would have been right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What is wrong, and what was expected.
    pub message: String,
    /// The way out, if there is one.
    pub help: Option<String>,
    /// The place, if there is one.
    pub span: Option<Span>,
}

impl Problem {
    /// A mistake at a place.
    pub fn at(span: Span, message: impl Into<String>) -> Problem {
        Problem { message: message.into(), help: None, span: Some(span) }
    }

    /// A mistake of the whole.
    pub fn new(message: impl Into<String>) -> Problem {
        Problem { message: message.into(), help: None, span: None }
    }

    /// With a way out.
    pub fn help(mut self, help: impl Into<String>) -> Problem {
        self.help = Some(help.into());
        self
    }

    /// The message, the line of `text` with a caret below the place, and the help.
    ///
    /// ```
    /// let text = "x + (y";
    /// let problem = pullback_expr::parse(text).unwrap_err();
    /// assert_eq!(
    ///     problem.show("expression", text),
    ///     "expected `)` before the end\n --> expression:1:7\n  |\n1 | x + (y\n  |       ^\n  = help: the bracket opened at column 5",
    /// );
    /// ```
    pub fn show(&self, name: &str, text: &str) -> String {
        let mut out = self.message.clone();
        if let Some(span) = self.span {
            out.push_str(&excerpt(name, text, span));
        }
        if let Some(help) = &self.help {
            out.push_str("\n  = help: ");
            out.push_str(help);
        }
        out
    }
}

/// Lines longer than this are shown around the place only.
const WIDTH: usize = 100;

fn excerpt(name: &str, text: &str, span: Span) -> String {
    let start = floor_boundary(text, span.start);
    let end = floor_boundary(text, span.end.max(start));
    let line_start = text[..start].rfind('\n').map_or(0, |k| k + 1);
    let line_end = text[start..].find('\n').map_or(text.len(), |k| start + k);
    let number = text[..start].matches('\n').count() + 1;
    let column = text[line_start..start].chars().count();
    let count = text[start..end.min(line_end)].chars().count().max(1);
    let skip = column.saturating_sub(WIDTH / 2);
    let shown = |c: char| if c.is_control() { ' ' } else { c };
    let line: String = text[line_start..line_end].chars().skip(skip).take(WIDTH).map(shown).collect();
    let carets = "^".repeat(count.min(WIDTH - (column - skip).min(WIDTH - 1)));
    let gutter = " ".repeat(number.to_string().len());
    let column_shown = column + 1;
    let indent = " ".repeat(column - skip);
    format!(
        "\n{gutter}--> {name}:{number}:{column_shown}\n{gutter} |\n{number} | {line}\n{gutter} | {indent}{carets}"
    )
}

fn floor_boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Problem {}
