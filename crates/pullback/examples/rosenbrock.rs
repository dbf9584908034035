//! The banana valley: gradient descent, and Newton's method with the exact Hessian, on Rosenbrock's function.
//!
//! Run it with `cargo run --release --example rosenbrock`.

use pullback::prelude::*;

/// `Σ (1 - x_k)² + 100 (x_{k+1} - x_k²)²`, with its lowest minimum at (1, 1, .., 1).
fn rosenbrock(x: &Tensor) -> Tensor {
    let (a, b) = (x.slice(..-1), x.slice(1..));
    (1.0 - &a).square().sum() + 100.0 * (b - a.square()).square().sum()
}

/// Solves `h s = g` by conjugate gradients, with products of the Hessian and a vector only: the Hessian is never built.
fn newton_step(x: &Tensor, g: &Tensor) -> Tensor {
    let (mut s, mut r) = (g.zeros_like(), g.clone());
    let mut p = r.clone();
    for _ in 0..2 * g.numel() {
        let hp = hvp(rosenbrock, x, &p);
        let (rr, curvature) = (r.dot(&r).item(), p.dot(&hp).item());
        if rr < 1e-30 || curvature <= 0.0 {
            break; // solved, or a direction in which the function bends down
        }
        let length = rr / curvature;
        s += &p * length;
        r -= &hp * length;
        p = &r + &p * (r.dot(&r).item() / rr);
    }
    if s.dot(g).item() > 0.0 { s } else { g.clone() }
}

/// As far along `-step` as the function falls.
fn descend(x: &Tensor, step: &Tensor) -> Tensor {
    let now = rosenbrock(x).item();
    let lengths = (0..40).map(|k| 0.5f64.powi(k));
    let tries = lengths.map(|h| x - step * h);
    tries.into_iter().find(|x| rosenbrock(x).item() < now).unwrap_or_else(|| x.clone())
}

fn main() {
    let start = Tensor::from([-1.2, 1.0]);
    println!("gradient at the start: {:.3}", grad(rosenbrock)(&start));
    println!("Hessian at the start:\n{:.1}\n", hessian(rosenbrock)(&start));
    println!("step   gradient descent   Newton, by Hessian-vector products");
    let (mut slow, mut fast) = (start.clone(), start);
    for step in 0..=20 {
        if step % 2 == 0 {
            println!("{step:4}   {:16.3e}   {:.3e}", rosenbrock(&slow).item(), rosenbrock(&fast).item());
        }
        slow = descend(&slow, &grad(rosenbrock)(&slow));
        let g = grad(rosenbrock)(&fast);
        fast = descend(&fast, &newton_step(&fast, &g));
    }
    println!("\nNewton found {fast:.6}");
    assert!(fast.is_close(&Tensor::ones([2]), 1e-6, 0.0));
}
