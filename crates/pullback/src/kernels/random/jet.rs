//! Truncated power series: the value of a function and its derivatives, by arithmetic.

use std::ops::{Add, Div, Mul, Neg, Sub};

/// `c[0] + c[1] h + c[2] h² + ..`, of which `N` coefficients are kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct Jet<const N: usize>(pub [f64; N]);

impl<const N: usize> Jet<N> {
    pub fn constant(v: f64) -> Self {
        let mut c = [0.0; N];
        c[0] = v;
        Jet(c)
    }

    /// `v + h`.
    pub fn variable(v: f64) -> Self {
        let mut out = Jet::constant(v);
        if N > 1 {
            out.0[1] = 1.0;
        }
        out
    }

    pub fn value(self) -> f64 {
        self.0[0]
    }

    pub fn scale(self, by: f64) -> Self {
        Jet(self.0.map(|c| c * by))
    }

    /// `e' = x' e`.
    pub fn exp(self) -> Self {
        let mut e = [0.0; N];
        e[0] = self.0[0].exp();
        for k in 1..N {
            e[k] = (1..=k).map(|j| j as f64 * self.0[j] * e[k - j]).sum::<f64>() / k as f64;
        }
        Jet(e)
    }

    /// `x l' = x'`.
    pub fn ln(self) -> Self {
        let (x, mut l) = (self.0, [0.0; N]);
        l[0] = x[0].ln();
        for k in 1..N {
            let known: f64 = (1..k).map(|j| j as f64 * l[j] * x[k - j]).sum();
            l[k] = (x[k] - known / k as f64) / x[0];
        }
        Jet(l)
    }

    /// Whether no coefficient is larger than `small` times that of `of`, or `small` itself.
    pub fn is_small(self, of: Self, small: f64) -> bool {
        self.0.iter().zip(of.0).all(|(a, b)| a.abs() <= small * b.abs().max(1.0))
    }
}

impl<const N: usize> Add for Jet<N> {
    type Output = Self;
    fn add(self, b: Self) -> Self {
        Jet(std::array::from_fn(|k| self.0[k] + b.0[k]))
    }
}

impl<const N: usize> Sub for Jet<N> {
    type Output = Self;
    fn sub(self, b: Self) -> Self {
        Jet(std::array::from_fn(|k| self.0[k] - b.0[k]))
    }
}

impl<const N: usize> Neg for Jet<N> {
    type Output = Self;
    fn neg(self) -> Self {
        self.scale(-1.0)
    }
}

impl<const N: usize> Add<f64> for Jet<N> {
    type Output = Self;
    fn add(mut self, b: f64) -> Self {
        self.0[0] += b;
        self
    }
}

impl<const N: usize> Mul for Jet<N> {
    type Output = Self;
    fn mul(self, b: Self) -> Self {
        Jet(std::array::from_fn(|k| (0..=k).map(|j| self.0[j] * b.0[k - j]).sum()))
    }
}

impl<const N: usize> Div for Jet<N> {
    type Output = Self;
    fn div(self, b: Self) -> Self {
        let mut q = [0.0; N];
        for k in 0..N {
            let known: f64 = (0..k).map(|j| q[j] * b.0[k - j]).sum();
            q[k] = (self.0[k] - known) / b.0[0];
        }
        Jet(q)
    }
}
