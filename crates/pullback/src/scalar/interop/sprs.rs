//! Sparse derivatives as matrices of `sprs`.

use crate::scalar::sparse::SparseMatrix;
use sprs::CsMat;

impl SparseMatrix {
    /// The matrix as one of `sprs`, in compressed rows.
    pub fn to_sprs(&self) -> CsMat<f64> {
        let (starts, indices, values) = self.to_csr();
        CsMat::new((self.rows(), self.columns()), starts, indices, values)
    }
}
