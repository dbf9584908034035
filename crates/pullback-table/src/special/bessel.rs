//! Bessel functions of integer order, and the spherical ones.
//!
//! Small arguments by the power series, which does not cancel there; then Miller's backward recurrence, normalised by a sum that is known; large
//! arguments by Hankel's asymptotic series. Higher orders by the recurrence in the direction in which it is stable.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_PI, PI};

const EULER_GAMMA: f64 = 0.5772156649015329;

/// From here on Hankel's series reaches full precision for the orders 0 and 1.
const FAR: f64 = 25.0;

/// Above it a backward recurrence is scaled down.
const LARGE: f64 = 1e250;

/// The order as an integer, rounded down, if there is a function of it here.
fn order(n: f64) -> Option<i32> {
    let n = n.floor();
    (n.abs() <= 1000.0).then_some(n as i32)
}

/// -1 for an odd order, else 1.
fn parity(n: i32) -> f64 {
    if n % 2 == 0 { 1.0 } else { -1.0 }
}

/// Hankel's `P` and `Q` of order `n` for large `x`: `J = √(2/πx) (P cos χ - Q sin χ)`.
fn hankel(n: i32, x: f64) -> (f64, f64) {
    let square = 4.0 * f64::from(n) * f64::from(n);
    let (mut p, mut q, mut term) = (1.0, 0.0, 1.0);
    for k in 1..60 {
        let odd = f64::from(2 * k - 1);
        term *= (square - odd * odd) / (f64::from(k) * 8.0 * x);
        match k % 4 {
            1 => q += term,
            2 => p -= term,
            3 => q -= term,
            _ => p += term,
        }
        if term.abs() < 1e-18 {
            break;
        }
    }
    (p, q)
}

/// `cos χ` and `sin χ` with `χ = x - π/4` for order 0, `x - 3π/4` for order 1, by addition theorems, so that the phase is not rounded.
fn phase(n: i32, x: f64) -> (f64, f64) {
    let (s, c) = x.sin_cos();
    match n {
        0 => ((c + s) * FRAC_1_SQRT_2, (s - c) * FRAC_1_SQRT_2),
        _ => ((s - c) * FRAC_1_SQRT_2, -(c + s) * FRAC_1_SQRT_2),
    }
}

/// `J₀`, `J₁`, `Y₀` and `Y₁` for `x > 0`.
struct Lowest {
    j: [f64; 2],
    y: [f64; 2],
}

fn lowest(x: f64) -> Lowest {
    if x >= FAR {
        let both = |n: i32| {
            let ((p, q), (c, s)) = (hankel(n, x), phase(n, x));
            let size = (FRAC_2_PI / x).sqrt();
            (size * (p * c - q * s), size * (p * s + q * c))
        };
        let ((j0, y0), (j1, y1)) = (both(0), both(1));
        return Lowest { j: [j0, j1], y: [y0, y1] };
    }
    if x < 1e-8 {
        let y0 = FRAC_2_PI * ((0.5 * x).ln() + EULER_GAMMA);
        return Lowest { j: [1.0, 0.5 * x], y: [y0, -FRAC_2_PI / x] };
    }
    // Miller's recurrence, with the sums of J₀ + 2 ΣJ₂ₖ = 1 and of Neumann's series for Y.
    let start = 2 * ((1.3 * x + 40.0) as i32 / 2);
    let (mut above, mut here) = (0.0, 1e-280);
    let (mut one, mut even, mut odd) = (0.0, 0.0, 0.0);
    for k in (0..start).rev() {
        (above, here) = (here, 2.0 * f64::from(k + 1) / x * here - above);
        // `here` is J of order k.
        if k > 0 && k % 2 == 0 {
            one += here;
            even += parity(k / 2) * here / f64::from(k / 2);
        } else if k > 1 {
            let j = f64::from(k / 2);
            odd += parity(k / 2) * (2.0 * j + 1.0) / (j * (j + 1.0)) * here;
        }
        if here.abs() > LARGE {
            (above, here) = (above / LARGE, here / LARGE);
            (one, even, odd) = (one / LARGE, even / LARGE, odd / LARGE);
        }
    }
    let norm = 1.0 / (here + 2.0 * one);
    let (j0, j1) = (here * norm, above * norm);
    let log = (0.5 * x).ln() + EULER_GAMMA;
    let y0 = FRAC_2_PI * (log * j0 - 2.0 * even * norm);
    let y1 = FRAC_2_PI * ((log - 1.0) * j1 - j0 / x - odd * norm);
    Lowest { j: [j0, j1], y: [y0, y1] }
}

/// `Σ (±x²/4)^k / (k! (n+1)..(n+k)) · (x/2)^n / n!`.
fn power_series(n: i32, x: f64, sign: f64) -> f64 {
    let mut term: f64 = (1..=n).map(|k| 0.5 * x / f64::from(k)).product();
    let (z, mut sum) = (sign * 0.25 * x * x, term);
    for k in 1..200 {
        term *= z / (f64::from(k) * f64::from(n + k));
        sum += term;
        if term.abs() <= sum.abs() * 1e-18 {
            break;
        }
    }
    sum
}

/// The Bessel function of the first kind `Jₙ(x)`. The order is rounded down; it is NaN where that is beyond 1000.
///
/// ```
/// assert!((pullback_table::special::bessel_j(1.0, 0.0) - 0.7651976865579666).abs() < 1e-15);
/// ```
pub fn bessel_j(x: f64, n: f64) -> f64 {
    let Some(n) = order(n) else { return f64::NAN };
    let sign = if x < 0.0 { parity(n) } else { 1.0 } * if n < 0 { parity(n) } else { 1.0 };
    let (x, n) = (x.abs(), n.abs());
    if x == f64::INFINITY {
        return 0.0;
    }
    if x.is_nan() {
        return x;
    }
    // There every term of the series is a quarter of the one before, or less.
    if x * x <= f64::from(n + 1) {
        return sign * power_series(n, x, -1.0);
    }
    if n < 2 || f64::from(n) < x {
        let [mut before, mut here] = lowest(x).j;
        if n == 0 {
            return sign * before;
        }
        for k in 1..n {
            (before, here) = (here, 2.0 * f64::from(k) / x * here - before);
        }
        return sign * here;
    }
    let start = 2 * ((f64::from(n) + (60.0 * f64::from(n)).sqrt() + 40.0) as i32 / 2);
    let (mut above, mut here) = (0.0, 1e-280);
    let (mut one, mut wanted) = (0.0, 0.0);
    for k in (0..start).rev() {
        (above, here) = (here, 2.0 * f64::from(k + 1) / x * here - above);
        if k == n {
            wanted = here;
        }
        if k > 0 && k % 2 == 0 {
            one += here;
        }
        if here.abs() > LARGE {
            (above, here) = (above / LARGE, here / LARGE);
            (one, wanted) = (one / LARGE, wanted / LARGE);
        }
    }
    sign * wanted / (here + 2.0 * one)
}

/// The Bessel function of the second kind `Yₙ(x)`; minus infinity at 0, NaN below. The order is rounded down; it is NaN where that is
/// beyond 1000.
///
/// ```
/// assert!((pullback_table::special::bessel_y(1.0, 0.0) - 0.08825696421567697).abs() < 1e-15);
/// ```
pub fn bessel_y(x: f64, n: f64) -> f64 {
    let Some(n) = order(n) else { return f64::NAN };
    if x.is_nan() || x < 0.0 {
        return f64::NAN;
    }
    let sign = if n < 0 { parity(n) } else { 1.0 };
    let n = n.abs();
    if x == 0.0 {
        return sign * f64::NEG_INFINITY;
    }
    if x == f64::INFINITY {
        return 0.0;
    }
    let [mut before, mut here] = lowest(x).y;
    if n == 0 {
        return before;
    }
    for k in 1..n {
        (before, here) = (here, 2.0 * f64::from(k) / x * here - before);
        if here == f64::NEG_INFINITY {
            break;
        }
    }
    sign * here
}

/// The modified Bessel function `exp(-|x|) Iₙ(x)`. The order is rounded down; it is NaN where that is beyond 1000.
///
/// ```
/// assert!((pullback_table::special::bessel_ie(1.0, 0.0) - 0.46575960759364043).abs() < 1e-15);
/// ```
pub fn bessel_ie(x: f64, n: f64) -> f64 {
    let Some(n) = order(n) else { return f64::NAN };
    let n = n.abs();
    let sign = if x < 0.0 { parity(n) } else { 1.0 };
    let x = x.abs();
    if x.is_nan() {
        return x;
    }
    if x == f64::INFINITY {
        return 0.0;
    }
    if x * x <= f64::from(n + 1) {
        return sign * power_series(n, x, 1.0) * (-x).exp();
    }
    let square = 4.0 * f64::from(n) * f64::from(n);
    if x > 50.0 && x > square {
        let (mut sum, mut term) = (1.0, 1.0);
        for k in 1..60 {
            let odd = f64::from(2 * k - 1);
            term *= -(square - odd * odd) / (f64::from(k) * 8.0 * x);
            sum += term;
            if term.abs() < 1e-18 {
                break;
            }
        }
        return sign * sum / (2.0 * PI * x).sqrt();
    }
    // Backward, normalised by I₀ + 2 ΣIₖ = exp(x). All terms are positive.
    let start = n + 30 + (90.0 * x).sqrt() as i32;
    let (mut above, mut here) = (0.0, 1e-280);
    let (mut rest, mut wanted) = (0.0, 0.0);
    for k in (0..start).rev() {
        (above, here) = (here, 2.0 * f64::from(k + 1) / x * here + above);
        if k == n {
            wanted = here;
        }
        if k > 0 {
            rest += here;
        }
        if here > LARGE {
            (above, here) = (above / LARGE, here / LARGE);
            (rest, wanted) = (rest / LARGE, wanted / LARGE);
        }
    }
    sign * wanted / (here + 2.0 * rest)
}

/// The modified Bessel function of the first kind `Iₙ(x)`. The order is rounded down; it is NaN where that is beyond 1000.
///
/// ```
/// assert!((pullback_table::special::bessel_i(1.0, 0.0) - 1.2660658777520084).abs() < 1e-15);
/// ```
pub fn bessel_i(x: f64, n: f64) -> f64 {
    let Some(whole) = order(n) else { return f64::NAN };
    if x.is_infinite() {
        return if x < 0.0 { parity(whole) * f64::INFINITY } else { x };
    }
    // The function may be finite where the exponential is not.
    let half = (0.5 * x.abs()).exp();
    half * bessel_ie(x, n) * half
}

/// The spherical Bessel function of the first kind `jₙ(x)`, of which `j₀(x) = sin(x) / x`. The order is rounded down; it is NaN for orders below
/// 0 and above 1000.
///
/// ```
/// assert!((pullback_table::special::spherical_j(2.0, 1.0) - 0.4353977749799916).abs() < 1e-15);
/// ```
pub fn spherical_j(x: f64, n: f64) -> f64 {
    let Some(n) = order(n).filter(|n| *n >= 0) else { return f64::NAN };
    let sign = if x < 0.0 { parity(n) } else { 1.0 };
    let x = x.abs();
    if x.is_nan() {
        return x;
    }
    if x == f64::INFINITY {
        return 0.0;
    }
    if x * x <= f64::from(2 * n + 3) {
        let mut term: f64 = (1..=n).map(|k| x / f64::from(2 * k + 1)).product();
        let mut sum = term;
        for k in 1..100 {
            term *= -0.5 * x * x / (f64::from(k) * f64::from(2 * (n + k) + 1));
            sum += term;
            if term.abs() <= sum.abs() * 1e-18 {
                break;
            }
        }
        return sign * sum;
    }
    let (s, c) = x.sin_cos();
    let (zero, one) = (s / x, (s / x - c) / x);
    if n == 0 {
        return zero;
    }
    if f64::from(n) < x {
        let (mut before, mut here) = (zero, one);
        for k in 1..n {
            (before, here) = (here, f64::from(2 * k + 1) / x * here - before);
        }
        return sign * here;
    }
    let start = n + (60.0 * f64::from(n)).sqrt() as i32 + 40;
    let (mut above, mut here, mut wanted) = (0.0, 1e-280, 0.0);
    for k in (0..start).rev() {
        (above, here) = (here, f64::from(2 * k + 3) / x * here - above);
        if k == n {
            wanted = here;
        }
        if here.abs() > LARGE {
            (above, here, wanted) = (above / LARGE, here / LARGE, wanted / LARGE);
        }
    }
    // By the larger of the two, which are never zero together.
    sign * if zero.abs() > one.abs() { wanted / here * zero } else { wanted / above * one }
}

/// `sin(πx) / (πx)`, which is 1 at 0.
///
/// ```
/// assert_eq!(pullback_table::special::sinc(0.5), std::f64::consts::FRAC_2_PI);
/// ```
pub fn sinc(x: f64) -> f64 {
    if x.is_infinite() {
        return 0.0;
    }
    // The sine of the distance from the nearest integer, which is exact.
    let whole = x.round_ties_even();
    let sine = (PI * (x - whole)).sin();
    let sine = if whole % 2.0 == 0.0 { sine } else { -sine };
    if x.abs() < 1e-300 { 1.0 } else { sine / (PI * x) }
}
