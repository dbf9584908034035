//! Softmax and its logarithm over the last axis, each with a fused pullback that is an operation of its own, so that it can be differentiated
//! again.

use super::elementwise::needs_float;
use super::*;
use crate::dtype::with_float;
use crate::error::err;
use crate::kernels::rows;
use smallvec::smallvec;

pub(super) fn rows_of_floats(x: &[Arg]) -> Result<Aval> {
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

pub(super) fn apply(op: impl Into<Op>, inputs: &[&Tensor]) -> Option<Tensor> {
    Some(bind(op, inputs).expect("types were checked by the forward pass"))
}

/// `exp(x) / Σ exp(x)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Softmax;

impl Primitive for Softmax {
    const NAME: &'static str = "softmax";
    const ROWWISE: bool = true;
    const LEADING_BATCH: bool = true;

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        rows_of_floats(x)
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        with_float!(x[0].dtype, T => rows::softmax::<T>(x[0].view(), out.fill()));
        Ok(())
    }

    /// `y (g - Σ g y)`.
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
    const LEADING_BATCH: bool = true;

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
    const LEADING_BATCH: bool = true;

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        rows_of_floats(x)
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        with_float!(x[0].dtype, T => rows::log_softmax::<T>(x[0].view(), out.fill()));
        Ok(())
    }

    /// `g - exp(y) Σ g`.
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
    const LEADING_BATCH: bool = true;

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

    fn samples() -> Vec<Sample> {
        let of = |s: &[usize]| {
            Sample::new(LogSoftmaxPullback, [Draw::new(Domain::any, s), Draw::new(Domain::any, s)])
        };
        vec![of(&[4]), of(&[3, 3])]
    }
}
