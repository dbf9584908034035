//! The factors of Cholesky, and of an orthogonal basis with a triangle.

use super::*;
use faer::linalg::cholesky::llt::factor as llt;
use faer::linalg::householder;
use faer::linalg::qr::no_pivoting::factor as qr_factor;
use faer::{Conj, Par};

/// `L` of `L Lᵀ = (a + aᵀ) / 2`. Fails where that is not positive definite.
pub(crate) fn cholesky<T: Real>(a: View<T>, out: &mut [T]) -> Result<(), Failed> {
    let n = a.shape[a.shape.len() - 1];
    each([a], out, n.pow(3) / 3, |[a], out| {
        if n == 0 {
            return true;
        }
        let mut l = Columns::symmetric(a);
        if !l.is_finite() {
            return not_finite(out);
        }
        let factored = match n >= blocked::LARGE {
            true => blocked::cholesky(&mut l),
            false => {
                let need = llt::cholesky_in_place_scratch::<T>(n, Par::Seq, Default::default());
                with_stack(need, |stack| {
                    let a = l.mat_mut();
                    llt::cholesky_in_place(a, Default::default(), Par::Seq, stack, Default::default())
                })
                .is_ok()
            }
        };
        (1..n).for_each(|k| l.column(k)[..k].fill(T::from_f64(0.0)));
        l.write(out);
        factored
    })
}

/// `Q` and under it `R` of a matrix with no more columns than rows; beside each other otherwise. The diagonal of `R` is not negative.
pub(crate) fn qr<T: Real>(a: View<T>, out: &mut [T]) -> Result<(), Failed> {
    let (m, n) = (a.shape[a.shape.len() - 2], a.shape[a.shape.len() - 1]);
    let k = m.min(n);
    each([a], out, m * n * k, |[a], out| {
        if k == 0 {
            return true;
        }
        let mut r = Columns::of(a);
        if !r.is_finite() {
            return not_finite(out);
        }
        let q = orthogonal(&mut r);
        let sign = |i: usize, r: &Columns<T>| match r.get(i, i) < T::from_f64(0.0) {
            true => T::from_f64(-1.0),
            false => T::from_f64(1.0),
        };
        let width = out.len() / if m >= n { m + n } else { m };
        let (below, beside) = if m >= n { (m, 0) } else { (0, m) };
        for i in 0..m {
            (0..k).for_each(|j| out[i * width + j] = q.get(i, j) * sign(j, &r));
        }
        for i in 0..k {
            for j in 0..n {
                let value = if j < i { T::from_f64(0.0) } else { r.get(i, j) * sign(i, &r) };
                out[(below + i) * width + beside + j] = value;
            }
        }
        true
    })
}

/// Makes `R` of a matrix that is not empty, on and above its diagonal, and gives the columns of `Q` that belong to it.
pub(super) fn orthogonal<T: Real>(a: &mut Columns<T>) -> Columns<T> {
    let (m, n) = (a.rows, a.columns());
    let k = m.min(n);
    let block = qr_factor::recommended_block_size::<T>(m, n);
    let mut coefficients = Columns::zeros(block, k);
    let need = qr_factor::qr_in_place_scratch::<T>(m, n, block, Par::Seq, Default::default());
    with_stack(need, |stack| {
        qr_factor::qr_in_place(a.mat_mut(), coefficients.mat_mut(), Par::Seq, stack, Default::default())
    });
    let mut q = Columns::identity(m, k);
    let need = householder::apply_block_householder_sequence_on_the_left_in_place_scratch::<T>(m, block, k);
    with_stack(need, |stack| {
        householder::apply_block_householder_sequence_on_the_left_in_place_with_conj(
            a.mat().subcols(0, k),
            coefficients.mat(),
            Conj::No,
            q.mat_mut(),
            Par::Seq,
            stack,
        )
    });
    q
}
