//! A function of one variable with its derivatives.

use super::frame::{Frame, INK, range};
use super::{Sampled, Span};
use crate::draw::{Anchor, Braille, Scene};
use pullback_expr::{Digits, number};

const SAMPLES: usize = 481;
const COLOURS: [&str; 5] = ["#0b62a8", "#b1420c", "#2f7d32", "#7b3fa0", "#8a6d00"];

pub struct Curves {
    title: String,
    variable: String,
    x: Vec<f64>,
    /// The function and its derivatives, each at every `x`.
    y: Vec<Vec<f64>>,
    span: (f64, f64),
}

impl Curves {
    pub fn of(f: &Sampled, span: &Span, order: usize) -> Curves {
        let step = (span.to - span.from) / (SAMPLES - 1) as f64;
        let x: Vec<f64> = (0..SAMPLES).map(|k| span.from + k as f64 * step).collect();
        let rows: Vec<Vec<f64>> = x.iter().map(|x| f.derivatives(*x, order)).collect();
        let y = (0..=order).map(|k| rows.iter().map(|r| r[k]).collect()).collect();
        Curves { title: f.title(), variable: span.name.clone(), x, y, span: (span.from, span.to) }
    }

    /// Whether the function has a value somewhere.
    pub fn is_defined(&self) -> bool {
        self.y[0].iter().any(|v| v.is_finite())
    }

    fn frame(&self) -> Frame {
        Frame::new(self.span, range(self.y.iter().flatten().copied()))
    }

    fn name(k: usize) -> String {
        format!("f{}", "'".repeat(k))
    }

    /// Pieces of a curve that can be drawn: between gaps, and not across poles.
    fn pieces<'a>(&'a self, y: &'a [f64], frame: &'a Frame) -> impl Iterator<Item = [(f64, f64); 2]> + 'a {
        let height = frame.y.1 - frame.y.0;
        let near = move |v: f64| v.is_finite() && v > frame.y.0 - height && v < frame.y.1 + height;
        (1..y.len())
            .filter(move |k| near(y[k - 1]) && near(y[*k]))
            .filter_map(move |k| clip([(self.x[k - 1], y[k - 1]), (self.x[k], y[k])], frame.y))
    }

    pub fn scene(&self) -> Scene {
        let frame = self.frame();
        let mut scene = frame.scene();
        frame.draw(&mut scene, &self.title, (&self.variable, ""));
        for (k, y) in self.y.iter().enumerate() {
            let mut line: Vec<(f64, f64)> = Vec::new();
            for [a, b] in self.pieces(y, &frame) {
                let (a, b) = (frame.place(a.0, a.1), frame.place(b.0, b.1));
                if line.last() != Some(&a) {
                    scene.line(std::mem::take(&mut line), COLOURS[k % 5], 2.0);
                    line.push(a);
                }
                line.push(b);
            }
            scene.line(line, COLOURS[k % 5], 2.0);
            let at = (frame.left + frame.width - 58.0, frame.top + 20.0 + 18.0 * k as f64);
            scene.line(vec![(at.0, at.1 - 4.0), (at.0 + 22.0, at.1 - 4.0)], COLOURS[k % 5], 2.0);
            scene.text((at.0 + 29.0, at.1), 12.5, Anchor::Start, INK, Curves::name(k));
        }
        scene.shapes.retain(|s| !matches!(s, crate::draw::Shape::Line { points, .. } if points.is_empty()));
        scene
    }

    /// One braille picture for each curve, so that they can be told apart without colour.
    pub fn text(&self, width: usize) -> String {
        let mut out = format!("f({}) = {}\n", self.variable, self.title);
        for (k, y) in self.y.iter().enumerate() {
            let frame = Frame::new(self.span, range(y.iter().copied()));
            let labels = [frame.y.1, frame.y.0].map(|v| number(v, Digits::Significant(4)));
            let margin = labels.iter().map(|l| l.len()).max().unwrap_or(0);
            let columns = width.saturating_sub(margin + 2).max(10);
            let rows = if self.y.len() == 1 { 16 } else { 11 };
            let mut canvas = Braille::new(columns, rows);
            for [a, b] in self.pieces(y, &frame) {
                canvas.line(frame.unit(a.0, a.1), frame.unit(b.0, b.1));
            }
            for j in (0..columns * 2).step_by(6) {
                let zero = frame.unit(0.0, 0.0);
                if (0.0..=1.0).contains(&zero.1) {
                    let x = j as f64 / (2 * columns - 1) as f64;
                    canvas.line((x, zero.1), (x, zero.1));
                }
            }
            out.push_str(&format!("\n{}\n", Curves::name(k)));
            for (i, line) in canvas.lines().iter().enumerate() {
                let label = match i {
                    0 => labels[0].as_str(),
                    i if i + 1 == rows => labels[1].as_str(),
                    _ => "",
                };
                out.push_str(&format!("{label:>margin$} │{line}\n"));
            }
            let (from, to) =
                (number(self.span.0, Digits::Significant(6)), number(self.span.1, Digits::Significant(6)));
            let gap = columns.saturating_sub(from.len() + to.len());
            out.push_str(&format!("{:>margin$}  {from}{}{to}\n", "", " ".repeat(gap)));
        }
        out
    }
}

/// The part of a piece between two heights.
fn clip(piece: [(f64, f64); 2], y: (f64, f64)) -> Option<[(f64, f64); 2]> {
    let [a, b] = piece;
    if (a.1 < y.0 && b.1 < y.0) || (a.1 > y.1 && b.1 > y.1) {
        return None;
    }
    let cut = |p: (f64, f64), q: (f64, f64)| {
        let level = p.1.clamp(y.0, y.1);
        if level == p.1 { p } else { (p.0 + (level - p.1) / (q.1 - p.1) * (q.0 - p.0), level) }
    };
    Some([cut(a, b), cut(b, a)])
}
