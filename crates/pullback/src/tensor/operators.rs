//! The operators of Rust on tensors, references and numbers in any mix, and assignment in place.
//!
//! Of the number types only f64, i64 and complex numbers of f64 are operands: with two float types the compiler could not tell which one
//! the literal of `(x + 1.0).exp()` is.

use super::methods::binary;
use super::operand::{check_dtypes, literal};
use super::{Operand, Tensor, bind};
use crate::dtype::Scalar;
use crate::error::{Result, Within, err, or_panic};
use crate::ops::{Add, Div, Mul, Neg, Op, Primitive, Rem, Sub};
use crate::tape::{AMBIENT, in_strict_mode, saved_by};
use num_complex::Complex;
use pullback_table::row;
use std::borrow::Cow;
use std::ops;

macro_rules! operators {
    ($($Trait:ident $f:ident, $Assign:ident $assign:ident $try_assign:ident;)*) => {$(
        impl ops::$Trait<&Tensor> for &Tensor {
            type Output = Tensor;
            #[track_caller]
            fn $f(self, b: &Tensor) -> Tensor { or_panic(binary($Trait, self, b.into())) }
        }
        impl ops::$Trait<Tensor> for &Tensor {
            type Output = Tensor;
            #[track_caller]
            fn $f(self, b: Tensor) -> Tensor {
                if row::$Trait.commutes { or_panic(consuming($Trait, b, self.into())) } else { or_panic(binary($Trait, self, (&b).into())) }
            }
        }
        impl ops::$Trait<&Tensor> for Tensor {
            type Output = Tensor;
            #[track_caller]
            fn $f(self, b: &Tensor) -> Tensor { or_panic(consuming($Trait, self, b.into())) }
        }
        impl ops::$Trait<Tensor> for Tensor {
            type Output = Tensor;
            #[track_caller]
            fn $f(self, b: Tensor) -> Tensor { or_panic(consuming($Trait, self, (&b).into())) }
        }
        impl ops::$Assign<&Tensor> for Tensor {
            #[track_caller]
            fn $assign(&mut self, b: &Tensor) { or_panic(self.$try_assign(b)) }
        }
        impl ops::$Assign<Tensor> for Tensor {
            #[track_caller]
            fn $assign(&mut self, b: Tensor) { or_panic(self.$try_assign(&b)) }
        }
        operators!(@numbers $Trait $f $Assign $assign $try_assign: f64 i64 Complex<f64>);
        impl Tensor {
            #[track_caller]
            pub(crate) fn $try_assign<'a>(&mut self, b: impl Into<Operand<'a>>) -> Result<()> {
                self.assign($Trait, b.into()).within(<$Trait as Primitive>::NAME)
            }
        }
    )*};
    (@numbers $Trait:ident $f:ident $Assign:ident $assign:ident $try_assign:ident: $($t:ty)*) => {$(
        impl ops::$Trait<$t> for &Tensor {
            type Output = Tensor;
            #[track_caller]
            fn $f(self, b: $t) -> Tensor { or_panic(binary($Trait, self, b.into())) }
        }
        impl ops::$Trait<$t> for Tensor {
            type Output = Tensor;
            #[track_caller]
            fn $f(self, b: $t) -> Tensor { or_panic(consuming($Trait, self, b.into())) }
        }
        impl ops::$Trait<&Tensor> for $t {
            type Output = Tensor;
            #[track_caller]
            fn $f(self, b: &Tensor) -> Tensor { or_panic(reversed($Trait.into(), self.into(), b)) }
        }
        impl ops::$Trait<Tensor> for $t {
            type Output = Tensor;
            #[track_caller]
            fn $f(self, b: Tensor) -> Tensor {
                if row::$Trait.commutes { or_panic(consuming($Trait, b, self.into())) } else { or_panic(reversed($Trait.into(), self.into(), &b)) }
            }
        }
        impl ops::$Assign<$t> for Tensor {
            #[track_caller]
            fn $assign(&mut self, b: $t) { or_panic(self.$try_assign(b)) }
        }
    )*};
}
operators! {
    Add add, AddAssign add_assign try_add_assign;
    Sub sub, SubAssign sub_assign try_sub_assign;
    Mul mul, MulAssign mul_assign try_mul_assign;
    Div div, DivAssign div_assign try_div_assign;
    Rem rem, RemAssign rem_assign try_rem_assign;
}

/// `a op b` where `a` is handed over: its memory takes the result if nobody else can see it and nothing is recorded.
///
/// So `a * b + c` writes one buffer and not two.
#[track_caller]
fn consuming(op: impl Primitive, mut a: Tensor, b: Operand) -> Result<Tensor> {
    if a.absorb(&op, &b) { Ok(a) } else { binary(op, &a, b) }
}

/// A number on the left.
#[track_caller]
fn reversed(op: Op, a: Scalar, b: &Tensor) -> Result<Tensor> {
    let a = literal(a, b).within(op.name())?;
    bind(op, &[&a, b])
}

impl ops::Neg for &Tensor {
    type Output = Tensor;
    #[track_caller]
    fn neg(self) -> Tensor {
        or_panic(bind(Neg, &[self]))
    }
}

impl ops::Neg for Tensor {
    type Output = Tensor;
    #[track_caller]
    fn neg(self) -> Tensor {
        or_panic(bind(Neg, &[&self]))
    }
}

/// Logic on truth values, operations on the bits of integers.
macro_rules! bit_operators {
    ($($Trait:ident $f:ident $method:ident),*) => {$(
        bit_operators! { @ $Trait $f $method, Tensor, Tensor }
        bit_operators! { @ $Trait $f $method, Tensor, &Tensor }
        bit_operators! { @ $Trait $f $method, Tensor, i64 }
        bit_operators! { @ $Trait $f $method, &Tensor, Tensor }
        bit_operators! { @ $Trait $f $method, &Tensor, &Tensor }
        bit_operators! { @ $Trait $f $method, &Tensor, i64 }
    )*};
    (@ $Trait:ident $f:ident $method:ident, $A:ty, $B:ty) => {
        impl ops::$Trait<$B> for $A {
            type Output = Tensor;
            #[track_caller]
            fn $f(self, b: $B) -> Tensor { self.$method(b) }
        }
    };
}
bit_operators! { BitAnd bitand and, BitOr bitor or, BitXor bitxor xor, Shl shl left_shift, Shr shr right_shift }

impl ops::Not for &Tensor {
    type Output = Tensor;
    #[track_caller]
    fn not(self) -> Tensor {
        self.bitwise_not()
    }
}

impl ops::Not for Tensor {
    type Output = Tensor;
    #[track_caller]
    fn not(self) -> Tensor {
        self.bitwise_not()
    }
}

impl Tensor {
    /// Gives this handle the value of `self op b`. The buffer is reused when nobody else can see it; otherwise the result
    /// is a new one, and whoever held the old value keeps it. Under `no_grad` a parameter stays a parameter.
    #[track_caller]
    fn assign(&mut self, op: impl Primitive, b: Operand) -> Result<()> {
        let b = match b.as_tensor() {
            Some(t) if t.dtype() != self.dtype() => {
                check_dtypes(self, t, self.dtype())?;
                Operand::Owned(t.try_cast(self.dtype())?)
            }
            _ => b,
        };
        if self.absorb(&op, &b) {
            return Ok(());
        }
        let b = b.tensor_like(self)?;
        let b = if b.node().shape == self.node().shape {
            b
        } else {
            Cow::Owned(b.try_broadcast_to(self.node().shape.clone())?)
        };
        self.check_not_saved()?;
        let result = bind(op, &[self, &b])?;
        self.rename(result);
        Ok(())
    }

    /// In strict mode, an error if a pullback reads the value that is about to be replaced.
    pub(super) fn check_not_saved(&self) -> Result<()> {
        if !in_strict_mode() {
            return Ok(());
        }
        let own = || self.node().record.as_ref().map(|r| (r.op.name(), r.location));
        let saver =
            if self.is_kept() { own() } else { saved_by(self.address()).filter(|_| self.is_shared()) };
        match saver {
            None => Ok(()),
            Some((op, line)) => Err(err!(
                Copied,
                "the value would have to be copied: {op} at {}:{}:{} has saved it for its pullback",
                line.file(),
                line.line(),
                line.column()
            )),
        }
    }

    /// `self = self op b` in the memory of `self`, if the result has its type and shape and that is possible unseen.
    fn absorb<P: Primitive>(&mut self, op: &P, b: &Operand) -> bool {
        if !self.node().deps.is_empty() {
            return false;
        }
        let b: &Tensor = match b {
            Operand::Borrowed(b) => b,
            Operand::Owned(b) => b,
            Operand::Number(v) => return literal(*v, self).is_ok_and(|b| self.update(op, &b)),
        };
        if b.dtype() != self.dtype() {
            return false;
        }
        if b.node().shape == self.node().shape {
            return self.update(op, b);
        }
        b.node().deps.is_empty()
            && b.rank() <= self.rank()
            && b.try_broadcast_to(self.node().shape.clone()).is_ok_and(|b| self.update(op, &b))
    }

    /// Makes this handle stand for `result`. A leaf of the ambient transform that was updated outside of it stays a leaf, with
    /// its gradient and hooks.
    pub(super) fn rename(&mut self, result: Tensor) {
        let was = self.node();
        let stays_parameter = was.leaf_of == AMBIENT && !result.node().deps.contains(AMBIENT);
        *self = if stays_parameter { result.parameter_like(self) } else { result };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DType;

    fn address(x: &Tensor) -> *const f64 {
        x.value().view::<f64>().data.as_ptr()
    }

    #[test]
    fn a_dying_operand_gives_its_memory_to_the_result() {
        let c = Tensor::from([[1.0, 2.0], [3.0, 4.0]]);
        let a = &c + &c;
        let at = address(&a);
        let y = 1.0 + (a * &c - &c.get(0)) / 2.0 + 1.0;
        assert_eq!(address(&y), at);
        assert_eq!(y.to_vec::<f64>(), [2.5, 5.0, 10.5, 17.0]);
    }

    #[test]
    fn the_side_that_dies_does_not_change_the_result() {
        let (a, b) = (Tensor::from([6.0, 8.0]), Tensor::from([3.0, 5.0]));
        let fresh = || &b * 1.0;
        assert_eq!((&a - fresh()).to_vec::<f64>(), [3.0, 3.0]);
        assert_eq!((&a / fresh()).to_vec::<f64>(), [2.0, 1.6]);
        assert_eq!((&a % fresh()).to_vec::<f64>(), [0.0, 3.0]);
        assert_eq!((&a + fresh()).to_vec::<f64>(), [9.0, 13.0]);
        assert_eq!((1.0 - fresh()).to_vec::<f64>(), [-2.0, -4.0]);
        assert_eq!((fresh() * Tensor::from([[1.0], [2.0]])).shape(), [2, 2]);
        assert_eq!((fresh().cast(DType::F32) * &a).dtype(), DType::F64);
    }

    #[test]
    fn whoever_else_sees_an_operand_keeps_its_value() {
        let a = Tensor::from([1.0, 2.0]);
        let (held, view) = (a.clone(), a.slice(0..1));
        let y = a + 1.0;
        assert_eq!(y.to_vec::<f64>(), [2.0, 3.0]);
        assert_eq!((held.to_vec::<f64>(), view.to_vec::<f64>()), (vec![1.0, 2.0], vec![1.0]));

        let x = Tensor::from([5.0, 7.0]).requires_grad();
        let c = Tensor::from([1.0, 2.0]) + 1.0;
        let y = &x * &c;
        assert_eq!((c * 100.0).to_vec::<f64>(), [200.0, 300.0]);
        y.sum().backward();
        assert_eq!(x.grad().unwrap().to_vec::<f64>(), [2.0, 3.0]);
    }
}
