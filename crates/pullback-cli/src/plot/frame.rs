//! Axes: a frame with round numbers.

use crate::draw::{Anchor, Scene};
use pullback_expr::{Digits, number};

pub const INK: &str = "#1c2126";
pub const FAINT: &str = "#c9ced4";
const GRID: &str = "#eceff1";

/// A rectangle of the plane, and where it goes on the drawing.
pub struct Frame {
    pub x: (f64, f64),
    pub y: (f64, f64),
    pub left: f64,
    pub top: f64,
    pub width: f64,
    pub height: f64,
}

impl Frame {
    pub fn new(x: (f64, f64), y: (f64, f64)) -> Frame {
        Frame { x, y, left: 74.0, top: 34.0, width: 640.0, height: 420.0 }
    }

    pub fn scene(&self) -> Scene {
        Scene::new(self.left + self.width + 24.0, self.top + self.height + 46.0)
    }

    pub fn place(&self, x: f64, y: f64) -> (f64, f64) {
        let (u, v) = self.unit(x, y);
        (self.left + u * self.width, self.top + (1.0 - v) * self.height)
    }

    /// Between 0 and 1 inside of the frame.
    pub fn unit(&self, x: f64, y: f64) -> (f64, f64) {
        ((x - self.x.0) / (self.x.1 - self.x.0), (y - self.y.0) / (self.y.1 - self.y.0))
    }

    /// Grid, border, numbers, names.
    pub fn draw(&self, scene: &mut Scene, title: &str, names: (&str, &str)) {
        let (right, bottom) = (self.left + self.width, self.top + self.height);
        for t in ticks(self.x) {
            let x = self.place(t, self.y.0).0;
            scene.line(vec![(x, self.top), (x, bottom)], if t == 0.0 { FAINT } else { GRID }, 1.0);
            scene.text((x, bottom + 17.0), 11.5, Anchor::Middle, INK, number(t, Digits::Significant(6)));
        }
        for t in ticks(self.y) {
            let y = self.place(self.x.0, t).1;
            scene.line(vec![(self.left, y), (right, y)], if t == 0.0 { FAINT } else { GRID }, 1.0);
            scene.text((self.left - 8.0, y + 4.0), 11.5, Anchor::End, INK, number(t, Digits::Significant(6)));
        }
        let corners = [
            (self.left, self.top),
            (right, self.top),
            (right, bottom),
            (self.left, bottom),
            (self.left, self.top),
        ];
        scene.line(corners.to_vec(), FAINT, 1.0);
        scene.text((self.left, 22.0), 14.0, Anchor::Start, INK, title);
        scene.text((self.left + self.width / 2.0, bottom + 37.0), 12.5, Anchor::Middle, INK, names.0);
        scene.text((14.0, self.top - 10.0), 12.5, Anchor::Start, INK, names.1);
    }
}

/// Five or so round numbers in a range.
pub fn ticks(range: (f64, f64)) -> Vec<f64> {
    let rough = (range.1 - range.0) / 5.0;
    let power = 10f64.powf(rough.log10().floor());
    let step =
        [1.0, 2.0, 5.0, 10.0].into_iter().map(|m| m * power).find(|s| *s >= rough * 0.999).unwrap_or(power);
    let (first, last) = ((range.0 / step).ceil() as i64, (range.1 / step).floor() as i64);
    // Zero is exactly zero, and 0.30000000000000004 is 0.3.
    let round = |v: f64| format!("{v:.12e}").parse().unwrap_or(v);
    (first..=last.min(first.saturating_add(50))).map(|k| round(k as f64 * step)).collect()
}

/// A range that shows most of the values: poles do not flatten the rest.
pub fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let mut v: Vec<f64> = values.filter(|v| v.is_finite()).collect();
    if v.is_empty() {
        return (-1.0, 1.0);
    }
    v.sort_by(f64::total_cmp);
    let at = |q: f64| v[((v.len() - 1) as f64 * q).round() as usize];
    let core = at(0.95) - at(0.05);
    let (mut low, mut high) = (v[0], v[v.len() - 1]);
    if high - low > 8.0 * core && core > 0.0 {
        (low, high) = (low.max(at(0.05) - core), high.min(at(0.95) + core));
    }
    if high - low < 1e-12 * (1.0 + high.abs()) {
        let room = if low == 0.0 { 1.0 } else { low.abs() };
        return (low - room, high + room);
    }
    let room = 0.05 * (high - low);
    (low - room, high + room)
}
