//! Determinants, right at singular matrices too.

use super::*;

/// The determinant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Det;

impl Primitive for Det {
    const NAME: &'static str = "det";
    const LEADING_BATCH: bool = true;

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        let (batch, _) = square(&x[0])?;
        packed(&x[0], batch, &[])
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        with_real!(x[0].dtype, T => kernels::det::<T>(x[0].view(), out.fill()))
            .map_err(|failed| endless(&x[0], failed))
    }

    fn flops(&self, x: &[&[usize]], _: &[usize]) -> u64 {
        x[0].last().copied().unwrap_or(0) as u64 * x[0].iter().product::<usize>() as u64
    }

    /// `g` times the cofactors.
    fn pullback(&self, at: &At, g: &Tensor) -> Cotangents {
        smallvec![Some(spread(g) * apply(Cofactor, &[at.x(0)]))]
    }

    fn uses(&self, _: &[bool]) -> Uses {
        Uses::inputs([0])
    }

    fn samples() -> Vec<Sample> {
        let of = |shift, s: &[usize]| Sample::new(Det, [draw(shift, s)]);
        vec![of(0, &[3, 3]), of(1, &[2, 2, 2]), of(1, &[4, 4]), of(0, &[1, 1]), of(0, &[0, 0])]
    }
}

/// The matrix of cofactors: `det(a) a⁻ᵀ` where there is an inverse, and a polynomial of the elements everywhere.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cofactor;

impl Cofactor {
    /// With `c` the cofactors: `(<g, c> c - c gᵀ c) / det`.
    fn regular(a: &Tensor, c: &Tensor, g: &Tensor) -> (Tensor, Tensor) {
        let det = apply(Det, &[a]);
        let norms = (a.square().sum_axes([-2, -1]) * c.square().sum_axes([-2, -1])).sqrt();
        // Here the division keeps three quarters of the digits.
        let least = if a.dtype() == DType::F32 { 2e-2 } else { 1e-4 };
        let regular = det.abs().gt(norms * least).detach();
        let divisor = Tensor::where_(&regular, &det, 1.0);
        let rule = spread(&(g * c).sum_axes([-2, -1])) * c - dot(c, &dot(&g.transposed(), c));
        (regular, rule / spread(&divisor))
    }

    /// In the basis of the singular vectors, where `a` is the diagonal `s`: with `Γij` the product of all values but `i` and `j`, the
    /// cofactor at `ii` changes by `Σj Γij dajj`, and that at `ij` by `-Γij daji`.
    fn by_values(a: &Tensor, g: &Tensor) -> Tensor {
        let n = a.shape()[a.rank() - 1];
        let svd = apply(Svd { vectors: true }, &[a]);
        let (s, u, v) = (rows(&svd, 0, 1).squeeze(-2), rows(&svd, 1, n + 1), rows(&svd, n + 1, 2 * n + 1));
        let sign = (apply(Det, &[&u]) * apply(Det, &[&v])).detach();
        let identity = identity(a, n, n);
        let left_out = (identity.unsqueeze(1) + identity.unsqueeze(0)).gt(0.0);
        let pairs = Tensor::where_(&left_out, 1.0, s.unsqueeze(-2).unsqueeze(-2)).prod_axes(-1);
        let gamma = pairs * (1.0 - &identity);
        let h = spread(&sign) * dot(&u.transposed(), &dot(g, &v));
        let diagonal = TriangularPart::UPPER.of(&TriangularPart::LOWER.of(&h));
        let along = dot(&gamma, &dot(&diagonal, &Tensor::ones_of(a.dtype(), g.shape())));
        let inner = along * identity - gamma * h.transposed();
        dot(&u, &dot(&inner, &v.transposed()))
    }
}

impl Primitive for Cofactor {
    const NAME: &'static str = "cofactor";
    const LEADING_BATCH: bool = true;

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        let (batch, n) = square(&x[0])?;
        packed(&x[0], batch, &[n, n])
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        with_real!(x[0].dtype, T => kernels::cofactor::<T>(x[0].view(), out.fill()))
            .map_err(|failed| endless(&x[0], failed))
    }

    fn flops(&self, x: &[&[usize]], _: &[usize]) -> u64 {
        2 * x[0].last().copied().unwrap_or(0) as u64 * x[0].iter().product::<usize>() as u64
    }

    /// `g` through `det(a) a⁻ᵀ` where there is an inverse, through singular values elsewhere.
    fn pullback(&self, at: &At, g: &Tensor) -> Cotangents {
        let (regular, rule) = Cofactor::regular(at.x(0), at.y(), g);
        smallvec![Some(Tensor::where_(&spread(&regular), rule, Cofactor::by_values(at.x(0), g)))]
    }

    fn uses(&self, _: &[bool]) -> Uses {
        Uses::inputs([0]).and(Uses::OUTPUT)
    }

    fn samples() -> Vec<Sample> {
        let of = |shift, s: &[usize]| Sample::new(Cofactor, [draw(shift, s)]);
        vec![of(0, &[3, 3]), of(1, &[2, 3, 3]), of(0, &[1, 1]), of(0, &[0, 0])]
    }
}

/// The sign of the determinant, and the logarithm of its size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Slogdet;

impl Primitive for Slogdet {
    const NAME: &'static str = "slogdet";
    const LEADING_BATCH: bool = true;

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        let (batch, _) = square(&x[0])?;
        packed(&x[0], batch, &[2])
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        with_real!(x[0].dtype, T => kernels::slogdet::<T>(x[0].view(), out.fill()))
            .map_err(|failed| endless(&x[0], failed))
    }

    fn flops(&self, x: &[&[usize]], _: &[usize]) -> u64 {
        x[0].last().copied().unwrap_or(0) as u64 * x[0].iter().product::<usize>() as u64
    }

    /// `a⁻ᵀ` times the cotangent of the logarithm; the sign is constant.
    fn pullback(&self, at: &At, g: &Tensor) -> Cotangents {
        let g = columns(g, 1, 2).squeeze(-1);
        smallvec![Some(spread(&g) * apply(Inv { fails: false }, &[at.x(0)]).transposed())]
    }

    fn uses(&self, _: &[bool]) -> Uses {
        Uses::inputs([0])
    }

    fn samples() -> Vec<Sample> {
        let of = |shift, s: &[usize]| Sample::new(Slogdet, [draw(shift, s)]);
        vec![of(0, &[3, 3]), of(1, &[2, 2, 2]), of(0, &[1, 1]), of(0, &[0, 0])]
    }
}
