//! `num_traits`, so that code written against `Float` is differentiated as it is.

use crate::scalar::{Dual, Real, Taped, Var};
use num_traits::{Float, FromPrimitive, Num, NumCast, One, Signed, ToPrimitive, Zero};
use pullback_table::Number;
use std::num::FpCategory;

macro_rules! forwarded {
    ($($m:ident $number:ident),*) => {$(
        #[inline]
        fn $m(self) -> Self {
            Number::$number(self)
        }
    )*};
}

macro_rules! constants {
    ($($m:ident = $value:expr;)*) => {$(
        #[inline]
        fn $m() -> Self {
            Real::constant($value)
        }
    )*};
}

macro_rules! questions {
    ($($m:ident)*) => {$(
        #[inline]
        fn $m(self) -> bool {
            f64::$m(self.value())
        }
    )*};
}

macro_rules! num_traits_for {
    ([$($generics:tt)*] $Type:ty) => {
        impl<$($generics)*> Zero for $Type {
            #[inline]
            fn zero() -> Self {
                Real::constant(0.0)
            }
            #[inline]
            fn is_zero(&self) -> bool {
                *self == 0.0
            }
        }

        impl<$($generics)*> One for $Type {
            #[inline]
            fn one() -> Self {
                Real::constant(1.0)
            }
        }

        impl<$($generics)*> Num for $Type {
            type FromStrRadixErr = <f64 as Num>::FromStrRadixErr;
            fn from_str_radix(text: &str, radix: u32) -> Result<Self, Self::FromStrRadixErr> {
                <f64 as Num>::from_str_radix(text, radix).map(Real::constant)
            }
        }

        impl<$($generics)*> ToPrimitive for $Type {
            fn to_i64(&self) -> Option<i64> {
                self.value().to_i64()
            }
            fn to_u64(&self) -> Option<u64> {
                self.value().to_u64()
            }
            fn to_f64(&self) -> Option<f64> {
                Some(self.value())
            }
        }

        impl<$($generics)*> FromPrimitive for $Type {
            fn from_i64(n: i64) -> Option<Self> {
                Some(Real::constant(n as f64))
            }
            fn from_u64(n: u64) -> Option<Self> {
                Some(Real::constant(n as f64))
            }
            fn from_f64(x: f64) -> Option<Self> {
                Some(Real::constant(x))
            }
        }

        impl<$($generics)*> NumCast for $Type {
            fn from<P: ToPrimitive>(n: P) -> Option<Self> {
                n.to_f64().map(Real::constant)
            }
        }

        impl<$($generics)*> Signed for $Type {
            #[inline]
            fn abs(&self) -> Self {
                Number::abs(*self)
            }
            fn abs_sub(&self, other: &Self) -> Self {
                Number::relu(*self - *other)
            }
            fn signum(&self) -> Self {
                Real::constant(self.value().signum())
            }
            fn is_positive(&self) -> bool {
                Signed::is_positive(&self.value())
            }
            fn is_negative(&self) -> bool {
                Signed::is_negative(&self.value())
            }
        }

        impl<$($generics)*> Float for $Type {
            constants! {
                nan = f64::NAN;
                infinity = f64::INFINITY;
                neg_infinity = f64::NEG_INFINITY;
                neg_zero = -0.0;
                min_value = f64::MIN;
                min_positive_value = f64::MIN_POSITIVE;
                epsilon = f64::EPSILON;
                max_value = f64::MAX;
            }
            questions! { is_nan is_infinite is_finite is_normal is_sign_positive is_sign_negative }
            forwarded! {
                floor floor, ceil ceil, trunc trunc, abs abs, recip recip, sqrt sqrt, exp exp, exp2 exp2,
                ln ln, log2 log2, log10 log10, cbrt cbrt, sin sin, cos cos, tan tan, asin asin, acos acos, atan atan,
                exp_m1 expm1, ln_1p log1p, sinh sinh, cosh cosh, tanh tanh, asinh asinh, acosh acosh, atanh atanh
            }
            fn classify(self) -> FpCategory {
                self.value().classify()
            }
            /// Halves away from zero, as this trait has it.
            fn round(self) -> Self {
                Real::constant(self.value().round())
            }
            fn fract(self) -> Self {
                self - Number::trunc(self)
            }
            fn signum(self) -> Self {
                Real::constant(self.value().signum())
            }
            #[inline]
            fn mul_add(self, a: Self, b: Self) -> Self {
                Real::mul_add(self, a, b)
            }
            #[inline]
            fn powi(self, n: i32) -> Self {
                Real::powi(self, n)
            }
            #[inline]
            fn powf(self, n: Self) -> Self {
                Number::pow(self, n)
            }
            fn log(self, base: Self) -> Self {
                Number::ln(self) / Number::ln(base)
            }
            #[inline]
            fn max(self, other: Self) -> Self {
                // A NaN loses here, as this trait has it.
                if Float::is_nan(self) { other } else if Float::is_nan(other) { self } else { Number::maximum(self, other) }
            }
            #[inline]
            fn min(self, other: Self) -> Self {
                if Float::is_nan(self) { other } else if Float::is_nan(other) { self } else { Number::minimum(self, other) }
            }
            fn abs_sub(self, other: Self) -> Self {
                Number::relu(self - other)
            }
            #[inline]
            fn hypot(self, other: Self) -> Self {
                Number::hypot(self, other)
            }
            #[inline]
            fn atan2(self, other: Self) -> Self {
                Number::atan2(self, other)
            }
            fn sin_cos(self) -> (Self, Self) {
                Real::sin_cos(self)
            }
            fn integer_decode(self) -> (u64, i16, i8) {
                Float::integer_decode(self.value())
            }
            fn copysign(self, sign: Self) -> Self {
                if Float::is_sign_negative(self) == Float::is_sign_negative(sign) { self } else { -self }
            }
        }
    };
}
num_traits_for! { [T: Taped] Var<T> }
num_traits_for! { [T: Real, const N: usize] Dual<T, N> }
