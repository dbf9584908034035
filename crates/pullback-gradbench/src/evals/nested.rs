//! What the two nested evals share: gradients in either mode at any number type, and an optimiser that is differentiated through.

use pullback::scalar::{self, Dual, Real, Taped, Var};

/// A number with derivatives of its own, made of one without.
pub trait Lift<T>: Taped {
    fn lift(value: T) -> Self;
}

impl<T: Taped, const N: usize> Lift<T> for Dual<T, N> {
    #[inline(always)]
    fn lift(value: T) -> Self {
        Dual::fixed(value)
    }
}

impl<T: Taped> Lift<T> for Var<T> {
    #[inline(always)]
    fn lift(value: T) -> Self {
        Var::fixed(value)
    }
}

/// A function of `N` numbers that can be differentiated where its constants are of type `T`.
pub trait Field<T: Taped, const N: usize> {
    /// Its value at a point.
    fn value(&self, x: [T; N]) -> T;
    /// Its value at a point that carries derivatives.
    fn lifted<U: Lift<T>>(&self, x: [U; N]) -> U;
}

/// How to differentiate.
pub trait Mode {
    fn gradient<T: Taped, const N: usize>(f: &impl Field<T, N>, x: [T; N]) -> [T; N];
}

pub struct Forward;

impl Mode for Forward {
    #[inline(always)]
    fn gradient<T: Taped, const N: usize>(f: &impl Field<T, N>, x: [T; N]) -> [T; N] {
        f.lifted(std::array::from_fn(|k| Dual::<T, N>::variable(x[k], k))).tangents()
    }
}

pub struct Reverse;

impl Mode for Reverse {
    #[inline(always)]
    fn gradient<T: Taped, const N: usize>(f: &impl Field<T, N>, x: [T; N]) -> [T; N] {
        scalar::gradient_at(
            #[inline(always)]
            |x| f.lifted(x),
            x,
        )
    }
}

#[inline(always)]
fn norm<T: Real, const N: usize>(x: [T; N]) -> f64 {
    x.iter().map(|x| x.value() * x.value()).sum::<f64>().sqrt()
}

/// Gradient descent from `x`, with a step that doubles after ten good steps in a row and halves after a bad one. The way it goes is
/// decided on values; the result carries the derivatives of all steps.
#[inline(always)]
pub fn minimise<T: Taped, M: Mode, const N: usize>(f: &impl Field<T, N>, mut x: [T; N]) -> [T; N] {
    let mut value = f.value(x);
    let mut gradient = M::gradient(f, x);
    let (mut eta, mut good) = (1e-5, 0);
    loop {
        if norm(gradient) <= 1e-5 {
            return x;
        }
        if good == 10 {
            (eta, good) = (eta * 2.0, 0);
            continue;
        }
        let next: [T; N] = std::array::from_fn(|k| x[k] - gradient[k] * eta);
        if norm::<T, N>(std::array::from_fn(|k| x[k] - next[k])) <= 1e-5 {
            return x;
        }
        let next_value = f.value(next);
        if next_value < value {
            (x, value, gradient) = (next, next_value, M::gradient(f, next));
            good += 1;
        } else {
            (eta, good) = (eta / 2.0, 0);
        }
    }
}
