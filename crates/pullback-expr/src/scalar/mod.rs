//! A program as operations on single numbers, each with its value, its adjoint and what it contributes to its operands.
//!
//! Vectors and matrices are spread into their elements. This is what the page of `pullback view` runs; the program itself computes with
//! the tensors of the library, and the tests compare the two.

mod array;
mod domain;
mod sweep;

pub use array::Array;
pub use sweep::{Contribution, Swept};

use crate::function::Function;
use crate::interpret::{Item, interpret};
use crate::parser::parse_point;
use crate::problem::{Problem, Span};
use crate::program::{Program, Relation};
use domain::{Builder, Spread};

/// What a node of a trace does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Operation {
    /// An element of an input.
    Input,
    /// A row of the table.
    Apply(Function),
    /// 1 where it holds, else 0.
    Compare(Relation),
    /// 1 if both are.
    And,
    /// 1 if one is.
    Or,
    /// 1 if the operand is not.
    Not,
    /// The second operand if the first is not 0, else the third.
    Choose,
}

/// An operand: a number, or an earlier node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Operand {
    /// A number.
    Number(f64),
    /// The number of a node.
    Node(usize),
}

/// One operation on numbers.
#[derive(Clone, Debug)]
pub struct Step {
    /// What it does.
    pub operation: Operation,
    /// To what.
    pub operands: Vec<Operand>,
    /// `x1` or `x[2]` for inputs, `v1`, `v2`, .. for the rest.
    pub name: String,
    /// The name that a `let` or an output gave it.
    pub given: Option<String>,
    /// The part of the text it belongs to.
    pub span: Span,
}

/// An output: its name, its shape, its elements.
#[derive(Clone, Debug)]
pub struct Output {
    /// The name.
    pub name: String,
    /// The lengths of its axes.
    pub shape: Vec<usize>,
    /// The elements, in row-major order.
    pub elements: Vec<Operand>,
}

/// All operations of a program at a point, in order.
#[derive(Clone, Debug)]
pub struct Trace {
    /// The operations; inputs first.
    pub steps: Vec<Step>,
    /// The values, one for each step.
    pub values: Vec<f64>,
    /// The inputs: names, shapes, and the numbers of their first elements.
    pub inputs: Vec<(String, Vec<usize>, usize)>,
    /// The outputs.
    pub outputs: Vec<Output>,
}

/// Evaluates `x1=2,x2=3`.
///
/// ```
/// let point = pullback_expr::scalar::point("x = pi/2, v = [1, 2, 3]").unwrap();
/// assert_eq!(point[1].1.shape, [3]);
/// ```
pub fn point(text: &str) -> Result<Vec<(String, Array)>, Problem> {
    let program = parse_point(text)?;
    if let Some(k) =
        program.nodes().iter().position(|n| matches!(n, crate::Node::Name(m) if program.inputs().contains(m)))
    {
        return Err(Problem::at(
            program.span(k),
            "the value at a point must be a number, not depend on another name",
        ));
    }
    let trace = trace(&program, &[])?;
    let array = |o: &Output| Array {
        shape: o.shape.clone(),
        elements: o.elements.iter().map(|e| trace.value(*e)).collect(),
    };
    Ok(trace.outputs.iter().map(|o| (o.name.clone(), array(o))).collect())
}

/// Runs a program at a point, and keeps every operation.
pub fn trace(program: &Program, point: &[(String, Array)]) -> Result<Trace, Problem> {
    let find = |name: &str| point.iter().find(|p| p.0 == name).map(|p| &p.1);
    let mut builder = Builder::new(program.inputs());
    let mut spreads: Vec<(String, Spread)> = Vec::new();
    for name in program.inputs().iter().filter(|n| !program.counts().contains(n)) {
        let Some(array) = find(name) else { continue };
        spreads.push((name.clone(), builder.input(name, array)));
    }
    let lookup = |name: &str| {
        if program.counts().iter().any(|c| c == name) {
            return find(name).map(|a| Item::Known(a.elements.first().copied().unwrap_or(f64::NAN)));
        }
        spreads.iter().find(|s| s.0 == name).map(|s| Item::Of(s.1.clone()))
    };
    let values = interpret(program, &mut builder, lookup)?;
    Ok(builder.finish(program.outputs(), values))
}

impl Trace {
    /// The value of an operand.
    pub fn value(&self, operand: Operand) -> f64 {
        match operand {
            Operand::Number(v) => v,
            Operand::Node(k) => self.values[k],
        }
    }

    /// Where the first value that is not finite comes from, and why, if an output is not finite: the function has no value at the point, and so
    /// no derivative there either.
    ///
    /// ```
    /// use pullback_expr::{parse, scalar};
    /// let at = |x: &str| scalar::trace(&parse("ln(x) + x").unwrap(), &scalar::point(x).unwrap()).unwrap();
    /// assert_eq!(at("x=-1").trouble().unwrap().message, "ln takes positive numbers, not -1");
    /// assert!(at("x=1").trouble().is_none());
    /// ```
    pub fn trouble(&self) -> Option<Problem> {
        let finite = |o: &Operand| self.value(*o).is_finite();
        if self.outputs.iter().all(|o| o.elements.iter().all(finite)) {
            return None;
        }
        let mut steps = self.steps.iter().zip(&self.values);
        let (step, _) = steps.find(|(s, v)| !v.is_finite() && s.operands.iter().all(finite))?;
        let x: Vec<f64> = step.operands.iter().map(|o| self.value(*o)).collect();
        let why = match step.operation {
            Operation::Apply(f) => {
                f.trouble(&x).unwrap_or_else(|| format!("{} gives a value that is not finite", f.name()))
            }
            _ => "the value is not finite".to_string(),
        };
        Some(Problem::at(step.span, why))
    }

    /// An operand as it is written.
    pub fn name(&self, operand: Operand) -> String {
        match operand {
            Operand::Number(v) => crate::number(v, crate::Digits::Significant(10)),
            Operand::Node(k) => self.steps[k].name.clone(),
        }
    }

    /// The derivative of the first output (the sum of its elements) with respect to each element of an input.
    pub fn gradient(&self, input: &str) -> Vec<f64> {
        let swept = self.sweep(0, None);
        match self.inputs.iter().find(|i| i.0 == input) {
            Some((_, shape, first)) => {
                swept.adjoints[*first..first + shape.iter().product::<usize>()].to_vec()
            }
            None => Vec::new(),
        }
    }

    /// The operation of a step as a formula, such as `x1*x2`.
    pub fn formula(&self, k: usize) -> String {
        let step = &self.steps[k];
        let a = |i: usize| self.name(step.operands[i]);
        match step.operation {
            Operation::Input => step.name.clone(),
            Operation::Apply(f) => {
                crate::symbolic::applied(f, &step.operands.iter().map(|o| self.name(*o)).collect::<Vec<_>>())
            }
            Operation::Compare(r) => format!("{} {} {}", a(0), r.sign(), a(1)),
            Operation::And => format!("{} and {}", a(0), a(1)),
            Operation::Or => format!("{} or {}", a(0), a(1)),
            Operation::Not => format!("not {}", a(0)),
            Operation::Choose => format!("if {} then {} else {}", a(0), a(1), a(2)),
        }
    }
}
