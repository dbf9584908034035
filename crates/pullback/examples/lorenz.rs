//! The butterfly: how the derivative of the Lorenz system grows with time, forward and by the adjoint.
//!
//! Run it with `cargo run --release --example lorenz`.

use pullback::ode::{self, Dopri5};
use pullback::prelude::*;

fn lorenz(_t: f64, s: &Tensor, p: &Tensor) -> Tensor {
    let (x, y, z) = (s.get(0), s.get(1), s.get(2));
    let (sigma, rho, beta) = (p.get(0), p.get(1), p.get(2));
    Tensor::stack(&[sigma * (&y - &x), &x * (rho - &z) - &y, &x * &y - beta * &z], 0)
}

fn main() {
    let p = Tensor::from([10.0, 28.0, 8.0 / 3.0]);
    let start = Tensor::from([1.0, 1.0, 1.0]);
    let solver = Dopri5 { relative: 1e-9, absolute: 1e-11, ..Dopri5::default() };
    println!("How much does the state at time t change with the start, and with rho?\n");
    println!("   t   |dx(t)/dx(0)| forward      by adjoint     dx(t)/d rho");
    for t in [0.5, 1.0, 2.0, 4.0, 8.0, 16.0] {
        let end =
            |s: &Tensor| solver.solve(lorenz, &p, s, 0.0, t).expect("the attractor is bounded").end().get(0);
        let (_, forward) = jvp(end, &start, &Tensor::from([1.0, 0.0, 0.0]));
        let by_adjoint = |(s, p): &(Tensor, Tensor)| ode::adjoint(&solver, lorenz, p, s, 0.0, t).get(0);
        let (gs, gp) = grad(by_adjoint)(&(start.clone(), p.clone()));
        println!("{t:4.1}   {:22.6e} {:15.6e} {:15.6e}", forward.item(), gs.item_at([0]), gp.item_at([1]));
        if t <= 8.0 {
            let near = (forward.item() - gs.item_at([0])).abs() <= 1e-4 * (1.0 + forward.item().abs());
            assert!(near, "the two ways agree while the system is still predictable");
        }
    }
    println!(
        "\nSmall causes, large effects: on average it grows as e^(0.9 t), the largest Lyapunov exponent."
    );
}
