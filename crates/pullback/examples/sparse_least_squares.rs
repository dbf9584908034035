//! Where has the robot been? Nonlinear least squares with a sparse Jacobian.
//!
//! A robot drives a loop and measures its own steps (forward and turning, with errors) and the distances to a few
//! beacons. The unknowns are all its positions and headings. Each residual reads at most two neighbouring poses, so the
//! Jacobian has a few entries in each row, and a handful of products gives all of them, however long the way.
//!
//! Levenberg and Marquardt's method, with conjugate gradients for `(JᵀJ + λ) d = -Jᵀr`.

use pullback::scalar::{Function, Real};

const POSES: usize = 300;
const BEACONS: [[f64; 2]; 4] = [[-12.0, -2.0], [12.0, -3.0], [2.0, 24.0], [-9.0, 18.0]];
const STEP: f64 = 0.2;

/// A number in `[-1, 1]` that looks random.
fn noise(k: usize) -> f64 {
    2.0 * ((k as f64 * 12.9898).sin() * 43_758.545_3).rem_euclid(1.0) - 1.0
}

fn true_pose(k: usize) -> [f64; 3] {
    let angle = std::f64::consts::TAU * k as f64 / POSES as f64;
    let radius = POSES as f64 * STEP / std::f64::consts::TAU;
    [radius * angle.sin(), radius * (1.0 - angle.cos()), angle]
}

/// All residuals, given the poses (x, y, heading) one after the other.
fn residuals<T: Real>(x: &[T]) -> Vec<T> {
    let pose = |k: usize| [x[3 * k], x[3 * k + 1], x[3 * k + 2]];
    let turn = std::f64::consts::TAU / POSES as f64;
    let mut r = Vec::new();
    for k in 0..POSES - 1 {
        let ([x0, y0, h0], [x1, y1, h1]) = (pose(k), pose(k + 1));
        let ahead = h0 + turn / 2.0;
        let measured = STEP + 0.02 * noise(3 * k);
        r.push((x1 - x0 - ahead.cos() * measured) * 50.0);
        r.push((y1 - y0 - ahead.sin() * measured) * 50.0);
        r.push((h1 - h0 - turn - 0.01 * noise(3 * k + 1)) * 100.0);
    }
    for k in (0..POSES).step_by(5) {
        let [px, py, _] = pose(k);
        for (b, beacon) in BEACONS.iter().enumerate() {
            let [tx, ty, _] = true_pose(k);
            let measured = (tx - beacon[0]).hypot(ty - beacon[1]) + 0.1 * noise(7 * k + b);
            r.push(((px - beacon[0]).hypot(py - beacon[1]) - measured) * 10.0);
        }
    }
    r
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Solves `A d = b` for a symmetric positive definite `A` that is given by its products.
fn conjugate_gradients(product: impl Fn(&[f64]) -> Vec<f64>, b: &[f64], tolerance: f64) -> Vec<f64> {
    let mut d = vec![0.0; b.len()];
    let (mut r, mut p) = (b.to_vec(), b.to_vec());
    let mut square = dot(&r, &r);
    let goal = tolerance * tolerance * square;
    for _ in 0..4 * b.len() {
        if square <= goal {
            break;
        }
        let ap = product(&p);
        let alpha = square / dot(&p, &ap);
        for k in 0..b.len() {
            d[k] += alpha * p[k];
            r[k] -= alpha * ap[k];
        }
        let next = dot(&r, &r);
        let beta = next / square;
        square = next;
        p.iter_mut().zip(&r).for_each(|(p, r)| *p = r + beta * *p);
    }
    d
}

fn main() {
    let f = Function::record(residuals, 3 * POSES);
    // Dead reckoning drifts; that is the first guess.
    let mut x: Vec<f64> =
        (0..POSES).flat_map(|k| true_pose(k).map(|v| v + 0.005 * k as f64 * noise(k % 2))).collect();
    let error = |x: &[f64]| {
        let far = |k: usize| (x[3 * k] - true_pose(k)[0]).hypot(x[3 * k + 1] - true_pose(k)[1]);
        (0..POSES).map(far).sum::<f64>() / POSES as f64
    };
    let before = error(&x);
    let (mut lambda, mut cost) = (1.0, f64::INFINITY);
    for round in 0..30 {
        let r = f.evaluate(&x);
        let j = f.sparse_jacobian(&x);
        if round == 0 {
            cost = dot(&r, &r);
            println!(
                "{} residuals, {} unknowns, {} entries, {} products",
                r.len(),
                x.len(),
                j.nnz(),
                j.colors()
            );
        }
        let descent: Vec<f64> = j.transpose_times(&r).iter().map(|g| -g).collect();
        let normal = |v: &[f64]| -> Vec<f64> {
            j.transpose_times(&j.times(v)).iter().zip(v).map(|(a, v)| a + lambda * v).collect()
        };
        let step = conjugate_gradients(normal, &descent, 1e-8);
        let trial: Vec<f64> = x.iter().zip(&step).map(|(x, d)| x + d).collect();
        let r = f.evaluate(&trial);
        let new_cost = dot(&r, &r);
        if new_cost < cost {
            let gain = (cost - new_cost) / cost;
            (x, cost, lambda) = (trial, new_cost, lambda / 10.0);
            println!("round {round}: cost {cost:.3}");
            if gain < 1e-9 {
                break;
            }
        } else {
            lambda *= 10.0;
        }
    }
    println!("mean error {before:.3} before, {:.3} after", error(&x));
    assert!(error(&x) < 0.1 * before, "the estimate should be far better than the guess");
}
