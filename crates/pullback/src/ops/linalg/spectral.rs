//! Eigenvalues and singular values.
//!
//! Where values are equal, their vectors may be any basis of one space, and how they turn inside of it is taken as zero. Values count as equal if
//! they are no further apart than the error they are computed with.

use super::*;

/// `1 / d`, and 0 where `d` is not larger than what roundings of values as large as `scale` make of 0.
fn safe_inverse(d: &Tensor, scale: &Tensor, n: usize) -> Tensor {
    let unit = if d.dtype() == DType::F32 { f32::EPSILON as f64 } else { f64::EPSILON };
    let zero = d.abs().le(scale * (n as f64 * unit)).detach();
    Tensor::where_(&zero, 0.0, 1.0 / Tensor::where_(&zero, 1.0, d))
}

/// `x - xᵀ`.
fn skew(x: &Tensor) -> Tensor {
    x - x.transposed()
}

/// Eigenvalues of the symmetric part of a matrix, from the least to the greatest; with `vectors`, these as columns under a row of the values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Eigh {
    pub vectors: bool,
}

impl Eigh {
    /// The row of values, `[.., 1, n]`, and the vectors.
    pub fn parts(packed: &Tensor) -> (Tensor, Tensor) {
        let n = packed.shape()[packed.rank() - 1];
        (rows(packed, 0, 1), rows(packed, 1, n + 1))
    }
}

impl Primitive for Eigh {
    const NAME: &'static str = "eigh";
    const LEADING_BATCH: bool = true;

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        let (batch, n) = square(&x[0])?;
        if self.vectors { packed(&x[0], batch, &[n + 1, n]) } else { packed(&x[0], batch, &[n]) }
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        let done = with_real!(x[0].dtype, T => match self.vectors {
            true => kernels::eigh::<T>(x[0].view(), out.fill()),
            false => kernels::eigvalsh::<T>(x[0].view(), out.fill()),
        });
        done.map_err(|failed| endless(&x[0], failed))
    }

    fn flops(&self, x: &[&[usize]], _: &[usize]) -> u64 {
        let n = x[0].last().copied().unwrap_or(0) as u64;
        (if self.vectors { 9 } else { 2 }) * n * x[0].iter().product::<usize>() as u64
    }

    /// `V (diag(gλ) + F ∘ (X - Xᵀ) / 2) Vᵀ` with `X = Vᵀ gV` and `Fij = 1 / (λj - λi)`.
    fn pullback(&self, at: &At, g: &Tensor) -> Cotangents {
        if !self.vectors {
            let (_, v) = Eigh::parts(&apply(Eigh { vectors: true }, &[at.x(0)]));
            return smallvec![Some(dot(&(&v * g.unsqueeze(-2)), &v.transposed()))];
        }
        let n = at.y().shape()[at.y().rank() - 1];
        if n == 0 {
            return smallvec![None];
        }
        let ((values, v), (gvalues, gv)) = (Eigh::parts(at.y()), Eigh::parts(g));
        let largest = values.abs().max_axes_keep(-1).detach();
        let f = safe_inverse(&(&values - values.transposed()), &largest, n);
        let turn = f * skew(&dot(&v.transposed(), &gv)) * 0.5;
        smallvec![Some(dot(&(&v * gvalues + dot(&v, &turn)), &v.transposed()))]
    }

    fn uses(&self, _: &[bool]) -> Uses {
        if self.vectors { Uses::OUTPUT } else { Uses::inputs([0]) }
    }

    fn samples() -> Vec<Sample> {
        let of = |vectors, s: &[usize]| Sample::new(Eigh { vectors }, [draw(0, s)]);
        vec![
            of(true, &[3, 3]),
            of(true, &[2, 2, 2]),
            of(true, &[1, 1]),
            of(true, &[0, 0]),
            of(false, &[3, 3]),
            of(false, &[2, 2, 2]),
        ]
    }
}

/// Singular values from the greatest to the least; with `vectors`, under a row of the values the rows of `U` and then those of `V`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Svd {
    pub vectors: bool,
}

impl Svd {
    /// The row of values, `[.., 1, k]`, the left vectors of `m` rows, and the right ones.
    pub fn parts(packed: &Tensor, m: usize) -> (Tensor, Tensor, Tensor) {
        let all = packed.shape()[packed.rank() - 2];
        (rows(packed, 0, 1), rows(packed, 1, m + 1), rows(packed, m + 1, all))
    }
}

impl Primitive for Svd {
    const NAME: &'static str = "svd";
    const LEADING_BATCH: bool = true;

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        let (batch, m, n) = matrix(&x[0])?;
        let k = m.min(n);
        if self.vectors { packed(&x[0], batch, &[1 + m + n, k]) } else { packed(&x[0], batch, &[k]) }
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        let done = with_real!(x[0].dtype, T => match self.vectors {
            true => kernels::svd::<T>(x[0].view(), out.fill()),
            false => kernels::singular_values::<T>(x[0].view(), out.fill()),
        });
        done.map_err(|failed| endless(&x[0], failed))
    }

    fn flops(&self, x: &[&[usize]], _: &[usize]) -> u64 {
        svd_flops(x[0]) / if self.vectors { 1 } else { 5 }
    }

    /// `U (diag(gs) + M) Vᵀ + (1 - U Uᵀ) gU S⁻¹ Vᵀ + U S⁻¹ gVᵀ (1 - V Vᵀ)`, where with `P = Uᵀ gU - gUᵀ U` and `Q = Vᵀ gV - gVᵀ V`
    ///
    /// `Mij = (P sj + si Q)ij / (sj² - si²) = ((P + Q)ij / (sj - si) + (P - Q)ij / (sj + si)) / 2`:
    ///
    /// the second form is right for equal values too, where a function does not depend on the choice of their vectors.
    fn pullback(&self, at: &At, g: &Tensor) -> Cotangents {
        let (m, n) = (at.shape(0)[at.shape(0).len() - 2], at.shape(0)[at.shape(0).len() - 1]);
        if !self.vectors {
            let (_, u, v) = Svd::parts(&apply(Svd { vectors: true }, &[at.x(0)]), m);
            return smallvec![Some(dot(&(u * g.unsqueeze(-2)), &v.transposed()))];
        }
        let k = m.min(n);
        if k == 0 {
            return smallvec![None];
        }
        let ((s, u, v), (gs, gu, gv)) = (Svd::parts(at.y(), m), Svd::parts(g, m));
        let (largest, size) = (columns(&s, 0, 1).detach(), m.max(n));
        let (p, q) = (skew(&dot(&u.transposed(), &gu)), skew(&dot(&v.transposed(), &gv)));
        let difference = safe_inverse(&(&s - s.transposed()), &largest, size);
        let total = safe_inverse(&(&s + s.transposed()), &largest, size);
        let inner = ((&p + &q) * difference + (p - q) * total) * 0.5;
        let inverse = safe_inverse(&s, &largest, size);
        let outside = |x: Tensor, basis: &Tensor| &x - dot(basis, &dot(&basis.transposed(), &x));
        let mut left = &u * gs + dot(&u, &inner);
        if m > k {
            left += outside(gu * &inverse, &u);
        }
        let mut ga = dot(&left, &v.transposed());
        if n > k {
            ga += dot(&u, &outside(gv * inverse, &v).transposed());
        }
        smallvec![Some(ga)]
    }

    fn uses(&self, _: &[bool]) -> Uses {
        if self.vectors { Uses::OUTPUT } else { Uses::inputs([0]) }
    }

    fn samples() -> Vec<Sample> {
        let of = |vectors, s: &[usize]| Sample::new(Svd { vectors }, [draw(0, s)]);
        vec![
            of(true, &[3, 3]),
            of(true, &[4, 2]),
            of(true, &[2, 2, 3]),
            of(true, &[1, 1]),
            of(true, &[0, 2]),
            of(false, &[3, 3]),
            of(false, &[2, 3, 2]),
        ]
    }
}
