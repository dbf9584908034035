//! The matrix product.

use super::*;
use crate::dtype::{with_number, with_parts};
use crate::error::err;
use crate::kernels::{complex, matmul};
use smallvec::smallvec;

/// Product of the last two axes; the leading axes are a batch, of equal lengths in both.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Dot;

/// The product of matrices `[n, m, k]` with one `[k, p]`, in one piece: the rows of all lanes under each other.
fn rows_of_lanes(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let (n, m, k, p) = (a.shape()[0], a.shape()[1], a.shape()[2], b.shape()[1]);
    let rows = a.reshape_to(&[n * m, k].into());
    bind(Dot, &[&rows, b]).map(|y| y.reshape_to(&[n, m, p].into()))
}

/// Whether one `[m, k]` times `[n, k, p]` is better done in one piece too. That copies `n p (k + m)` elements, unless
/// the lanes are vectors; repeating the matrix makes its pullback sum `n m k`.
fn columns_fold(a: &Tensor, b: &Tensor) -> bool {
    let (m, k, p) = (a.shape()[0], a.shape()[1], b.shape()[2]);
    p == 1 || p.saturating_mul(k + m) <= m * k
}

/// The transpose, of complex matrices with conjugate elements.
fn adjoint(x: &Tensor) -> Tensor {
    let turned = x.transposed();
    if x.dtype().is_complex() { turned.conj() } else { turned }
}

impl Primitive for Dot {
    const NAME: &'static str = "matmul";
    const ARITY: Option<usize> = Some(2);
    const CONTRACTION: bool = true;
    const JOINED: Option<&'static str> = Some("matmul+fused");

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        let (a, b, r) = (x[0].shape, x[1].shape, x[0].shape.len());
        if r < 2 || b.len() != r || a[..r - 2] != b[..r - 2] || a[r - 1] != b[r - 2] {
            return Err(err!(
                Shape,
                "shapes {a:?} and {b:?} do not fit: the last axis of the first must be as long as the second-last of the second"
            ));
        }
        if x[0].dtype != x[1].dtype || x[0].dtype == DType::Bool {
            return Err(err!(DType, "takes numbers of one type, got {} and {}", x[0].dtype, x[1].dtype));
        }
        let shape: Shape = a[..r - 1].iter().chain([&b[r - 1]]).copied().collect();
        shape.checked_len()?;
        Ok(Aval { dtype: x[0].dtype, shape })
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        if x[0].dtype.is_complex() {
            with_parts!(x[0].dtype, T => complex::matmul::<T>(x[0].view(), x[1].view(), out.fill()));
            return Ok(());
        }
        with_number!(x[0].dtype, T => matmul::matmul::<T>(x[0].view(), x[1].view(), out.fill()));
        Ok(())
    }

    fn in_rows(&self, x: &[Value], f: &mut dyn FnMut(RowKernel)) {
        match x[0].dtype {
            DType::F32 => matmul::prepared(x[0].view(), x[1].view(), |p| f(RowKernel::F32(p))),
            _ => matmul::prepared(x[0].view(), x[1].view(), |p| f(RowKernel::F64(p))),
        }
    }

    fn flops(&self, x: &[&[usize]], y: &[usize]) -> u64 {
        let k = x[0].last().copied().unwrap_or(0);
        2 * k as u64 * y.iter().product::<usize>() as u64
    }

    /// `g bᵀ` and `aᵀ g`.
    fn pullback(&self, at: &At, g: &Tensor) -> Cotangents {
        let dot =
            |a: &Tensor, b: &Tensor| bind(Dot, &[a, b]).expect("shapes were checked by the forward pass");
        smallvec![
            at.needs(0).then(|| dot(g, &adjoint(at.x(1)))),
            at.needs(1).then(|| dot(&adjoint(at.x(0)), g)),
        ]
    }

    fn uses(&self, needs: &[bool]) -> Uses {
        Uses::inputs((0..2).filter(|&k| needs[1 - k]))
    }

    fn linearity(&self) -> Linearity {
        Linearity::Multilinear
    }

    fn batch(&self, x: &[Batched], n: usize) -> Option<Result<Tensor>> {
        let [a, b] = x else { unreachable!("a product has two factors") };
        let folds = match (a.mapped, b.mapped) {
            (true, false) => a.value.rank() == 3,
            (false, true) => b.value.rank() == 3 && columns_fold(&a.value, &b.value),
            _ => false,
        };
        Some(match folds {
            false => Batched::bind_all(Dot, x, n),
            true if a.mapped => rows_of_lanes(&a.value, &b.value),
            // ab = (bᵀaᵀ)ᵀ: the columns of the lanes are the rows of their transposes.
            true => rows_of_lanes(&b.value.transposed(), &a.value.transposed()).map(|y| y.transposed()),
        })
    }

    fn samples() -> Vec<Sample> {
        let of = |a: &[usize], b: &[usize]| {
            Sample::new(Dot, [Draw::new(Domain::any, a), Draw::new(Domain::any, b)])
        };
        vec![
            of(&[2, 3], &[3, 4]),
            of(&[2, 3, 2], &[2, 2, 3]),
            of(&[3, 3], &[3, 3]),
            of(&[3, 2], &[2, 1]),
            of(&[4, 5], &[5, 2]),
            of(&[2, 0], &[0, 2]),
        ]
    }
}
