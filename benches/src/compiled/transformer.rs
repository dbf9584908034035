//! A transformer over characters: 4 layers of width 256 with 8 heads, context 128, batch 8.

use super::adam;
use crate::task::Task;
use pullback::prelude::*;

const LAYERS: usize = 4;
const WIDTH: usize = 256;
const HEADS: usize = 8;
const CONTEXT: usize = 128;
const BATCH: usize = 8;
const CHARACTERS: usize = 65;

#[derive(Tree)]
struct Norm {
    scale: Tensor,
    shift: Tensor,
}

#[derive(Tree)]
struct Linear {
    weight: Tensor,
    bias: Tensor,
}

#[derive(Tree)]
struct Layer {
    before: Norm,
    attention: Linear,
    projection: Linear,
    between: Norm,
    up: Linear,
    down: Linear,
}

#[derive(Tree)]
struct Model {
    tokens: Tensor,
    positions: Tensor,
    layers: Vec<Layer>,
    last: Norm,
    head: Linear,
}

fn normal(seed: &mut u64, shape: [usize; 2]) -> Tensor {
    *seed += 1;
    Tensor::randn(Key::new(*seed), shape, DType::F32) * 0.02
}

fn model() -> Model {
    let mut seed = 0;
    let ones = || Tensor::ones([WIDTH]).cast(DType::F32);
    let norm = || Norm { scale: ones(), shift: ones() * 0.0 };
    let mut linear = |from: usize, to: usize| Linear {
        weight: normal(&mut seed, [from, to]),
        bias: Tensor::zeros([to]).cast(DType::F32),
    };
    let layers = (0..LAYERS).map(|_| Layer {
        before: norm(),
        attention: linear(WIDTH, 3 * WIDTH),
        projection: linear(WIDTH, WIDTH),
        between: norm(),
        up: linear(WIDTH, 4 * WIDTH),
        down: linear(4 * WIDTH, WIDTH),
    });
    let layers = layers.collect();
    let head = linear(WIDTH, CHARACTERS);
    Model {
        tokens: normal(&mut seed, [CHARACTERS, WIDTH]),
        positions: normal(&mut seed, [CONTEXT, WIDTH]),
        layers,
        last: norm(),
        head,
    }
}

impl Norm {
    fn apply(&self, x: &Tensor) -> Tensor {
        let centred = x - x.mean_axes_keep(-1);
        let variance = centred.square().mean_axes_keep(-1);
        centred * (variance + 1e-5).rsqrt() * &self.scale + &self.shift
    }
}

impl Linear {
    fn apply(&self, x: &Tensor) -> Tensor {
        x.matmul(&self.weight) + &self.bias
    }
}

impl Layer {
    fn apply(&self, x: &Tensor, mask: &Tensor) -> Tensor {
        let x = x + self.projection.apply(&self.attend(&self.before.apply(x), mask));
        let h = self.up.apply(&self.between.apply(&x)).gelu();
        x + self.down.apply(&h)
    }

    fn attend(&self, x: &Tensor, mask: &Tensor) -> Tensor {
        const SIZE: usize = WIDTH / HEADS;
        // Batch, time, (q k v), head, size -> (q k v), batch, head, time, size.
        let all = self.attention.apply(x).reshape([BATCH, CONTEXT, 3, HEADS, SIZE]).permute(&[2, 0, 3, 1, 4]);
        let (q, k, v) = (all.get(0), all.get(1), all.get(2));
        let scores = q.matmul(&k.transpose(-1, -2)) * (SIZE as f64).powf(-0.5);
        let weights = (scores + mask).softmax(-1);
        weights.matmul(&v).permute(&[0, 2, 1, 3]).reshape([BATCH, CONTEXT, WIDTH])
    }
}

/// Minus infinity, nearly, where one would look ahead.
fn mask() -> Tensor {
    let at = Tensor::arange(0.0f32, CONTEXT as f32, 1.0);
    let ahead = at.unsqueeze(0).gt(at.unsqueeze(1));
    ahead.cast(DType::F32) * -1e9
}

type Batch = (Tensor, Tensor);

fn loss(m: &Model, (text, next): &Batch, mask: &Tensor) -> Tensor {
    let x = m.tokens.index_select(0, text).reshape([BATCH, CONTEXT, WIDTH]) + &m.positions;
    let x = m.layers.iter().fold(x, |x, layer| layer.apply(&x, mask));
    let logits = m.head.apply(&m.last.apply(&x)).reshape([BATCH * CONTEXT, CHARACTERS]);
    logits.cross_entropy(next).mean()
}

fn batch() -> Batch {
    let text = |seed| Tensor::randint(Key::new(seed), [BATCH * CONTEXT], 0, CHARACTERS as i64);
    (text(100), text(101))
}

pub fn tasks() -> Vec<Task> {
    vec![
        Task::new("transformer/value", || {
            let mask = mask();
            let f = compile(move |(m, b): &(Model, Batch)| loss(m, b, &mask));
            let input = (model(), batch());
            move || drop(f.call(&input))
        })
        .of("compiled"),
        Task::new("transformer/value+gradient", || {
            let mask = mask();
            let f = compile(move |(m, b): &(Model, Batch)| value_and_grad(|m: &Model| loss(m, b, &mask))(m));
            let input = (model(), batch());
            move || drop(f.call(&input))
        })
        .of("compiled"),
        Task::new("transformer/step", || {
            let mask = mask();
            let f = compile(move |((m, s), b): &((Model, adam::State<Model>), Batch)| {
                let (value, g) = value_and_grad(|m: &Model| loss(m, b, &mask))(m);
                (adam::update(m, &g, s, 0.01), value)
            })
            .donate(0);
            let (m, b) = (model(), batch());
            let mut state = Some((adam::start(&m), m));
            move || {
                let (s, m) = state.take().expect("a step returns the next state");
                let ((m, s), _) = f.call_owned(((m, s), b.clone()));
                state = Some((s, m));
            }
        })
        .of("compiled"),
    ]
}
