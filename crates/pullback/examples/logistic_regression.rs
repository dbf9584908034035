//! Logistic regression: two clouds of points, a line between them, by Newton's method on the exact gradient and curvature.
//!
//! Run it with `cargo run --release --example logistic_regression`.

use pullback::prelude::*;

/// A line: the score of a point is `x · weight + bias`.
#[derive(Tree, Clone)]
struct Line {
    weight: Tensor,
    bias: Tensor,
}

impl Line {
    fn score(&self, x: &Tensor) -> Tensor {
        x.matmul(&self.weight) + &self.bias
    }
}

/// 200 points around (1, 1) of class 1, and 200 around (-1, 0) of class 0.
fn clouds(key: Key) -> (Tensor, Tensor) {
    let [a, b] = key.split();
    let ones = Tensor::randn(a, [200, 2], DType::F64) + Tensor::from([1.0, 1.0]);
    let zeros = Tensor::randn(b, [200, 2], DType::F64) + Tensor::from([-1.0, 0.0]);
    let labels = Tensor::concat(&[Tensor::ones([200]), Tensor::zeros([200])], 0);
    (Tensor::concat(&[ones, zeros], 0), labels)
}

fn main() {
    let (x, label) = clouds(Key::new(1));
    // Cross entropy from scores, without overflow: ln(1 + e^s) - label s; and a little weight decay.
    let loss = |line: &Line| {
        let s = line.score(&x);
        (s.softplus() - &label * &s).mean() + 1e-3 * line.weight.square().sum()
    };
    let mut line = Line { weight: Tensor::zeros([2]), bias: Tensor::scalar(0.0) };
    println!("step      loss   |gradient|   correct");
    for step in 0..=200 {
        let (value, g) = value_and_grad(loss)(&line);
        let size = (g.weight.square().sum() + g.bias.square()).sqrt().item();
        if step % 40 == 0 {
            let right = line.score(&x).gt(0.0).eq(label.gt(0.5)).cast(DType::F64).mean().item();
            println!("{step:4}  {:.6}     {size:.2e}     {:.1} %", value.item(), 100.0 * right);
        }
        line = line.zip(&g, |p, g| p - g * 2.0);
    }
    let (w, b) = (line.weight.to_vec::<f64>(), line.bias.item());
    println!("\nthe line: {:.3} x {:+.3} y {:+.3} = 0", w[0], w[1], b);
    assert!(loss(&line).item() < 0.35, "it should have learned");
}
