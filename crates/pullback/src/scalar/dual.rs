//! Forward mode: a value with `N` tangents.

use super::Real;
use super::chain::{Chain, chain_methods, chain_operators, chain_powers};
use super::operators::{compared_by_value, derived_operators};
use super::slope::Slope;
use crate::number::Number;

/// A value and its derivatives in `N` directions. Nests for higher orders: the tangents of a
/// `Dual<Dual<f64, 1>, 1>` carry second derivatives.
///
/// ```
/// use pullback::number::Number;
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
            // Where the function is infinitely steep, what does not move must stay: 0 * inf is 0 here.
            Slope::Of(p) if !p.value().is_finite() => Dual { re: y, eps: each(self.eps, |t| t.gate(p)) },
            Slope::Of(p) => Dual { re: y, eps: each(self.eps, |t| p * t) },
        }
    }

    #[inline(always)]
    fn scaled(self, y: T, k: f64) -> Self {
        Dual { re: y, eps: each(self.eps, |t| t * k) }
    }

    #[inline(always)]
    fn binary(self, other: Self, y: T, slopes: [Slope<T>; 2]) -> Self {
        let (a, b) = (self.eps, other.eps);
        let eps = match slopes {
            [Slope::One, Slope::One] => pairs(a, b, |a, b| a + b),
            [Slope::One, Slope::MinusOne] => pairs(a, b, |a, b| a - b),
            [Slope::Zero, Slope::Zero] => [T::constant(0.0); N],
            [p, q] => {
                let (p, q) = (p.number(), q.number());
                if p.value().is_finite() && q.value().is_finite() {
                    pairs(a, b, |a, b| p * a + q * b)
                } else {
                    pairs(a, b, |a, b| a.gate(p) + b.gate(q))
                }
            }
        };
        Dual { re: y, eps }
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
}
