//! Random tensors. Randomness is a value: a key says what is drawn, and the same key always draws the same.

use super::create::makers;
use super::{Tensor, bind};
use crate::dtype::DType;
use crate::error::{Result, Within, err, or_panic};
use crate::ops::{
    Bernoulli, FoldIn, LogGammaDraw, Permutation, Poisson, Randint, Randn, TruncatedNormal, Uniform,
};
use crate::shape::{Shape, axis};

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

    /// Positions among `0..n`, as i64: `count` of them, each drawn evenly, with `replace` independently of each other, and otherwise
    /// all different. [`index_select`](Tensor::index_select) picks what stands there.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = Tensor::from([10.0, 20.0, 30.0, 40.0]);
    /// let two = x.index_select(0, &Tensor::choice(Key::new(1), 4, 2, false));
    /// assert_ne!(two.item_at([0]), two.item_at([1]));
    /// ```
    choice try_choice(key: impl Into<Key>, n: usize, count: usize, replace: bool) {
        if replace {
            return Tensor::try_randint(key, count, 0, n as i64).map_err(|e| e.renamed("choice"));
        }
        if count > n {
            return Err(err!(Value, "there are no {count} different ones among {n}; use replace")).within("choice");
        }
        Tensor::try_permutation(key, n)?.try_narrow(-1, 0, count)
    }

    /// Numbers from the part of the standard normal distribution between `low` and `high`, which may be infinite.
    ///
    /// `mean + deviation * x` has the bounds `mean + deviation * low` and `.. * high`, and gradients with respect to `mean` and `deviation`.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = Tensor::truncated_normal(Key::new(1), [1000], -2.0, 2.0, DType::F32);
    /// assert!(x.abs().max().item() <= 2.0);
    /// ```
    #[doc(alias = "trunc_normal_")]
    truncated_normal try_truncated_normal(key: impl Into<Key>, shape: impl Into<Shape>, low: f64, high: f64, dtype: DType) {
        bind(TruncatedNormal { low, high, dtype, shape: shape.into() }, &[&key.into().words])
    }

    /// Numbers from the exponential distribution of mean 1, `-ln u`; all of them are above zero.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let waits = Tensor::exponential(Key::new(1), [1000], DType::F64);
    /// assert!(waits.min().item() > 0.0 && (waits.mean().item() - 1.0).abs() < 0.2);
    /// ```
    exponential try_exponential(key: impl Into<Key>, shape: impl Into<Shape>, dtype: DType) {
        from_uniform(key, shape, dtype, "exponential", |u| -u.ln())
    }

    /// Numbers from the Gumbel distribution, `-ln(-ln u)`: the one of maxima.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = Tensor::gumbel(Key::new(1), [1000], DType::F64);
    /// assert!((x.mean().item() - 0.5772).abs() < 0.2); // Euler's constant
    /// ```
    gumbel try_gumbel(key: impl Into<Key>, shape: impl Into<Shape>, dtype: DType) {
        from_uniform(key, shape, dtype, "gumbel", |u| -(-u.ln()).ln())
    }

    /// Numbers from the Laplace distribution of density `exp(-|x|) / 2`.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = Tensor::laplace(Key::new(1), [1000], DType::F32);
    /// assert!((x.abs().mean().item() - 1.0).abs() < 0.2);
    /// ```
    laplace try_laplace(key: impl Into<Key>, shape: impl Into<Shape>, dtype: DType) {
        from_uniform(key, shape, dtype, "laplace", |u| {
            let v = u - 0.5;
            (v.abs() * -2.0 + 1.0).ln() * -v.sign()
        })
    }

    /// Numbers from the logistic distribution, `ln u - ln(1 - u)`.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = Tensor::logistic(Key::new(1), [1000], DType::F64);
    /// assert!((x.sigmoid().mean().item() - 0.5).abs() < 0.05); // sigmoid is its distribution function
    /// ```
    logistic try_logistic(key: impl Into<Key>, shape: impl Into<Shape>, dtype: DType) {
        from_uniform(key, shape, dtype, "logistic", |u| u.ln() - (-u).log1p())
    }

    /// Numbers from the Cauchy distribution, `tan(π (u - 1/2))`. It has no mean.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = Tensor::cauchy(Key::new(1), [1000], DType::F64);
    /// assert!((x.abs().lt(1.0).sum().item() - 500.0).abs() < 80.0); // half of them
    /// ```
    cauchy try_cauchy(key: impl Into<Key>, shape: impl Into<Shape>, dtype: DType) {
        from_uniform(key, shape, dtype, "cauchy", |u| ((u - 0.5) * std::f64::consts::PI).tan())
    }

    /// A number from the gamma distribution for each shape parameter `α > 0`, with scale 1: its density is `x^(α-1) exp(-x) / Γ(α)`.
    ///
    /// The draw is the quantile of a random number that does not depend on `α`, hence differentiable: the gradient is that of implicit
    /// reparameterisation, `dx/dα = -(∂P/∂α) / (∂P/∂x)` with the distribution function `P(α, x)`. It is 0 for `α = 0`, and NaN for what is
    /// not a shape.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// // E x = α, so that the mean of many gradients is near 1.
    /// let mean = |alpha: &Tensor| Tensor::gamma(Key::new(1), &alpha.broadcast_to([2000])).mean();
    /// assert!((grad(mean)(&Tensor::scalar(3.0)).item() - 1.0).abs() < 0.05);
    /// ```
    gamma try_gamma(key: impl Into<Key>, alpha: &Tensor) {
        let drawn = |alpha: &Tensor| Ok(Tensor::try_log_gamma(key, alpha)?.exp());
        in_double(alpha, alpha.dtype(), drawn).map_err(|e| e.renamed("gamma")).within("gamma")
    }

    /// The logarithm of a [`gamma`](Tensor::gamma) variable, which is finite for small shapes too, where the variable itself is smaller than any
    /// float.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// assert!(Tensor::log_gamma(Key::new(1), &Tensor::scalar(1e-6)).item() < -1000.0);
    /// ```
    #[doc(alias = "loggamma")]
    log_gamma try_log_gamma(key: impl Into<Key>, alpha: &Tensor) {
        let key = key.into();
        bind(LogGammaDraw { order: 0 }, &[&key.words, &for_each_key(&key, alpha)?]).map_err(|e| e.renamed("log_gamma"))
    }

    /// A number from the beta distribution for each pair of `a` and `b`, which are broadcast: `x / (x + y)` of two gamma variables, with
    /// gradients to both.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = Tensor::beta(Key::new(1), &Tensor::full([1000], 2.0), &Tensor::scalar(6.0));
    /// assert!((x.mean().item() - 0.25).abs() < 0.02);
    /// ```
    beta try_beta(key: impl Into<Key>, a: &Tensor, b: &Tensor) {
        let shape = Shape::broadcast(a.shape(), b.shape()).within("beta")?;
        let ([first, second], dtype) = (key.into().split(), DType::promote(a.dtype(), b.dtype()));
        let log = |key: Key, x: &Tensor| Tensor::try_log_gamma(key, &x.try_broadcast_to(&shape)?);
        let drawn = || in_double(a, dtype, |a| {
            in_double(b, DType::F64, |b| Ok(log(first, a)?.try_sub(&log(second, b)?)?.sigmoid()))
        });
        drawn().map_err(|e| e.renamed("beta")).within("beta")
    }

    /// Positive numbers of sum 1 along the last axis, from the Dirichlet distribution of the concentrations there: gamma variables, divided by
    /// their sum, with gradients to the concentrations.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = Tensor::dirichlet(Key::new(1), &Tensor::from([1.0, 2.0, 3.0]));
    /// assert!((x.sum().item() - 1.0).abs() < 1e-15);
    /// ```
    dirichlet try_dirichlet(key: impl Into<Key>, concentration: &Tensor) {
        if concentration.rank() == 0 {
            return Err(err!(Shape, "needs the axis that the numbers sum to 1 along; got a scalar")).within("dirichlet");
        }
        let drawn = |c: &Tensor| Tensor::try_log_gamma(key, c)?.try_softmax(-1);
        in_double(concentration, concentration.dtype(), drawn).map_err(|e| e.renamed("dirichlet")).within("dirichlet")
    }

    /// The number of events for each rate, from the Poisson distribution, as i64. No gradient flows through it.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let events = Tensor::poisson(Key::new(1), &Tensor::full([1000], 4.0));
    /// assert!((events.cast(DType::F64).mean().item() - 4.0).abs() < 0.3);
    /// ```
    poisson try_poisson(key: impl Into<Key>, rate: &Tensor) {
        let key = key.into();
        bind(Poisson, &[&key.words, &for_each_key(&key, rate)?])
    }

    /// A position along an axis of `logits`, with probabilities `softmax(logits)` there, as i64, for each place of the other axes. No gradient
    /// flows through it. A logit of `-inf` is never drawn.
    ///
    /// It is the largest of the logits with [`gumbel`](Tensor::gumbel) noise added. To draw several, broadcast the logits.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let logits = Tensor::from([0.1, 0.2, 0.7]).ln();
    /// let many = Tensor::categorical(Key::new(1), &logits.broadcast_to([1000, 3]), -1);
    /// assert!((many.eq(2i64).sum().item() / 1000.0 - 0.7).abs() < 0.05);
    /// ```
    categorical try_categorical(key: impl Into<Key>, logits: &Tensor, along: isize) {
        let noisy = perturbed(key.into(), logits, along).map_err(|e| e.renamed("categorical"));
        let (noisy, axis) = noisy.within("categorical")?;
        noisy.try_argmax(axis)
    }

    /// As many different positions along an axis of `logits` as `count` says, as i64: each is drawn as [`categorical`](Tensor::categorical)
    /// would draw it from those that are left. No gradient flows through it.
    ///
    /// They are the places of the largest of the logits with [`gumbel`](Tensor::gumbel) noise added. [`choice`](Tensor::choice) draws evenly.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let logits = Tensor::from([0.1, 0.2, 0.7, 0.0]).ln();
    /// let two = Tensor::categorical_distinct(Key::new(1), &logits, 2, -1).to_vec::<i64>();
    /// assert!(two[0] != two[1] && !two.contains(&3));
    /// ```
    #[doc(alias = "multinomial")]
    categorical_distinct try_categorical_distinct(key: impl Into<Key>, logits: &Tensor, count: usize, along: isize) {
        let noisy = perturbed(key.into(), logits, along).map_err(|e| e.renamed("categorical_distinct"));
        let (noisy, axis) = noisy.within("categorical_distinct")?;
        Ok(noisy.try_topk(count, axis).map_err(|e| e.renamed("categorical_distinct"))?.1)
    }
}

/// What `f` makes of a parameter of floats, computed in f64 and rounded once to `dtype`: an exponential would multiply the rounding of what
/// it is taken of.
#[track_caller]
fn in_double(x: &Tensor, dtype: DType, f: impl FnOnce(&Tensor) -> Result<Tensor>) -> Result<Tensor> {
    if !x.dtype().is_float() {
        return Err(err!(DType, "takes a parameter of floats, not {}; use .cast(DType::F64)", x.dtype()));
    }
    f(&x.try_cast(DType::F64)?)?.try_cast(dtype)
}

/// Logits with Gumbel noise for each key, and the axis counted from the end, because those of the keys are in front.
#[track_caller]
fn perturbed(key: Key, logits: &Tensor, along: isize) -> Result<(Tensor, isize)> {
    let at = axis(along, logits.rank())?;
    let wide = if logits.dtype() == DType::F64 { DType::F64 } else { DType::F32 };
    let noisy = Tensor::try_gumbel(key, logits.shape(), wide)?.try_add(logits)?;
    Ok((noisy, at as isize - logits.rank() as isize))
}

/// The parameters of one key's draw, repeated for each of many keys.
#[track_caller]
fn for_each_key(key: &Key, parameters: &Tensor) -> Result<Tensor> {
    let front = &key.words.shape()[..key.words.rank() - 1];
    let shape: Shape = front.iter().chain(parameters.shape()).copied().collect();
    if front.is_empty() { Ok(parameters.clone()) } else { parameters.try_broadcast_to(shape) }
}

/// The inverse of a distribution function at numbers from `(0, 1)`. In half precision it is computed in single, and rounded once.
#[track_caller]
fn from_uniform(
    key: impl Into<Key>,
    shape: impl Into<Shape>,
    dtype: DType,
    name: &'static str,
    inverse: impl FnOnce(Tensor) -> Tensor,
) -> Result<Tensor> {
    let (wide, half) =
        if dtype == DType::F64 { (dtype, 2f64.powi(-54)) } else { (DType::F32, 2f64.powi(-25)) };
    if !dtype.is_float() {
        return Err(err!(DType, "draws floats, not {dtype}")).within(name);
    }
    // Half of the smallest step stands for zero, whose quantile may be infinite.
    let u = Tensor::try_uniform(key, shape, wide).map_err(|e| e.renamed(name))?.maximum(half);
    inverse(u).try_cast(dtype)
}
