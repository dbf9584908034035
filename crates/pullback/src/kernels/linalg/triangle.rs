//! Triangles of matrices.

use super::*;
use faer::Par;
use faer::linalg::triangular_solve as faer_solve;

/// The upper or the lower triangle of each matrix, with its diagonal unless it is `strict`; zeros elsewhere.
pub(crate) fn part<T: Copy + Send + Sync + Default>(x: View<T>, upper: bool, strict: bool, out: &mut [T]) {
    let (rows, columns) = (x.shape[x.shape.len() - 2], x.shape[x.shape.len() - 1]);
    movement::copy(x, out);
    let strict = strict as usize;
    for (row, elements) in out.chunks_exact_mut(columns.max(1)).enumerate().map(|(k, e)| (k % rows, e)) {
        match upper {
            true => elements[..(row + strict).min(columns)].fill(T::default()),
            false => elements[(row + 1 - strict).min(columns)..].fill(T::default()),
        }
    }
}

/// `a⁻¹ b`, where only one triangle of `a` is read, and its diagonal is 1 if that is `unit`. Fails where the diagonal has a zero.
pub(crate) fn solve_triangular<T: Real>(
    a: View<T>,
    b: View<T>,
    upper: bool,
    unit: bool,
    out: &mut [T],
) -> Result<(), Failed> {
    let (n, k) = (b.shape[b.shape.len() - 2], b.shape[b.shape.len() - 1]);
    each([a, b], out, n * n * k, |[a, b], out| {
        if n == 0 || k == 0 {
            return true;
        }
        let (first, along, down) = (&raw const a.data[a.offset], a.strides[1], a.strides[0]);
        // SAFETY: the view was checked to be inside of its data.
        let triangle = unsafe { MatRef::from_raw_parts(first, n, n, down, along) };
        if !unit && (0..n).any(|i| *triangle.get(i, i) == T::from_f64(0.0)) {
            return false;
        }
        let mut x = Columns::of(b);
        by_columns(&mut x, n * n, |_, x| {
            let columns = x.len() / n;
            let x = MatMut::from_column_major_slice_mut(x, n, columns);
            match (upper, unit) {
                (false, false) => faer_solve::solve_lower_triangular_in_place(triangle, x, Par::Seq),
                (false, true) => faer_solve::solve_unit_lower_triangular_in_place(triangle, x, Par::Seq),
                (true, false) => faer_solve::solve_upper_triangular_in_place(triangle, x, Par::Seq),
                (true, true) => faer_solve::solve_unit_upper_triangular_in_place(triangle, x, Par::Seq),
            }
        });
        x.write(out);
        true
    })
}
