//! Random tensors. Randomness is a value: a key says what is drawn, and the same key always draws the same.

use super::create::makers;
use super::{Tensor, bind};
use crate::dtype::DType;
use crate::error::{Result, or_panic};
use crate::ops::{Bernoulli, FoldIn, Permutation, Randint, Randn, Uniform};
use crate::shape::Shape;

/// What random numbers are drawn from. Keys are split, never advanced: use each once.
///
/// ```
/// use pullback::prelude::*;
/// let [a, b] = Key::new(7).split();
/// let x = Tensor::randn(&a, [3], DType::F64);
/// assert_eq!(x.to_vec::<f64>(), Tensor::randn(a, [3], DType::F64).to_vec::<f64>());
/// assert_ne!(x.to_vec::<f64>(), Tensor::randn(b, [3], DType::F64).to_vec::<f64>());
/// ```
///
/// A key is data, and a draw is an operation. As an argument of a compiled function it draws anew for each key, without tracing again;
/// a key that the function captures is a constant, and draws the same in each call. Draws are the same eagerly, compiled, under [`vmap`](crate::vmap), on
/// any number of threads, and when a checkpoint runs again.
///
/// ```
/// use pullback::prelude::*;
/// let dropout = compile(|(x, key): &(Tensor, Key)| {
///     let kept = Tensor::bernoulli(key, x.shape(), 0.5);
///     Tensor::where_(&kept, x * 2.0, 0.0)
/// });
/// let [a, b] = Key::new(7).split();
/// let (x, y) = (dropout.call(&(Tensor::ones([64]), a)), dropout.call(&(Tensor::ones([64]), b)));
/// assert_ne!(x.to_vec::<f64>(), y.to_vec::<f64>());
/// assert_eq!(dropout.traces(), 1);
/// ```
#[derive(Clone, Debug)]
pub struct Key {
    /// Two words of i64; with axes in front of them, many keys.
    pub(crate) words: Tensor,
}

impl Key {
    /// The key of a seed.
    pub fn new(seed: u64) -> Key {
        Key { words: Tensor::from([seed as i64, 0]) }
    }

    /// Keys that are independent of each other and of this one.
    #[must_use]
    #[track_caller]
    pub fn split<const N: usize>(&self) -> [Key; N] {
        let all = self.split_into(N).words;
        std::array::from_fn(|k| Key { words: all.narrow(-2, k, 1).squeeze(-2) })
    }

    /// As many independent keys as a function maps or a loop runs over, stacked in one: those of [`split`](Key::split).
    ///
    /// Draws from it outside of [`vmap`](crate::vmap) and [`scan`](crate::scan) have the axis of the keys in front.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let keys = Key::new(7).split_into(4);
    /// let noisy = |(x, key): &(Tensor, Key)| x + Tensor::randn(key, [], DType::F64);
    /// let y = vmap(noisy)(&(Tensor::zeros([4]), keys.clone()));
    /// assert_eq!(y.to_vec::<f64>(), Tensor::randn(keys, [], DType::F64).to_vec::<f64>());
    /// ```
    #[must_use]
    #[track_caller]
    pub fn split_into(&self, n: usize) -> Key {
        let mut shape = self.words.shape().to_vec();
        shape.insert(shape.len() - 1, n);
        let words = self.words.unsqueeze(-2).broadcast_to(shape.as_slice());
        shape.pop();
        let numbers = Tensor::arange(0, n as i64, 1).broadcast_to(shape);
        Key { words: or_panic(bind(FoldIn, &[&words, &numbers])) }
    }

    /// The key for the `n`-th of many things: a step, an example, a layer.
    #[must_use]
    #[track_caller]
    pub fn fold_in(&self, n: u64) -> Key {
        let front = &self.words.shape()[..self.words.rank() - 1];
        Key { words: or_panic(bind(FoldIn, &[&self.words, &Tensor::full(front, n as i64)])) }
    }
}

impl From<&Key> for Key {
    fn from(key: &Key) -> Key {
        key.clone()
    }
}

makers! { $ random_makers;
    /// Numbers drawn evenly from `[0, 1)`.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// assert!(Tensor::uniform(Key::new(1), [100], DType::F32).lt(1.0).all().to_vec::<bool>()[0]);
    /// ```
    uniform try_uniform(key: impl Into<Key>, shape: impl Into<Shape>, dtype: DType) {
        bind(Uniform { dtype, shape: shape.into() }, &[&key.into().words])
    }

    /// Numbers from the standard normal distribution.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// // Differentiable with respect to the parameters of another normal distribution.
    /// let sample = |(mean, deviation): &(Tensor, Tensor)| mean + deviation * Tensor::randn(Key::new(1), [], DType::F64);
    /// assert_eq!(grad(sample)(&(Tensor::scalar(0.0), Tensor::scalar(1.0))).0.item(), 1.0);
    /// ```
    randn try_randn(key: impl Into<Key>, shape: impl Into<Shape>, dtype: DType) {
        bind(Randn { dtype, shape: shape.into() }, &[&key.into().words])
    }

    /// Integers drawn evenly from `low..high`, as i64.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let dice = Tensor::randint(Key::new(1), [100], 1, 7);
    /// assert_eq!((dice.min().item(), dice.max().item()), (1.0, 6.0));
    /// ```
    randint try_randint(key: impl Into<Key>, shape: impl Into<Shape>, low: i64, high: i64) {
        bind(Randint { low, high, shape: shape.into() }, &[&key.into().words])
    }

    /// True with probability `p`.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let heads = Tensor::bernoulli(Key::new(1), [1000], 0.5).cast(DType::F64).sum().item();
    /// assert!((450.0..550.0).contains(&heads));
    /// ```
    bernoulli try_bernoulli(key: impl Into<Key>, shape: impl Into<Shape>, p: f64) {
        bind(Bernoulli { p, shape: shape.into() }, &[&key.into().words])
    }

    /// The numbers `0..n` in random order, as i64.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let order = Tensor::permutation(Key::new(1), 5);
    /// assert_eq!(order.sum().item(), 10.0);
    /// ```
    permutation try_permutation(key: impl Into<Key>, n: usize) {
        bind(Permutation { n }, &[&key.into().words])
    }
}
