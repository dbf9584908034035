//! Plain floating-point numbers in the vocabulary of the table, by the standard library.

use crate::Number;

/// The methods of [`Number`] for a type that is a plain `$float`, or wraps one: `$wrap` makes it of the float, `$bare` gives it back.
#[doc(hidden)]
#[macro_export]
macro_rules! float_methods {
    ($float:ident, $wrap:expr, $bare:expr) => {
        $crate::float_methods! { @std $float, $wrap, $bare,
            abs abs, floor floor, ceil ceil, round round_ties_even, trunc trunc, sqrt sqrt, cbrt cbrt,
            recip recip, exp exp, exp2 exp2, expm1 exp_m1, ln ln, log2 log2, log10 log10, log1p ln_1p,
            sin sin, cos cos, tan tan, asin asin, acos acos, atan atan, sinh sinh, cosh cosh, tanh tanh,
            asinh asinh, acosh acosh, atanh atanh
        }
        $crate::float_methods! { @special $float, $wrap, $bare,
            erfcx(x), erfinv(x), ndtri(x), log_ndtr(x), lgamma(x), digamma(x), sinc(x), betaln(a, b), polygamma(x, n),
            bessel_j(x, n), bessel_y(x, n), bessel_i(x, n), bessel_ie(x, n), spherical_j(x, n)
        }
        $crate::float_methods! { @each $float, $wrap, $bare,
            // A zero and NaN are their own sign.
            sign(x) = if x == 0.0 || x.is_nan() { x } else { $float::signum(x) };
            step(x) = if x > 0.0 { 1.0 } else { 0.0 };
            relu(x) = if x > 0.0 || x.is_nan() { x } else { 0.0 };
            sigmoid(x) = {
                // exp of the negative magnitude cannot overflow, and keeps the small side accurate.
                let e = (-x.abs()).exp();
                if x < 0.0 { e / (1.0 + e) } else { 1.0 / (1.0 + e) }
            };
            erf(x) = $crate::special::erf(x.into()) as $float;
            erfc(x) = $crate::special::erfc(x.into()) as $float;
            gate(a, b) = if a == 0.0 || b == 0.0 { 0.0 } else { a * b };
            rem(a, b) = a % b;
            remainder(a, b) = {
                let r = a % b;
                if r == 0.0 { r.copysign(b) } else if (r < 0.0) != (b < 0.0) { r + b } else { r }
            };
            copysign(a, b) = $float::copysign(a, b);
            pow(a, b) = $float::powf(a, b);
            maximum(a, b) = if a > b || a.is_nan() { a } else { b };
            minimum(a, b) = if a < b || a.is_nan() { a } else { b };
            share(a, b) = if a > b { 1.0 } else if a == b { 0.5 } else { 0.0 };
            atan2(a, b) = $float::atan2(a, b);
            hypot(a, b) = $float::hypot(a, b);
        }
    };
    (@special $float:ident, $wrap:expr, $bare:expr, $($m:ident($x:ident $(, $b:ident)?)),+) => {$(
        fn $m(self $(, $b: Self)?) -> Self {
            let $x: f64 = $bare(self).into();
            $(let $b: f64 = $bare($b).into();)?
            $wrap($crate::special::$m($x $(, $b)?) as $float)
        }
    )+};
    (@std $float:ident, $wrap:expr, $bare:expr, $($m:ident $std:ident),+) => {$(
        #[inline(always)]
        fn $m(self) -> Self {
            $wrap($float::$std($bare(self)))
        }
    )+};
    (@each $float:ident, $wrap:expr, $bare:expr, $($m:ident($x:ident $(, $b:ident)?) = $value:expr;)+) => {$(
        #[inline(always)]
        fn $m(self $(, $b: Self)?) -> Self {
            let $x: $float = $bare(self);
            $(let $b: $float = $bare($b);)?
            $wrap($value)
        }
    )+};
}

impl Number for f64 {
    float_methods! { f64, std::convert::identity, std::convert::identity }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn corners() {
        assert_eq!(
            [0.5, 1.5, 2.5, -0.5, -1.5, 0.4999999999999999].map(Number::round),
            [0.0, 2.0, 2.0, 0.0, -2.0, 0.0]
        );
        assert!(Number::sign(-0.0f64).is_sign_negative() && Number::sign(f64::NAN).is_nan());
        assert_eq!((Number::relu(-1.0), Number::step(0.0), Number::relu(2.0)), (0.0, 0.0, 2.0));
        assert!(Number::relu(f64::NAN).is_nan() && Number::maximum(1.0, f64::NAN).is_nan());
        assert_eq!((Number::gate(0.0, f64::INFINITY), Number::gate(f64::NAN, 0.0)), (0.0, 0.0));
        assert_eq!((Number::sigmoid(-800.0), Number::sigmoid(800.0)), (0.0, 1.0));
        assert_eq!(
            (Number::share(1.0, 1.0), Number::share(2.0, 1.0), Number::share(1.0, 2.0)),
            (0.5, 1.0, 0.0)
        );
    }
}
