//! Elementary functions without branches, for one lane of a vector loop.
//!
//! Each function is written once for `f32` and `f64` over [`Float`]; only the coefficient tables and the
//! constants differ (`single`, `double`). Special cases are compares and selects, so a loop
//! over such a body vectorises, and an element's result does not depend on its neighbours. NaN comes out where NaN goes in.
//!
//! Largest error in units of the last place, with fused multiply-add: of `f32` over every fifth number (every one for erfc and sigmoid, 80 million pairs for functions of two), against the `f64`
//! functions; of `f64` on some 50,000 samples of each domain, against a reference of 50 digits. `kernels/tests/exhaustive.rs` measures it
//! again. Without fused multiply-add the bounds that the tests check hold, which are a little wider.
//!
//! | function | `f32` | `f64` | function | `f32` | `f64` |
//! |---|---|---|---|---|---|
//! | exp | 1.1 | 1.0 | sinh | 1.6 | 1.6 |
//! | exp2 | 1.0 | 1.0 | cosh | 1.5 | 1.4 |
//! | expm1 | 1.5 | 1.8 | tanh | 1.3 | 1.3 |
//! | ln | 0.8 | 0.8 | asinh | 1.7 | 1.5 |
//! | log2 | 0.8 | 0.8 | acosh | 1.7 | 1.7 |
//! | log10 | 0.7 | 0.7 | atanh | 0.8 | 0.8 |
//! | log1p | 0.8 | 0.8 | sigmoid | 1.5 | 1.3 |
//! | sin | 0.8 | 0.8 | erf | 1.2 | 1.1 |
//! | cos | 0.8 | 0.8 | erfc | 1.9 | 1.7 |
//! | tan | 1.0 | 0.8 | cbrt | 0.8 | 0.7 |
//! | asin | 0.6 | 0.7 | pow | 0.5 | 1.1 |
//! | acos | 0.6 | 0.6 | atan2 | 1.9 | 1.5 |
//! | atan | 1.9 | 1.6 | hypot | 0.5 | 1.2 |
//!
//! Those of `exact.rs` have no error. The tests hold all of them to 2.
//!
//! Sine, cosine and tangent of an argument beyond
//! [`Float::TRIG_LIMIT`] are NaN in a vector lane, and the driver asks again with a careful lane, which calls the
//! standard library there.

mod arc;
mod double;
mod erf;
mod exact;
mod exp;
mod log;
mod pow;
mod single;
mod trig;

// A function of each row of the table that is `base` there, under its name.
pub(crate) use {arc::*, erf::*, exact::*, exp::*, log::*, pow::*, trig::*};

use std::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Shl, Shr, Sub};

/// What the code of a lane may assume about the processor, and how it treats rare arguments.
pub(crate) trait Isa: Copy + Send + Sync + 'static {
    /// Whether a fused multiply-add is one instruction.
    const FMA: bool;
    /// Whether a lane may branch to the standard library for arguments that the vector formulas do not cover.
    const CAREFUL: bool;
}

/// The unsigned integer that holds the bits of a float.
pub(crate) trait Bits:
    Copy
    + PartialEq
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + BitXor<Output = Self>
    + Shl<u32, Output = Self>
    + Shr<u32, Output = Self>
{
    fn wrapping_add(self, b: Self) -> Self;
    fn wrapping_sub(self, b: Self) -> Self;
}

macro_rules! bits {
    ($($U:ident)*) => {$(
        impl Bits for $U {
            #[inline(always)]
            fn wrapping_add(self, b: Self) -> Self {
                $U::wrapping_add(self, b)
            }
            #[inline(always)]
            fn wrapping_sub(self, b: Self) -> Self {
                $U::wrapping_sub(self, b)
            }
        }
    )*};
}
bits!(u32 u64);

/// `f32` or `f64`, with the constants and coefficients of its functions.
///
/// Polynomials are lowest degree first, and near-minimax for the function named in their comment.
pub(crate) trait Float:
    Copy
    + PartialOrd
    + Send
    + Sync
    + 'static
    + Neg<Output = Self>
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + std::ops::Rem<Output = Self>
{
    type Bits: Bits;

    /// Bits of the stored fraction.
    const FRACTION: u32;
    /// Width of the type in bits.
    const WIDTH: u32;
    const BIAS: Self::Bits;
    const BIAS_VALUE: Self;
    const ONE_BIT: Self::Bits;
    const FRACTION_MASK: Self::Bits;
    const SIGN_MASK: Self::Bits;
    /// Keeps so many leading bits that the product of two such numbers is exact.
    const HEAD_MASK: Self::Bits;
    /// `2^⌈p/2⌉ + 1`, which splits a number with Veltkamp's formula.
    const SPLITTER: Self;
    /// `1.5 · 2^FRACTION`: adding it rounds to an integer, which the low bits of the sum then hold.
    const ROUNDER: Self;
    /// `2^FRACTION`.
    const UNIT_ULP: Self;
    const MIN_POSITIVE: Self;
    /// A power of two that lifts every subnormal number into the normal range, its exponent, and a third of that down again.
    const LIFT: Self;
    const LIFT_EXPONENT: Self;
    const LIFT_CUBE_ROOT: Self;
    const INFINITY: Self;
    const NAN: Self;
    const ZERO: Self;
    const SQRT_HALF: Self;
    const HALF: Self;
    const ONE: Self;
    const TWO: Self;

    /// `exp` is 0 from the first down; half of it is infinite from the second up.
    const EXP_RANGE: (Self, Self);
    /// Where `expm1` is neither -1 nor infinite.
    const EXPM1_RANGE: (Self, Self);
    /// As `EXP_RANGE`, for `exp2`.
    const EXP2_RANGE: (Self, Self);
    /// ln 2 in two parts; an exponent times the first is exact.
    const LN_2: (Self, Self);
    /// 1 / ln 2 and 1 / ln 10 in two parts; [`HEAD_MASK`](Float::HEAD_MASK) bits times the first are exact.
    const LOG2_E: (Self, Self);
    const LOG10_E: (Self, Self);
    /// log10 2 in two parts; an exponent times the first is exact.
    const LOG10_2: (Self, Self);
    /// π/2 in three parts of full width.
    const FRAC_PI_2: [Self; 3];
    /// The largest argument for which three parts of π/2 are enough.
    const TRIG_LIMIT: Self;
    /// Beyond it, `1 + x²` is `x²` and may overflow.
    const HUGE: Self;
    /// Below it, `x` is `f(x)` to the last bit for every `f(x) = x + O(x²)`.
    const TINY: Self;
    /// `erf` is 1 beyond it.
    const ERF_ONE: Self;
    /// `erfc` is 0 beyond it.
    const ERFC_ZERO: Self;
    /// Bits of the first guess of `x^(-1/3)` at exponent 0, over a power of two: see [`cbrt`].
    const CBRT_GUESS: Self;
    const CBRT_SHIFT: u32;

    /// `(exp r - 1 - r) / r²` on `|r| ≤ ln 2 / 2`.
    const EXP: &'static [Self];
    /// `(2 atanh s / s - 2) / z`, `z = s²`, on `s ≤ (√2 - 1) / (√2 + 1)`.
    const LOG: &'static [Self];
    /// `(sin r / r - 1) / z`, `z = r²`, on `|r| ≤ π/4`.
    const SIN: &'static [Self];
    /// `(cos r - 1 + z/2) / z²`.
    const COS: &'static [Self];
    /// `(asin x / x - 1) / z`, `z = x²`, on `|x| ≤ 1/2`.
    const ASIN: &'static [Self];
    /// `(atan x / x - 1) / z` on `|x| ≤ tan(π/8)`.
    const ATAN: &'static [Self];
    /// `(sinh x / x - 1) / z` on `|x| ≤ 1`.
    const SINH: &'static [Self];
    /// `(tanh x / x - 1) / z` on `|x| ≤ 5/8`.
    const TANH: &'static [Self];
    /// `erf x / x - 1` in `x²`, on `|x| ≤ 1`.
    const ERF: &'static [Self];
    /// `-ln erfc x` on `1 ≤ x ≤ ERF_ONE`, with the error weighted by `erfc x`.
    const ERF_TAIL: &'static [Self];
    /// `exp(x²) erfc x (1 + 2x)` in `t = (x - 4) / (x + 4)`.
    const ERFCX: &'static [Self];

    fn from_f64(x: f64) -> Self;
    fn to_f64(self) -> f64;
    fn to_bits(self) -> Self::Bits;
    fn from_bits(bits: Self::Bits) -> Self;
    fn mul_add(self, b: Self, c: Self) -> Self;
    fn sqrt(self) -> Self;
    fn abs(self) -> Self;
    fn copysign(self, sign: Self) -> Self;
    fn floor(self) -> Self;
    fn ceil(self) -> Self;
    fn round_ties_even(self) -> Self;
    fn trunc(self) -> Self;
    /// The standard library's functions, for arguments beyond [`TRIG_LIMIT`](Float::TRIG_LIMIT).
    fn std_sin(self) -> Self;
    fn std_cos(self) -> Self;
    fn std_tan(self) -> Self;
    /// `x^y` for finite `x > 0`, other cases being the caller's.
    fn pow_positive<I: Isa>(self, y: Self) -> Self;
    /// `sqrt(a² + b²)` for finite arguments.
    fn hypot_finite<I: Isa>(self, b: Self) -> Self;
}

/// `a b + c`, rounded once where that is one instruction.
#[inline(always)]
pub(crate) fn fma<F: Float, I: Isa>(a: F, b: F, c: F) -> F {
    if I::FMA { a.mul_add(b, c) } else { a * b + c }
}

/// The polynomial with the given coefficients, lowest degree first.
///
/// A long one is summed as `even(x²) + x odd(x²)`, a very long one in four such parts: chains of a fraction of the latency,
/// for a few more multiplications.
#[inline(always)]
fn poly<F: Float, I: Isa>(x: F, coefficients: &[F]) -> F {
    let n = coefficients.len();
    if n < 8 {
        return horner::<F, I>(x, coefficients, 0, 1);
    }
    let square = x * x;
    if n < 16 {
        let odd = horner::<F, I>(square, coefficients, 1, 2);
        return fma::<F, I>(x, odd, horner::<F, I>(square, coefficients, 0, 2));
    }
    let fourth = square * square;
    let even = fma::<F, I>(
        square,
        horner::<F, I>(fourth, coefficients, 2, 4),
        horner::<F, I>(fourth, coefficients, 0, 4),
    );
    let odd = fma::<F, I>(
        square,
        horner::<F, I>(fourth, coefficients, 3, 4),
        horner::<F, I>(fourth, coefficients, 1, 4),
    );
    fma::<F, I>(x, odd, even)
}

/// Horner's rule over the coefficients `first`, `first + step` and so on.
#[inline(always)]
fn horner<F: Float, I: Isa>(x: F, coefficients: &[F], first: usize, step: usize) -> F {
    let n = coefficients.len();
    let mut k = n - 1 - (n - 1 - first) % step;
    let mut sum = coefficients[k];
    while k > first {
        k -= step;
        sum = fma::<F, I>(sum, x, coefficients[k]);
    }
    sum
}

/// `a` if the condition holds, else `b`: always a select. The optimiser may turn an `if` into a branch and copy what follows
/// into both arms, before it thinks of vectors.
#[inline(always)]
pub(crate) fn pick<T: Copy>(condition: bool, a: T, b: T) -> T {
    std::hint::select_unpredictable(condition, a, b)
}

/// `a + b` exactly, as the rounded sum and its error.
#[inline(always)]
fn two_sum<F: Float>(a: F, b: F) -> (F, F) {
    let sum = a + b;
    let b_part = sum - a;
    (sum, (a - (sum - b_part)) + (b - b_part))
}

/// `a + b` exactly, if `|a| ≥ |b|`.
#[inline(always)]
fn fast_two_sum<F: Float>(a: F, b: F) -> (F, F) {
    let sum = a + b;
    (sum, (a - sum) + b)
}

/// `a b` exactly, as the rounded product and its error.
#[inline(always)]
fn two_prod<F: Float, I: Isa>(a: F, b: F) -> (F, F) {
    let p = a * b;
    if I::FMA {
        return (p, a.mul_add(b, -p));
    }
    let halves = |x: F| {
        let c = x * F::SPLITTER;
        let head = c - (c - x);
        (head, x - head)
    };
    let ((ah, al), (bh, bl)) = (halves(a), halves(b));
    (p, ((ah * bh - p) + ah * bl + al * bh) + al * bl)
}

/// The leading bits of `x`, few enough that the square is exact.
#[inline(always)]
fn head<F: Float>(x: F) -> F {
    F::from_bits(x.to_bits() & F::HEAD_MASK)
}

/// The nearest integer of a small `x`, and the sum whose low bits hold it.
#[inline(always)]
fn nearest<F: Float>(x: F) -> (F, F::Bits) {
    let shifted = x + F::ROUNDER;
    (shifted - F::ROUNDER, shifted.to_bits())
}

/// `2^k` for an integer `k` in the range of normal exponents.
#[inline(always)]
fn pow2<F: Float>(k: F) -> F {
    F::from_bits((k + F::ROUNDER).to_bits().wrapping_add(F::BIAS) << F::FRACTION)
}

/// The methods of [`Float`] that the standard library has under the same or a similar name.
macro_rules! forward_to_std {
    () => {
        #[inline(always)]
        fn from_f64(x: f64) -> Self {
            x as Self
        }
        #[inline(always)]
        fn to_f64(self) -> f64 {
            self.into()
        }
        #[inline(always)]
        fn to_bits(self) -> Self::Bits {
            Self::to_bits(self)
        }
        #[inline(always)]
        fn from_bits(bits: Self::Bits) -> Self {
            Self::from_bits(bits)
        }
        #[inline(always)]
        fn mul_add(self, b: Self, c: Self) -> Self {
            Self::mul_add(self, b, c)
        }
        #[inline(always)]
        fn sqrt(self) -> Self {
            Self::sqrt(self)
        }
        #[inline(always)]
        fn abs(self) -> Self {
            Self::abs(self)
        }
        #[inline(always)]
        fn copysign(self, sign: Self) -> Self {
            Self::copysign(self, sign)
        }
        #[inline(always)]
        fn floor(self) -> Self {
            Self::floor(self)
        }
        #[inline(always)]
        fn ceil(self) -> Self {
            Self::ceil(self)
        }
        #[inline(always)]
        fn round_ties_even(self) -> Self {
            Self::round_ties_even(self)
        }
        #[inline(always)]
        fn trunc(self) -> Self {
            Self::trunc(self)
        }
        #[inline(always)]
        fn std_sin(self) -> Self {
            self.sin()
        }
        #[inline(always)]
        fn std_cos(self) -> Self {
            self.cos()
        }
        #[inline(always)]
        fn std_tan(self) -> Self {
            self.tan()
        }
    };
}
use forward_to_std;

#[inline(always)]
#[allow(clippy::eq_op)]
pub(crate) fn is_nan<F: Float>(x: F) -> bool {
    x != x
}
