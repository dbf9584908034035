//! Swing up a pendulum: an optimal control problem by single shooting.
//!
//! The unknowns are the torques of 200 time steps. The cost is what they take, and how far from rest at the top the pendulum ends.
//! The loop over time is checkpointed, so the tape holds one step of the integration at a time; the gradient goes to a
//! quasi-Newton method (L-BFGS), written out here.

use pullback::scalar::{self, Real, Var};
use std::collections::VecDeque;

const STEPS: usize = 200;
const DT: f64 = 0.02;

/// Angle from the bottom and angular velocity, after one step of the classical Runge-Kutta method.
fn step<T: Real>(k: usize, state: &[T], torque: &[T]) -> Vec<T> {
    let slope = |angle: T, velocity: T| (velocity, torque[k] - angle.sin() * 9.81 - velocity * 0.05);
    let (a, v) = (state[0], state[1]);
    let k1 = slope(a, v);
    let k2 = slope(a + k1.0 * (DT / 2.0), v + k1.1 * (DT / 2.0));
    let k3 = slope(a + k2.0 * (DT / 2.0), v + k2.1 * (DT / 2.0));
    let k4 = slope(a + k3.0 * DT, v + k3.1 * DT);
    let next = |x: T, k: [T; 4]| x + (k[0] + k[1] * 2.0 + k[2] * 2.0 + k[3]) * (DT / 6.0);
    vec![next(a, [k1.0, k2.0, k3.0, k4.0]), next(v, [k1.1, k2.1, k3.1, k4.1])]
}

fn end_state<T: Real>(torque: &[T]) -> Vec<T> {
    T::checkpointed(STEPS, 10, &[T::constant(0.0), T::constant(0.0)], torque, step)
}

fn cost<T: Real>(torque: &[T]) -> T {
    let effort: T = torque.iter().map(|&u| u * u * DT).sum();
    let end = end_state(torque);
    let miss = end[0] - std::f64::consts::PI;
    effort * 0.01 + miss * miss * 100.0 + end[1] * end[1] * 10.0
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The direction `-H g`, with the inverse Hessian `H` that the last steps and changes of the gradient suggest.
fn direction(g: &[f64], history: &VecDeque<(Vec<f64>, Vec<f64>)>) -> Vec<f64> {
    let mut q: Vec<f64> = g.iter().map(|g| -g).collect();
    let mut alphas = Vec::new();
    for (s, y) in history.iter().rev() {
        let alpha = dot(s, &q) / dot(s, y);
        q.iter_mut().zip(y).for_each(|(q, y)| *q -= alpha * y);
        alphas.push(alpha);
    }
    if let Some((s, y)) = history.back() {
        let scale = dot(s, y) / dot(y, y);
        q.iter_mut().for_each(|q| *q *= scale);
    }
    for ((s, y), alpha) in history.iter().zip(alphas.iter().rev()) {
        let beta = dot(y, &q) / dot(s, y);
        q.iter_mut().zip(s).for_each(|(q, s)| *q += (alpha - beta) * s);
    }
    q
}

fn main() {
    // A gentle push to begin with: at rest, the gradient would see no way to swing.
    let mut u: Vec<f64> = (0..STEPS).map(|k| 2.0 * (k as f64 * 0.07).sin()).collect();
    let mut g = vec![0.0; STEPS];
    let mut value = scalar::gradient_into(cost::<Var>, &u, &mut g);
    println!("cost {value:.3} at first");
    let mut history: VecDeque<(Vec<f64>, Vec<f64>)> = VecDeque::new();
    for round in 1..=300 {
        let d = direction(&g, &history);
        let slope = dot(&g, &d);
        let (mut length, mut trial, mut trial_g) = (1.0, u.clone(), vec![0.0; STEPS]);
        let trial_value = loop {
            trial.iter_mut().zip(&u).zip(&d).for_each(|((t, u), d)| *t = u + length * d);
            let v = scalar::gradient_into(cost::<Var>, &trial, &mut trial_g);
            if v <= value + 1e-4 * length * slope || length < 1e-12 {
                break v;
            }
            length *= 0.5;
        };
        let s: Vec<f64> = trial.iter().zip(&u).map(|(a, b)| a - b).collect();
        let y: Vec<f64> = trial_g.iter().zip(&g).map(|(a, b)| a - b).collect();
        if dot(&s, &y) > 1e-12 {
            history.push_back((s, y));
            if history.len() > 10 {
                history.pop_front();
            }
        }
        let done = (value - trial_value).abs() < 1e-10 * (1.0 + value.abs());
        (u, value) = (trial, trial_value);
        g.copy_from_slice(&trial_g);
        if round % 25 == 0 || done {
            println!("round {round}: cost {value:.6}");
        }
        if done {
            break;
        }
    }
    let end = end_state(&u);
    println!("ends at {:.4} rad of π, with {:.4} rad/s", end[0], end[1]);
    assert!((end[0] - std::f64::consts::PI).abs() < 0.05 && end[1].abs() < 0.2, "the pendulum should stand");
}
