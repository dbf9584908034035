//! Reading the text of a graph. The grammar is in [the guide](crate::guide::graphs).

use super::{Body, Builder, Graph, Ref};
use crate::dtype::{DType, Element, Scalar};
use crate::error::{Error, Result, err};
use crate::ops::{Attr, Attribute, Attrs, Aval, Op};
use crate::shape::Shape;
use crate::tensor::Tensor;
use num_complex::Complex;
use std::panic::Location;
use std::str::FromStr;
use std::sync::Arc;

/// Graphs inside graphs, and lists inside lists, may not be deeper.
const DEPTH: usize = 32;

impl FromStr for Graph {
    type Err = Error;

    /// Reads the text form. The result is well formed: types are inferred again, and have to be those that are written.
    fn from_str(text: &str) -> Result<Graph> {
        match parse(text)? {
            (graph, external) if external.is_empty() => Ok(graph),
            _ => Err(err!(Format, "an external constant is in a file of its own kind, and not in a text")),
        }
    }
}

/// Reads the text form. Constants that are kept elsewhere are zeros, and named by their numbers.
pub(super) fn parse(text: &str) -> Result<(Graph, Vec<usize>)> {
    let mut p = Parser { text, at: 0, depth: 0, external: Vec::new() };
    let graph = p.graph().and_then(|g| p.end().map(|()| g));
    let graph = graph.map_err(|e| {
        let before = &text[..p.at];
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|&c| c != '\n').count() + 1;
        err!(Format, "line {line}, column {column}: {e}")
    })?;
    Ok((graph, p.external))
}

/// The text, and how far it has been read: to the beginning of what was read last, where an error is.
struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    /// The constants of the outermost graph that are kept elsewhere.
    external: Vec<usize>,
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn is_number(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '+' | '-')
}

impl<'a> Parser<'a> {
    fn skip(&mut self) {
        loop {
            let rest = self.text[self.at..].trim_start();
            self.at = self.text.len() - rest.len();
            if !rest.starts_with("//") {
                return;
            }
            self.at += rest.find('\n').unwrap_or(rest.len());
        }
    }

    fn rest(&mut self) -> &'a str {
        self.skip();
        &self.text[self.at..]
    }

    fn expected<T>(&mut self, what: &str) -> Result<T> {
        let found: String = self.rest().chars().take_while(|c| !c.is_whitespace()).take(24).collect();
        let found = if found.is_empty() { "the end".to_string() } else { format!("`{found}`") };
        Err(err!(Format, "expected {what}, found {found}"))
    }

    fn accept(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    fn expect(&mut self, token: &str) -> Result<()> {
        if self.accept(token) { Ok(()) } else { self.expected(&format!("`{token}`")) }
    }

    fn end(&mut self) -> Result<()> {
        if self.rest().is_empty() { Ok(()) } else { self.expected("nothing more") }
    }

    fn run(&mut self, class: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let word = &rest[..rest.find(|c| !class(c)).unwrap_or(rest.len())];
        self.at += word.len();
        word
    }

    fn word(&mut self, what: &str) -> Result<&'a str> {
        match self.rest().starts_with(|c: char| c.is_ascii_alphabetic()) {
            true => Ok(self.run(is_word)),
            false => self.expected(what),
        }
    }

    /// Whether the next word is this one, which is then read.
    fn keyword(&mut self, word: &str) -> bool {
        let follows = self.rest().strip_prefix(word).is_some_and(|rest| !rest.starts_with(is_word));
        follows && self.accept(word)
    }

    fn integer(&mut self, what: &str) -> Result<usize> {
        let start = self.rest().len();
        match self.run(|c| c.is_ascii_digit()).parse() {
            Ok(n) => Ok(n),
            Err(_) => {
                self.at = self.text.len() - start;
                self.expected(what)
            }
        }
    }

    /// `item, item, ..` up to the closing token.
    fn list<T>(&mut self, close: &str, mut item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let mut items = Vec::new();
        while !self.accept(close) {
            if !items.is_empty() {
                self.expect(",")?;
            }
            items.push(item(self)?);
        }
        Ok(items)
    }

    fn nested<T>(&mut self, f: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth == DEPTH {
            return Err(err!(Format, "more than {DEPTH} levels inside each other"));
        }
        self.depth += 1;
        let result = f(self);
        self.depth -= 1;
        result
    }

    fn graph(&mut self) -> Result<Graph> {
        self.nested(Self::graph_inside)
    }

    fn graph_inside(&mut self) -> Result<Graph> {
        if !self.keyword("graph") {
            return self.expected("`graph`");
        }
        self.expect("(")?;
        let mut inputs = 0;
        let inputs = self.list(")", |p| {
            p.numbered("x", inputs)?;
            inputs += 1;
            p.expect(":")?;
            p.aval()
        })?;
        self.expect("{")?;
        let mut built = Builder::new(inputs);
        let mut names = Vec::new();
        while !self.keyword("return") {
            match self.rest().starts_with('%') {
                true => self.step(&mut built, &mut names)?,
                false => self.constant(&mut built)?,
            }
        }
        let outputs = match self.accept("}") {
            true => Vec::new(),
            false => {
                let mut outputs = vec![self.value(&built)?];
                while !self.accept("}") {
                    self.expect(",")?;
                    outputs.push(self.value(&built)?);
                }
                outputs
            }
        };
        Ok(built.finish(outputs, names))
    }

    /// A letter with the number that it must have.
    fn numbered(&mut self, letter: &str, number: usize) -> Result<()> {
        let name = format!("{letter}{number}");
        match self.keyword(&name) {
            true => Ok(()),
            false => self.expected(&format!("`{name}`")),
        }
    }

    fn constant(&mut self, built: &mut Builder) -> Result<()> {
        if !self.rest().starts_with('c') {
            return self.expected("a constant, an operation or `return`");
        }
        self.numbered("c", built.graph().consts.len())?;
        self.expect("=")?;
        if !self.keyword("constant") {
            return self.expected("`constant`");
        }
        if self.depth == 1 && self.keyword("external") {
            self.expect(":")?;
            let aval = self.aval()?;
            self.external.push(built.graph().consts.len());
            built.constant(Tensor::zeros_of(aval.dtype, aval.shape));
            return Ok(());
        }
        let splat = !self.accept("[");
        let elements = match splat {
            true => vec![self.number()?],
            false => self.list("]", Self::number)?,
        };
        self.expect(":")?;
        let aval = self.aval()?;
        let value = constant(&elements, splat, &aval)?;
        built.constant(value);
        Ok(())
    }

    fn number(&mut self) -> Result<&'a str> {
        match self.run(is_number) {
            "" => self.expected("a number"),
            text => Ok(text),
        }
    }

    fn aval(&mut self) -> Result<Aval> {
        let name = self.word("a type such as f32")?;
        let Some(dtype) = DType::from_attr(&Attr::Word(name.into())) else {
            return Err(err!(Format, "`{name}` is no element type"));
        };
        self.expect("[")?;
        let shape: Shape = self.list("]", |p| p.integer("a length"))?.into();
        shape.checked_len()?;
        Ok(Aval { dtype, shape })
    }

    /// A value that has been made.
    fn value(&mut self, built: &Builder) -> Result<Ref> {
        let rest = self.rest();
        let at = match rest.chars().next() {
            Some('%') => {
                self.accept("%");
                let k = self.integer("the number of an operation")?;
                let slot = if self.accept(".") { self.integer("the number of an output")? } else { 0 };
                Ref::Step(k, slot)
            }
            Some('x') => {
                self.accept("x");
                Ref::Input(self.integer("the number of an input")?)
            }
            Some('c') => {
                self.accept("c");
                Ref::Const(self.integer("the number of a constant")?)
            }
            _ => return self.expected("a value such as %0, x0 or c0"),
        };
        let graph = built.graph();
        let there = match at {
            Ref::Input(k) => k < graph.inputs.len(),
            Ref::Const(k) => k < graph.consts.len(),
            Ref::Step(k, slot) => graph.steps.get(k).is_some_and(|s| slot < s.avals.len()),
        };
        if there { Ok(at) } else { Err(err!(Format, "there is no value {at} yet")) }
    }

    fn step(&mut self, built: &mut Builder, names: &mut Vec<(Arc<str>, Ref)>) -> Result<()> {
        let number = built.graph().len();
        self.expect("%")?;
        if self.integer("a number")? != number {
            return Err(err!(Format, "operations are numbered in order: this is %{number}"));
        }
        self.expect("=")?;
        self.skip();
        let start = self.at;
        let name = self.word("the name of an operation")?;
        self.expect("(")?;
        let args = self.list(")", |p| p.value(built))?;
        let mut attrs = Attrs::default();
        if self.accept("{") {
            attrs.0 = self.list("}", |p| {
                let name = p.word("the name of a parameter")?;
                p.expect(":")?;
                Ok((name.to_string(), p.attr()?))
            })?;
        }
        while self.accept("\"") {
            let given = self.run(|c| c != '"' && c != '\n');
            self.expect("\"")?;
            names.push((given.into(), Ref::Step(number, 0)));
        }
        self.expect(":")?;
        let several = self.accept("(");
        let types = if several { self.list(")", Self::aval)? } else { vec![self.aval()?] };
        let mut bodies = Vec::new();
        while self.rest().starts_with("graph") {
            bodies.push(self.graph()?);
        }
        let op = operation(name, attrs, bodies).and_then(|op| {
            let at = built.push(op, &args, Location::caller())?;
            match at {
                Ref::Step(k, _) if built.graph().steps[k].avals[..] != types[..] => {
                    Err(err!(Format, "the result is {:?}, not {types:?}", built.graph().steps[k].avals))
                }
                _ => Ok(()),
            }
        });
        if op.is_err() {
            self.at = start;
        }
        op
    }

    fn attr(&mut self) -> Result<Attr> {
        if self.accept("[") {
            return self.nested(|p| p.list("]", Self::attr)).map(Attr::List);
        }
        let text = self.number()?;
        Ok(match text.parse() {
            Ok(v) => Attr::Number(v),
            Err(_) => Attr::Word(text.into()),
        })
    }
}

fn operation(name: &str, mut attrs: Attrs, bodies: Vec<Graph>) -> Result<Op> {
    let op = if bodies.is_empty() { Op::build(name, &mut attrs)? } else { None };
    let op = match op {
        Some(op) => op,
        None => match Body::build(name, &mut attrs, bodies)? {
            Some(body) => Op::Block(body.block()),
            None => return Err(err!(Format, "there is no operation `{name}` with a text form")),
        },
    };
    attrs.finish()?;
    Ok(op)
}

/// `1.0-0.5i`: the last sign that is not that of an exponent tells where the imaginary part begins.
fn complex<T: FromStr>(text: &str) -> Option<Complex<T>> {
    let parts = text.strip_suffix('i')?;
    let sign = |&(k, c): &(usize, char)| matches!(c, '+' | '-') && k > 0 && !parts[..k].ends_with(['e', 'E']);
    let (at, _) = parts.char_indices().rev().find(sign)?;
    Some(Complex::new(parts[..at].parse().ok()?, parts[at..].parse().ok()?))
}

/// A constant from the text of its elements: all of them, or one that is repeated.
fn constant(elements: &[&str], splat: bool, aval: &Aval) -> Result<Tensor> {
    let n = aval.shape.checked_len()?;
    if !splat && elements.len() != n {
        return Err(err!(Format, "{aval} has {n} elements, and not {}", elements.len()));
    }
    fn tensor<T: FromStr + Element + Into<Scalar>>(
        elements: &[&str],
        splat: bool,
        aval: &Aval,
    ) -> Result<Tensor> {
        read(elements, splat, aval, |text| text.parse::<T>().ok())
    }
    fn read<T: Element + Into<Scalar>>(
        elements: &[&str],
        splat: bool,
        aval: &Aval,
        parse: fn(&str) -> Option<T>,
    ) -> Result<Tensor> {
        let one = |text: &&str| parse(text).ok_or_else(|| err!(Format, "`{text}` is no {}", aval.dtype));
        let list = elements.iter().map(one).collect::<Result<Vec<T>>>()?;
        Ok(match splat {
            true => Tensor::full_of(list[0].into(), aval.dtype, aval.shape.clone()),
            false => Tensor::from(list).cast(aval.dtype).reshape_to(&aval.shape),
        })
    }
    match aval.dtype {
        DType::Bool => tensor::<bool>(elements, splat, aval),
        DType::U8 => tensor::<u8>(elements, splat, aval),
        DType::I32 => tensor::<i32>(elements, splat, aval),
        DType::I64 => tensor::<i64>(elements, splat, aval),
        DType::F64 => tensor::<f64>(elements, splat, aval),
        DType::C64 => read(elements, splat, aval, complex::<f32>),
        DType::C128 => read(elements, splat, aval, complex::<f64>),
        _ => tensor::<f32>(elements, splat, aval),
    }
}
