//! Products of vectors and matrices, and what is built from rows of numbers.

use super::{AxisList, methods};
use crate::dtype::DType;
use crate::error::{Result, Within, err, or_panic};
use crate::location::{caller, with_caller};
use crate::ops::*;
use crate::shape::{Shape, axis};
use crate::tensor::einsum::{tensordot, try_einsum};
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

/// Every pair of axes beside each other, multiplied, and joined to one.
#[track_caller]
fn kron(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let rank = a.rank().max(b.rank());
    let of = |t: &Tensor, k: usize| (t.rank() + k).checked_sub(rank).map_or(1, |k| t.shape()[k]);
    let apart = |t: &Tensor, first: bool| {
        let pair = |k: usize| if first { [of(t, k), 1] } else { [1, of(t, k)] };
        t.try_reshape((0..rank).flat_map(pair).collect::<Shape>())
    };
    let blocks = apart(a, true)?.try_mul(apart(b, false)?)?;
    let lengths = (0..rank).map(|k| of(a, k).saturating_mul(of(b, k)));
    blocks.try_reshape(lengths.collect::<Shape>())
}

#[track_caller]
fn cross(a: &Tensor, b: &Tensor, at: isize) -> Result<Tensor> {
    let dtype = DType::promote(a.dtype(), b.dtype());
    check_dtypes(a, b, dtype)?;
    let shape = Shape::broadcast(a.shape(), b.shape())?;
    let k = axis(at, shape.len())?;
    if shape[k] != 3 {
        return Err(err!(
            Shape,
            "vectors in space have 3 elements along axis {at}, but the shape is {shape:?}"
        ));
    }
    let a = conform(Cow::Borrowed(a), dtype, &shape)?;
    let b = conform(Cow::Borrowed(b), dtype, &shape)?;
    // The elements i + 1 and i + 2 of each, in turn.
    let next = |t: &Tensor, by: usize| {
        Tensor::try_concat(
            &[t.try_narrow(k as isize, by, 3 - by)?, t.try_narrow(k as isize, 0, by)?],
            k as isize,
        )
    };
    next(&a, 1)?.try_mul(next(&b, 2)?)?.try_sub(next(&a, 2)?.try_mul(next(&b, 1)?)?)
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

    /// Sum of products over pairs of axes, one of each tensor: `tensordot(&b, [1, 2], [0, 1])` sums over axes 1 and 2 of this, paired with 0 and 1 of
    /// `b`. The other axes stay, those of this first. See also [`einsum`](crate::einsum).
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let (a, b) = (Tensor::ones([2, 3, 4]), Tensor::ones([3, 4, 5]));
    /// assert_eq!(a.tensordot(&b, [1, 2], [0, 1]).shape(), [2, 5]);
    /// ```
    tensordot try_tensordot(&self, b: &Tensor, axes: impl Into<AxisList>, axes_b: impl Into<AxisList>) -> Tensor {
        let (of_a, of_b) = (axes.into().in_order(self.rank()), axes_b.into().in_order(b.rank()));
        let (of_a, of_b) = (of_a.within("tensordot")?, of_b.within("tensordot")?);
        with_caller(caller(), || tensordot(self, b, &of_a, &of_b)).within("tensordot")
    }

    /// Sum of products over the last axis of each; the other axes stay, those of this first. Of two tensors of one axis it is [`dot`](Tensor::dot).
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let (a, b) = (Tensor::ones([2, 3]), Tensor::ones([4, 3]));
    /// assert_eq!(a.inner(&b).to_vec::<f64>(), [3.0; 8]);
    /// ```
    inner try_inner(&self, b: &Tensor) -> Tensor {
        if self.rank() == 0 || b.rank() == 0 {
            let e = err!(Shape, "shapes {:?} and {:?}: takes no scalars; multiply with * instead", self.shape(), b.shape());
            return Err(e.in_op("inner").at(caller()));
        }
        let last = |t: &Tensor| [t.rank() - 1];
        with_caller(caller(), || tensordot(self, b, &last(self), &last(b))).within("inner")
    }

    /// Kronecker product: every element of this times the whole of `b`, as blocks. A missing leading axis has length 1.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let a = Tensor::from([1.0, 10.0]).kron(&Tensor::from([1.0, 2.0, 3.0]));
    /// assert_eq!(a.to_vec::<f64>(), [1.0, 2.0, 3.0, 10.0, 20.0, 30.0]);
    /// ```
    kron try_kron(&self, b: &Tensor) -> Tensor {
        with_caller(caller(), || kron(self, b)).within("kron")
    }

    /// Cross product of vectors in space, which lie along an axis of length 3; the other axes broadcast.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let (x, y) = (Tensor::from([1.0, 0.0, 0.0]), Tensor::from([0.0, 1.0, 0.0]));
    /// assert_eq!(x.cross(&y, -1).to_vec::<f64>(), [0.0, 0.0, 1.0]);
    /// ```
    cross try_cross(&self, b: &Tensor, at: isize) -> Tensor {
        with_caller(caller(), || cross(self, b, at)).within("cross")
    }

    /// A bilinear form for each feature: `y[.., k] = Σᵢⱼ x[.., i] w[k, i, j] z[.., j]`, with leading axes broadcast.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let (x, z, w) = (Tensor::ones([5, 2]), Tensor::ones([5, 3]), Tensor::ones([4, 2, 3]));
    /// assert_eq!(x.bilinear(&z, &w).to_vec::<f64>(), [6.0; 20]);
    /// ```
    bilinear try_bilinear(&self, z: &Tensor, w: &Tensor) -> Tensor {
        with_caller(caller(), || try_einsum("...i,kij,...j->...k", &[self, w, z])).map_err(|e| e.renamed("bilinear"))
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

}
