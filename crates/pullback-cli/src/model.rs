//! A function to differentiate: a graph with names for its inputs and outputs, made of an expression or of a graph file.

use crate::failure::{Failure, Result};
use crate::lower::Tensors;
use pullback::{DType, Graph, Tensor};
use pullback_expr::scalar::Array;
use pullback_expr::{Item, Problem, Program, interpret};
use std::cell::RefCell;

/// Where a text came from, for messages.
#[derive(Clone, Debug)]
pub struct Source {
    pub name: String,
    pub text: String,
}

/// A value for each of some names.
pub type Point = Vec<(String, Array)>;

/// A named tensor-valued function of named tensors.
pub struct Model {
    /// What it was made of, on one line if it is short.
    pub title: String,
    pub inputs: Vec<Input>,
    pub outputs: Vec<String>,
    pub graph: Graph,
}

pub struct Input {
    pub name: String,
    pub dtype: DType,
    pub shape: Vec<usize>,
}

/// An expression that was parsed, but has no shapes yet.
pub struct Formula {
    pub source: Source,
    pub program: Program,
}

pub fn tensor(array: &Array) -> Tensor {
    Tensor::from_slice(&array.elements, array.shape.clone())
}

impl Formula {
    pub fn parse(source: Source) -> Result<Formula> {
        match pullback_expr::parse(&source.text) {
            Ok(program) => Ok(Formula { source, program }),
            Err(problem) => Err(Failure::in_text(&problem, &source.name, &source.text)),
        }
    }

    fn failed(&self, problem: &Problem) -> Failure {
        Failure::in_text(problem, &self.source.name, &self.source.text)
    }

    /// The names that are differentiated.
    pub fn variables(&self) -> Vec<&str> {
        let counts = self.program.counts();
        self.program.inputs().iter().filter(|n| !counts.contains(n)).map(String::as_str).collect()
    }

    /// The function for inputs of the shapes of a point; a name that the point lacks is a number.
    pub fn model(&self, point: &Point) -> Result<Model> {
        let find = |name: &str| point.iter().find(|p| p.0 == name).map(|p| &p.1);
        let inputs: Vec<Input> = self
            .variables()
            .iter()
            .map(|n| Input {
                name: n.to_string(),
                dtype: DType::F64,
                shape: find(n).map_or(Vec::new(), |a| a.shape.clone()),
            })
            .collect();
        let problem = RefCell::new(None);
        let types: Vec<(DType, Vec<usize>)> = inputs.iter().map(|i| (i.dtype, i.shape.clone())).collect();
        let run = |leaves: &[Tensor]| {
            let lookup = |name: &str| match inputs.iter().position(|i| i.name == name) {
                Some(k) => Some(Item::Of(leaves[k].clone())),
                None => find(name).map(|a| Item::Known(a.elements[0])),
            };
            Ok(interpret(&self.program, &mut Tensors::default(), lookup).unwrap_or_else(|p| {
                *problem.borrow_mut() = Some(p);
                Vec::new()
            }))
        };
        let graph = Graph::of(run, &types)?;
        if let Some(problem) = problem.into_inner() {
            return Err(self.failed(&problem));
        }
        let lines =
            self.source.text.lines().map(|l| l.trim().trim_end_matches(';')).filter(|l| !l.is_empty());
        let text = lines.collect::<Vec<_>>().join("; ");
        let title = if text.chars().count() > 200 { self.source.name.clone() } else { text };
        Ok(Model { title, inputs, outputs: self.program.outputs(), graph })
    }

    /// Fails with the place where a value stops being finite, if the result is not.
    pub fn check_values(&self, point: &Point) -> Result<()> {
        let find = |name: &str| point.iter().find(|p| p.0 == name).map(|p| &p.1);
        let mut domain = Tensors::watching();
        let lookup = |name: &str| {
            let array = find(name)?;
            let counts = self.program.counts().iter().any(|c| c == name);
            Some(if counts { Item::Known(array.elements[0]) } else { Item::Of(tensor(array)) })
        };
        let values = interpret(&self.program, &mut domain, lookup).map_err(|p| self.failed(&p))?;
        let bad =
            values.iter().any(|v| v.dtype().is_float() && v.to_vec::<f64>().iter().any(|v| !v.is_finite()));
        match domain.trouble {
            Some(t) if bad => Err(self.failed(&Problem::at(t.span, t.why))),
            _ => Ok(()),
        }
    }
}

impl Model {
    /// The inputs of a point in order.
    pub fn values(&self, point: &Point) -> Result<Vec<Tensor>> {
        self.inputs
            .iter()
            .map(|i| match point.iter().find(|p| p.0 == i.name) {
                Some((_, array)) => Ok(tensor(array).cast(i.dtype)),
                None => Err(Failure::new(format!("`{0}` has no value; give it one: --at {0}=1", i.name))),
            })
            .collect()
    }
}

/// `x`, or `x[1]`, `x[2]`, .., or `x[1,1]`, ..
pub fn element_names(name: &str, shape: &[usize]) -> Vec<String> {
    let place = |mut k: usize| {
        let mut at: Vec<String> = Vec::new();
        for n in shape.iter().rev() {
            at.push((k % n + 1).to_string());
            k /= n;
        }
        at.reverse();
        at.join(",")
    };
    let count: usize = shape.iter().product();
    (0..count)
        .map(|k| if shape.is_empty() { name.to_string() } else { format!("{name}[{}]", place(k)) })
        .collect()
}
