//! The exponential of a matrix.

use super::*;

/// `Σ aᵏ / k!`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct MatrixExp;

/// The derivative at `a` along `t`: the upper right quarter of the exponential of `[[a, t], [0, a]]` (Mathias, 1996).
fn along(a: &Tensor, t: &Tensor) -> Tensor {
    let n = a.shape()[a.rank() - 1];
    let above = Tensor::concat(&[a, t], -1);
    let below = Tensor::concat(&[&t.zeros_like(), a], -1);
    let e = apply(MatrixExp, &[&Tensor::concat(&[above, below], -2)]);
    columns(&rows(&e, 0, n), n, 2 * n)
}

impl Primitive for MatrixExp {
    const NAME: &'static str = "matrix_exp";
    const LEADING_BATCH: bool = true;

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        let (batch, n) = square(&x[0])?;
        packed(&x[0], batch, &[n, n])
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        with_real!(x[0].dtype, T => kernels::exponential::<T>(x[0].view(), out.fill()))
            .map_err(|failed| endless(&x[0], failed))
    }

    fn flops(&self, x: &[&[usize]], _: &[usize]) -> u64 {
        20 * x[0].last().copied().unwrap_or(0) as u64 * x[0].iter().product::<usize>() as u64
    }

    /// The derivative at `aᵀ` along `g`.
    fn pullback(&self, at: &At, g: &Tensor) -> Cotangents {
        smallvec![Some(along(&at.x(0).transposed(), g))]
    }

    fn uses(&self, _: &[bool]) -> Uses {
        Uses::inputs([0])
    }

    fn pushforward(&self, at: &At, t: &[Option<Tensor>]) -> Result<Tensor> {
        Ok(along(at.x(0), t[0].as_ref().expect("a pushforward has at least one tangent")))
    }

    fn samples() -> Vec<Sample> {
        let of = |s: &[usize]| Sample::new(MatrixExp, [Draw::new(Domain::any, s)]);
        vec![of(&[3, 3]), of(&[2, 2, 2]), of(&[1, 1]), of(&[0, 0])]
    }
}
