//! The exponential function without branches, for loops that the compiler turns into vector code.
//!
//! `exp(x) = 2^n exp(r)` with `n = round(x / ln 2)` and `|r| <= ln 2 / 2`, where a Taylor polynomial is
//! accurate to a fraction of a rounding error. `2^n` is applied in two halves, so that results that
//! overflow or are subnormal come out right.

macro_rules! exp {
    ($name:ident, $T:ident, $Bits:ty, mantissa $mantissa:literal, bias $bias:literal, magic $magic:literal,
     range [$low:literal, $high:literal], ln2 [$hi:literal, $lo:literal], inverse factorials [$($c:literal)*]) => {
        /// `exp(x)` within one unit in the last place, or two without fused multiply-add.
        #[inline(always)]
        #[allow(clippy::excessive_precision)]
        pub(super) fn $name<const FMA: bool>(x: $T) -> $T {
            #[inline(always)]
            fn fma<const FMA: bool>(a: $T, b: $T, c: $T) -> $T {
                if FMA { a.mul_add(b, c) } else { a * b + c }
            }
            // Adding this rounds to an integer, and leaves that integer in the low bits.
            const MAGIC: $T = $magic;
            // Beyond these limits the result is 0 or infinite anyway. A NaN passes both tests. A masked score is often far below: what
            // it gives is put in at the end, because products that underflow take twice the time.
            let tiny = x < $low;
            let x = if tiny { 0.0 } else { x };
            let x = if x > $high { $high } else { x };
            let n = fma::<FMA>(x, std::$T::consts::LOG2_E, MAGIC) - MAGIC;
            let r = fma::<FMA>(n, -$lo, fma::<FMA>(n, -$hi, x));
            let mut p: $T = 0.0;
            $(p = fma::<FMA>(p, r, 1.0 / $c);)*
            // 1 + (r + r² p): the small parts are added first.
            let y = fma::<FMA>(r * r, p, r) + 1.0;
            let half = fma::<FMA>(n, 0.5, MAGIC);
            let other = (n - (half - MAGIC)) + MAGIC;
            let power = |k: $T| <$T>::from_bits((k.to_bits().wrapping_add($bias as $Bits)) << $mantissa);
            let y = y * power(half) * power(other);
            if tiny { 0.0 } else { y }
        }
    };
}

// ln 2 in two parts; the first has trailing zeros, so that its product with `n` is exact.
exp! { exp_f32, f32, u32, mantissa 23, bias 127, magic 12582912.0, range [-104.0, 89.0],
ln2 [0.693_359_375, -2.121_944_4e-4],
inverse factorials [5040.0 720.0 120.0 24.0 6.0 2.0] }
exp! { exp_f64, f64, u64, mantissa 52, bias 1023, magic 6755399441055744.0, range [-746.0, 710.0],
ln2 [0.693_147_180_369_123_816_490, 1.908_214_929_270_587_700_02e-10],
inverse factorials [6227020800.0 479001600.0 39916800.0 3628800.0 362880.0 40320.0 5040.0 720.0 120.0 24.0 6.0 2.0] }

#[cfg(test)]
mod tests {
    use super::*;

    /// Errors in units of the last place of the result, against the standard library in f64.
    fn worst<const FMA: bool>() -> (f64, f64) {
        let (mut worst32, mut worst64) = (0f64, 0f64);
        for i in 0..400_000 {
            let x = (i as f64 / 400_000.0 - 0.5) * 174.0;
            let x32 = x as f32;
            let exact = (x32 as f64).exp();
            let ulp = (exact as f32).max(f32::MIN_POSITIVE);
            let ulp = (f32::from_bits(ulp.to_bits() + 1) - ulp) as f64;
            worst32 = worst32.max((exp_f32::<FMA>(x32) as f64 - exact).abs() / ulp);
            let x = x * 8.0;
            let exact = x.exp();
            let ulp = exact.max(f64::MIN_POSITIVE);
            let ulp = f64::from_bits(ulp.to_bits() + 1) - ulp;
            if exact.is_finite() {
                worst64 = worst64.max((exp_f64::<FMA>(x) - exact).abs() / ulp);
            }
        }
        (worst32, worst64)
    }

    #[test]
    fn errors_are_below_two_units() {
        let plain = worst::<false>();
        assert!(plain.0 < 2.0 && plain.1 < 2.0, "{plain:?}");
        let fused = worst::<true>();
        assert!(fused.0 < 1.1 && fused.1 < 1.6, "{fused:?}");
    }

    #[test]
    fn special_arguments() {
        assert_eq!([exp_f32::<false>(0.0), exp_f32::<false>(-0.0)], [1.0, 1.0]);
        assert_eq!([exp_f64::<false>(0.0), exp_f64::<false>(-0.0)], [1.0, 1.0]);
        assert_eq!([exp_f32::<false>(f32::NEG_INFINITY), exp_f32::<false>(-1e30)], [0.0, 0.0]);
        assert_eq!([exp_f64::<false>(f64::NEG_INFINITY), exp_f64::<false>(-1e300)], [0.0, 0.0]);
        assert_eq!([exp_f32::<false>(f32::INFINITY), exp_f32::<false>(88.8)], [f32::INFINITY; 2]);
        assert_eq!([exp_f64::<false>(f64::INFINITY), exp_f64::<false>(709.9)], [f64::INFINITY; 2]);
        assert!(exp_f32::<false>(f32::NAN).is_nan() && exp_f64::<false>(f64::NAN).is_nan());
        assert!(exp_f32::<false>(88.7).is_finite() && exp_f64::<false>(709.7).is_finite());
        assert!(exp_f32::<false>(-103.0) > 0.0 && exp_f64::<false>(-745.0) > 0.0);
    }
}
