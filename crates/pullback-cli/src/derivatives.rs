//! `grad`, `jacobian`, `hessian`, `hvp`, `taylor` and `check`, at one point or at many.

use crate::args::Derivative;
use crate::failure::{Failure, NO, Result};
use crate::model::{Model, Point, element_names};
use crate::report::{Cell, Format, Report, Table, Tone, columns};
use crate::subject::{Function, parse_point, read_text, write_out};
use crate::{explain, npy, points, values};
use pullback::{Tensor, hessian, hvp, jacobian, taylor};
use pullback_expr::json::Json;
use pullback_expr::scalar::Array;
use pullback_expr::{Digits, number};

/// Which derivative.
pub enum Kind {
    Gradient,
    Jacobian,
    Hessian,
    Product { along: String },
    Taylor { along: Option<String>, order: usize },
    Check { tolerance: f64 },
}

/// Numbers with names for the rows and the columns.
struct Matrix {
    rows: Vec<String>,
    columns: Vec<String>,
    data: Vec<f64>,
}

/// A model as a function of one vector: all elements of its inputs that have derivatives, to all elements of its outputs.
struct Flat<'a> {
    model: &'a Model,
    inputs: &'a [Tensor],
}

impl Flat<'_> {
    fn moving(&self) -> impl Iterator<Item = usize> {
        (0..self.inputs.len()).filter(|k| self.inputs[*k].dtype().is_float())
    }

    fn point(&self) -> Result<Tensor> {
        self.joined(self.inputs)
    }

    fn joined(&self, parts: &[Tensor]) -> Result<Tensor> {
        let flat: Vec<Tensor> = self.moving().map(|k| parts[k].reshape([-1isize])).collect();
        match flat.is_empty() {
            true => Err(Failure::new("there is no input to differentiate with respect to")),
            false => Ok(Tensor::concat(&flat, 0)),
        }
    }

    fn names(&self) -> Vec<String> {
        let named = |k: usize| element_names(&self.model.inputs[k].name, self.inputs[k].shape());
        self.moving().flat_map(named).collect()
    }

    fn outputs(&self, x: &Tensor) -> Vec<Tensor> {
        let mut all = self.inputs.to_vec();
        let mut start = 0;
        for k in self.moving() {
            let n = all[k].numel();
            let shape = all[k].shape().to_vec();
            all[k] = x.narrow(0, start, n).reshape(shape);
            start += n;
        }
        self.model.graph.run(&all).unwrap_or_else(|e| panic!("{}", crate::failure::plain(&e)))
    }

    /// All outputs, one after the other.
    fn run(&self, x: &Tensor) -> Tensor {
        let parts: Vec<Tensor> = self.outputs(x).iter().map(|y| y.reshape([-1isize])).collect();
        Tensor::concat(&parts, 0)
    }

    /// The only output, a number.
    fn number(&self, x: &Tensor) -> Tensor {
        self.outputs(x).swap_remove(0).reshape([0usize; 0])
    }

    fn output_names(&self) -> Vec<String> {
        let y = self.model.graph.run(self.inputs).unwrap_or_default();
        self.model.outputs.iter().zip(&y).flat_map(|(n, y)| element_names(n, y.shape())).collect()
    }

    fn need_number(&self, what: &str) -> Result<()> {
        match self.output_names().len() {
            1 => Ok(()),
            n => Err(Failure::new(format!(
                "{what} needs one number as the result, there are {n}; use jacobian, or sum(..)"
            ))),
        }
    }

    /// A direction in the space of the inputs; a name that is not mentioned stays.
    fn direction(&self, text: &str) -> Result<Tensor> {
        let given = parse_point("--along", text)?;
        if let Some((name, _)) = given.iter().find(|g| !self.model.inputs.iter().any(|i| i.name == g.0)) {
            return Err(Failure::new(format!("--along: there is no input `{name}`")));
        }
        let mut parts = Vec::new();
        for (i, x) in self.model.inputs.iter().zip(self.inputs) {
            parts.push(match given.iter().find(|g| g.0 == i.name) {
                None => x.zeros_like(),
                Some((_, array)) if array.shape == x.shape() => crate::model::tensor(array).cast(x.dtype()),
                Some((name, array)) => {
                    let (wanted, shape) = (x.shape(), &array.shape);
                    return Err(Failure::new(format!(
                        "--along: `{name}` has the shape {wanted:?}, not {shape:?}"
                    )));
                }
            });
        }
        self.joined(&parts)
    }
}

/// Derivatives of a step of this size: the central difference at two distances, extrapolated.
fn difference(f: impl Fn(f64) -> f64, size: f64) -> f64 {
    let h = 1e-3 * size.abs().max(1.0);
    let slope = |h: f64| (f(h) - f(-h)) / (2.0 * h);
    (4.0 * slope(h / 2.0) - slope(h)) / 3.0
}

fn compute(kind: &Kind, flat: &Flat) -> Result<Matrix> {
    let x = flat.point()?;
    let names = flat.names();
    Ok(match kind {
        Kind::Gradient => {
            flat.need_number("the gradient")?;
            let g = pullback::grad(|x: &Tensor| flat.number(x))(&x);
            Matrix { rows: vec![flat.model.outputs[0].clone()], columns: names, data: g.to_vec() }
        }
        Kind::Jacobian => {
            let j = jacobian(|x: &Tensor| flat.run(x))(&x);
            Matrix { rows: flat.output_names(), columns: names, data: j.to_vec() }
        }
        Kind::Hessian => {
            flat.need_number("the Hessian")?;
            let h = hessian(|x: &Tensor| flat.number(x))(&x);
            Matrix { rows: names.clone(), columns: names, data: h.to_vec() }
        }
        Kind::Product { along } => {
            flat.need_number("the Hessian")?;
            let v = flat.direction(along)?;
            let hv = hvp(|x: &Tensor| flat.number(x), &x, &v);
            Matrix { rows: vec!["H v".into()], columns: names, data: hv.to_vec() }
        }
        Kind::Taylor { along, order } => {
            let direction = match along {
                Some(text) => flat.direction(text)?,
                None if names.len() == 1 => x.ones_like(),
                None => {
                    return Err(Failure::new("there is more than one number to vary: say --along x=1,y=0"));
                }
            };
            let series = taylor(|x: &Tensor| flat.run(x), &x, &direction, *order);
            let rows = flat.output_names();
            let columns = (0..=*order).map(|k| format!("t^{k}")).collect::<Vec<_>>();
            let by_power: Vec<Vec<f64>> = series.iter().map(|c| c.to_vec()).collect();
            let data = (0..rows.len()).flat_map(|r| by_power.iter().map(move |c| c[r])).collect();
            Matrix { rows, columns, data }
        }
        Kind::Check { .. } => {
            flat.need_number("the check")?;
            let g = pullback::grad(|x: &Tensor| flat.number(x))(&x).to_vec::<f64>();
            let at = x.to_vec::<f64>();
            let differences = (0..at.len()).map(|k| {
                let moved = |h: f64| {
                    let mut x = at.clone();
                    x[k] += h;
                    flat.number(&Tensor::from_slice(&x, [x.len()])).item()
                };
                difference(moved, at[k])
            });
            let d: Vec<f64> = differences.collect();
            let errors = g.iter().zip(&d).map(|(g, d)| (g - d).abs());
            let data = g.iter().copied().chain(d.iter().copied()).chain(errors).collect();
            let rows = ["gradient", "difference", "error"].map(String::from).to_vec();
            Matrix { rows, columns: names, data }
        }
    })
}

/// Runs a command of this family.
pub fn run(kind: &Kind, args: &Derivative) -> Result<()> {
    let function = args.subject.function()?;
    let many = match &args.points {
        Some(path) => {
            let name =
                if path.as_os_str() == "-" { "standard input".into() } else { path.display().to_string() };
            Some(points::parse(&name, &read_text(path)?)?)
        }
        None => None,
    };
    // What --at says holds at every point of the file.
    let fixed = args.subject.point()?.unwrap_or_default();
    let merged = |p: &Point| {
        let given: Vec<_> = fixed.iter().filter(|f| !p.iter().any(|q| q.0 == f.0)).cloned().collect();
        [p.clone(), given].concat()
    };
    let points: Vec<Point> = match &many {
        Some(points) => points.iter().map(merged).collect(),
        None => vec![fixed],
    };
    let mut results = Vec::with_capacity(points.len());
    for point in &points {
        results.push(at(kind, &function, point)?);
    }
    if args.npy {
        write_out(args.format.out.as_ref(), &npy::write(&stacked(kind, &results, many.is_some())))?;
    } else {
        let format = args.format.format();
        let digits = if format == Format::Csv { Digits::All } else { args.format.digits() };
        let report = match many {
            Some(_) => table_of_points(kind, &results, digits),
            None => one(kind, &results[0], digits),
        };
        write_out(args.format.out.as_ref(), report.write(format).as_bytes())?;
    }
    verdict(kind, &results)
}

struct Answer {
    heading: String,
    /// Names and values of the inputs.
    at: Vec<(String, Tensor)>,
    value: Vec<(String, Tensor)>,
    matrix: Matrix,
}

fn at(kind: &Kind, function: &Function, point: &Point) -> Result<Answer> {
    let model = function.at(point)?;
    let inputs = model.values(point)?;
    let flat = Flat { model: &model, inputs: &inputs };
    let matrix = compute(kind, &flat)?;
    let value = model.outputs.iter().cloned().zip(model.graph.run(&inputs)?).collect();
    let heading = explain::heading(&model, Some(&inputs), Digits::Significant(10));
    let at = model.inputs.iter().map(|i| i.name.clone()).zip(inputs).collect();
    Ok(Answer { heading, at, value, matrix })
}

fn verdict(kind: &Kind, results: &[Answer]) -> Result<()> {
    let Kind::Check { tolerance } = kind else { return Ok(()) };
    for a in results {
        let n = a.matrix.columns.len();
        for k in 0..n {
            let (g, error) = (a.matrix.data[k], a.matrix.data[2 * n + k]);
            if error.is_nan() || error > tolerance * (1.0 + g.abs()) {
                let name = &a.matrix.columns[k];
                let message =
                    format!("the derivative with respect to {name} differs from the difference by {error:e}");
                return Err(Failure { message, code: NO });
            }
        }
    }
    Ok(())
}

fn stacked(kind: &Kind, results: &[Answer], many: bool) -> Array {
    let m = &results[0].matrix;
    let mut shape = match kind {
        Kind::Gradient | Kind::Product { .. } => vec![m.columns.len()],
        _ => vec![m.rows.len(), m.columns.len()],
    };
    if many {
        shape.insert(0, results.len());
    }
    Array { shape, elements: results.iter().flat_map(|a| a.matrix.data.clone()).collect() }
}

/// What a number of the matrix is called.
fn name_of(kind: &Kind, a: &Answer, row: usize, column: usize) -> String {
    let m = &a.matrix;
    let output = a.value.first().map_or("y", |v| v.0.as_str());
    match kind {
        Kind::Gradient | Kind::Jacobian => format!("∂{}/∂{}", m.rows[row], m.columns[column]),
        Kind::Hessian => format!("∂²{output}/∂{}∂{}", m.rows[row], m.columns[column]),
        Kind::Product { .. } => format!("(Hv) {}", m.columns[column]),
        Kind::Taylor { .. } if m.rows.len() == 1 => m.columns[column].clone(),
        Kind::Taylor { .. } => format!("{} {}", m.rows[row], m.columns[column]),
        Kind::Check { .. } => format!("{} {}", m.rows[row], m.columns[column]),
    }
}

/// The result at one point.
fn one(kind: &Kind, a: &Answer, digits: Digits) -> Report {
    let m = &a.matrix;
    let cell = |v: f64| Cell::new(number(v, digits), Tone::Result);
    let values = a
        .value
        .iter()
        .map(|(n, v)| vec![Cell::new(n, Tone::Name), Cell::new(values::text(v, digits), Tone::Result)]);
    let value_table =
        Table { title: "Value".into(), columns: columns(["output", "value"]), rows: values.collect() };
    let n = m.columns.len();
    let table = match kind {
        Kind::Gradient | Kind::Product { .. } => {
            let title = if matches!(kind, Kind::Gradient) { "Gradient" } else { "Hessian times vector" };
            let row = |k: usize| vec![Cell::new(name_of(kind, a, 0, k), Tone::Name), cell(m.data[k])];
            Table {
                title: title.into(),
                columns: columns(["derivative", "value"]),
                rows: (0..n).map(row).collect(),
            }
        }
        Kind::Check { .. } => {
            let row = |k: usize| {
                let g = |r: usize| m.data[r * n + k];
                let error = Cell::new(number(g(2), Digits::Significant(2)), Tone::Number);
                vec![Cell::new(&m.columns[k], Tone::Name), cell(g(0)), cell(g(1)), error]
            };
            let columns = columns(["input", "derivative", "finite difference", "error"]);
            Table { title: "Check".into(), columns, rows: (0..n).map(row).collect() }
        }
        Kind::Taylor { .. } => {
            let columns = std::iter::once("power".to_string()).chain(m.rows.clone()).collect();
            let row = |k: usize| {
                let name = Cell::new(&m.columns[k], Tone::Name);
                std::iter::once(name).chain((0..m.rows.len()).map(|r| cell(m.data[r * n + k]))).collect()
            };
            Table { title: "Taylor coefficients".into(), columns, rows: (0..n).map(row).collect() }
        }
        Kind::Jacobian | Kind::Hessian => {
            let title = if matches!(kind, Kind::Jacobian) { "Jacobian" } else { "Hessian" };
            let columns = std::iter::once(String::new()).chain(m.columns.clone()).collect();
            let row = |r: usize| {
                let name = Cell::new(&m.rows[r], Tone::Name);
                std::iter::once(name).chain((0..n).map(|c| cell(m.data[r * n + c]))).collect()
            };
            Table { title: title.into(), columns, rows: (0..m.rows.len()).map(row).collect() }
        }
    };
    Report { heading: a.heading.clone(), tables: vec![value_table, table], json: json(kind, a) }
}

/// One line for each point.
fn table_of_points(kind: &Kind, results: &[Answer], digits: Digits) -> Report {
    let first = &results[0];
    let inputs = first.at.iter().flat_map(|(n, x)| element_names(n, x.shape()));
    let outputs = first.value.iter().flat_map(|(n, y)| element_names(n, y.shape()));
    let (rows, columns) = (first.matrix.rows.len(), first.matrix.columns.len());
    let derivatives = (0..rows).flat_map(|r| (0..columns).map(move |c| name_of(kind, first, r, c)));
    let columns = inputs.chain(outputs).chain(derivatives).collect();
    let row = |a: &Answer| {
        let known = a.at.iter().chain(&a.value).flat_map(|(_, t)| t.to_vec::<f64>());
        let known = known.map(|v| Cell::new(number(v, digits), Tone::Number));
        known.chain(a.matrix.data.iter().map(|v| Cell::new(number(*v, digits), Tone::Result))).collect()
    };
    let table = Table { title: String::new(), columns, rows: results.iter().map(row).collect() };
    Report {
        heading: String::new(),
        tables: vec![table],
        json: Json::list(results.iter().map(|a| json(kind, a))),
    }
}

fn json(kind: &Kind, a: &Answer) -> Json {
    let m = &a.matrix;
    let n = m.columns.len();
    let by_input = |data: &[f64]| {
        let mut start = 0;
        let field = |(name, x): &(String, Tensor)| {
            let part = Tensor::from_slice(&data[start..start + x.numel()], x.shape());
            start += x.numel();
            (name.clone(), values::json(&part))
        };
        Json::Object(a.at.iter().filter(|(_, x)| x.dtype().is_float()).map(field).collect())
    };
    let names = |names: &[String]| Json::list(names.iter().map(Json::text));
    let matrix = || Json::list(m.data.chunks(n).map(|r| Json::list(r.iter().map(|v| Json::Number(*v)))));
    let value = match &a.value[..] {
        [(_, v)] => values::json(v),
        all => Json::Object(all.iter().map(|(n, v)| (n.clone(), values::json(v))).collect()),
    };
    let at = Json::Object(a.at.iter().map(|(n, v)| (n.clone(), values::json(v))).collect());
    let mut fields = vec![("at".to_string(), at), ("value".to_string(), value)];
    match kind {
        Kind::Gradient => fields.push(("gradient".into(), by_input(&m.data))),
        Kind::Product { .. } => fields.push(("hvp".into(), by_input(&m.data))),
        Kind::Jacobian | Kind::Hessian => {
            fields.push(("rows".into(), names(&m.rows)));
            fields.push(("columns".into(), names(&m.columns)));
            fields
                .push((if matches!(kind, Kind::Jacobian) { "jacobian" } else { "hessian" }.into(), matrix()));
        }
        Kind::Taylor { .. } => {
            let series = m
                .rows
                .iter()
                .zip(m.data.chunks(n))
                .map(|(r, c)| (r.clone(), Json::list(c.iter().map(|v| Json::Number(*v)))));
            fields.push(("coefficients".into(), Json::Object(series.collect())));
        }
        Kind::Check { .. } => {
            for (name, row) in ["gradient", "difference", "error"].into_iter().zip(m.data.chunks(n)) {
                fields.push((name.into(), by_input(row)));
            }
        }
    }
    Json::Object(fields)
}
