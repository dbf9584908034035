//! Scenes as SVG.

use super::{Anchor, Scene, Shape};
use std::fmt::Write;

fn rounded(v: f64) -> String {
    let text = format!("{v:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

pub fn svg(scene: &Scene) -> String {
    let (w, h) = (rounded(scene.width), rounded(scene.height));
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w}\" height=\"{h}\" viewBox=\"0 0 {w} {h}\" \
         font-family=\"DejaVu Sans Mono, Menlo, Consolas, monospace\">\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
    );
    for shape in &scene.shapes {
        match shape {
            Shape::Line { points, curved, colour, width } => {
                let d = path(points, *curved);
                let _ = writeln!(
                    out,
                    "<path d=\"{d}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{}\" stroke-linejoin=\"round\"/>",
                    rounded(*width)
                );
            }
            Shape::Area { points, colour } => {
                let _ = writeln!(out, "<path d=\"{}Z\" fill=\"{colour}\"/>", path(points, false));
            }
            Shape::Rect { x, y, width, height, radius, fill, line, dashed } => {
                let [x, y, width, height, radius] = [x, y, width, height, radius].map(|v| rounded(*v));
                let dash = if *dashed { " stroke-dasharray=\"4 3\"" } else { "" };
                let _ = writeln!(
                    out,
                    "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"{radius}\" fill=\"{fill}\" stroke=\"{line}\"{dash}/>"
                );
            }
            Shape::Dot { x, y, radius, colour } => {
                let _ = writeln!(
                    out,
                    "<circle cx=\"{}\" cy=\"{}\" r=\"{}\" fill=\"{colour}\"/>",
                    rounded(*x),
                    rounded(*y),
                    rounded(*radius)
                );
            }
            Shape::Text { x, y, size, anchor, colour, text } => {
                let anchor = match anchor {
                    Anchor::Start => "start",
                    Anchor::Middle => "middle",
                    Anchor::End => "end",
                };
                let (x, y, size, text) = (rounded(*x), rounded(*y), rounded(*size), escaped(text));
                let _ = writeln!(
                    out,
                    "<text x=\"{x}\" y=\"{y}\" font-size=\"{size}\" text-anchor=\"{anchor}\" fill=\"{colour}\">{text}</text>"
                );
            }
        }
    }
    out.push_str("</svg>\n");
    out
}

fn path(points: &[(f64, f64)], curved: bool) -> String {
    let mut d = String::new();
    for (k, (x, y)) in points.iter().enumerate() {
        let sign = match (k, curved) {
            (0, _) => "M",
            (k, true) if k % 3 == 1 => "C",
            (_, true) => " ",
            _ => "L",
        };
        let _ = write!(d, "{sign}{},{}", rounded(*x), rounded(*y));
    }
    d
}
