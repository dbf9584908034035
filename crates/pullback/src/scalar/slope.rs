//! The partial derivatives of the rows of the elementwise table, over any real type.
//!
//! Every derivative of this module's types (dual numbers, tape variables, Taylor series, compiled
//! functions) is one of these: the table is expanded here, once.

use super::Real;
use super::real::chained;
use pullback_table::elementwise_table;

/// A partial derivative. Those that the table writes as a literal are known without arithmetic.
#[derive(Clone, Copy, Debug)]
pub enum Slope<T> {
    /// The function is piecewise constant in this argument.
    Zero,
    /// The derivative is 1.
    One,
    /// The derivative is -1.
    MinusOne,
    /// Any other derivative.
    Of(T),
}

impl<T: Real> Slope<T> {
    /// The slope times `t`, by the product of the chain rule.
    #[inline(always)]
    pub fn times(self, t: T) -> T {
        match self {
            Slope::Zero => T::constant(0.0),
            Slope::One => t,
            Slope::MinusOne => -t,
            Slope::Of(p) => chained(p, t),
        }
    }

    /// The slope as a number.
    #[inline(always)]
    pub fn number(self) -> T {
        match self {
            Slope::Zero => T::constant(0.0),
            Slope::One => T::constant(1.0),
            Slope::MinusOne => T::constant(-1.0),
            Slope::Of(p) => p,
        }
    }
}

/// The bracket of partials as an array of slopes; a literal is told by its tokens.
macro_rules! slopes {
    ([0.0]) => {
        [Slope::Zero]
    };
    ([-1.0]) => {
        [Slope::MinusOne]
    };
    ([$p:expr]) => {
        [Slope::Of($p)]
    };
    ([0.0, 0.0]) => {
        [Slope::Zero, Slope::Zero]
    };
    ([1.0, 1.0]) => {
        [Slope::One, Slope::One]
    };
    ([1.0, -1.0]) => {
        [Slope::One, Slope::MinusOne]
    };
    ([1.0, $q:expr]) => {
        [Slope::One, Slope::Of($q)]
    };
    ([$p:expr, 0.0]) => {
        [Slope::Of($p), Slope::Zero]
    };
    ([$p:expr, $q:expr]) => {
        [Slope::Of($p), Slope::Of($q)]
    };
}

macro_rules! slope_functions {
    ($($(#[$doc:meta])* $P:ident $m:ident $try:ident($($x:ident),+) = $value:tt;
        d = $d:tt; reads $([$($r:ident)*])+; $facts:tt)*) => {
        $(slope_function! { @reads $m ($($x),+) $d [$($($r)*)+] })*
    };
}

/// One function from one row. The name of the value, `y`, is taken from what the row reads, for only then is it the
/// `y` of its partials.
///
/// The table's partials of `sigmoid` and `tanh` read the value alone, so that tensors need not keep the argument, and lose their digits as it nears 1.
/// Here both are at hand.
macro_rules! slope_function {
    (@reads sigmoid $x:tt [$d:expr] [$y:ident]) => {
        #[inline(always)]
        pub(crate) fn sigmoid<T: Real>(x: T, $y: T) -> [Slope<T>; 1] {
            [Slope::Of(if $y.saturates() { $y * (-x).sigmoid() } else { $d })]
        }
    };
    (@reads tanh $x:tt [$d:expr] [$y:ident]) => {
        #[inline(always)]
        pub(crate) fn tanh<T: Real>(x: T, $y: T) -> [Slope<T>; 1] {
            [Slope::Of(if $y.saturates() { x.cosh().recip().square() } else { $d })]
        }
    };
    (@reads $m:ident $x:tt $d:tt []) => { slope_function! { @write $m $x $d _y } };
    (@reads $m:ident $x:tt $d:tt [$r:ident $($rest:ident)*]) => {
        slope_function! { @named $m $x $d $r $r [$($rest)*] }
    };
    (@named $m:ident $x:tt $d:tt y $y:ident $rest:tt) => { slope_function! { @write $m $x $d $y } };
    (@named $m:ident $x:tt $d:tt $name:ident $r:ident $rest:tt) => { slope_function! { @reads $m $x $d $rest } };
    (@write $m:ident ($x:ident) $d:tt $y:ident) => {
        #[allow(unused_variables)]
        #[inline(always)]
        pub(crate) fn $m<T: Real>($x: T, $y: T) -> [Slope<T>; 1] {
            slopes!($d)
        }
    };
    (@write $m:ident ($a:ident, $b:ident) $d:tt $y:ident) => {
        #[allow(unused_variables)]
        #[inline(always)]
        pub(crate) fn $m<T: Real>($a: T, $b: T, $y: T) -> [Slope<T>; 2] {
            slopes!($d)
        }
    };
}
elementwise_table!(slope_functions);
