//! What comes from a factorisation into triangles with exchanged rows.

use super::spectral::Singular;
use super::*;
use faer::Par;
use faer::linalg::lu::partial_pivoting::factor;
use faer::linalg::triangular_solve as faer_solve;

/// `L U` of the rows `order` of a matrix, both triangles in one array.
struct Lu<T> {
    packed: Columns<T>,
    order: Vec<usize>,
}

/// Sides up to which plain loops are faster than faer, which takes memory and chooses among ways for each matrix.
const SMALL: usize = 16;

impl<T: Real> Lu<T> {
    fn new(mut packed: Columns<T>) -> Self {
        let (m, n) = (packed.rows, packed.columns());
        if m.max(n) <= SMALL {
            return Lu::by_elimination(packed);
        }
        let mut order: Vec<usize> = (0..m).collect();
        if m.min(n) >= blocked::LARGE {
            blocked::lu(&mut packed, &mut order);
        } else if m.min(n) > 0 {
            let mut inverse = vec![0; m];
            let need = factor::lu_in_place_scratch::<usize, T>(m, n, Par::Seq, Default::default());
            with_stack(need, |stack| {
                let a = packed.mat_mut();
                factor::lu_in_place(a, &mut order, &mut inverse, Par::Seq, stack, Default::default());
            });
        }
        Lu { packed, order }
    }

    /// By one row after the other. A column without a pivot is left alone, where faer would divide by zero.
    fn by_elimination(mut packed: Columns<T>) -> Self {
        let (m, n) = (packed.rows, packed.columns());
        let mut order: Vec<usize> = (0..m).collect();
        for k in 0..m.min(n) {
            let size = |i: usize| -> f64 { packed.get(i, k).into().abs() };
            let pivot = (k..m).fold(k, |best, i| if size(i) > size(best) { i } else { best });
            if size(pivot) == 0.0 {
                continue;
            }
            order.swap(k, pivot);
            (0..n).for_each(|j| packed.column(j).swap(k, pivot));
            let (left, right) = packed.data.split_at_mut((k + 1) * m);
            let pivots = &mut left[k * m + k..];
            let divisor = pivots[0];
            pivots[1..].iter_mut().for_each(|v| *v /= divisor);
            for column in right.chunks_exact_mut(m) {
                let (above, below) = column.split_at_mut(k + 1);
                subtract(below, above[k], &pivots[1..]);
            }
        }
        Lu { packed, order }
    }

    fn pivots(&self) -> impl Iterator<Item = T> {
        (0..self.packed.rows.min(self.packed.columns())).map(|k| self.packed.get(k, k))
    }

    fn is_singular(&self) -> bool {
        self.pivots().any(|p| p == T::from_f64(0.0))
    }

    /// Whether an odd number of rows was exchanged.
    fn is_odd(&self) -> bool {
        let mut seen = vec![false; self.order.len()];
        let mut odd = false;
        for first in 0..seen.len() {
            let mut k = first;
            while !std::mem::replace(&mut seen[k], true) {
                k = self.order[k];
                odd ^= k != first;
            }
        }
        odd
    }

    fn det(&self) -> T {
        if self.is_singular() {
            return T::from_f64(0.0);
        }
        let product = self.pivots().fold(T::from_f64(1.0), |d, p| d * p);
        if self.is_odd() { -product } else { product }
    }

    /// The solution of square equations, of some columns at a time.
    fn solve(&self, b: &Columns<T>) -> Columns<T> {
        let (n, lu) = (b.rows, self.packed.mat());
        let mut x = Columns::zeros(n, b.columns());
        by_columns(&mut x, n * n, |first, x| {
            for (j, column) in x.chunks_exact_mut(n).enumerate() {
                let from = &b.data[(first + j) * n..];
                column.iter_mut().zip(&self.order).for_each(|(v, &i)| *v = from[i]);
            }
            if n <= SMALL {
                return x.chunks_exact_mut(n).for_each(|x| self.substitute(x));
            }
            let columns = x.len() / n;
            let mut x = MatMut::from_column_major_slice_mut(x, n, columns);
            faer_solve::solve_unit_lower_triangular_in_place(lu, x.as_mut(), Par::Seq);
            faer_solve::solve_upper_triangular_in_place(lu, x, Par::Seq);
        });
        x
    }

    /// Solves for one column, whose rows are in order.
    fn substitute(&self, x: &mut [T]) {
        let n = x.len();
        let columns = || self.packed.data.chunks_exact(n).enumerate();
        for (k, column) in columns() {
            let (above, below) = x.split_at_mut(k + 1);
            subtract(below, above[k], &column[k + 1..]);
        }
        for (k, column) in columns().rev() {
            x[k] /= column[k];
            let (above, below) = x.split_at_mut(k);
            subtract(above, below[0], &column[..k]);
        }
    }

    fn inverse(&self) -> Columns<T> {
        self.solve(&Columns::identity(self.packed.rows, self.packed.rows))
    }
}

/// `x -= c y`.
fn subtract<T: Real>(x: &mut [T], c: T, y: &[T]) {
    x.iter_mut().zip(y).for_each(|(x, &y)| *x -= c * y);
}

fn cube(x: &View<impl Sized>) -> usize {
    x.shape[x.shape.len() - 1].pow(3)
}

/// `L` below the diagonal, `U` on and above it, and in one more column the order of the rows: row `i` of `L U` is row `order[i]` of `a`.
pub(crate) fn lu<T: Real>(a: View<T>, out: &mut [T]) -> Result<(), Failed> {
    each([a], out, cube(&a), |[view], out| {
        let (n, a) = (view.shape[1], Columns::of(view));
        // Of what is not finite the order of rows is one nevertheless: it is taken for positions.
        let lu = match a.is_finite() {
            true => Lu::new(a),
            false => Lu {
                order: (0..a.rows).collect(),
                packed: Columns { data: filled(T::NAN, a.data.len()), rows: a.rows },
            },
        };
        let lu = if lu.is_singular() { Lu::by_elimination(Columns::of(view)) } else { lu };
        for (i, row) in out.chunks_exact_mut(n + 1).enumerate() {
            (0..n).for_each(|j| row[j] = lu.packed.get(i, j));
            row[n] = T::from_f64(lu.order[i] as f64);
        }
        true
    })
}

/// `a⁻¹ b`. Fails where `a` is singular.
pub(crate) fn solve<T: Real>(a: View<T>, b: View<T>, out: &mut [T]) -> Result<(), Failed> {
    each([a, b], out, cube(&a), |[a, b], out| {
        if out.is_empty() {
            return true;
        }
        let a = Columns::of(a);
        if !a.is_finite() {
            return not_finite(out);
        }
        let lu = Lu::new(a);
        if lu.is_singular() {
            return false;
        }
        lu.solve(&Columns::of(b)).write(out);
        true
    })
}

/// `a⁻¹`. Where `a` is singular it fails, or else gives NaN.
pub(crate) fn inverse<T: Real>(a: View<T>, fails: bool, out: &mut [T]) -> Result<(), Failed> {
    each([a], out, cube(&a), |[a], out| {
        let a = Columns::of(a);
        if a.rows == 0 {
            return true;
        }
        if !a.is_finite() {
            return not_finite(out);
        }
        let lu = Lu::new(a);
        if lu.is_singular() {
            return not_finite(out) && !fails;
        }
        lu.inverse().write(out);
        true
    })
}

pub(crate) fn det<T: Real>(a: View<T>, out: &mut [T]) -> Result<(), Failed> {
    each([a], out, cube(&a), |[a], out| {
        let a = Columns::of(a);
        out[0] = if a.is_finite() { Lu::new(a).det() } else { T::NAN };
        true
    })
}

/// The sign of the determinant, and the logarithm of its size.
pub(crate) fn slogdet<T: Real>(a: View<T>, out: &mut [T]) -> Result<(), Failed> {
    each([a], out, cube(&a), |[a], out| {
        let a = Columns::of(a);
        if !a.is_finite() {
            return not_finite(out);
        }
        let lu = Lu::new(a);
        if lu.is_singular() {
            (out[0], out[1]) = (T::from_f64(0.0), T::from_f64(f64::NEG_INFINITY));
            return true;
        }
        let (mut negative, mut log) = (lu.is_odd(), 0.0);
        for p in lu.pivots().map(Into::<f64>::into) {
            negative ^= p < 0.0;
            log += p.abs().ln();
        }
        let sign = if negative { -1.0 } else { 1.0 };
        (out[0], out[1]) = (T::from_f64(sign), T::from_f64(log));
        true
    })
}

/// The matrix of cofactors, `det(a) a⁻ᵀ` where there is an inverse: the gradient of the determinant everywhere.
pub(crate) fn cofactor<T: Real>(a: View<T>, out: &mut [T]) -> Result<(), Failed> {
    each([a], out, cube(&a), |[view], out| {
        let (n, a) = (view.shape[0], Columns::of(view));
        if n == 0 {
            return true;
        }
        if !a.is_finite() {
            return not_finite(out);
        }
        // The empty product, to the bit.
        if n == 1 {
            out[0] = T::from_f64(1.0);
            return true;
        }
        let lu = Lu::new(a);
        let sizes = || lu.pivots().map(|p| p.into().abs());
        let (least, most) = (sizes().fold(f64::INFINITY, f64::min), sizes().fold(0.0, f64::max));
        // The inverse loses as many digits as the pivots are apart.
        if least > most * T::EPSILON.powf(0.25) {
            let det = lu.det();
            // The columns of the inverse are the rows of its transpose.
            lu.inverse().data.iter().zip(out).for_each(|(v, out)| *out = *v * det);
            return true;
        }
        // cof(U S Vᵀ) = det(U) det(V) U cof(S) Vᵀ, and a cofactor of S is the product of the other values.
        let Some(Singular { u, s, v }) = Singular::new(&Columns::of(view)) else { return false };
        let sign = [&u, &v].iter().fold(1.0, |sign, q| {
            let det: f64 = Lu::new(Columns { data: q.data.clone(), rows: n }).det().into();
            sign * det.signum()
        });
        let others = |k: usize| (0..n).filter(|&j| j != k).map(|j| s[j].into()).product::<f64>();
        let weights: Vec<T> = (0..n).map(|k| T::from_f64(sign * others(k))).collect();
        for i in 0..n {
            for j in 0..n {
                out[i * n + j] =
                    (0..n).fold(T::from_f64(0.0), |sum, k| sum + u.get(i, k) * weights[k] * v.get(j, k));
            }
        }
        true
    })
}
