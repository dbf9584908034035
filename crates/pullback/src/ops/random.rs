//! Draws of random numbers, and the splitting of keys. A key is an i64 tensor of shape `[2]`. With axes in front of these two words it is
//! many keys, each of which draws what it would draw alone: that is also the batching rule.

use super::*;
use crate::allocation::ask_for;
use crate::dtype::{Element, Scalar, with_float};
use crate::error::err;
use crate::kernels::movement;
use crate::kernels::random::{Philox, draw, draw_words, inside, integer, normal, unit, unit_of};
use bytemuck::Pod;
use smallvec::smallvec;

/// The axes in front of the words of a key.
pub(super) fn keys<'a>(key: Arg<'a>) -> Result<&'a [usize]> {
    match key.shape.split_last() {
        Some((2, front)) if key.dtype == DType::I64 => Ok(front),
        _ => Err(err!(DType, "a key has two words of i64, but this is {} {:?}", key.dtype, key.shape)),
    }
}

pub(super) fn streams(key: Value) -> Vec<Philox> {
    let mut words = vec![0i64; key.shape.iter().product()];
    movement::copy(key.view(), &mut words);
    words.chunks_exact(2).map(|w| Philox { key: w[0] as u64, stream: w[1] as u64 }).collect()
}

/// The elements that `f` draws from each of the streams; a single one needs no buffer.
fn drawn<T: Pod + Send>(streams: &[Philox], out: &mut Output, f: impl Fn(Philox, usize) -> T + Sync) {
    match (streams, out.shape().numel()) {
        (&[stream], 1) => out.splat(f(stream, 0)),
        _ => draw(streams, out.fill(), |s, k, _| f(s, k)),
    }
}

/// [`drawn`] for elements that take one word each.
fn drawn_words<T: Pod + Send>(streams: &[Philox], out: &mut Output, f: impl Fn(u64) -> T + Sync) {
    match (streams, out.shape().numel()) {
        (&[stream], 1) => out.splat(f(stream.word(0))),
        _ => draw_words(streams, out.fill(), f),
    }
}

/// A distribution: what one key draws.
trait Law: Clone + PartialEq + std::fmt::Debug + Into<Op> {
    const NAME: &'static str;

    /// The type of what one key draws, and every error about parameters.
    fn aval(&self) -> Result<Aval>;

    /// What each of the streams draws, one after the other.
    fn eval(&self, streams: &[Philox], out: &mut Output) -> Result<()>;

    #[cfg_attr(not(test), allow(dead_code, reason = "only tests draw from them"))]
    fn samples() -> Vec<Self>;
}

impl<L: Law> Primitive for L {
    const NAME: &'static str = L::NAME;
    const LEADING_BATCH: bool = true;

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        let front = keys(x[0])?;
        let Aval { dtype, shape } = self.aval()?;
        let shape: Shape = front.iter().chain(shape.iter()).copied().collect();
        shape.checked_len()?;
        Ok(Aval { dtype, shape })
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        Law::eval(self, &streams(x[0]), out)
    }

    fn flops(&self, _: &[&[usize]], y: &[usize]) -> u64 {
        // Ten rounds of a few integer operations for each element.
        50 * y.iter().product::<usize>() as u64
    }

    fn pullback(&self, _: &At, _: &Tensor) -> Cotangents {
        smallvec![None]
    }

    fn samples() -> Vec<Sample> {
        let one = |law: L| Sample::new(law, [key(&[2])]);
        let many = |law: L| Sample::new(law, [key(&[3, 2])]);
        <L as Law>::samples().into_iter().flat_map(|law| [one(law.clone()), many(law)]).collect()
    }
}

pub(super) fn key(shape: &[usize]) -> Draw {
    Draw::Index(1 << 40, shape.into())
}

/// Floats of a type and shape.
fn floats(dtype: DType, shape: &Shape) -> Result<Aval> {
    match dtype.is_float() {
        true => Ok(Aval { dtype, shape: shape.clone() }),
        false => Err(err!(DType, "draws floats, not {dtype}")),
    }
}

/// Numbers drawn evenly from `[0, 1)`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Uniform {
    pub dtype: DType,
    pub shape: Shape,
}

impl Law for Uniform {
    const NAME: &'static str = "uniform";

    fn aval(&self) -> Result<Aval> {
        floats(self.dtype, &self.shape)
    }

    fn eval(&self, streams: &[Philox], out: &mut Output) -> Result<()> {
        // As many bits as the type has, or the largest numbers would round to 1.
        with_float!(self.dtype, T => {
            let bits = T::MANTISSA_DIGITS;
            drawn_words(streams, out, |w| T::from_scalar(Scalar::F64(unit_of(w, bits))).store())
        });
        Ok(())
    }

    fn samples() -> Vec<Self> {
        let of = |dtype, shape: &[usize]| Uniform { dtype, shape: shape.into() };
        vec![of(DType::F64, &[]), of(DType::F64, &[3]), of(DType::F32, &[2, 3]), of(DType::F64, &[0, 2])]
    }
}

/// Numbers from the standard normal distribution.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Randn {
    pub dtype: DType,
    pub shape: Shape,
}

impl Law for Randn {
    const NAME: &'static str = "randn";

    fn aval(&self) -> Result<Aval> {
        floats(self.dtype, &self.shape)
    }

    fn eval(&self, streams: &[Philox], out: &mut Output) -> Result<()> {
        with_float!(self.dtype, T => drawn(streams, out, |s, k| T::from_scalar(Scalar::F64(s.normal(k))).store()));
        Ok(())
    }

    fn samples() -> Vec<Self> {
        let of = |dtype, shape: &[usize]| Randn { dtype, shape: shape.into() };
        vec![of(DType::F64, &[]), of(DType::F32, &[3]), of(DType::F64, &[2, 3])]
    }
}

/// Numbers from the part of the standard normal distribution between two bounds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TruncatedNormal {
    pub low: f64,
    pub high: f64,
    pub dtype: DType,
    pub shape: Shape,
}

impl Law for TruncatedNormal {
    const NAME: &'static str = "truncated_normal";

    fn aval(&self) -> Result<Aval> {
        match self.low < self.high {
            true => floats(self.dtype, &self.shape),
            false => Err(err!(Value, "nothing lies between {} and {}", self.low, self.high)),
        }
    }

    fn eval(&self, streams: &[Philox], out: &mut Output) -> Result<()> {
        let one = |w: u64| normal::truncated_quantile(inside(w), 1.0 - inside(w), self.low, self.high);
        with_float!(self.dtype, T => drawn_words(streams, out, |w| T::from_scalar(Scalar::F64(one(w))).store()));
        Ok(())
    }

    fn samples() -> Vec<Self> {
        let of =
            |dtype, shape: &[usize]| TruncatedNormal { low: -1.0, high: 2.5, dtype, shape: shape.into() };
        vec![of(DType::F64, &[]), of(DType::F32, &[3]), of(DType::F64, &[2, 0])]
    }
}

/// Integers drawn evenly from `low..high`, as i64.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Randint {
    pub low: i64,
    pub high: i64,
    pub shape: Shape,
}

impl Law for Randint {
    const NAME: &'static str = "randint";

    fn aval(&self) -> Result<Aval> {
        match self.low < self.high {
            true => Ok(Aval { dtype: DType::I64, shape: self.shape.clone() }),
            false => Err(err!(Value, "the range {}..{} is empty", self.low, self.high)),
        }
    }

    fn eval(&self, streams: &[Philox], out: &mut Output) -> Result<()> {
        drawn_words(streams, out, |w| integer(w, self.low, self.high));
        Ok(())
    }

    fn samples() -> Vec<Self> {
        let of = |low, high, shape: &[usize]| Randint { low, high, shape: shape.into() };
        vec![of(-3, 1000, &[]), of(i64::MIN + 1, i64::MAX, &[2, 3])]
    }
}

/// True with probability `p`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bernoulli {
    pub p: f64,
    pub shape: Shape,
}

impl Law for Bernoulli {
    const NAME: &'static str = "bernoulli";

    fn aval(&self) -> Result<Aval> {
        match (0.0..=1.0).contains(&self.p) {
            true => Ok(Aval { dtype: DType::Bool, shape: self.shape.clone() }),
            false => Err(err!(Value, "{} is not a probability", self.p)),
        }
    }

    fn eval(&self, streams: &[Philox], out: &mut Output) -> Result<()> {
        drawn_words(streams, out, |w| (unit(w) < self.p).store());
        Ok(())
    }

    fn samples() -> Vec<Self> {
        let of = |p, shape: &[usize]| Bernoulli { p, shape: shape.into() };
        vec![of(0.5, &[]), of(0.25, &[4, 5])]
    }
}

/// The numbers `0..n` in random order, as i64.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Permutation {
    pub n: usize,
}

impl Law for Permutation {
    const NAME: &'static str = "permutation";

    fn aval(&self) -> Result<Aval> {
        Ok(Aval { dtype: DType::I64, shape: self.n.into() })
    }

    fn eval(&self, streams: &[Philox], out: &mut Output) -> Result<()> {
        ask_for::<(u64, i64)>(self.n)?;
        let all = out.fill::<i64>();
        for (s, out) in streams.iter().zip(all.chunks_mut(self.n.max(1))) {
            let mut order: Vec<(u64, i64)> = (0..self.n).map(|k| (s.word(k), k as i64)).collect();
            order.sort_unstable();
            out.iter_mut().zip(order).for_each(|(o, (_, k))| *o = k);
        }
        Ok(())
    }

    fn samples() -> Vec<Self> {
        vec![Permutation { n: 0 }, Permutation { n: 7 }]
    }
}

/// Another key from a key and a number, for each of many.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct FoldIn;

impl Primitive for FoldIn {
    const NAME: &'static str = "fold_in";
    const ARITY: Option<usize> = Some(2);
    const LEADING_BATCH: bool = true;

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        let front = keys(x[0])?;
        if x[1].dtype != DType::I64 || **x[1].shape != *front {
            return Err(err!(
                Shape,
                "takes a number of i64 for each key, but the keys are {:?} and the numbers {} {:?}",
                front,
                x[1].dtype,
                x[1].shape
            ));
        }
        Ok(Aval { dtype: DType::I64, shape: x[0].shape.clone() })
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        let streams = streams(x[0]);
        let mut numbers = vec![0i64; streams.len()];
        movement::copy(x[1].view(), &mut numbers);
        for ((s, n), out) in streams.iter().zip(numbers).zip(out.fill::<i64>().chunks_exact_mut(2)) {
            let Philox { key, stream } = s.fold_in(n as u64);
            out.copy_from_slice(&[key as i64, stream as i64]);
        }
        Ok(())
    }

    fn pullback(&self, _: &At, _: &Tensor) -> Cotangents {
        smallvec![None, None]
    }

    fn samples() -> Vec<Sample> {
        vec![
            Sample::new(FoldIn, [key(&[2]), Draw::Index(9, [].into())]),
            Sample::new(FoldIn, [key(&[3, 2]), Draw::Index(9, [3].into())]),
        ]
    }
}
