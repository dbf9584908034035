//! The error function and its complement for `f64`, which the standard library lacks.
//!
//! Four pieces with rational approximations of minimax type (the coefficients published with Sun's
//! fdlibm): near zero `erf(x) = x + x R(x²)`; around one `erf(x) = 0.845.. + R(|x| - 1)`; and for the two tails
//! `erfc(x) = exp(-x²) exp(R(1/x²)) / x`, where `-x²` is split so that its rounding does not show.

/// A polynomial with the coefficients from the constant term up.
#[inline]
fn poly<const N: usize>(x: f64, coefficients: [f64; N]) -> f64 {
    coefficients.iter().rev().fold(0.0, |s, &c| s * x + c)
}

/// `(erf(x) - x) / x` for `|x| < 0.84375`, given `x²`.
fn near_zero(z: f64) -> f64 {
    let p = [
        1.28379167095512558561e-01,
        -3.25042107247001499370e-01,
        -2.84817495755985104766e-02,
        -5.77027029648944159157e-03,
        -2.37630166566501626084e-05,
    ];
    let q = [
        1.0,
        3.97917223959155352819e-01,
        6.50222499887672944485e-02,
        5.08130628187576562776e-03,
        1.32494738004321644526e-04,
        -3.96022827877536812320e-06,
    ];
    poly(z, p) / poly(z, q)
}

/// A short number near `erf(1)`, so that adding the rest loses nothing.
const AT_ONE: f64 = 8.45062911510467529297e-01;

/// `erf(x) - AT_ONE` for `x` in `[0.84375, 1.25)`, given `x - 1`.
fn near_one(s: f64) -> f64 {
    let p = [
        -2.36211856075265944077e-03,
        4.14856118683748331666e-01,
        -3.72207876035701323847e-01,
        3.18346619901161753674e-01,
        -1.10894694282396677476e-01,
        3.54783043256182359371e-02,
        -2.16637559486879084300e-03,
    ];
    let q = [
        1.0,
        1.06420880400844228286e-01,
        5.40397917702171048937e-01,
        7.18286544141962662868e-02,
        1.26171219808761642112e-01,
        1.36370839120290507362e-02,
        1.19844998467991074170e-02,
    ];
    poly(s, p) / poly(s, q)
}

/// `erfc(x)` for `x >= 1.25`.
fn tail(x: f64) -> f64 {
    if x > 27.3 {
        return 0.0;
    }
    let s = 1.0 / (x * x);
    let r = if x < 1.0 / 0.35 {
        let p = [
            -9.86494403484714822705e-03,
            -6.93858572707181764372e-01,
            -1.05586262253232909814e+01,
            -6.23753324503260060396e+01,
            -1.62396669462573470355e+02,
            -1.84605092906711035994e+02,
            -8.12874355063065934246e+01,
            -9.81432934416914548592e+00,
        ];
        let q = [
            1.0,
            1.96512716674392571292e+01,
            1.37657754143519042600e+02,
            4.34565877475229228821e+02,
            6.45387271733267880336e+02,
            4.29008140027567833386e+02,
            1.08635005541779435134e+02,
            6.57024977031928170135e+00,
            -6.04244152148580987438e-02,
        ];
        poly(s, p) / poly(s, q)
    } else {
        let p = [
            -9.86494292470009928597e-03,
            -7.99283237680523006574e-01,
            -1.77579549177547519889e+01,
            -1.60636384855821916062e+02,
            -6.37566443368389627722e+02,
            -1.02509513161107724954e+03,
            -4.83519191608651397019e+02,
        ];
        let q = [
            1.0,
            3.03380607434824582924e+01,
            3.25792512996573918826e+02,
            1.53672958608443695994e+03,
            3.19985821950859553908e+03,
            2.55305040643316442583e+03,
            4.74528541206955367215e+02,
            -2.24409524465858183362e+01,
        ];
        poly(s, p) / poly(s, q)
    };
    // z has half the digits of x, so z² is exact and x² = z² + (x - z)(x + z).
    let z = f64::from_bits(x.to_bits() & !0xffff_ffff);
    (-z * z - 0.5625).exp() * ((z - x) * (z + x) + r).exp() / x
}

/// The error function, `2/√π ∫₀ˣ exp(-t²) dt`.
pub(crate) fn erf(x: f64) -> f64 {
    let a = x.abs();
    if x.is_nan() {
        x
    } else if a < 0.84375 {
        x + x * near_zero(x * x)
    } else if a < 1.25 {
        (AT_ONE + near_one(a - 1.0)).copysign(x)
    } else {
        (1.0 - tail(a)).copysign(x)
    }
}

/// The complementary error function, `1 - erf(x)`, with small relative error for large `x` too.
pub(crate) fn erfc(x: f64) -> f64 {
    let a = x.abs();
    if x.is_nan() {
        x
    } else if x < 0.25 && a < 0.84375 {
        1.0 - (x + x * near_zero(x * x))
    } else if a < 0.84375 {
        0.5 - (x - 0.5 + x * near_zero(x * x))
    } else if a < 1.25 {
        if x > 0.0 { 1.0 - AT_ONE - near_one(a - 1.0) } else { 1.0 + (AT_ONE + near_one(a - 1.0)) }
    } else if x > 0.0 {
        tail(x)
    } else {
        2.0 - tail(a)
    }
}
