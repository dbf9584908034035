//! `pullback explain`: the forward trace and the reverse trace, side by side with the rules that made them.

use crate::account::{Adjoints, Contribution, Entry, Listing, Values};
use crate::failure::{Failure, Result};
use crate::model::Model;
use crate::report::{Cell, Report, Table, Tone, columns};
use crate::values;
use pullback::{Place, Tensor};
use pullback_expr::json::Json;
use pullback_expr::symbolic::{Style, latex_name};
use pullback_expr::{Digits, number};
use std::collections::BTreeMap;

pub struct Options {
    pub forward: bool,
    /// The output that is differentiated.
    pub output: usize,
    /// The direction of the tangents; along each input in turn without it.
    pub along: Option<Vec<Tensor>>,
    pub digits: Digits,
    /// Write every step, however many there are.
    pub all: bool,
}

/// Longer traces are summed up.
const LONG: usize = 2000;

pub fn explain(model: &Model, inputs: Option<&[Tensor]>, options: &Options) -> Result<Report> {
    let heading = heading(model, inputs, options.digits);
    if model.graph.len() > LONG && !options.all {
        return summary(model, inputs, options, heading);
    }
    let listing = Listing::new(model);
    let Some(inputs) = inputs else {
        return Ok(symbolic(&listing, options, heading));
    };
    let values = listing.evaluate(inputs)?;
    if options.forward {
        return tangents(&listing, &values, options, heading);
    }
    let adjoints = listing.pull(&values, options.output)?;
    let steps = forward_table(&listing, Some(&values), options);
    let reverse = reverse_table(&listing, &adjoints, options);
    let gradient = gradient_table(&listing, &adjoints, options);
    let json = json(&listing, &values, &adjoints, options);
    Ok(Report { heading, tables: vec![steps, reverse, gradient], json })
}

/// The function and the point on one line.
pub fn heading(model: &Model, inputs: Option<&[Tensor]>, digits: Digits) -> String {
    let names: Vec<&str> = model.inputs.iter().map(|i| i.name.as_str()).collect();
    let text = format!("f({}) = {}", names.join(", "), model.title);
    let at = inputs.unwrap_or_default().iter();
    let at: Vec<String> =
        names.iter().zip(at).map(|(n, v)| format!("{n} = {}", values::text(v, digits))).collect();
    if at.is_empty() { text } else { format!("{text}   at {}", at.join(", ")) }
}

/// What the step is called in the tables: its own name, and the one it was given.
fn shown(e: &Entry) -> Cell {
    let text = match &e.given {
        Some(given) => format!("{} = {given}", e.name),
        None => e.name.clone(),
    };
    let latex = match &e.given {
        Some(given) => format!("{} = {}", latex_name(&e.name), latex_name(given)),
        None => latex_name(&e.name),
    };
    Cell::new(text, Tone::Name).latex(latex)
}

fn operation(e: &Entry) -> Cell {
    let text = match (e.operation, &e.attributes) {
        (op, a) if a.is_empty() || op == "compare" => op.to_string(),
        (op, a) => format!("{op} {{{a}}}"),
    };
    Cell::new(text, Tone::Faint)
}

fn formula(listing: &Listing, e: &Entry) -> Cell {
    Cell::new(listing.formula(e, Style::Plain), Tone::Plain).latex(listing.formula(e, Style::Latex))
}

fn numeric(t: &Tensor, digits: Digits) -> Cell {
    Cell::new(values::text(t, digits), Tone::Number)
}

fn has_tensors(listing: &Listing) -> bool {
    listing.entries.iter().any(|e| !e.shape.is_empty())
}

fn forward_table(listing: &Listing, values: Option<&Values>, options: &Options) -> Table {
    let with_shapes = has_tensors(listing);
    let mut columns = columns(["step", "operation", "formula"]);
    columns.extend(with_shapes.then(|| "shape".into()));
    columns.extend(values.map(|_| "value".into()));
    let row = |e: &Entry| {
        let mut row = vec![shown(e), operation(e), formula(listing, e)];
        if with_shapes {
            row.push(Cell::new(format!("{:?}", e.shape), Tone::Faint));
        }
        row.extend(values.map(|v| numeric(listing.value(v, e.place), options.digits)));
        row
    };
    let mut rows: Vec<Vec<Cell>> = listing.entries.iter().map(row).collect();
    // An output that depends on no input is no step, but has a value.
    for (place, name) in listing.model.graph.results().into_iter().zip(&listing.model.outputs) {
        if let Place::Constant(k) = place {
            let t = &listing.model.graph.constants()[k];
            let mut row = vec![Cell::new(name, Tone::Name), Cell::new("constant", Tone::Faint), "".into()];
            row.extend(with_shapes.then(|| Cell::new(format!("{:?}", t.shape()), Tone::Faint)));
            row.extend(values.map(|_| numeric(t, options.digits)));
            rows.push(row);
        }
    }
    Table { title: "Forward: values".into(), columns, rows }
}

/// `∂v3/∂v1`
fn quotient(listing: &Listing, of: &Entry, by: Place) -> (String, String) {
    let by = listing.names.of(by);
    let text = format!("∂{}/∂{by}", of.name);
    (text, format!("\\frac{{\\partial {}}}{{\\partial {}}}", latex_name(&of.name), latex_name(&by)))
}

fn reverse_table(listing: &Listing, adjoints: &Adjoints, options: &Options) -> Table {
    let columns =
        columns(["step", "adjoint", "local derivative", "is", "contribution", "added to", "sum so far"]);
    let mut rows = Vec::new();
    let mut previous = None;
    for c in &adjoints.contributions {
        let from = listing.entry(c.from).expect("a contribution comes from a step");
        let e = &listing.entries[from];
        let first = previous != Some(c.from);
        previous = Some(c.from);
        let adjoint = adjoints.adjoints[from].as_ref();
        let (rule, latex) = local(listing, e, c);
        let digits = options.digits;
        let slope = c.slope.map_or(String::new(), |s| number(s, digits));
        let amount = values::text(&c.amount, digits);
        let contribution = match (adjoint, c.slope) {
            (Some(a), Some(s)) => format!("{} · {} = {amount}", values::text(a, digits), wrapped(s, digits)),
            _ => amount,
        };
        let latex_contribution = contribution.replace('·', "\\cdot");
        let name = listing.names.of(c.to);
        rows.push(vec![
            if first { Cell::new(&e.name, Tone::Name).latex(latex_name(&e.name)) } else { "".into() },
            match adjoint {
                Some(a) if first => numeric(a, digits),
                _ => "".into(),
            },
            Cell::new(rule, Tone::Plain).latex(latex),
            Cell::new(slope, Tone::Number),
            Cell::new(&contribution, Tone::Number).latex(latex_contribution),
            Cell::new(format!("→ {name}"), Tone::Name).latex(format!("\\to {}", latex_name(&name))),
            numeric(&c.sum, digits),
        ]);
    }
    Table { title: "Reverse: adjoints".into(), columns, rows }
}

/// A negative factor in brackets.
fn wrapped(v: f64, digits: Digits) -> String {
    let text = number(v, digits);
    if text.starts_with('-') { format!("({text})") } else { text }
}

fn local(listing: &Listing, e: &Entry, c: &Contribution) -> (String, String) {
    let (name, latex_name) = quotient(listing, e, c.to);
    let rule = &listing.partials(e, Style::Plain)[c.operand];
    let latex = &listing.partials(e, Style::Latex)[c.operand];
    (format!("{name} = {rule}"), format!("{latex_name} = {latex}"))
}

fn gradient_table(listing: &Listing, adjoints: &Adjoints, options: &Options) -> Table {
    let output = &listing.model.outputs[options.output];
    let rows = listing.model.inputs.iter().enumerate().map(|(k, input)| {
        let name = format!("∂{output}/∂{}", input.name);
        let latex =
            format!("\\frac{{\\partial {}}}{{\\partial {}}}", latex_name(output), latex_name(&input.name));
        let value = match &adjoints.adjoints[k] {
            Some(g) => values::text(g, options.digits),
            None => "0".to_string(),
        };
        vec![Cell::new(name, Tone::Name).latex(latex), Cell::new(value, Tone::Result)]
    });
    let result = listing.entry(listing.model.graph.results()[options.output]);
    let is_number = result.is_none_or(|e| listing.entries[e].shape.is_empty());
    let title = if is_number { "Gradient" } else { "Gradient of the sum of the elements" };
    Table { title: title.into(), columns: columns(["derivative", "value"]), rows: rows.collect() }
}

/// The rules without numbers.
fn symbolic(listing: &Listing, options: &Options, heading: String) -> Report {
    let forward = forward_table(listing, None, options);
    let bar = |name: &str| format!("adj({name})");
    let (mut rows, mut steps) = (Vec::new(), Vec::new());
    let entries: Vec<&Entry> = if options.forward {
        listing.entries.iter().collect()
    } else {
        listing.entries.iter().rev().collect()
    };
    for e in entries.into_iter().filter(|e| !e.args.is_empty()) {
        let (plain, latex) = (listing.partials(e, Style::Plain), listing.partials(e, Style::Latex));
        for (k, arg) in e.args.iter().enumerate().filter(|(_, a)| !matches!(a, Place::Constant(_))) {
            let (name, latex_quotient) = quotient(listing, e, *arg);
            let to = listing.names.of(*arg);
            let (source, target) = if options.forward { (&to, &e.name) } else { (&e.name, &to) };
            let mark = |n: &str| if options.forward { format!("tan({n})") } else { bar(n) };
            let over = if options.forward { "\\dot" } else { "\\bar" };
            let product = product(&mark(source), &plain[k]);
            let latex_product = format!("{over}{{{}}} \\cdot {}", latex_name(source), latex[k]);
            steps.push(Json::object([
                ("step", Json::text(&e.name)),
                ("to", Json::text(target)),
                ("rule", Json::text(&plain[k])),
                ("contribution", Json::text(&product)),
            ]));
            rows.push(vec![
                Cell::new(&e.name, Tone::Name).latex(latex_name(&e.name)),
                Cell::new(format!("{name} = {}", plain[k]), Tone::Plain)
                    .latex(format!("{latex_quotient} = {}", latex[k])),
                Cell::new(product, Tone::Number).latex(latex_product),
                Cell::new(format!("→ {}", mark(target)), Tone::Name)
                    .latex(format!("\\to {over}{{{}}}", latex_name(target))),
            ]);
        }
    }
    let title = if options.forward { "Forward: tangents" } else { "Reverse: adjoints" };
    let columns = columns(["step", "local derivative", "contribution", "added to"]);
    let json = Json::object([
        ("expression", Json::text(&listing.model.title)),
        ("value", Json::Null),
        ("gradient", Json::Null),
        ("forward", Json::list(listing.entries.iter().map(|e| step_json(listing, None, e)))),
        (if options.forward { "tangents" } else { "reverse" }, Json::List(steps)),
    ]);
    Report { heading, tables: vec![forward, Table { title: title.into(), columns, rows }], json }
}

fn product(adjoint: &str, slope: &str) -> String {
    match slope {
        "1" => adjoint.to_string(),
        "-1" => format!("-{adjoint}"),
        s if s.contains(" + ") || s.contains(" - ") || s.starts_with('-') || s.contains(" if ") => {
            format!("{adjoint} · ({s})")
        }
        s => format!("{adjoint} · {s}"),
    }
}

/// One column of tangents for each direction.
fn tangents(listing: &Listing, values: &Values, options: &Options, heading: String) -> Result<Report> {
    let unit = |k: usize| -> Vec<Tensor> {
        values
            .inputs
            .iter()
            .enumerate()
            .map(|(j, v)| if j == k { v.ones_like() } else { v.zeros_like() })
            .collect()
    };
    let inputs = &listing.model.inputs;
    let directions: Vec<(String, Vec<Tensor>)> = match &options.along {
        Some(along) => vec![("the direction".into(), along.clone())],
        None => (0..inputs.len()).map(|k| (inputs[k].name.clone(), unit(k))).collect(),
    };
    let mut table = forward_table(listing, Some(values), options);
    table.title = "Forward: values and tangents".into();
    let mut json_steps: Vec<Json> =
        listing.entries.iter().map(|e| step_json(listing, Some(values), e)).collect();
    let mut along_each: Vec<(String, Json)> = Vec::new();
    let result = listing.model.graph.results()[options.output];
    for (name, direction) in &directions {
        let tangents = listing.push(values, direction)?;
        table.columns.push(format!("tangent along {name}"));
        for (k, row) in table.rows.iter_mut().enumerate() {
            row.push(tangents[k].as_ref().map_or("".into(), |t| numeric(t, options.digits)));
            if let (Json::Object(fields), Some(t)) = (&mut json_steps[k], &tangents[k]) {
                fields.push((format!("tangent {name}"), values::json(t)));
            }
        }
        let of_output = listing.entry(result).and_then(|e| tangents[e].clone());
        along_each.push((name.clone(), of_output.map_or(Json::Number(0.0), |t| values::json(&t))));
    }
    let json = Json::object([
        ("expression", Json::text(&listing.model.title)),
        ("value", output_json(listing, values, options)),
        ("gradient", Json::Object(along_each)),
        ("forward", Json::List(json_steps)),
        ("reverse", Json::List(Vec::new())),
    ]);
    Ok(Report { heading, tables: vec![table], json })
}

fn step_json(listing: &Listing, values: Option<&Values>, e: &Entry) -> Json {
    let mut fields = vec![
        ("step".to_string(), Json::text(&e.name)),
        ("operation".to_string(), Json::text(e.operation)),
        ("formula".to_string(), Json::text(listing.formula(e, Style::Plain))),
        ("shape".to_string(), Json::list(e.shape.iter().map(|n| Json::from(*n)))),
    ];
    if let Some(given) = &e.given {
        fields.push(("name".to_string(), Json::text(given)));
    }
    if let Some(values) = values {
        fields.push(("value".to_string(), values::json(listing.value(values, e.place))));
    }
    Json::Object(fields)
}

fn output_json(listing: &Listing, values: &Values, options: &Options) -> Json {
    values::json(listing.value(values, listing.model.graph.results()[options.output]))
}

fn json(listing: &Listing, values: &Values, adjoints: &Adjoints, options: &Options) -> Json {
    let gradient = listing.model.inputs.iter().enumerate().map(|(k, i)| {
        let g = adjoints.adjoints[k].clone().unwrap_or_else(|| values.inputs[k].zeros_like());
        (i.name.clone(), values::json(&g))
    });
    let at = listing.model.inputs.iter().zip(&values.inputs).map(|(i, v)| (i.name.clone(), values::json(v)));
    let step = |c: &Contribution| {
        let from = listing.entry(c.from).expect("a contribution comes from a step");
        let e = &listing.entries[from];
        Json::object([
            ("step", Json::text(&e.name)),
            ("adjoint", adjoints.adjoints[from].as_ref().map_or(Json::Null, values::json)),
            ("to", Json::text(listing.names.of(c.to))),
            ("rule", Json::text(&listing.partials(e, Style::Plain)[c.operand])),
            ("local", c.slope.map_or(Json::Null, Json::Number)),
            ("contribution", values::json(&c.amount)),
            ("sum", values::json(&c.sum)),
        ])
    };
    Json::object([
        ("expression", Json::text(&listing.model.title)),
        ("at", Json::Object(at.collect())),
        ("value", output_json(listing, values, options)),
        ("gradient", Json::Object(gradient.collect())),
        ("forward", Json::list(listing.entries.iter().map(|e| step_json(listing, Some(values), e)))),
        ("reverse", Json::list(adjoints.contributions.iter().map(step))),
    ])
}

/// What can be said of a graph that is too long to print.
fn summary(model: &Model, inputs: Option<&[Tensor]>, options: &Options, heading: String) -> Result<Report> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut depths: Vec<usize> = Vec::with_capacity(model.graph.len());
    for step in model.graph.steps() {
        *counts.entry(step.name()).or_default() += 1;
        let depth = |p: Place| if let Place::Step(k, _) = p { depths[k] } else { 0 };
        let own = step.args().into_iter().map(depth).max().unwrap_or(0) + 1;
        depths.push(own);
    }
    let mut counts: Vec<(&str, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|c| std::cmp::Reverse(c.1));
    let depth = depths.iter().max().copied().unwrap_or(0);
    let mut rows = vec![
        vec!["steps".into(), Cell::new(model.graph.len().to_string(), Tone::Number)],
        vec!["longest chain".into(), Cell::new(depth.to_string(), Tone::Number)],
    ];
    rows.extend(
        counts
            .iter()
            .map(|(op, n)| vec![Cell::new(*op, Tone::Faint), Cell::new(n.to_string(), Tone::Number)]),
    );
    let title = format!("The graph is long: a summary (--all prints its {} steps)", model.graph.len());
    let mut tables = vec![Table { title, columns: columns(["", "count"]), rows }];
    let mut fields = vec![
        ("expression".to_string(), Json::text(&model.title)),
        ("steps".to_string(), model.graph.len().into()),
        ("depth".to_string(), depth.into()),
        (
            "operations".to_string(),
            Json::Object(counts.iter().map(|(op, n)| (op.to_string(), (*n).into())).collect()),
        ),
        ("forward".to_string(), Json::List(Vec::new())),
        ("reverse".to_string(), Json::List(Vec::new())),
    ];
    if let Some(inputs) = inputs {
        let (value, g) = gradient(model, inputs, options.output)?;
        let name = &model.outputs[options.output];
        let mut rows = vec![vec![
            Cell::new(name, Tone::Name),
            Cell::new(values::text(&value, options.digits), Tone::Result),
        ]];
        rows.extend(model.inputs.iter().zip(&g).map(|(i, g)| {
            vec![
                Cell::new(format!("∂{name}/∂{}", i.name), Tone::Name),
                Cell::new(values::text(g, options.digits), Tone::Result),
            ]
        }));
        tables.push(Table { title: "Value and gradient".into(), columns: columns(["", "value"]), rows });
        fields.insert(1, ("value".to_string(), values::json(&value)));
        let g = model.inputs.iter().zip(&g).map(|(i, g)| (i.name.clone(), values::json(g)));
        fields.insert(2, ("gradient".to_string(), Json::Object(g.collect())));
    }
    Ok(Report { heading, tables, json: Json::Object(fields) })
}

/// The value of an output and the gradient of the sum of its elements, in one pass over the whole graph.
pub fn gradient(model: &Model, inputs: &[Tensor], output: usize) -> Result<(Tensor, Vec<Tensor>)> {
    let moving: Vec<usize> = (0..inputs.len()).filter(|k| inputs[*k].dtype().is_float()).collect();
    let x: Vec<Tensor> = moving.iter().map(|k| inputs[*k].clone()).collect();
    let at = |x: &Vec<Tensor>| -> pullback::Result<Tensor> {
        let mut all = inputs.to_vec();
        moving.iter().zip(x).for_each(|(k, x)| all[*k] = x.clone());
        Ok(model.graph.run(&all)?.swap_remove(output))
    };
    let value = at(&x)?;
    if !value.dtype().is_float() {
        return Err(Failure::new("the output is a truth value, which has no derivative"));
    }
    if x.is_empty() {
        return Ok((value, Vec::new()));
    }
    let g = pullback::grad(|x: &Vec<Tensor>| at(x).expect("it has run before").sum())(&x);
    let mut all: Vec<Tensor> = inputs.iter().map(|t| t.zeros_like()).collect();
    moving.iter().zip(g).for_each(|(k, g)| all[*k] = g);
    Ok((value, all))
}
