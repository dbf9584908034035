//! One lane of a vector loop: a float on which a row of the elementwise table becomes a loop body without branches.

use super::math::{self, Float, Isa, pick};
use crate::number::Number;
use std::marker::PhantomData;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// A float whose functions are those of [`math`], compiled for the instruction set `I`.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct Lane<F, I>(pub F, PhantomData<I>);

impl<F, I> Lane<F, I> {
    #[inline(always)]
    pub fn new(x: F) -> Self {
        Lane(x, PhantomData)
    }
}

/// The instructions that every processor of the target has.
#[derive(Clone, Copy)]
pub(crate) struct Portable;

/// The instruction sets from x86-64-v3 on, which have a fused multiply-add.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub(crate) struct Fma;

/// The instructions of code that is told whether it has a fused multiply-add.
#[derive(Clone, Copy)]
pub(crate) struct Told<const FMA: bool>;

/// `I`, for single elements: the same bits as in a vector loop, and an answer where the loop has none.
#[derive(Clone, Copy)]
pub(crate) struct Careful<I>(PhantomData<I>);

impl Isa for Portable {
    const FMA: bool = cfg!(any(target_arch = "aarch64", target_feature = "fma"));
    const CAREFUL: bool = false;
}
#[cfg(target_arch = "x86_64")]
impl Isa for Fma {
    const FMA: bool = true;
    const CAREFUL: bool = false;
}
impl<const FMA_: bool> Isa for Told<FMA_> {
    const FMA: bool = FMA_;
    const CAREFUL: bool = false;
}
impl<I: Isa> Isa for Careful<I> {
    const FMA: bool = I::FMA;
    const CAREFUL: bool = true;
}

impl<F: Float, I: Isa> Neg for Lane<F, I> {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        Lane::new(-self.0)
    }
}

macro_rules! operators {
    ($($Op:ident $op:ident),*) => {$(
        impl<F: Float, I: Isa> $Op for Lane<F, I> {
            type Output = Self;
            #[inline(always)]
            fn $op(self, b: Self) -> Self {
                Lane::new($Op::$op(self.0, b.0))
            }
        }
        impl<F: Float, I: Isa> $Op<f64> for Lane<F, I> {
            type Output = Self;
            #[inline(always)]
            fn $op(self, b: f64) -> Self {
                Lane::new($Op::$op(self.0, F::from_f64(b)))
            }
        }
    )*};
}
operators!(Add add, Sub sub, Mul mul, Div div);

macro_rules! from_math {
    ($($f:ident)*) => {$(
        #[inline(always)]
        fn $f(self) -> Self {
            Lane::new(math::$f::<F, I>(self.0))
        }
    )*};
}

macro_rules! from_math_of_two {
    ($($f:ident)*) => {$(
        #[inline(always)]
        fn $f(self, b: Self) -> Self {
            Lane::new(math::$f::<F, I>(self.0, b.0))
        }
    )*};
}

/// A method from an expression of the floats inside.
macro_rules! from_float {
    ($($f:ident($a:ident $(, $b:ident)?) = $value:expr;)*) => {$(
        #[inline(always)]
        fn $f(self $(, $b: Self)?) -> Self {
            let $a = self.0;
            $(let $b = $b.0;)?
            Lane::new($value)
        }
    )*};
}

impl<F: Float, I: Isa> Number for Lane<F, I> {
    from_math! {
        cbrt exp exp2 expm1 ln log2 log10 log1p sin cos tan asin acos atan
        sinh cosh tanh asinh acosh atanh sigmoid erf erfc
    }
    from_math_of_two! { pow atan2 hypot }
    from_float! {
        abs(x) = x.abs();
        sign(x) = {
            let y = pick(x > F::ZERO, F::ONE, x);
            pick(x < F::ZERO, -F::ONE, y)
        };
        step(x) = pick(x > F::ZERO, F::ONE, F::ZERO);
        relu(x) = pick(x <= F::ZERO, F::ZERO, x);
        floor(x) = x.floor();
        ceil(x) = x.ceil();
        round(x) = x.round_ties_even();
        trunc(x) = x.trunc();
        sqrt(x) = x.sqrt();
        recip(x) = F::ONE / x;
        gate(a, b) = {
            let product = a * b;
            let right = pick(b == F::ZERO, b, product);
            pick(a == F::ZERO, a, right)
        };
        rem(a, b) = a % b;
        maximum(a, b) = pick((a > b) | math::is_nan(a), a, b);
        minimum(a, b) = pick((a < b) | math::is_nan(a), a, b);
        share(a, b) = {
            let y = pick(a > b, F::ONE, F::ZERO);
            pick(a == b, F::HALF, y)
        };
    }
}
