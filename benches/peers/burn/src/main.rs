//! Tasks of `benches/src/eager` with burn, on flex, its eager backend for the processor.

#[path = "../../protocol.rs"]
mod protocol;

use burn::tensor::{Device, Distribution, Int, Tensor, activation};
use protocol::{SetUp, Task, serve};
use std::hint::black_box;

const LARGE: [usize; 2] = [10_000, 1000];
const ROWS: [usize; 2] = [4096, 1000];

fn random<const N: usize>(shape: [usize; N]) -> Tensor<N> {
    Tensor::random(shape, Distribution::Uniform(-0.5, 0.5), &Device::flex())
}

/// A leaf with the values of `x`; what is not tracked counts as constant beside it.
fn tracked<const N: usize>(x: &Tensor<N>) -> Tensor<N> {
    x.clone().autodiff().require_grad()
}

/// `0, 1, ...`, again from 0 after every `classes`.
fn labels(rows: usize, classes: usize) -> Tensor<1, Int> {
    Tensor::arange(0..rows as i64, &Device::flex()).remainder_scalar(classes as i64)
}

fn repeated<F: FnMut() + 'static>(make: impl Fn() -> F + 'static) -> SetUp {
    Box::new(move || Box::new(make()))
}

fn of_large(f: fn(Tensor<2>, Tensor<2>) -> Tensor<2>) -> SetUp {
    repeated(move || {
        let (a, b) = (random(LARGE), random(LARGE));
        move || drop(black_box(f(a.clone(), b.clone())))
    })
}

fn matmul(n: usize) -> SetUp {
    repeated(move || {
        let (a, b) = (random([n, n]), random([n, n]));
        move || drop(black_box(a.clone().matmul(b.clone())))
    })
}

fn chain() {
    let (a, b) = (tracked(&random([1])), tracked(&random([1])));
    let mut y = a.clone();
    for _ in 0..500 {
        y = y * a.clone() + b.clone();
    }
    black_box(y.backward());
}

fn cross_entropy(x: Tensor<2>, labels: Tensor<1, Int>) -> Tensor<1> {
    -activation::log_softmax(x, 1).gather(1, labels.unsqueeze_dim(1)).mean()
}

fn training() -> SetUp {
    repeated(|| {
        let widths = [784usize, 512, 512, 10];
        let mut layers: Vec<_> =
            widths.windows(2).map(|w| (random([w[0], w[1]]) * 0.1, random([w[1]]))).collect();
        let (x, labels) = (random([128, 784]), labels(128, 10));
        move || {
            let leaves: Vec<_> = layers.iter().map(|(w, b)| (tracked(w), tracked(b))).collect();
            let mut y = x.clone();
            for (k, (w, b)) in leaves.iter().enumerate() {
                y = y.matmul(w.clone()) + b.clone().unsqueeze();
                if k < 2 {
                    y = activation::relu(y);
                }
            }
            let mut gradients = cross_entropy(y, labels.clone()).backward();
            for ((w, b), leaf) in layers.iter_mut().zip(&leaves) {
                *w = w.clone() - leaf.0.grad_remove(&mut gradients).expect("used") * 0.01;
                *b = b.clone() - leaf.1.grad_remove(&mut gradients).expect("used") * 0.01;
            }
        }
    })
}

fn main() {
    let tasks = [
        Task("chain/n=1,forward+backward", 1000, repeated(|| chain)),
        Task("matmul/64,f32", 1, matmul(64)),
        Task("matmul/256,f32", 1, matmul(256)),
        Task("matmul/1024,f32", 1, matmul(1024)),
        Task("elementwise/add,f32", 1, of_large(|a, b| a + b)),
        Task("elementwise/exp,f32", 1, of_large(|a, _| a.exp())),
        Task("elementwise/tanh,f32", 1, of_large(|a, _| a.tanh())),
        Task("elementwise/relu,f32", 1, of_large(|a, _| activation::relu(a))),
        Task(
            "rows/log_softmax",
            1,
            repeated(|| {
                let (x, g) = (tracked(&random(ROWS)), random(ROWS));
                move || drop(black_box((activation::log_softmax(x.clone(), 1) * g.clone()).sum().backward()))
            }),
        ),
        Task(
            "rows/cross_entropy",
            1,
            repeated(|| {
                let (x, labels) = (tracked(&random(ROWS)), labels(ROWS[0], ROWS[1]));
                move || drop(black_box(cross_entropy(x.clone(), labels.clone()).backward()))
            }),
        ),
        Task("training/mlp_784_512_512_10,batch_128", 1, training()),
    ];
    serve("burn 0.22", &tasks);
}
