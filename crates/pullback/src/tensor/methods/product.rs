//! Products of vectors and matrices, and what is built from rows of numbers.

use super::index::positions;
use super::methods;
use crate::dtype::DType;
use crate::error::{Result, Within, err, or_panic};
use crate::location::caller;
use crate::ops::*;
use crate::shape::{Shape, axis};
use crate::tensor::operand::{check_dtypes, conform};
use crate::tensor::{Tensor, bind};
use std::borrow::Cow;

/// The matrix product, with vectors as rows or columns, and leading axes broadcast.
#[track_caller]
fn matmul(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let misfit = || {
        err!(
            Shape,
            "shapes {:?} and {:?} do not fit: the last axis of the first must be as long as the second-last (or only) axis of the second",
            a.shape(),
            b.shape()
        )
    };
    if a.rank() == 0 || b.rank() == 0 {
        return Err(err!(
            Shape,
            "shapes {:?} and {:?}: takes no scalars; multiply with * instead",
            a.shape(),
            b.shape()
        ));
    }
    let inner = if b.rank() == 1 { b.shape()[0] } else { b.shape()[b.rank() - 2] };
    if a.shape()[a.rank() - 1] != inner {
        return Err(misfit());
    }
    if a.rank() > 2 && b.rank() == 2 {
        // One product of all rows: the matrix need not be repeated, nor its cotangent summed over the batch.
        let (rows, k) = a.shape().split_at(a.rank() - 1);
        let rows: Shape = rows.into();
        let flat = a.try_reshape([rows.numel(), k[0]])?;
        let shape = rows.inserted(rows.len(), b.shape()[1]);
        return matmul(&flat, b)?.try_reshape(&shape);
    }
    let left = if a.rank() == 1 { a.try_unsqueeze(0)? } else { a.clone() };
    let right = if b.rank() == 1 { b.try_unsqueeze(1)? } else { b.clone() };
    let (m, n) = (left.rank() - 2, right.rank() - 2);
    let batch = Shape::broadcast(&left.shape()[..m], &right.shape()[..n]).map_err(|_| misfit())?;
    let dtype = DType::promote(a.dtype(), b.dtype());
    check_dtypes(a, b, dtype)?;
    let full = |matrix: &[usize]| -> Shape { batch.iter().chain(matrix).copied().collect() };
    let lhs = conform(Cow::Borrowed(&left), dtype, &full(&left.shape()[m..]))?;
    let rhs = conform(Cow::Borrowed(&right), dtype, &full(&right.shape()[n..]))?;
    let product = bind(Dot, &[&lhs, &rhs])?;
    match (a.rank() == 1, b.rank() == 1) {
        (true, true) => product.try_reshape(&batch),
        (true, false) => product.try_squeeze(-2),
        (false, true) => product.try_squeeze(-1),
        (false, false) => Ok(product),
    }
}

/// A row operation over any axis: brought to the end, and back.
#[track_caller]
fn over(op: impl Into<Op>, x: &Tensor, at: isize) -> Result<Tensor> {
    let op = op.into();
    let k = axis(at, x.rank()).within(op.name())?;
    if k + 1 == x.rank() {
        return bind(op, &[x]);
    }
    bind(op, &[&x.try_transpose(at, -1)?])?.try_transpose(at, -1)
}

methods! { $ product_methods;
    /// Matrix product of the last two axes; leading axes broadcast, and a tensor of one axis is a row on the left and a column
    /// on the right.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let a = Tensor::from([[1.0, 2.0], [3.0, 4.0]]);
    /// assert_eq!(a.matmul(&Tensor::from([1.0, 1.0])).to_vec::<f64>(), [3.0, 7.0]);
    /// assert_eq!(a.matmul(&Tensor::zeros([5, 2, 3])).shape(), [5, 2, 3]);
    /// ```
    matmul try_matmul(&self, b: &Tensor) -> Tensor {
        matmul(self, b).within("matmul")
    }

    /// Inner product of two tensors of one axis.
    dot try_dot(&self, b: &Tensor) -> Tensor {
        if self.rank() != 1 || b.rank() != 1 {
            let e = err!(Shape, "takes two tensors of one axis, got {:?} and {:?}; see matmul", self.shape(), b.shape());
            return Err(e.in_op("dot").at(caller()));
        }
        matmul(self, b).within("dot")
    }

    /// Outer product of two tensors of one axis: all products of their elements.
    outer try_outer(&self, b: &Tensor) -> Tensor {
        if self.rank() != 1 || b.rank() != 1 {
            let e = err!(Shape, "takes two tensors of one axis, got {:?} and {:?}", self.shape(), b.shape());
            return Err(e.in_op("outer").at(caller()));
        }
        self.try_unsqueeze(1)?.try_mul(b.try_unsqueeze(0)?)
    }

    /// `exp(x) / Σ exp(x)` along an axis.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// assert_eq!(Tensor::from([0.0, 0.0]).softmax(-1).to_vec::<f64>(), [0.5, 0.5]);
    /// ```
    softmax try_softmax(&self, at: isize) -> Tensor { over(Softmax, self, at) }

    /// `x - ln Σ exp(x)` along an axis: the logarithm of [`softmax`](Tensor::softmax), accurate where that is 0.
    log_softmax try_log_softmax(&self, at: isize) -> Tensor { over(LogSoftmax, self, at) }

    /// Cross entropy of each row of logits (over the last axis) against its class, an integer label.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let logits = Tensor::from([[2.0, 0.0], [0.0, 0.0]]);
    /// let loss = logits.cross_entropy(&Tensor::from([0i64, 1])).mean();
    /// assert!((loss.item() - (0.1269280110 + 0.6931471806) / 2.0).abs() < 1e-9);
    /// ```
    cross_entropy try_cross_entropy(&self, labels: &Tensor) -> Tensor { bind(CrossEntropy, &[self, &*positions(labels)?]) }
}
