//! Linear algebra over the last two axes: solvers, decompositions, functions of matrices. Needs the feature `linalg`.
//!
//! The leading axes are a batch, and broadcast where there are two operands. Elements are f32 or f64. Every function is differentiable to
//! any order, in both modes, and has a `try_` form that returns what is wrong with its arguments as an error.
//!
//! ```
//! use pullback::{linalg, prelude::*};
//! let a = Tensor::from([[4.0, 2.0], [2.0, 3.0]]);
//! let x = linalg::solve(&a, &Tensor::from([2.0, 5.0]));
//! assert_eq!(a.matmul(&x).to_vec::<f64>(), [2.0, 5.0]);
//!
//! let g = grad(|a: &Tensor| linalg::logdet(a))(&a); // the inverse, transposed
//! assert!((g - linalg::inv(&a)).abs().max().item() < 1e-15);
//! ```
//!
//! # Where derivatives need care
//!
//! | | |
//! |---|---|
//! | [`cholesky`], [`eigh`], [`eigvalsh`] | are functions of the symmetric part `(a + aᵀ) / 2`, so their gradients are symmetric |
//! | equal eigenvalues or singular values | how their vectors turn inside of their common space is taken as zero. That is right for all that does not depend on the choice of the vectors and treats equal values alike: sums, products, norms, projections onto the whole space. For `V f(Λ) Vᵀ` it is not: there the equal values contribute by `f'`, which no rule of the parts can see; [`matrix_exp`], [`matrix_power`], [`inv`] and [`pinv`] have rules of their own. The second derivatives of functions of the vectors are of that kind, and so are not right there |
//! | signs of vectors | are chosen so that the first element at least half as large as the largest is positive; a function should not depend on it |
//! | [`det`] | has its gradient, the cofactors, at singular matrices too, and the second derivative; third ones there only if at most one singular value is zero |
//! | [`slogdet`], [`logdet`] | have the gradient NaN at singular matrices, where the value is minus infinity |
//! | [`lu`], [`qr`] | need a square part of full rank for a derivative, and fail with an error otherwise |
//! | [`svd`] | of a matrix of lower rank: the vectors of the value zero contribute nothing |
//! | [`pinv`], [`lstsq`] | have the derivative among matrices of the same rank |
//!
//! A matrix with an infinite or NaN element gives NaN.

mod decompositions;
mod of_matrices;
mod solvers;

pub use decompositions::*;
pub use of_matrices::*;
pub use solvers::*;

use super::operand::{check_dtypes, conform};
use super::{Tensor, bind};
use crate::dtype::DType;
use crate::error::{Result, err, or_panic};
use crate::location::{caller, with_caller};
use crate::ops::*;
use crate::shape::Shape;
use std::borrow::Cow;

/// Functions that panic with a message, each with a `try_` form that returns the error.
macro_rules! functions {
    ($($(#[$doc:meta])* $name:ident $try:ident($($arg:ident: $t:ty),*) -> $out:ty $body:block)*) => {$(
        $(#[$doc])*
        #[must_use]
        #[track_caller]
        pub fn $name($($arg: $t),*) -> $out {
            or_panic($try($($arg),*))
        }

        #[doc = concat!("[`", stringify!($name), "`], with bad arguments as an error.")]
        #[track_caller]
        pub fn $try($($arg: $t),*) -> Result<$out> {
            let location = caller();
            let all = || -> Result<$out> { $body };
            with_caller(location, all).map_err(|e| e.renamed(stringify!($name)).at(location))
        }
    )*};
}
use functions;

/// The rows and columns of matrices.
fn sides(a: &Tensor) -> Result<(usize, usize)> {
    match a.shape() {
        [.., rows, columns] => Ok((*rows, *columns)),
        other => Err(err!(Shape, "takes matrices, of at least two axes, got shape {other:?}")),
    }
}

/// The shape of a tensor with other last axes.
fn with_last(a: &Tensor, last: &[usize]) -> Shape {
    a.shape()[..a.rank() - 2].iter().chain(last).copied().collect()
}

/// An operation on matrices and right-hand sides, which have one type and the same leading axes then. A right-hand side of one axis is a
/// vector, and so is its solution.
fn with_right_hand_sides(op: impl Into<Op>, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let (rows, _) = sides(a)?;
    let vector = b.rank() == 1;
    let right = if vector { b.try_unsqueeze(1)? } else { b.clone() };
    let (others, _) = sides(&right)?;
    let misfit = || {
        let hint = match a.rank() == b.rank() + 1 {
            true => {
                "; a right-hand side of more than one axis holds matrices: for one vector each use b.unsqueeze(-1)"
            }
            false => "",
        };
        let (a, b) = (a.shape(), b.shape());
        err!(
            Shape,
            "right-hand sides of shape {b:?} do not fit matrices of shape {a:?}: both need as many rows{hint}"
        )
    };
    if rows != others {
        return Err(misfit());
    }
    let leading = |t: &Tensor| t.shape()[..t.rank() - 2].to_vec();
    let batch = Shape::broadcast(&leading(a), &leading(&right)).map_err(|_| misfit())?;
    let dtype = DType::promote(a.dtype(), b.dtype());
    check_dtypes(a, b, dtype)?;
    let full = |t: &Tensor| -> Shape { batch.iter().chain(&t.shape()[t.rank() - 2..]).copied().collect() };
    let lhs = conform(Cow::Borrowed(a), dtype, &full(a))?;
    let rhs = conform(Cow::Borrowed(&right), dtype, &full(&right))?;
    let x = bind(op, &[&lhs, &rhs])?;
    if vector { x.try_squeeze(-1) } else { Ok(x) }
}

/// What roundings may make of a zero, relative to the largest singular value.
fn rounding(a: &Tensor) -> Result<f64> {
    let (rows, columns) = sides(a)?;
    let unit = if a.dtype() == DType::F32 { f32::EPSILON as f64 } else { f64::EPSILON };
    Ok(rows.max(columns) as f64 * unit)
}
