//! A function of two variables: level lines by marching squares, and arrows of the gradient.

use super::frame::Frame;
use super::{Sampled, Span};
use crate::draw::{Braille, Scene};
use pullback_expr::{Digits, number};

/// Cells of the grid in each direction.
const CELLS: usize = 90;
const ARROWS: usize = 17;
/// From low to high.
const COLOURS: [&str; 9] =
    ["#2c4b8e", "#2f6db1", "#3d8fc0", "#5cb0b8", "#8cc79a", "#bfd47e", "#e6cf6b", "#e9a353", "#d8663f"];

pub struct Field {
    title: String,
    names: (String, String),
    frame: Frame,
    /// The values at the corners of the cells, row by row from the bottom.
    values: Vec<f64>,
    /// Points with the direction of the gradient, of length 1 at most.
    arrows: Vec<((f64, f64), (f64, f64))>,
    levels: Vec<f64>,
}

impl Field {
    pub fn of(f: &Sampled, x: &Span, y: &Span) -> Field {
        let at = |s: &Span, k: usize, n: usize| s.from + (s.to - s.from) * k as f64 / n as f64;
        let corner = |k: usize| f.value(&[at(x, k % (CELLS + 1), CELLS), at(y, k / (CELLS + 1), CELLS)]);
        let values: Vec<f64> = (0..(CELLS + 1) * (CELLS + 1)).map(corner).collect();
        let mut arrows = Vec::new();
        for k in 0..ARROWS * ARROWS {
            let (i, j) = (k % ARROWS, k / ARROWS);
            let p = [at(x, 2 * i + 1, 2 * ARROWS), at(y, 2 * j + 1, 2 * ARROWS)];
            let g = f.gradient(&p);
            arrows.push(((p[0], p[1]), (g[0], g[1])));
        }
        let frame = Frame::new((x.from, x.to), (y.from, y.to));
        let levels = levels(&values);
        Field { title: f.title(), names: (x.name.clone(), y.name.clone()), frame, values, arrows, levels }
    }

    pub fn frame(&self) -> &Frame {
        &self.frame
    }

    /// The pieces of the line at a level, in units of the frame.
    fn pieces(&self, level: f64) -> Vec<[(f64, f64); 2]> {
        let mut out = Vec::new();
        let value = |i: usize, j: usize| self.values[j * (CELLS + 1) + i];
        for k in 0..CELLS * CELLS {
            let (i, j) = (k % CELLS, k / CELLS);
            let corners = [(i, j), (i + 1, j), (i + 1, j + 1), (i, j + 1)];
            let v = corners.map(|(i, j)| value(i, j) - level);
            if v.iter().any(|v| !v.is_finite()) {
                continue;
            }
            let mut cuts: Vec<(f64, f64)> = Vec::new();
            for a in 0..4 {
                let b = (a + 1) % 4;
                if (v[a] < 0.0) != (v[b] < 0.0) {
                    let t = v[a] / (v[a] - v[b]);
                    let mix = |p: usize, q: usize| (p as f64 + t * (q as f64 - p as f64)) / CELLS as f64;
                    cuts.push((mix(corners[a].0, corners[b].0), mix(corners[a].1, corners[b].1)));
                }
            }
            // Two pieces at a saddle: which corners they cut off hardly shows at this size.
            out.extend(cuts.chunks_exact(2).map(|c| [c[0], c[1]]));
        }
        out
    }

    pub fn scene(&self, with_arrows: bool) -> Scene {
        let frame = &self.frame;
        let mut scene = frame.scene();
        frame.draw(&mut scene, &self.title, (&self.names.0, &self.names.1));
        let place = |p: (f64, f64)| (frame.left + p.0 * frame.width, frame.top + (1.0 - p.1) * frame.height);
        for (k, level) in self.levels.iter().enumerate() {
            let colour = COLOURS[k * (COLOURS.len() - 1) / self.levels.len().saturating_sub(1).max(1)];
            for [a, b] in self.pieces(*level) {
                scene.line(vec![place(a), place(b)], colour, 1.4);
            }
        }
        if with_arrows {
            let (sx, sy) = (frame.width / (frame.x.1 - frame.x.0), frame.height / (frame.y.1 - frame.y.0));
            let cell = 0.5 * (frame.width / ARROWS as f64).min(frame.height / ARROWS as f64);
            let longest =
                self.arrows.iter().map(|(_, g)| (g.0 * sx).hypot(g.1 * sy)).filter(|l| l.is_finite());
            let longest = longest.fold(0.0, f64::max).max(1e-300);
            for (p, g) in &self.arrows {
                let (dx, dy) = (g.0 * sx, -g.1 * sy);
                let length = dx.hypot(dy);
                // The square root keeps short arrows visible beside long ones.
                let scale = cell * (length / longest).sqrt() / length;
                if !scale.is_finite() || scale * length < 1.0 {
                    continue;
                }
                let from = frame.place(p.0, p.1);
                let tip = (from.0 + dx * scale, from.1 + dy * scale);
                scene.line(vec![from, tip], "#4a525a", 1.0);
                scene.head(from, tip, 4.5, "#4a525a");
            }
        }
        scene
    }

    pub fn text(&self, width: usize) -> String {
        let columns = width.saturating_sub(12).max(10);
        let rows = (columns * 2 / 5).max(5);
        let mut canvas = Braille::new(columns, rows);
        for level in self.levels.iter().step_by(2) {
            self.pieces(*level).iter().for_each(|[a, b]| canvas.line(*a, *b));
        }
        let show = |v: f64| number(v, Digits::Significant(4));
        let levels: Vec<String> = self.levels.iter().step_by(2).map(|l| show(*l)).collect();
        let mut out = format!(
            "f({}, {}) = {}\nlevel lines at {}\n",
            self.names.0,
            self.names.1,
            self.title,
            levels.join(", ")
        );
        for (i, line) in canvas.lines().iter().enumerate() {
            let label = match i {
                0 => show(self.frame.y.1),
                i if i + 1 == rows => show(self.frame.y.0),
                i if i == rows / 2 => self.names.1.clone(),
                _ => String::new(),
            };
            out.push_str(&format!("{label:>9} │{line}\n"));
        }
        let (from, to) = (show(self.frame.x.0), show(self.frame.x.1));
        let gap = columns.saturating_sub(from.len() + to.len() + self.names.0.len());
        let (a, b) = (" ".repeat(gap / 2), " ".repeat(gap - gap / 2));
        out.push_str(&format!("{:>9}  {from}{a}{}{b}{to}\n", "", self.names.0));
        out
    }
}

/// Values that divide the samples evenly, so that steep functions show their valleys.
fn levels(values: &[f64]) -> Vec<f64> {
    let mut v: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
    v.sort_by(f64::total_cmp);
    if v.is_empty() {
        return Vec::new();
    }
    let n = 14;
    let mut out: Vec<f64> = (1..=n).map(|k| v[(v.len() - 1) * k / (n + 1)]).collect();
    out.dedup();
    out
}
