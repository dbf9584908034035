//! Constants and coefficients for `f32`.

use super::exp::{clamp, exp_times};
use super::{Float, Isa, fma, ln};

impl Float for f32 {
    type Bits = u32;

    const FRACTION: u32 = 23;
    const WIDTH: u32 = 32;
    const BIAS: u32 = 127;
    const BIAS_VALUE: f32 = 127.0;
    const ONE_BIT: u32 = 1;
    const FRACTION_MASK: u32 = (1 << 23) - 1;
    const SIGN_MASK: u32 = 1 << 31;
    const HEAD_MASK: u32 = !0 << 12;
    const SPLITTER: f32 = 4097.0;
    const ROUNDER: f32 = 12_582_912.0;
    const UNIT_ULP: f32 = 8_388_608.0;
    const MIN_POSITIVE: f32 = f32::MIN_POSITIVE;
    const LIFT: f32 = 16_777_216.0;
    const LIFT_EXPONENT: f32 = 24.0;
    const LIFT_CUBE_ROOT: f32 = 1.0 / 256.0;
    const INFINITY: f32 = f32::INFINITY;
    const NAN: f32 = f32::NAN;
    const ZERO: f32 = 0.0;
    const SQRT_HALF: f32 = std::f32::consts::FRAC_1_SQRT_2;
    const HALF: f32 = 0.5;
    const ONE: f32 = 1.0;
    const TWO: f32 = 2.0;
    const EXP_RANGE: (f32, f32) = (-104.0, 90.0);
    const EXPM1_RANGE: (f32, f32) = (-20.0, 89.0);
    const EXP2_RANGE: (f32, f32) = (-151.0, 128.0);
    const LN_2: (f32, f32) = (0.69314575, 1.4286068e-6);
    const LOG2_E: (f32, f32) = (1.4423828, 0.0003122284);
    const LOG10_E: (f32, f32) = (0.43408203, 0.00021245066);
    const LOG10_2: (f32, f32) = (0.3010254, 4.605039e-6);
    const FRAC_PI_2: [f32; 3] = [std::f32::consts::FRAC_PI_2, -4.371139e-8, -1.7151245e-15];
    const TRIG_LIMIT: f32 = 131_072.0;
    const HUGE: f32 = 1e18;
    const TINY: f32 = 1e-9;
    const ERF_ONE: f32 = 4.0;
    const ERFC_ZERO: f32 = 10.5;
    const CBRT_GUESS: f32 = 1_386_687.0;
    const CBRT_SHIFT: u32 = 10;

    const EXP: &'static [f32] = &[0.5, 0.16666509, 0.041666247, 0.008369865, 0.0013947593];
    const LOG: &'static [f32] = &[0.6666678, 0.3997709, 0.29883555];
    const SIN: &'static [f32] = &[-0.16666667, 0.008333329, -0.00019839172, 2.7167996e-06];
    const COS: &'static [f32] = &[0.041666646, -0.0013887223, 2.4422226e-05];
    const ASIN: &'static [f32] = &[0.1666666, 0.07500504, 0.0445173, 0.03180376, 0.014456048, 0.037489783];
    const ATAN: &'static [f32] = &[-0.33333313, 0.19998439, -0.14242981, 0.10590127, -0.060695924];
    const SINH: &'static [f32] = &[0.16666667, 0.0083333505, 0.0001983603, 2.8176125e-06];
    const TANH: &'static [f32] =
        &[-0.3333333, 0.13333191, -0.053944826, 0.021689959, -0.008150428, 0.002117896];
    const ERF: &'static [f32] =
        &[0.12837917, -0.37612626, 0.11283597, -0.026854329, 0.005189312, -0.0008018855, 7.8824974e-05];
    const ERF_TAIL: &'static [f32] =
        &[0.00034196235, 1.1270889, 0.63814247, 0.10311145, -0.021841707, 0.0029489459, -0.00018655171];
    const ERFCX: &'static [f32] = &[
        1.2329952,
        -0.13962105,
        0.015379442,
        0.06809322,
        -0.101035796,
        0.093791716,
        -0.06631897,
        0.036821585,
        -0.016508538,
        0.0056888205,
        0.00025826695,
    ];

    super::forward_to_std!();

    // Both in f64, whose spare bits make the plain formulas accurate.
    #[inline(always)]
    fn pow_positive<I: Isa>(self, y: f32) -> f32 {
        let y = clamp(y, (-1e30, 1e30));
        exp_times::<f64, I>(f64::from(y) * ln::<f64, I>(f64::from(self)), 0.0, 1.0) as f32
    }
    #[inline(always)]
    fn hypot_finite<I: Isa>(self, b: f32) -> f32 {
        let (a, b) = (f64::from(self), f64::from(b));
        fma::<f64, I>(a, a, b * b).sqrt() as f32
    }
}
