//! Triangles of matrices.

use super::*;
use crate::dtype::with_float;

/// The upper or the lower triangle of matrices, without the diagonal if it is `strict`; zeros elsewhere.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TriangularPart {
    pub upper: bool,
    pub strict: bool,
}

impl TriangularPart {
    pub const LOWER: TriangularPart = TriangularPart { upper: false, strict: false };
    pub const UPPER: TriangularPart = TriangularPart { upper: true, strict: false };
    pub const BELOW: TriangularPart = TriangularPart { upper: false, strict: true };

    pub fn of(self, x: &Tensor) -> Tensor {
        apply(self, &[x])
    }
}

/// The lower triangle with half of the diagonal.
pub(super) fn half_lower(x: &Tensor) -> Tensor {
    (TriangularPart::LOWER.of(x) + TriangularPart::BELOW.of(x)) * 0.5
}

/// Ones on the diagonal, zeros elsewhere, of the type and on the device of `like`.
pub(crate) fn identity(like: &Tensor, rows: usize, columns: usize) -> Tensor {
    let ones = Tensor::ones_of(like.dtype(), [rows, columns]);
    TriangularPart::UPPER.of(&TriangularPart::LOWER.of(&ones)).to(&like.device())
}

impl Primitive for TriangularPart {
    const NAME: &'static str = "triangular_part";
    const LEADING_BATCH: bool = true;

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        if !x[0].dtype.is_float() {
            return Err(needs_float(x[0].dtype));
        }
        if x[0].shape.len() < 2 {
            return Err(err!(Shape, "takes matrices, of at least two axes, got shape {:?}", x[0].shape));
        }
        Ok(Aval { dtype: x[0].dtype, shape: x[0].shape.clone() })
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        with_float!(x[0].dtype, T => kernels::part::<T>(x[0].view(), self.upper, self.strict, out.fill()));
        Ok(())
    }

    /// The same part of `g`.
    fn pullback(&self, _: &At, g: &Tensor) -> Cotangents {
        smallvec![Some(self.of(g))]
    }

    fn linearity(&self) -> Linearity {
        Linearity::Linear
    }

    fn samples() -> Vec<Sample> {
        let of = |op, s: &[usize]| Sample::new(op, [Draw::new(Domain::any, s)]);
        let above = TriangularPart { upper: true, strict: true };
        vec![
            of(TriangularPart::LOWER, &[3, 3]),
            of(TriangularPart::UPPER, &[2, 3, 2]),
            of(TriangularPart::BELOW, &[2, 4]),
            of(above, &[3, 2]),
            of(above, &[0, 2]),
        ]
    }
}

/// `a⁻¹ b`, where only one triangle of `a` is read, and its diagonal is 1 if that is `unit`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TriangularSolve {
    pub upper: bool,
    pub unit: bool,
}

impl TriangularSolve {
    pub const UPPER: TriangularSolve = TriangularSolve { upper: true, unit: false };
    pub const UNIT_UPPER: TriangularSolve = TriangularSolve { upper: true, unit: true };

    #[track_caller]
    pub fn of(self, a: &Tensor, b: &Tensor) -> Tensor {
        apply(self, &[a, b])
    }
}

impl Primitive for TriangularSolve {
    const NAME: &'static str = "solve_triangular";
    const ARITY: Option<usize> = Some(2);
    const LEADING_BATCH: bool = true;

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        let (batch, n) = square(&x[0])?;
        let k = right_hand_sides(x, batch, n)?;
        packed(&x[0], batch, &[n, k])
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        let (a, b) = (&x[0], &x[1]);
        with_real!(a.dtype, T => kernels::solve_triangular::<T>(a.view(), b.view(), self.upper, self.unit, out.fill()))
            .map_err(|failed| err!(Value, "the matrix{} is singular: its diagonal has a zero", place(leading(a), failed)))
    }

    fn flops(&self, x: &[&[usize]], y: &[usize]) -> u64 {
        x[0].last().copied().unwrap_or(0) as u64 * y.iter().product::<usize>() as u64
    }

    /// `gb = a⁻ᵀ g`, and `ga` is the triangle of `-gb yᵀ`.
    fn pullback(&self, at: &At, g: &Tensor) -> Cotangents {
        let back = TriangularSolve { upper: !self.upper, unit: self.unit };
        let gb = back.of(&at.x(0).transposed(), g);
        let triangle = TriangularPart { upper: self.upper, strict: self.unit };
        let ga = at.needs(0).then(|| triangle.of(&-dot(&gb, &at.y().transposed())));
        smallvec![ga, at.needs(1).then_some(gb)]
    }

    fn uses(&self, needs: &[bool]) -> Uses {
        if needs[0] { Uses::inputs([0]).and(Uses::OUTPUT) } else { Uses::inputs([0]) }
    }

    fn samples() -> Vec<Sample> {
        let of = |upper, unit, a: &[usize], b: &[usize]| {
            Sample::new(TriangularSolve { upper, unit }, [draw(0, a), Draw::new(Domain::any, b)])
        };
        vec![
            of(false, false, &[3, 3], &[3, 2]),
            of(true, false, &[2, 2, 2], &[2, 2, 1]),
            of(false, true, &[3, 3], &[3, 3]),
            of(true, true, &[4, 4], &[4, 1]),
            of(true, false, &[0, 0], &[0, 2]),
        ]
    }
}
