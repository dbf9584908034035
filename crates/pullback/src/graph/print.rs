//! The text of a graph. Its grammar is in [the guide](crate::guide::graphs); [`parse`](super::parse) reads it.

use super::{Body, Graph, Ref};
use crate::DType;
use crate::ops::{Aval, Op};
use crate::tensor::{Data, Tensor};
use num_complex::Complex;
use std::fmt::{self, Display, Formatter, Write};

/// `%3`, `%4.1`, `x0`, `c2`.
impl Display for Ref {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Ref::Input(k) => write!(f, "x{k}"),
            Ref::Const(k) => write!(f, "c{k}"),
            Ref::Step(k, 0) => write!(f, "%{k}"),
            Ref::Step(k, slot) => write!(f, "%{k}.{slot}"),
        }
    }
}

/// `f32[16, 4]`.
impl Display for Aval {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?}", self.dtype, self.shape)
    }
}

impl fmt::Debug for Aval {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Display::fmt(self, f)
    }
}

/// Things with commas between them.
struct List<I>(I);

impl<I: Iterator<Item: Display> + Clone> Display for List<I> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (k, item) in self.0.clone().enumerate() {
            write!(f, "{}{item}", if k > 0 { ", " } else { "" })?;
        }
        Ok(())
    }
}

/// The text form, which [`parse`](str::parse) reads back. `{:#}` adds to each operation, as a comment, the line of code it came from.
///
/// ```
/// use pullback::prelude::*;
/// let g = trace(|x: &Tensor| (x * 2.0).sum(), &Tensor::zeros([3]));
/// assert_eq!(g.to_string(), "\
/// graph(x0: f64[3]) {
///   c0 = constant 2.0 : f64[3]
///   %0 = mul(x0, c0) : f64[3]
///   %1 = sum(%0) {axes: [0]} : f64[]
///   return %1
/// }");
/// ```
impl Display for Graph {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.print(f, 0, print_elements)
    }
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Display::fmt(self, f)
    }
}

impl Graph {
    fn print(&self, f: &mut Formatter<'_>, indent: usize, elements: PrintElements) -> fmt::Result {
        let params = self.inputs.iter().enumerate().map(|(k, t)| format!("x{k}: {t}"));
        writeln!(f, "graph({}) {{", List(params))?;
        for (k, c) in self.consts.iter().enumerate() {
            let aval = self.aval(Ref::Const(k));
            write!(f, "{:indent$}  c{k} = constant ", "")?;
            elements(f, c)?;
            writeln!(f, " : {aval}")?;
        }
        for (k, step) in self.steps.iter().enumerate() {
            write!(f, "{:indent$}  ", "")?;
            self.print_step(f, k)?;
            if let Some(body) = step.op.body() {
                for body in body.bodies() {
                    write!(f, "\n{:indent$}    ", "")?;
                    body.print(f, indent + 4, print_elements)?;
                }
            }
            if f.alternate() {
                write!(
                    f,
                    "  // {}:{}:{}",
                    step.location.file(),
                    step.location.line(),
                    step.location.column()
                )?;
            }
            f.write_str("\n")?;
        }
        write!(f, "{:indent$}  return", "")?;
        if !self.outputs.is_empty() {
            write!(f, " {}", List(self.outputs.iter()))?;
        }
        write!(f, "\n{:indent$}}}", "")
    }

    /// One operation, without the graphs inside it.
    pub(crate) fn print_step(&self, f: &mut impl Write, k: usize) -> fmt::Result {
        let step = &self.steps[k];
        let body = step.op.body();
        let name = body.as_ref().map_or(step.op.name(), Body::name);
        write!(f, "%{k} = {name}({})", List(step.args.iter()))?;
        let attrs = step.op.parameters();
        if !attrs.0.is_empty() {
            write!(f, " {{{attrs}}}")?;
        }
        for (name, _) in self.names.iter().filter(|(_, at)| *at == Ref::Step(k, 0)) {
            write!(f, " \"{}\"", name.replace(['"', '\n'], "'"))?;
        }
        match &step.avals[..] {
            [one] if !matches!(step.op, Op::Block(_)) => write!(f, " : {one}"),
            all => write!(f, " : ({})", List(all.iter())),
        }
    }
}

type PrintElements = fn(&mut Formatter<'_>, &Tensor) -> fmt::Result;

/// The text of a graph whose large constants are kept elsewhere: they are written as `external`.
pub(super) struct Outline<'a>(pub &'a Graph);

impl Outline<'_> {
    /// Whether a constant is kept elsewhere.
    pub fn keeps_out(t: &Tensor) -> bool {
        const SMALL: usize = 16;
        t.numel() > SMALL && !matches!(t.data(), Data::Splat(_))
    }
}

impl Display for Outline<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.print(
            f,
            0,
            |f, t| if Outline::keeps_out(t) { f.write_str("external") } else { print_elements(f, t) },
        )
    }
}

/// `1.0-0.5i`: the sign of the imaginary part is always there, so that it tells where the real part ends.
fn complex<T: fmt::Debug>(v: &Complex<T>) -> String {
    let (re, im) = (format!("{:?}", v.re), format!("{:?}", v.im));
    let sign = if im.starts_with('-') { "" } else { "+" };
    format!("{re}{sign}{im}i")
}

/// A repeated element once, others in brackets in row-major order.
fn print_elements(f: &mut Formatter<'_>, t: &Tensor) -> fmt::Result {
    if !t.is_known() {
        return f.write_str("?");
    }
    let splat = matches!(t.data(), Data::Splat(_)) && t.numel() > 0;
    let first = if splat { t.reshape([t.numel()]).slice(0..1) } else { t.reshape([t.numel()]) };
    let elements: Vec<String> = match t.dtype() {
        DType::Bool => first.to_vec::<bool>().iter().map(bool::to_string).collect(),
        DType::U8 | DType::I32 | DType::I64 => first.to_vec::<i64>().iter().map(i64::to_string).collect(),
        DType::F64 => first.to_vec::<f64>().iter().map(|v| format!("{v:?}")).collect(),
        DType::C128 => first.to_vec().iter().map(complex::<f64>).collect(),
        DType::C64 => first.to_vec().iter().map(complex::<f32>).collect(),
        _ => first.to_vec::<f32>().iter().map(|v| format!("{v:?}")).collect(),
    };
    match splat {
        true => f.write_str(&elements[0]),
        false => write!(f, "[{}]", List(elements.iter())),
    }
}
