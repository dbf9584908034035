//! Sparse matrices: places that are data, and values with gradients.

use super::{Tensor, bind};
use crate::allocation::ask_for;
use crate::dtype::DType;
use crate::error::{Result, Within, err, or_panic};
use crate::ops::{SampledDot, SparseDot};
use crate::shape::Shape;

/// A matrix of which only some entries are stored: their rows, their columns and their values.
///
/// The places may be in any order (the coordinate format, COO), and one may be there several times, which adds up; products are fastest where
/// they are in the order of the rows, as compressed rows (CSR) are. [`coalesced`](Sparse::coalesced) brings them there.
///
/// It is a [`Tree`](crate::Tree) with one leaf, the values: the gradient with respect to a sparse matrix is one with the same places. The places are
/// static structure, as the length of a list is; under [`vmap`](crate::vmap) all examples share them. To have them as data of a compiled function,
/// pass the lists, and make the matrix inside.
///
/// ```
/// use pullback::{Sparse, prelude::*};
/// // | 1 0 2 |
/// // | 0 3 0 |
/// let a = Sparse::coo(&Tensor::from([0, 0, 1]), &Tensor::from([0, 2, 1]), &Tensor::from([1.0, 2.0, 3.0]), [2, 3]);
/// let x = Tensor::from([1.0, 10.0, 100.0]);
/// assert_eq!(a.matmul(&x).to_vec::<f64>(), [201.0, 30.0]);
///
/// let g = grad(|a: &Sparse| a.matmul(&x).sum())(&a);
/// assert_eq!(g.values().to_vec::<f64>(), [1.0, 100.0, 10.0]);
/// let g = grad(|x: &Tensor| a.matmul(x).sum())(&x);
/// assert_eq!(g.to_vec::<f64>(), [1.0, 3.0, 2.0]);
/// ```
#[derive(Clone, Debug)]
pub struct Sparse {
    row_indices: Tensor,
    column_indices: Tensor,
    values: Tensor,
    shape: [usize; 2],
}

/// A list of places, as the operations take it.
#[track_caller]
fn list(index: &Tensor, what: &str) -> Result<Tensor> {
    if index.rank() != 1 || !index.dtype().is_int() {
        return Err(err!(Shape, "{what} are a list of integers, not {} {:?}", index.dtype(), index.shape()));
    }
    index.try_cast(DType::I64)
}

/// The numbers of a list that decide the places of another matrix.
fn known(index: &Tensor, what: &str) -> Result<Vec<i64>> {
    match index.is_known() {
        true => index.try_to_vec(),
        false => Err(err!(
            Value,
            "needs {what} when it is called, but here they are an input of a function that is traced or batched; make the matrix outside"
        )),
    }
}

impl Sparse {
    /// A matrix by coordinates: entry `e` has the value `values[e]` at `(rows[e], columns[e])`. Lists may have any integer type; a place outside
    /// of the matrix is found when it is used.
    ///
    /// Panics if the lists are not of one length.
    #[track_caller]
    pub fn coo(rows: &Tensor, columns: &Tensor, values: &Tensor, shape: [usize; 2]) -> Sparse {
        or_panic(Sparse::try_coo(rows, columns, values, shape))
    }

    /// [`coo`](Sparse::coo), with bad arguments as an error.
    #[track_caller]
    pub fn try_coo(rows: &Tensor, columns: &Tensor, values: &Tensor, shape: [usize; 2]) -> Result<Sparse> {
        let made = || {
            let (row_indices, column_indices) = (list(rows, "rows")?, list(columns, "columns")?);
            let lengths = [row_indices.numel(), column_indices.numel()];
            if !values.dtype().is_float()
                || values.rank() != 1
                || lengths.iter().any(|&n| n != values.numel())
            {
                return Err(err!(
                    Shape,
                    "takes a row, a column and a float for each entry, got {} rows, {} columns and {} {:?}",
                    lengths[0],
                    lengths[1],
                    values.dtype(),
                    values.shape()
                ));
            }
            Ok(Sparse { row_indices, column_indices, values: values.clone(), shape })
        };
        made().within("coo")
    }

    /// A matrix by compressed rows: the entries of row `i` are those from `starts[i]` to `starts[i + 1]`.
    ///
    /// ```
    /// use pullback::{Sparse, prelude::*};
    /// let a = Sparse::csr(&Tensor::from([0, 2, 3]), &Tensor::from([0, 2, 1]), &Tensor::from([1.0, 2.0, 3.0]), [2, 3]);
    /// assert_eq!(a.to_dense().to_vec::<f64>(), [1.0, 0.0, 2.0, 0.0, 3.0, 0.0]);
    /// ```
    ///
    /// Panics if the starts are not one for each row and one more, from 0 up to the number of entries.
    #[track_caller]
    pub fn csr(starts: &Tensor, columns: &Tensor, values: &Tensor, shape: [usize; 2]) -> Sparse {
        or_panic(Sparse::try_csr(starts, columns, values, shape))
    }

    /// [`csr`](Sparse::csr), with bad arguments as an error.
    #[track_caller]
    pub fn try_csr(starts: &Tensor, columns: &Tensor, values: &Tensor, shape: [usize; 2]) -> Result<Sparse> {
        let rows = || {
            let starts = known(&list(starts, "row starts")?, "the row starts")?;
            let ends = (starts.first(), starts.last());
            if starts.len().checked_sub(1) != Some(shape[0])
                || !starts.is_sorted()
                || ends != (Some(&0), Some(&(values.numel() as i64)))
            {
                return Err(err!(
                    Value,
                    "needs {} row starts that grow from 0 to the number of entries, {}; got {} from {:?} to {:?}",
                    shape[0] as u128 + 1,
                    values.numel(),
                    starts.len(),
                    ends.0,
                    ends.1
                ));
            }
            ask_for::<i64>(values.numel())?;
            let row =
                |(i, pair): (usize, &[i64])| std::iter::repeat_n(i as i64, (pair[1] - pair[0]) as usize);
            Ok(Tensor::from(starts.windows(2).enumerate().flat_map(row).collect::<Vec<i64>>()))
        };
        let rows = rows().within("csr")?;
        Sparse::try_coo(&rows, columns, values, shape).map_err(|e| e.renamed("csr"))
    }

    /// The entries of a matrix that are not zero. Gradients flow to these entries, and are zero at the others.
    ///
    /// ```
    /// use pullback::{Sparse, prelude::*};
    /// let a = Sparse::from_dense(&Tensor::from([[0.0, 5.0], [0.0, 0.0]]));
    /// assert_eq!((a.nnz(), a.to_dense().to_vec::<f64>()), (1, vec![0.0, 5.0, 0.0, 0.0]));
    /// ```
    ///
    /// Panics if it is not a matrix of floats whose values are known: which entries there are is structure.
    #[track_caller]
    pub fn from_dense(dense: &Tensor) -> Sparse {
        or_panic(Sparse::of_dense(dense).within("from_dense"))
    }

    #[track_caller]
    fn of_dense(dense: &Tensor) -> Result<Sparse> {
        let &[m, n] = dense.shape() else {
            return Err(err!(Shape, "takes a matrix, not {:?}", dense.shape()));
        };
        let places = known(&dense.try_ne(0.0)?.try_cast(DType::I64)?, "the values")?;
        let places: Vec<i64> =
            places.into_iter().enumerate().filter(|(_, v)| *v != 0).map(|(k, _)| k as i64).collect();
        let list = |f: &dyn Fn(i64) -> i64| Tensor::from(places.iter().map(|&k| f(k)).collect::<Vec<i64>>());
        let values = dense.try_reshape(m * n)?.try_index_select(0, &Tensor::from(&places[..]))?;
        Sparse::try_coo(&list(&|k| k / n as i64), &list(&|k| k % n as i64), &values, [m, n])
    }

    /// The whole matrix, with zeros where there is no entry.
    #[track_caller]
    #[must_use]
    pub fn to_dense(&self) -> Tensor {
        let [m, n] = self.shape;
        let made = || {
            Shape::from([m, n]).checked_len()?;
            let rows = self.row_indices.try_mul(n as i64)?;
            let zeros = Tensor::zeros_of(self.values.dtype(), [m * n]);
            // A column that is outside would be in another row.
            let inside = self.column_indices.try_lt(n as i64)?.try_and(&self.column_indices.try_ge(0i64)?)?;
            let places = Tensor::where_(&inside, &rows.try_add(&self.column_indices)?, (m * n) as i64);
            zeros.try_index_add(0, &places, &self.values)?.try_reshape([m, n])
        };
        or_panic(made().map_err(|e| e.renamed("to_dense")))
    }

    /// The same matrix with its places in the order of rows and columns, each of them once: values at one place are added up. That is the order
    /// of compressed rows, whose [`row_starts`](Sparse::row_starts) it then has.
    ///
    /// ```
    /// use pullback::{Sparse, prelude::*};
    /// let (rows, columns) = (Tensor::from([1, 0, 1]), Tensor::from([0, 1, 0]));
    /// let a = Sparse::coo(&rows, &columns, &Tensor::from([1.0, 2.0, 3.0]), [2, 2]).coalesced();
    /// assert_eq!(a.values().to_vec::<f64>(), [2.0, 4.0]);
    /// assert_eq!(a.row_starts().to_vec::<i64>(), [0, 1, 2]);
    /// ```
    #[track_caller]
    #[must_use]
    #[doc(alias = "sum_duplicates")]
    #[doc(alias = "tocsr")]
    pub fn coalesced(&self) -> Sparse {
        or_panic(self.in_order().within("coalesced"))
    }

    #[track_caller]
    fn in_order(&self) -> Result<Sparse> {
        let rows = known(&self.row_indices, "the places")?;
        let columns = known(&self.column_indices, "the places")?;
        let mut order: Vec<usize> = (0..rows.len()).collect();
        order.sort_by_key(|&e| (rows[e], columns[e]));
        let (mut places, mut slots) = (Vec::<(i64, i64)>::new(), vec![0i64; rows.len()]);
        for e in order {
            if places.last() != Some(&(rows[e], columns[e])) {
                places.push((rows[e], columns[e]));
            }
            slots[e] = places.len() as i64 - 1;
        }
        let zeros = Tensor::zeros_of(self.values.dtype(), [places.len()]);
        let values = zeros.try_index_add(0, &Tensor::from(slots), &self.values)?;
        let list = |f: fn(&(i64, i64)) -> i64| Tensor::from(places.iter().map(f).collect::<Vec<i64>>());
        Sparse::try_coo(&list(|p| p.0), &list(|p| p.1), &values, self.shape)
    }

    /// Where the entries of each row start, and where those of the last one end: of `indptr` in the format of compressed rows.
    ///
    /// Panics if the entries are not in the order of their rows; see [`coalesced`](Sparse::coalesced).
    #[track_caller]
    #[must_use]
    #[doc(alias = "indptr")]
    #[doc(alias = "crow_indices")]
    pub fn row_starts(&self) -> Tensor {
        let starts = || {
            let rows = known(&self.row_indices, "the places")?;
            if !rows.is_sorted() {
                return Err(err!(
                    Value,
                    "the entries are not in the order of their rows; use .coalesced() first"
                ));
            }
            let start = |i: usize| rows.partition_point(|&r| r < i as i64) as i64;
            Ok(Tensor::from((0..=self.rows()).map(start).collect::<Vec<i64>>()))
        };
        or_panic(starts().within("row_starts"))
    }

    /// This matrix times a dense vector or matrix.
    ///
    /// Differentiable in the values and in the dense factor. Contributions to one element are added in the order of the entries, so that the result
    /// is the same on any number of threads.
    #[track_caller]
    #[must_use]
    #[doc(alias = "spmm")]
    pub fn matmul(&self, dense: &Tensor) -> Tensor {
        or_panic(self.try_matmul(dense))
    }

    /// [`matmul`](Sparse::matmul), with bad arguments as an error.
    #[track_caller]
    pub fn try_matmul(&self, dense: &Tensor) -> Result<Tensor> {
        let product = || {
            let [m, n] = self.shape;
            if !(1..=2).contains(&dense.rank()) || dense.shape()[0] != n {
                return Err(err!(
                    Shape,
                    "a sparse matrix of shape {:?} is multiplied with a vector or matrix whose first axis has length {n}, not with {:?}",
                    self.shape,
                    dense.shape()
                ));
            }
            let dtype = DType::promote(self.values.dtype(), dense.dtype());
            let (values, x) = (self.values.try_cast(dtype)?, dense.try_cast(dtype)?);
            let x = if x.rank() == 1 { x.try_unsqueeze(1)? } else { x };
            let y = bind(SparseDot { rows: m }, &[&self.row_indices, &self.column_indices, &values, &x])?;
            if dense.rank() == 1 { y.try_squeeze(1) } else { Ok(y) }
        };
        product().map_err(|e| e.renamed("sparse matmul")).within("sparse matmul")
    }

    /// The product `a bᵀ` of dense matrices at the places of this matrix, whatever its own values are: SDDMM.
    ///
    /// ```
    /// use pullback::{Sparse, prelude::*};
    /// let (a, b) = (Tensor::from([[1.0, 2.0], [3.0, 4.0]]), Tensor::from([[5.0, 6.0], [7.0, 8.0]]));
    /// let corner = Sparse::from_dense(&Tensor::from([[0.0, 1.0], [0.0, 0.0]]));
    /// assert_eq!(corner.sampled_matmul(&a, &b).values().to_vec::<f64>(), [1.0 * 7.0 + 2.0 * 8.0]);
    /// ```
    #[track_caller]
    #[must_use]
    #[doc(alias = "sddmm")]
    pub fn sampled_matmul(&self, a: &Tensor, b: &Tensor) -> Sparse {
        let values = bind(SampledDot, &[&self.row_indices, &self.column_indices, a, b]);
        self.with_values(&or_panic(values))
    }

    /// Rows and columns exchanged. Nothing is copied.
    #[must_use]
    pub fn transposed(&self) -> Sparse {
        Sparse {
            row_indices: self.column_indices.clone(),
            column_indices: self.row_indices.clone(),
            values: self.values.clone(),
            shape: [self.shape[1], self.shape[0]],
        }
    }

    /// The same places with other values. Axes in front of that of the places are those of examples, for [`vmap`](crate::vmap).
    ///
    /// Panics if there is not one float for each place.
    #[track_caller]
    #[must_use]
    pub fn with_values(&self, values: &Tensor) -> Sparse {
        if values.shape().last() != Some(&self.nnz()) || !values.dtype().is_float() {
            let e = err!(
                Shape,
                "takes a float for each of {} places, not {} {:?}",
                self.nnz(),
                values.dtype(),
                values.shape()
            );
            or_panic(Err(e).within("with_values"))
        }
        self.carrying(values.clone())
    }

    /// The values, in the order of the places.
    pub fn values(&self) -> &Tensor {
        &self.values
    }

    /// The row of each entry, i64.
    pub fn row_indices(&self) -> &Tensor {
        &self.row_indices
    }

    /// The column of each entry, i64.
    pub fn column_indices(&self) -> &Tensor {
        &self.column_indices
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.shape[0]
    }

    /// The number of columns.
    pub fn columns(&self) -> usize {
        self.shape[1]
    }

    /// Rows and columns.
    pub fn shape(&self) -> [usize; 2] {
        self.shape
    }

    /// The number of entries.
    pub fn nnz(&self) -> usize {
        self.row_indices.numel()
    }

    /// The same places with these values, of whatever shape they have inside of a transform.
    pub(crate) fn carrying(&self, values: Tensor) -> Sparse {
        Sparse { values, ..self.clone() }
    }

    pub(crate) fn values_mut(&mut self) -> &mut Tensor {
        &mut self.values
    }

    /// What tells one set of places from another: the shape, and the identity of the lists.
    pub(crate) fn structure(&self) -> ([usize; 2], u64, u64) {
        (self.shape, self.row_indices.node().id, self.column_indices.node().id)
    }
}
