//! Compiling takes time in proportion to the length of a program. The work is counted, not timed.

use super::*;
use crate::backend::cpu::Plan;
use crate::graph::effort;
use crate::opt::laws::after;

/// A long program: so many steps from a tensor to a number.
type Program = fn(&Tensor, usize) -> Tensor;

fn chain(x: &Tensor, n: usize) -> Tensor {
    (0..n).fold(x.clone(), |c, _| (c * 1.001).sin()).sum()
}

/// Runge and Kutta's method for the equations of Lorenz: slices, concatenations, values that are read many times.
fn lorenz(x: &Tensor, n: usize) -> Tensor {
    let slope = |y: &Tensor| {
        let part = |k: usize| y.slice(k..k + 1);
        let (a, b, c) = (part(0), part(1), part(2));
        Tensor::concat(&[&((&b - &a) * 10.0), &(&a * (28.0 - &c) - &b), &(&a * &b - &c * 2.5)], 0)
    };
    let step = |y: Tensor, _| {
        let k1 = slope(&y);
        let k2 = slope(&(&y + &k1 * 0.005));
        &y + (k1 + k2) * 0.005
    };
    (0..n).fold(x.slice(..3), step).sum()
}

/// A wave on a circle.
fn burgers(u: &Tensor, n: usize) -> Tensor {
    let m = u.shape()[0];
    let step = |u: Tensor, _| {
        let left = Tensor::concat(&[&u.slice(m - 1..), &u.slice(..m - 1)], 0);
        &u - &u * (&u - left) * 0.01
    };
    (0..n).fold(u.clone(), step).square().sum()
}

fn layers(x: &Tensor, n: usize) -> Tensor {
    let x = x.reshape([2, 4]);
    let w = |k: usize| Tensor::full([4, 4], 0.1 + k as f64 * 1e-3);
    (0..n).fold(x, |h, k| h.matmul(&w(k)).gelu() + &h).sum()
}

/// Many values that are computed side by side, and kept.
fn wide(x: &Tensor, n: usize) -> Tensor {
    let parts: Vec<Tensor> = (1..=n).map(|k| (x * k as f64).sin()).collect();
    let squares: Vec<Tensor> = parts.iter().map(|p| (p * x).sum()).collect();
    Tensor::stack(&squares, 0).square().sum()
}

/// A value that becomes longer and longer, and of which the last element is wanted: long chains of views, and rows that are zeros.
fn longer(x: &Tensor, n: usize) -> Tensor {
    let zero = Tensor::zeros([1]);
    let long = (0..n).fold(Tensor::concat(&[x.clone(), Tensor::zeros([600])], 0), |y, k| {
        let y = Tensor::concat(&[&zero, &y], 0);
        if k % 2 == 0 { y.sin() } else { y }
    });
    long.slice(long.shape()[0] - 600..).sum()
}

/// The work of compiling the gradient of a program.
fn work(f: Program, n: usize, options: &Options) -> usize {
    let x = Tensor::linspace(0.1, 1.0, 8);
    let graph = trace(grad(move |x: &Tensor| f(x, n)), &x);
    effort::of(|| {
        let (graph, _) = graph.optimize_with(options);
        let graph = after(&["narrow", "share", "fuse"], &graph, options, 1 << 20);
        Plan::new(&graph, &[]).unwrap();
    })
}

#[track_caller]
fn grows_with_the_length(f: Program, n: usize, options: &Options) {
    let (once, twice) = (work(f, n, options), work(f, 2 * n, options));
    assert!(
        once > n && (twice as f64) < 2.5 * once as f64,
        "{once} for {n} steps, {twice} for twice as many"
    );
}

#[test]
fn compiling_was_quadratic_in_the_length_of_a_program() {
    // So long that most groups are as large as they may be: up to there, the work for each member grows.
    let programs: [(Program, usize); 6] =
        [(chain, 150), (lorenz, 20), (burgers, 50), (layers, 50), (wide, 80), (longer, 300)];
    for (f, n) in programs {
        grows_with_the_length(f, n, &Options::default());
    }
}

#[test]
fn saving_memory_was_quadratic_in_the_length_of_a_program() {
    let options = Options { memory: Some(100), ..Options::default() };
    grows_with_the_length(chain, 150, &options);
    grows_with_the_length(wide, 80, &options);
}
