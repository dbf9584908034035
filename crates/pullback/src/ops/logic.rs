//! Logic on truth values.

use super::*;
use crate::error::err;
use crate::kernels::map;

/// The connectives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Connective {
    And,
    Or,
    Xor,
}

/// A connective, element by element.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Logic {
    pub connective: Connective,
}

fn truths(x: &[Arg]) -> Result<Aval> {
    if let Some(other) = x.iter().find(|a| a.dtype != DType::Bool) {
        return Err(err!(DType, "takes bool, got {}; compare it with something", other.dtype));
    }
    if x.iter().any(|a| a.shape != x[0].shape) {
        return Err(err!(Shape, "operands must agree, got {:?} and {:?}", x[0].shape, x[1].shape));
    }
    Ok(Aval { dtype: DType::Bool, shape: x[0].shape.clone() })
}

impl Primitive for Logic {
    const NAME: &'static str = "logic";
    const ARITY: Option<usize> = Some(2);
    const LEADING_BATCH: bool = true;

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        truths(x)
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        let (a, b, out) = (x[0].view::<u8>(), x[1].view::<u8>(), out.fill::<u8>());
        match self.connective {
            Connective::And => map::zip_with(a, b, out, |a, b| a & b),
            Connective::Or => map::zip_with(a, b, out, |a, b| a | b),
            Connective::Xor => map::zip_with(a, b, out, |a, b| a ^ b),
        }
        Ok(())
    }

    fn elementwise(&self) -> bool {
        true
    }

    fn commutes(&self) -> bool {
        true
    }

    fn samples() -> Vec<Sample> {
        let draw = || Draw::Mask([2, 3].into());
        vec![Sample::new(Logic { connective: Connective::Xor }, [draw(), draw()])]
    }
}

/// Negation of truth values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Not;

impl Primitive for Not {
    const NAME: &'static str = "not";
    const LEADING_BATCH: bool = true;

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        truths(x)
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        map::map_with(x[0].view::<u8>(), out.fill::<u8>(), |v| v ^ 1);
        Ok(())
    }

    fn elementwise(&self) -> bool {
        true
    }

    fn samples() -> Vec<Sample> {
        vec![Sample::new(Not, [Draw::Mask([2, 3].into())])]
    }
}
