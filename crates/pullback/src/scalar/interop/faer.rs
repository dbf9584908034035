//! Sparse derivatives as matrices of `faer`.

use crate::scalar::sparse::SparseMatrix;
use faer::sparse::{CreationError, SparseColMat, Triplet};

impl SparseMatrix {
    /// The matrix as one of `faer`.
    ///
    /// # Errors
    /// Those of `faer`, for a matrix too large for its indices.
    pub fn to_faer(&self) -> Result<SparseColMat<usize, f64>, CreationError> {
        let entries: Vec<_> = self.triplets().map(|(i, j, value)| Triplet::new(i, j, value)).collect();
        SparseColMat::try_new_from_triplets(self.rows(), self.columns(), &entries)
    }
}
