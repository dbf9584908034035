//! Comparisons, and the choice between two values.

use super::elementwise::check_ordered;
use super::*;
use crate::dtype::{with_bits, with_real, with_stored};
use crate::error::err;
use crate::kernels::map;
use smallvec::smallvec;

/// The six relations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relation {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

/// Whether a relation holds, element by element.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Compare {
    pub relation: Relation,
}

impl Primitive for Compare {
    const NAME: &'static str = "compare";
    const ARITY: Option<usize> = Some(2);
    const LEADING_BATCH: bool = true;

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        if x[0].dtype != x[1].dtype || x[0].shape != x[1].shape {
            return Err(err!(Shape, "operands must agree, got {:?} and {:?}", x[0], x[1]));
        }
        if !self.commutes() {
            check_ordered(x[0].dtype)?;
        }
        Ok(Aval { dtype: DType::Bool, shape: x[0].shape.clone() })
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        if let Relation::Eq | Relation::Ne = self.relation {
            with_stored!(x[0].dtype, T => {
                let (a, b, out) = (x[0].view::<T>(), x[1].view::<T>(), out.fill::<u8>());
                match self.relation {
                    Relation::Eq => map::zip_with(a, b, out, |a, b| (a == b) as u8),
                    _ => map::zip_with(a, b, out, |a, b| (a != b) as u8),
                }
            });
            return Ok(());
        }
        with_real!(x[0].dtype, T => {
            let (a, b, out) = (x[0].view::<T>(), x[1].view::<T>(), out.fill::<u8>());
            match self.relation {
                Relation::Lt => map::zip_with(a, b, out, |a, b| (a < b) as u8),
                Relation::Le => map::zip_with(a, b, out, |a, b| (a <= b) as u8),
                Relation::Gt => map::zip_with(a, b, out, |a, b| (a > b) as u8),
                _ => map::zip_with(a, b, out, |a, b| (a >= b) as u8),
            }
        });
        Ok(())
    }

    fn elementwise(&self) -> bool {
        true
    }

    fn commutes(&self) -> bool {
        matches!(self.relation, Relation::Eq | Relation::Ne)
    }

    fn samples() -> Vec<Sample> {
        let draw = || Draw::new(Domain::any, &[2, 3]);
        vec![
            Sample::new(Compare { relation: Relation::Lt }, [draw(), draw()]),
            Sample::new(Compare { relation: Relation::Ne }, [draw(), draw()]),
        ]
    }
}

/// `mask ? a : b`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Where;

impl Primitive for Where {
    const NAME: &'static str = "where";
    const ARITY: Option<usize> = Some(3);
    const LEADING_BATCH: bool = true;

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        if x[0].dtype != DType::Bool {
            return Err(err!(DType, "the mask must be bool, got {}; compare it with something", x[0].dtype));
        }
        if x[1].dtype != x[2].dtype || x[0].shape != x[1].shape || x[1].shape != x[2].shape {
            return Err(err!(Shape, "operands must agree, got {:?}, {:?} and {:?}", x[0], x[1], x[2]));
        }
        Ok(Aval { dtype: x[1].dtype, shape: x[1].shape.clone() })
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        with_bits!(x[1].dtype, T => map::select(x[0].view(), x[1].view::<T>(), x[2].view::<T>(), out.fill::<T>()));
        Ok(())
    }

    fn elementwise(&self) -> bool {
        true
    }

    /// `g` where the mask chose the operand, 0 elsewhere.
    fn pullback(&self, at: &At, g: &Tensor) -> Cotangents {
        let mask = at.x(0);
        smallvec![
            None,
            at.needs(1).then(|| Tensor::where_(mask, g, 0.0)),
            at.needs(2).then(|| Tensor::where_(mask, 0.0, g)),
        ]
    }

    fn uses(&self, _: &[bool]) -> Uses {
        Uses::inputs([0])
    }

    fn linearity(&self) -> Linearity {
        Linearity::Linear
    }

    fn samples() -> Vec<Sample> {
        let of = |s: &[usize]| {
            Sample::new(Where, [Draw::Mask(s.into()), Draw::new(Domain::any, s), Draw::new(Domain::any, s)])
        };
        vec![of(&[6]), of(&[2, 3])]
    }
}
