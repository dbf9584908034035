//! A sparse matrix of derivatives.

use super::pattern::Pattern;

/// A sparse matrix in compressed rows, with the number of products that it was computed from.
///
/// ```
/// use pullback::scalar::{Function, Real};
/// fn f<T: Real>(x: &[T]) -> Vec<T> {
///     x.windows(2).map(|w| w[0] * w[1]).collect()
/// }
/// let j = Function::record(f, 4).sparse_jacobian(&[1., 2., 3., 4.]);
/// assert_eq!((j.nnz(), j.colors()), (6, 2));
/// assert_eq!(j.get(1, 2), 2.0);
/// assert_eq!(j.triplets().next(), Some((0, 0, 2.0)));
/// ```
#[derive(Clone, Debug)]
pub struct SparseMatrix {
    pattern: Pattern,
    values: Vec<f64>,
    colors: usize,
}

/// Compressed rows or columns: `starts`, `indices` and `values`.
pub type Compressed = (Vec<usize>, Vec<usize>, Vec<f64>);

impl SparseMatrix {
    pub(super) fn new(pattern: Pattern, values: Vec<f64>, colors: usize) -> Self {
        debug_assert_eq!(pattern.nnz(), values.len());
        SparseMatrix { pattern, values, colors }
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.pattern.rows()
    }

    /// The number of columns.
    pub fn columns(&self) -> usize {
        self.pattern.columns()
    }

    /// The number of stored entries.
    pub fn nnz(&self) -> usize {
        self.values.len()
    }

    /// How many colours its columns (or rows) needed: so many derivatives in a direction were computed.
    pub fn colors(&self) -> usize {
        self.colors
    }

    /// Where entries are stored.
    pub fn pattern(&self) -> &Pattern {
        &self.pattern
    }

    /// The stored entries, row by row.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// An entry; 0 where none is stored.
    pub fn get(&self, row: usize, column: usize) -> f64 {
        self.pattern.position(row, column).map_or(0.0, |k| self.values[k])
    }

    /// Row, column and value of every stored entry, row by row.
    pub fn triplets(&self) -> impl Iterator<Item = (usize, usize, f64)> {
        (0..self.rows()).flat_map(move |i| {
            let start = self.pattern.starts()[i];
            self.pattern.row(i).iter().enumerate().map(move |(k, &j)| (i, j as usize, self.values[start + k]))
        })
    }

    /// Compressed sparse rows.
    pub fn to_csr(&self) -> Compressed {
        let indices = self.pattern.indices().iter().map(|&j| j as usize).collect();
        (self.pattern.starts().to_vec(), indices, self.values.clone())
    }

    /// Compressed sparse columns.
    pub fn to_csc(&self) -> Compressed {
        let mut starts = vec![0; self.columns() + 1];
        for &j in self.pattern.indices() {
            starts[j as usize + 1] += 1;
        }
        for k in 0..self.columns() {
            starts[k + 1] += starts[k];
        }
        let mut next = starts.clone();
        let (mut indices, mut values) = (vec![0; self.nnz()], vec![0.0; self.nnz()]);
        for (i, j, value) in self.triplets() {
            indices[next[j]] = i;
            values[next[j]] = value;
            next[j] += 1;
        }
        (starts, indices, values)
    }

    /// All entries, zeros too.
    pub fn to_dense(&self) -> Vec<Vec<f64>> {
        let mut dense = vec![vec![0.0; self.columns()]; self.rows()];
        self.triplets().for_each(|(i, j, value)| dense[i][j] = value);
        dense
    }

    /// The product with a vector.
    ///
    /// # Panics
    /// If the vector is not as long as there are columns.
    #[track_caller]
    pub fn times(&self, x: &[f64]) -> Vec<f64> {
        assert_eq!(x.len(), self.columns(), "the vector is as long as a row");
        let mut y = vec![0.0; self.rows()];
        self.triplets().for_each(|(i, j, value)| y[i] += value * x[j]);
        y
    }

    /// The product of the transpose with a vector.
    ///
    /// # Panics
    /// If the vector is not as long as there are rows.
    #[track_caller]
    pub fn transpose_times(&self, x: &[f64]) -> Vec<f64> {
        assert_eq!(x.len(), self.rows(), "the vector is as long as a column");
        let mut y = vec![0.0; self.columns()];
        self.triplets().for_each(|(i, j, value)| y[j] += value * x[i]);
        y
    }
}
