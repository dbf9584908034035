//! Diagonals and triangles of matrices.

use super::arrange::composed;
use super::{methods, whole};
use crate::error::{Result, Within, err, or_panic};
use crate::ops::*;
use crate::shape::{Axes, Shape, axis};
use crate::tensor::{Tensor, bind};

methods! { $ diagonal_methods;
    /// The elements of the given diagonal of the matrices in two axes, along a new last axis. Offsets above 0 are diagonals to the right of the
    /// main one, those below 0 to its left.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = Tensor::from([[1, 2, 3], [4, 5, 6]]);
    /// assert_eq!(x.diagonal(0, 0, 1).to_vec::<i32>(), [1, 5]);
    /// assert_eq!(x.diagonal(1, 0, 1).to_vec::<i32>(), [2, 6]);
    /// assert_eq!(x.diagonal(-1, 0, 1).to_vec::<i32>(), [4]);
    /// ```
    diagonal try_diagonal(&self, offset: isize, a: isize, b: isize) -> Tensor {
        let (j, k) = axis(a, self.rank()).and_then(|j| Ok((j, axis(b, self.rank())?))).within("diagonal")?;
        if j == k {
            return Err(err!(Axis, "axis {a} is named twice: a matrix has two axes")).within("diagonal");
        }
        composed("diagonal", || {
            // Along the flattened matrix, from one element of a diagonal to the next is one row and one column.
            let (rows, columns) = (self.shape()[j], self.shape()[k]);
            let perm: Axes = (0..self.rank()).filter(|a| *a != j && *a != k).chain([j, k]).collect();
            let outer = self.node().shape.without(&[j, k]);
            let flat = bind(Permute { perm }, &[self])?.try_reshape(outer.inserted(outer.len(), rows * columns))?;
            let mut region = whole(flat.shape());
            region.axes[outer.len()] = diagonal_part(rows, columns, offset);
            bind(Slice { region }, &[&flat])
        })
    }

    /// Square matrices with the last axis on the given diagonal, and zeros elsewhere.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// assert_eq!(Tensor::from([1, 2]).diag_embed(0).to_vec::<i32>(), [1, 0, 0, 2]);
    /// assert_eq!(Tensor::from([7]).diag_embed(1).to_vec::<i32>(), [0, 7, 0, 0]);
    /// ```
    diag_embed try_diag_embed(&self, offset: isize) -> Tensor {
        let Some((&k, outer)) = self.shape().split_last() else {
            return Err(err!(Shape, "takes vectors, got a scalar")).within("diag_embed");
        };
        composed("diag_embed", || {
            let n = k.checked_add(offset.unsigned_abs()).ok_or_else(|| err!(Shape, "the offset {offset} is too large"))?;
            let square: Shape = outer.iter().copied().chain([n, n]).collect();
            square.checked_len()?;
            let flat: Shape = outer.iter().copied().chain([n * n]).collect();
            let mut region = whole(&flat);
            region.axes[outer.len()] = diagonal_part(n, n, offset);
            let zeros = Tensor::zeros_of(self.dtype(), flat);
            bind(SliceAssign { region }, &[&zeros, self])?.try_reshape(&square)
        })
    }

    /// Of a vector the matrix with it on the given diagonal, of a matrix the diagonal.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let d = Tensor::from([1.0, 2.0]);
    /// assert_eq!(d.diag(0).to_vec::<f64>(), [1.0, 0.0, 0.0, 2.0]);
    /// assert_eq!(d.diag(1).diag(1).to_vec::<f64>(), [1.0, 2.0]);
    /// ```
    diag try_diag(&self, offset: isize) -> Tensor {
        match self.rank() {
            1 => self.try_diag_embed(offset),
            2 => self.try_diagonal(offset, 0, 1),
            _ => Err(err!(Shape, "takes a vector or a matrix, got shape {:?}; diagonal and diag_embed take more axes", self.shape())).within("diag"),
        }
        .map_err(|e| e.renamed("diag"))
    }

    /// The lower triangles of the matrices in the last two axes: zeros right of the given diagonal. What is there, NaN too, has no gradient.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = Tensor::from([[1, 2], [3, 4]]);
    /// assert_eq!(x.tril(0).to_vec::<i32>(), [1, 0, 3, 4]);
    /// assert_eq!(x.tril(-1).to_vec::<i32>(), [0, 0, 3, 0]);
    /// ```
    tril try_tril(&self, offset: isize) -> Tensor {
        triangle("tril", self, offset, true)
    }

    /// The upper triangles of the matrices in the last two axes: zeros left of the given diagonal. What is there, NaN too, has no gradient.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = Tensor::from([[1, 2], [3, 4]]);
    /// assert_eq!(x.triu(0).to_vec::<i32>(), [1, 2, 0, 4]);
    /// assert_eq!(x.triu(1).to_vec::<i32>(), [0, 2, 0, 0]);
    /// ```
    triu try_triu(&self, offset: isize) -> Tensor {
        triangle("triu", self, offset, false)
    }
}

/// Start, step and length of a diagonal of a matrix that is flattened.
fn diagonal_part(rows: usize, columns: usize, offset: isize) -> (usize, isize, usize) {
    let away = offset.unsigned_abs();
    let (start, n) = match offset >= 0 {
        true => (away, rows.min(columns.saturating_sub(away))),
        false => (away.saturating_mul(columns), rows.saturating_sub(away).min(columns)),
    };
    if n == 0 { (0, 1, 0) } else { (start, columns as isize + 1, n) }
}

#[track_caller]
fn triangle(op: &'static str, x: &Tensor, offset: isize, lower: bool) -> Result<Tensor> {
    composed(op, || {
        let [.., rows, columns] = *x.shape() else {
            return Err(err!(Shape, "needs at least two axes, got shape {:?}", x.shape()));
        };
        // Further away than the matrix is large makes no difference.
        let far = rows.max(columns) as isize;
        let offset = offset.clamp(-far, far) as i64;
        let row = Tensor::try_arange(offset, rows as i64 + offset, 1)?.try_unsqueeze(1)?;
        let column = Tensor::try_arange(0, columns as i64, 1)?;
        let (row, column) = (row.beside(x)?, column.beside(x)?);
        let keeps = if lower { row.try_ge(&column)? } else { row.try_le(&column)? };
        let zero = Tensor::zeros_of(x.dtype(), Shape::default());
        Tensor::try_where(&keeps, x, &zero)
    })
}
