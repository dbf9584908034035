//! `pullback minimize`: gradient descent, Adam, L-BFGS and Newton.

use crate::args::{self, Method};
use crate::draw::Scene;
use crate::failure::{Failure, NO, Result};
use crate::model::{Model, Point, element_names};
use crate::plot::{self, Sampled, Span, contour::Field, frame::Frame};
use crate::report::{Cell, Report, Table, Tone, columns};
use crate::subject::{parse_point, write_out};
use crate::{explain, values};
use pullback::{Tensor, hessian, value_and_grad};
use pullback_expr::json::Json;
use pullback_expr::{Digits, number};
use std::io::{IsTerminal, Write};
use std::path::PathBuf;

/// A function of a vector, with its derivatives.
struct Objective<'a> {
    model: &'a Model,
    start: Vec<Tensor>,
}

impl Objective<'_> {
    fn run(&self, x: &Tensor) -> Tensor {
        let mut at = 0;
        let part = |t: &Tensor| {
            at += t.numel();
            x.narrow(0, at - t.numel(), t.numel()).reshape(t.shape())
        };
        let inputs: Vec<Tensor> = self.start.iter().map(part).collect();
        self.model.graph.run(&inputs).expect("it has run before").swap_remove(0).reshape([0usize; 0])
    }

    fn value(&self, x: &[f64]) -> f64 {
        self.run(&Tensor::from_slice(x, [x.len()])).item()
    }

    fn gradient(&self, x: &[f64]) -> (f64, Vec<f64>) {
        let (y, g) = value_and_grad(|x: &Tensor| self.run(x))(&Tensor::from_slice(x, [x.len()]));
        (y.item(), g.to_vec())
    }

    fn hessian(&self, x: &[f64]) -> Vec<f64> {
        hessian(|x: &Tensor| self.run(x))(&Tensor::from_slice(x, [x.len()])).to_vec()
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn moved(x: &[f64], along: &[f64], by: f64) -> Vec<f64> {
    x.iter().zip(along).map(|(x, d)| x + by * d).collect()
}

/// Every point on the way, with its value and the length of the gradient.
struct Path {
    points: Vec<Vec<f64>>,
    values: Vec<f64>,
    lengths: Vec<f64>,
    why: &'static str,
    converged: bool,
}

pub fn run(args: &args::Minimize) -> Result<()> {
    let function = args.subject.function()?;
    let point = match (&args.from, args.subject.point()?) {
        (Some(text), None) => parse_point("--from", text)?,
        (None, Some(point)) => point,
        (Some(text), Some(fixed)) => [parse_point("--from", text)?, fixed].concat(),
        (None, None) => return Err(Failure::new("a search needs a start: say --from x=1,y=1")),
    };
    let model = function.at(&point)?;
    let start = model.values(&point)?;
    if start.is_empty() || start.iter().any(|t| !t.dtype().is_float()) {
        return Err(Failure::new("there is nothing to vary"));
    }
    if model.graph.run(&start)?[0].numel() != 1 || model.outputs.len() != 1 {
        return Err(Failure::new("only one number can be minimised; the expression has more results"));
    }
    let x: Vec<f64> = start.iter().flat_map(|t| t.to_vec::<f64>()).collect();
    let objective = Objective { model: &model, start };
    let path = search(&objective, x, args);
    if let Some(file) = &args.plot {
        draw(&model, &point, &path, file)?;
    }
    let report = report(&model, &objective, &path, args)?;
    write_out(args.format.out.as_ref(), report.write(args.format.format()).as_bytes())?;
    match path.converged {
        true => Ok(()),
        false => Err(not_converged(&path, args)),
    }
}

/// What was found is no minimum, and a script must not take it for one.
fn not_converged(path: &Path, args: &args::Minimize) -> Failure {
    let length = path.lengths.last().copied().unwrap_or(f64::NAN);
    let show = |v: f64| number(v, Digits::Significant(4));
    let message = format!(
        "not converged: {}, and |gradient| is {}, above the tolerance {}\n  = help: try more --iterations, another --method or --step, \
         another start, or a higher --tolerance",
        path.why,
        show(length),
        show(args.tolerance)
    );
    Failure { message, code: NO }
}

fn search(f: &Objective, start: Vec<f64>, args: &args::Minimize) -> Path {
    let mut path = Path {
        points: Vec::new(),
        values: Vec::new(),
        lengths: Vec::new(),
        why: "the iterations are used up",
        converged: false,
    };
    let mut x = start;
    let mut state = State::new(args.method, x.len(), args.step);
    let terminal = std::io::stderr().is_terminal();
    for k in 0..=args.iterations {
        let (y, g) = f.gradient(&x);
        let length = dot(&g, &g).sqrt();
        path.points.push(x.clone());
        path.values.push(y);
        path.lengths.push(length);
        if terminal && (k % 20 == 0 || length <= args.tolerance) {
            eprint!("\r{k:>6}  f = {y:<24.16e} |gradient| = {length:<12.4e}");
            let _ = std::io::stderr().flush();
        }
        if !y.is_finite() || !length.is_finite() {
            path.why = "the value is not finite any more";
            break;
        }
        if length <= args.tolerance {
            path.why = "the gradient is zero";
            path.converged = true;
            break;
        }
        if k == args.iterations {
            break;
        }
        match state.step(f, &x, y, &g) {
            Some(next) => x = next,
            None => {
                path.why = "no step makes it smaller";
                break;
            }
        }
    }
    if terminal {
        eprintln!();
    }
    path
}

/// What a method remembers.
struct State {
    method: Method,
    rate: f64,
    count: i32,
    mean: Vec<f64>,
    square: Vec<f64>,
    /// Steps with the changes of the gradient, newest last.
    pairs: Vec<(Vec<f64>, Vec<f64>)>,
    before: Option<(Vec<f64>, Vec<f64>)>,
}

/// How many pairs L-BFGS keeps.
const MEMORY: usize = 10;

impl State {
    fn new(method: Method, n: usize, rate: Option<f64>) -> State {
        let usual = if matches!(method, Method::Adam) { 0.05 } else { 1e-3 };
        let rate = rate.unwrap_or(usual);
        State {
            method,
            rate,
            count: 0,
            mean: vec![0.0; n],
            square: vec![0.0; n],
            pairs: Vec::new(),
            before: None,
        }
    }

    fn step(&mut self, f: &Objective, x: &[f64], y: f64, g: &[f64]) -> Option<Vec<f64>> {
        match self.method {
            Method::Gd => Some(moved(x, g, -self.rate)),
            Method::Adam => Some(self.adam(x, g)),
            Method::Lbfgs => {
                let direction = self.quasi_newton(x, g);
                let found = wolfe(f, x, y, g, &direction).or_else(|| line_search(f, x, y, g, &direction));
                found.or_else(|| {
                    // What was learnt elsewhere may mislead here: retry along the gradient alone.
                    self.pairs.clear();
                    line_search(f, x, y, g, &moved(&vec![0.0; x.len()], g, -1.0))
                })
            }
            Method::Newton => line_search(f, x, y, g, &newton(&f.hessian(x), g)),
        }
    }

    fn adam(&mut self, x: &[f64], g: &[f64]) -> Vec<f64> {
        self.count += 1;
        let (a, b) = (0.9f64, 0.999f64);
        let (ca, cb) = (1.0 - a.powi(self.count), 1.0 - b.powi(self.count));
        for ((mean, square), g) in self.mean.iter_mut().zip(&mut self.square).zip(g) {
            *mean = a * *mean + (1.0 - a) * g;
            *square = b * *square + (1.0 - b) * g * g;
        }
        let by = |k: usize| self.rate * (self.mean[k] / ca) / ((self.square[k] / cb).sqrt() + 1e-8);
        (0..x.len()).map(|k| x[k] - by(k)).collect()
    }

    /// The two loops of L-BFGS (Nocedal 1980).
    fn quasi_newton(&mut self, x: &[f64], g: &[f64]) -> Vec<f64> {
        if let Some((x0, g0)) = self.before.replace((x.to_vec(), g.to_vec())) {
            let (s, y) = (moved(x, &x0, -1.0), moved(g, &g0, -1.0));
            if dot(&s, &y) > 1e-14 * dot(&y, &y) {
                self.pairs.push((s, y));
            }
            if self.pairs.len() > MEMORY {
                self.pairs.remove(0);
            }
        }
        let mut q = g.to_vec();
        let mut factors = Vec::new();
        for (s, y) in self.pairs.iter().rev() {
            let a = dot(s, &q) / dot(y, s);
            q = moved(&q, y, -a);
            factors.push(a);
        }
        if let Some((s, y)) = self.pairs.last() {
            let scale = dot(s, y) / dot(y, y);
            q.iter_mut().for_each(|q| *q *= scale);
        }
        for ((s, y), a) in self.pairs.iter().zip(factors.iter().rev()) {
            let b = dot(y, &q) / dot(y, s);
            q = moved(&q, s, a - b);
        }
        q.iter().map(|q| -q).collect()
    }
}

/// A step along a direction that descends enough (Armijo), halved until it does.
fn line_search(f: &Objective, x: &[f64], y: f64, g: &[f64], direction: &[f64]) -> Option<Vec<f64>> {
    let slope = dot(g, direction);
    if slope >= 0.0 || !slope.is_finite() {
        return None;
    }
    let mut t = 1.0;
    for _ in 0..60 {
        let next = moved(x, direction, t);
        if f.value(&next) <= y + 1e-4 * t * slope && next != x {
            return Some(next);
        }
        t /= 2.0;
    }
    None
}

/// A step that descends enough and is long enough that the slope has flattened (Wolfe), by bisection: so that every step teaches
/// L-BFGS a positive curvature.
fn wolfe(f: &Objective, x: &[f64], y: f64, g: &[f64], direction: &[f64]) -> Option<Vec<f64>> {
    let slope = dot(g, direction);
    let (mut low, mut high, mut t) = (0.0, f64::INFINITY, 1.0);
    for _ in 0..40 {
        let next = moved(x, direction, t);
        let (value, gradient) = f.gradient(&next);
        if value.is_nan() || value > y + 1e-4 * t * slope {
            high = t;
        } else if dot(&gradient, direction) < 0.9 * slope {
            low = t;
        } else {
            return (next != x).then_some(next);
        }
        t = if high.is_finite() { (low + high) / 2.0 } else { 2.0 * low };
    }
    None
}

/// `-(H + λ)⁻¹ g` with the least λ of a list that makes the matrix positive definite.
fn newton(h: &[f64], g: &[f64]) -> Vec<f64> {
    let n = g.len();
    let size = (0..n).map(|k| h[k * n + k].abs()).fold(1e-12, f64::max);
    let mut shift = 0.0;
    loop {
        let mut m = h.to_vec();
        (0..n).for_each(|k| m[k * n + k] += shift);
        if let Some(step) = solve(m, n, g) {
            return step.iter().map(|s| -s).collect();
        }
        shift = if shift == 0.0 { 1e-6 * size } else { 10.0 * shift };
        if shift > 1e12 * size || !shift.is_finite() {
            return g.iter().map(|g| -g).collect();
        }
    }
}

/// Solves with a symmetric matrix by Cholesky's method; `None` if it is not positive definite.
fn solve(mut m: Vec<f64>, n: usize, b: &[f64]) -> Option<Vec<f64>> {
    for j in 0..n {
        for k in 0..j {
            for i in j..n {
                m[i * n + j] -= m[i * n + k] * m[j * n + k];
            }
        }
        let pivot = m[j * n + j];
        if !(pivot > 0.0 && pivot.is_finite()) {
            return None;
        }
        let root = pivot.sqrt();
        (j..n).for_each(|i| m[i * n + j] /= root);
    }
    let mut x = b.to_vec();
    for i in 0..n {
        let known: f64 = (0..i).map(|k| m[i * n + k] * x[k]).sum();
        x[i] = (x[i] - known) / m[i * n + i];
    }
    for i in (0..n).rev() {
        let known: f64 = (i + 1..n).map(|k| m[k * n + i] * x[k]).sum();
        x[i] = (x[i] - known) / m[i * n + i];
    }
    Some(x)
}

fn report(model: &Model, f: &Objective, path: &Path, args: &args::Minimize) -> Result<Report> {
    let digits = args.format.digits();
    let last = path.points.len() - 1;
    let x = &path.points[last];
    let names: Vec<String> = model.inputs.iter().flat_map(|i| element_names(&i.name, &i.shape)).collect();
    let pair =
        |name: &str, text: String, tone: Tone| vec![Cell::new(name, Tone::Name), Cell::new(text, tone)];
    let mut rows = vec![
        pair("iterations", last.to_string(), Tone::Number),
        pair("stopped because", path.why.to_string(), Tone::Plain),
        pair("|gradient|", number(path.lengths[last], Digits::Significant(4)), Tone::Number),
        pair(&model.outputs[0], number(path.values[last], digits), Tone::Result),
    ];
    rows.extend(names.iter().zip(x).map(|(n, v)| pair(n, number(*v, digits), Tone::Result)));
    let title = if path.converged { "Minimum" } else { "Where the search stopped" };
    let table = Table { title: title.into(), columns: columns(["", "value"]), rows };
    let mut at = 0;
    let parts = model.inputs.iter().zip(&f.start).map(|(i, t)| {
        at += t.numel();
        (i.name.clone(), values::json(&Tensor::from_slice(&x[at - t.numel()..at], t.shape())))
    });
    let json = Json::object([
        ("minimum", Json::Object(parts.collect())),
        ("value", path.values[last].into()),
        ("gradient_length", path.lengths[last].into()),
        ("iterations", last.into()),
        ("stopped", Json::text(path.why)),
        ("converged", Json::Bool(path.converged)),
        ("values", Json::list(path.values.iter().map(|v| Json::Number(*v)))),
    ]);
    Ok(Report { heading: explain::heading(model, Some(&f.start), digits), tables: vec![table], json })
}

const PATH: &str = "#b1420c";

/// The path over level lines if there are two numbers, else the values over the iterations.
fn draw(model: &Model, point: &Point, path: &Path, file: &PathBuf) -> Result<()> {
    let scene = match &model.inputs[..] {
        [a, b] if a.shape.is_empty() && b.shape.is_empty() => {
            let span = |name: &str, k: usize| {
                let along = || path.points.iter().map(|p| p[k]).filter(|v| v.is_finite());
                let (low, high) =
                    (along().fold(f64::INFINITY, f64::min), along().fold(f64::NEG_INFINITY, f64::max));
                let room = 0.25 * (high - low).max(1e-3);
                Span { name: name.to_string(), from: low - room, to: high + room }
            };
            let (x, y) = (span(&a.name, 0), span(&b.name, 1));
            let sampled = Sampled::new(model, point, &[x.clone(), y.clone()])?;
            let field = Field::of(&sampled, &x, &y);
            let mut scene = field.scene(false);
            let places: Vec<(f64, f64)> =
                path.points.iter().map(|p| field.frame().place(p[0], p[1])).collect();
            trail(&mut scene, places);
            scene
        }
        _ => {
            let least = path.values.iter().copied().fold(f64::INFINITY, f64::min);
            let gap = |v: f64| (v - least).max(1e-16).log10();
            let frame = Frame::new(
                (0.0, path.values.len() as f64),
                plot::frame::range(path.values.iter().map(|v| gap(*v))),
            );
            let mut scene = frame.scene();
            frame.draw(&mut scene, "distance from the least value found", ("iteration", "log10"));
            let places =
                path.values.iter().enumerate().map(|(k, v)| frame.place(k as f64, gap(*v))).collect();
            trail(&mut scene, places);
            scene
        }
    };
    let kind = plot::kind(false, false, Some(file));
    write_out(Some(file), &plot::picture(&scene, &kind)?)
}

fn trail(scene: &mut Scene, places: Vec<(f64, f64)>) {
    if places.len() < 400 {
        places.iter().for_each(|p| scene.dot(*p, 2.4, PATH));
    }
    if let (Some(first), Some(last)) = (places.first().copied(), places.last().copied()) {
        scene.line(places, PATH, 1.6);
        scene.dot(first, 4.5, "#1c2126");
        scene.dot(last, 5.0, PATH);
    }
}
