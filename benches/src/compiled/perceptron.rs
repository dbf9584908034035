//! Training steps of plain networks, a large and a tiny one.

use super::adam;
use crate::task::Task;
use pullback::prelude::*;

pub type Layers = Vec<(Tensor, Tensor)>;

fn layers(widths: &[usize]) -> Layers {
    let layer = |(w, k): (&[usize], u64)| {
        let weights = Tensor::randn(Key::new(k), [w[0], w[1]], DType::F32) * (2.0 / w[0] as f64).sqrt();
        (weights, Tensor::zeros([w[1]]).cast(DType::F32))
    };
    widths.windows(2).zip(0..).map(layer).collect()
}

fn network(layers: &Layers, x: &Tensor, activation: impl Fn(&Tensor) -> Tensor) -> Tensor {
    let ((w, b), hidden) = layers.split_last().expect("there are layers");
    let h = hidden.iter().fold(x.clone(), |h, (w, b)| activation(&(h.matmul(w) + b)));
    h.matmul(w) + b
}

/// The loss, its gradient, and a whole step with Adam, for one loss and batch.
pub fn of<L>(
    name: &'static str,
    layers: fn() -> Layers,
    batch: fn() -> (Tensor, Tensor),
    loss: L,
) -> Vec<Task>
where
    L: Fn(&Layers, &(Tensor, Tensor)) -> Tensor + Copy + 'static,
{
    vec![
        Task::new(format!("{name}/value"), move || {
            let f = compile(move |(p, b): &(Layers, (Tensor, Tensor))| loss(p, b));
            let input = (layers(), batch());
            move || drop(f.call(&input))
        }),
        Task::new(format!("{name}/value+gradient"), move || {
            let f = compile(move |(p, b): &(Layers, (Tensor, Tensor))| {
                value_and_grad(|p: &Layers| loss(p, b))(p)
            });
            let input = (layers(), batch());
            move || drop(f.call(&input))
        }),
        Task::new(format!("{name}/step"), move || {
            let f = compile(move |((p, s), b): &((Layers, adam::State<Layers>), (Tensor, Tensor))| {
                let (value, g) = value_and_grad(|p: &Layers| loss(p, b))(p);
                (adam::update(p, &g, s, 0.0), value)
            })
            .donate(0);
            let (p, b) = (layers(), batch());
            let mut state = Some((adam::start(&p), p));
            move || {
                let (s, p) = state.take().expect("a step returns the next state");
                let ((p, s), _) = f.call_owned(((p, s), b.clone()));
                state = Some((s, p));
            }
        }),
    ]
    .into_iter()
    .map(|t| t.of("compiled"))
    .collect()
}

pub fn tasks() -> Vec<Task> {
    let images = || {
        let x = Tensor::randn(Key::new(7), [128, 784], DType::F32);
        (x, Tensor::randint(Key::new(8), [128], 0, 10))
    };
    let classes =
        |p: &Layers, (x, labels): &(Tensor, Tensor)| network(p, x, Tensor::relu).cross_entropy(labels).mean();
    let points = || {
        let x = Tensor::randn(Key::new(7), [16, 16], DType::F32);
        (x, Tensor::randn(Key::new(8), [16, 1], DType::F32))
    };
    let squares = |p: &Layers, (x, y): &(Tensor, Tensor)| (network(p, x, Tensor::tanh) - y).square().mean();
    let mut all = of("mlp_784_512_512_10,batch_128", || layers(&[784, 512, 512, 10]), images, classes);
    all.extend(of("tanh_16_32_32_1,batch_16", || layers(&[16, 32, 32, 1]), points, squares));
    all
}
