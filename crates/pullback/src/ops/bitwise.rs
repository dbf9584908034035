//! Operations on the bits of integers.

use super::elementwise::on_integers;
use super::*;
use crate::error::err;
use pullback_table::Integer;

/// What is done to the bits of two integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BitOperation {
    And,
    Or,
    Xor,
    /// The first moved up by as many places as the second says.
    Left,
    /// The first moved down; the sign stays.
    Right,
}

/// An operation on bits, element by element. A shift by less than 0 or more than there are bits moves all of them out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bitwise {
    pub operation: BitOperation,
}

impl Primitive for Bitwise {
    const NAME: &'static str = "bitwise";
    const ARITY: Option<usize> = Some(2);
    const LEADING_BATCH: bool = true;

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        if let Some(other) = x.iter().find(|a| !a.dtype.is_int()) {
            return Err(err!(DType, "takes integers, got {}; use .cast(DType::I64) first", other.dtype));
        }
        if x[0].dtype != x[1].dtype || x[0].shape != x[1].shape {
            return Err(err!(Shape, "operands must agree, got {:?} and {:?}", x[0], x[1]));
        }
        Ok(Aval { dtype: x[0].dtype, shape: x[0].shape.clone() })
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        let function: fn(i64, i64) -> i64 = match self.operation {
            BitOperation::And => |a, b| a & b,
            BitOperation::Or => |a, b| a | b,
            BitOperation::Xor => |a, b| a ^ b,
            BitOperation::Left => |a, b| count_of(b).and_then(|n| a.checked_shl(n)).unwrap_or(0),
            BitOperation::Right => |a, b| a >> count_of(b).unwrap_or(63).min(63),
        };
        on_integers(Integer::Binary(function), x, out)
    }

    fn elementwise(&self) -> bool {
        true
    }

    fn commutes(&self) -> bool {
        matches!(self.operation, BitOperation::And | BitOperation::Or | BitOperation::Xor)
    }

    fn samples() -> Vec<Sample> {
        use BitOperation::*;
        let of = |operation, s: &[usize]| {
            Sample::new(Bitwise { operation }, [Draw::Index(9, s.into()), Draw::Index(5, s.into())])
        };
        vec![of(And, &[]), of(Or, &[4]), of(Xor, &[2, 3]), of(Left, &[2, 3]), of(Right, &[0, 2])]
    }
}

/// How many places to move, if it is not below 0.
fn count_of(b: i64) -> Option<u32> {
    u32::try_from(b).ok()
}
