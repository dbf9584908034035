//! Tables for people and programs, in every format the program writes.

use pullback_expr::json::Json;
use std::fmt::Write;

/// How a cell looks in a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    Plain,
    Name,
    Number,
    Result,
    Faint,
}

/// One field of a table.
#[derive(Clone, Debug)]
pub struct Cell {
    pub text: String,
    pub latex: Option<String>,
    pub tone: Tone,
}

impl Cell {
    pub fn new(text: impl Into<String>, tone: Tone) -> Cell {
        Cell { text: text.into(), latex: None, tone }
    }

    /// With a formula for LaTeX.
    pub fn latex(mut self, latex: impl Into<String>) -> Cell {
        self.latex = Some(latex.into());
        self
    }
}

impl From<&str> for Cell {
    fn from(s: &str) -> Cell {
        Cell::new(s, Tone::Plain)
    }
}

/// Rows under a title.
#[derive(Clone, Debug)]
pub struct Table {
    pub title: String,
    pub columns: Vec<String>,
    pub rows: Vec<Vec<Cell>>,
}

/// What a command has to say.
pub struct Report {
    /// The function and the point, above the tables.
    pub heading: String,
    pub tables: Vec<Table>,
    pub json: Json,
}

/// How to write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Aligned columns, with colour or not.
    Text {
        colour: bool,
    },
    /// The same in ASCII.
    Plain,
    Markdown,
    Latex,
    Csv,
    Json,
}

/// Names of columns.
pub fn columns<const N: usize>(names: [&str; N]) -> Vec<String> {
    names.map(String::from).to_vec()
}

impl Report {
    pub fn write(&self, format: Format) -> String {
        match format {
            Format::Text { colour } => self.text(colour),
            Format::Plain => self.in_ascii().text(false),
            Format::Markdown => self.markdown(),
            Format::Latex => self.latex(),
            Format::Csv => self.csv(),
            Format::Json => format!("{}\n", self.json),
        }
    }

    /// The same without signs that a plain terminal has not got: before it is aligned, because they take more room.
    fn in_ascii(&self) -> Report {
        let cell = |c: &Cell| Cell { text: ascii(&c.text), ..c.clone() };
        let rows = |t: &Table| t.rows.iter().map(|r| r.iter().map(cell).collect()).collect();
        let table = |t: &Table| Table {
            title: ascii(&t.title),
            columns: t.columns.iter().map(|c| ascii(c)).collect(),
            rows: rows(t),
        };
        Report {
            heading: ascii(&self.heading),
            tables: self.tables.iter().map(table).collect(),
            json: Json::Null,
        }
    }

    fn text(&self, colour: bool) -> String {
        let mut out = String::new();
        let paint = |text: &str, code: &str| match colour && !text.is_empty() {
            true => format!("\x1b[{code}m{text}\x1b[0m"),
            false => text.to_string(),
        };
        if !self.heading.is_empty() {
            let _ = writeln!(out, "{}", paint(&self.heading, "1"));
        }
        for table in &self.tables {
            if !out.is_empty() {
                out.push('\n');
            }
            if !table.title.is_empty() {
                let _ = writeln!(out, "{}", paint(&table.title, "1;4"));
            }
            let width = |k: usize| {
                let cells = table.rows.iter().map(|r| r[k].text.chars().count());
                cells.chain([table.columns[k].chars().count()]).max().unwrap_or(0)
            };
            let widths: Vec<usize> = (0..table.columns.len()).map(width).collect();
            let mut line = |cells: Vec<(String, String)>| {
                let mut text = String::new();
                for (k, (cell, painted)) in cells.iter().enumerate() {
                    let last = k + 1 == cells.len();
                    let pad = if last { 0 } else { widths[k] - cell.chars().count() + 2 };
                    let _ = write!(text, "{painted}{}", " ".repeat(pad));
                }
                let _ = writeln!(out, "  {}", text.trim_end());
            };
            line(table.columns.iter().map(|c| (c.to_string(), paint(c, "2"))).collect());
            for row in &table.rows {
                let cell = |c: &Cell| {
                    let code = match c.tone {
                        Tone::Plain => "0",
                        Tone::Name => "36",
                        Tone::Number => "33",
                        Tone::Result => "1;32",
                        Tone::Faint => "2",
                    };
                    (c.text.clone(), paint(&c.text, code))
                };
                line(row.iter().map(cell).collect());
            }
        }
        out
    }

    fn markdown(&self) -> String {
        let mut out = String::new();
        if !self.heading.is_empty() {
            let _ = writeln!(out, "`{}`", self.heading);
        }
        for table in &self.tables {
            if !out.is_empty() {
                out.push('\n');
            }
            if !table.title.is_empty() {
                let _ = writeln!(out, "**{}**\n", table.title);
            }
            let escape = |s: &str| s.replace('|', "\\|").replace('*', "\\*");
            let _ = writeln!(out, "| {} |", table.columns.join(" | "));
            let _ = writeln!(out, "|{}", "---|".repeat(table.columns.len()));
            for row in &table.rows {
                let cells: Vec<String> = row.iter().map(|c| escape(&c.text)).collect();
                let _ = writeln!(out, "| {} |", cells.join(" | "));
            }
        }
        out
    }

    fn latex(&self) -> String {
        let mut out = format!("% {}\n", self.heading.replace('\n', " "));
        for table in &self.tables {
            let _ = writeln!(out, "\n% {}", table.title);
            let _ = writeln!(out, "\\begin{{tabular}}{{{}}}", "l".repeat(table.columns.len()));
            let _ = writeln!(out, "  {} \\\\ \\hline", table.columns.join(" & "));
            for row in &table.rows {
                let cell = |c: &Cell| match &c.latex {
                    Some(formula) if !formula.is_empty() => format!("${formula}$"),
                    _ => c.text.replace('_', "\\_").replace('&', "\\&").replace('∂', "$\\partial$"),
                };
                let _ = writeln!(out, "  {} \\\\", row.iter().map(cell).collect::<Vec<_>>().join(" & "));
            }
            out.push_str("\\end{tabular}\n");
        }
        out
    }

    fn csv(&self) -> String {
        let blocks: Vec<String> = self
            .tables
            .iter()
            .map(|t| {
                let mut out = String::new();
                let header: Vec<String> = t.columns.iter().map(|c| csv_field(&ascii(c))).collect();
                let _ = writeln!(out, "{}", header.join(","));
                for row in &t.rows {
                    let cells: Vec<String> = row.iter().map(|c| csv_field(&ascii(&c.text))).collect();
                    let _ = writeln!(out, "{}", cells.join(","));
                }
                out
            })
            .collect();
        blocks.join("\n")
    }
}

/// A field in quotes where it needs them.
pub fn csv_field(text: &str) -> String {
    if text.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_string()
    }
}

/// The signs that a plain terminal has not got.
pub fn ascii(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '∂' => "d".to_string(),
            '→' => "->".to_string(),
            '·' => "*".to_string(),
            '…' => "..".to_string(),
            '×' => "x".to_string(),
            '²' => "2".to_string(),
            '├' | '│' => "|".to_string(),
            '└' => "`".to_string(),
            '─' => "-".to_string(),
            c if c.is_ascii() => c.to_string(),
            c => c.escape_unicode().to_string(),
        })
        .collect()
}
