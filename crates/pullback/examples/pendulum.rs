//! How long is the pendulum? Its swing is observed with noise; the length is found by following the gradient of the misfit
//! through the simulation.
//!
//! Run it with `cargo run --release --example pendulum`.

use pullback::ode;
use pullback::prelude::*;

/// Angle and speed of a pendulum of the given length, with a little friction.
fn swing(_t: f64, (angle, speed): &(Tensor, Tensor), length: &Tensor) -> (Tensor, Tensor) {
    (speed.clone(), -(9.81 / length) * angle.sin() - speed * 0.1)
}

/// The angle at 20 times during 4 seconds, released at 1 radian.
fn angles(length: &Tensor) -> Tensor {
    let mut state = (Tensor::scalar(1.0), Tensor::scalar(0.0));
    let mut seen = Vec::new();
    for k in 0..20 {
        let t = 0.2 * k as f64;
        state = ode::rk4(swing, length, &state, t, t + 0.2, 20);
        seen.push(state.0.clone());
    }
    Tensor::stack(&seen, 0)
}

fn main() {
    let truth = 0.73;
    let noise = Tensor::randn(Key::new(3), [20], DType::F64) * 0.01;
    let observed = (angles(&Tensor::scalar(truth)) + noise).detach();
    let misfit = |length: &Tensor| (angles(length) - &observed).square().mean();
    let mut length = Tensor::scalar(0.8);
    println!("step   length      misfit    d misfit / d length");
    for step in 0..=12 {
        let (value, slope) = value_and_grad(misfit)(&length);
        println!("{step:4}  {:.6}  {:.3e}  {:+.3e}", length.item(), value.item(), slope.item());
        // Newton's step: the curvature is the derivative of the slope.
        let (_, curvature) = jvp(|l: &Tensor| grad(misfit)(l), &length, &Tensor::scalar(1.0));
        length -= slope / curvature.abs();
    }
    println!("\nfound {:.4} m, it was {truth} m", length.item());
    assert!((length.item() - truth).abs() < 0.01);
}
