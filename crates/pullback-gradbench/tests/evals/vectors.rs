//! Evals of vectors and matrices: llsq, lse, det, ode, kmeans.

use crate::tool::{BY_DIFFERENCES, differences, evaluate, numbers, some, some_rows};
use pullback_testing::assert_close;
use serde_json::json;

#[test]
fn llsq() {
    let x = some(5, 1);
    for n in [2, 5, 100] {
        let reference = |x: &[f64]| {
            let residual = |i: usize| {
                let t = -1.0 + 2.0 * i as f64 / (n as f64 - 1.0);
                let sign = if t > 0.0 {
                    1.0
                } else if t < 0.0 {
                    -1.0
                } else {
                    0.0
                };
                sign - x.iter().enumerate().map(|(j, x)| x * t.powi(j as i32)).sum::<f64>()
            };
            (0..n).map(|i| residual(i).powi(2)).sum::<f64>() / 2.0
        };
        let input = json!({"x": x, "n": n});
        assert_close(&numbers(&evaluate("llsq", "primal", input.clone())), &[reference(&x)], 1e-12);
        let gradient = evaluate("llsq", "gradient", input);
        assert_close(&numbers(&gradient), &differences(reference, &x), BY_DIFFERENCES);
    }
}

#[test]
fn lse() {
    let x: Vec<f64> = some(40, 2).iter().map(|x| 700.0 + 30.0 * x).collect();
    let reference = |x: &[f64]| x.iter().map(|x| (x - 715.0).exp()).sum::<f64>().ln() + 715.0;
    let input = json!({"x": x});
    assert_close(&numbers(&evaluate("lse", "primal", input.clone())), &[reference(&x)], 1e-14);
    let softmax: Vec<f64> = x.iter().map(|v| (v - reference(&x)).exp()).collect();
    assert_close(&numbers(&evaluate("lse", "gradient", input)), &softmax, 1e-12);
}

/// The determinant by elimination.
fn determinant(a: &[f64]) -> f64 {
    let n = a.len().isqrt();
    let mut a = a.to_vec();
    let mut product = 1.0;
    for k in 0..n {
        let pivot = (k..n).max_by(|&i, &j| a[i * n + k].abs().total_cmp(&a[j * n + k].abs())).unwrap();
        if pivot != k {
            (0..n).for_each(|j| a.swap(k * n + j, pivot * n + j));
            product = -product;
        }
        product *= a[k * n + k];
        for i in k + 1..n {
            let factor = a[i * n + k] / a[k * n + k];
            (k..n).for_each(|j| a[i * n + j] -= factor * a[k * n + j]);
        }
    }
    product
}

#[test]
fn det() {
    for ell in [1, 2, 5, 6] {
        let a = some(ell * ell, ell);
        let input = json!({"A": a, "ell": ell});
        assert_close(&numbers(&evaluate("det", "primal", input.clone())), &[determinant(&a)], 1e-12);
        let gradient = numbers(&evaluate("det", "gradient", input));
        assert_close(&gradient, &differences(determinant, &a), BY_DIFFERENCES);
    }
}

/// The state after `s` steps of RK4, with the slope as a matrix: `f(y) = x[0] e0 + A y`.
fn runge_kutta(x: &[f64], s: usize) -> Vec<f64> {
    let h = 2.0 / s as f64;
    let slope = |y: &[f64]| -> Vec<f64> {
        (0..x.len()).map(|i| if i == 0 { x[0] } else { x[i] * y[i - 1] }).collect()
    };
    let along =
        |y: &[f64], k: &[f64], h: f64| -> Vec<f64> { y.iter().zip(k).map(|(y, k)| y + h * k).collect() };
    let mut y = vec![0.0; x.len()];
    for _ in 0..s {
        let k1 = slope(&y);
        let k2 = slope(&along(&y, &k1, h / 2.0));
        let k3 = slope(&along(&y, &k2, h / 2.0));
        let k4 = slope(&along(&y, &k3, h));
        for i in 0..x.len() {
            y[i] += h / 6.0 * (k1[i] + 2.0 * k2[i] + 2.0 * k3[i] + k4[i]);
        }
    }
    y
}

#[test]
fn ode() {
    for (n, s) in [(1, 3), (4, 1), (9, 4), (30, 5)] {
        let x: Vec<f64> = some(n, 3).iter().map(|x| 0.5 + x).collect();
        let input = json!({"x": x, "s": s});
        assert_close(&numbers(&evaluate("ode", "primal", input.clone())), &runge_kutta(&x, s), 1e-13);
        let gradient = numbers(&evaluate("ode", "gradient", input));
        let last = |x: &[f64]| *runge_kutta(x, s).last().unwrap();
        assert_close(&gradient, &differences(last, &x), BY_DIFFERENCES);
        // With four indices for each step there is something to see, but for the longest chain.
        assert_eq!(gradient.iter().any(|&g| g != 0.0), n <= 4 * s);
    }
}

#[test]
fn kmeans() {
    let points = some_rows(50, 3, 4);
    let centroids = points[45..].to_vec();
    let distance = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
    let nearest = |p: &[f64]| -> usize {
        (0..5).min_by(|&i, &j| distance(&centroids[i], p).total_cmp(&distance(&centroids[j], p))).unwrap()
    };
    let cost: f64 = points.iter().map(|p| distance(p, &centroids[nearest(p)])).sum();
    let input = json!({"points": points, "centroids": centroids});
    assert_close(&numbers(&evaluate("kmeans", "cost", input.clone())), &[cost], 1e-13);
    // Newton's step leads to the mean of the cluster.
    let steps: Vec<f64> = (0..5)
        .flat_map(|j| {
            let members: Vec<_> = points.iter().filter(|p| nearest(p) == j).collect();
            let mean = |c: usize| members.iter().map(|p| p[c]).sum::<f64>() / members.len() as f64;
            (0..3).map(|c| centroids[j][c] - mean(c)).collect::<Vec<_>>()
        })
        .collect();
    assert_close(&numbers(&evaluate("kmeans", "dir", input)), &steps, 1e-13);
}
