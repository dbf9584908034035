//! The scalar tasks with other crates, over the line protocol of `benches/src/main.rs`. The first argument names the crate.

#[path = "../../protocol.rs"]
mod protocol;

use num_dual::{DualNum, gradient, hessian};
use protocol::{Task, serve};
use reverse::Gradient;
use std::hint::black_box;

fn numbers(n: usize) -> Vec<f64> {
    (1..=n).map(|k| 0.5 + (k as f64 * 0.618_033_988_749_894_9).fract()).collect()
}

mod forward {
    //! num-dual: dual numbers.
    use super::*;

    pub fn rosenbrock<D: DualNum<Primitive = f64>>(x: &[D]) -> D {
        let mut s = D::from(0.0);
        for i in 0..x.len() - 1 {
            let (a, b) = (x[i].clone() - 1.0, x[i + 1].clone() - x[i].clone() * x[i].clone());
            s += a.clone() * a + b.clone() * b * 100.0;
        }
        s
    }

    pub fn recurrent<D: DualNum<Primitive = f64>>(p: &[D]) -> D {
        let (mut hidden, mut cell) = (D::from(0.1), D::from(0.0));
        for _ in 0..1000 {
            let gate = |k: usize| hidden.clone() * p[k].clone() + p[4 + k].clone();
            let sigmoid = |x: D| ((-x).exp() + 1.0).recip();
            cell = cell * sigmoid(gate(0)) + sigmoid(gate(1)) * gate(2).tanh();
            hidden = sigmoid(gate(3)) * cell.tanh();
        }
        hidden
    }
}

mod backward {
    //! reverse: a tape behind references.
    use reverse::Var;

    pub fn product<'a>(x: &[Var<'a>]) -> Var<'a> {
        x[1..].iter().fold(x[0], |p, &x| p * x)
    }

    pub fn rosenbrock<'a>(x: &[Var<'a>]) -> Var<'a> {
        let term = |i: usize| {
            let (a, b) = (x[i] - 1.0, x[i + 1] - x[i] * x[i]);
            a * a + b * b * 100.0
        };
        (1..x.len() - 1).fold(term(0), |s, i| s + term(i))
    }

    pub fn recurrent<'a>(p: &[Var<'a>]) -> Var<'a> {
        let (mut hidden, mut cell) = (p[0] * 0.0 + 0.1, p[0] * 0.0);
        for _ in 0..1000 {
            let gate = |k: usize| hidden * p[k] + p[4 + k];
            let sigmoid = |x: Var<'a>| ((-x).exp() + 1.0).recip();
            cell = cell * sigmoid(gate(0)) + sigmoid(gate(1)) * gate(2).tanh();
            hidden = sigmoid(gate(3)) * cell.tanh();
        }
        hidden
    }

    pub fn log_sum_exp<'a>(x: &[Var<'a>]) -> Var<'a> {
        x[1..].iter().fold(x[0].exp(), |s, x| s + x.exp()).ln()
    }
}

type Run = Box<dyn FnMut()>;

fn with_reverse(f: for<'a> fn(&[reverse::Var<'a>]) -> reverse::Var<'a>, n: usize) -> Run {
    let x = numbers(n);
    let tape = reverse::Tape::new();
    Box::new(move || {
        tape.clear();
        let x = tape.add_vars(black_box(&x));
        let gradient = f(&x).grad();
        let gradient: Vec<f64> = gradient.wrt(x.as_slice());
        black_box(gradient);
    })
}

fn task(of: &str, name: &str) -> Option<Run> {
    use nalgebra::{DVector, SVector};
    Some(match (of, name) {
        ("num-dual", "gradient/rosenbrock_10") => {
            let x = SVector::<f64, 10>::from_vec(numbers(10));
            Box::new(move || {
                black_box(gradient(|x| forward::rosenbrock(x.as_slice()), black_box(&x)));
            })
        }
        ("num-dual", "gradient/rosenbrock_1000") => {
            let x = DVector::from_vec(numbers(1000));
            Box::new(move || {
                black_box(gradient(|x| forward::rosenbrock(x.as_slice()), black_box(&x)));
            })
        }
        ("num-dual", "gradient/recurrent_8") => {
            let x = SVector::<f64, 8>::from_vec(numbers(8));
            Box::new(move || {
                black_box(gradient(|x| forward::recurrent(x.as_slice()), black_box(&x)));
            })
        }
        ("num-dual", "hessian/rosenbrock_10") => {
            let x = SVector::<f64, 10>::from_vec(numbers(10));
            Box::new(move || {
                black_box(hessian(|x| forward::rosenbrock(x.as_slice()), black_box(&x)));
            })
        }
        ("reverse", "gradient/rosenbrock_10") => with_reverse(backward::rosenbrock, 10),
        ("reverse", "gradient/rosenbrock_1000") => with_reverse(backward::rosenbrock, 1000),
        ("reverse", "gradient/product_10000") => with_reverse(backward::product, 10_000),
        ("reverse", "gradient/log_sum_exp_10000") => with_reverse(backward::log_sum_exp, 10_000),
        ("reverse", "gradient/recurrent_8") => with_reverse(backward::recurrent, 8),
        _ => return None,
    })
}

const NAMES: [&str; 6] = [
    "gradient/rosenbrock_10",
    "gradient/rosenbrock_1000",
    "gradient/product_10000",
    "gradient/log_sum_exp_10000",
    "gradient/recurrent_8",
    "hessian/rosenbrock_10",
];

fn main() {
    let of = std::env::args().nth(1).expect("the name of a crate: num-dual or reverse");
    let known = NAMES.into_iter().filter(|name| task(&of, name).is_some());
    let tasks: Vec<Task> = known
        .map(|name| {
            let of = of.clone();
            Task(name, 1, Box::new(move || task(&of, name).expect("it was there before")))
        })
        .collect();
    serve(&of, &tasks);
}
