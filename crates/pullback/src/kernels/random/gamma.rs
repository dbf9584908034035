//! The logarithm of a gamma variable as a function of its shape, with derivatives: `y(α)` with `P(α, eʸ) = u`, where `P` is the regularised
//! lower incomplete gamma function, and `u` is drawn evenly and held fixed.
//!
//! A rejection sampler would be faster, but what it makes of fixed random numbers jumps with `α`, and its derivative is not that of the
//! distribution. Inverting the distribution function makes the draw a smooth function of `α`, whose derivative is the one of implicit
//! reparameterisation (Figurnov, Mohamed, Mnih 2018), and whose higher derivatives are as good.

use super::jet::Jet;
use super::normal;
use std::f64::consts::TAU;

/// The highest derivative there is.
pub(crate) const MAX_ORDER: usize = 7;

/// From this shape on the quantile is a short series in `α^(-1/2)`; below, the distribution function is inverted.
const LARGE: f64 = 1e4;

/// The derivative of an order of `y(α)`, for `u` in `(0, 1)`.
pub(crate) fn ln_quantile(alpha: f64, u: f64, order: usize) -> f64 {
    match alpha {
        // y is (ln u) / α at first, and ln α in the end.
        0.0 => return if order.is_multiple_of(2) { f64::NEG_INFINITY } else { f64::INFINITY },
        f64::INFINITY => return if order == 0 { alpha } else { 0.0 },
        _ if alpha < 0.0 || alpha.is_nan() => return f64::NAN,
        _ => {}
    }
    match order {
        0 => derivative::<1>(alpha, u, 0),
        1 => derivative::<2>(alpha, u, 1),
        2 | 3 => derivative::<4>(alpha, u, order),
        _ => derivative::<{ MAX_ORDER + 1 }>(alpha, u, order),
    }
}

fn derivative<const N: usize>(alpha: f64, u: f64, order: usize) -> f64 {
    let factorial: f64 = (1..=order).map(|k| k as f64).product();
    let y = if alpha < LARGE { inverted::<N>(alpha, u) } else { expanded::<N>(alpha, u) };
    y.0[order] * factorial
}

/// `ln Γ(a + 1)` for `a > 0`.
fn ln_gamma_plus_one<const N: usize>(a: Jet<N>) -> Jet<N> {
    // Stirling's series from 10 on, where seven terms are enough for all digits.
    let (mut z, mut shift) = (a + 1.0, Jet::constant(1.0));
    while z.value() < 10.0 {
        shift = shift * z;
        z = z + 1.0;
    }
    const C: [f64; 7] =
        [1.0 / 12.0, -1.0 / 360.0, 1.0 / 1260.0, -1.0 / 1680.0, 1.0 / 1188.0, -691.0 / 360360.0, 1.0 / 156.0];
    let r = Jet::constant(1.0) / z;
    let rr = r * r;
    let series = C.iter().rev().fold(Jet::constant(0.0), |s, &c| s * rr + c) * r;
    (z + -0.5) * z.ln() - z + 0.5 * TAU.ln() + series - shift.ln()
}

/// `ln P(α, eʸ)`, or `ln (1 - P)`, of a shape with its `ln Γ(α + 1)`.
fn ln_tail<const N: usize>(alpha: Jet<N>, ln_gamma: Jet<N>, y: Jet<N>, upper: bool) -> Jet<N> {
    let x = y.exp();
    let power = alpha * y - x - ln_gamma;
    let (tail, is_upper) = if x.value() < alpha.value() + 1.0 {
        // P = x^α e^-x / Γ(α + 1) (1 + x / (α + 1) + x² / (α + 1)(α + 2) + ..)
        let (mut term, mut sum, mut a) = (Jet::constant(1.0), Jet::constant(1.0), alpha);
        for _ in 0..20_000 {
            a = a + 1.0;
            term = term * x / a;
            sum = sum + term;
            if term.is_small(sum, 1e-17) {
                break;
            }
        }
        (power + sum.ln(), false)
    } else {
        // 1 - P = x^α e^-x / Γ(α) by its continued fraction, as Lentz evaluates it.
        let mut b = x - alpha + 1.0;
        let mut d = Jet::constant(1.0) / b;
        let (mut c, mut h) = (Jet::constant(1e300), d);
        for k in 1..20_000 {
            let k = k as f64;
            let an = (alpha + -k).scale(k);
            b = b + 2.0;
            d = Jet::constant(1.0) / (an * d + b);
            c = b + an / c;
            let factor = c * d;
            h = h * factor;
            if (factor + -1.0).is_small(Jet::constant(1.0), 1e-16) {
                break;
            }
        }
        (power + alpha.ln() + h.ln(), true)
    };
    if is_upper == upper { tail } else { (-tail.exp() + 1.0).ln() }
}

/// Newton's method on the logarithm of the smaller tail, which is concave in `y`: it converges from everywhere.
fn inverted<const N: usize>(alpha: f64, u: f64) -> Jet<N> {
    let (q, upper) = (1.0 - u, u > 0.5);
    let goal = if upper { q.ln() } else { u.ln() };
    let shape = Jet::<1>::constant(alpha);
    let ln_gamma = ln_gamma_plus_one(shape);
    let slope = |y: f64, tail: f64| {
        let s = (alpha * y - y.exp() - ln_gamma.value() + alpha.ln() - tail).exp();
        if upper { -s } else { s }
    };
    let mut y = first_guess(alpha, u, ln_gamma.value());
    for _ in 0..100 {
        let tail = ln_tail(shape, ln_gamma, Jet::constant(y), upper).value();
        let step = ((goal - tail) / slope(y, tail)).clamp(-3.0 - y.abs(), 3.0);
        y += step;
        // The next step is of the order of this one's square times the curvature.
        if step.abs() <= 1e-9 * (1.0 + y.abs()) / (1.0 + alpha.sqrt()) {
            break;
        }
    }
    let mut jet = Jet::constant(y);
    if N > 1 {
        // Each pass makes one more coefficient right.
        let shape = Jet::variable(alpha);
        let ln_gamma = ln_gamma_plus_one(shape);
        let slope = slope(y, goal);
        for k in 1..N {
            jet.0[k] -= ln_tail(shape, ln_gamma, jet, upper).0[k] / slope;
        }
    }
    jet
}

fn first_guess(alpha: f64, u: f64, ln_gamma: f64) -> f64 {
    // P = x^α / Γ(α + 1) for a small x. Wilson and Hilferty: the third root of x / α is nearly normal.
    let small = (u.ln() + ln_gamma) / alpha;
    let root = 1.0 - 1.0 / (9.0 * alpha) + normal::quantile(u, 1.0 - u) / (3.0 * alpha.sqrt());
    match alpha >= 1.0 && root > 0.3 {
        true => alpha.ln() + 3.0 * root.ln(),
        false => small,
    }
}

/// Cornish and Fisher's expansion around the normal quantile, with the coefficients of Goldberg and Levine (1946). From [`LARGE`] on the
/// first term left out is below 1e-14 of the result, eight deviations out.
fn expanded<const N: usize>(alpha: f64, u: f64) -> Jet<N> {
    let z = normal::quantile(u, 1.0 - u);
    let (z2, z3) = (z * z, z * z * z);
    let terms = [
        1.0,
        z,
        (z2 - 1.0) / 3.0,
        (z3 - 7.0 * z) / 36.0,
        -(6.0 * z2 * z2 + 14.0 * z2 - 32.0) / 1620.0,
        (9.0 * z2 * z3 + 256.0 * z3 - 433.0 * z) / 38880.0,
        (12.0 * z3 * z3 - 243.0 * z2 * z2 - 923.0 * z2 + 1472.0) / 204120.0,
        -(3753.0 * z2 * z2 * z3 + 4353.0 * z2 * z3 - 289517.0 * z3 - 289717.0 * z) / 146966400.0,
    ];
    let ln_alpha = Jet::<N>::variable(alpha).ln();
    let r = ln_alpha.scale(-0.5).exp();
    ln_alpha + terms.iter().rev().fold(Jet::constant(0.0), |s, &c| s * r + c).ln()
}

/// `ln k!` for `k >= 0`.
pub(super) fn ln_factorial(k: f64) -> f64 {
    ln_gamma_plus_one(Jet::<1>::constant(k)).value()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `(α, u, y, y', y'')`: SciPy's quantiles, refined and differentiated by mpmath with 40 digits.
    const EXACT: &[(f64, f64, [f64; 3])] = &[
        (0.01, 0.3, [-120.96631122720056, 12040.542576933189, -2407946.3940338064]),
        (0.01, 0.995, [-0.5868654315510905, 87.71494756615812, -13236.102185062655]),
        (0.1, 0.7, [-4.049690001353091, 36.98448295034712, -704.7656458870541]),
        (0.5, 0.2, [-3.4391367432871474, 7.1310210311354485, -25.76319357718986]),
        (0.5, 0.9, [0.30215561880348785, 1.5854589381031161, -3.620986207497701]),
        (1.0, 0.5, [-0.36651292058166435, 1.396593476236935, -1.8471519306056496]),
        (1.5, 0.05, [-1.7377079765835441, 1.768208053519071, -1.8971076792577923]),
        (2.5, 0.6, [0.942322364533335, 0.4219442561647276, -0.1844840309992838]),
        (7.0, 0.99, [2.6790070949630027, 0.09914010006489467, -0.012063963175627877]),
        (30.0, 1e-6, [2.3712580540526047, 0.05368167631598377, -0.002252597225043015]),
        (30.0, 0.4, [3.3432150069456417, 0.03450023311266747, -0.0011763338426740515]),
        (400.0, 0.75, [6.024178591509785, 0.0024603553450890754, -6.104415414168102e-06]),
        (3000.0, 0.2, [7.990850454684236, 0.00033594487019064065, -1.124253763004181e-07]),
        (20000.0, 0.9, [9.912519220778027, 4.9774962961644114e-05, -2.4831598519922102e-09]),
    ];

    #[test]
    fn quantiles_and_their_derivatives() {
        for &(alpha, u, exact) in EXACT {
            for (order, exact) in exact.into_iter().enumerate() {
                let y = ln_quantile(alpha, u, order);
                let error = (y / exact - 1.0).abs();
                assert!(error < 1e-11, "order {order} at {alpha}, {u}: {y} for {exact}");
            }
        }
    }

    #[test]
    fn ends_of_the_shape() {
        assert_eq!(ln_quantile(0.0, 0.3, 0), f64::NEG_INFINITY);
        assert_eq!(ln_quantile(f64::INFINITY, 0.3, 0), f64::INFINITY);
        assert!(ln_quantile(-1.0, 0.3, 0).is_nan() && ln_quantile(f64::NAN, 0.3, 0).is_nan());
        assert_eq!((ln_quantile(0.0, 0.3, 1), ln_quantile(0.0, 0.3, 2)), (f64::INFINITY, f64::NEG_INFINITY));
        assert_eq!(ln_quantile(f64::INFINITY, 0.3, 1), 0.0);
        // Far below what eʸ can hold.
        assert!((ln_quantile(1e-6, 0.5, 0) / (0.5f64.ln() * 1e6) - 1.0).abs() < 1e-5);
    }

    /// No pair of shape and number takes the method out of its way.
    #[test]
    fn quantiles_grow_with_u() {
        for k in -60..90 {
            let alpha = 10f64.powf(k as f64 / 10.0);
            let mut last = f64::NEG_INFINITY;
            for u in [1e-16, 1e-9, 1e-3, 0.1, 0.4, 0.5, 0.501, 0.7, 0.95, 0.999, 1.0 - 1e-9, 1.0 - 1.2e-16] {
                let y = ln_quantile(alpha, u, 0);
                assert!(y.is_finite() && y > last, "{y} after {last} at {alpha}, {u}");
                last = y;
            }
        }
    }
}
