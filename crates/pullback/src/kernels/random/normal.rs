//! The normal distribution function and its inverse, by their logarithms, which reach into the tails.

use pullback_table::special::erfc;
use std::f64::consts::{FRAC_1_SQRT_2, LN_2, PI};

/// `ln Φ(x)`.
pub(crate) fn ln_cdf(x: f64) -> f64 {
    if x > -30.0 {
        return (0.5 * erfc(-x * FRAC_1_SQRT_2)).ln();
    }
    // Φ(x) = φ(x) / -x (1 - 1/x² + 3/x⁴ - ..), to the last bit from here on.
    let r = 1.0 / (x * x);
    ln_density(x) - (-x).ln() + (-r * (1.0 - 3.0 * r * (1.0 - 5.0 * r * (1.0 - 7.0 * r)))).ln_1p()
}

fn ln_density(x: f64) -> f64 {
    -0.5 * x * x - 0.5 * (2.0 * PI).ln()
}

/// The `x <= 0` with `ln Φ(x) = ln_p`, for `p <= 1/2`.
fn lower_quantile(ln_p: f64) -> f64 {
    if ln_p == f64::NEG_INFINITY {
        return ln_p;
    }
    // Abramowitz and Stegun 26.2.23, within 4.5e-4.
    let t = (-2.0 * ln_p).sqrt();
    let (over, under) = (2.515517 + t * (0.802853 + t * 0.010328), 1.432788 + t * (0.189269 + t * 0.001308));
    let mut x = over / (1.0 + t * under) - t;
    // ln Φ is concave, so that Newton's method converges from everywhere; from here it needs two steps.
    for _ in 0..3 {
        let l = ln_cdf(x);
        x -= (l - ln_p) * (l - ln_density(x)).exp();
    }
    x.min(0.0)
}

/// The quantile of `p` in `(0, 1)`, given with `q = 1 - p`.
pub(crate) fn quantile(p: f64, q: f64) -> f64 {
    if p <= q { lower_quantile(p.ln()) } else { -lower_quantile(q.ln()) }
}

/// The quantile of `p` in `(0, 1)`, given with `q = 1 - p`, of the distribution that has only what lies between `low` and `high`.
pub(crate) fn truncated_quantile(p: f64, q: f64, low: f64, high: f64) -> f64 {
    // Φ(x) = q Φ(low) + p Φ(high), and the same of the other side, of which the smaller is taken.
    let mixed = |p: f64, q: f64, low: f64, high: f64| {
        let (low, high) = (ln_cdf(low), ln_cdf(high));
        high + (p + q * (low - high).exp()).ln()
    };
    let below = mixed(p, q, low, high);
    let x = if below <= -LN_2 { lower_quantile(below) } else { -lower_quantile(mixed(q, p, -high, -low)) };
    x.clamp(low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quantile_inverts_the_distribution() {
        for k in 1..400 {
            let x = k as f64 * -0.1;
            let back = lower_quantile(ln_cdf(x));
            assert!((back - x).abs() < 1e-14 * (1.0 + x.abs()) * 4.0, "{back} for {x}");
        }
        assert_eq!(quantile(0.5, 0.5), 0.0);
        // Of the tables.
        assert!((quantile(0.975, 0.025) - 1.959963984540054).abs() < 1e-14);
    }

    #[test]
    fn truncated_far_out_it_stays_inside() {
        for (low, high) in [(-50.0, -45.0), (45.0, 50.0), (-1.0, 2.0), (3.0, f64::INFINITY), (-0.5, -0.25)] {
            for p in [1e-16, 0.25, 0.5, 0.75] {
                let x = truncated_quantile(p, 1.0 - p, low, high);
                assert!((low..=high).contains(&x), "{x} of {low}..{high}");
                let mirrored = truncated_quantile(1.0 - p, p, -high, -low);
                assert!((x + mirrored).abs() < 1e-12 * x.abs().max(1.0), "{x} and {mirrored}");
            }
        }
        // Near an end that far out the distribution is exponential: the median lies ln 2 / 45 away.
        assert!((truncated_quantile(0.5, 0.5, 45.0, 60.0) - 45.0 - LN_2 / 45.0).abs() < 1e-4);
    }
}
