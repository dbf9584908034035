//! The rows as functions of any [`Number`], operators too, for what treats them all alike.
//!
//! ```
//! use pullback_table::function;
//! assert_eq!((function::mul(2.0, 3.0), function::abs(-1.0)), (6.0, 1.0));
//! ```

use crate::{Number, elementwise_table};

macro_rules! functions {
    ($($(#[$doc:meta])* $P:ident $m:ident $try:ident($($x:ident),+) = $value:tt;
        d = $d:tt; reads $([$($r:ident)*])+; $facts:tt)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        pub fn $m<N: Number>($($x: N),+) -> N {
            functions!(@ $m $value $($x)+)
        }
    )*};
    (@ $m:ident ($operator:expr) $($x:ident)+) => { $operator };
    (@ $m:ident $value:tt $($x:ident)+) => { Number::$m($($x),+) };
}
elementwise_table!(functions);
