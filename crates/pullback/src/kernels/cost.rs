//! What a row of the elementwise table costs, found by evaluating it on a number that counts.

use pullback_table::{Number, Row, elementwise_table, row};
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

    /// This much work.
    pub const fn of(work: usize) -> Cost {
        Cost { work, limited: false }
    }

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
    fn then(self, row: Row) -> Self {
        Cost { work: self.work + row.cost, limited: self.limited | row.limited }
    }

    #[inline(always)]
    fn with(self, other: Self, row: Row) -> Self {
        Cost { work: self.work + other.work, limited: self.limited | other.limited }.then(row)
    }
}

impl Neg for Cost {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        self.then(row::Neg)
    }
}

macro_rules! operators {
    ($($Op:ident $op:ident),*) => {$(
        impl $Op for Cost {
            type Output = Self;
            #[inline(always)]
            fn $op(self, b: Self) -> Self {
                self.with(b, row::$Op)
            }
        }
        impl $Op<f64> for Cost {
            type Output = Self;
            #[inline(always)]
            fn $op(self, _: f64) -> Self {
                self.then(row::$Op)
            }
        }
    )*};
}
operators!(Add add, Sub sub, Mul mul, Div div);

/// Formulas cost what their parts do.
macro_rules! cost {
    ($P:ident $m:ident($x:ident) = base) => {
        #[inline(always)]
        fn $m(self) -> Self {
            self.then(row::$P)
        }
    };
    ($P:ident $m:ident($a:ident, $b:ident) = base) => {
        #[inline(always)]
        fn $m(self, $b: Self) -> Self {
            self.with($b, row::$P)
        }
    };
    ($P:ident $m:ident $x:tt = special) => {
        cost! { $P $m $x = base }
    };
    ($P:ident $m:ident $x:tt = $other:tt) => {};
}

macro_rules! number {
    ($($(#[$doc:meta])* $P:ident $m:ident $try:ident $x:tt = $value:tt;
        d = $d:tt; reads $([$($r:ident)*])+; $facts:tt)*) => {
        impl Number for Cost {
            $(cost! { $P $m $x = $value })*
        }
    };
}
elementwise_table!(number);
