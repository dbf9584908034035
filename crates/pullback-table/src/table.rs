//! The table itself.

/// Passes every row of the elementwise table to the macro `consumer`: name, value, partial derivatives, which primal values each
/// partial reads, and what else is known of the function.
///
/// A row is read by every part of Pullback that knows elementwise functions: the tensor operations and their kernels, the scalar
/// types, the compiled programs, the expression language and the documentation. So its expressions are written in the vocabulary of
/// [`Number`](crate::Number) alone, with literals on the right (`-(y * y) + 1.0`), which the same tokens satisfy over `&Tensor`, over
/// every scalar type and over lanes. `y` is the value of the row.
///
/// ```text
/// /// documentation
/// Struct method try_method(args) = value; d = [partial, ..]; reads [primal names] ..; { Linearity; domain domain ..; fact; .. }
/// ```
///
/// - The value is `base` where each number type brings its own implementation, an operator in parentheses, or a formula in braces. It is
///   `special` where all types compute it by the function of its name in [`special`](crate::special), one number after the other.
/// - A literal partial of 1 or -1 costs nothing, and 0 says that the function is piecewise constant. `gate` multiplies so that zero
///   times anything is zero. A partial that would be 0 times infinity where the derivative is decided to be 0 is gated by a `step`, which
///   has no derivatives of its own: it is then 0 to every order. `x.filled(2.0)` is the number 2 as an argument.
/// - The facts are methods of [`Row`](crate::Row) with their arguments: `cost 15`, which every row has that is not a formula,
///   `commutes`, `limited`, `integer Binary(i64::max)`.
///
/// A consumer names what it reads and leaves the facts in braces alone (`$facts:tt`), so that new ones need no change in it:
///
/// ```
/// macro_rules! names {
///     ($($(#[$doc:meta])* $P:ident $m:ident $try:ident($($x:ident),+) = $value:tt; d = $d:tt; reads $([$($r:ident)*])+; $facts:tt)*) => {
///         const NAMES: &[&str] = &[$(stringify!($m)),*];
///     };
/// }
/// pullback_table::elementwise_table!(names);
/// assert!(NAMES.contains(&"tanh"));
/// ```
///
/// More input for the consumer may follow its name in braces; it comes before the rows.
#[macro_export]
macro_rules! elementwise_table {
    ($consumer:ident $({ $($more:tt)* })?) => {
        $consumer! {
            $({ $($more)* })?
            /// Negation, `-x`.
            Neg neg try_neg(x) = (-x); d = [-1.0]; reads []; { Linear; domain any; cost 1; integer Unary(i64::wrapping_neg) }
            /// Absolute value; the derivative at 0 is 0.
            Abs abs try_abs(x) = base; d = [x.sign()]; reads [x]; { Nonlinear; domain nonzero; cost 1; integer Unary(i64::wrapping_abs) }
            /// Sign: -1, 0 or 1; NaN stays NaN.
            Sign sign try_sign(x) = base; d = [0.0]; reads []; { Nonlinear; domain nonzero; cost 1; integer Unary(i64::signum) }
            /// Heaviside step: 1 where `x > 0`, else 0. The derivative of `relu`.
            Step step try_step(x) = base; d = [0.0]; reads []; { Nonlinear; domain nonzero; cost 1 }
            /// Largest integer not above `x`.
            Floor floor try_floor(x) = base; d = [0.0]; reads []; { Nonlinear; domain fractional; cost 1 }
            /// Smallest integer not below `x`.
            Ceil ceil try_ceil(x) = base; d = [0.0]; reads []; { Nonlinear; domain fractional; cost 1 }
            /// Nearest integer, halves to even.
            Round round try_round(x) = base; d = [0.0]; reads []; { Nonlinear; domain fractional; cost 1 }
            /// Integer part, towards zero.
            Trunc trunc try_trunc(x) = base; d = [0.0]; reads []; { Nonlinear; domain fractional; cost 1 }
            /// Square, `x * x`.
            Square square try_square(x) = { x * x }; d = [x * 2.0]; reads [x]; { Nonlinear; domain any; integer Unary(|x| x.wrapping_mul(x)) }
            /// Square root.
            Sqrt sqrt try_sqrt(x) = base; d = [y.recip() * 0.5]; reads [y]; { Nonlinear; domain positive; cost 6 }
            /// Reciprocal square root, `1 / sqrt(x)`.
            Rsqrt rsqrt try_rsqrt(x) = { x.sqrt().recip() }; d = [y * y * (y * -0.5)]; reads [y]; { Nonlinear; domain positive }
            /// Cube root.
            Cbrt cbrt try_cbrt(x) = base; d = [(y * y).recip() * (1.0 / 3.0)]; reads [y]; { Nonlinear; domain nonzero; cost 25 }
            /// Reciprocal, `1 / x`.
            Recip recip try_recip(x) = base; d = [-(y * y)]; reads [y]; { Nonlinear; domain nonzero; cost 6 }
            /// Exponential function.
            Exp exp try_exp(x) = base; d = [y]; reads [y]; { Nonlinear; domain any; cost 15 }
            /// Power of two.
            Exp2 exp2 try_exp2(x) = base; d = [y * std::f64::consts::LN_2]; reads [y]; { Nonlinear; domain any; cost 15 }
            /// `exp(x) - 1`, accurate near 0.
            Expm1 expm1 try_expm1(x) = base; d = [x.exp()]; reads [x]; { Nonlinear; domain any; cost 15 }
            /// Natural logarithm.
            Ln ln try_ln(x) = base; d = [x.recip()]; reads [x]; { Nonlinear; domain positive; cost 15 }
            /// Logarithm to base 2.
            Log2 log2 try_log2(x) = base; d = [x.recip() * std::f64::consts::LOG2_E]; reads [x]; { Nonlinear; domain positive; cost 15 }
            /// Logarithm to base 10.
            Log10 log10 try_log10(x) = base; d = [x.recip() * std::f64::consts::LOG10_E]; reads [x]; { Nonlinear; domain positive; cost 15 }
            /// `ln(1 + x)`, accurate near 0.
            Log1p log1p try_log1p(x) = base; d = [(x + 1.0).recip()]; reads [x]; { Nonlinear; domain positive; cost 15 }
            /// Sine.
            Sin sin try_sin(x) = base; d = [x.cos()]; reads [x]; { Nonlinear; domain any; cost 15; limited }
            /// Cosine.
            Cos cos try_cos(x) = base; d = [-x.sin()]; reads [x]; { Nonlinear; domain any; cost 15; limited }
            /// Tangent.
            Tan tan try_tan(x) = base; d = [y * y + 1.0]; reads [y]; { Nonlinear; domain unit; cost 15; limited }
            /// Inverse sine.
            Asin asin try_asin(x) = base; d = [((-x + 1.0) * (x + 1.0)).rsqrt()]; reads [x]; { Nonlinear; domain unit; cost 15 }
            /// Inverse cosine.
            Acos acos try_acos(x) = base; d = [-((-x + 1.0) * (x + 1.0)).rsqrt()]; reads [x]; { Nonlinear; domain unit; cost 15 }
            /// Inverse tangent.
            Atan atan try_atan(x) = base; d = [(x * x + 1.0).recip()]; reads [x]; { Nonlinear; domain any; cost 15 }
            /// Hyperbolic sine.
            Sinh sinh try_sinh(x) = base; d = [x.cosh()]; reads [x]; { Nonlinear; domain any; cost 25 }
            /// Hyperbolic cosine.
            Cosh cosh try_cosh(x) = base; d = [x.sinh()]; reads [x]; { Nonlinear; domain any; cost 25 }
            /// Hyperbolic tangent.
            Tanh tanh try_tanh(x) = base; d = [(-y + 1.0) * (y + 1.0)]; reads [y]; { Nonlinear; domain any; cost 15 }
            /// Inverse hyperbolic sine.
            Asinh asinh try_asinh(x) = base; d = [(x * x + 1.0).rsqrt()]; reads [x]; { Nonlinear; domain any; cost 25 }
            /// Inverse hyperbolic cosine.
            Acosh acosh try_acosh(x) = base; d = [((x - 1.0).sqrt() * (x + 1.0).sqrt()).recip()]; reads [x]; { Nonlinear; domain above_one; cost 25 }
            /// Inverse hyperbolic tangent.
            Atanh atanh try_atanh(x) = base; d = [((-x + 1.0) * (x + 1.0)).recip()]; reads [x]; { Nonlinear; domain unit; cost 25 }
            /// Logistic function, `1 / (1 + exp(-x))`.
            Sigmoid sigmoid try_sigmoid(x) = base; d = [y * (-y + 1.0)]; reads [y]; { Nonlinear; domain any; cost 15 }
            /// `ln(1 + exp(x))`, without overflow.
            Softplus softplus try_softplus(x) = { x.relu() + (-x.abs()).exp().log1p() }; d = [x.sigmoid()]; reads [x]; { Nonlinear; domain any }
            /// Rectifier, `max(x, 0)`; the derivative at 0 is 0.
            Relu relu try_relu(x) = base; d = [x.step()]; reads [x]; { Nonlinear; domain nonzero; cost 1 }
            /// Logarithm of the logistic function, `-ln(1 + exp(-x))`, without overflow.
            LogSigmoid log_sigmoid try_log_sigmoid(x) = { -((-x).softplus()) }; d = [(-x).sigmoid()]; reads [x]; { Nonlinear; domain any }
            /// Gaussian error linear unit, `x Φ(x)` with the exact normal distribution Φ.
            Gelu gelu try_gelu(x) = { x * ((x * -std::f64::consts::FRAC_1_SQRT_2).erfc() * 0.5) };
                d = [(x * -std::f64::consts::FRAC_1_SQRT_2).erfc() * 0.5
                    + x * (x * x * -0.5).exp() * (0.5 * std::f64::consts::FRAC_2_SQRT_PI * std::f64::consts::FRAC_1_SQRT_2)];
                reads [x]; { Nonlinear; domain any }
            /// Gaussian error linear unit with the approximation `Φ(x) ≈ (1 + tanh(√(2/π) (x + 0.044715 x³))) / 2`.
            GeluTanh gelu_tanh try_gelu_tanh(x) = { ((x * x * 0.044715 + 1.0) * x * 1.5957691216057308).sigmoid().gate(x) };
                d = [((x * x * 0.044715 + 1.0) * x * 1.5957691216057308).sigmoid()
                    * (((x * x * 0.044715 + 1.0) * x * -1.5957691216057308).sigmoid().gate((x * x * 0.134145 + 1.0) * x * 1.5957691216057308) + 1.0)];
                reads [x]; { Nonlinear; domain any }
            /// Sigmoid linear unit, `x sigmoid(x)`.
            Silu silu try_silu(x) = { x * x.sigmoid() }; d = [x.sigmoid() * (x * (-x).sigmoid() + 1.0)]; reads [x]; { Nonlinear; domain any }
            /// Mish, `x tanh(ln(1 + exp(x)))`.
            Mish mish try_mish(x) = { x.softplus().tanh().gate(x) };
                d = [x.softplus().tanh() + ((-x.softplus().tanh() + 1.0) * (x.softplus().tanh() + 1.0)).gate(x.sigmoid().gate(x))];
                reads [x]; { Nonlinear; domain any }
            /// Softsign, `x / (1 + |x|)`.
            Softsign softsign try_softsign(x) = { (x.recip() + x.sign()).recip() }; d = [(x.abs() + 1.0).square().recip()]; reads [x]; { Nonlinear; domain nonzero }
            /// Error function.
            Erf erf try_erf(x) = base; d = [(-(x * x)).exp() * std::f64::consts::FRAC_2_SQRT_PI]; reads [x]; { Nonlinear; domain any; cost 25 }
            /// Complementary error function, `1 - erf(x)`, accurate for large `x`.
            Erfc erfc try_erfc(x) = base; d = [(-(x * x)).exp() * -std::f64::consts::FRAC_2_SQRT_PI]; reads [x]; { Nonlinear; domain any; cost 25 }
            /// Scaled complementary error function, `exp(x²) erfc(x)`.
            Erfcx erfcx try_erfcx(x) = special; d = [x * y * 2.0 - std::f64::consts::FRAC_2_SQRT_PI]; reads [x y]; { Nonlinear; domain any; cost 200 }
            /// Inverse of the error function; infinite at -1 and 1, NaN beyond.
            Erfinv erfinv try_erfinv(x) = special; d = [(y * y).exp() * (1.0 / std::f64::consts::FRAC_2_SQRT_PI)]; reads [y]; { Nonlinear; domain unit; cost 1000 }
            /// Quantile of the standard normal distribution: the `y` with `Φ(y) = x`; infinite at 0 and 1, NaN beyond.
            Ndtri ndtri try_ndtri(x) = special; d = [(y * y * 0.5).exp() * 2.5066282746310007]; reads [y]; { Nonlinear; domain probability; cost 1000 }
            /// Logarithm of the standard normal distribution, `ln Φ(x)`, accurate in both tails.
            LogNdtr log_ndtr try_log_ndtr(x) = special; d = [(x * -std::f64::consts::FRAC_1_SQRT_2).erfcx().recip() * 0.7978845608028654];
                reads [x]; { Nonlinear; domain any; cost 400 }
            /// Logarithm of the absolute value of the gamma function; infinite at 0 and the negative integers.
            Lgamma lgamma try_lgamma(x) = special; d = [x.digamma()]; reads [x]; { Nonlinear; domain positive; cost 300 }
            /// Derivative of `lgamma`; NaN at 0 and the negative integers.
            Digamma digamma try_digamma(x) = special; d = [x.polygamma(x.filled(1.0))]; reads [x]; { Nonlinear; domain positive; cost 300 }
            /// `sin(πx) / (πx)`, which is 1 at 0.
            Sinc sinc try_sinc(x) = special; d = [(x * std::f64::consts::PI).spherical_j(x.filled(1.0)) * -std::f64::consts::PI];
                reads [x]; { Nonlinear; domain any; cost 200 }

            /// Sum.
            Add add try_add(a, b) = (a + b); d = [1.0, 1.0]; reads [] []; { Linear; domain any any; cost 1; commutes; integer Binary(i64::wrapping_add) }
            /// Difference.
            Sub sub try_sub(a, b) = (a - b); d = [1.0, -1.0]; reads [] []; { Linear; domain any any; cost 1; integer Binary(i64::wrapping_sub) }
            /// Product.
            Mul mul try_mul(a, b) = (a * b); d = [b, a]; reads [b] [a]; { Multilinear; domain any any; cost 1; commutes; integer Binary(i64::wrapping_mul) }
            /// Product in which an exact zero on either side wins over infinities and NaN on the other. Of two zeros the left one
            /// is the result.
            ///
            /// The chain rule is written with it: what does not depend on a variable gets the derivative 0, however steep a
            /// function is before or after. Because either zero wins, the product is associative at zeros and infinities too, so that the
            /// order in which a mode multiplies the partials along a path does not show in the result.
            Gate gate try_gate(a, b) = base; d = [b, a]; reads [b] [a]; { Multilinear; domain nonzero any; cost 1 }
            /// Quotient.
            Div div try_div(a, b) = (a / b); d = [b.recip(), -(y / b)]; reads [b] [b y]; { Nonlinear; domain any nonzero; cost 6; integer Division(i64::wrapping_div) }
            /// Remainder of the division towards zero, with the sign of `a`, as Rust's `%`.
            Rem rem try_rem(a, b) = base; d = [1.0, -(a / b).trunc()]; reads [] [a b]; { Nonlinear; domain dividend divisor; cost 100; integer Division(i64::wrapping_rem) }
            /// Remainder of the division rounded down, with the sign of `b`, as Python's `%`.
            Remainder remainder try_remainder(a, b) = base; d = [1.0, ((y - a) / b).round()]; reads [] [a b y];
                { Nonlinear; domain dividend divisor; cost 100; integer Division(floor_rem) }
            /// Power; `0^0` is 1.
            Pow pow try_pow(a, b) = base; d = [b.gate(a.pow(b - 1.0)), y.xlogy(a)]; reads [a b] [a y]; { Nonlinear; domain positive any; cost 50 }
            /// `a ln(b)`, and 0 where `a` is 0.
            Xlogy xlogy try_xlogy(a, b) = { a * a.abs().sign().gate(b.ln()) }; d = [b.ln(), a.gate(b.recip())]; reads [b] [a b]; { Nonlinear; domain nonzero positive }
            /// `a ln(1 + b)`, and 0 where `a` is 0.
            Xlog1py xlog1py try_xlog1py(a, b) = { a * a.abs().sign().gate(b.log1p()) }; d = [b.log1p(), a.gate((b + 1.0).recip())]; reads [b] [a b];
                { Nonlinear; domain nonzero positive }
            /// The size of `a` with the sign of `b`; the derivative at `a = 0` is 0.
            Copysign copysign try_copysign(a, b) = base; d = [a.sign().copysign(b) * a.sign(), 0.0]; reads [a b] []; { Nonlinear; domain nonzero nonzero; cost 1 }
            /// Leaky rectifier: `x` where it is positive, else `b x`; the derivative at 0 is `b`.
            LeakyRelu leaky_relu try_leaky_relu(x, b) = { x.relu() + (-x.step() + 1.0).gate(x).gate(b) };
                d = [x.step() + (-x.step() + 1.0).gate(b), (-x.step() + 1.0).gate(x)]; reads [x b] [x]; { Nonlinear; domain nonzero any }
            /// Exponential linear unit: `x` where it is positive, else `b (exp(x) - 1)`; the derivative at 0 is `b`.
            Elu elu try_elu(x, b) = { x.relu() + (-x.step() + 1.0).gate(x).expm1().gate(b) };
                d = [x.step() + (-x.step() + 1.0).gate(b * (-x.step() + 1.0).gate(x).exp()), (-x.step() + 1.0).gate(x).expm1()];
                reads [x b] [x]; { Nonlinear; domain nonzero any }
            /// The larger of two; equal arguments share the derivative.
            Maximum maximum try_maximum(a, b) = base; d = [a.share(b), b.share(a)]; reads [a b] [a b]; { Nonlinear; domain any any; cost 1; integer Binary(i64::max) }
            /// The smaller of two; equal arguments share the derivative.
            Minimum minimum try_minimum(a, b) = base; d = [b.share(a), a.share(b)]; reads [a b] [a b]; { Nonlinear; domain any any; cost 1; integer Binary(i64::min) }
            /// 1 where `a > b`, 1/2 where they are equal, else 0: who gets the derivative of a maximum.
            Share share try_share(a, b) = base; d = [0.0, 0.0]; reads [] []; { Nonlinear; domain any any; cost 1 }
            /// Angle of the point `(b, a)`, in `(-π, π]`; the derivative at the origin is 0.
            Atan2 atan2 try_atan2(a, b) = base;
                d = [b * (a * a + b * b).step().gate((a * a + b * b).recip()), -(a * (a * a + b * b).step().gate((a * a + b * b).recip()))];
                reads [a b] [a b]; { Nonlinear; domain nonzero nonzero; cost 25 }
            /// `sqrt(a² + b²)`; the derivative at the origin is 0.
            Hypot hypot try_hypot(a, b) = base; d = [a.gate(y.recip()), b.gate(y.recip())]; reads [a y] [b y]; { Nonlinear; domain nonzero nonzero; cost 12 }
            /// `ln(exp(a) + exp(b))`, without overflow; infinities that are equal share the derivative.
            Logaddexp logaddexp try_logaddexp(a, b) = { a.maximum(b) + (-(a - b).abs().step().gate((a - b).abs())).exp().log1p() };
                d = [((a - b).abs() + 1.0).step().gate(a - b).sigmoid(), ((a - b).abs() + 1.0).step().gate(b - a).sigmoid()]; reads [a b] [a b]; { Nonlinear; domain any any }
            /// Logarithm of the beta function, `lgamma(a) + lgamma(b) - lgamma(a + b)`, for positive arguments.
            Betaln betaln try_betaln(a, b) = special; d = [a.digamma() - (a + b).digamma(), b.digamma() - (a + b).digamma()];
                reads [a b] [a b]; { Nonlinear; domain positive positive; cost 600; commutes }
            /// Derivative of order `n` of `digamma`. The order is rounded down, and the function constant between; NaN for orders below 0 and
            /// above 100.
            Polygamma polygamma try_polygamma(x, n) = special; d = [x.polygamma(n + 1.0), 0.0]; reads [x n] []; { Nonlinear; domain positive order; cost 600 }
            /// Bessel function of the first kind, of order `n`. The order is rounded down, and the function constant between; NaN where it is
            /// beyond 1000.
            BesselJ bessel_j try_bessel_j(x, n) = special; d = [(x.bessel_j(n - 1.0) - x.bessel_j(n + 1.0)) * 0.5, 0.0]; reads [x n] [];
                { Nonlinear; domain any order; cost 1000 }
            /// Bessel function of the second kind, of order `n`, for positive `x`. The order is rounded down, and the function constant between;
            /// NaN where it is beyond 1000.
            BesselY bessel_y try_bessel_y(x, n) = special; d = [(x.bessel_y(n - 1.0) - x.bessel_y(n + 1.0)) * 0.5, 0.0]; reads [x n] [];
                { Nonlinear; domain positive order; cost 1000 }
            /// Modified Bessel function of the first kind, of order `n`. The order is rounded down, and the function constant between; NaN where
            /// it is beyond 1000.
            BesselI bessel_i try_bessel_i(x, n) = special; d = [(x.bessel_i(n - 1.0) + x.bessel_i(n + 1.0)) * 0.5, 0.0]; reads [x n] [];
                { Nonlinear; domain any order; cost 1000 }
            /// `exp(-|x|)` times the modified Bessel function `bessel_i`; the derivative at 0 is that of `bessel_i`.
            BesselIe bessel_ie try_bessel_ie(x, n) = special; d = [(x.bessel_ie(n - 1.0) + x.bessel_ie(n + 1.0)) * 0.5 - x.sign() * y, 0.0];
                reads [x n y] []; { Nonlinear; domain nonzero order; cost 1000 }
            /// Spherical Bessel function of the first kind, of order `n`; that of order 0 is `sin(x) / x`. The order is rounded down, and the function
            /// constant between; NaN for orders below 0 and above 1000.
            SphericalJ spherical_j try_spherical_j(x, n) = special;
                d = [(n.floor().gate(x.spherical_j(n - 1.0)) - (n.floor() + 1.0) * x.spherical_j(n + 1.0)) / (n.floor() * 2.0 + 1.0), 0.0];
                reads [x n] []; { Nonlinear; domain any order; cost 1000 }
        }
    };
}
