//! Graph steps in words: their formulas, and their local derivatives.
//!
//! Elementwise operations have theirs from the library's table, evaluated on names. The few others are listed here; the numbers beside
//! them always come from the library's own rules.

use pullback::{Fallible, Graph, Place, StepView};
use pullback_expr::function::Function;
use pullback_expr::symbolic::{self, Style};
use pullback_expr::{Digits, number};

/// What the values of a graph are called: inputs by their names, constants by their values, steps `v1`, `v2`, .. .
pub struct Names {
    inputs: Vec<String>,
    constants: Vec<String>,
    /// The number of outputs of each step.
    outputs: Vec<usize>,
    /// What steps are called, before their number.
    stem: &'static str,
}

impl Names {
    pub fn new(graph: &Graph, inputs: Vec<String>) -> Names {
        let constant = |(k, t): (usize, &pullback::Tensor)| match t.try_item() {
            Ok(v) if t.rank() == 0 => number(v, Digits::Significant(10)),
            _ => format!("c{}", k + 1),
        };
        let constants = graph.constants().iter().enumerate().map(constant).collect();
        let stem = symbolic::stem(&inputs);
        Names { inputs, constants, outputs: graph.steps().map(|s| s.outputs().len()).collect(), stem }
    }

    pub fn of(&self, place: Place) -> String {
        match place {
            Place::Input(k) => self.inputs[k].clone(),
            Place::Constant(k) => self.constants[k].clone(),
            Place::Step(k, _) if self.outputs[k] == 1 => format!("{}{}", self.stem, k + 1),
            Place::Step(k, slot) => format!("{}{}.{}", self.stem, k + 1, slot + 1),
        }
    }

    pub fn args(&self, step: &StepView) -> Vec<String> {
        step.args().into_iter().map(|a| self.of(a)).collect()
    }
}

fn relation(attributes: &str) -> &'static str {
    let signs = [("Lt", "<"), ("Le", "<="), ("Gt", ">"), ("Ge", ">="), ("Eq", "=="), ("Ne", "!=")];
    let found = |name: &str| attributes.to_lowercase().contains(&format!(": {}", name.to_lowercase()));
    signs.iter().find(|s| found(s.0)).map_or("?", |s| s.1)
}

/// The operation with its operands, such as `x1*x2`.
pub fn formula(step: &StepView, names: &Names, style: Style) -> String {
    let args = names.args(step);
    if let Some(f) = Function::named(step.name()).filter(|f| f.arity() == args.len()) {
        return symbolic::applied_in(f, &args, style);
    }
    let latex = style == Style::Latex;
    let args: Vec<String> =
        args.iter().map(|a| if latex { symbolic::latex_name(a) } else { a.clone() }).collect();
    match (step.name(), &args[..]) {
        ("compare", [a, b]) => format!("{a} {} {b}", relation(&step.attributes())),
        ("where", [c, a, b]) if latex => format!("{a} \\text{{ if }} {c} \\text{{ else }} {b}"),
        ("where", [c, a, b]) => format!("if {c} then {a} else {b}"),
        ("matmul", [a, b]) if latex => format!("{a} {b}"),
        ("matmul", [a, b]) => format!("{a} @ {b}"),
        (name, _) if latex => {
            format!("\\operatorname{{{}}}\\left({}\\right)", name.replace('_', "\\_"), args.join(", "))
        }
        (name, _) => format!("{name}({})", args.join(", ")),
    }
}

/// The local derivative of a step with respect to each of its arguments.
pub fn partials(step: &StepView, names: &Names, y: &str, style: Style) -> Vec<String> {
    let args = names.args(step);
    if let Some(f) = Function::named(step.name()).filter(|f| f.arity() == args.len()) {
        return symbolic::partials(f, &args, y, style);
    }
    let all = |text: &str| vec![text.to_string(); args.len()];
    let words = match (step.name(), &args[..]) {
        ("where", [c, ..]) => vec!["none".into(), format!("1 if {c} else 0"), format!("0 if {c} else 1")],
        ("matmul", [a, b]) => vec![format!("adjoint @ {b}'"), format!("{a}' @ adjoint")],
        ("compare" | "logic" | "not" | "truth" | "argextreme" | "stop_gradient", _) => all("none"),
        ("sum", _) => all("1 for each element"),
        ("broadcast_to", _) => all("summed over the copies"),
        ("reshape" | "permute" | "identity" | "cast", _) => all("1, element by element"),
        ("slice" | "index_select" | "gather", _) => all("1 at the elements taken, else 0"),
        ("concat", _) => all("1 for its own part"),
        ("max" | "min", _) => all("1 at the extreme, shared if equal"),
        ("clamp", _) => all("1 inside, else 0"),
        (name, _) => all(&format!("pullback of {name}")),
    };
    match style {
        Style::Plain => words,
        Style::Latex => words.iter().map(|w| format!("\\text{{{}}}", w.replace('_', "\\_"))).collect(),
    }
}
