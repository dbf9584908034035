//! A function of two variables: level lines by marching squares, and arrows of the gradient.

use super::frame::Frame;
use super::{Sampled, Span};
use crate::draw::{Anchor, Braille, Scene, Shape};
use pullback_expr::{Digits, number};
use std::collections::HashMap;

/// Cells of the grid in each direction.
const CELLS: usize = 90;
const ARROWS: usize = 17;
/// From low to high.
const COLOURS: [&str; 9] =
    ["#2c4b8e", "#2f6db1", "#3d8fc0", "#5cb0b8", "#8cc79a", "#bfd47e", "#e6cf6b", "#e9a353", "#d8663f"];

/// An edge of the grid: two corners, the smaller first.
type Edge = ((usize, usize), (usize, usize));

/// Where a number stands, the level, and its colour.
type Label = ((f64, f64), f64, &'static str);

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
            // Where the function has no value there is no gradient.
            if f.value(&p).is_finite() {
                let g = f.gradient(&p);
                arrows.push(((p[0], p[1]), (g[0], g[1])));
            }
        }
        let frame = Frame::new((x.from, x.to), (y.from, y.to));
        let levels = levels(&values);
        Field { title: f.title(), names: (x.name.clone(), y.name.clone()), frame, values, arrows, levels }
    }

    pub fn frame(&self) -> &Frame {
        &self.frame
    }

    /// Whether the function has a value somewhere.
    pub fn is_defined(&self) -> bool {
        self.values.iter().any(|v| v.is_finite())
    }

    /// The lines at a level, each as long as it goes, in units of the frame; a closed one ends where it began.
    fn lines(&self, level: f64) -> Vec<Vec<(f64, f64)>> {
        stitched(&self.pieces(level))
            .into_iter()
            .map(|l| l.iter().map(|e| self.crossing(*e, level)).collect())
            .collect()
    }

    fn value(&self, (i, j): (usize, usize)) -> f64 {
        self.values[j * (CELLS + 1) + i]
    }

    /// Where a line at a level crosses an edge of the grid. Cells on both sides get the same point.
    fn crossing(&self, edge: Edge, level: f64) -> (f64, f64) {
        let (a, b) = edge;
        let (va, vb) = (self.value(a) - level, self.value(b) - level);
        let t = va / (va - vb);
        let mix = |p: usize, q: usize| (p as f64 + t * (q as f64 - p as f64)) / CELLS as f64;
        (mix(a.0, b.0), mix(a.1, b.1))
    }

    /// The edges of the grid that the line at a level joins, cell by cell (marching squares).
    fn pieces(&self, level: f64) -> Vec<[Edge; 2]> {
        let mut out = Vec::new();
        for k in 0..CELLS * CELLS {
            let (i, j) = (k % CELLS, k / CELLS);
            let corners = [(i, j), (i + 1, j), (i + 1, j + 1), (i, j + 1)];
            let v = corners.map(|c| self.value(c) - level);
            if v.iter().any(|v| !v.is_finite()) {
                continue;
            }
            let mut cuts: Vec<Edge> = Vec::new();
            for a in 0..4 {
                let b = (a + 1) % 4;
                if (v[a] < 0.0) != (v[b] < 0.0) {
                    cuts.push((corners[a].min(corners[b]), corners[a].max(corners[b])));
                }
            }
            // At a saddle the middle decides which two corners are cut off.
            if cuts.len() == 4 && (v.iter().sum::<f64>() < 0.0) != (v[0] < 0.0) {
                cuts.rotate_left(1);
            }
            out.extend(cuts.chunks_exact(2).map(|c| [c[0], c[1]]));
        }
        out
    }

    pub fn scene(&self, with_arrows: bool) -> Scene {
        let frame = &self.frame;
        let mut scene = frame.scene();
        frame.draw(&mut scene, &self.title, (&self.names.0, &self.names.1));
        let place = |p: (f64, f64)| (frame.left + p.0 * frame.width, frame.top + (1.0 - p.1) * frame.height);
        let mut labels: Vec<Label> = Vec::new();
        for (k, level) in self.levels.iter().enumerate() {
            let colour = COLOURS[k * (COLOURS.len() - 1) / self.levels.len().saturating_sub(1).max(1)];
            let lines: Vec<Vec<(f64, f64)>> =
                self.lines(*level).iter().map(|l| l.iter().map(|p| place(*p)).collect()).collect();
            let longest = lines.iter().max_by(|a, b| length(a).total_cmp(&length(b)));
            labels.extend(longest.and_then(|l| free_place(l, &labels)).map(|at| (at, *level, colour)));
            lines.into_iter().for_each(|l| scene.line(l, colour, 1.4));
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
        for (at, level, colour) in labels {
            let text = number(level, Digits::Significant(3));
            let width = 6.2 * text.len() as f64 + 4.0;
            let (x, y, height) = (at.0 - width / 2.0, at.1 - 6.5, 13.0);
            let (fill, line) = ("#ffffff", "#ffffff");
            scene.shapes.push(Shape::Rect { x, y, width, height, radius: 2.0, fill, line, dashed: false });
            scene.text((at.0, at.1 + 3.6), 10.0, Anchor::Middle, colour, text);
        }
        scene
    }

    pub fn text(&self, width: usize) -> String {
        let columns = width.saturating_sub(12).max(10);
        let rows = (columns * 2 / 5).max(5);
        let mut canvas = Braille::new(columns, rows);
        for level in self.levels.iter().step_by(2) {
            self.lines(*level).iter().for_each(|l| l.windows(2).for_each(|p| canvas.line(p[0], p[1])));
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

/// Pieces that share an edge, joined to lines. An edge belongs to two cells at most, so that no line branches.
fn stitched(pieces: &[[Edge; 2]]) -> Vec<Vec<Edge>> {
    let mut at: HashMap<Edge, Vec<usize>> = HashMap::new();
    for (k, piece) in pieces.iter().enumerate() {
        piece.iter().for_each(|e| at.entry(*e).or_default().push(k));
    }
    // Lines that end at the border first, from their ends; what is left then is closed.
    let ends = pieces
        .iter()
        .enumerate()
        .flat_map(|(k, p)| p.iter().filter(|e| at[e].len() == 1).map(move |e| (k, *e)));
    let starts: Vec<(usize, Edge)> = ends.chain(pieces.iter().enumerate().map(|(k, p)| (k, p[0]))).collect();
    let mut used = vec![false; pieces.len()];
    let mut lines = Vec::new();
    for (start, from) in starts {
        let (mut line, mut next) = (vec![from], Some(start).filter(|k| !used[*k]));
        while let Some(k) = next {
            used[k] = true;
            let [a, b] = pieces[k];
            let end = if line[line.len() - 1] == a { b } else { a };
            line.push(end);
            next = at[&end].iter().copied().find(|n| !used[*n]);
        }
        if line.len() > 1 {
            lines.push(line);
        }
    }
    lines
}

fn length(line: &[(f64, f64)]) -> f64 {
    line.windows(2).map(|p| (p[1].0 - p[0].0).hypot(p[1].1 - p[0].1)).sum()
}

/// A place on a line for its number: of a few along it, the farthest from the numbers that are there already.
fn free_place(line: &[(f64, f64)], taken: &[Label]) -> Option<(f64, f64)> {
    let candidates = (1..16).map(|k| line[(line.len() - 1) * k / 16]);
    let room = |p: (f64, f64)| {
        taken.iter().map(|(q, ..)| (p.0 - q.0).hypot(2.0 * (p.1 - q.1))).fold(f64::INFINITY, f64::min)
    };
    candidates.max_by(|a, b| room(*a).min(120.0).total_cmp(&room(*b).min(120.0)))
}
