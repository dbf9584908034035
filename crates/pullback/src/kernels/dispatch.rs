//! The innermost loops, compiled for each [instruction set](super::isa).

use super::cost::Cost;
use super::isa::with_isa;
use super::lane::{Careful, Lane, Portable};
use super::map::{Map1, Map2};
use super::math::{Float, Isa, is_nan};
use bytemuck::{Pod, cast_slice, cast_slice_mut};

/// Defines a function that runs `$body` compiled for the instructions of the processor it finds itself on, and for the longest vectors only
/// where the work is worth them.
macro_rules! dispatched {
    ($(#[$doc:meta])* fn $name:ident[$($G:ident: $B:path),*]($($x:ident: $T:ty),*) $(-> $R:ty)? = $body:ident) => {
        $(#[$doc])*
        #[inline(always)]
        pub(crate) fn $name<$($G: $B),*>($($x: $T),*) $(-> $R)? {
            with_isa! {
                [$($G: $B),*] [$($G),*] ($($x: $T),*) $(-> $R)?;
                Portable => $body::<$($G,)* Portable>($($x),*),
                V3 => $body::<$($G,)* $crate::kernels::lane::Fma>($($x),*)
            }
        }
    };
    ($(#[$doc:meta])* fn $name:ident[$($G:ident: $B:path),*]($($x:ident: $T:ty),*) $(-> $R:ty)? = $body:ident for $cost:expr) => {
        $(#[$doc])*
        #[inline(always)]
        pub(crate) fn $name<$($G: $B),*>($($x: $T),*) $(-> $R)? {
            with_isa! {
                [$($G: $B),*] [$($G),*] ($($x: $T),*) $(-> $R)?;
                Portable => $body::<$($G,)* Portable>($($x),*),
                V3 => $body::<$($G,)* $crate::kernels::lane::Fma>($($x),*),
                V4 if $cost.is_worth_long_vectors() => $body::<$($G,)* $crate::kernels::lane::Fma>($($x),*)
            }
        }
    };
}

pub(super) use dispatched;

dispatched! {
    /// `M(x)` of a single element.
    fn one1[M: Map1, F: Float](x: F) -> F = careful1
}
dispatched! {
    /// `M(a, b)` of a single pair.
    fn one2[M: Map2, F: Float](a: F, b: F) -> F = careful2
}
dispatched! {
    /// `out = M(x)`, slices of one length.
    fn loop1[M: Map1, F: Float](x: &[F], out: &mut [F]) = body1 for M::value(Cost::OPERAND)
}
dispatched! {
    /// `out = M(a, b)`, slices of one length.
    fn loop2[M: Map2, F: Float](a: &[F], b: &[F], out: &mut [F]) = body2 for M::value(Cost::OPERAND, Cost::OPERAND)
}

dispatched! {
    /// `a = M(a, b)`, slices of one length, where no lane is limited.
    fn loop2_into_left[M: Map2, F: Float](a: &mut [F], b: &[F]) = body2_into_left
}
dispatched! {
    /// `out = f(a, b)`, slices of one length.
    fn zip_tile[A: Copy, B: Copy, O: Sized, F: Fn(A, B) -> O](a: &[A], b: &[B], out: &mut [O], f: F) = zip_body
}
dispatched! {
    /// `out = a` where the mask is not zero, else `b`, slices of one length.
    fn select_tile[T: Pod](mask: &[u8], a: &[T], b: &[T], out: &mut [T]) = select_body
}

#[inline(always)]
pub(super) fn careful1<M: Map1, F: Float, I: Isa>(x: F) -> F {
    M::value(Lane::<F, Careful<I>>::new(x)).0
}

#[inline(always)]
pub(super) fn careful2<M: Map2, F: Float, I: Isa>(a: F, b: F) -> F {
    M::value(Lane::<F, Careful<I>>::new(a), Lane::new(b)).0
}

#[inline(always)]
fn body1<M: Map1, F: Float, I: Isa>(x: &[F], out: &mut [F]) {
    assert_eq!(x.len(), out.len());
    for (out, &x) in out.iter_mut().zip(x) {
        *out = M::value(Lane::<F, I>::new(x)).0;
    }
    if M::value(Cost::OPERAND).limited && out.iter().fold(false, |any, &y| any | is_nan(y)) {
        for (out, &x) in out.iter_mut().zip(x).filter(|(y, _)| is_nan(**y)) {
            *out = careful1::<M, F, I>(x);
        }
    }
}

#[inline(always)]
fn body2<M: Map2, F: Float, I: Isa>(a: &[F], b: &[F], out: &mut [F]) {
    assert!(a.len() == out.len() && b.len() == out.len());
    for ((out, &a), &b) in out.iter_mut().zip(a).zip(b) {
        *out = M::value(Lane::<F, I>::new(a), Lane::new(b)).0;
    }
    if M::value(Cost::OPERAND, Cost::OPERAND).limited && out.iter().fold(false, |any, &y| any | is_nan(y)) {
        for ((out, &a), &b) in out.iter_mut().zip(a).zip(b).filter(|((y, _), _)| is_nan(**y)) {
            *out = careful2::<M, F, I>(a, b);
        }
    }
}

#[inline(always)]
fn body2_into_left<M: Map2, F: Float, I: Isa>(a: &mut [F], b: &[F]) {
    assert!(a.len() == b.len() && !M::value(Cost::OPERAND, Cost::OPERAND).limited);
    for (a, &b) in a.iter_mut().zip(b) {
        *a = M::value(Lane::<F, I>::new(*a), Lane::new(b)).0;
    }
}

#[inline(always)]
fn zip_body<A: Copy, B: Copy, O: Sized, F: Fn(A, B) -> O, I: Isa>(a: &[A], b: &[B], out: &mut [O], f: F) {
    for ((out, &a), &b) in out.iter_mut().zip(a).zip(b) {
        *out = f(a, b);
    }
}

/// Words are chosen by their bits: of an `if` the compiler makes a branch for each element, which a mixed mask mispredicts.
#[inline(always)]
fn select_body<T: Pod, I: Isa>(mask: &[u8], a: &[T], b: &[T], out: &mut [T]) {
    macro_rules! words {
        ($W:ty) => {{
            let (a, b, out): (&[$W], &[$W], &mut [$W]) = (cast_slice(a), cast_slice(b), cast_slice_mut(out));
            for (((out, &m), &a), &b) in out.iter_mut().zip(mask).zip(a).zip(b) {
                let all_or_none = <$W>::wrapping_sub(0, (m != 0) as $W);
                *out = b ^ ((a ^ b) & all_or_none);
            }
        }};
    }
    match size_of::<T>() {
        1 => words!(u8),
        2 => words!(u16),
        4 => words!(u32),
        8 => words!(u64),
        16 => {
            let (a, b): (&[[u64; 2]], &[[u64; 2]]) = (cast_slice(a), cast_slice(b));
            for (((out, &m), a), b) in cast_slice_mut::<T, [u64; 2]>(out).iter_mut().zip(mask).zip(a).zip(b) {
                let all_or_none = u64::wrapping_sub(0, (m != 0) as u64);
                *out = std::array::from_fn(|k| b[k] ^ ((a[k] ^ b[k]) & all_or_none));
            }
        }
        _ => unreachable!("no element has another size"),
    }
}
