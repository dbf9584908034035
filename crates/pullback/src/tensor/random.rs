//! Random tensors. Randomness is a value: a key says what is drawn, and the same key always draws the same.
//!
//! The generator is Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011): a bijection of a
//! counter under a key, so every element is drawn by itself, in any order and on any thread.

use super::Tensor;
use crate::dtype::{DType, Element, Scalar, with_float};
use crate::error::{Within, err, or_panic};
use crate::shape::Shape;
use crate::tape::caller;

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

#[track_caller]
fn drawn<T: Element>(op: &'static str, shape: Shape, f: impl Fn(usize) -> T) -> Tensor {
    let n = or_panic(shape.checked_len().within(op));
    Tensor::from_slice(&(0..n).map(f).collect::<Vec<T>>(), shape)
}

#[track_caller]
fn floats(op: &'static str, shape: Shape, dtype: DType, f: impl Fn(usize) -> f64) -> Tensor {
    if !dtype.is_float() {
        or_panic(Err(err!(DType, "draws floats, not {dtype}").in_op(op).at(caller())))
    }
    with_float!(dtype, T => drawn(op, shape, |k| T::from_scalar(Scalar::F64(f(k)))))
}

impl Tensor {
    /// Numbers drawn evenly from `[0, 1)`.
    #[must_use]
    #[track_caller]
    pub fn uniform(key: Key, shape: impl Into<Shape>, dtype: DType) -> Tensor {
        let unit = if dtype == DType::F64 { unit } else { unit32 };
        floats("uniform", shape.into(), dtype, |k| unit(key.word(k)))
    }

    /// Numbers from the standard normal distribution.
    #[must_use]
    #[track_caller]
    pub fn randn(key: Key, shape: impl Into<Shape>, dtype: DType) -> Tensor {
        // Box and Muller: a pair of words gives a radius and an angle, of which the cosine is used.
        floats("randn", shape.into(), dtype, |k| {
            let [a, b] = key.words(k as u64);
            (-2.0 * (1.0 - unit(a)).ln()).sqrt() * (std::f64::consts::TAU * unit(b)).cos()
        })
    }

    /// Integers drawn evenly from `low..high`, as i64.
    #[must_use]
    #[track_caller]
    pub fn randint(key: Key, shape: impl Into<Shape>, low: i64, high: i64) -> Tensor {
        if low >= high {
            or_panic(Err(err!(Value, "the range {low}..{high} is empty").in_op("randint").at(caller())))
        }
        let n = high.wrapping_sub(low) as u64 as u128;
        drawn("randint", shape.into(), |k| low.wrapping_add(((key.word(k) as u128 * n) >> 64) as i64))
    }

    /// True with probability `p`.
    #[must_use]
    #[track_caller]
    pub fn bernoulli(key: Key, shape: impl Into<Shape>, p: f64) -> Tensor {
        if !(0.0..=1.0).contains(&p) {
            let e = err!(Value, "{p} is not a probability");
            or_panic(Err(e.in_op("bernoulli").at(caller())))
        }
        drawn("bernoulli", shape.into(), |k| unit(key.word(k)) < p)
    }

    /// The numbers `0..n` in random order, as i64.
    #[must_use]
    #[track_caller]
    pub fn permutation(key: Key, n: usize) -> Tensor {
        let mut order: Vec<(u64, i64)> = (0..n).map(|k| (key.word(k), k as i64)).collect();
        order.sort_unstable();
        drawn("permutation", n.into(), |k| order[k].1)
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
