//! Rows brought to mean 0 and variance 1, then scaled and shifted, with their pullback.

use super::super::compute::Compute;
use super::super::parallel::{self, Disjoint};
use super::super::scratch::filled;
use super::super::vectorised::vectorised;
use super::super::view::View;
use super::kernel::{self, LANES, RowMath, fold_lanes};
use super::{GRAIN, Rows, write};

/// What is done to each row.
#[derive(Clone, Copy)]
pub(crate) struct Normalisation {
    /// Added to the variance.
    pub eps: f64,
    /// Whether the mean is subtracted; without, the variance is the mean square.
    pub centred: bool,
}

/// Pieces that sums over the rows are made of: so many at most, of as many rows at least. They depend on the shape alone, and so does the
/// rounding.
const PIECES: usize = 64;
const PIECE: usize = 16;

impl Normalisation {
    /// The centre of a row, and the reciprocal of its deviation.
    fn statistics<W: RowMath>(self, x: &[W]) -> Statistics<W> {
        let n = W::of(x.len() as f64);
        let centre = if self.centred { kernel::sum(x) / n } else { W::default() };
        let variance = squared_distance(x, centre) / n;
        Statistics { centre, factor: W::ONE / (variance + W::of(self.eps)).sqrt() }
    }
}

vectorised! {
    /// `Σ (x - centre)²`.
    fn squared_distance<W: RowMath>(x: &[W], centre: W) -> W {
        let mut lanes = [W::default(); LANES];
        let (chunks, tail) = x.as_chunks::<LANES>();
        for chunk in chunks {
            for l in 0..LANES {
                let d = chunk[l] - centre;
                lanes[l] = lanes[l] + d * d;
            }
        }
        for (lane, &x) in lanes.iter_mut().zip(tail) {
            let d = x - centre;
            *lane = *lane + d * d;
        }
        fold_lanes(&mut lanes)
    }
}

/// What there is to know of a row: `y = (x - centre) factor` are its normalised elements.
#[derive(Clone, Copy)]
struct Statistics<W> {
    centre: W,
    factor: W,
}

vectorised! {
    /// `out = y w + b`.
    fn affine<W: RowMath>(x: &[W], of: Statistics<W>, w: &[W], b: &[W], out: &mut [W]) {
        let n = out.len();
        let (x, w, b) = (&x[..n], &w[..n], &b[..n]);
        for i in 0..n {
            out[i] = (x[i] - of.centre) * of.factor * w[i] + b[i];
        }
    }
}

vectorised! {
    /// `Σ g w`, and `Σ g w y`.
    fn moments<W: RowMath>(x: &[W], of: Statistics<W>, w: &[W], g: &[W]) -> (W, W) {
        let n = x.len();
        let (w, g) = (&w[..n], &g[..n]);
        let (mut sums, mut products) = ([W::default(); LANES], [W::default(); LANES]);
        let whole = n - n % LANES;
        for i in (0..whole).step_by(LANES) {
            for l in 0..LANES {
                let h = g[i + l] * w[i + l];
                sums[l] = sums[l] + h;
                products[l] = products[l] + h * ((x[i + l] - of.centre) * of.factor);
            }
        }
        for i in whole..n {
            let h = g[i] * w[i];
            sums[i - whole] = sums[i - whole] + h;
            products[i - whole] = products[i - whole] + h * ((x[i] - of.centre) * of.factor);
        }
        (fold_lanes(&mut sums), fold_lanes(&mut products))
    }
}

vectorised! {
    /// `out = factor (g w - a - y b)` with the `means` `a` and `b`; `g y` and `g` are added to the `sums` for weights and shifts.
    fn pulled<W: RowMath>(
        x: &[W], of: Statistics<W>, w: &[W], g: &[W], means: (W, W), out: &mut [W], sums: (&mut [W], &mut [W]),
    ) {
        let n = out.len();
        let (x, w, g, dw, db) = (&x[..n], &w[..n], &g[..n], &mut sums.0[..n], &mut sums.1[..n]);
        for i in 0..n {
            let y = (x[i] - of.centre) * of.factor;
            out[i] = of.factor * (g[i] * w[i] - means.0 - y * means.1);
            dw[i] = dw[i] + g[i] * y;
            db[i] = db[i] + g[i];
        }
    }
}

/// One row of weights for each matrix of a batch.
fn weights<T: Compute<Wide: RowMath>>(w: View<T>) -> Vec<T::Wide> {
    let rows = Rows::new(w);
    let mut all = filled(T::Wide::default(), rows.count() * rows.len);
    let mut scratch = Vec::new();
    rows.outer.walk(0..rows.count(), |i, [at]| {
        all[i * rows.len..(i + 1) * rows.len].copy_from_slice(rows.row(at, &mut scratch));
    });
    all
}

/// `(x - mean) / sqrt(var + eps) w + b` for rows of matrices `[.., r, n]`, with weights and shifts `[.., n]`.
pub(crate) fn norm<T: Compute<Wide: RowMath>>(
    x: View<T>,
    w: View<T>,
    b: View<T>,
    how: Normalisation,
    out: &mut [T],
) {
    let rows = Rows::new(x);
    let (n, each) = (rows.len, x.shape[x.shape.len() - 2]);
    let (w, b) = (weights(w), weights(b));
    rows.map(out, |i, x, out| {
        let of = i / each * n..(i / each + 1) * n;
        affine(x, how.statistics(x), &w[of.clone()], &b[of], out);
    });
}

/// The cotangents of [`norm`] for that of its output: of each matrix `[r, n]` of `x`, and under it a row for the weights and one for the shifts.
pub(crate) fn norm_pullback<T: Compute<Wide: RowMath>>(
    x: View<T>,
    w: View<T>,
    g: View<T>,
    how: Normalisation,
    out: &mut [T],
) {
    let rank = x.shape.len();
    let (each, n) = (x.shape[rank - 2], x.shape[rank - 1]);
    let matrices: usize = x.shape[..rank - 2].iter().product();
    assert_eq!(out.len(), matrices * (each + 2) * n, "norm: two rows more than the view, for each matrix");
    let (xs, gs, w) = (Rows::new(x), Rows::new(g), weights(w));
    let piece = each.div_ceil(PIECES).max(PIECE);
    let pieces = each.div_ceil(piece);
    // The sums of each piece: for the weights, and for the shifts.
    let mut sums = filled(T::Wide::default(), matrices * pieces * 2 * n);
    {
        let (sums, out) = (Disjoint::new(&mut sums), Disjoint::new(out));
        parallel::split(matrices * pieces, GRAIN.div_ceil((piece * n).max(1)), 1, |range| {
            let (mut scratch, mut scratch_g, mut result) = (Vec::new(), Vec::new(), Vec::new());
            for k in range {
                let (matrix, first) = (k / pieces, k % pieces * piece);
                // SAFETY: each piece has its own sums.
                let (dw, db) = unsafe { sums.part(k * 2 * n..(k + 1) * 2 * n) }.split_at_mut(n);
                let w = &w[matrix * n..(matrix + 1) * n];
                for i in first..each.min(first + piece) {
                    let at = matrix * each + i;
                    let x = xs.row(xs.at(at), &mut scratch);
                    let g = gs.row(gs.at(at), &mut scratch_g);
                    let of = how.statistics(x);
                    let (a, b) = moments(x, of, w, g);
                    let count = T::Wide::of(n as f64);
                    let means = (if how.centred { a / count } else { T::Wide::default() }, b / count);
                    let place = (matrix * (each + 2) + i) * n;
                    // SAFETY: each row belongs to one piece.
                    let out = unsafe { out.part(place..place + n) };
                    write(out, &mut result, |out| pulled(x, of, w, g, means, out, (&mut *dw, &mut *db)));
                }
            }
        });
    }
    let mut total = filled(T::Wide::default(), 2 * n);
    for matrix in 0..matrices {
        total.fill(T::Wide::default());
        for sums in sums[matrix * pieces * 2 * n..(matrix + 1) * pieces * 2 * n].chunks_exact(2 * n) {
            total.iter_mut().zip(sums).for_each(|(t, &s)| *t = *t + s);
        }
        let place = (matrix * (each + 2) + each) * n;
        T::narrow_all(&total, &mut out[place..place + 2 * n]);
    }
}
