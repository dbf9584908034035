//! What a row of the elementwise table costs, found by evaluating it on a number that counts.

use crate::number::Number;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// The work behind a value. Everything here is known at compile time, so the optimiser leaves only the result.
#[derive(Clone, Copy)]
pub(crate) struct Cost {
    /// Tenths of a nanosecond for an element, roughly.
    pub work: usize,
    /// Whether a function was used that a vector lane answers with NaN beyond its range.
    pub limited: bool,
}

impl Cost {
    /// An operand.
    pub const OPERAND: Cost = Cost { work: 0, limited: false };

    /// How many elements make about 100 µs of work, which is when a second thread begins to pay.
    pub fn grain(self) -> usize {
        const MEMORY: usize = 4;
        1_000_000 / (MEMORY + self.work)
    }

    /// Whether computing takes so much longer than loading and storing that it gains from the longest vectors.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub fn is_worth_long_vectors(self) -> bool {
        self.work >= 12
    }

    /// The work in additions.
    pub fn flops(self) -> u64 {
        self.work as u64
    }

    #[inline(always)]
    fn then(self, work: usize) -> Self {
        Cost { work: self.work + work, ..self }
    }

    #[inline(always)]
    fn with(self, other: Self, work: usize) -> Self {
        Cost { work: self.work + other.work + work, limited: self.limited | other.limited }
    }
}

impl Neg for Cost {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        self.then(1)
    }
}

macro_rules! operators {
    ($($Op:ident $op:ident $work:literal),*) => {$(
        impl $Op for Cost {
            type Output = Self;
            #[inline(always)]
            fn $op(self, b: Self) -> Self {
                self.with(b, $work)
            }
        }
        impl $Op<f64> for Cost {
            type Output = Self;
            #[inline(always)]
            fn $op(self, _: f64) -> Self {
                self.then($work)
            }
        }
    )*};
}
operators!(Add add 1, Sub sub 1, Mul mul 1, Div div 6);

macro_rules! cost {
    ($($work:literal: $($f:ident)*;)*) => {$($(
        #[inline(always)]
        fn $f(self) -> Self {
            self.then($work)
        }
    )*)*};
}

macro_rules! cost_of_two {
    ($($work:literal: $($f:ident)*;)*) => {$($(
        #[inline(always)]
        fn $f(self, b: Self) -> Self {
            self.with(b, $work)
        }
    )*)*};
}

macro_rules! limited {
    ($($f:ident)*) => {$(
        #[inline(always)]
        fn $f(self) -> Self {
            Cost { limited: true, ..self.then(15) }
        }
    )*};
}

impl Number for Cost {
    cost! {
        1: abs sign step relu floor ceil round trunc;
        6: sqrt recip;
        15: exp exp2 expm1 ln log2 log10 log1p sigmoid tanh asin acos atan;
        25: cbrt sinh cosh asinh acosh atanh erf erfc;
    }
    cost_of_two! {
        1: gate maximum minimum share;
        12: hypot;
        25: atan2;
        50: pow;
        100: rem;
    }
    limited! { sin cos tan }
}
