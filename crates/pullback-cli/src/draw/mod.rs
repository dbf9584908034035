//! Drawings: shapes in a plane, written as SVG or as PNG.

mod braille;
mod font;
mod png;
mod svg;

pub use braille::Braille;
pub use png::png;
pub use svg::svg;

/// Where a text stands relative to its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

/// Something to draw. Colours are `#rrggbb`.
#[derive(Clone, Debug)]
pub enum Shape {
    /// A line through points, or a curve where every three after the first are two handles and an end.
    Line {
        points: Vec<(f64, f64)>,
        curved: bool,
        colour: &'static str,
        width: f64,
    },
    /// A filled polygon.
    Area {
        points: Vec<(f64, f64)>,
        colour: &'static str,
    },
    /// A box with round corners.
    Rect {
        x: f64,
        y: f64,
        width: f64,
        height: f64,
        radius: f64,
        fill: &'static str,
        line: &'static str,
        dashed: bool,
    },
    Dot {
        x: f64,
        y: f64,
        radius: f64,
        colour: &'static str,
    },
    Text {
        x: f64,
        y: f64,
        size: f64,
        anchor: Anchor,
        colour: &'static str,
        text: String,
    },
}

/// Shapes on white.
#[derive(Clone, Debug, Default)]
pub struct Scene {
    pub width: f64,
    pub height: f64,
    pub shapes: Vec<Shape>,
}

impl Scene {
    pub fn new(width: f64, height: f64) -> Scene {
        Scene { width, height, shapes: Vec::new() }
    }

    pub fn line(&mut self, points: Vec<(f64, f64)>, colour: &'static str, width: f64) {
        self.shapes.push(Shape::Line { points, curved: false, colour, width });
    }

    pub fn text(
        &mut self,
        at: (f64, f64),
        size: f64,
        anchor: Anchor,
        colour: &'static str,
        text: impl Into<String>,
    ) {
        self.shapes.push(Shape::Text { x: at.0, y: at.1, size, anchor, colour, text: text.into() });
    }

    pub fn dot(&mut self, at: (f64, f64), radius: f64, colour: &'static str) {
        self.shapes.push(Shape::Dot { x: at.0, y: at.1, radius, colour });
    }

    /// The head of an arrow that ends at `tip`, coming from `from`.
    pub fn head(&mut self, from: (f64, f64), tip: (f64, f64), size: f64, colour: &'static str) {
        let (dx, dy) = (tip.0 - from.0, tip.1 - from.1);
        let length = dx.hypot(dy).max(1e-9);
        let (ux, uy) = (dx / length * size, dy / length * size);
        let base = (tip.0 - ux, tip.1 - uy);
        let points =
            vec![tip, (base.0 - uy * 0.45, base.1 + ux * 0.45), (base.0 + uy * 0.45, base.1 - ux * 0.45)];
        self.shapes.push(Shape::Area { points, colour });
    }
}
