//! A recorded function as source text.

use super::graph::{Comparison, Graph, Op};
use std::fmt::Write;

/// What differs between the languages.
struct Language {
    /// A step, given the number of the node and its expression.
    step: fn(usize, &str) -> String,
    /// A number.
    literal: fn(f64) -> String,
    /// The expression of an operation, with `{0}`, `{1}`, `{2}` for its arguments.
    template: fn(Op) -> String,
    /// What ends the function where a condition says that it is outside its branch.
    leave: fn(&str) -> String,
}

/// The function as Rust.
pub(super) fn rust(graph: &Graph, name: &str) -> String {
    let language = Language {
        step: |k, value| format!("    let v{k} = {value};\n"),
        literal: |x| match x {
            x if x.is_nan() => "f64::NAN".into(),
            f64::INFINITY => "f64::INFINITY".into(),
            f64::NEG_INFINITY => "f64::NEG_INFINITY".into(),
            x => format!("{x:?}_f64"),
        },
        template: rust_template,
        leave: |condition| format!("    if {condition} {{\n        return false;\n    }}\n"),
    };
    let (n, m) = (graph.inputs, graph.outputs.len());
    let mut text = format!("pub fn {name}(x: &[f64; {n}], y: &mut [f64; {m}]) -> bool {{\n");
    body(graph, &language, &mut text);
    text.push_str("    true\n}\n");
    text
}

/// The function as C99.
pub(super) fn c(graph: &Graph, name: &str) -> String {
    let language = Language {
        step: |k, value| format!("    const double v{k} = {value};\n"),
        literal: |x| match x {
            x if x.is_nan() => "NAN".into(),
            f64::INFINITY => "INFINITY".into(),
            f64::NEG_INFINITY => "-INFINITY".into(),
            x => format!("{x:?}"),
        },
        template: c_template,
        leave: |condition| format!("    if ({condition}) return 0;\n"),
    };
    let mut text = format!("#include <math.h>\n\nint {name}(const double *x, double *y) {{\n");
    body(graph, &language, &mut text);
    text.push_str("    return 1;\n}\n");
    text
}

fn body(graph: &Graph, language: &Language, text: &mut String) {
    let mut guards: Vec<_> = graph.guards.iter().collect();
    guards.sort_by_key(|g| g.a.max(g.b));
    let mut guards = guards.into_iter().peekable();
    for (k, node) in graph.nodes.iter().enumerate() {
        let value = match node.op {
            Op::Input => format!("x[{}]", node.args[0]),
            Op::Constant => (language.literal)(graph.constants[node.args[0] as usize]),
            op => {
                let mut value = (language.template)(op);
                for (place, a) in node.reads().iter().enumerate() {
                    value = value.replace(&format!("{{{place}}}"), &format!("v{a}"));
                }
                value
            }
        };
        text.push_str(&(language.step)(k, &value));
        while let Some(g) = guards.next_if(|g| g.a.max(g.b) as usize <= k) {
            let (a, b) = (g.a, g.b);
            let holds = match g.comparison {
                Comparison::Value => format!("v{a} == v{b} || (v{a} != v{a} && v{b} != v{b})"),
                comparison => format!("v{a} {comparison} v{b}"),
            };
            let fails = if g.outcome { format!("!({holds})") } else { holds };
            text.push_str(&(language.leave)(&fails));
        }
    }
    for (k, y) in graph.outputs.iter().enumerate() {
        writeln!(text, "    y[{k}] = v{y};").expect("writing to a string");
    }
}

/// What is written alike in both languages.
fn common(op: Op) -> Option<&'static str> {
    Some(match op {
        Op::Fixed => "{0}",
        Op::Neg => "-{0}",
        Op::Add => "{0} + {1}",
        Op::Sub => "{0} - {1}",
        Op::Mul => "{0} * {1}",
        Op::Square => "{0} * {0}",
        Op::Div => "{0} / {1}",
        Op::Recip => "1.0 / {0}",
        _ => return None,
    })
}

fn rust_template(op: Op) -> String {
    if let Some(text) = common(op) {
        return text.into();
    }
    match op {
        Op::Less => "if {0} < {1} { 1.0 } else { 0.0 }".into(),
        Op::LessEqual => "if {0} <= {1} { 1.0 } else { 0.0 }".into(),
        Op::Select => "if {0} != 0.0 { {1} } else { {2} }".into(),
        Op::Chain => "if {0} == 0.0 || {1} == 0.0 { 0.0 } else { {0} * {1} }".into(),
        Op::MulAdd => "{0} * {1} + {2}".into(),
        Op::MulSub => "{0} * {1} - {2}".into(),
        Op::NegMulAdd => "{2} - {0} * {1}".into(),
        Op::Rem => "{0} % {1}".into(),
        Op::Pow => "{0}.powf({1})".into(),
        Op::Atan2 | Op::Hypot => format!("{{0}}.{}({{1}})", op.name()),
        Op::Round => "{0}.round_ties_even()".into(),
        Op::Expm1 => "{0}.exp_m1()".into(),
        Op::Log1p => "{0}.ln_1p()".into(),
        Op::Abs
        | Op::Floor
        | Op::Ceil
        | Op::Trunc
        | Op::Sqrt
        | Op::Cbrt
        | Op::Exp
        | Op::Exp2
        | Op::Ln
        | Op::Log2 => {
            format!("{{0}}.{}()", op.name())
        }
        Op::Log10
        | Op::Sin
        | Op::Cos
        | Op::Tan
        | Op::Asin
        | Op::Acos
        | Op::Atan
        | Op::Sinh
        | Op::Cosh
        | Op::Tanh => {
            format!("{{0}}.{}()", op.name())
        }
        Op::Asinh | Op::Acosh | Op::Atanh => format!("{{0}}.{}()", op.name()),
        // Not in the standard library.
        op if op.arity() == 1 => format!("pullback::scalar::Number::{}({{0}})", op.name()),
        op => format!("pullback::scalar::Number::{}({{0}}, {{1}})", op.name()),
    }
}

fn c_template(op: Op) -> String {
    if let Some(text) = common(op) {
        return text.into();
    }
    match op {
        Op::Less => "{0} < {1} ? 1.0 : 0.0",
        Op::LessEqual => "{0} <= {1} ? 1.0 : 0.0",
        Op::Select => "{0} != 0.0 ? {1} : {2}",
        Op::Chain => "{0} == 0.0 || {1} == 0.0 ? 0.0 : {0} * {1}",
        Op::MulAdd => "{0} * {1} + {2}",
        Op::MulSub => "{0} * {1} - {2}",
        Op::NegMulAdd => "{2} - {0} * {1}",
        Op::Abs => "fabs({0})",
        Op::Sign => "{0} > 0.0 ? 1.0 : {0} < 0.0 ? -1.0 : {0}",
        Op::Step => "{0} > 0.0 ? 1.0 : 0.0",
        Op::Relu => "{0} <= 0.0 ? 0.0 : {0}",
        Op::Round => "rint({0})",
        Op::Ln => "log({0})",
        Op::Rsqrt => "1.0 / sqrt({0})",
        Op::Sigmoid => "{0} < 0.0 ? exp({0}) / (1.0 + exp({0})) : 1.0 / (1.0 + exp(-{0}))",
        Op::Silu => "{0} / (1.0 + exp(-{0}))",
        Op::Softplus => "fmax({0}, 0.0) + log1p(exp(-fabs({0})))",
        Op::Gelu => "{0} * (erfc({0} * -0.7071067811865476) * 0.5)",
        Op::Gate => "{0} == 0.0 || {1} == 0.0 ? 0.0 : {0} * {1}",
        Op::Rem => "fmod({0}, {1})",
        Op::Xlogy => "{0} == 0.0 ? 0.0 : {0} * log({1})",
        Op::Maximum => "{0} > {1} || {0} != {0} ? {0} : {1}",
        Op::Minimum => "{0} < {1} || {0} != {0} ? {0} : {1}",
        Op::Share => "{0} > {1} ? 1.0 : {0} == {1} ? 0.5 : 0.0",
        Op::Logaddexp => "fmax({0}, {1}) + log1p({0} == {1} ? 1.0 : exp(-fabs({0} - {1})))",
        // The rest are functions of the same name in math.h.
        op if op.arity() == 1 => return format!("{}({{0}})", op.name()),
        op => return format!("{}({{0}}, {{1}})", op.name()),
    }
    .into()
}
