//! A graph for other programs: Graphviz, and JSON.

use super::{Graph, Ref};
use crate::ops::{Attr, Aval};
use std::fmt::{self, Display, Formatter, Write};

impl Graph {
    /// The graph in the language of Graphviz: operations in the order of the data, with the types of the values on the edges.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let g = trace(|x: &Tensor| x.exp().sum(), &Tensor::zeros([3]));
    /// assert!(g.to_dot().starts_with("digraph"));
    /// ```
    pub fn to_dot(&self) -> String {
        let mut out = String::from("digraph graph_ {\n  node [shape=box, fontname=\"monospace\"];\n");
        // Writing to a string does not fail.
        let _ = self.write_dot(&mut out, "");
        out.push_str("}\n");
        out
    }

    /// Nodes and edges; `prefix` tells the graphs inside each other apart.
    fn write_dot(&self, out: &mut String, prefix: &str) -> fmt::Result {
        let id = |a: Ref| match a {
            Ref::Input(k) => format!("{prefix}x{k}"),
            Ref::Const(k) => format!("{prefix}c{k}"),
            Ref::Step(k, _) => format!("{prefix}s{k}"),
        };
        for (k, t) in self.inputs.iter().enumerate() {
            writeln!(out, "  {prefix}x{k} [label=\"x{k}\\n{t}\", style=rounded];")?;
        }
        for k in 0..self.consts.len() {
            writeln!(out, "  {prefix}c{k} [label=\"c{k}\\n{}\", style=dotted];", self.aval(Ref::Const(k)))?;
        }
        for (k, step) in self.steps.iter().enumerate() {
            let attrs = step.op.parameters().to_string();
            let break_ = if attrs.is_empty() { "" } else { "\\n" };
            let label = format!("{}{break_}{attrs}", step.op.name()).replace('"', "'");
            writeln!(out, "  {prefix}s{k} [label=\"{label}\"];")?;
            for &a in &step.args {
                writeln!(out, "  {} -> {prefix}s{k} [label=\"{}\"];", id(a), self.aval(a))?;
            }
            for (j, body) in step.op.body().iter().flat_map(|b| b.bodies()).enumerate() {
                writeln!(out, "  subgraph cluster_{prefix}s{k}_{j} {{\n  label=\"{}\";", step.op.name())?;
                body.write_dot(out, &format!("{prefix}s{k}_{j}_"))?;
                writeln!(out, "  }}")?;
            }
        }
        for (k, &a) in self.outputs.iter().enumerate() {
            writeln!(out, "  {prefix}y{k} [label=\"output {k}\", style=rounded];")?;
            writeln!(out, "  {} -> {prefix}y{k} [label=\"{}\"];", id(a), self.aval(a))?;
        }
        Ok(())
    }

    /// The graph as one JSON object: `inputs`, `constants`, `steps` (each with `op`, `args`, `attributes`, `types`, `location` and, where
    /// there are graphs inside, `graphs`) and `outputs`.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let g = trace(|x: &Tensor| x.exp(), &Tensor::zeros([3]));
    /// assert!(g.to_json().contains(r#""op":"exp","args":["x0"]"#));
    /// ```
    pub fn to_json(&self) -> String {
        Json(self).to_string()
    }
}

/// JSON of what it holds.
pub(crate) struct Json<T>(pub T);

/// A list in brackets.
fn list<T: Copy>(f: &mut Formatter<'_>, items: impl Iterator<Item = T>) -> fmt::Result
where
    Json<T>: Display,
{
    f.write_str("[")?;
    for (k, item) in items.enumerate() {
        write!(f, "{}{}", if k > 0 { "," } else { "" }, Json(item))?;
    }
    f.write_str("]")
}

impl Display for Json<&str> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("\"")?;
        for c in self.0.chars() {
            match c {
                '"' | '\\' => write!(f, "\\{c}")?,
                c if c < ' ' => write!(f, "\\u{:04x}", c as u32)?,
                c => f.write_char(c)?,
            }
        }
        f.write_str("\"")
    }
}

impl Display for Json<Ref> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0)
    }
}

impl Display for Json<&Aval> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{{\"dtype\":\"{}\",\"shape\":{:?}}}", self.0.dtype, self.0.shape)
    }
}

impl Display for Json<&Attr> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            Attr::Number(v) if v.is_finite() => write!(f, "{v}"),
            Attr::List(items) => list(f, items.iter()),
            other => write!(f, "{}", Json(&*other.to_string())),
        }
    }
}

impl Display for Json<&Graph> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let g = self.0;
        f.write_str("{\"inputs\":")?;
        list(f, g.inputs.iter())?;
        f.write_str(",\"constants\":")?;
        let constants: Vec<Aval> = (0..g.consts.len()).map(|k| g.aval(Ref::Const(k))).collect();
        list(f, constants.iter())?;
        f.write_str(",\"steps\":[")?;
        for (k, step) in g.steps.iter().enumerate() {
            write!(f, "{}{{\"op\":{},\"args\":", if k > 0 { "," } else { "" }, Json(step.op.name()))?;
            list(f, step.args.iter().copied())?;
            f.write_str(",\"attributes\":{")?;
            for (j, (name, attr)) in step.op.parameters().0.iter().enumerate() {
                write!(f, "{}{}:{}", if j > 0 { "," } else { "" }, Json(&**name), Json(attr))?;
            }
            f.write_str("},\"types\":")?;
            list(f, step.avals.iter())?;
            write!(f, ",\"location\":{}", Json(&*step.location.to_string()))?;
            if let Some(body) = step.op.body() {
                f.write_str(",\"graphs\":")?;
                list(f, body.bodies().into_iter().map(|b| &**b))?;
            }
            f.write_str("}")?;
        }
        f.write_str("],\"outputs\":")?;
        list(f, g.outputs.iter().copied())?;
        f.write_str("}")
    }
}
