//! The matrix product.

use super::*;
use crate::backend::cpu::matmul;
use crate::dtype::with_number;
use crate::error::err;
use smallvec::smallvec;

/// Product of the last two axes; the leading axes are a batch, of equal lengths in both.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Dot;

impl Primitive for Dot {
    const NAME: &'static str = "matmul";

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
        with_number!(x[0].dtype, T => matmul::matmul::<T>(x[0].view(), x[1].view(), out.fill()));
        Ok(())
    }

    fn pullback(&self, at: &At, g: &Tensor) -> Cotangents {
        let dot =
            |a: &Tensor, b: &Tensor| bind(Dot, &[a, b]).expect("shapes were checked by the forward pass");
        smallvec![
            at.needs(0).then(|| dot(g, &at.x(1).transposed())),
            at.needs(1).then(|| dot(&at.x(0).transposed(), g)),
        ]
    }

    fn uses(&self, needs: &[bool]) -> Uses {
        Uses::inputs((0..2).filter(|&k| needs[1 - k]))
    }

    fn linearity(&self) -> Linearity {
        Linearity::Multilinear
    }

    fn samples() -> Vec<Sample> {
        let of = |a: &[usize], b: &[usize]| {
            Sample::new(Dot, [Draw::new(Domain::any, a), Draw::new(Domain::any, b)])
        };
        vec![of(&[2, 3], &[3, 4]), of(&[2, 3, 2], &[2, 2, 3]), of(&[3, 3], &[3, 3]), of(&[2, 0], &[0, 2])]
    }
}
