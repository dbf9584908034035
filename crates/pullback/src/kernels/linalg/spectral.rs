//! Eigenvalues of symmetric matrices, singular values, and what is made of them.

use super::factors::orthogonal;
use super::*;
use faer::linalg::evd::{ComputeEigenvectors, self_adjoint_evd, self_adjoint_evd_scratch};
use faer::linalg::matmul::matmul;
use faer::linalg::svd::{ComputeSvdVectors, svd as faer_svd, svd_scratch};
use faer::linalg::triangular_solve as faer_solve;
use faer::{Accum, Par, diag::DiagMut};

/// Eigenvalues from the least to the greatest, and the vectors if they are wanted. `None` where the iteration does not converge.
fn symmetric_eigen<T: Real>(a: &Columns<T>, mut vectors: Option<&mut Columns<T>>) -> Option<Vec<T>> {
    let n = a.rows;
    let mut values = filled(T::from_f64(0.0), n);
    let compute = if vectors.is_some() { ComputeEigenvectors::Yes } else { ComputeEigenvectors::No };
    let need = self_adjoint_evd_scratch::<T>(n, compute, Par::Seq, Default::default());
    let done = with_stack(need, |stack| {
        let (s, u) = (DiagMut::from_slice_mut(&mut values), vectors.as_mut().map(|v| v.mat_mut()));
        self_adjoint_evd(a.mat(), s, u, Par::Seq, stack, Default::default())
    });
    done.is_ok().then_some(values)
}

/// Which sign a vector gets, so that it does not depend on the algorithm: the first element that is at least half as large as the largest is
/// positive. The largest itself would often be one of several.
fn sign<T: Real>(v: &[T]) -> T {
    let size = |v: &T| -> f64 { (*v).into().abs() };
    let largest = v.iter().map(size).fold(0.0, f64::max);
    match v.iter().find(|v| size(v) >= 0.5 * largest) {
        Some(&v) if v < T::from_f64(0.0) => T::from_f64(-1.0),
        _ => T::from_f64(1.0),
    }
}

fn scale<T: Real>(v: &mut [T], by: T) {
    v.iter_mut().for_each(|v| *v *= by);
}

/// The eigenvalues of the symmetric part in a row, under it the vectors as columns.
pub(crate) fn eigh<T: Real>(a: View<T>, out: &mut [T]) -> Result<(), Failed> {
    let n = a.shape[a.shape.len() - 1];
    each([a], out, 9 * n.pow(3), |[a], out| {
        let (a, mut vectors) = (Columns::symmetric(a), Columns::zeros(n, n));
        if n == 0 {
            return true;
        }
        if !a.is_finite() {
            return not_finite(out);
        }
        let Some(values) = symmetric_eigen(&a, Some(&mut vectors)) else { return false };
        for k in 0..n {
            let v = vectors.column(k);
            scale(v, sign(v));
        }
        out[..n].copy_from_slice(&values);
        vectors.write(&mut out[n..]);
        true
    })
}

pub(crate) fn eigvalsh<T: Real>(a: View<T>, out: &mut [T]) -> Result<(), Failed> {
    let n = a.shape[a.shape.len() - 1];
    each([a], out, 2 * n.pow(3), |[a], out| {
        let a = Columns::symmetric(a);
        if n == 0 {
            return true;
        }
        if !a.is_finite() {
            return not_finite(out);
        }
        let Some(values) = symmetric_eigen(&a, None) else { return false };
        out.copy_from_slice(&values);
        true
    })
}

/// `u diag(s) vᵀ`, the values from the greatest to the least.
pub(super) struct Singular<T> {
    pub u: Columns<T>,
    pub s: Vec<T>,
    pub v: Columns<T>,
}

impl<T: Real> Singular<T> {
    /// Of a matrix that is not empty; `None` where the iteration does not converge.
    pub fn new(a: &Columns<T>) -> Option<Self> {
        let (m, n) = (a.rows, a.columns());
        let k = m.min(n);
        let (mut u, mut v) = (Columns::zeros(m, k), Columns::zeros(n, k));
        let mut s = filled(T::from_f64(0.0), k);
        let thin = ComputeSvdVectors::Thin;
        let need = svd_scratch::<T>(m, n, thin, thin, Par::Seq, Default::default());
        let done = with_stack(need, |stack| {
            let values = DiagMut::from_slice_mut(&mut s);
            faer_svd(
                a.mat(),
                values,
                Some(u.mat_mut()),
                Some(v.mat_mut()),
                Par::Seq,
                stack,
                Default::default(),
            )
        });
        done.is_ok().then_some(Singular { u, s, v })
    }

    /// Divides the columns of `u` by the values; those of values up to `rtol` of the greatest become zero.
    fn divide(&mut self, rtol: f64) {
        let least = rtol * self.s.first().map_or(0.0, |&s| s.into());
        for (k, s) in self.s.iter().map(|&s| s.into()).enumerate() {
            scale(self.u.column(k), T::from_f64(if s > least { 1.0 / s } else { 0.0 }));
        }
    }
}

/// The singular values in a row, under it the rows of `u` and then those of `v`.
pub(crate) fn svd<T: Real>(a: View<T>, out: &mut [T]) -> Result<(), Failed> {
    let (m, n) = (a.shape[a.shape.len() - 2], a.shape[a.shape.len() - 1]);
    let k = m.min(n);
    each([a], out, 10 * m * n * k, |[a], out| {
        if k == 0 {
            return true;
        }
        let a = Columns::of(a);
        if !a.is_finite() {
            return not_finite(out);
        }
        let Some(Singular { mut u, s, mut v }) = Singular::new(&a) else { return false };
        for i in 0..k {
            let sign = sign(u.column(i));
            scale(u.column(i), sign);
            scale(v.column(i), sign);
        }
        let (values, vectors) = out.split_at_mut(k);
        values.copy_from_slice(&s);
        u.write(&mut vectors[..m * k]);
        v.write(&mut vectors[m * k..]);
        true
    })
}

pub(crate) fn singular_values<T: Real>(a: View<T>, out: &mut [T]) -> Result<(), Failed> {
    let (m, n) = (a.shape[a.shape.len() - 2], a.shape[a.shape.len() - 1]);
    each([a], out, 2 * m * n * m.min(n), |[a], out| {
        if out.is_empty() {
            return true;
        }
        let a = Columns::of(a);
        if !a.is_finite() {
            return not_finite(out);
        }
        let none = ComputeSvdVectors::No;
        let need = svd_scratch::<T>(m, n, none, none, Par::Seq, Default::default());
        with_stack(need, |stack| {
            let s = DiagMut::from_slice_mut(out);
            faer_svd(a.mat(), s, None, None, Par::Seq, stack, Default::default())
        })
        .is_ok()
    })
}

/// `V S⁺ Uᵀ`, where values up to `rtol` of the greatest count as zero.
pub(crate) fn pseudoinverse<T: Real>(a: View<T>, rtol: f64, out: &mut [T]) -> Result<(), Failed> {
    let (m, n) = (a.shape[a.shape.len() - 2], a.shape[a.shape.len() - 1]);
    each([a], out, 10 * m * n * m.min(n), |[a], out| {
        if out.is_empty() {
            return true;
        }
        let a = Columns::of(a);
        if !a.is_finite() {
            return not_finite(out);
        }
        let Some(mut singular) = Singular::new(&a) else { return false };
        singular.divide(rtol);
        let one = T::from_f64(1.0);
        // Row-major is the transpose, by columns.
        let transposed = MatMut::from_column_major_slice_mut(out, m, n);
        matmul(transposed, Accum::Replace, singular.u.mat(), singular.v.mat().transpose(), one, Par::Seq);
        true
    })
}

/// The `x` of least norm among those with the least `|a x - b|`.
pub(crate) fn least_squares<T: Real>(a: View<T>, b: View<T>, out: &mut [T]) -> Result<(), Failed> {
    let (m, n) = (a.shape[a.shape.len() - 2], a.shape[a.shape.len() - 1]);
    let columns = b.shape[b.shape.len() - 1];
    each([a, b], out, 2 * m * n * (m.min(n) + columns), |[a, b], out| {
        if out.is_empty() {
            return true;
        }
        if m == 0 {
            out.fill(T::from_f64(0.0));
            return true;
        }
        let (a, b) = (Columns::of(a), Columns::of(b));
        if !a.is_finite() {
            return not_finite(out);
        }
        let x = match full_rank_solution(&a, &b) {
            Some(x) => x,
            None => {
                let Some(mut singular) = Singular::new(&a) else { return false };
                singular.divide(m.max(n) as f64 * T::EPSILON);
                let inner = product(singular.u.mat().transpose(), b.mat());
                product(singular.v.mat(), inner.mat())
            }
        };
        x.write(out);
        true
    })
}

/// By an orthogonal basis of the columns, or of the rows if these are fewer; `None` where the matrix is close to one of lower rank.
fn full_rank_solution<T: Real>(a: &Columns<T>, b: &Columns<T>) -> Option<Columns<T>> {
    let tall = a.rows >= a.columns();
    let mut r = match tall {
        true => Columns { data: a.data.clone(), rows: a.rows },
        false => {
            let mut t = Columns::zeros(a.columns(), a.rows);
            t.mat_mut().copy_from(a.mat().transpose());
            t
        }
    };
    let (k, q) = (r.columns(), orthogonal(&mut r));
    let sizes = || (0..k).map(|i| -> f64 { r.get(i, i).into().abs() });
    let (least, most) = (sizes().fold(f64::INFINITY, f64::min), sizes().fold(0.0, f64::max));
    if least <= most * T::EPSILON.powf(2.0 / 3.0) {
        return None;
    }
    let r = r.mat().subrows(0, k);
    Some(match tall {
        true => {
            let mut x = product(q.mat().transpose(), b.mat());
            faer_solve::solve_upper_triangular_in_place(r, x.mat_mut(), Par::Seq);
            x
        }
        false => {
            let mut y = Columns { data: b.data.clone(), rows: b.rows };
            faer_solve::solve_lower_triangular_in_place(r.transpose(), y.mat_mut(), Par::Seq);
            product(q.mat(), y.mat())
        }
    })
}

fn product<T: Real>(a: MatRef<T>, b: MatRef<T>) -> Columns<T> {
    let mut c = Columns::zeros(a.nrows(), b.ncols());
    matmul(c.mat_mut(), Accum::Replace, a, b, T::from_f64(1.0), Par::Seq);
    c
}
