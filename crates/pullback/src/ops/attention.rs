//! Scaled dot-product attention, with a fused pullback that is an operation of its own.

use super::*;
use crate::error::err;
use crate::kernels::attention::{self as kernel, Dropout, Mask, Real, Results};
use smallvec::smallvec;

/// `softmax(scale q kᵀ + mask) v` for queries `[.., n, d]`, keys `[.., m, d]` and values `[.., m, v]` of one type and equal leading axes. A mask `[.., n, m]` is the fourth
/// input, if there is one: truth values that say which keys count, or numbers to add. With dropout a key (of random numbers) is the last one; axes in
/// front of its two words are the first of the others, as for draws.
///
/// The result is `[.., n v + n]`: the rows of each head, and then the logarithm of the sum of exponentials that each was divided by, which the pullback needs.
/// Where no key counts both are 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Attention {
    pub scale: f64,
    pub causal: bool,
    /// The probability that a weight is dropped.
    pub dropout: f64,
}

/// The lengths of the axes of one head.
#[derive(Clone, Copy)]
struct Head {
    queries: usize,
    keys: usize,
    d: usize,
    v: usize,
}

impl Head {
    /// From the shapes of queries and values.
    fn new(q: &[usize], v: &[usize]) -> Head {
        let r = q.len();
        Head { queries: q[r - 2], keys: v[r - 2], d: q[r - 1], v: v[r - 1] }
    }

    fn of_results(self) -> usize {
        self.queries.saturating_mul(self.v.saturating_add(1))
    }

    fn of_cotangents(self) -> usize {
        let each = self.keys.saturating_mul(self.d.saturating_add(self.v));
        self.queries.saturating_mul(self.d).saturating_add(each)
    }
}

/// The shape of one row for each head.
fn packed(q: &Shape, row: usize) -> Result<Shape> {
    let shape: Shape = q[..q.len() - 2].iter().copied().chain([row]).collect();
    shape.checked_len()?;
    Ok(shape)
}

impl Attention {
    /// How many inputs it has, without what the pullback gets besides.
    fn inputs(&self, masked: bool) -> usize {
        3 + masked as usize + (self.dropout > 0.0) as usize
    }

    /// Whether there is a mask, from the number of inputs.
    fn masked(&self, inputs: usize) -> bool {
        inputs > self.inputs(false)
    }

    fn check(&self, x: &[Arg]) -> Result<Head> {
        let masked = self.masked(x.len());
        if x.len() != self.inputs(masked) {
            return Err(err!(
                Shape,
                "takes queries, keys, values, a mask and a key for dropout, got {} inputs",
                x.len()
            ));
        }
        let (q, k, v, r) = (x[0].shape, x[1].shape, x[2].shape, x[0].shape.len());
        let fit =
            r >= 2 && k.len() == r && v.len() == r && k[..r - 2] == q[..r - 2] && v[..r - 2] == q[..r - 2];
        if !fit || k[r - 1] != q[r - 1] || v[r - 2] != k[r - 2] {
            return Err(err!(
                Shape,
                "queries {q:?}, keys {k:?} and values {v:?} do not fit: they are [.., n, d], [.., m, d] and [.., m, v]"
            ));
        }
        let dtype = x[0].dtype;
        if !matches!(dtype, DType::F32 | DType::F64) || x[1].dtype != dtype || x[2].dtype != dtype {
            return Err(err!(DType, "takes f32 or f64, got {}, {} and {}", dtype, x[1].dtype, x[2].dtype));
        }
        let head = Head::new(q, v);
        if masked {
            let wanted: Shape = q[..r - 1].iter().copied().chain([head.keys]).collect();
            if *x[3].shape != wanted || (x[3].dtype != DType::Bool && x[3].dtype != dtype) {
                return Err(err!(Shape, "the mask is bool or {dtype} {wanted:?}, got {:?}", x[3]));
            }
        }
        if self.dropout > 0.0 {
            let key = x[x.len() - 1];
            let front = key.shape.len().wrapping_sub(1);
            if key.dtype != DType::I64
                || front > r - 2
                || key.shape[front] != 2
                || key.shape[..front] != q[..front]
            {
                return Err(err!(DType, "a key has two words of i64, but this is {key:?}"));
            }
        }
        Ok(head)
    }

    fn with<T: Real + bytemuck::Pod>(&self, x: &[Value], f: impl FnOnce(&kernel::Attention<T>)) {
        let mask = match x.get(3).filter(|_| self.masked(x.len())) {
            None => Mask::None,
            Some(mask) if mask.dtype == DType::Bool => Mask::Kept(mask.view()),
            Some(mask) => Mask::Added(mask.view()),
        };
        let dropout = (self.dropout > 0.0)
            .then(|| Dropout { keep: 1.0 - self.dropout, streams: streams(x[x.len() - 1]) });
        f(&kernel::Attention { scale: self.scale, causal: self.causal, mask, dropout });
    }

    fn forward<T: Real + bytemuck::Pod>(&self, x: &[Value], out: &mut [T]) {
        self.with(x, |how| kernel::attention(x[0].view(), x[1].view(), x[2].view(), how, out));
    }

    fn backward<T: Real + bytemuck::Pod>(&self, x: &[Value], out: &mut [T]) {
        let (x, results) = x.split_at(x.len() - 2);
        let results = Results { y: results[0].view(), g: results[1].view() };
        self.with(x, |how| {
            kernel::attention_pullback(x[0].view(), x[1].view(), x[2].view(), results, how, out)
        });
    }

    /// The cotangents of the scores, the weights of values, and the cotangents of the results, from other operations. All scores exist at once.
    fn composed(&self, x: &[Tensor], y: &Tensor, g: &Tensor) -> [Tensor; 3] {
        let (q, k, v) = (&x[0], &x[1], &x[2]);
        let head = Head::new(q.shape(), v.shape());
        let mut scores = q.matmul(&k.transposed()) * self.scale;
        if self.masked(x.len()) {
            scores = match x[3].dtype() {
                DType::Bool => Tensor::where_(&x[3], &scores, f64::NEG_INFINITY),
                _ => scores + &x[3],
            };
        }
        if self.causal {
            let place = |n: usize| Tensor::arange(0, n as i64, 1);
            let seen = place(head.queries).unsqueeze(1).ge(place(head.keys)).to(&scores.device());
            let seen = seen.broadcast_to(scores.shape());
            scores = Tensor::where_(&seen, &scores, f64::NEG_INFINITY);
        }
        let last = y.rank() - 1;
        let rows = head.queries * head.v;
        let matrix = |t: &Tensor, first: usize, n: usize| {
            let shape: Shape = q.shape()[..last].iter().copied().chain([head.queries, n]).collect();
            t.narrowed(last, first, head.queries * n).reshape_to(&shape)
        };
        let (results, totals) = (matrix(y, 0, head.v), matrix(y, rows, 1));
        let (g, of_totals) = (matrix(g, 0, head.v), matrix(g, rows, 1));
        // What the kernel does where a total is not finite.
        let by = Tensor::where_(&totals.detach().abs().lt(f64::INFINITY), &totals, 0.0);
        let p = (scores - by).exp();
        let mut h = g.matmul(&v.transposed());
        let mut weights = p.clone();
        if self.dropout > 0.0 {
            let words = &x[x.len() - 1];
            let shape: Shape = p.shape()[words.rank() - 1..].into();
            let kept = bind(Bernoulli { p: 1.0 - self.dropout, shape }, &[words]).expect("it is a key");
            let factors = kept.cast(p.dtype()) * (1.0 / (1.0 - self.dropout));
            (h, weights) = (h * &factors, weights * factors);
        }
        let centre = (&g * results).sum_axes_keep(-1) - of_totals;
        [p * (h - centre), weights, g]
    }
}

impl Primitive for Attention {
    const NAME: &'static str = "attention";
    const ARITY: Option<usize> = None;
    const CONTRACTION: bool = true;
    const LEADING_BATCH: bool = true;

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        let head = self.check(x)?;
        Ok(Aval { dtype: x[0].dtype, shape: packed(x[0].shape, head.of_results())? })
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        match x[0].dtype {
            DType::F32 => self.forward::<f32>(x, out.fill()),
            _ => self.forward::<f64>(x, out.fill()),
        }
        Ok(())
    }

    fn flops(&self, x: &[&[usize]], _: &[usize]) -> u64 {
        let head = Head::new(x[0], x[2]);
        let heads: usize = x[0][..x[0].len() - 2].iter().product();
        2 * (heads * head.queries * head.keys * (head.d + head.v + 4)) as u64
    }

    /// By a kernel of its own, in tiles, from the logarithms of the sums; the mask's is that of the scores.
    fn pullback(&self, at: &At, g: &Tensor) -> Cotangents {
        let n = at.arity();
        let x: Vec<Tensor> = (0..n).map(|k| at.x(k).clone()).collect();
        let mut all: Cotangents = smallvec![None; n];
        if (0..3).any(|k| at.needs(k)) {
            let inputs: Vec<&Tensor> = x.iter().chain([at.y(), g]).collect();
            let Attention { scale, causal, dropout } = *self;
            let packed = bind(AttentionPullback { scale, causal, dropout }, &inputs)
                .expect("types were checked by the forward pass");
            let last = packed.rank() - 1;
            let mut first = 0;
            for k in 0..3 {
                let [rows, columns] = [2, 1].map(|j| at.shape(k)[at.shape(k).len() - j]);
                let part = || packed.narrowed(last, first, rows * columns).reshape_to(at.shape(k));
                all[k] = at.needs(k).then(part);
                first += rows * columns;
            }
        }
        if self.masked(n) && at.needs(3) && at.dtype(3).is_float() {
            let [scores, ..] = self.composed(&x, at.y(), g);
            all[3] = Some(scores);
        }
        all
    }

    fn uses(&self, needs: &[bool]) -> Uses {
        Uses::inputs(0..needs.len()).and(Uses::OUTPUT)
    }

    fn samples() -> Vec<Sample> {
        samples(Sample::new)
    }
}

/// Samples with and without masks and dropout, of heads that are different in all lengths.
fn samples(sample: impl Fn(Attention, Vec<Draw>) -> Sample) -> Vec<Sample> {
    let any = |s: &[usize]| Draw::new(Domain::any, s);
    let how = |causal: bool, dropout: f64| Attention { scale: 0.5, causal, dropout };
    let key = |front: &[usize]| Draw::Index(1 << 40, front.iter().copied().chain([2]).collect());
    let head = |front: &[usize], [n, m, d, v]: [usize; 4], more: &[Draw]| -> Vec<Draw> {
        let shape = |a: usize, b: usize| front.iter().copied().chain([a, b]).collect::<Vec<_>>();
        let inputs = [any(&shape(n, d)), any(&shape(m, d)), any(&shape(m, v))];
        inputs.into_iter().chain(more.iter().cloned()).collect()
    };
    vec![
        sample(how(false, 0.0), head(&[], [2, 3, 2, 1], &[])),
        sample(how(true, 0.0), head(&[2], [3, 2, 1, 2], &[])),
        sample(how(false, 0.0), head(&[], [2, 3, 1, 2], &[any(&[2, 3])])),
        sample(how(false, 0.0), head(&[2], [2, 2, 1, 1], &[Draw::Mask([2, 2, 2].into())])),
        sample(how(false, 0.4), head(&[], [3, 2, 2, 1], &[key(&[])])),
        sample(how(true, 0.4), head(&[2], [2, 2, 1, 1], &[any(&[2, 2, 2]), key(&[2])])),
        sample(how(false, 0.0), head(&[], [2, 0, 2, 1], &[])),
    ]
}

/// The cotangents of an [`Attention`] with its result and that of its result behind its inputs, in one: `[.., n d + m d + m v]`, those of queries, keys and values
/// of each head.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct AttentionPullback {
    pub scale: f64,
    pub causal: bool,
    pub dropout: f64,
}

impl AttentionPullback {
    fn forward(self) -> Attention {
        Attention { scale: self.scale, causal: self.causal, dropout: self.dropout }
    }
}

impl Primitive for AttentionPullback {
    const NAME: &'static str = "attention_pullback";
    const ARITY: Option<usize> = None;
    const CONTRACTION: bool = true;
    const LEADING_BATCH: bool = true;

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        let Some(n) = x.len().checked_sub(2).filter(|&n| n >= 3) else {
            return Err(err!(
                Shape,
                "takes the inputs of attention, its result and a cotangent, got {} inputs",
                x.len()
            ));
        };
        let head = self.forward().check(&x[..n])?;
        let results = packed(x[0].shape, head.of_results())?;
        if let Some(other) = x[n..].iter().find(|a| *a.shape != results || a.dtype != x[0].dtype) {
            return Err(err!(Shape, "a result has shape {results:?}, got {other:?}"));
        }
        Ok(Aval { dtype: x[0].dtype, shape: packed(x[0].shape, head.of_cotangents())? })
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        match x[0].dtype {
            DType::F32 => self.forward().backward::<f32>(x, out.fill()),
            _ => self.forward().backward::<f64>(x, out.fill()),
        }
        Ok(())
    }

    fn flops(&self, x: &[&[usize]], y: &[usize]) -> u64 {
        5 * self.forward().flops(x, y) / 2
    }

    /// Through the plain formula, in memory quadratic in the lengths: second derivatives are rare.
    fn pullback(&self, at: &At, h: &Tensor) -> Cotangents {
        let how = self.forward();
        pulled(at, h, |x| {
            let (inputs, results) = x.split_at(x.len() - 2);
            let [scores, weights, g] = how.composed(inputs, &results[0], &results[1]);
            let flat = |t: Tensor| {
                let front = &t.shape()[..t.rank() - 2];
                let row = t.shape()[t.rank() - 2] * t.shape()[t.rank() - 1];
                let shape: Shape = front.iter().copied().chain([row]).collect();
                t.reshape_to(&shape)
            };
            let dq = scores.matmul(&inputs[1]) * how.scale;
            let dk = scores.transposed().matmul(&inputs[0]) * how.scale;
            Tensor::concat(&[flat(dq), flat(dk), flat(weights.transposed().matmul(&g))], -1)
        })
    }

    fn uses(&self, needs: &[bool]) -> Uses {
        Uses::inputs(0..needs.len())
    }

    fn samples() -> Vec<Sample> {
        let all = samples(|Attention { scale, causal, dropout }, mut inputs| {
            let shape = |k: usize| match &inputs[k] {
                Draw::Float(_, shape) => shape.clone(),
                _ => unreachable!("queries and values are floats"),
            };
            let (q, v) = (shape(0), shape(2));
            let results = packed(&q, Head::new(&q, &v).of_results()).expect("a small shape");
            inputs.extend([Draw::new(Domain::any, &results), Draw::new(Domain::any, &results)]);
            Sample::new(AttentionPullback { scale, causal, dropout }, inputs)
        });
        // Every mask, and dropout; all choices of mapped inputs are tried of each.
        all.into_iter().take(6).collect()
    }
}
