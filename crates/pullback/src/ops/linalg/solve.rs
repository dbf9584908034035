//! Solutions of linear equations, and inverses.

use super::*;

/// `a⁻¹ b`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Solve;

impl Primitive for Solve {
    const NAME: &'static str = "solve";
    const ARITY: Option<usize> = Some(2);
    const LEADING_BATCH: bool = true;

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        let (batch, n) = square(&x[0])?;
        let k = right_hand_sides(x, batch, n)?;
        packed(&x[0], batch, &[n, k])
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        with_real!(x[0].dtype, T => kernels::solve::<T>(x[0].view(), x[1].view(), out.fill()))
            .map_err(|failed| singular(&x[0], failed))
    }

    fn flops(&self, x: &[&[usize]], y: &[usize]) -> u64 {
        let n = x[0].last().copied().unwrap_or(0) as u64;
        n * x[0].iter().product::<usize>() as u64 + 2 * n * y.iter().product::<usize>() as u64
    }

    /// `gb = a⁻ᵀ g`, `ga = -gb yᵀ`.
    fn pullback(&self, at: &At, g: &Tensor) -> Cotangents {
        let gb = apply(Solve, &[&at.x(0).transposed(), g]);
        let ga = at.needs(0).then(|| -dot(&gb, &at.y().transposed()));
        smallvec![ga, at.needs(1).then_some(gb)]
    }

    fn uses(&self, needs: &[bool]) -> Uses {
        if needs[0] { Uses::inputs([0]).and(Uses::OUTPUT) } else { Uses::inputs([0]) }
    }

    /// `dy = a⁻¹ (db - da y)`.
    fn pushforward(&self, at: &At, t: &[Option<Tensor>]) -> Result<Tensor> {
        let rhs = match (&t[0], &t[1]) {
            (None, Some(db)) => db.clone(),
            (Some(da), None) => -dot(da, at.y()),
            (Some(da), Some(db)) => db - dot(da, at.y()),
            (None, None) => unreachable!("a pushforward has at least one tangent"),
        };
        bind(Solve, &[at.x(0), &rhs])
    }

    fn samples() -> Vec<Sample> {
        let of =
            |shift, a: &[usize], b: &[usize]| Sample::new(Solve, [draw(shift, a), Draw::new(Domain::any, b)]);
        vec![
            of(0, &[3, 3], &[3, 2]),
            of(1, &[4, 4], &[4, 1]),
            of(1, &[2, 2, 2], &[2, 2, 2]),
            of(0, &[1, 1], &[1, 1]),
            of(0, &[0, 0], &[0, 2]),
        ]
    }
}

/// `a⁻¹`. Singular matrices are an error, or else NaN.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Inv {
    pub fails: bool,
}

impl Primitive for Inv {
    const NAME: &'static str = "inv";
    const LEADING_BATCH: bool = true;

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        let (batch, n) = square(&x[0])?;
        packed(&x[0], batch, &[n, n])
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        with_real!(x[0].dtype, T => kernels::inverse::<T>(x[0].view(), self.fails, out.fill()))
            .map_err(|failed| singular(&x[0], failed))
    }

    fn flops(&self, x: &[&[usize]], _: &[usize]) -> u64 {
        2 * x[0].last().copied().unwrap_or(0) as u64 * x[0].iter().product::<usize>() as u64
    }

    /// `-yᵀ g yᵀ`.
    fn pullback(&self, at: &At, g: &Tensor) -> Cotangents {
        let t = at.y().transposed();
        smallvec![Some(-dot(&t, &dot(g, &t)))]
    }

    fn uses(&self, _: &[bool]) -> Uses {
        Uses::OUTPUT
    }

    fn pushforward(&self, at: &At, t: &[Option<Tensor>]) -> Result<Tensor> {
        let t = t[0].as_ref().expect("a pushforward has at least one tangent");
        Ok(-dot(at.y(), &dot(t, at.y())))
    }

    fn samples() -> Vec<Sample> {
        let of = |fails, shift, s: &[usize]| Sample::new(Inv { fails }, [draw(shift, s)]);
        vec![of(true, 0, &[3, 3]), of(false, 1, &[2, 2, 2]), of(true, 0, &[1, 1]), of(true, 0, &[0, 0])]
    }
}
