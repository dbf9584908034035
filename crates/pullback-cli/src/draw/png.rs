//! Scenes as PNG, drawn by tiny-skia at twice the size.

use super::{Anchor, Scene, Shape, font};
use crate::failure::{Failure, Result};
use tiny_skia::{
    Color, FillRule, LineCap, LineJoin, Paint, PathBuilder, Pixmap, Rect, Stroke, StrokeDash, Transform,
};

const SCALE: f64 = 2.0;
/// A picture larger than this in either direction is drawn smaller.
const LARGEST: f64 = 12_000.0;

fn paint(colour: &str) -> Paint<'static> {
    let part = |k: usize| u8::from_str_radix(colour.get(k..k + 2).unwrap_or("00"), 16).unwrap_or(0);
    let mut paint = Paint { anti_alias: true, ..Paint::default() };
    paint.set_color_rgba8(part(1), part(3), part(5), 255);
    paint
}

fn stroke(width: f64) -> Stroke {
    Stroke { width: width as f32, line_cap: LineCap::Round, line_join: LineJoin::Round, ..Stroke::default() }
}

pub fn png(scene: &Scene) -> Result<Vec<u8>> {
    let scale = SCALE.min(LARGEST / scene.width.max(scene.height).max(1.0));
    let (w, h) = ((scene.width * scale).ceil() as u32, (scene.height * scale).ceil() as u32);
    let too_large = || Failure::new("the picture is too large for a PNG; write it as SVG");
    let mut map = Pixmap::new(w.max(1), h.max(1)).ok_or_else(too_large)?;
    map.fill(Color::WHITE);
    let to = Transform::from_scale(scale as f32, scale as f32);
    for shape in &scene.shapes {
        match shape {
            Shape::Line { points, curved, colour, width } => {
                if let Some(path) = path(points, *curved, false) {
                    map.stroke_path(&path, &paint(colour), &stroke(*width), to, None);
                }
            }
            Shape::Area { points, colour } => {
                if let Some(path) = path(points, false, true) {
                    map.fill_path(&path, &paint(colour), FillRule::Winding, to, None);
                }
            }
            Shape::Rect { x, y, width, height, radius, fill, line, dashed } => {
                let Some(path) = round_rect([*x, *y, *width, *height, *radius]) else { continue };
                map.fill_path(&path, &paint(fill), FillRule::Winding, to, None);
                let dash = if *dashed { StrokeDash::new(vec![4.0, 3.0], 0.0) } else { None };
                map.stroke_path(&path, &paint(line), &Stroke { dash, ..stroke(1.0) }, to, None);
            }
            Shape::Dot { x, y, radius, colour } => {
                if let Some(path) = PathBuilder::from_circle(*x as f32, *y as f32, *radius as f32) {
                    map.fill_path(&path, &paint(colour), FillRule::Winding, to, None);
                }
            }
            Shape::Text { x, y, size, anchor, colour, text } => {
                let text = crate::report::ascii(text);
                let width = text.chars().count() as f64 * font::advance(*size);
                let left = match anchor {
                    Anchor::Start => *x,
                    Anchor::Middle => x - width / 2.0,
                    Anchor::End => x - width,
                };
                for line in font::strokes(&text, left, *y, *size) {
                    if let Some(path) = path(&line, false, false) {
                        map.stroke_path(&path, &paint(colour), &stroke(size * 0.085), to, None);
                    }
                }
            }
        }
    }
    map.encode_png().map_err(|_| too_large())
}

fn path(points: &[(f64, f64)], curved: bool, closed: bool) -> Option<tiny_skia::Path> {
    let at = |k: usize| (points[k].0 as f32, points[k].1 as f32);
    let mut b = PathBuilder::new();
    let first = points.first()?;
    b.move_to(first.0 as f32, first.1 as f32);
    if points.len() == 1 {
        // A point is a line of no length, which would not be drawn.
        b.line_to(first.0 as f32 + 0.01, first.1 as f32);
    }
    let mut k = 1;
    while k < points.len() {
        if curved && k + 2 < points.len() {
            let (a, c, p) = (at(k), at(k + 1), at(k + 2));
            b.cubic_to(a.0, a.1, c.0, c.1, p.0, p.1);
            k += 3;
        } else {
            b.line_to(at(k).0, at(k).1);
            k += 1;
        }
    }
    if closed {
        b.close();
    }
    b.finish()
}

fn round_rect(of: [f64; 5]) -> Option<tiny_skia::Path> {
    let [x, y, w, h, r] = of.map(|v| v as f32);
    Rect::from_xywh(x, y, w, h)?;
    // The handle of a quarter circle.
    let c = r * 0.448;
    let mut b = PathBuilder::new();
    b.move_to(x + r, y);
    b.line_to(x + w - r, y);
    b.cubic_to(x + w - c, y, x + w, y + c, x + w, y + r);
    b.line_to(x + w, y + h - r);
    b.cubic_to(x + w, y + h - c, x + w - c, y + h, x + w - r, y + h);
    b.line_to(x + r, y + h);
    b.cubic_to(x + c, y + h, x, y + h - c, x, y + h - r);
    b.line_to(x, y + r);
    b.cubic_to(x, y + c, x + c, y, x + r, y);
    b.close();
    b.finish()
}
