//! One lane of a vector loop: a float on which a row of the elementwise table becomes a loop body without branches.

use super::math::{self, Float, Isa};
use pullback_table::{Number, elementwise_table};
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

/// A row that is neither an operator nor a formula: the function of [`math`] with its name.
macro_rules! method {
    ($m:ident($x:ident $(, $b:ident)?) = base) => {
        #[inline(always)]
        fn $m(self $(, $b: Self)?) -> Self {
            Lane::new(math::$m::<F, I>(self.0 $(, $b.0)?))
        }
    };
    ($m:ident($x:ident $(, $b:ident)?) = special) => {
        #[inline(always)]
        fn $m(self $(, $b: Self)?) -> Self {
            Lane::new(F::from_f64(pullback_table::special::$m(self.0.to_f64() $(, $b.0.to_f64())?)))
        }
    };
    ($m:ident $x:tt = $other:tt) => {};
}

macro_rules! number {
    ($($(#[$doc:meta])* $P:ident $m:ident $try:ident $x:tt = $value:tt;
        d = $d:tt; reads $([$($r:ident)*])+; $facts:tt)*) => {
        impl<F: Float, I: Isa> Number for Lane<F, I> {
            $(method! { $m $x = $value })*
        }
    };
}
elementwise_table!(number);
