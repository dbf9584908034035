//! Random numbers by counting. The generator is Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011): a
//! bijection of a counter under a key, so every number is drawn by itself, in any order.

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

    /// A number from the standard normal distribution.
    pub fn normal(self, n: usize) -> f64 {
        // Box and Muller: a pair of words gives a radius and an angle, of which the cosine is used.
        let [a, b] = self.words(n as u64);
        (-2.0 * (1.0 - unit(a)).ln()).sqrt() * (TAU * unit(b)).cos()
    }

    /// An integer from `low..high`.
    pub fn integer(self, n: usize, low: i64, high: i64) -> i64 {
        let width = high.wrapping_sub(low) as u64 as u128;
        low.wrapping_add(((self.word(n) as u128 * width) >> 64) as i64)
    }
}

/// A number in `[0, 1)` with the precision of f64.
pub(crate) fn unit(word: u64) -> f64 {
    (word >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// A number in `[0, 1)` that f32 holds, so that rounding to it never gives 1.
pub(crate) fn unit32(word: u64) -> f64 {
    (word >> 40) as f64 * (1.0 / (1u64 << 24) as f64)
}

/// The same number of elements for each stream, one stream after the other.
pub(crate) fn draw<T>(streams: &[Philox], out: &mut [T], f: impl Fn(Philox, usize) -> T) {
    let each = out.len() / streams.len().max(1);
    for (&stream, out) in streams.iter().zip(out.chunks_mut(each.max(1))) {
        out.iter_mut().enumerate().for_each(|(k, o)| *o = f(stream, k));
    }
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
}
