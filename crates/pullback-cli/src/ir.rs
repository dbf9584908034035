//! Graph files: `run`, `opt`, `fmt` and `verify`.

use crate::args;
use crate::explain;
use crate::failure::{Failure, Result, io, plain};
use crate::files;
use crate::model::{Input, Model, Point};
use crate::profile;
use crate::report::{Cell, Report, Table, Tone, columns};
use crate::subject::{parse_point, write_out};
use crate::values;
use pullback::opt::Options;
use pullback::{Graph, Tensor, Tree, compile};
use pullback_expr::json::Json;
use pullback_expr::{Problem, Span};
use std::io::Read;
use std::path::Path;

/// What files that a graph was saved to begin with; others are text.
const SAVED: &[u8] = b"pullback graph ";

fn bytes(path: &Path) -> Result<(String, Vec<u8>)> {
    if path == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::stdin().lock().read_to_end(&mut bytes).map_err(io("standard input"))?;
        return Ok(("standard input".into(), bytes));
    }
    let name = path.display().to_string();
    let bytes = std::fs::read(path).map_err(io(&name))?;
    Ok((name, bytes))
}

fn load(path: &Path) -> Result<(String, Graph)> {
    let (name, bytes) = bytes(path)?;
    let graph = graph(&name, &bytes)?;
    Ok((name, graph))
}

fn graph(name: &str, bytes: &[u8]) -> Result<Graph> {
    if bytes.starts_with(SAVED) {
        return Graph::from_bytes(bytes).map_err(|e| Failure::new(format!("{name}: {}", plain(&e))));
    }
    let at = |e: std::str::Utf8Error| Failure::new(format!("{name}: byte {} is not UTF-8", e.valid_up_to()));
    let text = std::str::from_utf8(bytes).map_err(at)?;
    text.parse::<Graph>().map_err(|e| pointed(name, text, &plain(&e)))
}

/// A message that says line and column, with the line itself.
fn pointed(name: &str, text: &str, message: &str) -> Failure {
    let place = || {
        let rest = message.strip_prefix("line ")?;
        let (line, rest) = rest.split_once(", column ")?;
        let (column, what) = rest.split_once(": ")?;
        let (line, column) = (line.parse::<usize>().ok()?, column.parse::<usize>().ok()?);
        let start: usize = text.split_inclusive('\n').take(line - 1).map(str::len).sum();
        let before: usize = text[start..].chars().take(column - 1).map(char::len_utf8).sum();
        Some(Problem::at(Span::new(start + before, start + before), what))
    };
    match place() {
        Some(problem) => Failure::in_text(&problem, name, text),
        None => Failure::new(format!("{name}: {message}")),
    }
}

/// The function that a graph describes: inputs `x0`, `x1`, .., outputs `y` or `y0`, `y1`, ..
fn described(name: &str, graph: Graph) -> Result<Model> {
    check_memory(&graph)?;
    check_real(name, &graph)?;
    let input = |(k, (dtype, shape)): (usize, _)| Input { name: format!("x{k}"), dtype, shape };
    let inputs = graph.input_types().into_iter().enumerate().map(input).collect();
    let count = graph.results().len();
    let outputs = (0..count).map(|k| if count == 1 { "y".to_string() } else { format!("y{k}") }).collect();
    match count {
        0 => Err(Failure::new(format!("{name}: the graph returns nothing"))),
        _ => Ok(Model { title: name.to_string(), inputs, outputs, graph }),
    }
}

/// Values and derivatives are shown as real numbers.
fn check_real(name: &str, graph: &Graph) -> Result<()> {
    let inputs = graph.input_types().into_iter().map(|(dtype, _)| dtype);
    let steps = graph.steps().flat_map(|s| s.outputs()).map(|(dtype, _)| dtype);
    match inputs.chain(steps).find(|dtype| dtype.is_complex()) {
        Some(dtype) => Err(Failure::new(format!(
            "{name}: the graph computes with {dtype}; of complex numbers only `fmt`, `opt` and `verify` know"
        ))),
        None => Ok(()),
    }
}

/// The function in the text of a graph file.
pub fn model(path: &Path) -> Result<Model> {
    Ok(with_lines(path)?.0)
}

/// The function, and the line of the file that each of its steps stands on.
fn with_lines(path: &Path) -> Result<(Model, Vec<usize>)> {
    let (name, bytes) = bytes(path)?;
    let model = described(&name, graph(&name, &bytes)?)?;
    let lines = std::str::from_utf8(&bytes).map(profile::step_lines).unwrap_or_default();
    Ok((model, lines))
}

/// A small text can ask for more memory than there is, which would end the program without a word.
fn check_memory(graph: &Graph) -> Result<()> {
    let needed = graph.statistics().peak_bytes as u64;
    let limit = memory().unwrap_or(u64::MAX >> 20);
    match needed > limit {
        true => Err(Failure::new(format!(
            "the graph needs {needed} bytes of memory at once, and there are {limit}"
        ))),
        false => Ok(()),
    }
}

/// The memory of this machine, where that is easy to find out.
fn memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find(|l| l.starts_with("MemTotal:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? * 1024)
}

pub fn fmt(args: &args::GraphFile) -> Result<()> {
    let (_, graph) = load(args.path())?;
    write_out(None, format!("{graph}\n").as_bytes())
}

pub fn verify(args: &args::GraphFile) -> Result<()> {
    let (name, graph) = load(args.path())?;
    graph.verify().map_err(|e| Failure::new(format!("{name}: {}", plain(&e))))?;
    eprintln!("{name}: {} operations, well formed", graph.len());
    Ok(())
}

/// The optimised graph, with what each pass did as comments before it.
pub fn opt(args: &args::GraphFile) -> Result<()> {
    let (_, graph) = load(args.path())?;
    let (better, report) = graph.optimize_with(&Options::default());
    let mut out = String::new();
    for p in &report.passes {
        let effect = match (p.changes, p.removed) {
            (0, _) => "nothing to do".to_string(),
            (_, 0) => "as many operations".to_string(),
            (_, n) if n > 0 => format!("{n} fewer"),
            (_, n) => format!("{} more", -n),
        };
        out.push_str(&format!("// {:<10}{:<20}{}\n", p.name, effect, p.about));
    }
    let (before, after) = (report.before, report.after);
    out.push_str(&format!("// {} operations of {}, ", after.operations, before.operations));
    out.push_str(&format!("{} flops of {}, ", after.flops, before.flops));
    out.push_str(&format!("peak of {} bytes of {}\n{better}\n", after.peak_bytes, before.peak_bytes));
    write_out(None, out.as_bytes())
}

pub fn run(args: &args::Run) -> Result<()> {
    let (model, lines) = with_lines(args.of.path())?;
    let inputs = inputs(&model, args)?;
    if args.profile {
        eprint!("{}", profile::table(&model, &inputs, &lines, args.compile)?);
    }
    let digits = args.format.digits();
    let report = if args.explain {
        let options = explain::Options { forward: false, output: 0, along: None, digits, all: false };
        explain::explain(&model, Some(&inputs), &options)?
    } else {
        evaluated(&model, &inputs, args)?
    };
    write_out(args.format.out.as_ref(), report.write(args.format.format()).as_bytes())
}

/// The outputs and, if that is wanted, the gradient of the first.
fn evaluated(model: &Model, inputs: &[Tensor], args: &args::Run) -> Result<Report> {
    let graph = &model.graph;
    let all = inputs.to_vec();
    let outputs = match args.compile {
        true => compile(|x: &Vec<Tensor>| graph.run(x).expect("it is well formed")).try_call(&all)?,
        false => graph.run(inputs)?,
    };
    let digits = args.format.digits();
    let row = |name: String, t: &Tensor| {
        let shape = Cell::new(format!("{}{:?}", t.dtype(), t.shape()), Tone::Faint);
        vec![Cell::new(name, Tone::Name), shape, Cell::new(values::text(t, digits), Tone::Result)]
    };
    let rows = model.outputs.iter().zip(&outputs).map(|(n, t)| row(n.clone(), t)).collect();
    let mut tables =
        vec![Table { title: "Outputs".into(), columns: columns(["output", "type", "value"]), rows }];
    let object = |pairs: Vec<(String, Json)>| Json::Object(pairs);
    let named = model.outputs.iter().zip(&outputs).map(|(n, t)| (n.clone(), values::json(t)));
    let mut fields = vec![("outputs".to_string(), object(named.collect()))];
    if args.grad {
        let g = match args.compile {
            true => compiled_gradient(model, &all)?,
            false => explain::gradient(model, inputs, 0)?.1,
        };
        let floats = model.inputs.iter().zip(&g).filter(|(i, _)| i.dtype.is_float());
        let rows =
            floats.clone().map(|(i, g)| row(format!("∂{}/∂{}", model.outputs[0], i.name), g)).collect();
        tables.push(Table {
            title: "Gradient".into(),
            columns: columns(["derivative", "type", "value"]),
            rows,
        });
        let named = floats.map(|(i, g)| (i.name.clone(), values::json(g)));
        fields.push(("gradient".to_string(), object(named.collect())));
    }
    Ok(Report { heading: model.title.clone(), tables, json: Json::Object(fields) })
}

/// The gradient by a compiled pass backward.
fn compiled_gradient(model: &Model, inputs: &Vec<Tensor>) -> Result<Vec<Tensor>> {
    if inputs.iter().any(|t| !t.dtype().is_float()) {
        return Ok(explain::gradient(model, inputs, 0)?.1);
    }
    let sum = |x: &Vec<Tensor>| model.graph.run(x).expect("it is well formed").swap_remove(0).sum();
    let backward = compile(|x: &Vec<Tensor>| pullback::grad(sum)(x));
    Ok(backward.try_call(inputs)?.flatten())
}

/// Values for all inputs, from files and from the command line.
fn inputs(model: &Model, args: &args::Run) -> Result<Vec<Tensor>> {
    let mut known: Vec<(String, Tensor)> = Vec::new();
    if !args.at.is_empty() {
        let point: Point = parse_point("--at", &args.at.join(","))?;
        known.extend(point.iter().map(|(n, a)| (n.clone(), crate::model::tensor(a))));
    }
    for given in &args.input {
        // An array without a name can only be the only input.
        let only = (model.inputs.len() == 1).then(|| model.inputs[0].name.as_str());
        known.extend(files::read(given, only)?);
    }
    let names: Vec<&str> = model.inputs.iter().map(|i| i.name.as_str()).collect();
    if let Some((name, _)) = known.iter().find(|k| !names.contains(&k.0.as_str())) {
        return Err(Failure::new(format!("the graph has no input `{name}`; it has {}", names.join(", "))));
    }
    let value = |i: &Input| {
        let Some((_, t)) = known.iter().find(|k| k.0 == i.name) else {
            return Err(Failure::new(format!("`{}` has no value; give it with --input or --at", i.name)));
        };
        match t.shape() == i.shape {
            true => Ok(t.cast(i.dtype)),
            false => {
                Err(Failure::new(format!("`{}` has the shape {:?}, not {:?}", i.name, i.shape, t.shape())))
            }
        }
    };
    model.inputs.iter().map(value).collect()
}
