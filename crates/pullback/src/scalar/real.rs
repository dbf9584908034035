//! What generic code on numbers may ask of its number type.

use pullback_table::Number;
use std::fmt::{Debug, Display};
use std::iter::{Product, Sum};
use std::ops::{AddAssign, DivAssign, MulAssign, Rem, RemAssign, SubAssign};

/// A real number that may carry derivatives.
///
/// A function written `fn f<T: Real>(x: &[T]) -> T` runs on `f64` at full speed, and is differentiated
/// by passing its name to [`gradient`](super::gradient) and its neighbours. The elementary functions
/// come from the supertrait [`Number`]; a plain `f64` may stand on the right of every operator.
///
/// Comparisons look at values only, so a branch picks one of the pieces of a piecewise function and the
/// derivative is that of the piece that ran.
///
/// ```
/// use pullback::scalar::{self, Real};
///
/// fn norm<T: Real>(x: &[T]) -> T {
///     x.iter().map(|&a| a * a).sum::<T>().sqrt()
/// }
/// assert_eq!(norm(&[3.0, 4.0]), 5.0);
/// let g = scalar::gradient(norm, &[3.0, 4.0]);
/// assert!((g[0] - 0.6).abs() < 1e-15 && (g[1] - 0.8).abs() < 1e-15);
/// ```
pub trait Real:
    Number
    + Debug
    + Display
    + Default
    + From<f64>
    + PartialEq
    + PartialEq<f64>
    + PartialOrd
    + PartialOrd<f64>
    + Rem<Output = Self>
    + Rem<f64, Output = Self>
    + AddAssign
    + SubAssign
    + MulAssign
    + DivAssign
    + RemAssign
    + AddAssign<f64>
    + SubAssign<f64>
    + MulAssign<f64>
    + DivAssign<f64>
    + RemAssign<f64>
    + Sum
    + for<'a> Sum<&'a Self>
    + Product
    + for<'a> Product<&'a Self>
    + 'static
{
    /// A number that depends on nothing.
    fn constant(value: f64) -> Self;

    /// The value without its derivatives.
    ///
    /// On the recorder of compiled functions it is the value at the point of recording. What is done with it is not recorded, so the
    /// compiled function holds only where this number has the same value again, and is an error elsewhere. Where the value is an
    /// index, ask for that of a number which is the same over the interval:
    ///
    /// ```
    /// use pullback::scalar::{Function, Number, Real};
    /// /// Linear interpolation in a table.
    /// fn lookup<T: Real>(x: &[T]) -> T {
    ///     let table = [1.0, 2.0, 5.0, 10.0];
    ///     let k = x[0].floor().value();
    ///     (x[0] - k) * (table[k as usize + 1] - table[k as usize]) + table[k as usize]
    /// }
    /// let f = Function::record_at(lookup, &[1.25]);
    /// assert_eq!(f.value(&[1.5]), 3.5);
    /// assert!(f.try_evaluate_into(&[2.5], &mut [0.0]).is_err());
    /// ```
    #[track_caller]
    fn value(self) -> f64;

    /// Integer power.
    fn powi(self, n: i32) -> Self;

    /// Power with a constant exponent; `0^0` is 1.
    fn powf(self, p: f64) -> Self;

    /// `then` if `self < than`, else `otherwise`. Both must have been computed; unlike an `if`, a
    /// compiled function keeps the choice.
    #[inline(always)]
    fn select_lt(self, than: Self, then: Self, otherwise: Self) -> Self {
        if self < than { then } else { otherwise }
    }

    /// `then` if `self <= than`, else `otherwise`; see [`select_lt`](Self::select_lt).
    #[inline(always)]
    fn select_le(self, than: Self, then: Self, otherwise: Self) -> Self {
        if self <= than { then } else { otherwise }
    }

    /// `self * a + b`, which a tape keeps as one record of all three.
    ///
    /// It is rounded after the product and after the sum, as if written out; `f64::mul_add` is rounded once, and a call to the C library
    /// in programs for processors without the instruction.
    ///
    /// ```
    /// use pullback::scalar::{self, Real};
    /// fn polynomial<T: Real>(x: &[T]) -> T {
    ///     x[1..].iter().fold(T::constant(0.0), |sum, &c| sum.mul_add(x[0], c))
    /// }
    /// assert_eq!(scalar::gradient(polynomial, &[2.0, 1.0, 3.0, 5.0]), [7.0, 4.0, 2.0, 1.0]);
    /// ```
    #[inline(always)]
    fn mul_add(self, a: Self, b: Self) -> Self {
        self * a + b
    }

    /// The larger of two; NaN if either is NaN; equal arguments share the derivative.
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        self.maximum(other)
    }

    /// The smaller of two; NaN if either is NaN; equal arguments share the derivative.
    #[inline(always)]
    fn min(self, other: Self) -> Self {
        self.minimum(other)
    }

    /// The nearest number of the interval; the derivative is 1 inside and on the borders, else 0.
    #[inline(always)]
    fn clamp(self, low: f64, high: f64) -> Self {
        let (low, high) = (Self::constant(low), Self::constant(high));
        let above = high.select_lt(self, high, self);
        self.select_lt(low, low, above)
    }

    /// `exp(x) - 1`, under the name the standard library gives it.
    #[inline(always)]
    fn exp_m1(self) -> Self {
        self.expm1()
    }

    /// `ln(1 + x)`, under the name the standard library gives it.
    #[inline(always)]
    fn ln_1p(self) -> Self {
        self.log1p()
    }

    /// Sine and cosine.
    #[inline(always)]
    fn sin_cos(self) -> (Self, Self) {
        (self.sin(), self.cos())
    }

    /// Sum of products. Types that record may keep it as one operation.
    #[inline]
    #[track_caller]
    fn dot(a: &[Self], b: &[Self]) -> Self {
        assert_eq!(a.len(), b.len(), "dot: the slices differ in length");
        a.iter().zip(b).map(|(&a, &b)| a * b).sum()
    }

    /// `ln(Σ exp(x))` without overflow, minus infinity if there are no terms. Types that record may keep
    /// it as one operation.
    #[inline]
    fn log_sum_exp(x: &[Self]) -> Self {
        let shift = Self::shift(x.iter().copied());
        x.iter().map(|&x| (x - shift).exp()).sum::<Self>().ln() + shift
    }

    /// Runs `f`; a tape then keeps the derivatives of the results instead of the operations of `f`. That
    /// makes the tape shorter where `f` is long and has few inputs and results.
    ///
    /// ```
    /// use pullback::scalar::{self, Real};
    /// fn f<T: Real>(x: &[T]) -> T {
    ///     let [y] = T::preaccumulate(|| {
    ///         let mut y = x[0] * x[1];
    ///         for _ in 0..100 {
    ///             y = y.sin() + x[0];
    ///         }
    ///         [y]
    ///     });
    ///     y * y
    /// }
    /// assert!(scalar::gradient(f, &[0.5, 0.25])[0].is_finite());
    /// ```
    #[inline]
    fn preaccumulate<O: AsMut<[Self]>>(f: impl FnOnce() -> O) -> O {
        f()
    }

    /// The state after `steps` steps of a loop from `state`. A tape keeps at most `snapshots` states and runs the steps between
    /// them again in the sweep, at the times that make the fewest repetitions: memory for a thousand steps shrinks
    /// a hundredfold with ten states, for three runs of the loop instead of one.
    ///
    /// `step(k, state, parameters)` is the next state. What it depends on must come through its arguments.
    ///
    /// ```
    /// use pullback::scalar::{self, Real};
    /// fn f<T: Real>(x: &[T]) -> T {
    ///     let last = T::checkpointed(1000, 10, &x[..1], &x[1..], |_, state, rate| vec![state[0] * rate[0]]);
    ///     last[0]
    /// }
    /// let g = scalar::gradient(f, &[2.0, 0.999]);
    /// assert!((g[0] - 0.999f64.powi(1000)).abs() < 1e-12);
    /// ```
    fn checkpointed(
        steps: usize,
        snapshots: usize,
        state: &[Self],
        parameters: &[Self],
        step: impl Fn(usize, &[Self], &[Self]) -> Vec<Self> + 'static,
    ) -> Vec<Self> {
        let _ = snapshots;
        (0..steps).fold(state.to_vec(), |state, k| step(k, &state, parameters))
    }

    /// What the terms of a `log_sum_exp` are shifted by: the largest of them, held fixed, and 0 where that is infinite, for then
    /// shifting would give NaN.
    #[doc(hidden)]
    #[inline]
    fn shift(terms: impl Iterator<Item = Self>) -> Self {
        let top = terms.map(Self::held).fold(Self::constant(f64::NEG_INFINITY), Self::maximum);
        top.abs().select_lt(Self::constant(f64::INFINITY), top, Self::constant(0.0))
    }

    /// The same value, which depends on nothing.
    #[doc(hidden)]
    #[inline(always)]
    fn held(self) -> Self {
        Self::constant(self.value())
    }

    /// Whether `self < other`, if that is the same in all lanes.
    #[doc(hidden)]
    #[inline(always)]
    fn all_lt(self, other: Self) -> Option<bool> {
        Some(self < other)
    }

    /// Whether `self <= other`, if that is the same in all lanes.
    #[doc(hidden)]
    #[inline(always)]
    fn all_le(self, other: Self) -> Option<bool> {
        Some(self <= other)
    }

    /// How many plain numbers a product looks at for NaN; 0 if it has to be the right one at once, as for what records what was asked.
    #[doc(hidden)]
    const PARTS: usize = 0;

    /// The product of the chain rule: an exact zero on either side wins over infinity and NaN. What a result does not depend on has
    /// no part in its derivative, however steep the functions are on the way.
    #[doc(hidden)]
    #[inline(always)]
    fn chain_mul(self, other: Self) -> Self {
        self * other
    }

    /// The product, in which a zero does not win. It differs from [`chain_mul`](Self::chain_mul) only where a part is NaN.
    #[doc(hidden)]
    #[inline(always)]
    fn ungated_mul(self, other: Self) -> Self {
        self * other
    }

    /// Whether the value is so near to 1 or -1 that the difference has lost digits, or may be, where values are not known.
    #[doc(hidden)]
    #[inline(always)]
    fn saturates(self) -> bool {
        true
    }

    /// Whether one of the parts is NaN. It may be said of infinities of both signs too: the sum of many parts is quicker to look at
    /// than each of them, and who asks then multiplies again with care, which is right for all numbers.
    #[doc(hidden)]
    #[inline(always)]
    fn has_nan(self) -> bool {
        self.value().is_nan()
    }

    /// [`has_nan`](Self::has_nan) of either.
    #[doc(hidden)]
    #[inline(always)]
    fn have_nan(self, other: Self) -> bool {
        self.has_nan() | other.has_nan()
    }

    /// A sum of the parts, only to be looked at for NaN.
    #[doc(hidden)]
    #[inline(always)]
    fn joined(self, other: Self) -> Self {
        self + other
    }
}

/// [`Real::chain_mul`], by looking at the result of a plain product: that is NaN only in the rare case.
#[inline(always)]
pub(super) fn chained<T: Real>(p: T, t: T) -> T {
    if T::PARTS == 0 {
        return p.chain_mul(t);
    }
    let product = p.ungated_mul(t);
    if product.has_nan() { chained_again(p, t) } else { product }
}

// By value: what is lent has to be in memory on the hot path too.
#[cold]
#[inline(never)]
fn chained_again<T: Real>(p: T, t: T) -> T {
    p.chain_mul(t)
}
