//! Random numbers by counting. The generator is Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011): a
//! bijection of a counter under a key, so every number is drawn by itself, in any order.

pub(crate) mod gamma;
mod jet;
pub(crate) mod normal;
pub(crate) mod poisson;

use super::parallel::{self, Disjoint};
use std::f64::consts::TAU;

/// A stream of random words.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Philox {
    pub key: u64,
    pub stream: u64,
}

impl Philox {
    /// 128 random bits for each counter.
    pub fn words(self, counter: u64) -> [u64; 2] {
        let mut c = [counter as u32, (counter >> 32) as u32, self.stream as u32, (self.stream >> 32) as u32];
        let mut k = [self.key as u32, (self.key >> 32) as u32];
        for _ in 0..10 {
            let p = 0xD251_1F53_u64 * c[0] as u64;
            let q = 0xCD9E_8D57_u64 * c[2] as u64;
            c = [(q >> 32) as u32 ^ c[1] ^ k[0], q as u32, (p >> 32) as u32 ^ c[3] ^ k[1], p as u32];
            k = [k[0].wrapping_add(0x9E37_79B9), k[1].wrapping_add(0xBB67_AE85)];
        }
        [c[0] as u64 | (c[1] as u64) << 32, c[2] as u64 | (c[3] as u64) << 32]
    }

    /// The `n`-th word of the stream.
    pub fn word(self, n: usize) -> u64 {
        self.words(n as u64 / 2)[n % 2]
    }

    /// The stream for the `n`-th of many things.
    pub fn fold_in(self, n: u64) -> Philox {
        // The upper bit of the counter keeps splitting apart from drawing.
        let [key, stream] = self.words(n | 1 << 63);
        Philox { key, stream }
    }

    /// The stream of one element, for laws that take any number of words.
    pub fn element(self, n: usize) -> Philox {
        let [key, stream] = self.words(n as u64 | 1 << 62);
        Philox { key, stream }
    }

    /// A number from the standard normal distribution.
    pub fn normal(self, n: usize) -> f64 {
        // Box and Muller: a pair of words gives a radius and an angle, of which the cosine is used.
        let [a, b] = self.words(n as u64);
        (-2.0 * (1.0 - unit(a)).ln()).sqrt() * (TAU * unit(b)).cos()
    }
}

/// An integer from `low..high`.
pub(crate) fn integer(word: u64, low: i64, high: i64) -> i64 {
    let width = high.wrapping_sub(low) as u64 as u128;
    low.wrapping_add(((word as u128 * width) >> 64) as i64)
}

/// A number in `[0, 1)` with the precision of f64.
pub(crate) fn unit(word: u64) -> f64 {
    unit_of(word, 53)
}

/// A number in `[0, 1)`, a multiple of `2^-bits`: a type with so many bits of precision holds it, so that rounding never gives 1.
pub(crate) fn unit_of(word: u64, bits: u32) -> f64 {
    (word >> (64 - bits)) as f64 * (1.0 / (1u64 << bits) as f64)
}

/// A number in `(0, 1)` whose distance to 1 is a number in `(0, 1)` too: the middle of one of `2^52` parts.
pub(crate) fn inside(word: u64) -> f64 {
    ((word >> 12) as f64 + 0.5) * (1.0 / (1u64 << 52) as f64)
}

/// Elements a thread should have before another one is worth waking, if one costs some tens of nanoseconds.
const GRAIN: usize = 1 << 12;

/// The same number of elements for each stream, one stream after the other: `f` of the stream, the number of the element there, and its place
/// among all. It depends on nothing else, so that the work can be split anyhow.
pub(crate) fn draw<T: Send>(streams: &[Philox], out: &mut [T], f: impl Fn(Philox, usize, usize) -> T + Sync) {
    parts(streams, out, 1, |stream, first, at, out| {
        out.iter_mut().enumerate().for_each(|(k, o)| *o = f(stream, first + k, at + k));
    });
}

/// [`draw`] for elements that take one word each: a block of the generator makes two.
pub(crate) fn draw_words<T: Send>(streams: &[Philox], out: &mut [T], f: impl Fn(u64) -> T + Sync) {
    parts(streams, out, 2, |stream, first, _, out| {
        let (odd, rest) = out.split_at_mut((first % 2).min(out.len()));
        odd.iter_mut().for_each(|o| *o = f(stream.word(first)));
        let first = first + odd.len();
        for (k, pair) in rest.chunks_mut(2).enumerate() {
            let words = stream.words((first / 2 + k) as u64);
            pair.iter_mut().zip(words).for_each(|(o, w)| *o = f(w));
        }
    });
}

/// Calls `f` with parts of the output that belong to one stream each, after the number of the first element there and its place among all.
fn parts<T: Send>(
    streams: &[Philox],
    out: &mut [T],
    align: usize,
    f: impl Fn(Philox, usize, usize, &mut [T]) + Sync,
) {
    let each = out.len() / streams.len().max(1);
    if each == 0 {
        return;
    }
    let n = out.len();
    let out = Disjoint::new(out);
    parallel::split(n, GRAIN, align, |range| {
        let mut at = range.start;
        while at < range.end {
            let (stream, first) = (at / each, at % each);
            let end = range.end.min((stream + 1) * each);
            // SAFETY: ranges are disjoint, and so are the parts of one.
            f(streams[stream], first, at, unsafe { out.part(at..end) });
            at = end;
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The published test vectors of Philox 4x32-10: all zeros, and all ones.
    #[test]
    fn philox_known_answers() {
        let zero = Philox { key: 0, stream: 0 }.words(0);
        assert_eq!(zero, [0xe169c58d_6627e8d5, 0x9b00dbd8_bc57ac4c]);
        let ones = Philox { key: u64::MAX, stream: u64::MAX }.words(u64::MAX);
        assert_eq!(ones, [0x41c83b0e_408f276d, 0x6d5451fd_a20bc7c6]);
    }

    /// Bits that a float type does not hold are not drawn, or `1 - 2^-53` would be 1 there.
    #[test]
    fn the_largest_numbers_are_below_one() {
        assert!((unit_of(u64::MAX, 24) as f32) < 1.0 && unit(u64::MAX) < 1.0 && inside(u64::MAX) < 1.0);
        assert!(half::f16::from_f64(unit_of(u64::MAX, 11)).to_f64() < 1.0);
        assert!(half::bf16::from_f64(unit_of(u64::MAX, 8)).to_f64() < 1.0);
        assert!(inside(0) > 0.0);
    }

    #[test]
    fn words_in_pairs_are_those_drawn_one_by_one() {
        let streams = [1, 2, 3].map(|key| Philox { key, stream: 5 });
        for each in [0usize, 1, 2, 5, 9001] {
            let (mut pairs, mut single) = (vec![0; 3 * each], vec![1; 3 * each]);
            draw_words(&streams, &mut pairs, |w| w);
            draw(&streams, &mut single, |s, k, _| s.word(k));
            assert_eq!(pairs, single, "{each}");
        }
    }
}
