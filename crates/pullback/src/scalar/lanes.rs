//! Several numbers that go through the same operations.

use super::operators::derived_operators;
use super::tape::external;
use super::{Real, Var};
use crate::kernels::isa::with_isa;
use crate::kernels::lane::{Lane, Portable};
use crate::kernels::math::Isa;
use pullback_table::{Number, elementwise_table};
use std::cmp::Ordering;

/// `N` numbers, one in each lane of a vector register: what is computed with them is computed for all at once.
///
/// On a tape, one record then serves all lanes, and the elementary functions are vector code. That suits a program that does the same to
/// every element of short vectors, such as a recurrent network.
///
/// A comparison has one outcome, so all lanes must agree on it; [`Real::select_lt`], `maximum` and `minimum` choose in each lane.
/// [`Real::value`] is the number in the first lane, and NaN if some lane is not finite.
///
/// ```
/// use pullback::scalar::{Lanes, Tape};
/// let slopes = Tape::new().record(|t| {
///     let x = t.input(Lanes([1.0, 2.0, 3.0, 4.0]));
///     t.derivative(x * x, x)
/// });
/// assert_eq!(slopes, Lanes([2.0, 4.0, 6.0, 8.0]));
/// ```
// No alignment beyond that of a number: vectors of them would be allocated the slow way, and unaligned loads cost next to nothing.
#[derive(Clone, Copy, Debug)]
pub struct Lanes<const N: usize>(pub [f64; N]);

impl<const N: usize> Lanes<N> {
    /// The sum of all lanes, in every lane.
    #[inline]
    pub fn across(self) -> Self {
        Lanes([self.0.iter().sum(); N])
    }

    /// What holds in every lane, or in none.
    #[inline(always)]
    fn unanimous(holds: impl Fn(usize) -> bool) -> Option<bool> {
        let first = holds(0);
        (1..N).all(|k| holds(k) == first).then_some(first)
    }

    #[inline(always)]
    fn agreed(holds: impl Fn(usize) -> bool) -> bool {
        Self::unanimous(holds)
            .expect("lanes disagree on a comparison; write the choice as a select, a maximum or a minimum")
    }
}

impl<const N: usize> Var<Lanes<N>> {
    /// The sum of all lanes, in every lane.
    pub fn across(self) -> Self {
        let sum = self.inner().across();
        if self.is_constant() {
            return Var::fixed(sum);
        }
        external(&[self], &[sum], |g, d| d[0] = g[0].across())[0]
    }
}

macro_rules! lanes_operators {
    ($($Op:ident $op:ident),+) => {$(
        impl<const N: usize> std::ops::$Op for Lanes<N> {
            type Output = Self;
            #[inline(always)]
            fn $op(mut self, other: Self) -> Self {
                (0..N).for_each(|k| self.0[k] = std::ops::$Op::$op(self.0[k], other.0[k]));
                self
            }
        }
        impl<const N: usize> std::ops::$Op<f64> for Lanes<N> {
            type Output = Self;
            #[inline(always)]
            fn $op(mut self, other: f64) -> Self {
                (0..N).for_each(|k| self.0[k] = std::ops::$Op::$op(self.0[k], other));
                self
            }
        }
    )+};
}
lanes_operators!(Add add, Sub sub, Mul mul, Div div);

impl<const N: usize> std::ops::Neg for Lanes<N> {
    type Output = Self;
    #[inline(always)]
    fn neg(mut self) -> Self {
        (0..N).for_each(|k| self.0[k] = -self.0[k]);
        self
    }
}

/// Runs `$row` of `$x` in each lane, compiled for the instructions that this processor has. Lanes that come out as NaN are computed
/// again by `$plain`: the vector formulas of some functions do not cover very large arguments, and say so by a NaN.
macro_rules! in_each_lane {
    ($m:ident ($($x:ident),+)) => {{
        #[inline(always)]
        fn body<I: Isa, const N: usize>($($x: &Lanes<N>),+) -> Lanes<N> {
            let mut y = Lanes([0.0; N]);
            for k in 0..N {
                y.0[k] = Number::$m($(Lane::<f64, I>::new($x.0[k])),+).0;
            }
            y
        }
        #[inline(always)]
        fn chosen<const N: usize>($($x: &Lanes<N>),+) -> Lanes<N> {
            with_isa! {
                [const N: usize] [N] ($($x: &Lanes<N>),+) -> Lanes<N>;
                Portable => body::<Portable, N>($($x),+),
                V3 => body::<crate::kernels::lane::Fma, N>($($x),+),
                V4 if true => body::<crate::kernels::lane::Fma, N>($($x),+)
            }
        }
        let mut y = chosen($(&$x),+);
        if y.value().is_nan() {
            for k in 0..N {
                if y.0[k].is_nan() {
                    y.0[k] = Number::$m($($x.0[k]),+);
                }
            }
        }
        y
    }};
}

macro_rules! lanes_methods {
    ($($(#[$doc:meta])* $P:ident $m:ident $try:ident($($x:ident),+) = $value:tt;
        d = $d:tt; reads $([$($r:ident)*])+; $facts:tt)*) => {
        impl<const N: usize> Number for Lanes<N> {
            $(lanes_methods! { @row $m $value $($x)+ })*
        }
    };
    (@row $m:ident base $x:ident) => {
        #[inline]
        fn $m(self) -> Self {
            let $x = self;
            in_each_lane!($m($x))
        }
    };
    (@row $m:ident base $a:ident $b:ident) => {
        #[inline]
        fn $m(self, $b: Self) -> Self {
            let $a = self;
            in_each_lane!($m($a, $b))
        }
    };
    (@row $m:ident special $x:ident) => {
        fn $m(self) -> Self {
            Lanes(self.0.map(pullback_table::special::$m))
        }
    };
    (@row $m:ident special $a:ident $b:ident) => {
        fn $m(self, $b: Self) -> Self {
            Lanes(std::array::from_fn(|k| pullback_table::special::$m(self.0[k], $b.0[k])))
        }
    };
    // The operators, and the rows with a formula of others.
    (@row $m:ident $value:tt $($x:ident)+) => {};
}
elementwise_table!(lanes_methods);

impl<const N: usize> Real for Lanes<N> {
    #[inline(always)]
    fn constant(value: f64) -> Self {
        Lanes([value; N])
    }

    #[inline(always)]
    fn value(self) -> f64 {
        // All lanes are looked at, without a branch for each.
        let finite = self.0.iter().fold(true, |all, v| all & (v.abs() < f64::INFINITY));
        if finite { self.0[0] } else { f64::NAN }
    }

    #[inline]
    fn powi(self, n: i32) -> Self {
        Lanes(self.0.map(|x| x.powi(n)))
    }

    #[inline]
    fn powf(self, p: f64) -> Self {
        Lanes(self.0.map(|x| x.powf(p)))
    }

    #[inline(always)]
    fn select_lt(self, than: Self, then: Self, mut otherwise: Self) -> Self {
        (0..N).for_each(|k| otherwise.0[k] = if self.0[k] < than.0[k] { then.0[k] } else { otherwise.0[k] });
        otherwise
    }

    #[inline(always)]
    fn select_le(self, than: Self, then: Self, mut otherwise: Self) -> Self {
        (0..N).for_each(|k| otherwise.0[k] = if self.0[k] <= than.0[k] { then.0[k] } else { otherwise.0[k] });
        otherwise
    }

    #[inline(always)]
    fn held(self) -> Self {
        self
    }

    #[inline(always)]
    fn all_lt(self, other: Self) -> Option<bool> {
        Self::unanimous(|k| self.0[k] < other.0[k])
    }

    #[inline(always)]
    fn all_le(self, other: Self) -> Option<bool> {
        Self::unanimous(|k| self.0[k] <= other.0[k])
    }

    const PARTS: usize = N;

    #[inline(always)]
    fn chain_mul(mut self, other: Self) -> Self {
        (0..N).for_each(|k| self.0[k] = self.0[k].chain_mul(other.0[k]));
        self
    }

    #[inline(always)]
    fn saturates(self) -> bool {
        self.0.iter().fold(false, |any, v| any | v.saturates())
    }

    #[inline(always)]
    fn has_nan(self) -> bool {
        self.have_nan(Lanes([-0.0; N]))
    }

    #[inline(always)]
    fn have_nan(self, other: Self) -> bool {
        // Four sums, which are vectors; nothing is added to a number by the negative zero.
        let mut sums = [-0.0; 4];
        (0..N).for_each(|k| sums[k % 4] += self.0[k]);
        (0..N).for_each(|k| sums[k % 4] += other.0[k]);
        ((sums[0] + sums[2]) + (sums[1] + sums[3])).is_nan()
    }
}

derived_operators! { [const N: usize] Lanes<N> }

impl<const N: usize> PartialEq for Lanes<N> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<const N: usize> PartialEq<f64> for Lanes<N> {
    fn eq(&self, other: &f64) -> bool {
        Self::agreed(|k| self.0[k] == *other)
    }
}

macro_rules! lanes_order {
    ($Other:ty, $of:expr) => {
        impl<const N: usize> PartialOrd<$Other> for Lanes<N> {
            fn partial_cmp(&self, other: &$Other) -> Option<Ordering> {
                let order = |k: usize| self.0[k].partial_cmp(&$of(other, k));
                Self::agreed(|k| order(k) == order(0));
                order(0)
            }
            fn lt(&self, other: &$Other) -> bool {
                Self::agreed(|k| self.0[k] < $of(other, k))
            }
            fn le(&self, other: &$Other) -> bool {
                Self::agreed(|k| self.0[k] <= $of(other, k))
            }
            fn gt(&self, other: &$Other) -> bool {
                Self::agreed(|k| self.0[k] > $of(other, k))
            }
            fn ge(&self, other: &$Other) -> bool {
                Self::agreed(|k| self.0[k] >= $of(other, k))
            }
        }
    };
}
lanes_order!(Self, |other: &Self, k: usize| other.0[k]);
lanes_order!(f64, |other: &f64, _| *other);

impl<const N: usize> std::fmt::Display for Lanes<N> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scalar::{Tape, gradient};

    fn f<T: Real>(x: T) -> T {
        (x.sin() + x * x * 0.5).tanh() * x.exp() + x.sigmoid() / (x.sqrt() + 1.0)
    }

    #[test]
    fn lanes_have_the_values_and_slopes_of_single_numbers() {
        let x = Lanes::<6>([0.1, 0.5, 1.0, 2.5, 0.75, 1e-3]);
        let (y, slopes) = Tape::new().record(|t| {
            let x = t.input(x);
            let y = f(x);
            (y.inner(), t.derivative(y, x))
        });
        for k in 0..6 {
            assert!((y.0[k] - f(x.0[k])).abs() <= 1e-14 * f(x.0[k]).abs());
            let slope = gradient(|x| f(x[0]), &[x.0[k]])[0];
            assert!((slopes.0[k] - slope).abs() <= 1e-13 * slope.abs());
        }
    }

    #[test]
    fn a_sum_across_lanes_spreads_its_cotangent() {
        let slopes = Tape::new().record(|t| {
            let x = t.input(Lanes([1.0, 2.0, 3.0]));
            let y = (x * x).across();
            assert_eq!(y.inner(), Lanes([14.0; 3]));
            let mut d = [Lanes([0.0; 3])];
            t.pullback(&[y], &[Lanes([1.0, 0.0, 0.0])], &[x], &mut d);
            d[0]
        });
        assert_eq!(slopes, Lanes([2.0, 4.0, 6.0]));
    }

    #[test]
    fn very_large_angles_have_sines() {
        let x = Lanes([1e300, 0.5]);
        assert_eq!(x.sin(), Lanes([1e300f64.sin(), x.sin().0[1]]));
        assert!(x.sin().0[0].is_finite());
    }

    #[test]
    #[should_panic(expected = "lanes disagree")]
    fn a_branch_needs_agreement() {
        let _ = Lanes([1.0, 3.0]) < 2.0;
    }

    #[test]
    fn a_lane_that_is_not_finite_shows() {
        assert!(Lanes([1.0, f64::INFINITY]).value().is_nan());
        assert_eq!(Lanes([1.0, 7.0]).value(), 1.0);
    }

    #[test]
    fn an_infinitely_steep_lane_leaves_the_others_alone() {
        let slopes = Tape::new().record(|t| {
            let x = t.input(Lanes([0.0, 4.0]));
            t.derivative(x.sqrt(), x)
        });
        assert_eq!(slopes.0[1], 0.25);
        assert!(slopes.0[0].is_infinite());
    }
}
