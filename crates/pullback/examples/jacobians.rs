//! What a Jacobian costs, against single passes and against a loop of them.
//!
//! `cargo run --release --example jacobians` prints the table of docs/benchmarks-jacobian.md: least times in microseconds on one thread.

use pullback::prelude::*;
use std::hint::black_box;
use std::time::Instant;

type Function = Box<dyn Fn(&Tensor) -> Tensor>;

/// Three layers from `n` numbers over `hidden` to `m`.
fn network(n: usize, hidden: usize, m: usize) -> Function {
    let [a, b, c] = Key::new(1).split();
    let weight = |key, rows: usize, columns: usize| {
        Tensor::randn(key, [rows, columns], DType::F64) / (columns as f64).sqrt()
    };
    let (a, b, c) = (weight(a, hidden, n), weight(b, hidden, hidden), weight(c, m, hidden));
    Box::new(move |x| c.matmul(&b.matmul(&a.matmul(x).tanh()).tanh()))
}

/// Elementwise operations on `max(n, m)` numbers, with `n` in and `m` out.
fn elementwise(n: usize, m: usize) -> Function {
    let k = n.max(m) / n.min(m);
    Box::new(move |x| {
        let spread = if m > n { x.unsqueeze(1).broadcast_to([n, k]).reshape([m]) } else { x.clone() };
        let scale = Tensor::linspace(0.5, 1.5, n.max(m));
        let y = (0..10).fold(spread * scale, |y, _| (y.sin() * 0.9 + y.tanh()).exp().log1p());
        if m < n { y.reshape([m, k]).sum_axes(1) } else { y }
    })
}

/// A recurrent loop of `steps`, on scalars out of the input and back: many operations on few numbers.
fn recurrence(n: usize, steps: usize) -> Function {
    Box::new(move |x| {
        let shift = Tensor::linspace(-1.0, 1.0, n);
        scan(|h: &Tensor, _: &()| ((h * 0.9 + &shift).tanh() + x * 0.1, ()), x, steps).0
    })
}

/// The least time of each function over some rounds, which alternate.
fn times<const N: usize>(functions: [&dyn Fn() -> Tensor; N]) -> [f64; N] {
    let mut least = [f64::INFINITY; N];
    let start = Instant::now();
    while start.elapsed().as_secs_f64() < 2.0 {
        for (f, least) in functions.iter().zip(&mut least) {
            // Once before, for its memory: what ran last has left other buffers.
            black_box(f());
            let start = Instant::now();
            black_box(f());
            *least = least.min(start.elapsed().as_secs_f64());
        }
    }
    least
}

fn unit(n: usize, k: usize) -> Tensor {
    let mut e = vec![0.0; n];
    e[k] = 1.0;
    Tensor::from(e)
}

fn main() {
    pullback::set_num_threads(1);
    println!(
        "| function | n -> m | value | one pass | jacobian | passes | loop | loop / jacobian | longer side |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|---:|---:|");
    let cases: [(&str, usize, usize, Function); 8] = [
        ("network", 16, 512, network(16, 128, 512)),
        ("network", 512, 16, network(512, 128, 16)),
        ("network", 128, 128, network(128, 128, 128)),
        ("network", 4, 4, network(4, 8, 4)),
        ("elementwise", 16, 512, elementwise(16, 512)),
        ("elementwise", 512, 16, elementwise(512, 16)),
        ("elementwise", 128, 128, elementwise(128, 128)),
        ("recurrence, 50 steps", 16, 16, recurrence(16, 50)),
    ];
    for (name, n, m, f) in &cases {
        let (n, m) = (*n, *m);
        let x = Tensor::linspace(-1.0, 1.0, n);
        let (t, g) = (Tensor::ones([n]), Tensor::ones([m]));
        let columns = || {
            let columns: Vec<Tensor> = (0..n).map(|k| jvp(f, &x, &unit(n, k)).1).collect();
            Tensor::stack(&columns, 1)
        };
        let rows = || {
            let pull = vjp(f, &x).1;
            let rows: Vec<Tensor> = (0..m).map(|k| pull(&unit(m, k))).collect();
            Tensor::stack(&rows, 0)
        };
        let by_rows = m <= n;
        let pass = || if by_rows { vjp(f, &x).1(&g) } else { jvp(f, &x, &t).1 };
        let one_by_one = || if by_rows { rows() } else { columns() };
        let longer = || if by_rows { jacfwd(f)(&x) } else { jacrev(f)(&x) };
        let [value, one, all, by_loop] = times([&|| f(&x), &pass, &|| jacobian(f)(&x), &one_by_one]);
        let [longer] = times([&longer]);
        let us = |s: f64| format!("{:.1}", s * 1e6);
        println!(
            "| {name} | {n} -> {m} | {} | {} | {} | {:.1} | {} | {:.1} | {} |",
            us(value),
            us(one),
            us(all),
            all / one,
            us(by_loop),
            by_loop / all,
            us(longer),
        );
    }
}
