//! Learning to learn: the best learning rates, by the gradient through 100 steps of gradient descent.
//!
//! The inner loop fits a curve; the outer one asks how the final error changes with the learning rate of each weight.
//! Run it with `cargo run --release --example meta_learning`.

use pullback::prelude::*;

fn main() {
    // Fit sin(3x) by a polynomial of degree 5 (badly scaled on purpose: powers of x on [0, 2]).
    let x = Tensor::linspace(0.0, 2.0, 40);
    let target = (&x * 3.0).sin();
    let powers: Vec<Tensor> = (0..6).map(|k| x.pow(k as f64)).collect();
    let design = Tensor::stack(&powers, 1);
    let error = |w: &Tensor| (design.matmul(w) - &target).square().mean();
    let train = |log_rate: &Tensor| {
        let rate = log_rate.exp();
        let mut w = Tensor::zeros([6]);
        for _ in 0..100 {
            w = &w - &rate * grad(error)(&w);
        }
        error(&w)
    };
    let mut log_rate = Tensor::full([6], -7.0);
    println!("outer step   error after 100 inner steps");
    let before = train(&log_rate).item();
    for step in 0..=30 {
        let (value, g) = value_and_grad(train)(&log_rate);
        if step % 5 == 0 {
            println!("{step:10}   {:.6}", value.item());
        }
        // Along the gradient, as far as it helps: beyond the edge of stability the error explodes.
        let direction = &g / (g.norm() + 1e-12);
        let lengths = [1.0, 0.3, 0.1, 0.03, 0.01];
        let better =
            lengths.iter().map(|h| &log_rate - &direction * *h).find(|r| train(r).item() < value.item());
        log_rate = better.unwrap_or(log_rate);
    }
    let after = train(&log_rate).item();
    println!("\nlearning rates: {:.5}", log_rate.exp());
    println!("error {before:.4} -> {after:.4}, by a derivative of derivatives through 100 steps");
    assert!(after < 0.8 * before, "{before} {after}");
}
