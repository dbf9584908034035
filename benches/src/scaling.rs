//! One point of a scaling plot for each call; `benches/scaling` makes the calls and draws.
//!
//! ```text
//! inputs N               gradient of N numbers over the primal, on the tape
//! length N               nanoseconds for each of N records, and bytes of the tape
//! depth STEPS STATES     bytes at the peak of a loop; no checkpoints if STATES is 0
//! tensor TASK N THREADS  nanoseconds for one element, or billions of operations in a second for a matrix product
//! ```

use pullback::scalar::{self, Real, Tape};
use pullback::{DType, Key, Tensor, grad};
use std::hint::black_box;
use std::time::Instant;

fn rosenbrock<T: Real>(x: &[T]) -> T {
    let mut s = T::constant(0.0);
    for i in 0..x.len() - 1 {
        let (a, b) = (x[i] - 1.0, x[i + 1] - x[i] * x[i]);
        s += a * a + b * b * 100.0;
    }
    s
}

/// Eight numbers that move each other.
fn step<T: Real>(_: usize, x: &[T], p: &[T]) -> Vec<T> {
    (0..x.len()).map(|k| (x[k] * p[0] + x[(k + 1) % x.len()] * p[1]).sin()).collect()
}

fn numbers(n: usize) -> Vec<f64> {
    (1..=n).map(|k| (k as f64 * 0.618_033_988_749_894_9).fract()).collect()
}

/// The least time of one run, over at least half a second, in seconds.
fn least(mut runs: Vec<Box<dyn FnMut() + '_>>) -> Vec<f64> {
    let mut best = vec![f64::INFINITY; runs.len()];
    let start = Instant::now();
    let mut rounds = 0;
    while rounds < 3 || start.elapsed().as_secs_f64() < 0.5 {
        for (run, best) in runs.iter_mut().zip(&mut best) {
            let begin = Instant::now();
            run();
            *best = best.min(begin.elapsed().as_secs_f64());
        }
        rounds += 1;
    }
    best
}

fn inputs(n: usize) -> String {
    let (x, mut g) = (numbers(n), vec![0.0; n]);
    // Short runs are repeated within one measurement.
    let repeat = 20_000 / n + 1;
    let best = least(vec![
        Box::new(|| {
            for _ in 0..repeat {
                black_box(rosenbrock(black_box(&x)));
            }
        }),
        Box::new(|| {
            for _ in 0..repeat {
                black_box(scalar::gradient_into(rosenbrock, black_box(&x), &mut g));
            }
        }),
    ]);
    (best[1] / best[0]).to_string()
}

fn length(n: usize) -> String {
    let mut tape = Tape::new();
    let mut best = f64::INFINITY;
    for _ in 0..if n > 10_000_000 { 2 } else { 5 } {
        let begin = Instant::now();
        tape.record(|t| {
            let (x, y) = (t.input(0.5), t.input(1e-9));
            // A sum of two nodes is one record.
            let z = (0..n).fold(x, |z, _| z + y);
            black_box(t.derivative(z, y));
        });
        best = best.min(begin.elapsed().as_secs_f64());
    }
    format!("{} {}", best * 1e9 / n as f64, tape.bytes())
}

fn depth(steps: usize, states: usize) -> String {
    let mut tape = Tape::new();
    tape.record(|t| {
        let (x, p) = (t.inputs(&numbers(8)), t.inputs(&[0.7, 0.4]));
        let last = if states > 0 {
            scalar::Var::checkpointed(steps, states, &x, &p, step)
        } else {
            (0..steps).fold(x.clone(), |x, k| step(k, &x, &p))
        };
        black_box(t.derivative(last[0], x[0]));
    });
    let text = std::fs::read_to_string("/proc/self/status").expect("memory is measured on Linux");
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("the kernel reports it");
    let kibibytes: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
    (kibibytes * 1024).to_string()
}

fn tensor(task: &str, n: usize, threads: usize) -> String {
    pullback::set_num_threads(threads);
    let repeat = 20_000 / n + 1;
    let of = |shape: &[usize]| Tensor::uniform(Key::new(1), shape.to_vec(), DType::F32);
    let mut run: Box<dyn FnMut()> = match task {
        "exp" => {
            let x = of(&[n]);
            Box::new(move || drop(black_box(x.exp())))
        }
        "gradient" => {
            let x = of(&[n]);
            let f = |x: &Tensor| (x.sin() * x).tanh().sum();
            Box::new(move || drop(black_box(grad(f)(&x))))
        }
        _ => {
            let (a, b) = (of(&[n, n]), of(&[n, n]));
            Box::new(move || drop(black_box(a.matmul(&b))))
        }
    };
    if task == "matmul" {
        let seconds = least(vec![run])[0];
        return (2.0 * (n as f64).powi(3) / seconds * 1e-9).to_string();
    }
    let seconds = least(vec![Box::new(|| (0..repeat).for_each(|_| run()))])[0];
    (seconds * 1e9 / (repeat * n) as f64).to_string()
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |k: usize| arguments[k].parse().expect("a number");
    let answer = match arguments[0].as_str() {
        "inputs" => inputs(number(1)),
        "length" => length(number(1)),
        "depth" => depth(number(1), number(2)),
        "tensor" => tensor(&arguments[1], number(2), number(3)),
        other => panic!("there is no measurement {other:?}"),
    };
    println!("{answer}");
}
