//! Forward mode: a value with `N` tangents.

use super::Real;
use super::chain::{Chain, chain_methods, chain_operators, chain_powers};
use super::operators::{compared_by_value, derived_operators};
use super::slope::{self, Slope};
use pullback_table::Number;

/// A value and its derivatives in `N` directions. Nests for higher orders: the tangents of a
/// `Dual<Dual<f64, 1>, 1>` carry second derivatives.
///
/// ```
/// use pullback::scalar::Number;
/// use pullback::scalar::Dual;
/// let x = Dual::<f64, 1>::new(2.0, [1.0]);
/// let y = x * x + x.ln();
/// assert_eq!(y.tangents(), [4.5]);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Dual<T = f64, const N: usize = 1> {
    re: T,
    eps: [T; N],
}

/// A second-order dual number: value, two tangents and their mixed second derivative.
pub type HyperDual<T = f64> = Dual<Dual<T, 1>, 1>;

impl<T: Real, const N: usize> Dual<T, N> {
    /// A number with the given value and tangents.
    #[inline(always)]
    pub fn new(value: T, tangents: [T; N]) -> Self {
        Dual { re: value, eps: tangents }
    }

    /// An independent variable: the `k`-th tangent is 1, the others are 0.
    #[inline(always)]
    pub fn variable(value: T, k: usize) -> Self {
        let mut x = Self::fixed(value);
        x.eps[k] = T::constant(1.0);
        x
    }

    /// A number that does not change.
    #[inline(always)]
    pub fn fixed(value: T) -> Self {
        Dual { re: value, eps: [T::constant(0.0); N] }
    }

    /// The value.
    #[inline(always)]
    pub fn real(self) -> T {
        self.re
    }

    /// The tangents.
    #[inline(always)]
    pub fn tangents(self) -> [T; N] {
        self.eps
    }
}

impl<T: Real> HyperDual<T> {
    /// The variable of a second derivative: `first` and `second` say whether it moves in either direction.
    pub fn hyper(value: T, first: T, second: T) -> Self {
        Dual::new(Dual::new(value, [first]), [Dual::fixed(second)])
    }

    /// The mixed second derivative.
    pub fn second(self) -> T {
        self.eps[0].eps[0]
    }
}

// Loops, not `map` and `from_fn`: those are calls where tangents are large or many.

#[inline(always)]
fn each<T: Copy, const N: usize>(mut a: [T; N], f: impl Fn(T) -> T) -> [T; N] {
    for a in &mut a {
        *a = f(*a);
    }
    a
}

#[inline(always)]
fn pairs<T: Copy, const N: usize>(mut a: [T; N], b: [T; N], f: impl Fn(T, T) -> T) -> [T; N] {
    for k in 0..N {
        a[k] = f(a[k], b[k]);
    }
    a
}

// The chain rule multiplies tangents by slopes so that a zero on either side wins over infinity and NaN: where a function is
// infinitely steep, what does not move must stay. To look for that in every product would take long; a plain product differs only where
// it is NaN, and is then made again.

/// Whether plain products are those of the chain rule. For many tangents of plain numbers it is less to look at the slopes than at the
/// products: they are right behind all that are finite and not 0.
#[inline(always)]
fn is_sound<T: Real, const M: usize, const N: usize>(slopes: [T; M], products: [T; N]) -> bool {
    if T::PARTS == 1 && N > 2 {
        // Neither 0, which becomes the largest, nor infinite or NaN, by one comparison.
        let bits = slopes.iter().map(|p| p.value()).product::<f64>().to_bits() << 1;
        bits.wrapping_sub(1) < (f64::INFINITY.to_bits() << 1) - 1
    } else {
        !any_nan(products)
    }
}

/// Whether products with care are inlined, although that is rare: a call would have all that is in registers go to memory first.
const fn is_short<T: Real>() -> bool {
    T::PARTS <= 2
}

/// Tangents `a` behind a slope `p`.
#[inline(always)]
fn behind<T: Real, const N: usize>(p: T, a: [T; N]) -> [T; N] {
    if T::PARTS == 0 {
        return each(
            a,
            #[inline(always)]
            |t| p.chain_mul(t),
        );
    }
    let eps = each(
        a,
        #[inline(always)]
        |t| p.ungated_mul(t),
    );
    if is_sound([p], eps) {
        return eps;
    }
    std::hint::cold_path();
    if is_short::<T>() {
        return each(
            a,
            #[inline(always)]
            |t| p.chain_mul(t),
        );
    }
    let mut eps = copied(a);
    behind_again(&copied([p]), &mut eps);
    copied(eps)
}

#[cold]
#[inline(never)]
fn behind_again<T: Real, const N: usize>([p]: &[T; 1], a: &mut [T; N]) {
    *a = each(
        *a,
        #[inline(always)]
        |t| p.chain_mul(t),
    );
}

/// Tangents `a` and `b` behind slopes `p` and `q`.
#[inline(always)]
fn behind_both<T: Real, const N: usize>(p: T, a: [T; N], q: T, b: [T; N]) -> [T; N] {
    if T::PARTS == 0 {
        return pairs(
            a,
            b,
            #[inline(always)]
            |a, b| p.chain_mul(a) + q.chain_mul(b),
        );
    }
    let eps = pairs(
        a,
        b,
        #[inline(always)]
        |a, b| p.ungated_mul(a) + q.ungated_mul(b),
    );
    if is_sound([p, q], eps) {
        return eps;
    }
    std::hint::cold_path();
    if is_short::<T>() {
        return pairs(
            a,
            b,
            #[inline(always)]
            |a, b| p.chain_mul(a) + q.chain_mul(b),
        );
    }
    let mut eps = copied(a);
    behind_both_again(&copied([p, q]), &mut eps, &copied(b));
    copied(eps)
}

#[cold]
#[inline(never)]
fn behind_both_again<T: Real, const N: usize>([p, q]: &[T; 2], a: &mut [T; N], b: &[T; N]) {
    *a = pairs(
        *a,
        *b,
        #[inline(always)]
        |a, b| p.chain_mul(a) + q.chain_mul(b),
    );
}

#[cold]
#[inline(never)]
fn product_again<T: Real, const N: usize>([a, b]: &mut [Dual<T, N>; 2]) {
    *a = a.binary(*b, a.re * b.re, slope::mul(a.re, b.re, a.re));
}

/// A copy for a cold call. What is lent itself has to be in memory on the hot path too, and numbers that go through memory in pieces
/// are what nested ones take their time for.
#[inline(always)]
fn copied<T: Copy, const N: usize>(a: [T; N]) -> [T; N] {
    each(a, |a| a)
}

/// Whether some part is NaN.
#[inline(always)]
fn any_nan<T: Real, const N: usize>(parts: [T; N]) -> bool {
    let mut any = false;
    for t in parts {
        any |= t.has_nan();
    }
    any
}

impl<T: Real, const N: usize> Chain for Dual<T, N> {
    type Primal = T;

    #[inline(always)]
    fn primal(self) -> T {
        self.re
    }

    #[inline(always)]
    fn unary(self, y: T, slope: Slope<T>) -> Self {
        match slope {
            Slope::Zero => Self::fixed(y),
            Slope::One => Dual { re: y, eps: self.eps },
            Slope::MinusOne => Dual { re: y, eps: each(self.eps, |t| -t) },
            Slope::Of(p) => Dual { re: y, eps: behind(p, self.eps) },
        }
    }

    #[inline(always)]
    fn scaled(self, y: T, k: f64) -> Self {
        let eps = if k == 0.0 {
            [T::constant(0.0); N]
        } else if k.is_finite() {
            each(self.eps, |t| t * k)
        } else {
            behind(T::constant(k), self.eps)
        };
        Dual { re: y, eps }
    }

    #[inline(always)]
    fn binary(self, other: Self, y: T, slopes: [Slope<T>; 2]) -> Self {
        let (a, b) = (self.eps, other.eps);
        let eps = match slopes {
            [Slope::One, Slope::One] => pairs(a, b, |a, b| a + b),
            [Slope::One, Slope::MinusOne] => pairs(a, b, |a, b| a - b),
            [Slope::Zero, Slope::Zero] => [T::constant(0.0); N],
            [p, q] => behind_both(p.number(), a, q.number(), b),
        };
        Dual { re: y, eps }
    }

    #[inline(always)]
    fn product(self, other: Self) -> Self {
        let (a, b) = (self.re, other.re);
        if T::PARTS == 0 {
            return self.binary(other, a * b, slope::mul(a, b, a));
        }
        let y = self.ungated_mul(other);
        // A plain number is as it is.
        if is_sound([y.re], y.eps) && (T::PARTS == 1 || !y.re.has_nan()) {
            return y;
        }
        std::hint::cold_path();
        if T::PARTS == 1 {
            let eps = pairs(
                self.eps,
                other.eps,
                #[inline(always)]
                |s, t| b.chain_mul(s) + a.chain_mul(t),
            );
            return Dual { re: y.re, eps };
        }
        let mut factors = copied([self, other]);
        product_again(&mut factors);
        copied(factors)[0]
    }
}

chain_operators! { [T: Real, const N: usize] Dual<T, N> }
compared_by_value! { [T: Real, const N: usize] Dual<T, N>, re }
derived_operators! { [T: Real, const N: usize] Dual<T, N> }

impl<T: Real, const N: usize> Number for Dual<T, N> {
    chain_methods!();
}

impl<T: Real, const N: usize> Real for Dual<T, N> {
    #[inline(always)]
    fn constant(value: f64) -> Self {
        Self::fixed(T::constant(value))
    }

    #[inline(always)]
    fn value(self) -> f64 {
        self.re.value()
    }

    chain_powers!();

    #[inline(always)]
    fn select_lt(self, than: Self, then: Self, otherwise: Self) -> Self {
        let part = |a: T, b: T| self.re.select_lt(than.re, a, b);
        Dual { re: part(then.re, otherwise.re), eps: pairs(then.eps, otherwise.eps, part) }
    }

    #[inline(always)]
    fn select_le(self, than: Self, then: Self, otherwise: Self) -> Self {
        let part = |a: T, b: T| self.re.select_le(than.re, a, b);
        Dual { re: part(then.re, otherwise.re), eps: pairs(then.eps, otherwise.eps, part) }
    }

    #[inline(always)]
    fn saturates(self) -> bool {
        self.re.saturates()
    }

    #[inline(always)]
    fn held(self) -> Self {
        Self::fixed(self.re.held())
    }

    #[inline(always)]
    fn all_lt(self, other: Self) -> Option<bool> {
        self.re.all_lt(other.re)
    }

    #[inline(always)]
    fn all_le(self, other: Self) -> Option<bool> {
        self.re.all_le(other.re)
    }

    const PARTS: usize = T::PARTS * (N + 1);

    #[inline(always)]
    fn chain_mul(self, other: Self) -> Self {
        let (a, b) = (self.re, other.re);
        let eps = pairs(
            self.eps,
            other.eps,
            #[inline(always)]
            |s, t| b.chain_mul(s) + a.chain_mul(t),
        );
        Dual { re: a.chain_mul(b), eps }
    }

    #[inline(always)]
    fn ungated_mul(self, other: Self) -> Self {
        let (a, b) = (self.re, other.re);
        let eps = pairs(
            self.eps,
            other.eps,
            #[inline(always)]
            |s, t| b.ungated_mul(s) + a.ungated_mul(t),
        );
        Dual { re: a.ungated_mul(b), eps }
    }

    #[inline(always)]
    fn has_nan(self) -> bool {
        self.re.has_nan() | any_nan(self.eps)
    }

    #[inline(always)]
    fn joined(self, other: Self) -> Self {
        Dual { re: self.re.joined(other.re), eps: pairs(self.eps, other.eps, T::joined) }
    }
}
