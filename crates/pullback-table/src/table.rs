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
/// - The value is `base` where each number type brings its own implementation, an operator in parentheses, or a formula in braces.
/// - A literal partial of 1 or -1 costs nothing, and 0 says that the function is piecewise constant. `gate` multiplies so that zero
///   times anything is zero. A partial that would be 0 times infinity where the derivative is decided to be 0 is gated by a `step`, which
///   has no derivatives of its own: it is then 0 to every order.
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
            /// Gaussian error linear unit, `x Φ(x)` with the exact normal distribution Φ.
            Gelu gelu try_gelu(x) = { x * ((x * -std::f64::consts::FRAC_1_SQRT_2).erfc() * 0.5) };
                d = [(x * -std::f64::consts::FRAC_1_SQRT_2).erfc() * 0.5
                    + x * (x * x * -0.5).exp() * (0.5 * std::f64::consts::FRAC_2_SQRT_PI * std::f64::consts::FRAC_1_SQRT_2)];
                reads [x]; { Nonlinear; domain any }
            /// Sigmoid linear unit, `x sigmoid(x)`.
            Silu silu try_silu(x) = { x * x.sigmoid() }; d = [x.sigmoid() * (x * (-x).sigmoid() + 1.0)]; reads [x]; { Nonlinear; domain any }
            /// Error function.
            Erf erf try_erf(x) = base; d = [(-(x * x)).exp() * std::f64::consts::FRAC_2_SQRT_PI]; reads [x]; { Nonlinear; domain any; cost 25 }
            /// Complementary error function, `1 - erf(x)`, accurate for large `x`.
            Erfc erfc try_erfc(x) = base; d = [(-(x * x)).exp() * -std::f64::consts::FRAC_2_SQRT_PI]; reads [x]; { Nonlinear; domain any; cost 25 }

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
            Rem rem try_rem(a, b) = base; d = [1.0, -(a / b).trunc()]; reads [] [a b]; { Nonlinear; domain fractional above_one; cost 100; integer Division(i64::wrapping_rem) }
            /// Power; `0^0` is 1.
            Pow pow try_pow(a, b) = base; d = [b.gate(a.pow(b - 1.0)), y.xlogy(a)]; reads [a b] [a y]; { Nonlinear; domain positive any; cost 50 }
            /// `a ln(b)`, and 0 where `a` is 0.
            Xlogy xlogy try_xlogy(a, b) = { a * a.abs().sign().gate(b.ln()) }; d = [b.ln(), a.gate(b.recip())]; reads [b] [a b]; { Nonlinear; domain nonzero positive }
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
        }
    };
}
