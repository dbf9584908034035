//! Tensors from matrices of `nalgebra`, and back.

use crate::dtype::Element;
use crate::error::{Result, Within, err, or_panic};
use crate::tensor::Tensor;
use ::nalgebra::{DMatrix, Dim, Dyn, Matrix, MatrixView, RawStorage, Scalar, U1};

/// A matrix as a tensor of two axes, and a column, of which that is known when the program is compiled, as one of one axis; the elements are copied.
///
/// ```
/// use nalgebra::{Matrix2, Vector2};
/// use pullback::prelude::*;
/// let x = Tensor::from(&Matrix2::new(1.0, 2.0, 3.0, 4.0));
/// assert_eq!((x.shape(), x.to_vec::<f64>()), (&[2, 2][..], vec![1.0, 2.0, 3.0, 4.0]));
/// assert_eq!(Tensor::from(&Vector2::new(1.0, 2.0)).shape(), [2]);
/// ```
impl<T: Element + Scalar, R: Dim, C: Dim, S: RawStorage<T, R, C>> From<&Matrix<T, R, C, S>> for Tensor {
    #[track_caller]
    fn from(matrix: &Matrix<T, R, C, S>) -> Tensor {
        let (m, n) = matrix.shape();
        // Column by column, as they lie there.
        let columns: Vec<T> = matrix.iter().copied().collect();
        let made = match C::is::<U1>() {
            true => Tensor::try_from_slice(&columns, m),
            false => Tensor::try_from_slice(&columns, [n, m]).map(|x| x.t()),
        };
        or_panic(made)
    }
}

impl<T: Element + Scalar, R: Dim, C: Dim, S: RawStorage<T, R, C>> From<Matrix<T, R, C, S>> for Tensor {
    #[track_caller]
    fn from(matrix: Matrix<T, R, C, S>) -> Tensor {
        Tensor::from(&matrix)
    }
}

impl Tensor {
    /// A `nalgebra` matrix of the elements, converted to `T`; a tensor of one axis is a column.
    ///
    /// Panics if there are more than two axes, or none.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let a = Tensor::from([[1.0, 2.0], [3.0, 4.0]]).to_nalgebra::<f64>();
    /// assert_eq!(a.determinant(), -2.0);
    /// ```
    #[must_use]
    #[track_caller]
    pub fn to_nalgebra<T: Element + Scalar>(&self) -> DMatrix<T> {
        let (m, n) = or_panic(self.rows_and_columns().within("to_nalgebra"));
        DMatrix::from_row_iterator(m, n, self.to_vec::<T>())
    }

    /// The elements where they are as a matrix of `nalgebra`; `None` if there are more than two axes or none, if they are not of type `T`, not in
    /// the memory of the host, or run backward.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = Tensor::from([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
    /// let a = x.nalgebra_view::<f64>().unwrap();
    /// assert_eq!(a[(1, 0)], 4.0);
    /// ```
    #[must_use]
    pub fn nalgebra_view<T: Element<Stored = T> + Scalar>(
        &self,
    ) -> Option<MatrixView<'_, T, Dyn, Dyn, Dyn, Dyn>> {
        let (m, n) = self.rows_and_columns().ok()?;
        let x = self.host_view::<T>()?;
        if x.strides.iter().any(|&s| s < 0) {
            return None;
        }
        let stride = |k: usize| x.strides.get(k).map_or(1, |&s| s as usize);
        let data = if x.len() == 0 { &[] } else { &x.data[x.offset..] };
        Some(MatrixView::from_slice_with_strides_generic(
            data,
            Dyn(m),
            Dyn(n),
            Dyn(stride(0)),
            Dyn(stride(1)),
        ))
    }

    fn rows_and_columns(&self) -> Result<(usize, usize)> {
        match *self.shape() {
            [m] => Ok((m, 1)),
            [m, n] => Ok((m, n)),
            _ => Err(err!(Shape, "a matrix has two axes, and a column one; got {:?}", self.shape())),
        }
    }
}
