//! The innermost loops of fused programs: operations with a scalar operand, and several operations in one loop.

use super::cost::Cost;
use super::dispatch::{careful2, dispatched};
use super::isa::with_isa;
use super::lane::{Careful, Lane, Portable};
use super::map::{Map1, Map2};
use super::math::{Float, Isa, fma, is_nan, pick, sincos};
use pullback_table::Number;

dispatched! {
    /// `out = M(a, b)` with one right operand.
    fn loop2_right[M: Map2, F: Float](a: &[F], b: F, out: &mut [F]) = right_body for M::value(Cost::OPERAND, Cost::OPERAND)
}
dispatched! {
    /// `out = M(a, b)` with one left operand.
    fn loop2_left[M: Map2, F: Float](a: F, b: &[F], out: &mut [F]) = left_body for M::value(Cost::OPERAND, Cost::OPERAND)
}
dispatched! {
    /// `out = f(a, b)` with one right operand.
    fn zip_right[F: Float, O: Fn(F, F) -> F](a: &[F], b: F, out: &mut [F], f: O) = zip_right_body
}
dispatched! {
    /// `out = f(a, b)` with one left operand.
    fn zip_left[F: Float, O: Fn(F, F) -> F](a: F, b: &[F], out: &mut [F], f: O) = zip_left_body
}
dispatched! {
    /// `out = T(a, b, c)`.
    fn loop3[T: Map3, F: Float](a: &[F], b: &[F], c: &[F], out: &mut [F]) = body3
}
dispatched! {
    /// `out = T(a, b, c)` with one `b`.
    fn loop3_middle[T: Map3, F: Float](a: &[F], b: F, c: &[F], out: &mut [F]) = middle_body
}
dispatched! {
    /// `out = T(a, b, c)` with one `c`.
    fn loop3_right[T: Map3, F: Float](a: &[F], b: &[F], c: F, out: &mut [F]) = last_body
}
dispatched! {
    /// `out = T(a, b, c)` with one `b` and one `c`.
    fn loop3_rest[T: Map3, F: Float](a: &[F], b: F, c: F, out: &mut [F]) = rest_body
}
dispatched! {
    /// Two functions of the same arguments, slices of one length.
    fn loop_pair[P: Pair, F: Float](x: &[F], first: &mut [F], second: &mut [F]) = pair_body for P::cost()
}

/// Two functions that have work in common. Where lanes are limited, both are NaN.
pub(crate) trait Pair: 'static {
    fn values<F: Float, I: Isa>(x: F) -> (F, F);
    /// Of both, each by itself.
    fn cost() -> Cost;
}

/// Sine and cosine.
pub(crate) struct SinCos;
impl Pair for SinCos {
    #[inline(always)]
    fn values<F: Float, I: Isa>(x: F) -> (F, F) {
        sincos::<F, I>(x)
    }

    #[inline(always)]
    fn cost() -> Cost {
        Number::sin(Cost::OPERAND) + Number::cos(Cost::OPERAND)
    }
}

/// What the two have in common, the compiler finds.
impl<A: Map1, B: Map1> Pair for (A, B) {
    #[inline(always)]
    fn values<F: Float, I: Isa>(x: F) -> (F, F) {
        (A::value(Lane::<F, I>::new(x)).0, B::value(Lane::<F, I>::new(x)).0)
    }

    #[inline(always)]
    fn cost() -> Cost {
        A::value(Cost::OPERAND) + B::value(Cost::OPERAND)
    }
}

/// A function of three arguments that a fused program has where two operations meet.
pub(crate) trait Map3: 'static {
    fn value<F: Float, I: Isa>(a: F, b: F, c: F) -> F;
}

macro_rules! map3 {
    ($($(#[$doc:meta])* $T:ident($a:ident, $b:ident, $c:ident) = $value:expr;)*) => {$(
        $(#[$doc])*
        pub(crate) struct $T;
        impl Map3 for $T {
            #[inline(always)]
            fn value<F: Float, I: Isa>($a: F, $b: F, $c: F) -> F {
                $value
            }
        }
    )*};
}
map3! {
    /// `a b + c`.
    MulAdd(a, b, c) = fma::<F, I>(a, b, c);
    /// `a b - c`.
    MulSub(a, b, c) = fma::<F, I>(a, b, -c);
    /// `c - a b`.
    NegMulAdd(a, b, c) = fma::<F, I>(-a, b, c);
    /// `gate(a, b) + c`.
    GateAdd(a, b, c) = {
        let sum = fma::<F, I>(a, b, c);
        pick((a == F::ZERO) | (b == F::ZERO), c, sum)
    };
    /// `a b c`.
    MulMul(a, b, c) = a * b * c;
    /// `gate(a, b c)`.
    GateMul(a, b, c) = {
        let right = b * c;
        let product = a * right;
        let product = pick(right == F::ZERO, right, product);
        pick(a == F::ZERO, a, product)
    };
    /// `gate(gate(a, b), c)`.
    GateGate(a, b, c) = {
        let product = a * b;
        let product = pick(b == F::ZERO, b, product);
        let product = pick(a == F::ZERO, a, product);
        let all = product * c;
        let all = pick(c == F::ZERO, c, all);
        pick(product == F::ZERO, product, all)
    };
    /// `b` where `a` is not zero, else `c`.
    Select(a, b, c) = pick(a != F::ZERO, b, c);
}

#[inline(always)]
fn right_body<M: Map2, F: Float, I: Isa>(a: &[F], b: F, out: &mut [F]) {
    assert_eq!(a.len(), out.len());
    for (out, &a) in out.iter_mut().zip(a) {
        *out = M::value(Lane::<F, I>::new(a), Lane::new(b)).0;
    }
    if M::value(Cost::OPERAND, Cost::OPERAND).limited {
        for (out, &a) in out.iter_mut().zip(a).filter(|(y, _)| is_nan(**y)) {
            *out = careful2::<M, F, I>(a, b);
        }
    }
}

#[inline(always)]
fn left_body<M: Map2, F: Float, I: Isa>(a: F, b: &[F], out: &mut [F]) {
    assert_eq!(b.len(), out.len());
    for (out, &b) in out.iter_mut().zip(b) {
        *out = M::value(Lane::<F, I>::new(a), Lane::new(b)).0;
    }
    if M::value(Cost::OPERAND, Cost::OPERAND).limited {
        for (out, &b) in out.iter_mut().zip(b).filter(|(y, _)| is_nan(**y)) {
            *out = careful2::<M, F, I>(a, b);
        }
    }
}

#[inline(always)]
fn zip_right_body<F: Float, O: Fn(F, F) -> F, I: Isa>(a: &[F], b: F, out: &mut [F], f: O) {
    out.iter_mut().zip(a).for_each(|(out, &a)| *out = f(a, b));
}

#[inline(always)]
fn zip_left_body<F: Float, O: Fn(F, F) -> F, I: Isa>(a: F, b: &[F], out: &mut [F], f: O) {
    out.iter_mut().zip(b).for_each(|(out, &b)| *out = f(a, b));
}

#[inline(always)]
fn body3<T: Map3, F: Float, I: Isa>(a: &[F], b: &[F], c: &[F], out: &mut [F]) {
    assert!(a.len() == out.len() && b.len() == out.len() && c.len() == out.len());
    for (((out, &a), &b), &c) in out.iter_mut().zip(a).zip(b).zip(c) {
        *out = T::value::<F, I>(a, b, c);
    }
}

#[inline(always)]
fn middle_body<T: Map3, F: Float, I: Isa>(a: &[F], b: F, c: &[F], out: &mut [F]) {
    assert!(a.len() == out.len() && c.len() == out.len());
    for ((out, &a), &c) in out.iter_mut().zip(a).zip(c) {
        *out = T::value::<F, I>(a, b, c);
    }
}

#[inline(always)]
fn last_body<T: Map3, F: Float, I: Isa>(a: &[F], b: &[F], c: F, out: &mut [F]) {
    assert!(a.len() == out.len() && b.len() == out.len());
    for ((out, &a), &b) in out.iter_mut().zip(a).zip(b) {
        *out = T::value::<F, I>(a, b, c);
    }
}

#[inline(always)]
fn rest_body<T: Map3, F: Float, I: Isa>(a: &[F], b: F, c: F, out: &mut [F]) {
    assert!(a.len() == out.len());
    for (out, &a) in out.iter_mut().zip(a) {
        *out = T::value::<F, I>(a, b, c);
    }
}

#[inline(always)]
fn pair_body<P: Pair, F: Float, I: Isa>(x: &[F], first: &mut [F], second: &mut [F]) {
    assert!(x.len() == first.len() && x.len() == second.len());
    for ((first, second), &x) in first.iter_mut().zip(second.iter_mut()).zip(x) {
        (*first, *second) = P::values::<F, I>(x);
    }
    if P::cost().limited && first.iter().fold(false, |any, &y| any | is_nan(y)) {
        let all = first.iter_mut().zip(second.iter_mut()).zip(x);
        for ((first, second), &x) in all.filter(|((y, _), _)| is_nan(**y)) {
            (*first, *second) = P::values::<F, Careful<I>>(x);
        }
    }
}
