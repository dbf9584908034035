//! Plain floating-point numbers as reals: `f64`, and [`Single`] for `f32`.

use super::operators::derived_operators;
use super::{Real, special};
use crate::number::Number;

/// The base rows on `f64` and `f32`, where they are the same but for the type.
macro_rules! float_methods {
    ($float:ident, $wrap:expr, $bare:expr) => {
        float_methods! { @std $float, $wrap, $bare,
            abs abs, floor floor, ceil ceil, round round_ties_even, trunc trunc, sqrt sqrt, cbrt cbrt,
            recip recip, exp exp, exp2 exp2, expm1 exp_m1, ln ln, log2 log2, log10 log10, log1p ln_1p,
            sin sin, cos cos, tan tan, asin asin, acos acos, atan atan, sinh sinh, cosh cosh, tanh tanh,
            asinh asinh, acosh acosh, atanh atanh
        }
        #[inline(always)]
        fn sign(self) -> Self {
            let x = $bare(self);
            // A zero and NaN are their own sign.
            $wrap(if x == 0.0 || x.is_nan() { x } else { $float::signum(x) })
        }
        #[inline(always)]
        fn step(self) -> Self {
            $wrap(if $bare(self) > 0.0 { 1.0 } else { 0.0 })
        }
        #[inline(always)]
        fn relu(self) -> Self {
            let x = $bare(self);
            $wrap(if x > 0.0 || x.is_nan() { x } else { 0.0 })
        }
        #[inline(always)]
        fn sigmoid(self) -> Self {
            // exp of the negative magnitude cannot overflow, and keeps the small side accurate.
            let x = $bare(self);
            let e = (-x.abs()).exp();
            $wrap(if x < 0.0 { e / (1.0 + e) } else { 1.0 / (1.0 + e) })
        }
        #[inline(always)]
        fn gate(self, other: Self) -> Self {
            let (a, b) = ($bare(self), $bare(other));
            $wrap(if a == 0.0 || b == 0.0 { 0.0 } else { a * b })
        }
        #[inline(always)]
        fn rem(self, other: Self) -> Self {
            $wrap($bare(self) % $bare(other))
        }
        #[inline(always)]
        fn pow(self, other: Self) -> Self {
            $wrap($float::powf($bare(self), $bare(other)))
        }
        #[inline(always)]
        fn maximum(self, other: Self) -> Self {
            let (a, b) = ($bare(self), $bare(other));
            $wrap(if a > b || a.is_nan() { a } else { b })
        }
        #[inline(always)]
        fn minimum(self, other: Self) -> Self {
            let (a, b) = ($bare(self), $bare(other));
            $wrap(if a < b || a.is_nan() { a } else { b })
        }
        #[inline(always)]
        fn share(self, other: Self) -> Self {
            let (a, b) = ($bare(self), $bare(other));
            $wrap(if a > b { 1.0 } else if a == b { 0.5 } else { 0.0 })
        }
        #[inline(always)]
        fn atan2(self, other: Self) -> Self {
            $wrap($float::atan2($bare(self), $bare(other)))
        }
        #[inline(always)]
        fn hypot(self, other: Self) -> Self {
            $wrap($float::hypot($bare(self), $bare(other)))
        }
    };
    (@std $float:ident, $wrap:expr, $bare:expr, $($m:ident $std:ident),+) => {
        $(
            #[inline(always)]
            fn $m(self) -> Self {
                $wrap($float::$std($bare(self)))
            }
        )+
    };
}

impl Number for f64 {
    float_methods! { f64, std::convert::identity, std::convert::identity }

    fn erf(self) -> Self {
        special::erf(self)
    }
    fn erfc(self) -> Self {
        special::erfc(self)
    }
}

impl Real for f64 {
    #[inline(always)]
    fn constant(value: f64) -> Self {
        value
    }
    #[inline(always)]
    fn value(self) -> f64 {
        self
    }
    #[inline(always)]
    fn powi(self, n: i32) -> Self {
        f64::powi(self, n)
    }
    #[inline(always)]
    fn powf(self, p: f64) -> Self {
        f64::powf(self, p)
    }
    #[inline(always)]
    fn held(self) -> Self {
        self
    }
    #[inline(always)]
    fn chain_mul(self, other: Self) -> Self {
        if (self == 0.0) | (other == 0.0) { 0.0 } else { self * other }
    }
    #[inline(always)]
    fn saturates(self) -> bool {
        self.abs() > 0.9
    }
    const PARTS: usize = 1;
}

/// A single-precision number. `f32` itself cannot have arithmetic with `f64` on the right, which
/// [`Number`] asks for; here the plain `f64` is rounded to `f32` first.
///
/// ```
/// use pullback::scalar::{Real, Single, Tape};
/// let mut tape = Tape::<Single>::new();
/// let slope = tape.record(|t| {
///     let x = t.input(Single(3.0));
///     t.derivative(x * x + 1.0, x)
/// });
/// assert_eq!(slope, Single(6.0));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Single(pub f32);

#[inline(always)]
fn bare(x: Single) -> f32 {
    x.0
}

impl Number for Single {
    float_methods! { f32, Single, bare }

    fn erf(self) -> Self {
        Single(special::erf(f64::from(self.0)) as f32)
    }
    fn erfc(self) -> Self {
        Single(special::erfc(f64::from(self.0)) as f32)
    }
}

impl Real for Single {
    #[inline(always)]
    fn constant(value: f64) -> Self {
        Single(value as f32)
    }
    #[inline(always)]
    fn value(self) -> f64 {
        f64::from(self.0)
    }
    #[inline(always)]
    fn powi(self, n: i32) -> Self {
        Single(self.0.powi(n))
    }
    #[inline(always)]
    fn powf(self, p: f64) -> Self {
        Single(self.0.powf(p as f32))
    }
    #[inline(always)]
    fn held(self) -> Self {
        self
    }
    #[inline(always)]
    fn chain_mul(self, other: Self) -> Self {
        if (self.0 == 0.0) | (other.0 == 0.0) { Single(0.0) } else { self * other }
    }
    #[inline(always)]
    fn saturates(self) -> bool {
        self.0.abs() > 0.9
    }
    const PARTS: usize = 1;
}

impl From<f32> for Single {
    fn from(value: f32) -> Self {
        Single(value)
    }
}

macro_rules! single_operator {
    ($($Op:ident $op:ident),+) => {$(
        impl std::ops::$Op for Single {
            type Output = Single;
            #[inline(always)]
            fn $op(self, other: Single) -> Single {
                Single(std::ops::$Op::$op(self.0, other.0))
            }
        }
        impl std::ops::$Op<f64> for Single {
            type Output = Single;
            #[inline(always)]
            fn $op(self, other: f64) -> Single {
                Single(std::ops::$Op::$op(self.0, other as f32))
            }
        }
    )+};
}
single_operator!(Add add, Sub sub, Mul mul, Div div);

impl std::ops::Neg for Single {
    type Output = Single;
    #[inline(always)]
    fn neg(self) -> Single {
        Single(-self.0)
    }
}

impl PartialEq for Single {
    #[inline(always)]
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}
impl PartialEq<f64> for Single {
    #[inline(always)]
    fn eq(&self, other: &f64) -> bool {
        f64::from(self.0) == *other
    }
}
impl PartialOrd for Single {
    #[inline(always)]
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        self.0.partial_cmp(&other.0)
    }
}
impl PartialOrd<f64> for Single {
    #[inline(always)]
    fn partial_cmp(&self, other: &f64) -> Option<std::cmp::Ordering> {
        f64::from(self.0).partial_cmp(other)
    }
}
impl std::fmt::Display for Single {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}
derived_operators! { [] Single }
