//! Tasks of `benches/src/eager` with burn, on its ndarray backend.

#[path = "../../protocol.rs"]
mod protocol;

use burn::backend::{Autodiff, NdArray};
use burn::tensor::{Distribution, Int, Tensor, activation};
use protocol::{SetUp, Task, serve};
use std::hint::black_box;

type Plain = NdArray<f32>;
type Tracked = Autodiff<Plain>;

const LARGE: [usize; 2] = [10_000, 1000];
const ROWS: [usize; 2] = [4096, 1000];

fn random<const N: usize, B: burn::tensor::backend::Backend>(shape: [usize; N]) -> Tensor<B, N> {
    Tensor::random(shape, Distribution::Uniform(-0.5, 0.5), &Default::default())
}

fn repeated<F: FnMut() + 'static>(make: impl Fn() -> F + 'static) -> SetUp {
    Box::new(move || Box::new(make()))
}

fn of_large(f: fn(Tensor<Plain, 2>, Tensor<Plain, 2>) -> Tensor<Plain, 2>) -> SetUp {
    repeated(move || {
        let (a, b) = (random(LARGE), random(LARGE));
        move || drop(black_box(f(a.clone(), b.clone())))
    })
}

fn matmul(n: usize) -> SetUp {
    repeated(move || {
        let (a, b) = (random::<2, Plain>([n, n]), random::<2, Plain>([n, n]));
        move || drop(black_box(a.clone().matmul(b.clone())))
    })
}

fn chain() {
    let (a, b) = (random::<1, Tracked>([1]).require_grad(), random::<1, Tracked>([1]).require_grad());
    let mut y = a.clone();
    for _ in 0..500 {
        y = y * a.clone() + b.clone();
    }
    black_box(y.backward());
}

fn cross_entropy(x: Tensor<Tracked, 2>, labels: Tensor<Tracked, 1, Int>) -> Tensor<Tracked, 1> {
    -activation::log_softmax(x, 1).gather(1, labels.unsqueeze_dim(1)).mean()
}

fn training() -> SetUp {
    repeated(|| {
        let widths = [784usize, 512, 512, 10];
        let mut layers: Vec<_> = widths
            .windows(2)
            .map(|w| (random::<2, Tracked>([w[0], w[1]]) * 0.1, random::<1, Tracked>([w[1]])))
            .collect();
        let x = random::<2, Tracked>([128, 784]);
        let labels = Tensor::<Tracked, 1, Int>::arange(0..128, &Default::default()).remainder_scalar(10);
        move || {
            let tracked: Vec<_> =
                layers.iter().map(|(w, b)| (w.clone().detach().require_grad(), b.clone().detach().require_grad())).collect();
            let mut y = x.clone();
            for (k, (w, b)) in tracked.iter().enumerate() {
                y = y.matmul(w.clone()) + b.clone().unsqueeze();
                if k < 2 {
                    y = activation::relu(y);
                }
            }
            let gradients = cross_entropy(y, labels.clone()).backward();
            for ((w, b), new) in tracked.iter().zip(&mut layers) {
                let (dw, db) = (w.grad(&gradients).expect("used"), b.grad(&gradients).expect("used"));
                *new = (
                    Tensor::from_inner(w.clone().inner() - dw * 0.01),
                    Tensor::from_inner(b.clone().inner() - db * 0.01),
                );
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
        Task("rows/log_softmax", 1, repeated(|| {
            let (x, g) = (random::<2, Tracked>(ROWS).require_grad(), random::<2, Tracked>(ROWS));
            move || drop(black_box((activation::log_softmax(x.clone(), 1) * g.clone()).sum().backward()))
        })),
        Task("rows/cross_entropy", 1, repeated(|| {
            let x = random::<2, Tracked>(ROWS).require_grad();
            let labels = Tensor::<Tracked, 1, Int>::arange(0..ROWS[0] as i64, &Default::default());
            let labels = labels.remainder_scalar(ROWS[1] as i64);
            move || drop(black_box(cross_entropy(x.clone(), labels.clone()).backward()))
        })),
        Task("training/mlp_784_512_512_10,batch_128", 1, training()),
    ];
    serve("burn 0.22", &tasks);
}
