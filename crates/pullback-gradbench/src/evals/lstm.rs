//! The loss of a recurrent network whose weights are diagonal: the bits of a character go through the same operations, so each has a
//! lane of vectors, and the tape is swept in pieces that fit the cache.

use super::CACHED;
use crate::protocol::{Outcome, measure, parse, unknown};
use pullback::scalar::{Lanes, Real, Tape, Var, native};
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

/// Bits that go together.
const WIDE: usize = 16;
type Pack = Lanes<WIDE>;

/// A number for each of them, with or without derivatives.
trait Bits: Real {
    fn fixed(pack: Pack) -> Self;
    /// The sum of all, in the place of each.
    fn across(self) -> Self;
}

impl Bits for Pack {
    #[inline(always)]
    fn fixed(pack: Pack) -> Self {
        pack
    }

    #[inline(always)]
    fn across(self) -> Self {
        self.across()
    }
}

impl Bits for Var<Pack> {
    #[inline(always)]
    fn fixed(pack: Pack) -> Self {
        Var::fixed(pack)
    }

    #[inline(always)]
    fn across(self) -> Self {
        self.across()
    }
}

/// Rows of numbers as packs, as many for each row; lanes that are left over hold 0.
fn packed(rows: &[Vec<f64>]) -> Vec<Pack> {
    let pack = |part: &[f64]| {
        let mut pack = [0.0; WIDE];
        pack[..part.len()].copy_from_slice(part);
        Lanes(pack)
    };
    rows.iter().flat_map(|row| row.chunks(WIDE)).map(pack).collect()
}

struct Network {
    bits: usize,
    layers: usize,
    /// Packs for each row of bits.
    packs: usize,
    /// Hidden and cell state of each layer, at the start.
    state: Vec<Pack>,
    /// The packs of each character.
    sequence: Vec<Pack>,
    /// 1 in the lanes of bits, 0 in those that are left over.
    is_bit: Vec<Pack>,
}

impl Network {
    fn new(state: &[Vec<f64>], sequence: &[Vec<f64>]) -> Self {
        let bits = state[0].len();
        Network {
            bits,
            layers: state.len() / 2,
            packs: bits.div_ceil(WIDE),
            state: packed(state),
            sequence: packed(sequence),
            is_bit: packed(&[vec![1.0; bits]]),
        }
    }

    /// The characters that are predicted.
    fn predictions(&self) -> usize {
        self.sequence.len() / self.packs - 1
    }

    /// The state after a character, and what is added to the log-likelihood of each bit of the next one. `x` holds the main parameters,
    /// layer by layer, and then the extra ones.
    #[inline(always)]
    fn step<T: Bits>(&self, at: usize, state: &mut [T], total: &mut [T], x: &[T]) {
        let packs = self.packs;
        let row = |k: usize| &x[k * packs..][..packs];
        let extra = |k: usize| row(8 * self.layers + k);
        let character = |at: usize| &self.sequence[at * packs..][..packs];
        let mut sum = T::constant(2.0);
        let mut outputs = Vec::with_capacity(packs);
        for p in 0..packs {
            let mut v = extra(0)[p] * T::fixed(character(at)[p]);
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
            sum += (y.exp() * T::fixed(self.is_bit[p])).across();
            outputs.push(y);
        }
        let norm = sum.ln();
        for (p, next) in character(at + 1).iter().enumerate() {
            total[p] += (outputs[p] - norm) * T::fixed(*next);
        }
    }

    /// The mean negative log-likelihood of each character after those before it, in every lane.
    fn loss<T: Bits>(self: &Rc<Self>, x: &[T]) -> T {
        let predictions = self.predictions();
        // A cell takes about 24 numbers on a tape, for each of its bits.
        let piece = (CACHED / (24 * x.len() / 8 * WIDE)).clamp(1, predictions);
        let pieces = predictions.div_ceil(piece);
        let mut start: Vec<T> = self.state.iter().map(|&v| T::fixed(v)).collect();
        start.resize(start.len() + self.packs, T::constant(0.0));
        let network = Rc::clone(self);
        let last = T::checkpointed(pieces, pieces, &start, x, move |k, state, x| {
            let mut next = state.to_vec();
            let (state, total) = next.split_at_mut(2 * network.layers * network.packs);
            native(
                #[inline(always)]
                || {
                    for at in k * piece..predictions.min((k + 1) * piece) {
                        network.step(at, state, total, x);
                    }
                },
            );
            next
        });
        let total: T = last[2 * self.layers * self.packs..].iter().sum();
        total.across() * (-1.0 / (predictions * self.bits) as f64)
    }

    /// The gradient of the loss.
    fn gradient(self: &Rc<Self>, x: &[Pack], tape: &mut Tape<Pack>, gradient: &mut [Pack]) {
        let mut one = Pack::default();
        one.0[0] = 1.0;
        tape.record(|t| {
            let x = t.inputs(x);
            t.pullback(&[self.loss(&x)], &[one], &x, gradient);
        });
    }
}

pub fn run(function: &str, input: &RawValue) -> Outcome {
    let Input { main_params, extra_params, state, sequence } = parse(input)?;
    let network = Rc::new(Network::new(&state, &sequence));
    let bits = network.bits;
    // A row for each gate.
    let gates: Vec<Vec<f64>> =
        main_params.iter().flat_map(|row| row.chunks(bits).map(<[f64]>::to_vec)).collect();
    let x = packed(&[gates, extra_params].concat());
    match function {
        "objective" => measure(input, || (), |()| network.loss(&x), |_, y| y.0[0]),
        "jacobian" => measure(
            input,
            || (Tape::new(), vec![Pack::default(); x.len()]),
            |(tape, gradient)| network.gradient(&x, tape, gradient),
            |(_, gradient), ()| {
                let rows = gradient.chunks(network.packs);
                rows.flat_map(|row| row.iter().flat_map(|pack| pack.0).take(bits)).collect::<Vec<f64>>()
            },
        ),
        _ => unknown(function),
    }
}
