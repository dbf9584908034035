//! `pullback plot`: a function of one variable with its derivatives, or level lines and gradients of one of two.
//!
//! Why not by `plotters`: it was tried. Its drawing areas are made of whole pixels, in SVG too, so that curves come out in steps; it has no
//! level lines, no numbers on lines and no arrows, which are most of this folder; and its bitmaps need a font file. For frames, ticks and legends, some
//! hundred lines, it took 15 more crates, 26 s of processor time in a fresh release build, and 0.6 MB in the program (1.4 instead of 0.75 MB with tiny-skia
//! alone). Scenes are needed anyway, for the drawings of `pullback graph`.

pub mod contour;
mod curves;
pub mod frame;

use crate::args;
use crate::draw::{Scene, png, svg};
use crate::failure::{Failure, Result};
use crate::model::{Model, Point};
use crate::subject::{parse_point, write_out};
use pullback::Tensor;
use pullback_expr::scalar::Array;
use std::path::PathBuf;

/// A variable, from here to there.
#[derive(Clone, Debug)]
pub struct Span {
    pub name: String,
    pub from: f64,
    pub to: f64,
}

/// What to make of it.
pub enum Kind {
    Svg,
    Png,
    Text,
}

pub fn kind(svg: bool, png: bool, out: Option<&PathBuf>) -> Kind {
    match out.and_then(|p| p.extension()).and_then(|e| e.to_str()) {
        _ if svg => Kind::Svg,
        _ if png => Kind::Png,
        Some("svg") => Kind::Svg,
        Some("png") => Kind::Png,
        _ => Kind::Text,
    }
}

pub fn picture(scene: &Scene, kind: &Kind) -> Result<Vec<u8>> {
    match kind {
        Kind::Png => png(scene),
        _ => Ok(svg(scene).into_bytes()),
    }
}

pub fn run(args: &args::Plot) -> Result<()> {
    let function = args.subject.function()?;
    let fixed = args.subject.point()?.unwrap_or_default();
    let names: Vec<String> =
        function.names().into_iter().filter(|n| !fixed.iter().any(|f| f.0 == *n)).collect();
    let spans = spans(&args.range, &names)?;
    let mut point = fixed;
    point.extend(spans.iter().map(|s| (s.name.clone(), Array::number((s.from + s.to) / 2.0))));
    if let Some((name, _)) = point.iter().find(|p| !function.names().contains(&p.0)) {
        return Err(Failure::new(format!("there is no input `{name}` in the expression")));
    }
    let model = function.shaped(&point)?;
    let sampled = Sampled::new(&model, &point, &spans)?;
    let kind = kind(args.svg, args.png, args.out.as_ref());
    let width = usize::from(args.width);
    // What `grad` would say of the middle of the range.
    let undefined = || {
        let why = function.at(&point).err();
        why.unwrap_or_else(|| Failure::new("the function has no value anywhere in the range"))
    };
    let bytes = match &spans[..] {
        [span] => {
            let curves = curves::Curves::of(&sampled, span, usize::from(args.derivatives));
            match kind {
                _ if !curves.is_defined() => return Err(undefined()),
                Kind::Text => curves.text(width).into_bytes(),
                kind => picture(&curves.scene(), &kind)?,
            }
        }
        [x, y] => {
            let field = contour::Field::of(&sampled, x, y);
            match kind {
                _ if !field.is_defined() => return Err(undefined()),
                Kind::Text => field.text(width).into_bytes(),
                kind => picture(&field.scene(true), &kind)?,
            }
        }
        _ => {
            return Err(Failure::new(format!(
                "one or two variables can be plotted, these are {}; fix some with --at",
                names.len()
            )));
        }
    };
    write_out(args.out.as_ref(), &bytes)
}

/// The ranges of the variables: one for all, or one for each name.
fn spans(text: &str, names: &[String]) -> Result<Vec<Span>> {
    if names.is_empty() {
        return Err(Failure::new("there is no variable to plot over"));
    }
    let bad = |part: &str| Failure::new(format!("--range: expected -5..5 or x=-5..5,y=0..2, found `{part}`"));
    let bounds = |part: &str| -> Result<(f64, f64)> {
        let (a, b) = part.split_once("..").ok_or_else(|| bad(part))?;
        let number =
            |t: &str| -> Result<f64> { Ok(parse_point("--range", &format!("v={t}"))?[0].1.elements[0]) };
        match (number(a)?, number(b)?) {
            (a, b) if a < b && a.is_finite() && b.is_finite() => Ok((a, b)),
            _ => Err(Failure::new(format!("--range: `{part}` must go from a smaller to a larger number"))),
        }
    };
    if !text.contains('=') {
        let (from, to) = bounds(text)?;
        return Ok(names.iter().map(|n| Span { name: n.clone(), from, to }).collect());
    }
    let mut out = Vec::new();
    for part in text.split(',') {
        let (name, range) = part.split_once('=').ok_or_else(|| bad(part))?;
        let (from, to) = bounds(range)?;
        out.push(Span { name: name.trim().to_string(), from, to });
    }
    match names.iter().find(|n| !out.iter().any(|s| s.name == **n)) {
        Some(name) => Err(Failure::new(format!(
            "`{name}` has neither a range nor a value; say --range {name}=-5..5 or --at {name}=1"
        ))),
        None => Ok(out),
    }
}

/// A model as a function of the variables that are plotted.
pub struct Sampled<'a> {
    model: &'a Model,
    inputs: Vec<Tensor>,
    places: Vec<usize>,
}

impl<'a> Sampled<'a> {
    pub fn new(model: &'a Model, point: &Point, spans: &[Span]) -> Result<Sampled<'a>> {
        let inputs = model.values(point)?;
        let place = |s: &Span| {
            let missing =
                || Failure::new(format!("`{}` counts something, and cannot be plotted over", s.name));
            model.inputs.iter().position(|i| i.name == s.name).ok_or_else(missing)
        };
        let places = spans.iter().map(place).collect::<Result<Vec<usize>>>()?;
        let outputs = model.graph.run(&inputs)?;
        match outputs[0].numel() {
            1 => Ok(Sampled { model, inputs, places }),
            n => Err(Failure::new(format!("a plot needs a number as the result, this has {n} elements"))),
        }
    }

    fn run(&self, x: &[Tensor]) -> Tensor {
        let mut all = self.inputs.clone();
        self.places.iter().zip(x).for_each(|(k, x)| all[*k] = x.clone());
        self.model.graph.run(&all).expect("it has run before").swap_remove(0).reshape([0usize; 0])
    }

    fn value(&self, x: &[f64]) -> f64 {
        self.run(&x.iter().map(|v| Tensor::scalar(*v)).collect::<Vec<_>>()).item()
    }

    /// The value and the derivatives up to an order, in one variable.
    fn derivatives(&self, x: f64, order: usize) -> Vec<f64> {
        let series = pullback::taylor(
            |t: &Tensor| self.run(std::slice::from_ref(t)),
            &Tensor::scalar(x),
            &Tensor::scalar(1.0),
            order,
        );
        // Where the function has no value it has no derivative, whatever the formula of that would say.
        if !series[0].item().is_finite() {
            return vec![f64::NAN; order + 1];
        }
        let mut factorial = 1.0;
        let derivative = |(k, c): (usize, &Tensor)| {
            factorial *= k.max(1) as f64;
            c.item() * factorial
        };
        series.iter().enumerate().map(derivative).collect()
    }

    /// The gradient.
    fn gradient(&self, x: &[f64]) -> Vec<f64> {
        let x: Vec<Tensor> = x.iter().map(|v| Tensor::scalar(*v)).collect();
        pullback::grad(|x: &Vec<Tensor>| self.run(x))(&x).iter().map(|g| g.item()).collect()
    }

    pub fn title(&self) -> String {
        let text = &self.model.title;
        if text.chars().count() > 60 {
            format!("{}…", text.chars().take(60).collect::<String>())
        } else {
            text.clone()
        }
    }
}
