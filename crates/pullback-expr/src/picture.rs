//! What a graph shows: nodes with their values and adjoints, arrows with the contributions that come back along them.

use crate::json::Json;
use crate::layout::{Direction, Layout, layout};
use crate::number_format::{Digits, number};
use crate::problem::Span;
use crate::scalar::{Operand, Operation, Trace};
use crate::symbolic::{self, Style};

/// A value of the graph.
#[derive(Clone, Debug)]
pub struct Node {
    /// `x1`, `v1`, ..
    pub name: String,
    /// The name that a `let` or an output gave it.
    pub given: Option<String>,
    /// What made it, `input` for inputs.
    pub operation: String,
    /// How, such as `x1*x2`; empty for inputs.
    pub formula: String,
    /// Its value, if there is a point.
    pub value: Option<String>,
    /// Its adjoint, if the output depends on it.
    pub adjoint: Option<String>,
    /// The part of the expression it stands for.
    pub span: Option<Span>,
}

/// From an operand to the step that reads it.
#[derive(Clone, Debug)]
pub struct Arrow {
    /// The operand.
    pub from: usize,
    /// The step.
    pub to: usize,
    /// The local derivative in words; empty if there is none.
    pub rule: String,
    /// Its value.
    pub slope: Option<String>,
    /// What the step contributes to the adjoint of the operand.
    pub amount: Option<String>,
    /// The adjoint of the operand after that.
    pub sum: Option<String>,
}

/// A graph to look at.
#[derive(Clone, Debug, Default)]
pub struct Picture {
    /// Inputs first, operands before their users.
    pub nodes: Vec<Node>,
    /// In the order in which the reverse sweep passes them.
    pub arrows: Vec<Arrow>,
    /// The names of outputs and their nodes.
    pub outputs: Vec<(String, usize)>,
}

impl Node {
    /// The lines of text in its box.
    pub fn lines(&self) -> Vec<String> {
        let mut head = self.name.clone();
        if !self.formula.is_empty() {
            head = format!("{head} = {}", self.formula);
        }
        if let Some(given) = &self.given {
            head = format!("{head} = {given}");
        }
        let adjoint = self.adjoint.as_ref().map(|a| format!("adj {a}"));
        [Some(head), self.value.clone(), adjoint].into_iter().flatten().collect()
    }
}

/// The width of a character, and the height of a line.
pub const CHARACTER: (f64, f64) = (7.4, 17.0);

impl Picture {
    /// The width and height of each box: room for an adjoint too, so that nothing moves when one arrives.
    pub fn sizes(&self) -> Vec<(f64, f64)> {
        // On the way an adjoint may be longer than in the end.
        let mut longest: Vec<usize> = self
            .nodes
            .iter()
            .map(|n| n.lines().iter().map(|l| l.chars().count()).max().unwrap_or(0))
            .collect();
        for a in &self.arrows {
            let sum = a.sum.as_ref().map_or(0, |s| s.chars().count() + "adj ".len());
            longest[a.from] = longest[a.from].max(sum);
        }
        longest.into_iter().map(|n| (n as f64 * CHARACTER.0 + 18.0, 3.0 * CHARACTER.1 + 10.0)).collect()
    }

    /// Places for nodes and arrows.
    pub fn layout(&self, direction: Direction) -> Layout {
        let edges: Vec<(usize, usize)> = self.arrows.iter().map(|a| (a.from, a.to)).collect();
        layout(&self.sizes(), &edges, direction)
    }

    /// Nodes, arrows and places, for the page.
    pub fn to_json(&self, direction: Direction) -> Json {
        let placed = self.layout(direction);
        let rounded = |v: f64| Json::Number((v * 10.0).round() / 10.0);
        let point = |p: &(f64, f64)| Json::list([rounded(p.0), rounded(p.1)]);
        let maybe = |t: &Option<String>| t.clone().map_or(Json::Null, Json::Text);
        let nodes = self.nodes.iter().zip(self.sizes()).zip(&placed.centres).map(|((n, size), centre)| {
            Json::object([
                ("name", Json::text(&n.name)),
                ("given", maybe(&n.given)),
                ("operation", Json::text(&n.operation)),
                ("formula", Json::text(&n.formula)),
                ("value", maybe(&n.value)),
                ("adjoint", maybe(&n.adjoint)),
                ("span", n.span.map_or(Json::Null, |s| Json::list([s.start.into(), s.end.into()]))),
                ("size", point(&size)),
                ("centre", point(centre)),
            ])
        });
        let arrows = self.arrows.iter().zip(&placed.routes).map(|(a, route)| {
            Json::object([
                ("from", a.from.into()),
                ("to", a.to.into()),
                ("rule", Json::text(&a.rule)),
                ("slope", maybe(&a.slope)),
                ("amount", maybe(&a.amount)),
                ("sum", maybe(&a.sum)),
                ("route", Json::list(route.iter().map(point))),
            ])
        });
        let outputs =
            self.outputs.iter().map(|(n, k)| Json::object([("name", Json::text(n)), ("node", (*k).into())]));
        Json::object([
            ("nodes", Json::list(nodes)),
            ("arrows", Json::list(arrows)),
            ("outputs", Json::list(outputs)),
            ("width", rounded(placed.width)),
            ("height", rounded(placed.height)),
        ])
    }
}

/// The picture of a trace, with the adjoints of one of its outputs.
pub fn of_trace(trace: &Trace, output: usize, digits: Digits) -> Picture {
    let swept = trace.sweep(output, None);
    let mut touched = vec![false; trace.steps.len()];
    trace.outputs[output].elements.iter().for_each(|e| {
        if let Operand::Node(k) = e {
            touched[*k] = true;
        }
    });
    swept.contributions.iter().for_each(|c| touched[c.to] = true);
    let show = |v: f64| number(v, digits);
    let given = |k: usize| {
        let is_output = |o: &&crate::scalar::Output| o.elements == [Operand::Node(k)];
        trace.steps[k].given.clone().or_else(|| trace.outputs.iter().find(is_output).map(|o| o.name.clone()))
    };
    let node = |(k, step): (usize, &crate::scalar::Step)| {
        let (operation, formula) = match step.operation {
            Operation::Input => ("input".to_string(), String::new()),
            Operation::Apply(f) => (f.name().to_string(), trace.formula(k)),
            Operation::Compare(_) => ("compare".to_string(), trace.formula(k)),
            Operation::Choose => ("where".to_string(), trace.formula(k)),
            Operation::And | Operation::Or | Operation::Not => ("logic".to_string(), trace.formula(k)),
        };
        Node {
            name: step.name.clone(),
            given: if operation == "input" { None } else { given(k) },
            operation,
            formula,
            value: Some(show(trace.values[k])),
            adjoint: touched[k].then(|| show(swept.adjoints[k])),
            span: Some(step.span),
        }
    };
    let nodes = trace.steps.iter().enumerate().map(node).collect();
    let mut sums = vec![0.0; trace.steps.len()];
    let mut contributions = swept.contributions.iter().peekable();
    let mut arrows = Vec::new();
    for to in (0..trace.steps.len()).rev() {
        let rules = rules(trace, to);
        for (operand, o) in trace.steps[to].operands.iter().enumerate() {
            let from = match o {
                Operand::Node(from) => *from,
                Operand::Number(_) => continue,
            };
            let mut arrow =
                Arrow { from, to, rule: rules[operand].clone(), slope: None, amount: None, sum: None };
            if contributions.peek().is_some_and(|c| c.from == to && c.operand == operand) {
                let c = contributions.next().expect("just seen");
                sums[from] += c.amount;
                arrow.slope = Some(show(c.slope));
                arrow.amount = Some(show(c.amount));
                arrow.sum = Some(show(sums[from]));
            }
            arrows.push(arrow);
        }
    }
    let outputs = trace.outputs.iter().filter_map(|o| match o.elements.first() {
        Some(Operand::Node(k)) => Some((o.name.clone(), *k)),
        _ => None,
    });
    Picture { nodes, arrows, outputs: outputs.collect() }
}

fn rules(trace: &Trace, k: usize) -> Vec<String> {
    let step = &trace.steps[k];
    let names: Vec<String> = step.operands.iter().map(|o| trace.name(*o)).collect();
    match step.operation {
        Operation::Apply(f) => symbolic::partials(f, &names, &step.name, Style::Plain),
        Operation::Choose => {
            vec![String::new(), format!("1 if {} else 0", names[0]), format!("0 if {} else 1", names[0])]
        }
        _ => vec![String::new(); names.len()],
    }
}
