//! `f64` in the vocabulary of the table, by the standard library.
//!
//! The library has its own version of this file, with constructions that are newer than the compiler of the page; a test compares
//! the two, function by function.

use crate::number::Number;
use crate::special;

macro_rules! from_std {
    ($($m:ident $std:ident),+) => {$(
        fn $m(self) -> f64 {
            f64::$std(self)
        }
    )+};
}

impl Number for f64 {
    from_std! {
        abs abs, floor floor, ceil ceil, trunc trunc, sqrt sqrt, cbrt cbrt, recip recip, exp exp, exp2 exp2, expm1 exp_m1, ln ln,
        log2 log2, log10 log10, log1p ln_1p, sin sin, cos cos, tan tan, asin asin, acos acos, atan atan, sinh sinh, cosh cosh,
        tanh tanh, asinh asinh, acosh acosh, atanh atanh
    }

    fn round(self) -> f64 {
        let nearest = f64::round(self);
        let halfway = (self - f64::trunc(self)).abs() == 0.5;
        // The standard library rounds halves away from zero; the table has them go to the even side.
        if halfway && nearest % 2.0 != 0.0 { nearest - f64::signum(self) } else { nearest }
    }
    fn sign(self) -> f64 {
        if self == 0.0 || self.is_nan() { self } else { f64::signum(self) }
    }
    fn step(self) -> f64 {
        f64::from(u8::from(self > 0.0))
    }
    fn relu(self) -> f64 {
        if self > 0.0 || self.is_nan() { self } else { 0.0 }
    }
    fn sigmoid(self) -> f64 {
        let e = f64::exp(-f64::abs(self));
        if self < 0.0 { e / (1.0 + e) } else { 1.0 / (1.0 + e) }
    }
    fn erf(self) -> f64 {
        special::erf(self)
    }
    fn erfc(self) -> f64 {
        special::erfc(self)
    }
    fn gate(self, other: f64) -> f64 {
        if self == 0.0 || other == 0.0 { 0.0 } else { self * other }
    }
    fn rem(self, other: f64) -> f64 {
        self % other
    }
    fn pow(self, other: f64) -> f64 {
        f64::powf(self, other)
    }
    fn maximum(self, other: f64) -> f64 {
        if self > other || self.is_nan() { self } else { other }
    }
    fn minimum(self, other: f64) -> f64 {
        if self < other || self.is_nan() { self } else { other }
    }
    fn share(self, other: f64) -> f64 {
        if self > other {
            1.0
        } else if self == other {
            0.5
        } else {
            0.0
        }
    }
    fn atan2(self, other: f64) -> f64 {
        f64::atan2(self, other)
    }
    fn hypot(self, other: f64) -> f64 {
        f64::hypot(self, other)
    }
}
