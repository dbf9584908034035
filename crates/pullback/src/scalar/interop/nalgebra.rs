//! nalgebra's `RealField` and `ComplexField`, so that its decompositions run on dual numbers and tape variables.

use crate::scalar::{Dual, Real, Taped, Var};
use approx::{AbsDiffEq, RelativeEq, UlpsEq};
use nalgebra::{ComplexField, Field, RealField, SimdValue};
use num_traits::Float;
use pullback_table::Number;
use simba::scalar::SubsetOf;
use std::f64::consts;

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
        fn $m() -> Self {
            Real::constant($value)
        }
    )*};
}

macro_rules! nalgebra_for {
    ([$($generics:tt)*] $Type:ty) => {
        impl<$($generics)*> SimdValue for $Type {
            const LANES: usize = 1;
            type Element = Self;
            type SimdBool = bool;

            #[inline(always)]
            fn splat(value: Self) -> Self {
                value
            }
            #[inline(always)]
            fn extract(&self, _: usize) -> Self {
                *self
            }
            #[inline(always)]
            unsafe fn extract_unchecked(&self, _: usize) -> Self {
                *self
            }
            #[inline(always)]
            fn replace(&mut self, _: usize, value: Self) {
                *self = value;
            }
            #[inline(always)]
            unsafe fn replace_unchecked(&mut self, _: usize, value: Self) {
                *self = value;
            }
            #[inline(always)]
            fn select(self, condition: bool, other: Self) -> Self {
                if condition { self } else { other }
            }
        }

        impl<$($generics)*> Field for $Type {}

        impl<$($generics)*> SubsetOf<$Type> for $Type {
            fn to_superset(&self) -> $Type {
                *self
            }
            fn from_superset_unchecked(element: &$Type) -> Self {
                *element
            }
            fn is_in_subset(_: &$Type) -> bool {
                true
            }
        }
        impl<$($generics)*> SubsetOf<$Type> for f64 {
            fn to_superset(&self) -> $Type {
                Real::constant(*self)
            }
            fn from_superset_unchecked(element: &$Type) -> Self {
                element.value()
            }
            fn is_in_subset(_: &$Type) -> bool {
                true
            }
        }
        impl<$($generics)*> SubsetOf<$Type> for f32 {
            fn to_superset(&self) -> $Type {
                Real::constant(f64::from(*self))
            }
            fn from_superset_unchecked(element: &$Type) -> Self {
                element.value() as f32
            }
            fn is_in_subset(_: &$Type) -> bool {
                true
            }
        }

        impl<$($generics)*> AbsDiffEq for $Type {
            type Epsilon = Self;
            fn default_epsilon() -> Self {
                Real::constant(f64::EPSILON)
            }
            fn abs_diff_eq(&self, other: &Self, epsilon: Self) -> bool {
                self.value().abs_diff_eq(&other.value(), epsilon.value())
            }
        }
        impl<$($generics)*> RelativeEq for $Type {
            fn default_max_relative() -> Self {
                Real::constant(f64::EPSILON)
            }
            fn relative_eq(&self, other: &Self, epsilon: Self, max_relative: Self) -> bool {
                self.value().relative_eq(&other.value(), epsilon.value(), max_relative.value())
            }
        }
        impl<$($generics)*> UlpsEq for $Type {
            fn default_max_ulps() -> u32 {
                f64::default_max_ulps()
            }
            fn ulps_eq(&self, other: &Self, epsilon: Self, max_ulps: u32) -> bool {
                self.value().ulps_eq(&other.value(), epsilon.value(), max_ulps)
            }
        }

        impl<$($generics)*> ComplexField for $Type {
            type RealField = Self;

            fn from_real(re: Self) -> Self {
                re
            }
            fn real(self) -> Self {
                self
            }
            fn imaginary(self) -> Self {
                Real::constant(0.0)
            }
            fn modulus(self) -> Self {
                Number::abs(self)
            }
            fn modulus_squared(self) -> Self {
                self * self
            }
            fn argument(self) -> Self {
                Real::constant(if self.value() < 0.0 { consts::PI } else { 0.0 })
            }
            fn norm1(self) -> Self {
                Number::abs(self)
            }
            fn scale(self, factor: Self) -> Self {
                self * factor
            }
            fn unscale(self, factor: Self) -> Self {
                self / factor
            }
            fn signum(self) -> Self {
                Real::constant(self.value().signum())
            }
            fn conjugate(self) -> Self {
                self
            }
            fn round(self) -> Self {
                Float::round(self)
            }
            fn fract(self) -> Self {
                Float::fract(self)
            }
            fn mul_add(self, a: Self, b: Self) -> Self {
                Real::mul_add(self, a, b)
            }
            fn hypot(self, other: Self) -> Self {
                Number::hypot(self, other)
            }
            fn sin_cos(self) -> (Self, Self) {
                Real::sin_cos(self)
            }
            fn log(self, base: Self) -> Self {
                Float::log(self, base)
            }
            fn powi(self, n: i32) -> Self {
                Real::powi(self, n)
            }
            fn powf(self, n: Self) -> Self {
                Number::pow(self, n)
            }
            fn powc(self, n: Self) -> Self {
                Number::pow(self, n)
            }
            fn is_finite(&self) -> bool {
                self.value().is_finite()
            }
            fn try_sqrt(self) -> Option<Self> {
                (self >= 0.0).then(|| Number::sqrt(self))
            }
            forwarded! {
                floor floor, ceil ceil, trunc trunc, abs abs, recip recip, sin sin, cos cos, tan tan, asin asin,
                acos acos, atan atan, sinh sinh, cosh cosh, tanh tanh, asinh asinh, acosh acosh, atanh atanh,
                log2 log2, log10 log10, ln ln, ln_1p log1p, sqrt sqrt, exp exp, exp2 exp2, exp_m1 expm1, cbrt cbrt
            }
        }

        impl<$($generics)*> RealField for $Type {
            fn is_sign_positive(&self) -> bool {
                self.value().is_sign_positive()
            }
            fn is_sign_negative(&self) -> bool {
                self.value().is_sign_negative()
            }
            fn copysign(self, sign: Self) -> Self {
                Float::copysign(self, sign)
            }
            fn max(self, other: Self) -> Self {
                Float::max(self, other)
            }
            fn min(self, other: Self) -> Self {
                Float::min(self, other)
            }
            fn clamp(self, min: Self, max: Self) -> Self {
                if self < min { min } else if self > max { max } else { self }
            }
            fn atan2(self, other: Self) -> Self {
                Number::atan2(self, other)
            }
            fn min_value() -> Option<Self> {
                Some(Real::constant(f64::MIN))
            }
            fn max_value() -> Option<Self> {
                Some(Real::constant(f64::MAX))
            }
            constants! {
                pi = consts::PI;
                two_pi = consts::TAU;
                frac_pi_2 = consts::FRAC_PI_2;
                frac_pi_3 = consts::FRAC_PI_3;
                frac_pi_4 = consts::FRAC_PI_4;
                frac_pi_6 = consts::FRAC_PI_6;
                frac_pi_8 = consts::FRAC_PI_8;
                frac_1_pi = consts::FRAC_1_PI;
                frac_2_pi = consts::FRAC_2_PI;
                frac_2_sqrt_pi = consts::FRAC_2_SQRT_PI;
                e = consts::E;
                log2_e = consts::LOG2_E;
                log10_e = consts::LOG10_E;
                ln_2 = consts::LN_2;
                ln_10 = consts::LN_10;
            }
        }
    };
}
nalgebra_for! { [T: Taped + Send + Sync] Var<T> }
nalgebra_for! { [T: Real + Send + Sync, const N: usize] Dual<T, N> }
