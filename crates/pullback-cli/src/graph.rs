//! `pullback graph`: the computation graph with values and adjoints on its nodes, and contributions on its arrows.

use crate::account::{Adjoints, Listing, Values};
use crate::args;
use crate::draw::{Anchor, Scene, Shape, png, svg};
use crate::explain;
use crate::failure::{Failure, Result};
use crate::report::{Format, ascii};
use crate::subject::write_out;
use crate::values;
use pullback::Place;
use pullback_expr::Digits;
use pullback_expr::layout::Direction;
use pullback_expr::picture::{Arrow, CHARACTER, Node, Picture};
use pullback_expr::symbolic::Style;
use std::collections::HashMap;
use std::fmt::Write;

/// Larger graphs are not drawn unless that is asked for.
const LARGE: usize = 3000;

pub fn run(args: &args::Graph) -> Result<()> {
    let function = args.subject.function()?;
    let point = args.subject.point()?;
    let model = match &point {
        Some(point) => function.at(point)?,
        None => function.anywhere()?,
    };
    if args.ir {
        return write_out(args.out.as_ref(), format!("{}\n", model.graph).as_bytes());
    }
    let ending = args.out.as_ref().and_then(|p| p.extension()).and_then(|e| e.to_str());
    let drawn = args.dot || args.svg || args.png || matches!(ending, Some("dot" | "gv" | "svg" | "png"));
    let digits = Digits::Significant(usize::from(args.digits));
    let output = model.output(args.output.as_deref())?;
    let inputs = match &point {
        Some(point) => Some(model.values(point)?),
        None => None,
    };
    if model.graph.len() > LARGE && !args.all {
        if drawn {
            let n = model.graph.len();
            return Err(Failure::new(format!("the graph has {n} steps; --all draws it all the same")));
        }
        let options = explain::Options { forward: false, output, along: None, digits, all: false };
        let report = explain::explain(&model, inputs.as_deref(), &options)?;
        return write_out(args.out.as_ref(), report.write(Format::Plain).as_bytes());
    }
    let listing = Listing::new(&model);
    let picture = match &inputs {
        Some(inputs) => {
            let values = listing.evaluate(inputs)?;
            let adjoints = listing.pull(&values, output)?;
            picture(&listing, Some((&values, &adjoints)), digits)
        }
        None => picture(&listing, None, digits),
    };
    let direction = if args.down { Direction::Down } else { Direction::Right };
    let bytes = match ending {
        _ if args.dot => dot(&picture).into_bytes(),
        _ if args.svg => svg(&scene(&picture, direction)).into_bytes(),
        _ if args.png => png(&scene(&picture, direction))?,
        _ if args.plain => ascii(&text(&picture)).into_bytes(),
        Some("dot" | "gv") => dot(&picture).into_bytes(),
        Some("svg") => svg(&scene(&picture, direction)).into_bytes(),
        Some("png") => png(&scene(&picture, direction))?,
        _ => text(&picture).into_bytes(),
    };
    write_out(args.out.as_ref(), &bytes)
}

/// The picture of a graph.
pub fn picture(listing: &Listing, at: Option<(&Values, &Adjoints)>, digits: Digits) -> Picture {
    let nodes = listing.entries.iter().enumerate().map(|(k, e)| Node {
        name: e.name.clone(),
        given: e.given.clone(),
        operation: e.operation.to_string(),
        formula: listing.formula(e, Style::Plain),
        value: at.map(|(v, _)| values::text(listing.value(v, e.place), digits)),
        adjoint: at.and_then(|(_, a)| a.adjoints[k].as_ref().map(|g| values::text(g, digits))),
        span: None,
    });
    let contributions: HashMap<(Place, usize), _> =
        at.iter().flat_map(|(_, a)| &a.contributions).map(|c| ((c.from, c.operand), c)).collect();
    let mut arrows = Vec::new();
    for (to, e) in listing.entries.iter().enumerate().rev() {
        let rules = listing.partials(e, Style::Plain);
        for (operand, arg) in e.args.iter().enumerate() {
            let Some(from) = listing.entry(*arg) else { continue };
            let c = contributions.get(&(e.place, operand));
            arrows.push(Arrow {
                from,
                to,
                rule: rules[operand].clone(),
                slope: c.and_then(|c| c.slope).map(|s| pullback_expr::number(s, digits)),
                amount: c.map(|c| values::text(&c.amount, digits)),
                sum: c.map(|c| values::text(&c.sum, digits)),
            });
        }
    }
    let results = listing.model.graph.results();
    let outputs = listing.model.outputs.iter().zip(results);
    let outputs = outputs.filter_map(|(n, p)| listing.entry(p).map(|e| (n.clone(), e))).collect();
    Picture { nodes: nodes.collect(), arrows, outputs }
}

/// A tree from each output down to the inputs; what is shared is written once.
fn text(picture: &Picture) -> String {
    let mut operands: Vec<Vec<&Arrow>> = vec![Vec::new(); picture.nodes.len()];
    picture.arrows.iter().for_each(|a| operands[a.to].push(a));
    let mut seen = vec![false; picture.nodes.len()];
    let mut lines: Vec<[String; 4]> = Vec::new();
    // (node, arrow that led here, indentation of its line, indentation of its operands)
    let roots = picture.outputs.iter().rev().map(|o| (o.1, None, String::new(), String::new()));
    let mut stack: Vec<(usize, Option<&Arrow>, String, String)> = roots.collect();
    while let Some((k, arrow, own, below)) = stack.pop() {
        let n = &picture.nodes[k];
        let again = std::mem::replace(&mut seen[k], true) && !operands[k].is_empty();
        let mut head = n.name.clone();
        if !n.formula.is_empty() {
            let _ = write!(head, " = {}", n.formula);
        }
        if let Some(given) = &n.given {
            let _ = write!(head, " = {given}");
        }
        let back = match arrow {
            Some(Arrow { amount: Some(amount), rule, .. }) => {
                format!("gets {amount} (local derivative {rule})")
            }
            _ => String::new(),
        };
        let adjoint = n.adjoint.as_ref().map_or(String::new(), |a| format!("adj {a}"));
        let mark = if again { " (above)" } else { "" };
        lines.push([format!("{own}{head}{mark}"), n.value.clone().unwrap_or_default(), adjoint, back]);
        if again {
            continue;
        }
        let too_deep = below.chars().count() > 120;
        for (i, a) in operands[k].iter().enumerate().rev() {
            let last = i + 1 == operands[k].len();
            let (branch, rest) = match (too_deep, last) {
                (true, _) => ("", ""),
                (_, true) => ("└─ ", "   "),
                (_, false) => ("├─ ", "│  "),
            };
            stack.push((a.from, Some(a), format!("{below}{branch}"), format!("{below}{rest}")));
        }
    }
    let width = |c: usize| lines.iter().map(|l| l[c].chars().count()).max().unwrap_or(0);
    let widths = [width(0), width(1), width(2)];
    let mut out = String::new();
    for l in &lines {
        let mut line = String::new();
        for c in 0..3 {
            let _ = write!(line, "{}{}", l[c], " ".repeat(widths[c] - l[c].chars().count() + 2));
        }
        let _ = writeln!(out, "{}", format!("{line}{}", l[3]).trim_end());
    }
    out
}

fn dot(picture: &Picture) -> String {
    let quoted = |s: &str| s.replace('\\', "\\\\").replace('"', "\\\"");
    let mut out = String::from(
        "digraph pullback {\n  rankdir=LR;\n  node [shape=box, style=rounded, fontname=\"monospace\"];\n  edge [fontname=\"monospace\", fontcolor=\"#b1420c\"];\n",
    );
    for (k, n) in picture.nodes.iter().enumerate() {
        let label: Vec<String> = n.lines().iter().map(|l| quoted(l)).collect();
        let style = if n.operation == "input" { ", style=\"rounded,dashed\"" } else { "" };
        let _ = writeln!(out, "  n{k} [label=\"{}\"{style}];", label.join("\\n"));
    }
    for a in &picture.arrows {
        let label = a.amount.as_deref().unwrap_or_default();
        let _ = writeln!(out, "  n{} -> n{} [label=\"{}\"];", a.from, a.to, quoted(label));
    }
    out.push_str("}\n");
    out
}

const INK: &str = "#1c2126";
const VALUE: &str = "#0b62a8";
const ADJOINT: &str = "#b1420c";
const LINE: &str = "#8a939d";

/// A point of the curve between two places, a little above it. The numbers of neighbours stand at different ones.
fn on_curve(a: (f64, f64), b: (f64, f64), direction: Direction, t: f64) -> (f64, f64) {
    let start = (1.0 - t).powi(2) * (1.0 + 2.0 * t);
    let flat = |a: f64, b: f64| a * start + b * (1.0 - start);
    let along = |a: f64, b: f64| (1.0 - t).powi(3) * a + 1.5 * t * (1.0 - t) * (a + b) + t.powi(3) * b;
    match direction {
        Direction::Right => (along(a.0, b.0), flat(a.1, b.1) - 3.0),
        Direction::Down => (flat(a.0, b.0), along(a.1, b.1) - 3.0),
    }
}

fn scene(picture: &Picture, direction: Direction) -> Scene {
    let placed = picture.layout(direction);
    let sizes = picture.sizes();
    let mut scene = Scene::new(placed.width, placed.height);
    // Above all lines.
    let mut labels = Vec::new();
    for (turn, (a, route)) in picture.arrows.iter().zip(&placed.routes).enumerate() {
        let mut points = vec![route[0]];
        for pair in route.windows(2) {
            let (p, q) = (pair[0], pair[1]);
            let (mx, my) = ((p.0 + q.0) / 2.0, (p.1 + q.1) / 2.0);
            points.extend(match direction {
                Direction::Right => [(mx, p.1), (mx, q.1), q],
                Direction::Down => [(p.0, my), (q.0, my), q],
            });
        }
        let tip = route[route.len() - 1];
        let before = match direction {
            Direction::Right => (tip.0 - 10.0, tip.1),
            Direction::Down => (tip.0, tip.1 - 10.0),
        };
        scene.shapes.push(Shape::Line { points, curved: true, colour: LINE, width: 1.2 });
        scene.head(before, tip, 8.0, LINE);
        if let Some(amount) = &a.amount {
            let k = (route.len() - 1) / 2;
            let at = on_curve(route[k], route[k + 1], direction, if turn % 2 == 0 { 0.4 } else { 0.64 });
            let half = amount.chars().count() as f64 * 3.3;
            let (fill, line) = ("#ffffff", "#ffffff");
            let (x, y, width, height) = (at.0 - half, at.1 - 9.0, 2.0 * half, 11.0);
            labels.push(Shape::Rect { x, y, width, height, radius: 3.0, fill, line, dashed: false });
            let (x, y, text) = (at.0, at.1, amount.clone());
            labels.push(Shape::Text { x, y, size: 10.5, anchor: Anchor::Middle, colour: ADJOINT, text });
        }
    }
    scene.shapes.append(&mut labels);
    for ((n, size), centre) in picture.nodes.iter().zip(&sizes).zip(&placed.centres) {
        let (x, y) = (centre.0 - size.0 / 2.0, centre.1 - size.1 / 2.0);
        let (width, height) = *size;
        let dashed = n.operation == "input";
        scene.shapes.push(Shape::Rect {
            x,
            y,
            width,
            height,
            radius: 8.0,
            fill: "#ffffff",
            line: LINE,
            dashed,
        });
        let lines = n.lines();
        let top = centre.1 - (lines.len() as f64 - 1.0) / 2.0 * CHARACTER.1 + 4.0;
        for (k, line) in lines.iter().enumerate() {
            let colour = match k {
                0 => INK,
                1 => VALUE,
                _ => ADJOINT,
            };
            scene.text((centre.0, top + k as f64 * CHARACTER.1), 12.2, Anchor::Middle, colour, line);
        }
    }
    scene
}
