//! Finding the function and the point that a command is about.

use crate::args::{Output, Subject};
use crate::failure::{Failure, Result, io};
use crate::model::{Formula, Model, Point, Source};
use crate::report::Format;
use pullback_expr::scalar;
use std::io::{IsTerminal, Read, Write};
use std::path::{Path, PathBuf};

/// A formula, or a graph that needs no shapes any more.
pub enum Function {
    Formula(Formula),
    Graph(Model),
}

/// A file, or standard input for `-`, as text.
pub fn read_text(path: &Path) -> Result<String> {
    let (name, bytes) = if path == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::stdin().lock().read_to_end(&mut bytes).map_err(io("standard input"))?;
        ("standard input".to_string(), bytes)
    } else {
        let name = path.display().to_string();
        let bytes = std::fs::read(path).map_err(io(&name))?;
        (name, bytes)
    };
    String::from_utf8(bytes)
        .map_err(|e| Failure::new(format!("{name}: byte {} is not UTF-8", e.utf8_error().valid_up_to())))
}

impl Subject {
    /// The formula or the graph.
    pub fn function(&self) -> Result<Function> {
        let source = match (&self.file, self.expression.as_deref()) {
            (Some(path), _) if path.extension().is_some_and(|e| e == "ir") => {
                return crate::ir::model(path).map(Function::Graph);
            }
            (Some(path), _) => Source { name: path.display().to_string(), text: read_text(path)? },
            (None, Some(text)) if text != "-" => Source { name: "expression".into(), text: text.into() },
            (None, None) if std::io::stdin().is_terminal() => {
                return Err(Failure::new("expected an expression, such as 'x1*x2 + sin(x1)'"));
            }
            _ => Source { name: "standard input".into(), text: read_text(Path::new("-"))? },
        };
        Formula::parse(source).map(Function::Formula)
    }

    /// The point, if one was given.
    pub fn point(&self) -> Result<Option<Point>> {
        match self.at.is_empty() {
            true => Ok(None),
            false => parse_point("--at", &self.at.join(",")).map(Some),
        }
    }
}

pub fn parse_point(name: &str, text: &str) -> Result<Point> {
    scalar::point(text).map_err(|p| Failure::in_text(&p, name, text))
}

impl Function {
    /// The names that need a value.
    pub fn names(&self) -> Vec<String> {
        match self {
            Function::Formula(f) => f.program.inputs().to_vec(),
            Function::Graph(m) => m.inputs.iter().map(|i| i.name.clone()).collect(),
        }
    }

    /// The function for a point: every name has a value, no other has, and the result is finite.
    pub fn at<'a>(&'a self, point: &Point) -> Result<Held<'a>> {
        let names = self.names();
        let missing: Vec<String> =
            names.iter().filter(|n| !point.iter().any(|p| p.0 == **n)).map(|n| format!("`{n}`")).collect();
        if !missing.is_empty() {
            let verb = if missing.len() == 1 { "has" } else { "have" };
            let example: Vec<String> = missing.iter().map(|n| format!("{}=1", n.trim_matches('`'))).collect();
            return Err(Failure::new(format!(
                "{} {verb} no value\n  = help: give it with --at {}",
                missing.join(", "),
                example.join(",")
            )));
        }
        if let Some((name, _)) = point.iter().find(|p| !names.contains(&p.0)) {
            let known = if names.is_empty() {
                "there is none".to_string()
            } else {
                format!("there are {}", names.join(", "))
            };
            return Err(Failure::new(format!("there is no input `{name}` in the expression; {known}")));
        }
        match self {
            Function::Formula(f) => {
                f.check_values(point)?;
                f.model(point).map(Held::Owned)
            }
            Function::Graph(m) => {
                m.check_shapes(point)?;
                Ok(Held::Borrowed(m))
            }
        }
    }

    /// The function without a point: inputs of a formula are numbers.
    pub fn anywhere(&self) -> Result<Held<'_>> {
        match self {
            Function::Formula(f) => match f.program.counts() {
                [] => f.model(&Vec::new()).map(Held::Owned),
                counts => Err(Failure::new(format!(
                    "`{0}` counts something, and needs a value: --at {0}=3",
                    counts[0]
                ))),
            },
            Function::Graph(m) => Ok(Held::Borrowed(m)),
        }
    }
}

/// A model that was made for the point, or is there anyway.
pub enum Held<'a> {
    Owned(Model),
    Borrowed(&'a Model),
}

impl std::ops::Deref for Held<'_> {
    type Target = Model;
    fn deref(&self) -> &Model {
        match self {
            Held::Owned(m) => m,
            Held::Borrowed(m) => m,
        }
    }
}

impl Model {
    fn check_shapes(&self, point: &Point) -> Result<()> {
        for input in &self.inputs {
            let given = point.iter().find(|p| p.0 == input.name).map(|p| &p.1.shape);
            if given.is_some_and(|s| *s != input.shape) {
                let (name, shape) = (&input.name, &input.shape);
                return Err(Failure::new(format!(
                    "`{name}` has the shape {shape:?}, not {:?}",
                    given.unwrap_or(shape)
                )));
            }
        }
        Ok(())
    }

    /// The number of an output, by name or number.
    pub fn output(&self, wanted: Option<&str>) -> Result<usize> {
        let Some(wanted) = wanted else { return Ok(0) };
        let by_number =
            wanted.parse::<usize>().ok().filter(|k| (1..=self.outputs.len()).contains(k)).map(|k| k - 1);
        let found = self.outputs.iter().position(|o| o == wanted).or(by_number);
        found.ok_or_else(|| {
            Failure::new(format!("there is no output `{wanted}`; there are {}", self.outputs.join(", ")))
        })
    }
}

impl Output {
    pub fn format(&self) -> Format {
        let colour =
            self.out.is_none() && std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        match () {
            () if self.json => Format::Json,
            () if self.csv => Format::Csv,
            () if self.latex => Format::Latex,
            () if self.markdown => Format::Markdown,
            () if self.plain => Format::Plain,
            () => Format::Text { colour },
        }
    }

    pub fn digits(&self) -> pullback_expr::Digits {
        pullback_expr::Digits::Significant(usize::from(self.digits))
    }
}

/// Writes to a file, or to standard output; a reader that has seen enough is no error.
pub fn write_out(out: Option<&PathBuf>, bytes: &[u8]) -> Result<()> {
    match out {
        Some(path) => std::fs::write(path, bytes).map_err(io(path.display())),
        None => {
            let mut stdout = std::io::stdout().lock();
            match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
                Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => Err(io("standard output")(e)),
                _ => Ok(()),
            }
        }
    }
}

impl Function {
    /// The function for inputs of these shapes, whatever its value there.
    pub fn shaped<'a>(&'a self, point: &Point) -> Result<Held<'a>> {
        match self {
            Function::Formula(f) => f.model(point).map(Held::Owned),
            Function::Graph(m) => m.check_shapes(point).map(|()| Held::Borrowed(m)),
        }
    }
}
