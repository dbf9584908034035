//! Tables of numbers as text: values separated by commas, or by what else is said.
//!
//! ```
//! use pullback::{csv::Csv, prelude::*};
//! let table = Csv::new().header().parse("height,weight\n1.8,75\n1.7,\n")?;
//! assert_eq!(table.names, ["height", "weight"]);
//! assert_eq!(table.values.shape(), [2, 2]);
//! assert!(table.values.item_at([1, 1]).is_nan()); // missing
//! assert_eq!(table.column("height")?.to_vec::<f64>(), [1.8, 1.7]);
//! # Ok::<(), pullback::Error>(())
//! ```

use crate::error::{Error, Result, Within, err};
use crate::replace::{replace, unusable};
use crate::tensor::Tensor;
use std::borrow::Cow;
use std::fmt::Write;
use std::panic::Location;
use std::path::Path;

/// The byte order mark that some programs begin a text with.
const MARK: char = '\u{feff}';

/// How a table is written.
#[derive(Clone, Debug)]
pub struct Csv {
    separator: char,
    header: bool,
}

/// What was read.
#[derive(Clone, Debug)]
pub struct Table {
    /// The names of the columns, if there was a line of them.
    pub names: Vec<String>,
    /// A row for each line, f64. What is missing is NaN.
    pub values: Tensor,
}

impl Default for Csv {
    fn default() -> Csv {
        Csv { separator: ',', header: false }
    }
}

impl Csv {
    /// Numbers between commas, without a header.
    #[must_use]
    pub fn new() -> Csv {
        Csv::default()
    }

    /// The first line has the names of the columns.
    #[must_use]
    pub fn header(mut self) -> Csv {
        self.header = true;
        self
    }

    /// What stands between numbers: `;` or `\t`, say. Between spaces there may be any number of them.
    #[must_use]
    pub fn separator(mut self, separator: char) -> Csv {
        self.separator = separator;
        self
    }

    /// Reads a file.
    #[track_caller]
    #[doc(alias = "loadtxt")]
    #[doc(alias = "genfromtxt")]
    #[doc(alias = "read_csv")]
    pub fn load(&self, path: impl AsRef<Path>) -> Result<Table> {
        let (path, location) = (path.as_ref(), Location::caller());
        let read = || {
            let bytes = std::fs::read(path).map_err(unusable)?;
            self.read(&bytes)
        };
        read().map_err(|e: Error| e.within(path.display()).in_op("csv").at(location))
    }

    /// Reads a text. Empty fields are missing, and so are `NA`, `N/A`, `n/a`, `#N/A`, `<NA>`, `NULL`, `null` and `None`; `nan` and `inf` are numbers. Fields may
    /// be quoted, with ends of lines and doubled quotes inside, and empty lines are passed over.
    ///
    /// ```
    /// use pullback::csv::Csv;
    /// let e = Csv::new().parse("1,2\n3,four").unwrap_err();
    /// assert!(e.to_string().contains("line 2, column 2: `four` is not a number"));
    /// ```
    #[track_caller]
    pub fn parse(&self, text: &str) -> Result<Table> {
        self.read(text.as_bytes()).within("csv")
    }

    fn read(&self, bytes: &[u8]) -> Result<Table> {
        let text =
            std::str::from_utf8(bytes).map_err(|e| err!(Format, "byte {} is not UTF-8", e.valid_up_to()))?;
        let text = text.strip_prefix(MARK).unwrap_or(text);
        let mut records = Records { rest: text, line: 1, separator: self.separator };
        let (mut names, mut columns) = (Vec::new(), None);
        if self.header
            && let Some((_, fields)) = records.next()?
        {
            names = fields.into_iter().map(Cow::into_owned).collect();
            columns = Some(names.len());
        }
        let (mut values, mut rows) = (Vec::new(), 0);
        while let Some((line, fields)) = records.next()? {
            match columns {
                Some(n) if n != fields.len() => {
                    let found = fields.len();
                    return Err(err!(Format, "line {line} has {found} fields, but those before it have {n}"));
                }
                _ => columns = Some(fields.len()),
            }
            for (column, field) in fields.iter().enumerate() {
                values.push(number(field).ok_or_else(|| {
                    let field: String = field.chars().take(40).collect();
                    let column = column + 1;
                    err!(Format, "line {line}, column {column}: `{}` is not a number", field.escape_debug())
                })?);
            }
            rows += 1;
        }
        let values = Tensor::try_from_slice(&values, [rows, columns.unwrap_or(0)])?;
        Ok(Table { names, values })
    }

    /// Writes a matrix, or a vector as a column, to a file. NaN is written as nothing. The names are those of a header, if it has one.
    ///
    /// ```
    /// use pullback::{csv::Csv, prelude::*};
    /// let text = Csv::new().header().print(&Tensor::from([[1.0, f64::NAN], [0.5, 3.0]]), &["a", "b"])?;
    /// assert_eq!(text, "a,b\n1,\n0.5,3\n");
    /// # Ok::<(), pullback::Error>(())
    /// ```
    #[track_caller]
    #[doc(alias = "savetxt")]
    #[doc(alias = "to_csv")]
    pub fn save(&self, values: &Tensor, names: &[&str], path: impl AsRef<Path>) -> Result<()> {
        let (path, location) = (path.as_ref(), Location::caller());
        let write = || {
            let text = self.text(values, names)?;
            replace(path, |out| out.write_all(text.as_bytes())).map_err(unusable)
        };
        write().map_err(|e: Error| e.within(path.display()).in_op("csv").at(location))
    }

    /// What [`save`](Csv::save) writes.
    #[track_caller]
    pub fn print(&self, values: &Tensor, names: &[&str]) -> Result<String> {
        self.text(values, names).within("csv")
    }

    fn text(&self, values: &Tensor, names: &[&str]) -> Result<String> {
        let columns = match *values.shape() {
            [_] => 1,
            [_, n] => n,
            _ => return Err(err!(Shape, "a table has two axes, and a column one; got {:?}", values.shape())),
        };
        let mut out = String::new();
        if self.header {
            if names.len() != columns {
                return Err(err!(Value, "{} names were given for {columns} columns", names.len()));
            }
            // Also what would be taken for an empty line, for space around a name, or for the mark at the start of a file.
            let apart = |c: char| c == self.separator || c == '"' || c == MARK || c.is_whitespace();
            let quoted = |name: &&str| match name.is_empty() || name.contains(apart) {
                true => format!("\"{}\"", name.replace('"', "\"\"")),
                false => (*name).to_owned(),
            };
            let line: Vec<String> = names.iter().map(quoted).collect();
            out.push_str(&line.join(&self.separator.to_string()));
            out.push('\n');
        }
        for row in values.try_to_vec::<f64>()?.chunks(columns.max(1)) {
            for (k, v) in row.iter().enumerate() {
                if k > 0 {
                    out.push(self.separator);
                }
                // Writing to a string does not fail. A line must not be empty, or it would be passed over.
                let _ = match v.is_nan() && columns > 1 && self.separator != ' ' {
                    true => Ok(()),
                    false => write!(out, "{v}"),
                };
            }
            out.push('\n');
        }
        Ok(out)
    }
}

fn number(field: &str) -> Option<f64> {
    match field.trim() {
        "" | "NA" | "N/A" | "n/a" | "#N/A" | "<NA>" | "NULL" | "null" | "None" => Some(f64::NAN),
        field => field.parse().ok(),
    }
}

/// The records of a text, each on a line, or on several where the ends of lines are quoted.
struct Records<'a> {
    rest: &'a str,
    /// The number of the line that the rest begins in.
    line: usize,
    separator: char,
}

impl<'a> Records<'a> {
    /// The fields of the next line that is not empty, without the quotes and the white space around them, and the number of that line.
    fn next(&mut self) -> Result<Option<(usize, Vec<Cow<'a, str>>)>> {
        loop {
            let (line, after) = self.rest.split_once('\n').unwrap_or((self.rest, ""));
            if !line.chars().all(|c| self.is_space(c)) {
                break;
            }
            if after.is_empty() {
                return Ok(None);
            }
            (self.rest, self.line) = (after, self.line + 1);
        }
        let (line, mut fields) = (self.line, Vec::new());
        loop {
            let (field, is_last) = self.field(fields.len() + 1)?;
            fields.push(field);
            if is_last {
                return Ok(Some((line, fields)));
            }
        }
    }

    /// White space that separates nothing, or any amount of which separates. A line of tabs between which everything is missing is not empty.
    fn is_space(&self, c: char) -> bool {
        c.is_whitespace() && c != '\n' && (c != self.separator || c == ' ')
    }

    /// The next field, and whether it is the last one of its line.
    fn field(&mut self, column: usize) -> Result<(Cow<'a, str>, bool)> {
        let spaced = self.separator == ' ';
        let start = self.rest.trim_start_matches(|c| self.is_space(c));
        let field = match start.strip_prefix('"') {
            Some(quoted) => Cow::Owned(self.quoted(quoted, column)?),
            None => {
                let ends = |c: char| c == '\n' || c == self.separator || spaced && c.is_whitespace();
                let (field, rest) = start.split_at(start.find(ends).unwrap_or(start.len()));
                self.rest = rest;
                Cow::Borrowed(field.trim_end())
            }
        };
        let after = self.rest.trim_start_matches(|c| self.is_space(c));
        let is_separated = spaced && after.len() < self.rest.len();
        self.rest = after;
        match after.chars().next() {
            None => Ok((field, true)),
            Some('\n') => {
                (self.rest, self.line) = (&after[1..], self.line + 1);
                Ok((field, true))
            }
            Some(c) if c == self.separator => {
                self.rest = &after[c.len_utf8()..];
                Ok((field, false))
            }
            Some(_) if is_separated => Ok((field, false)),
            Some(_) => {
                Err(err!(Format, "line {}, column {column}: something follows the closing quote", self.line))
            }
        }
    }

    /// What stands in quotes, the first of which was taken. Two of them are one inside.
    fn quoted(&mut self, mut inside: &'a str, column: usize) -> Result<String> {
        let mut field = String::new();
        loop {
            let Some((part, next)) = inside.split_once('"') else {
                let line = self.line;
                return Err(err!(Format, "line {line}, column {column}: a quote that is not closed"));
            };
            field.push_str(part);
            match next.strip_prefix('"') {
                Some(more) => {
                    field.push('"');
                    inside = more;
                }
                None => {
                    self.rest = next;
                    self.line += field.matches('\n').count();
                    return Ok(field);
                }
            }
        }
    }
}

impl Table {
    /// The column of a name.
    #[track_caller]
    pub fn column(&self, name: &str) -> Result<Tensor> {
        match self.names.iter().position(|n| n == name) {
            Some(k) => self.values.try_narrow(1, k, 1)?.try_squeeze(1),
            None => Err(err!(Value, "there is no column `{name}`")).within("column"),
        }
    }
}
