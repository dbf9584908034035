//! The mixture of Gaussians.

use crate::tool::{BY_DIFFERENCES, differences, evaluate, numbers, some, some_rows};
use pullback_testing::assert_close;
use serde_json::json;
use std::f64::consts::PI;

struct Mixture {
    d: usize,
    k: usize,
    x: Vec<Vec<f64>>,
    m: f64,
    gamma: f64,
}

/// The logarithm of the gamma function by Stirling's series, far from zero.
fn ln_gamma(x: f64) -> f64 {
    if x < 20.0 {
        return ln_gamma(x + 1.0) - x.ln();
    }
    (x - 0.5) * x.ln() - x + (2.0 * PI).ln() / 2.0 + 1.0 / (12.0 * x) - 1.0 / (360.0 * x.powi(3))
}

impl Mixture {
    /// The log posterior; `p` holds alpha, then mu, q and l in rows.
    fn log_posterior(&self, p: &[f64]) -> f64 {
        let (d, k, n) = (self.d, self.k, self.x.len() as f64);
        let below = d * (d - 1) / 2;
        let (alpha, rest) = p.split_at(k);
        let (mu, rest) = rest.split_at(k * d);
        let (q, l) = rest.split_at(k * d);
        let entry = |c: usize, row: usize, column: usize| {
            if row == column {
                return q[c * d + row].exp();
            }
            // The columns before have d - 1, d - 2, .. entries.
            let before: usize = (0..column).map(|j| d - 1 - j).sum();
            l[c * below + before + row - column - 1]
        };
        let trace = |c: usize| q[c * d..][..d].iter().sum::<f64>();
        let density = |x: &[f64], c: usize| {
            let z =
                |row: usize| -> f64 { (0..=row).map(|j| entry(c, row, j) * (x[j] - mu[c * d + j])).sum() };
            (alpha[c] + trace(c) - 0.5 * (0..d).map(|row| z(row).powi(2)).sum::<f64>()).exp()
        };
        let likelihood: f64 = self.x.iter().map(|x| (0..k).map(|c| density(x, c)).sum::<f64>().ln()).sum();
        let weights = alpha.iter().map(|a| a.exp()).sum::<f64>().ln();
        let freedom = d as f64 + self.m + 1.0;
        let gamma_d = (d * (d - 1)) as f64 / 4.0 * PI.ln()
            + (1..=d).map(|j| ln_gamma((freedom + 1.0 - j as f64) / 2.0)).sum::<f64>();
        let constant = freedom * d as f64 * (self.gamma / 2f64.sqrt()).ln() - gamma_d;
        let wishart: f64 = (0..k)
            .map(|c| {
                let squares: f64 = (0..d)
                    .flat_map(|i| (0..=i).map(move |j| (i, j)))
                    .map(|(i, j)| entry(c, i, j).powi(2))
                    .sum();
                self.m * trace(c) - self.gamma.powi(2) / 2.0 * squares
            })
            .sum();
        -n * d as f64 / 2.0 * (2.0 * PI).ln() + likelihood - n * weights + wishart + k as f64 * constant
    }
}

#[test]
fn gmm() {
    for (d, k, n, m) in [(2, 3, 10, 0.0), (4, 5, 30, 2.0)] {
        let mixture = Mixture { d, k, x: some_rows(n, d, 5), m, gamma: 1.25 };
        let alpha = some(k, 6);
        let (mu, q, l) = (some_rows(k, d, 7), some_rows(k, d, 8), some_rows(k, d * (d - 1) / 2, 9));
        let input = json!({"d": d, "k": k, "n": n, "x": mixture.x, "m": m as usize, "gamma": mixture.gamma,
            "alpha": alpha, "mu": mu, "q": q, "l": l});
        let p = [alpha, mu.concat(), q.concat(), l.concat()].concat();
        let value = evaluate("gmm", "objective", input.clone());
        assert_close(&numbers(&value), &[mixture.log_posterior(&p)], 1e-10);
        let gradient = evaluate("gmm", "jacobian", input);
        assert_eq!(gradient.as_object().unwrap().len(), 4);
        assert_eq!(gradient["l"].as_array().unwrap().len(), k);
        let found = ["alpha", "mu", "q", "l"].map(|name| numbers(&gradient[name])).concat();
        assert_close(&found, &differences(|p| mixture.log_posterior(p), &p), 10.0 * BY_DIFFERENCES);
    }
}
