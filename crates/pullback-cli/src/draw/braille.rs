//! Pictures in a terminal: every character is a block of 2 x 4 dots.

/// A canvas of dots.
pub struct Braille {
    columns: usize,
    rows: usize,
    dots: Vec<u8>,
}

/// The bit of each dot of a character, by row and column.
const BITS: [[u8; 2]; 4] = [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]];

impl Braille {
    pub fn new(columns: usize, rows: usize) -> Braille {
        Braille { columns, rows, dots: vec![0; columns * rows] }
    }

    pub fn dot(&mut self, x: i64, y: i64) {
        let inside = x >= 0 && y >= 0 && x < 2 * self.columns as i64 && y < 4 * self.rows as i64;
        if inside {
            let (x, y) = (x as usize, y as usize);
            self.dots[y / 4 * self.columns + x / 2] |= BITS[y % 4][x % 2];
        }
    }

    /// A straight line between points of the unit square, whose second coordinate goes up.
    pub fn line(&mut self, a: (f64, f64), b: (f64, f64)) {
        let place = |p: (f64, f64)| {
            let (w, h) = ((2 * self.columns - 1) as f64, (4 * self.rows - 1) as f64);
            (p.0.clamp(-2.0, 3.0) * w, (1.0 - p.1.clamp(-2.0, 3.0)) * h)
        };
        let (a, b) = (place(a), place(b));
        let steps = (a.0 - b.0).abs().max((a.1 - b.1).abs()).ceil().max(1.0) as usize;
        for k in 0..=steps {
            let t = k as f64 / steps as f64;
            self.dot((a.0 + t * (b.0 - a.0)).round() as i64, (a.1 + t * (b.1 - a.1)).round() as i64);
        }
    }

    /// The lines of text.
    pub fn lines(&self) -> Vec<String> {
        let sign = |bits: &u8| char::from_u32(0x2800 + u32::from(*bits)).unwrap_or(' ');
        self.dots.chunks(self.columns).map(|row| row.iter().map(sign).collect()).collect()
    }
}
