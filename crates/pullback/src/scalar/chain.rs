//! The chain rule, which turns the rows of the elementwise table into the methods of a type with derivatives.

use super::Real;
use super::slope::{self, Slope};
use pullback_table::elementwise_table;

/// A value with derivatives, to which the chain rule can be applied.
pub(crate) trait Chain: Copy {
    /// The type of the value, and of partial derivatives.
    type Primal: Real;

    /// The value alone.
    fn primal(self) -> Self::Primal;

    /// The result `y` of a function of `self` with this slope.
    fn unary(self, y: Self::Primal, slope: Slope<Self::Primal>) -> Self;

    /// The result `y` of a function whose slope is the plain number `k`.
    fn scaled(self, y: Self::Primal, k: f64) -> Self;

    /// The result `y` of a function of two values with these slopes.
    fn binary(self, other: Self, y: Self::Primal, slopes: [Slope<Self::Primal>; 2]) -> Self;

    /// The product.
    #[inline(always)]
    fn product(self, other: Self) -> Self {
        let (a, b) = (self.primal(), other.primal());
        let y = a * b;
        self.binary(other, y, slope::mul(a, b, y))
    }
}

/// The method of one row, by the chain rule.
macro_rules! chain_method {
    // The operators are traits of their own.
    ($m:ident ($($operator:tt)*) $($x:ident)+) => {};
    // As short as products, and inlined like those: a call would take nested numbers through memory. Others grow with each level.
    (square $value:tt $x:ident) => {
        $crate::scalar::chain::chain_method! { @unary #[inline(always)] square }
    };
    (sqrt $value:tt $x:ident) => {
        $crate::scalar::chain::chain_method! { @unary #[inline(always)] sqrt }
    };
    (rsqrt $value:tt $x:ident) => {
        $crate::scalar::chain::chain_method! { @unary #[inline(always)] rsqrt }
    };
    (recip $value:tt $x:ident) => {
        $crate::scalar::chain::chain_method! { @unary #[inline(always)] recip }
    };
    ($m:ident $value:tt $x:ident) => {
        $crate::scalar::chain::chain_method! { @unary #[inline] $m }
    };
    (@unary #[$inline:meta] $m:ident) => {
        #[$inline]
        fn $m(self) -> Self {
            let x = $crate::scalar::chain::Chain::primal(self);
            let y = pullback_table::Number::$m(x);
            let [p] = $crate::scalar::slope::$m(x, y);
            $crate::scalar::chain::Chain::unary(self, y, p)
        }
    };
    ($m:ident $value:tt $a:ident $b:ident) => {
        #[inline]
        fn $m(self, other: Self) -> Self {
            use $crate::scalar::chain::Chain;
            let (a, b) = (self.primal(), other.primal());
            let y = pullback_table::Number::$m(a, b);
            self.binary(other, y, $crate::scalar::slope::$m(a, b, y))
        }
    };
}
pub(crate) use chain_method;

macro_rules! define_chain_methods {
    ($($(#[$doc:meta])* $P:ident $m:ident $try:ident($($x:ident),+) = $value:tt;
        d = $d:tt; reads $([$($r:ident)*])+; $facts:tt)*) => {
        /// All methods of `Number` but the operators, for a type that implements `Chain`.
        macro_rules! chain_methods {
            () => { $($crate::scalar::chain::chain_method! { $m $value $($x)+ })* };
        }
        pub(crate) use chain_methods;
    };
}
elementwise_table!(define_chain_methods);

/// The operators, for a type that implements `Chain`.
macro_rules! chain_operators {
    ([$($generics:tt)*] $Type:ty) => {
        impl<$($generics)*> std::ops::Neg for $Type {
            type Output = Self;
            #[inline(always)]
            fn neg(self) -> Self {
                let x = self.primal();
                let [p] = $crate::scalar::slope::neg(x, x);
                self.unary(-x, p)
            }
        }
        chain_operators! { @binary [$($generics)*] $Type, Add add }
        chain_operators! { @binary [$($generics)*] $Type, Sub sub }
        chain_operators! { @binary [$($generics)*] $Type, Div div }
        chain_operators! { @plain [$($generics)*] $Type, Add add, k => $crate::scalar::slope::Slope::One }
        chain_operators! { @plain [$($generics)*] $Type, Sub sub, k => $crate::scalar::slope::Slope::One }
        impl<$($generics)*> std::ops::Mul for $Type {
            type Output = Self;
            #[inline(always)]
            fn mul(self, other: Self) -> Self {
                self.product(other)
            }
        }
        impl<$($generics)*> std::ops::Mul<f64> for $Type {
            type Output = Self;
            #[inline(always)]
            fn mul(self, k: f64) -> Self {
                self.scaled(self.primal() * k, k)
            }
        }
        impl<$($generics)*> std::ops::Div<f64> for $Type {
            type Output = Self;
            #[inline(always)]
            fn div(self, k: f64) -> Self {
                self.scaled(self.primal() / k, 1.0 / k)
            }
        }
    };
    (@binary [$($generics:tt)*] $Type:ty, $Op:ident $op:ident) => {
        impl<$($generics)*> std::ops::$Op for $Type {
            type Output = Self;
            #[inline(always)]
            fn $op(self, other: Self) -> Self {
                let (a, b) = (self.primal(), other.primal());
                let y = std::ops::$Op::$op(a, b);
                self.binary(other, y, $crate::scalar::slope::$op(a, b, y))
            }
        }
    };
    (@plain [$($generics:tt)*] $Type:ty, $Op:ident $op:ident, $k:ident => $slope:expr) => {
        impl<$($generics)*> std::ops::$Op<f64> for $Type {
            type Output = Self;
            #[inline(always)]
            fn $op(self, $k: f64) -> Self {
                self.unary(std::ops::$Op::$op(self.primal(), $k), $slope)
            }
        }
    };
}
pub(crate) use chain_operators;

/// The methods of `Real` that the chain rule gives.
macro_rules! chain_powers {
    () => {
        #[inline]
        fn powi(self, n: i32) -> Self {
            let x = self.primal();
            match n {
                0 => Self::constant(1.0),
                1 => self,
                // One less is no `i32`.
                i32::MIN => self.powf(f64::from(n)),
                _ => self.unary(x.powi(n), $crate::scalar::slope::Slope::Of(x.powi(n - 1) * f64::from(n))),
            }
        }

        #[inline]
        fn powf(self, p: f64) -> Self {
            let x = self.primal();
            match p {
                0.0 => Self::constant(1.0),
                // As the row of `pow` has it: a zero wins over an infinite exponent.
                _ if p.is_infinite() => {
                    let slope = x.powf(p).chain_mul($crate::scalar::Real::constant(p));
                    self.unary(x.powf(p), $crate::scalar::slope::Slope::Of(slope))
                }
                _ => self.unary(x.powf(p), $crate::scalar::slope::Slope::Of(x.powf(p - 1.0) * p)),
            }
        }
    };
}
pub(crate) use chain_powers;
