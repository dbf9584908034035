//! Constants and coefficients for `f64`, and the logarithm in two parts that its power needs.

use super::{Float, Isa, exp, fast_two_sum, fma, log, pick, poly, two_prod, two_sum};

/// 2/3 in two parts.
const TWO_THIRDS: (f64, f64) = (2.0 / 3.0, 3.700743415417188e-17);
/// `(2 atanh s / s - 2 - 2 z / 3) / z²`, `z = s²`, on the range of [`Float::LOG`].
const LOG_LOW: &[f64] = &[
    0.39999999999999974,
    0.28571428571446433,
    0.22222222217243046,
    0.18181818903813118,
    0.15384554713819026,
    0.13336396577450876,
    0.11673273872888595,
    0.12001453454328806,
];

/// `ln x` in two parts, with an error of about 2^-66 relative to the larger term.
#[inline(always)]
fn ln_in_two<I: Isa>(x: f64) -> (f64, f64) {
    let (k, f) = log::split(x);
    // s = f / (2 + f) and z = s², each with its remainder.
    let (d, d_low) = fast_two_sum(2.0, f);
    let s = f / d;
    let (product, error) = two_prod::<f64, I>(s, d);
    let s_low = (((f - product) - error) - s * d_low) / d;
    let (z, error) = two_prod::<f64, I>(s, s);
    let z_low = fma::<f64, I>(2.0 * s, s_low, error);
    // ln(1 + f) = s (2 + z (2/3 + z tail)); only the tail is small enough for plain arithmetic.
    let (a, a_low) = fast_two_sum(TWO_THIRDS.0, z * poly::<f64, I>(z, LOG_LOW));
    let a_low = fma::<f64, I>(z_low, 0.4, a_low + TWO_THIRDS.1);
    let (b, error) = two_prod::<f64, I>(z, a);
    let b_low = error + fma::<f64, I>(z, a_low, z_low * a);
    let (c, error) = fast_two_sum(2.0, b);
    let c_low = error + b_low;
    let (log, error) = two_prod::<f64, I>(s, c);
    let log_low = error + fma::<f64, I>(s, c_low, s_low * c);
    let (sum, error) = two_sum(k * f64::LN_2.0, log);
    (sum, error + fma::<f64, I>(k, f64::LN_2.1, log_low))
}

/// 2^-600 and 2^600.
const SMALL: f64 = f64::from_bits((1023 - 600) << 52);
const LARGE: f64 = f64::from_bits((1023 + 600) << 52);

impl Float for f64 {
    type Bits = u64;

    const FRACTION: u32 = 52;
    const WIDTH: u32 = 64;
    const BIAS: u64 = 1023;
    const BIAS_VALUE: f64 = 1023.0;
    const ONE_BIT: u64 = 1;
    const FRACTION_MASK: u64 = (1 << 52) - 1;
    const SIGN_MASK: u64 = 1 << 63;
    const HEAD_MASK: u64 = !0 << 32;
    const SPLITTER: f64 = 134_217_729.0;
    const ROUNDER: f64 = 6_755_399_441_055_744.0;
    const UNIT_ULP: f64 = 4_503_599_627_370_496.0;
    const MIN_POSITIVE: f64 = f64::MIN_POSITIVE;
    const LIFT: f64 = 18_014_398_509_481_984.0;
    const LIFT_EXPONENT: f64 = 54.0;
    const LIFT_CUBE_ROOT: f64 = 1.0 / 262_144.0;
    const INFINITY: f64 = f64::INFINITY;
    const NAN: f64 = f64::NAN;
    const ZERO: f64 = 0.0;
    const SQRT_HALF: f64 = std::f64::consts::FRAC_1_SQRT_2;
    const HALF: f64 = 0.5;
    const ONE: f64 = 1.0;
    const TWO: f64 = 2.0;
    const EXP_RANGE: (f64, f64) = (-746.0, 711.0);
    const EXPM1_RANGE: (f64, f64) = (-40.0, 710.0);
    const EXP2_RANGE: (f64, f64) = (-1076.0, 1024.0);
    const LN_2: (f64, f64) = (0.6931471805598903, 5.497923018708371e-14);
    const LOG2_E: (f64, f64) = (1.4426950216293335, 1.9259629911266175e-8);
    const LOG10_E: (f64, f64) = (0.4342944771051407, 4.798111141615973e-9);
    const LOG10_2: (f64, f64) = (0.30102999566395283, 2.8363394551044964e-14);
    const FRAC_PI_2: [f64; 3] = [std::f64::consts::FRAC_PI_2, 6.123233995736766e-17, -1.4973849048591698e-33];
    const TRIG_LIMIT: f64 = 1_073_741_824.0;
    const HUGE: f64 = 1e150;
    const TINY: f64 = 1e-17;
    const ERF_ONE: f64 = 6.0;
    const ERFC_ZERO: f64 = 28.0;
    const CBRT_GUESS: f64 = 1_430_194_645.0;
    const CBRT_SHIFT: u32 = 32;

    const EXP: &'static [f64] = &[
        0.5,
        0.16666666666666685,
        0.04166666666666672,
        0.008333333333314936,
        0.0013888888888861598,
        0.0001984126990133695,
        2.4801587367589213e-05,
        2.755723008757288e-06,
        2.7557238419923024e-07,
        2.5113654805576757e-08,
        2.0925450153785547e-09,
    ];
    const LOG: &'static [f64] = &[
        0.666666666666674,
        0.3999999999938469,
        0.28571428749071,
        0.22222197874624358,
        0.18183601572137703,
        0.15313069905226007,
        0.1480605785046791,
    ];
    const SIN: &'static [f64] = &[
        -0.16666666666666666,
        0.00833333333333332,
        -0.00019841269841251933,
        2.7557319212582254e-06,
        -2.5052104496107963e-08,
        1.6058314045700693e-10,
        -7.576106525475727e-13,
    ];
    const COS: &'static [f64] = &[
        0.04166666666666658,
        -0.0013888888888870536,
        2.4801587287244747e-05,
        -2.7557313704963816e-07,
        2.0875635037374564e-09,
        -1.1355065409068715e-11,
    ];
    const ASIN: &'static [f64] = &[
        0.1666666666666676,
        0.07499999999970997,
        0.04464285717430074,
        0.030381942726351436,
        0.02237221439686639,
        0.017351623457583357,
        0.013980676388246932,
        0.011400132004304689,
        0.010773256451690326,
        0.0037332587328423017,
        0.021641408484405354,
        -0.020904939185592837,
        0.03256950285085093,
    ];
    const ATAN: &'static [f64] = &[
        -0.33333333333333187,
        0.19999999999951487,
        -0.1428571428000972,
        0.11111110774982694,
        -0.09090897532714387,
        0.07692056476336083,
        -0.06663064000592937,
        0.058476127574892754,
        -0.05038115518701018,
        0.03803559569795575,
        -0.017876686148611338,
    ];
    const SINH: &'static [f64] = &[
        0.16666666666666669,
        0.008333333333333135,
        0.00019841269841439825,
        2.7557319154765e-06,
        2.5052123477716892e-08,
        1.6057234854769625e-10,
        7.759462749433681e-13,
    ];
    const TANH: &'static [f64] = &[
        -0.33333333333333304,
        0.1333333333332874,
        -0.0539682539655235,
        0.021869488454401592,
        -0.008863234090072435,
        0.003592111826479799,
        -0.0014557120590749926,
        0.0005893928675669939,
        -0.00023684719767828598,
        9.126802182674112e-05,
        -2.9893595573509272e-05,
        5.912883022607925e-06,
    ];
    const ERF: &'static [f64] = &[
        0.1283791670955126,
        -0.3761263890318375,
        0.11283791670954882,
        -0.026866170645077334,
        0.005223977624823223,
        -0.0008548326981129666,
        0.00012055331122299266,
        -1.4925595519506043e-05,
        1.6461004480962034e-06,
        -1.6350354461959655e-07,
        1.4660051998394848e-08,
        -1.1373902296430911e-09,
        5.958930743134941e-11,
    ];
    const ERF_TAIL: &'static [f64] = &[
        1.8798437709715575e-07,
        1.1283772467124984,
        0.6366288685878174,
        0.10274617119439328,
        -0.01907602064742056,
        -0.0002835929041251134,
        0.0017724441343589393,
        -0.0006441519087521294,
        4.6860173224075534e-05,
        6.925667315525887e-05,
        -4.455478467186715e-05,
        1.6346879158097487e-05,
        -4.2813439034336365e-06,
        8.408311407248583e-07,
        -1.2412152858473851e-07,
        1.3437428506203865e-08,
        -1.010029660236035e-09,
        4.715836444790307e-11,
        -1.0305267765735484e-12,
    ];
    const ERFCX: &'static [f64] = &[
        1.2329951186255526,
        -0.13962111684056255,
        0.015379652102618938,
        0.06809705425469771,
        -0.10103906603624946,
        0.09373283499817757,
        -0.06633036581368564,
        0.037167515540080805,
        -0.01619773403757308,
        0.0050319699578082345,
        -0.0007577734519136094,
        -0.00019925661309076783,
        0.00015062250299510804,
        -2.4399337402157948e-05,
        -1.1224739705683885e-05,
        5.709427944537345e-06,
        2.9955194568417643e-07,
        -8.236270905181612e-07,
        6.70428844020208e-08,
        1.0649199925843159e-07,
        -1.2234962634539236e-08,
        -1.0741170648968525e-08,
    ];

    super::forward_to_std!();

    #[inline(always)]
    fn pow_positive<I: Isa>(self, y: f64) -> f64 {
        // A larger exponent gives 0, 1 or infinity all the same, and would overflow on the way.
        let y = exp::clamp(y, (-1e21, 1e21));
        let (log, log_low) = ln_in_two::<I>(self);
        let (product, error) = two_prod::<f64, I>(y, log);
        let low = fma::<f64, I>(y, log_low, error);
        exp::exp_times::<f64, I>(product, pick(product.abs() > 750.0, 0.0, low), 1.0)
    }
    #[inline(always)]
    fn hypot_finite<I: Isa>(self, b: f64) -> f64 {
        let (a, b) = (self.abs(), b.abs());
        let large = pick(a > b, a, b);
        // Powers of two that keep the squares from overflow and underflow.
        let (huge, tiny) = (large > 1e150, large < 1e-140);
        let down = pick(huge, SMALL, pick(tiny, LARGE, 1.0));
        let up = pick(huge, LARGE, pick(tiny, SMALL, 1.0));
        let (a, b) = (a * down, b * down);
        fma::<f64, I>(a, a, b * b).sqrt() * up
    }
}
