//! The vocabulary in which the rows of the elementwise table are written.

use crate::elementwise_table;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// One method of [`Number`] from one row of the table.
macro_rules! method {
    // The operators are supertraits.
    ($(#[$doc:meta])* $m:ident $x:tt = ($($operator:tt)*)) => {};
    ($(#[$doc:meta])* $m:ident($x:ident $(, $b:ident)?) = base) => {
        $(#[$doc])*
        fn $m(self $(, $b: Self)?) -> Self;
    };
    ($(#[$doc:meta])* $m:ident($x:ident $(, $b:ident)?) = special) => {
        $(#[$doc])*
        fn $m(self $(, $b: Self)?) -> Self;
    };
    ($(#[$doc:meta])* $m:ident($x:ident $(, $b:ident)?) = $formula:tt) => {
        $(#[$doc])*
        #[inline(always)]
        fn $m(self $(, $b: Self)?) -> Self {
            let $x = self;
            $formula
        }
    };
}

macro_rules! number {
    ($($(#[$doc:meta])* $P:ident $m:ident $try:ident($($x:ident),+) = $value:tt;
        d = $d:tt; reads $([$($r:ident)*])+; $facts:tt)*) => {
        /// A number that the rows of the elementwise table can be evaluated on: the lanes of the kernels,
        /// plain floats, dual numbers, tape variables, the recorder of compiled functions.
        ///
        /// A row that is `base` or `special` in the table is a required method; the others have their formula as the
        /// default, and a type may do better.
        ///
        /// ```
        /// use pullback_table::Number;
        /// fn normal<N: Number>(x: N) -> N {
        ///     (x * x * -0.5).exp() / (2.0 * std::f64::consts::PI).sqrt()
        /// }
        /// assert!((normal(0.0) - 0.3989422804014327).abs() < 1e-16);
        /// ```
        pub trait Number:
            Copy
            + Neg<Output = Self>
            + Add<Output = Self>
            + Sub<Output = Self>
            + Mul<Output = Self>
            + Div<Output = Self>
            + Add<f64, Output = Self>
            + Sub<f64, Output = Self>
            + Mul<f64, Output = Self>
            + Div<f64, Output = Self>
        {
            $(method! { $(#[$doc])* $m($($x),+) = $value })*

            /// This value as a number of the same kind as `self`, of which it does not depend.
            #[inline(always)]
            fn filled(self, value: f64) -> Self {
                self.step() * 0.0 + value
            }
        }
    };
}
elementwise_table!(number);
