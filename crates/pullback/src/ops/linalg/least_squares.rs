//! Solutions of equations that have none, or many.

use super::*;

/// The pseudoinverse; singular values up to `rtol` of the greatest count as zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Pinv {
    pub rtol: f64,
}

impl Primitive for Pinv {
    const NAME: &'static str = "pinv";
    const LEADING_BATCH: bool = true;

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        let (batch, m, n) = matrix(&x[0])?;
        packed(&x[0], batch, &[n, m])
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        with_real!(x[0].dtype, T => kernels::pseudoinverse::<T>(x[0].view(), self.rtol, out.fill()))
            .map_err(|failed| endless(&x[0], failed))
    }

    fn flops(&self, x: &[&[usize]], _: &[usize]) -> u64 {
        svd_flops(x[0])
    }

    /// `-yᵀ g yᵀ + (1 - a y) gᵀ y yᵀ + yᵀ y gᵀ (1 - y a)`, where the rank does not change (Golub and Pereyra, 1973).
    fn pullback(&self, at: &At, g: &Tensor) -> Cotangents {
        let (a, y, t) = (at.x(0), at.y(), at.y().transposed());
        let gt = g.transposed();
        let right = dot(&dot(&gt, y), &t);
        let left = dot(&t, &dot(y, &gt));
        let outside = &right - dot(a, &dot(y, &right)) + &left - dot(&dot(&left, y), a);
        smallvec![Some(outside - dot(&t, &dot(g, &t)))]
    }

    fn uses(&self, _: &[bool]) -> Uses {
        Uses::inputs([0]).and(Uses::OUTPUT)
    }

    fn samples() -> Vec<Sample> {
        let of = |s: &[usize]| Sample::new(Pinv { rtol: 1e-6 }, [draw(0, s)]);
        vec![of(&[3, 3]), of(&[3, 2]), of(&[2, 2, 3]), of(&[0, 2])]
    }
}

/// The `y` of least norm among those with the least `|a y - b|`: the pseudoinverse times `b`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Lstsq;

impl Primitive for Lstsq {
    const NAME: &'static str = "lstsq";
    const ARITY: Option<usize> = Some(2);
    const LEADING_BATCH: bool = true;

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        let (batch, m, n) = matrix(&x[0])?;
        let k = right_hand_sides(x, batch, m)?;
        packed(&x[0], batch, &[n, k])
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        with_real!(x[0].dtype, T => kernels::least_squares::<T>(x[0].view(), x[1].view(), out.fill()))
            .map_err(|failed| endless(&x[0], failed))
    }

    fn flops(&self, x: &[&[usize]], _: &[usize]) -> u64 {
        svd_flops(x[0])
    }

    /// With `a⁺` the pseudoinverse, as that of [`Pinv`]: `gb = a⁺ᵀ g`, and `ga = -gb yᵀ + (b - a y) (a⁺ gb)ᵀ + (a⁺ᵀ y) (g - aᵀ gb)ᵀ`.
    fn pullback(&self, at: &At, g: &Tensor) -> Cotangents {
        let a = at.x(0);
        let t = a.transposed();
        let gb = apply(Lstsq, &[&t, g]);
        if !at.needs(0) {
            return smallvec![None, Some(gb)];
        }
        let y = at.y();
        // The last two vanish for matrices of full rank that have no more rows, or no more columns; but not for those of lower rank.
        let residual = at.x(1) - dot(a, y);
        let rest = g - dot(&t, &gb);
        let ga = dot(&residual, &apply(Lstsq, &[a, &gb]).transposed())
            + dot(&apply(Lstsq, &[&t, y]), &rest.transposed())
            - dot(&gb, &y.transposed());
        smallvec![Some(ga), at.needs(1).then_some(gb)]
    }

    fn uses(&self, needs: &[bool]) -> Uses {
        if needs[0] { Uses::inputs([0, 1]).and(Uses::OUTPUT) } else { Uses::inputs([0]) }
    }

    fn samples() -> Vec<Sample> {
        let of = |a: &[usize], b: &[usize]| Sample::new(Lstsq, [draw(0, a), Draw::new(Domain::any, b)]);
        vec![
            of(&[3, 3], &[3, 2]),
            of(&[4, 2], &[4, 1]),
            of(&[2, 2, 3], &[2, 2, 1]),
            of(&[0, 2], &[0, 1]),
            of(&[2, 0], &[2, 1]),
        ]
    }
}

pub(super) fn svd_flops(x: &[usize]) -> u64 {
    let least = x.iter().rev().take(2).min().copied().unwrap_or(0) as u64;
    20 * least * x.iter().product::<usize>() as u64
}
