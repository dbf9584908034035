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
    pub fn load(&self, path: impl AsRef<Path>) -> Result<Table> {
        let (path, location) = (path.as_ref(), Location::caller());
        let read = || {
            let bytes = std::fs::read(path).map_err(unusable)?;
            self.read(&bytes)
        };
        read().map_err(|e: Error| e.within(path.display()).in_op("csv").at(location))
    }

    /// Reads a text. Empty fields and `NA` are missing, and `nan` and `inf` are numbers; fields may be quoted, and empty lines are passed over.
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
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        // A line of separators is a row of which everything is missing.
        let blank = |c: char| c.is_whitespace() && (c != self.separator || c == ' ');
        let mut lines = text.lines().enumerate().filter(|(_, line)| !line.chars().all(blank));
        let (mut names, mut columns) = (Vec::new(), None);
        if self.header
            && let Some((k, line)) = lines.next()
        {
            names = self.fields(line, k)?.into_iter().map(Cow::into_owned).collect();
            columns = Some(names.len());
        }
        let (mut values, mut rows) = (Vec::new(), 0);
        for (k, line) in lines {
            let fields = self.fields(line, k)?;
            match columns {
                Some(n) if n != fields.len() => {
                    let (line, found) = (k + 1, fields.len());
                    return Err(err!(Format, "line {line} has {found} fields, but those before it have {n}"));
                }
                _ => columns = Some(fields.len()),
            }
            for (column, field) in fields.iter().enumerate() {
                values.push(number(field).ok_or_else(|| {
                    let field: String = field.chars().take(40).collect();
                    let (line, column) = (k + 1, column + 1);
                    err!(Format, "line {line}, column {column}: `{}` is not a number", field.escape_debug())
                })?);
            }
            rows += 1;
        }
        let values = Tensor::try_from_slice(&values, [rows, columns.unwrap_or(0)])?;
        Ok(Table { names, values })
    }

    /// The fields of a line, without the quotes and the white space around them.
    fn fields<'a>(&self, line: &'a str, k: usize) -> Result<Vec<Cow<'a, str>>> {
        if self.separator == ' ' {
            return Ok(line.split_whitespace().map(Cow::Borrowed).collect());
        }
        let (mut fields, mut rest) = (Vec::new(), line);
        loop {
            let start = rest.trim_start_matches([' ', '\r']);
            let Some(quoted) = start.strip_prefix('"') else {
                let (field, next) =
                    rest.split_once(self.separator).map_or((rest, None), |(a, b)| (a, Some(b)));
                fields.push(Cow::Borrowed(field.trim()));
                match next {
                    Some(next) => rest = next,
                    None => return Ok(fields),
                }
                continue;
            };
            let unclosed =
                || err!(Format, "line {}, column {}: a quote that is not closed", k + 1, fields.len() + 1);
            // Two quotes are one inside of quotes.
            let (mut field, mut inside) = (String::new(), quoted);
            let after = loop {
                let (part, next) = inside.split_once('"').ok_or_else(unclosed)?;
                field.push_str(part);
                match next.strip_prefix('"') {
                    Some(more) => {
                        field.push('"');
                        inside = more;
                    }
                    None => break next.trim_start_matches([' ', '\r']),
                }
            };
            fields.push(Cow::Owned(field));
            match after.strip_prefix(self.separator) {
                Some(next) => rest = next,
                None if after.is_empty() => return Ok(fields),
                None => {
                    let (line, column) = (k + 1, fields.len());
                    return Err(err!(
                        Format,
                        "line {line}, column {column}: something follows the closing quote"
                    ));
                }
            }
        }
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
            let quoted = |name: &&str| match name.contains([self.separator, '"', '\n', '\r', ' ']) {
                true => format!("\"{}\"", name.replace('"', "\"\"").replace(['\n', '\r'], " ")),
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
    match field {
        "" | "NA" | "N/A" => Some(f64::NAN),
        _ => field.parse().ok(),
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
