//! A small neural network as the right-hand side of a differential equation, trained to follow a spiral.
//!
//! Run it with `cargo run --release --example neural_ode`.

use pullback::ode;
use pullback::prelude::*;

#[derive(Tree, Clone)]
struct Field {
    w1: Tensor,
    b1: Tensor,
    w2: Tensor,
}

impl Field {
    fn new(key: Key) -> Field {
        let [a, b] = key.split();
        Field {
            w1: Tensor::randn(a, [2, 16], DType::F64) * 0.5,
            b1: Tensor::zeros([16]),
            w2: Tensor::randn(b, [16, 2], DType::F64) * 0.1,
        }
    }
}

fn velocity(_t: f64, y: &Tensor, f: &Field) -> Tensor {
    (y.matmul(&f.w1) + &f.b1).tanh().matmul(&f.w2)
}

/// The true motion: a spiral inward.
fn spiral(_t: f64, y: &Tensor, _: &()) -> Tensor {
    y.matmul(&Tensor::from([[-0.1, 2.0], [-2.0, -0.1]]))
}

fn main() {
    // Eight starting points on a circle, and where the spiral takes them in a quarter of a turn, seen at 5 times.
    let angle = Tensor::arange(0.0, 8.0, 1.0) * (std::f64::consts::TAU / 8.0);
    let start = Tensor::stack(&[angle.cos(), angle.sin()], 1) * 1.5;
    let path = |end: &dyn Fn(&Tensor, f64, f64) -> Tensor| {
        let mut y = start.clone();
        let mut seen = Vec::new();
        for k in 0..5 {
            y = end(&y, 0.15 * k as f64, 0.15 * (k + 1) as f64);
            seen.push(y.clone());
        }
        Tensor::stack(&seen, 0)
    };
    let target = path(&|y, a, b| ode::rk4(spiral, &(), y, a, b, 8));
    let loss = |f: &Field| (path(&|y, a, b| ode::rk4(velocity, f, y, a, b, 4)) - &target).square().mean();
    let mut field = Field::new(Key::new(5));
    let (mut mean, mut spread) = (field.map(&mut |t| t.zeros_like()), field.map(&mut |t| t.zeros_like()));
    println!("step       loss");
    for step in 1..=300 {
        let (value, g) = value_and_grad(loss)(&field);
        // Adam, leaf by leaf.
        mean = mean.zip(&g, |m, g| m * 0.9 + g * 0.1);
        spread = spread.zip(&g, |v, g| v * 0.999 + g.square() * 0.001);
        let (c1, c2) = (1.0 - 0.9f64.powi(step), 1.0 - 0.999f64.powi(step));
        let direction = mean.zip(&spread, |m, v| (m / c1) / ((v / c2).sqrt() + 1e-8));
        field = field.zip(&direction, |p, d| p - d * 0.02);
        if step % 50 == 0 || step == 1 {
            println!("{step:4}  {:.3e}", value.item());
        }
    }
    let end = loss(&field).item();
    println!("\nThe learned field follows the spiral to a mean squared distance of {end:.1e}.");
    assert!(end < 5e-3, "it should have learned, loss {end}");
}
