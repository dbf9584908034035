//! Kernels and inner loops for `benches/instructions`, which counts their instructions: `pullback-instructions KERNEL TIMES` runs one,
//! and without arguments lists them.

use pullback::scalar::{self, Dual, Function, Lanes, Real, Tape};
use pullback::{DType, Key, Tensor, grad};
use std::hint::black_box;

fn product<T: Real>(x: &[T]) -> T {
    x.iter().product()
}

fn rosenbrock<T: Real>(x: &[T]) -> T {
    let mut s = T::constant(0.0);
    for i in 0..x.len() - 1 {
        let (a, b) = (x[i] - 1.0, x[i + 1] - x[i] * x[i]);
        s += a * a + b * b * 100.0;
    }
    s
}

/// A recurrent cell, again and again.
fn recurrent<T: Real>(p: &[T]) -> T {
    let (mut hidden, mut cell) = (T::constant(0.1), T::constant(0.0));
    for _ in 0..100 {
        let gate = |k: usize| hidden * p[k] + p[4 + k];
        cell = cell * gate(0).sigmoid() + gate(1).sigmoid() * gate(2).tanh();
        hidden = gate(3).sigmoid() * cell.tanh();
    }
    hidden
}

fn log_sum_exp<T: Real>(x: &[T]) -> T {
    T::log_sum_exp(x)
}

/// Numbers in `[0, 1)` without a pattern.
fn numbers(n: usize) -> Vec<f64> {
    (1..=n).map(|k| (k as f64 * 0.618_033_988_749_894_9).fract()).collect()
}

fn tensor<const N: usize>(shape: [usize; N], dtype: DType) -> Tensor {
    Tensor::uniform(Key::new(1), shape, dtype)
}

/// Makes the data, and returns what to count.
type Kernel = fn() -> Box<dyn FnMut()>;

const KERNELS: &[(&str, Kernel)] = &[
    ("tape_product_10000", || taped(product, &numbers(10_000))),
    ("tape_rosenbrock_1000", || taped(rosenbrock, &numbers(1000))),
    ("tape_recurrent_100", || taped(recurrent, &numbers(8))),
    ("tape_log_sum_exp_10000", || taped(log_sum_exp, &numbers(10_000))),
    ("tape_of_lanes_recurrent_100", || {
        let p = numbers(8).into_iter().map(|v| Lanes([v; 16])).collect::<Vec<_>>();
        let mut tape = Tape::new();
        Box::new(move || {
            tape.record(|t| {
                let p = t.inputs(&p);
                let mut g = [Lanes([0.0; 16]); 8];
                t.gradient(recurrent(&p), &p, &mut g);
                black_box(g);
            })
        })
    }),
    ("dual_rosenbrock_1000", || {
        let x: Vec<Dual<f64, 8>> =
            numbers(1000).iter().enumerate().map(|(k, &x)| Dual::variable(x, k % 8)).collect();
        Box::new(move || {
            black_box(rosenbrock(black_box(&x)));
        })
    }),
    ("compiled_rosenbrock_32", || {
        let f = Function::record(rosenbrock, 32);
        let (x, mut g) = (numbers(32 * 640), vec![0.0; 32 * 640]);
        Box::new(move || f.gradient_function().try_evaluate_many_into(black_box(&x), &mut g).unwrap())
    }),
    ("compiled_total_of_sines", || {
        fn f<T: Real>(x: &[T]) -> T {
            ((x[0] * x[1]).sin() - x[2]).powi(2)
        }
        let total = Function::record(f, 3).gradient_function().select([0]).total(1);
        let x = numbers(2 * 6400);
        Box::new(move || {
            black_box(total.evaluate(&[1.5], black_box(&x)));
        })
    }),
    ("chain_of_small_tensors", || {
        let x = Tensor::scalar(0.999);
        Box::new(move || {
            let f = |x: &Tensor| (0..100).fold(x.clone(), |y, _| y * x + 0.001);
            black_box(grad(f)(&x));
        })
    }),
    ("add_f64", || of_two(DType::F64, |a, b| a + b)),
    ("exp_f32", || of_two(DType::F32, |a, _| a.exp())),
    ("tanh_f64", || of_two(DType::F64, |a, _| a.tanh())),
    ("sum_f32", || of_two(DType::F32, |a, _| a.sum())),
    ("softmax_f32", || of_two(DType::F32, |a, _| a.softmax(-1))),
    ("matmul_f32", || of_two(DType::F32, |a, b| a.matmul(b))),
    ("broadcast_add_f32", || of_two(DType::F32, |a, b| a + b.slice(0..1))),
];

fn taped(f: fn(&[scalar::Var]) -> scalar::Var, x: &[f64]) -> Box<dyn FnMut()> {
    let (x, mut g) = (x.to_vec(), vec![0.0; x.len()]);
    Box::new(move || {
        black_box(scalar::gradient_into(f, black_box(&x), &mut g));
    })
}

fn of_two(dtype: DType, f: fn(&Tensor, &Tensor) -> Tensor) -> Box<dyn FnMut()> {
    let (a, b) = (tensor([256, 256], dtype), tensor([256, 256], dtype));
    Box::new(move || {
        black_box(f(&a, &b));
    })
}

fn main() {
    pullback::set_num_threads(1);
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, times] = arguments.as_slice() else {
        KERNELS.iter().for_each(|(name, _)| println!("{name}"));
        return;
    };
    let (_, set_up) = KERNELS.iter().find(|(known, _)| known == name).expect("a kernel of the list");
    let mut run = set_up();
    (0..times.parse().expect("how often to run it")).for_each(|_: usize| run());
}
