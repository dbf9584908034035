//! Factorisations into triangles and orthogonal bases.

use super::*;

/// `L` of `L Lᵀ = (a + aᵀ) / 2`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cholesky;

impl Primitive for Cholesky {
    const NAME: &'static str = "cholesky";
    const LEADING_BATCH: bool = true;

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        let (batch, n) = square(&x[0])?;
        packed(&x[0], batch, &[n, n])
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        with_real!(x[0].dtype, T => kernels::cholesky::<T>(x[0].view(), out.fill())).map_err(|failed| {
            err!(
                Value,
                "the matrix{} is not positive definite; adding a small multiple of the identity may help, and eigvalsh shows its eigenvalues",
                place(leading(&x[0]), failed)
            )
        })
    }

    fn flops(&self, x: &[&[usize]], _: &[usize]) -> u64 {
        x[0].last().copied().unwrap_or(0) as u64 * x[0].iter().product::<usize>() as u64 / 3
    }

    /// The symmetric part of `y⁻ᵀ Φ(yᵀ g) y⁻¹`, where `Φ` takes the lower triangle with half of the diagonal (Murray, 2016).
    fn pullback(&self, at: &At, g: &Tensor) -> Cotangents {
        let t = at.y().transposed();
        let inner = half_lower(&dot(&t, &TriangularPart::LOWER.of(g)));
        let left = TriangularSolve::UPPER.of(&t, &inner);
        smallvec![Some(symmetrised(&TriangularSolve::UPPER.of(&t, &left.transposed())))]
    }

    fn uses(&self, _: &[bool]) -> Uses {
        Uses::OUTPUT
    }

    fn samples() -> Vec<Sample> {
        let of = |s: &[usize]| Sample::new(Cholesky, [draw(0, s)]);
        vec![of(&[3, 3]), of(&[2, 2, 2]), of(&[4, 4]), of(&[1, 1]), of(&[0, 0])]
    }
}

/// `L U` of rows in another order, packed: `L` below the diagonal, its own being 1, `U` on and above it, and one more column in which row `i`
/// says which row of the matrix is row `i` of `L U`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Lu;

/// The order of rows of packed factors of `n` columns, as positions for each element.
pub(crate) fn row_order(lu: &Tensor, n: usize) -> Tensor {
    let order = columns(lu, n, n + 1).detach().cast(DType::I64);
    let shape: Shape = lu.shape()[..lu.rank() - 1].iter().copied().chain([n]).collect();
    order.broadcast_to(shape)
}

impl Primitive for Lu {
    const NAME: &'static str = "lu";
    const LEADING_BATCH: bool = true;

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        let (batch, m, n) = matrix(&x[0])?;
        packed(&x[0], batch, &[m, n + 1])
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        with_real!(x[0].dtype, T => kernels::lu::<T>(x[0].view(), out.fill()))
            .map_err(|failed| endless(&x[0], failed))
    }

    fn flops(&self, x: &[&[usize]], _: &[usize]) -> u64 {
        x[0].last().copied().unwrap_or(0) as u64 * x[0].iter().product::<usize>() as u64
    }

    /// Of a square matrix, with its rows in the order of the factors: `L⁻ᵀ (tril(Lᵀ gL, -1) + triu(gU Uᵀ)) U⁻ᵀ`. Of further columns `L U₂`
    /// the first loses `gU₂ U₂ᵀ`, of further rows `L₂ U` the second loses `L₂ᵀ gL₂`.
    fn pullback(&self, at: &At, g: &Tensor) -> Cotangents {
        let (m, n) = (at.shape(0)[at.shape(0).len() - 2], at.shape(0)[at.shape(0).len() - 1]);
        let k = m.min(n);
        let lu = at.y();
        let corner = |x: &Tensor| columns(&rows(x, 0, k), 0, k);
        let (both, gboth) = (corner(lu), corner(g));
        let (gl, gu) = (TriangularPart::BELOW.of(&gboth), TriangularPart::UPPER.of(&gboth));
        let mut lower = dot(&TriangularPart::BELOW.of(&both).transposed(), &gl) + &gl;
        let mut upper = dot(&gu, &TriangularPart::UPPER.of(&both).transposed());
        let right = |x: &Tensor| columns(&rows(x, 0, k), k, n);
        let under = |x: &Tensor| columns(&rows(x, k, m), 0, k);
        if n > k {
            lower -= dot(&right(g), &right(lu).transposed());
        }
        if m > k {
            upper -= dot(&under(lu).transposed(), &under(g));
        }
        let inner = TriangularPart::BELOW.of(&lower) + TriangularPart::UPPER.of(&upper);
        let by_lower = |x: &Tensor| TriangularSolve::UNIT_UPPER.of(&both.transposed(), x);
        let by_upper = |x: &Tensor| TriangularSolve::UPPER.of(&both, &x.transposed()).transposed();
        let mut ga = by_upper(&by_lower(&inner));
        if n > k {
            ga = Tensor::concat(&[ga, by_lower(&right(g))], -1);
        }
        if m > k {
            ga = Tensor::concat(&[ga, by_upper(&under(g))], -2);
        }
        let zeros = Tensor::zeros_of(g.dtype(), at.shape(0));
        smallvec![Some(zeros.scatter_add(-2, &row_order(lu, n), &ga))]
    }

    fn uses(&self, _: &[bool]) -> Uses {
        Uses::OUTPUT
    }

    fn samples() -> Vec<Sample> {
        let of = |shift, s: &[usize]| Sample::new(Lu, [draw(shift, s)]);
        vec![
            of(1, &[3, 3]),
            of(1, &[2, 4, 2]),
            of(1, &[2, 4]),
            of(0, &[1, 1]),
            of(0, &[0, 2]),
            of(0, &[2, 0]),
        ]
    }
}

/// An orthogonal basis `Q` of the columns, and under it the triangle `R`; beside it, if there are more columns than rows. The diagonal of `R`
/// is not negative.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Qr;

impl Qr {
    /// `Q` and `R` of an array packed from matrices of `m` rows and `n` columns.
    pub fn parts(packed: &Tensor, m: usize, n: usize) -> (Tensor, Tensor) {
        match m >= n {
            true => (rows(packed, 0, m), rows(packed, m, m + n)),
            false => (columns(packed, 0, m), columns(packed, m, m + n)),
        }
    }

    /// `(gQ + Q (M + Mᵀ)) R⁻ᵀ`, where `M` is the lower triangle of `R gRᵀ - gQᵀ Q` with half of its diagonal, of a square `R`.
    fn square_rule(q: &Tensor, r: &Tensor, gq: &Tensor, gr: &Tensor) -> Tensor {
        let gr = TriangularPart::UPPER.of(gr);
        let m = half_lower(&(dot(r, &gr.transposed()) - dot(&gq.transposed(), q)));
        let all = gq + dot(q, &(&m + m.transposed()));
        TriangularSolve::UPPER.of(r, &all.transposed()).transposed()
    }
}

impl Primitive for Qr {
    const NAME: &'static str = "qr";
    const LEADING_BATCH: bool = true;

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        let (batch, m, n) = matrix(&x[0])?;
        packed(&x[0], batch, &if m >= n { [m + n, n] } else { [m, m + n] })
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        with_real!(x[0].dtype, T => kernels::qr::<T>(x[0].view(), out.fill()))
            .map_err(|failed| endless(&x[0], failed))
    }

    fn flops(&self, x: &[&[usize]], _: &[usize]) -> u64 {
        let least = x[0].iter().rev().take(2).min().copied().unwrap_or(0) as u64;
        4 * least * x[0].iter().product::<usize>() as u64
    }

    /// Of more columns than rows, `R = [R₁ R₂]`: `gQ` gains `Q R₂ gR₂ᵀ`, and the cotangent of the further columns is `Q gR₂`.
    fn pullback(&self, at: &At, g: &Tensor) -> Cotangents {
        let (m, n) = (at.shape(0)[at.shape(0).len() - 2], at.shape(0)[at.shape(0).len() - 1]);
        let ((q, r), (gq, gr)) = (Qr::parts(at.y(), m, n), Qr::parts(g, m, n));
        if m >= n {
            return smallvec![Some(Qr::square_rule(&q, &r, &gq, &gr))];
        }
        let split = |x: &Tensor| (columns(x, 0, m), columns(x, m, n));
        let ((r1, r2), (gr1, gr2)) = (split(&r), split(&gr));
        let gq = gq + dot(&dot(&q, &r2), &gr2.transposed());
        let first = Qr::square_rule(&q, &r1, &gq, &gr1);
        smallvec![Some(Tensor::concat(&[first, dot(&q, &gr2)], -1))]
    }

    fn uses(&self, _: &[bool]) -> Uses {
        Uses::OUTPUT
    }

    fn samples() -> Vec<Sample> {
        let of = |shift, s: &[usize]| Sample::new(Qr, [draw(shift, s)]);
        vec![
            of(0, &[3, 3]),
            of(1, &[2, 4, 2]),
            of(0, &[2, 4]),
            of(0, &[1, 1]),
            of(0, &[0, 2]),
            of(0, &[2, 0]),
        ]
    }
}
