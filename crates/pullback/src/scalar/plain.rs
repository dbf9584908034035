//! Plain floating-point numbers as reals: `f64`, and [`Single`] for `f32`.

use super::Real;
use super::operators::derived_operators;
use pullback_table::Number;

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
    pullback_table::float_methods! { f32, Single, bare }
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
