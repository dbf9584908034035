//! Functions that are compares, selects or single instructions, and so exact; `remainder` is rounded once.

use super::{Float, Isa, is_nan, pick};

/// The methods of [`Float`] with these names.
macro_rules! instructions {
    ($($f:ident $method:ident),*) => {$(
        #[inline(always)]
        pub(crate) fn $f<F: Float, I: Isa>(x: F) -> F {
            x.$method()
        }
    )*};
}
instructions!(abs abs, floor floor, ceil ceil, round round_ties_even, trunc trunc, sqrt sqrt);

#[inline(always)]
pub(crate) fn recip<F: Float, I: Isa>(x: F) -> F {
    F::ONE / x
}

#[inline(always)]
pub(crate) fn sign<F: Float, I: Isa>(x: F) -> F {
    let y = pick(x > F::ZERO, F::ONE, x);
    pick(x < F::ZERO, -F::ONE, y)
}

#[inline(always)]
pub(crate) fn step<F: Float, I: Isa>(x: F) -> F {
    pick(x > F::ZERO, F::ONE, F::ZERO)
}

#[inline(always)]
pub(crate) fn relu<F: Float, I: Isa>(x: F) -> F {
    pick(x <= F::ZERO, F::ZERO, x)
}

#[inline(always)]
pub(crate) fn gate<F: Float, I: Isa>(a: F, b: F) -> F {
    let product = a * b;
    let right = pick(b == F::ZERO, b, product);
    pick(a == F::ZERO, a, right)
}

/// The exact remainder of C, one element at a time.
#[inline(always)]
pub(crate) fn rem<F: Float, I: Isa>(a: F, b: F) -> F {
    a % b
}

/// The remainder with the sign of `b`. The sum is rounded where `a` is much smaller than `b` and of the other sign.
#[inline(always)]
pub(crate) fn remainder<F: Float, I: Isa>(a: F, b: F) -> F {
    let r = a % b;
    let moved = pick((r < F::ZERO) != (b < F::ZERO), r + b, r);
    pick(r == F::ZERO, r.copysign(b), moved)
}

#[inline(always)]
pub(crate) fn copysign<F: Float, I: Isa>(a: F, b: F) -> F {
    a.copysign(b)
}

#[inline(always)]
pub(crate) fn maximum<F: Float, I: Isa>(a: F, b: F) -> F {
    pick((a > b) | is_nan(a), a, b)
}

#[inline(always)]
pub(crate) fn minimum<F: Float, I: Isa>(a: F, b: F) -> F {
    pick((a < b) | is_nan(a), a, b)
}

#[inline(always)]
pub(crate) fn share<F: Float, I: Isa>(a: F, b: F) -> F {
    let y = pick(a > b, F::ONE, F::ZERO);
    pick(a == b, F::HALF, y)
}
