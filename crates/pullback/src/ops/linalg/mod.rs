//! Linear algebra over the last two axes; the leading axes are a batch. A decomposition of several results is one array, as LAPACK packs
//! it, of which `tensor/linalg` takes the parts.

mod det;
mod exponential;
mod factors;
mod least_squares;
mod solve;
mod spectral;
mod triangle;

pub(crate) use {det::*, exponential::*, factors::*, least_squares::*, solve::*, spectral::*, triangle::*};

use super::elementwise::needs_float;
use super::*;
use crate::error::{Error, err, or_panic};
use crate::kernels::linalg::{self as kernels, Failed};
use smallvec::smallvec;

/// Chooses the type that matrices of a type are decomposed in. `matrix` has refused all others.
macro_rules! with_real {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            DType::F32 => {
                type $T = f32;
                $body
            }
            _ => {
                type $T = f64;
                $body
            }
        }
    };
}
use with_real;

/// The leading axes, rows and columns of matrices that can be decomposed.
fn matrix<'a>(x: &Arg<'a>) -> Result<(&'a [usize], usize, usize)> {
    if !x.dtype.is_float() {
        return Err(needs_float(x.dtype));
    }
    if !matches!(x.dtype, DType::F32 | DType::F64) {
        return Err(err!(
            DType,
            "{} has too few digits for it; use .cast(DType::F32), and cast the result back",
            x.dtype
        ));
    }
    match &x.shape[..] {
        [batch @ .., rows, columns] => Ok((batch, *rows, *columns)),
        _ => Err(err!(Shape, "takes matrices, of at least two axes, got shape {:?}", x.shape)),
    }
}

/// The leading axes and the rows of square matrices.
fn square<'a>(x: &Arg<'a>) -> Result<(&'a [usize], usize)> {
    match matrix(x)? {
        (batch, rows, columns) if rows == columns => Ok((batch, rows)),
        _ => Err(err!(
            Shape,
            "takes square matrices, got shape {:?}; of others there are pinv, lstsq, qr and svd",
            x.shape
        )),
    }
}

fn packed(x: &Arg, batch: &[usize], last: &[usize]) -> Result<Aval> {
    let shape: Shape = batch.iter().chain(last).copied().collect();
    shape.checked_len()?;
    Ok(Aval { dtype: x.dtype, shape })
}

/// Right-hand sides `[.., m, k]` that belong to matrices `[.., m, n]`: the leading axes, and `k`.
fn right_hand_sides<'a>(x: &[Arg<'a>], batch: &[usize], rows: usize) -> Result<usize> {
    if x[1].dtype != x[0].dtype {
        return Err(err!(DType, "takes floats of one type, got {} and {}", x[0].dtype, x[1].dtype));
    }
    match matrix(&x[1])? {
        (others, m, k) if others == batch && m == rows => Ok(k),
        _ => Err(err!(
            Shape,
            "right-hand sides of shape {:?} do not fit matrices of shape {:?}: both need as many rows",
            x[1].shape,
            x[0].shape
        )),
    }
}

/// Where in the batch of an array, if it is one.
fn place(batch: &[usize], Failed(mut at): Failed) -> String {
    if batch.is_empty() {
        return String::new();
    }
    let mut index = vec![0; batch.len()];
    for (i, &n) in index.iter_mut().zip(batch).rev() {
        (*i, at) = (at % n, at / n);
    }
    format!(" at {index:?} of the batch")
}

fn leading<'a>(x: &Value<'a>) -> &'a [usize] {
    &x.shape[..x.shape.len() - 2]
}

fn singular(x: &Value, failed: Failed) -> Error {
    err!(
        Value,
        "the matrix{} is singular; pinv and lstsq give a solution of least norm, and adding a small multiple of the identity makes it \
         regular",
        place(leading(x), failed)
    )
}

fn endless(x: &Value, failed: Failed) -> Error {
    err!(
        Value,
        "the iteration for the matrix{} did not converge; dividing it by its largest element may help",
        place(leading(x), failed)
    )
}

/// An operation in a rule. Values can make it fail, such as a factor that is singular.
#[track_caller]
fn apply(op: impl Into<Op>, inputs: &[&Tensor]) -> Tensor {
    or_panic(bind(op, inputs))
}

fn dot(a: &Tensor, b: &Tensor) -> Tensor {
    apply(Dot, &[a, b])
}

/// `(x + xᵀ) / 2`.
fn symmetrised(x: &Tensor) -> Tensor {
    (x + x.transposed()) * 0.5
}

/// One number for each matrix, spread over it.
fn spread(x: &Tensor) -> Tensor {
    x.unsqueeze(-1).unsqueeze(-1)
}

/// The last two axes without their first `start` elements, up to `end`.
fn rows(x: &Tensor, start: usize, end: usize) -> Tensor {
    x.narrow(-2, start, end - start)
}

fn columns(x: &Tensor, start: usize, end: usize) -> Tensor {
    x.narrow(-1, start, end - start)
}

/// Matrices whose diagonal elements are far apart, and larger than the rest; and how many rows these lie lower.
fn draw(shift: usize, shape: &[usize]) -> Draw {
    Draw::Matrix(shift, shape.into())
}
