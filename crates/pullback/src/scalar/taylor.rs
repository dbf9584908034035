//! Taylor arithmetic: a number that moves, as the first terms of its series in time.

use super::Real;
use super::operators::{compared_by_value, derived_operators};
use super::slope::{self, Slope};
use pullback_table::{Number, elementwise_table};

/// The first `N` Taylor coefficients of a number that moves: `c[0] + c[1] t + .. + c[N-1] t^(N-1)`.
///
/// The rows of the elementwise table give all functions: `y = f(x)` solves `y' = f'(x, y) x'`, and the slope to one order
/// less gives the next coefficient.
///
/// ```
/// use pullback::scalar::{Number, Real, Taylor};
/// // exp(sin t) = 1 + t + t²/2 - t⁴/8 - t⁵/15 ..
/// let y = Taylor::<6>::variable(0.0).sin().exp();
/// assert!((y.coefficient(4) + 1.0 / 8.0).abs() < 1e-15 && (y.derivative(5) + 8.0).abs() < 1e-13);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Taylor<const N: usize> {
    c: [f64; N],
    /// How many of the coefficients are known. Fewer than `N` only inside a slope.
    known: usize,
}

impl<const N: usize> Taylor<N> {
    /// The number `value + t`.
    pub fn variable(value: f64) -> Self {
        let mut x = Self::constant(value);
        if N > 1 {
            x.c[1] = 1.0;
        }
        x
    }

    /// The number with these coefficients.
    pub fn from_coefficients(c: [f64; N]) -> Self {
        Taylor { c, known: N }
    }

    /// The coefficient of `t^k`.
    pub fn coefficient(&self, k: usize) -> f64 {
        self.c[k]
    }

    /// The `k`-th derivative with respect to `t`, at 0.
    pub fn derivative(&self, k: usize) -> f64 {
        (1..=k).fold(self.c[k], |d, k| d * k as f64)
    }

    /// The first `k` coefficients.
    fn truncated(self, k: usize) -> Self {
        let mut c = [0.0; N];
        c[..k].copy_from_slice(&self.c[..k]);
        Taylor { c, known: k }
    }

    /// The `k`-th coefficient of the integral of `p x'`.
    fn integral(p: &Self, x: &Self, k: usize) -> f64 {
        (1..=k).map(|j| (j as f64 * x.c[j]).chain_mul(p.c[k - j])).sum::<f64>() / k as f64
    }

    /// The series with the value `y0` whose derivative is `Σ slope x'`, where the slopes may need the series itself.
    fn solve<const A: usize>(
        y0: f64,
        x: [Self; A],
        reads_y: bool,
        slopes: impl Fn([Self; A], Self) -> [Slope<Self>; A],
    ) -> Self {
        let known = x.iter().map(|x| x.known).min().expect("there is an argument");
        let mut y = Self::constant(y0);
        y.known = known;
        let mut rows: [Slope<Self>; A] = [Slope::Zero; A];
        for k in 1..known {
            // The first time at full length, if the answer does not change; else with what is known by now.
            let order = if reads_y { k } else { known - 1 };
            if reads_y || k == 1 {
                rows = slopes(x.map(|x| x.truncated(order)), y.truncated(order));
            }
            y.c[k] = rows.iter().zip(&x).map(|(p, x)| Self::integral(&p.number(), x, k)).sum();
        }
        y
    }
}

impl<const N: usize> std::ops::Neg for Taylor<N> {
    type Output = Self;
    fn neg(self) -> Self {
        Taylor { c: self.c.map(|c| -c), ..self }
    }
}

impl<const N: usize> std::ops::Add for Taylor<N> {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Taylor { c: std::array::from_fn(|k| self.c[k] + other.c[k]), known: self.known.min(other.known) }
    }
}

impl<const N: usize> std::ops::Sub for Taylor<N> {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl<const N: usize> std::ops::Mul for Taylor<N> {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        let known = self.known.min(other.known);
        let mut c = [0.0; N];
        for (k, c) in c.iter_mut().enumerate().take(known) {
            *c = (0..=k).map(|j| self.c[j] * other.c[k - j]).sum();
        }
        Taylor { c, known }
    }
}

impl<const N: usize> std::ops::Div for Taylor<N> {
    type Output = Self;
    /// `q b = a`, coefficient by coefficient.
    fn div(self, other: Self) -> Self {
        let known = self.known.min(other.known);
        let mut q = [0.0; N];
        for k in 0..known {
            let rest: f64 = (0..k).map(|j| q[j] * other.c[k - j]).sum();
            q[k] = (self.c[k] - rest) / other.c[0];
        }
        Taylor { c: q, known }
    }
}

macro_rules! with_plain {
    ($($Op:ident $op:ident),*) => {$(
        impl<const N: usize> std::ops::$Op<f64> for Taylor<N> {
            type Output = Self;
            fn $op(self, k: f64) -> Self {
                std::ops::$Op::$op(self, Self::constant(k))
            }
        }
    )*};
}
with_plain!(Add add, Sub sub);

impl<const N: usize> std::ops::Mul<f64> for Taylor<N> {
    type Output = Self;
    fn mul(self, k: f64) -> Self {
        Taylor { c: self.c.map(|c| c * k), ..self }
    }
}

impl<const N: usize> std::ops::Div<f64> for Taylor<N> {
    type Output = Self;
    fn div(self, k: f64) -> Self {
        Taylor { c: self.c.map(|c| c / k), ..self }
    }
}

macro_rules! taylor_method {
    ($m:ident $x:tt ($($operator:tt)*) $reads:tt) => {};
    // Two functions have a recurrence of their own.
    (recip $($rest:tt)*) => {
        fn recip(self) -> Self {
            Self::constant(1.0) / self
        }
    };
    (pow $($rest:tt)*) => {
        /// By `y' = y (b ln a)'`; the slope of the row would call itself at every order.
        fn pow(self, other: Self) -> Self {
            if other.c[1..].iter().all(|&c| c == 0.0) {
                return Real::powf(self, other.c[0]);
            }
            let exponent = other * self.ln();
            Self::solve(Number::pow(self.c[0], other.c[0]), [exponent], true, |_, y| [Slope::Of(y)])
        }
    };
    ($m:ident ($x:ident) $value:tt [$($r:ident)*]) => {
        fn $m(self) -> Self {
            Self::solve(Number::$m(self.c[0]), [self], reads_y(&[$(stringify!($r)),*]), |[x], y| slope::$m(x, y))
        }
    };
    ($m:ident ($a:ident, $b:ident) $value:tt [$($r:ident)*]) => {
        fn $m(self, other: Self) -> Self {
            let y0 = Number::$m(self.c[0], other.c[0]);
            Self::solve(y0, [self, other], reads_y(&[$(stringify!($r)),*]), |[a, b], y| slope::$m(a, b, y))
        }
    };
}

/// Whether the partials of a row use its value.
fn reads_y(reads: &[&str]) -> bool {
    reads.contains(&"y")
}

macro_rules! number_for_taylor {
    ($($(#[$doc:meta])* $P:ident $m:ident $try:ident $x:tt = $value:tt;
        d = $d:tt; reads $([$($r:ident)*])+; $facts:tt)*) => {
        impl<const N: usize> Number for Taylor<N> {
            $(taylor_method! { $m $x $value [$($($r)*)+] })*
        }
    };
}
elementwise_table!(number_for_taylor);

compared_by_value! { [const N: usize] Taylor<N>, c[0] }
derived_operators! { [const N: usize] Taylor<N> }

impl<const N: usize> Real for Taylor<N> {
    fn constant(value: f64) -> Self {
        let mut c = [0.0; N];
        c[0] = value;
        Taylor { c, known: N }
    }

    fn value(self) -> f64 {
        self.c[0]
    }

    fn saturates(self) -> bool {
        self.c[0].saturates()
    }

    fn powi(self, n: i32) -> Self {
        let mut left = n.unsigned_abs();
        let (mut power, mut square) = (Self::constant(1.0), self);
        while left > 0 {
            if left & 1 == 1 {
                power *= square;
            }
            left >>= 1;
            square = square * square;
        }
        if n < 0 { power.recip() } else { power }
    }

    /// By `x y' = p y x'`, which needs a value other than zero; whole powers are products.
    fn powf(self, p: f64) -> Self {
        if p.fract() == 0.0 && p.abs() <= 64.0 {
            return self.powi(p as i32);
        }
        let slope = |[x]: [Self; 1], y: Self| [Slope::Of(y / x * p)];
        Self::solve(Number::pow(self.c[0], p), [self], true, slope)
    }
}
