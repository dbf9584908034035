//! Softmax, its logarithm and the cross entropy over the last axis, each with a fused pullback that is an operation of its
//! own, so that it can be differentiated again.

use super::elementwise::needs_float;
use super::*;
use crate::dtype::with_float;
use crate::error::{Error, err};
use crate::kernels::rows;
use smallvec::smallvec;

fn rows_of_floats(x: &[Arg]) -> Result<Aval> {
    if !x[0].dtype.is_float() {
        return Err(needs_float(x[0].dtype));
    }
    if x[0].shape.last().is_none_or(|&n| n == 0) {
        return Err(err!(Shape, "needs a last axis that is not empty, got shape {:?}", x[0].shape));
    }
    if let Some(other) = x.iter().find(|a| a.shape != x[0].shape || a.dtype != x[0].dtype) {
        return Err(err!(Shape, "operands must agree, got {:?} and {other:?}", x[0]));
    }
    Ok(Aval { dtype: x[0].dtype, shape: x[0].shape.clone() })
}

/// The sum over the last axis, which stays with length 1.
fn row_sums(x: &Tensor) -> Tensor {
    x.sum_axes_keep(-1)
}

fn apply(op: impl Into<Op>, inputs: &[&Tensor]) -> Option<Tensor> {
    Some(bind(op, inputs).expect("types were checked by the forward pass"))
}

/// `exp(x) / Σ exp(x)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Softmax;

impl Primitive for Softmax {
    const NAME: &'static str = "softmax";
    const ROWWISE: bool = true;

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        rows_of_floats(x)
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        with_float!(x[0].dtype, T => rows::softmax::<T>(x[0].view(), out.fill()));
        Ok(())
    }

    fn pullback(&self, at: &At, g: &Tensor) -> Cotangents {
        smallvec![apply(SoftmaxPullback, &[at.y(), g])]
    }

    fn uses(&self, _: &[bool]) -> Uses {
        Uses::OUTPUT
    }

    fn pushforward(&self, at: &At, t: &[Option<Tensor>]) -> Result<Tensor> {
        // The Jacobian, diag(y) - y yᵀ, is symmetric.
        let t = t[0].as_ref().expect("a pushforward has at least one tangent");
        bind(SoftmaxPullback, &[at.y(), t])
    }

    fn batch(&self, x: &[Batched], n: usize) -> Option<Result<Tensor>> {
        Some(Batched::bind_all(*self, x, n))
    }

    fn samples() -> Vec<Sample> {
        let of = |s: &[usize]| Sample::new(Softmax, [Draw::new(Domain::any, s)]);
        vec![of(&[4]), of(&[3, 3]), of(&[2, 1])]
    }
}

/// `y (g - Σ g y)`: the softmax Jacobian at its value `y`, applied to `g`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SoftmaxPullback;

impl Primitive for SoftmaxPullback {
    const NAME: &'static str = "softmax_pullback";
    const ROWWISE: bool = true;
    const ARITY: Option<usize> = Some(2);

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        rows_of_floats(x)
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        with_float!(x[0].dtype, T => rows::softmax_pullback::<T>(x[0].view(), x[1].view(), out.fill()));
        Ok(())
    }

    /// With h the cotangent: `dy = h (g - Σ g y) - g Σ h y`, `dg = y (h - Σ h y)`.
    fn pullback(&self, at: &At, h: &Tensor) -> Cotangents {
        let (y, g) = (at.x(0), at.x(1));
        smallvec![
            at.needs(0).then(|| h * (g - row_sums(&(g * y))) - g * row_sums(&(h * y))),
            if at.needs(1) { apply(SoftmaxPullback, &[y, h]) } else { None },
        ]
    }

    fn uses(&self, _: &[bool]) -> Uses {
        Uses::inputs([0, 1])
    }

    fn batch(&self, x: &[Batched], n: usize) -> Option<Result<Tensor>> {
        Some(Batched::bind_all(*self, x, n))
    }

    fn samples() -> Vec<Sample> {
        let of = |s: &[usize]| {
            Sample::new(SoftmaxPullback, [Draw::new(Domain::positive, s), Draw::new(Domain::any, s)])
        };
        vec![of(&[4]), of(&[3, 3])]
    }
}

/// `x - ln Σ exp(x)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LogSoftmax;

impl Primitive for LogSoftmax {
    const NAME: &'static str = "log_softmax";
    const ROWWISE: bool = true;

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        rows_of_floats(x)
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        with_float!(x[0].dtype, T => rows::log_softmax::<T>(x[0].view(), out.fill()));
        Ok(())
    }

    fn pullback(&self, at: &At, g: &Tensor) -> Cotangents {
        smallvec![apply(LogSoftmaxPullback, &[at.y(), g])]
    }

    fn uses(&self, _: &[bool]) -> Uses {
        Uses::OUTPUT
    }

    fn pushforward(&self, at: &At, t: &[Option<Tensor>]) -> Result<Tensor> {
        let t = t[0].as_ref().expect("a pushforward has at least one tangent");
        Ok(t - row_sums(&(at.y().exp() * t)))
    }

    fn batch(&self, x: &[Batched], n: usize) -> Option<Result<Tensor>> {
        Some(Batched::bind_all(*self, x, n))
    }

    fn samples() -> Vec<Sample> {
        let of = |s: &[usize]| Sample::new(LogSoftmax, [Draw::new(Domain::any, s)]);
        vec![of(&[4]), of(&[3, 3])]
    }
}

/// `g - exp(y) Σ g`: the transposed Jacobian of log-softmax at its value `y`, applied to `g`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LogSoftmaxPullback;

impl Primitive for LogSoftmaxPullback {
    const NAME: &'static str = "log_softmax_pullback";
    const ROWWISE: bool = true;
    const ARITY: Option<usize> = Some(2);

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        rows_of_floats(x)
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        with_float!(x[0].dtype, T => rows::log_softmax_pullback::<T>(x[0].view(), x[1].view(), out.fill()));
        Ok(())
    }

    /// With h the cotangent: `dy = -h exp(y) Σ g`, `dg = h - Σ h exp(y)`.
    fn pullback(&self, at: &At, h: &Tensor) -> Cotangents {
        let p = at.x(0).exp();
        smallvec![
            at.needs(0).then(|| -(h * &p * row_sums(at.x(1)))),
            at.needs(1).then(|| h - row_sums(&(h * &p))),
        ]
    }

    fn uses(&self, needs: &[bool]) -> Uses {
        if needs[0] { Uses::inputs([0, 1]) } else { Uses::inputs([0]) }
    }

    fn batch(&self, x: &[Batched], n: usize) -> Option<Result<Tensor>> {
        Some(Batched::bind_all(*self, x, n))
    }

    fn samples() -> Vec<Sample> {
        let of = |s: &[usize]| {
            Sample::new(LogSoftmaxPullback, [Draw::new(Domain::any, s), Draw::new(Domain::any, s)])
        };
        vec![of(&[4]), of(&[3, 3])]
    }
}

fn check_labels(x: &[Arg]) -> Result<()> {
    let (logits, labels) = (x[0], x[1]);
    if labels.shape == logits.shape {
        return Err(err!(
            Shape,
            "labels of {} {:?} look like one-hot rows or probabilities, but one class number (i64) for each row is needed; use \
             labels.argmax(-1), or for probabilities -(labels * logits.log_softmax(-1)).sum_axes(-1)",
            labels.dtype,
            labels.shape
        ));
    }
    if labels.dtype != DType::I64 {
        return Err(err!(DType, "labels must be i64, got {}; use .cast(DType::I64)", labels.dtype));
    }
    if labels.shape[..] != logits.shape[..logits.shape.len().saturating_sub(1)] {
        return Err(err!(
            Shape,
            "labels {:?} do not fit logits {:?}: one label for each row over the last axis",
            labels.shape,
            logits.shape
        ));
    }
    Ok(())
}

fn not_a_class(label: i64, position: usize, logits: &[usize]) -> Error {
    let n = logits.last().copied().unwrap_or(0);
    err!(
        Index,
        "label {label} (at position {position}) is not a class: the last axis of the logits has {n}, numbered from 0"
    )
}

/// `ln Σ exp(x) - x[label]` for each row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CrossEntropy;

impl Primitive for CrossEntropy {
    const NAME: &'static str = "cross_entropy";
    const ARITY: Option<usize> = Some(2);

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        rows_of_floats(&x[..1])?;
        check_labels(x)?;
        Ok(Aval { dtype: x[0].dtype, shape: x[1].shape.clone() })
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        with_float!(x[0].dtype, T => rows::cross_entropy::<T>(x[0].view(), x[1].view(), out.fill()))
            .map_err(|e| not_a_class(e.value, e.position, x[0].shape))
    }

    fn pullback(&self, at: &At, g: &Tensor) -> Cotangents {
        smallvec![apply(CrossEntropyPullback, &[at.x(0), at.x(1), g]), None]
    }

    fn uses(&self, _: &[bool]) -> Uses {
        Uses::inputs([0, 1])
    }

    fn pushforward(&self, at: &At, t: &[Option<Tensor>]) -> Result<Tensor> {
        let t = t[0].as_ref().expect("a pushforward has at least one tangent");
        let one = Tensor::ones_of(at.dtype(0), at.shape(1));
        let jacobian = bind(CrossEntropyPullback, &[at.x(0), at.x(1), &one])?;
        Ok((jacobian * t).sum_axes(-1))
    }

    fn batch(&self, x: &[Batched], n: usize) -> Option<Result<Tensor>> {
        Some(Batched::bind_all(*self, x, n))
    }

    fn samples() -> Vec<Sample> {
        let of = |s: &[usize]| {
            let (&n, rows) = s.split_last().expect("a sample has a last axis");
            Sample::new(CrossEntropy, [Draw::new(Domain::any, s), Draw::Index(n, rows.into())])
        };
        vec![of(&[4]), of(&[3, 3]), of(&[2, 2, 3])]
    }
}

/// `(softmax(x) - onehot(label)) g`, with one `g` for each row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CrossEntropyPullback;

impl Primitive for CrossEntropyPullback {
    const NAME: &'static str = "cross_entropy_pullback";
    const ARITY: Option<usize> = Some(3);

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        check_labels(x)?;
        if x[2].shape != x[1].shape || x[2].dtype != x[0].dtype {
            return Err(err!(Shape, "one cotangent for each row, got {:?} for {:?}", x[2].shape, x[0].shape));
        }
        rows_of_floats(&x[..1])
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        with_float!(x[0].dtype, T => rows::cross_entropy_pullback::<T>(x[0].view(), x[1].view(), x[2].view(), out.fill()))
            .map_err(|e| not_a_class(e.value, e.position, x[0].shape))
    }

    /// With h the cotangent: `dx` is the softmax Jacobian applied to `h g`, and `dg = Σ h (softmax(x) - onehot)`.
    fn pullback(&self, at: &At, h: &Tensor) -> Cotangents {
        let (x, labels) = (at.x(0), at.x(1));
        let dx = || apply(SoftmaxPullback, &[&x.softmax(-1), &(h * at.x(2).unsqueeze(-1))]);
        let dg = || {
            let jacobian =
                apply(CrossEntropyPullback, &[x, labels, &Tensor::ones_of(x.dtype(), at.shape(1))]);
            jacobian.map(|j| (h * j).sum_axes(-1))
        };
        smallvec![if at.needs(0) { dx() } else { None }, None, if at.needs(2) { dg() } else { None }]
    }

    fn uses(&self, needs: &[bool]) -> Uses {
        if needs[0] { Uses::inputs([0, 1, 2]) } else { Uses::inputs([0, 1]) }
    }

    fn batch(&self, x: &[Batched], n: usize) -> Option<Result<Tensor>> {
        Some(Batched::bind_all(*self, x, n))
    }

    fn samples() -> Vec<Sample> {
        let of = |s: &[usize]| {
            let (&n, rows) = s.split_last().expect("a sample has a last axis");
            let draws =
                [Draw::new(Domain::any, s), Draw::Index(n, rows.into()), Draw::new(Domain::any, rows)];
            Sample::new(CrossEntropyPullback, draws)
        };
        vec![of(&[4]), of(&[3, 3])]
    }
}
