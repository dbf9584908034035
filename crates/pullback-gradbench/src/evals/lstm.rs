//! The loss of a recurrent network whose weights are diagonal: the bits of a character go through the same operations, so each has a
//! lane of vectors, and the tape is swept in pieces that fit the cache.

use crate::protocol::{Outcome, measure, parse, unknown};
use pullback::scalar::{Lanes, Number, Real, Tape, Var, native};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::rc::Rc;

#[derive(Deserialize)]
struct Input {
    main_params: Vec<Vec<f64>>,
    extra_params: Vec<Vec<f64>>,
    state: Vec<Vec<f64>>,
    sequence: Vec<Vec<f64>>,
}

struct Network {
    bits: usize,
    layers: usize,
    /// Hidden and cell state of each layer, at the start.
    state: Vec<Vec<f64>>,
    sequence: Vec<Vec<f64>>,
}

impl Network {
    /// The mean negative log-likelihood of each character after those before it; `x` holds the main parameters, layer by layer, and
    /// then the extra ones.
    fn loss<T: Real>(&self, x: &[T]) -> T {
        let b = self.bits;
        let (main, extra) = x.split_at(8 * b * self.layers);
        let mut state: Vec<Vec<T>> =
            self.state.iter().map(|row| row.iter().map(|&v| T::constant(v)).collect()).collect();
        let mut total = T::constant(0.0);
        let mut v = vec![T::constant(0.0); b];
        for pair in self.sequence.windows(2) {
            for j in 0..b {
                v[j] = extra[j] * pair[0][j];
            }
            for layer in 0..self.layers {
                let (weights, biases) = main[8 * b * layer..][..8 * b].split_at(4 * b);
                let [hidden, cell] = &mut state[2 * layer..2 * layer + 2] else { unreachable!() };
                for j in 0..b {
                    let gate = |input: T, k: usize| input * weights[k * b + j] + biases[k * b + j];
                    let forget = gate(v[j], 0).sigmoid();
                    let ingate = gate(hidden[j], 1).sigmoid();
                    let outgate = gate(v[j], 2).sigmoid();
                    let change = gate(hidden[j], 3).tanh();
                    cell[j] = cell[j] * forget + ingate * change;
                    hidden[j] = outgate * cell[j].tanh();
                    v[j] = hidden[j];
                }
            }
            let mut sum = T::constant(2.0);
            let mut wanted = T::constant(0.0);
            for j in 0..b {
                let y = v[j] * extra[b + j] + extra[2 * b + j];
                sum += y.exp();
                wanted += y * pair[1][j];
            }
            total += wanted - sum.ln() * pair[1].iter().sum::<f64>();
        }
        total * (-1.0 / ((self.sequence.len() - 1) * b) as f64)
    }
}

/// Bits that go together.
const WIDE: usize = 16;
type Pack = Lanes<WIDE>;
type Wide = Var<Pack>;

/// A row of numbers as packs; lanes that are left over hold 0.
fn packed(row: &[f64]) -> impl Iterator<Item = Pack> + '_ {
    row.chunks(WIDE).map(|part| {
        let mut pack = [0.0; WIDE];
        pack[..part.len()].copy_from_slice(part);
        Lanes(pack)
    })
}

/// The same network on packs.
struct WideNetwork {
    bits: usize,
    layers: usize,
    state: Vec<Pack>,
    /// The packs of each character.
    sequence: Vec<Vec<Pack>>,
}

impl WideNetwork {
    fn new(network: &Network) -> Self {
        WideNetwork {
            bits: network.bits,
            layers: network.layers,
            state: network.state.iter().flat_map(|row| packed(row)).collect(),
            sequence: network.sequence.iter().map(|row| packed(row).collect()).collect(),
        }
    }

    /// Packs for each row of bits.
    fn packs(&self) -> usize {
        self.bits.div_ceil(WIDE)
    }

    /// The state after a character, and what is added to the log-likelihood of each bit of the next one.
    #[inline(always)]
    fn step(&self, at: usize, state: &mut [Wide], total: &mut [Wide], x: &[Wide]) {
        let packs = self.packs();
        let row = |k: usize| &x[k * packs..][..packs];
        let extra = |k: usize| row(8 * self.layers + k);
        let mut sum = Wide::constant(2.0);
        let mut outputs = Vec::with_capacity(packs);
        for p in 0..packs {
            let mut v = extra(0)[p] * Wide::fixed(self.sequence[at][p]);
            for layer in 0..self.layers {
                let [wf, wi, wo, wc, bf, bi, bo, bc] = std::array::from_fn(|k| &row(8 * layer + k)[p]);
                let (hidden, cell) = (state[2 * layer * packs + p], state[(2 * layer + 1) * packs + p]);
                let (forget, outgate) = (v.mul_add(*wf, *bf).sigmoid(), v.mul_add(*wo, *bo).sigmoid());
                let (ingate, change) = (hidden.mul_add(*wi, *bi).sigmoid(), hidden.mul_add(*wc, *bc).tanh());
                let cell = cell.mul_add(forget, ingate * change);
                v = outgate * cell.tanh();
                (state[2 * layer * packs + p], state[(2 * layer + 1) * packs + p]) = (v, cell);
            }
            let y = v.mul_add(extra(1)[p], extra(2)[p]);
            let is_bit: [f64; WIDE] =
                std::array::from_fn(|k| if p * WIDE + k < self.bits { 1.0 } else { 0.0 });
            sum += (y.exp() * Wide::fixed(Lanes(is_bit))).across();
            outputs.push(y);
        }
        let norm = sum.ln();
        for p in 0..packs {
            total[p] += (outputs[p] - norm) * Wide::fixed(self.sequence[at + 1][p]);
        }
    }

    /// The gradient of the loss, for parameters in rows of packs.
    fn gradient(self: &Rc<Self>, x: &[Pack], tape: &mut Tape<Pack>, gradient: &mut [Pack]) {
        /// Characters between states that are kept.
        const PIECE: usize = 8;
        let (packs, layers) = (self.packs(), self.layers);
        let predictions = self.sequence.len() - 1;
        let pieces = predictions.div_ceil(PIECE);
        let network = Rc::clone(self);
        let piece = move |k: usize, state: &[Wide], x: &[Wide]| {
            let mut next = state.to_vec();
            let (state, total) = next.split_at_mut(2 * layers * packs);
            native(|| {
                for at in k * PIECE..predictions.min((k + 1) * PIECE) {
                    network.step(at, state, total, x);
                }
            });
            next
        };
        tape.record(|t| {
            let x = t.inputs(x);
            let mut start: Vec<Wide> = self.state.iter().map(|&v| Wide::fixed(v)).collect();
            start.resize(start.len() + packs, Wide::constant(0.0));
            let last = Wide::checkpointed(pieces, pieces, &start, &x, piece);
            let seed = Pack::constant(-1.0 / (predictions * self.bits) as f64);
            t.pullback(&last[2 * layers * packs..], &vec![seed; packs], &x, gradient);
        });
    }
}

pub fn run(function: &str, input: &RawValue) -> Outcome {
    let Input { main_params, extra_params, state, sequence } = parse(input)?;
    let bits = state[0].len();
    let network = Network { bits, layers: state.len() / 2, state, sequence };
    let x = [main_params.concat(), extra_params.concat()].concat();
    match function {
        "objective" => measure(input, || (), |()| network.loss(&x), |_, y| y),
        "jacobian" => measure(
            input,
            || {
                let x: Vec<Pack> = x.chunks(bits).flat_map(packed).collect();
                (Rc::new(WideNetwork::new(&network)), Tape::new(), vec![Pack::default(); x.len()], x)
            },
            |(network, tape, gradient, x)| network.gradient(x, tape, gradient),
            |(network, _, gradient, _), ()| {
                let rows = gradient.chunks(network.packs());
                rows.flat_map(|row| row.iter().flat_map(|pack| pack.0).take(bits)).collect::<Vec<f64>>()
            },
        ),
        _ => unknown(function),
    }
}
