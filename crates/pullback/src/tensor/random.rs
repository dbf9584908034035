//! Random tensors. Randomness is a value: a key says what is drawn, and the same key always draws the same.
//!
//! The generator is Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011): a bijection of a
//! counter under a key, so every element is drawn by itself, in any order and on any thread.

use super::Tensor;
use super::create::makers;
use crate::allocation::ask_for;
use crate::dtype::{DType, Element, Scalar, with_float};
use crate::error::{Result, Within, err, or_panic};
use crate::shape::Shape;

/// What random numbers are drawn from. Keys are split, never advanced: use each once.
///
/// ```
/// use pullback::prelude::*;
/// let [a, b] = Key::new(7).split();
/// let x = Tensor::randn(a, [3], DType::F64);
/// assert_eq!(x.to_vec::<f64>(), Tensor::randn(a, [3], DType::F64).to_vec::<f64>());
/// assert_ne!(x.to_vec::<f64>(), Tensor::randn(b, [3], DType::F64).to_vec::<f64>());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    key: u64,
    stream: u64,
}

impl Key {
    /// The key of a seed.
    pub fn new(seed: u64) -> Key {
        Key { key: seed, stream: 0 }
    }

    /// Keys that are independent of each other and of this one.
    #[must_use]
    pub fn split<const N: usize>(self) -> [Key; N] {
        std::array::from_fn(|k| self.fold_in(k as u64))
    }

    /// The key for the `n`-th of many things: a step, an example, a layer.
    #[must_use]
    pub fn fold_in(self, n: u64) -> Key {
        // The upper bit of the counter keeps splitting apart from drawing.
        let [a, b] = self.words(n | 1 << 63);
        Key { key: a, stream: b }
    }

    /// 128 random bits for each counter.
    fn words(self, counter: u64) -> [u64; 2] {
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
    fn word(self, n: usize) -> u64 {
        self.words(n as u64 / 2)[n % 2]
    }
}

/// A number in `[0, 1)` with the precision of f64.
fn unit(word: u64) -> f64 {
    (word >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// A number in `[0, 1)` that f32 holds, so that rounding never gives 1.
fn unit32(word: u64) -> f64 {
    (word >> 40) as f64 * (1.0 / (1u64 << 24) as f64)
}

/// Floats of the given type, each drawn by itself.
fn floats(shape: Shape, dtype: DType, f: impl Fn(usize) -> f64) -> Result<Tensor> {
    if !dtype.is_float() {
        return Err(err!(DType, "draws floats, not {dtype}"));
    }
    with_float!(dtype, T => Tensor::generated(shape, |k| T::from_scalar(Scalar::F64(f(k)))))
}

makers! {
    /// Numbers drawn evenly from `[0, 1)`.
    uniform try_uniform(key: Key, shape: impl Into<Shape>, dtype: DType) {
        let unit = if dtype == DType::F64 { unit } else { unit32 };
        floats(shape.into(), dtype, |k| unit(key.word(k))).within("uniform")
    }

    /// Numbers from the standard normal distribution.
    randn try_randn(key: Key, shape: impl Into<Shape>, dtype: DType) {
        // Box and Muller: a pair of words gives a radius and an angle, of which the cosine is used.
        let normal = |k: usize| {
            let [a, b] = key.words(k as u64);
            (-2.0 * (1.0 - unit(a)).ln()).sqrt() * (std::f64::consts::TAU * unit(b)).cos()
        };
        floats(shape.into(), dtype, normal).within("randn")
    }

    /// Integers drawn evenly from `low..high`, as i64.
    randint try_randint(key: Key, shape: impl Into<Shape>, low: i64, high: i64) {
        if low >= high {
            return Err(err!(Value, "the range {low}..{high} is empty")).within("randint");
        }
        let n = high.wrapping_sub(low) as u64 as u128;
        let number = |k: usize| low.wrapping_add(((key.word(k) as u128 * n) >> 64) as i64);
        Tensor::generated(shape.into(), number).within("randint")
    }

    /// True with probability `p`.
    bernoulli try_bernoulli(key: Key, shape: impl Into<Shape>, p: f64) {
        if !(0.0..=1.0).contains(&p) {
            return Err(err!(Value, "{p} is not a probability")).within("bernoulli");
        }
        Tensor::generated(shape.into(), |k| unit(key.word(k)) < p).within("bernoulli")
    }

    /// The numbers `0..n` in random order, as i64.
    permutation try_permutation(key: Key, n: usize) {
        ask_for::<(u64, i64)>(n).within("permutation")?;
        let mut order: Vec<(u64, i64)> = (0..n).map(|k| (key.word(k), k as i64)).collect();
        order.sort_unstable();
        Tensor::generated(n.into(), |k| order[k].1).within("permutation")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The published test vectors of Philox 4x32-10: all zeros, and all ones.
    #[test]
    fn philox_known_answers() {
        let zero = Key { key: 0, stream: 0 }.words(0);
        assert_eq!(zero, [0xe169c58d_6627e8d5, 0x9b00dbd8_bc57ac4c]);
        let ones = Key { key: u64::MAX, stream: u64::MAX }.words(u64::MAX);
        assert_eq!(ones, [0x41c83b0e_408f276d, 0x6d5451fd_a20bc7c6]);
    }
}
