//! The cross entropy of rows of logits, against classes or distributions, each with a fused pullback that is an operation of its own.

use super::softmax::{apply, rows_of_floats};
use super::*;
use crate::dtype::with_float;
use crate::error::{Error, err};
use crate::kernels::rows;
use smallvec::smallvec;

fn check_labels(x: &[Arg]) -> Result<()> {
    let (logits, labels) = (x[0], x[1]);
    if labels.shape == logits.shape && !logits.shape.is_empty() {
        return Err(err!(
            Shape,
            "labels of {} {:?} look like one-hot rows, but one class number for each row is needed; use labels.argmax(-1), or \
             .cast({:?}) for distributions",
            labels.dtype,
            labels.shape,
            logits.dtype
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

/// `ln Σ exp(x) - (1 - s) x[label] - s mean(x)` for each row, with smoothing `s`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CrossEntropy {
    pub smoothing: f64,
}

impl CrossEntropy {
    fn slope(self) -> CrossEntropyPullback {
        CrossEntropyPullback { smoothing: self.smoothing }
    }
}

impl Primitive for CrossEntropy {
    const NAME: &'static str = "cross_entropy";
    const ARITY: Option<usize> = Some(2);
    const LEADING_BATCH: bool = true;

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        rows_of_floats(&x[..1])?;
        check_labels(x)?;
        Ok(Aval { dtype: x[0].dtype, shape: x[1].shape.clone() })
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        with_float!(x[0].dtype, T => rows::cross_entropy::<T>(x[0].view(), x[1].view(), self.smoothing, out.fill()))
            .map_err(|e| not_a_class(e.value, e.position, x[0].shape))
    }

    /// `(softmax(x) - (1 - s) onehot(label) - s/n) g`.
    fn pullback(&self, at: &At, g: &Tensor) -> Cotangents {
        smallvec![apply(self.slope(), &[at.x(0), at.x(1), g]), None]
    }

    fn uses(&self, _: &[bool]) -> Uses {
        Uses::inputs([0, 1])
    }

    fn pushforward(&self, at: &At, t: &[Option<Tensor>]) -> Result<Tensor> {
        let t = t[0].as_ref().expect("a pushforward has at least one tangent");
        let one = Tensor::ones_of(at.dtype(0), at.shape(1));
        let jacobian = bind(self.slope(), &[at.x(0), at.x(1), &one])?;
        Ok((jacobian * t).sum_axes(-1))
    }

    fn samples() -> Vec<Sample> {
        let of = |smoothing: f64, s: &[usize]| {
            let (&n, rows) = s.split_last().expect("a sample has a last axis");
            Sample::new(CrossEntropy { smoothing }, [Draw::new(Domain::any, s), Draw::Index(n, rows.into())])
        };
        vec![of(0.0, &[4]), of(0.0, &[3, 3]), of(0.0, &[2, 2, 3]), of(0.2, &[2, 3])]
    }
}

/// `(softmax(x) - (1 - s) onehot(label) - s/n) g`, with one `g` for each row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CrossEntropyPullback {
    pub smoothing: f64,
}

impl Primitive for CrossEntropyPullback {
    const NAME: &'static str = "cross_entropy_pullback";
    const ARITY: Option<usize> = Some(3);
    const LEADING_BATCH: bool = true;

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        check_labels(x)?;
        if x[2].shape != x[1].shape || x[2].dtype != x[0].dtype {
            return Err(err!(Shape, "one cotangent for each row, got {:?} for {:?}", x[2].shape, x[0].shape));
        }
        rows_of_floats(&x[..1])
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        with_float!(x[0].dtype, T => rows::cross_entropy_pullback::<T>(x[0].view(), x[1].view(), x[2].view(), self.smoothing, out.fill()))
            .map_err(|e| not_a_class(e.value, e.position, x[0].shape))
    }

    /// With h the cotangent: `dx` is the softmax Jacobian applied to `h g`, and `dg = Σ h (softmax(x) - onehot)`.
    fn pullback(&self, at: &At, h: &Tensor) -> Cotangents {
        let (x, labels) = (at.x(0), at.x(1));
        let dx = || apply(SoftmaxPullback, &[&x.softmax(-1), &(h * at.x(2).unsqueeze(-1))]);
        let dg = || {
            let jacobian = apply(*self, &[x, labels, &Tensor::ones_of(x.dtype(), at.shape(1))]);
            jacobian.map(|j| (h * j).sum_axes(-1))
        };
        smallvec![if at.needs(0) { dx() } else { None }, None, if at.needs(2) { dg() } else { None }]
    }

    fn uses(&self, needs: &[bool]) -> Uses {
        if needs[0] { Uses::inputs([0, 1, 2]) } else { Uses::inputs([0, 1]) }
    }

    fn samples() -> Vec<Sample> {
        let of = |smoothing: f64, s: &[usize]| {
            let (&n, rows) = s.split_last().expect("a sample has a last axis");
            let draws =
                [Draw::new(Domain::any, s), Draw::Index(n, rows.into()), Draw::new(Domain::any, rows)];
            Sample::new(CrossEntropyPullback { smoothing }, draws)
        };
        vec![of(0.0, &[4]), of(0.0, &[3, 3]), of(0.2, &[2, 3])]
    }
}

/// The type of one number for each row of the first two, which have one type.
fn loss_of(x: &[Arg]) -> Result<Aval> {
    let Aval { dtype, shape } = rows_of_floats(&x[..2])?;
    Ok(Aval { dtype, shape: shape[..shape.len() - 1].into() })
}

/// `Σ t (ln Σ exp(x) - x)` for each row: the cross entropy against a distribution `t`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SoftCrossEntropy;

impl Primitive for SoftCrossEntropy {
    const NAME: &'static str = "soft_cross_entropy";
    const ARITY: Option<usize> = Some(2);
    const LEADING_BATCH: bool = true;

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        loss_of(x)
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        with_float!(x[0].dtype, T => rows::soft_cross_entropy::<T>(x[0].view(), x[1].view(), out.fill()));
        Ok(())
    }

    /// `dt = -g log_softmax(x)`.
    fn pullback(&self, at: &At, g: &Tensor) -> Cotangents {
        let dx = || apply(SoftCrossEntropyPullback, &[at.x(0), at.x(1), g]);
        smallvec![
            if at.needs(0) { dx() } else { None },
            at.needs(1).then(|| -(at.x(0).log_softmax(-1) * g.unsqueeze(-1))),
        ]
    }

    fn uses(&self, needs: &[bool]) -> Uses {
        if needs[0] { Uses::inputs([0, 1]) } else { Uses::inputs([0]) }
    }

    fn samples() -> Vec<Sample> {
        let of = |s: &[usize]| {
            Sample::new(SoftCrossEntropy, [Draw::new(Domain::any, s), Draw::new(Domain::positive, s)])
        };
        vec![of(&[4]), of(&[3, 3]), of(&[2, 1, 3]), of(&[0, 2])]
    }
}

/// `(softmax(x) Σt - t) g`, with one `g` for each row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SoftCrossEntropyPullback;

impl Primitive for SoftCrossEntropyPullback {
    const NAME: &'static str = "soft_cross_entropy_pullback";
    const ARITY: Option<usize> = Some(3);
    const LEADING_BATCH: bool = true;

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        let loss = loss_of(x)?;
        if *x[2].shape != loss.shape || x[2].dtype != loss.dtype {
            return Err(err!(Shape, "one cotangent for each row, got {:?} for {:?}", x[2].shape, x[0].shape));
        }
        rows_of_floats(&x[..2])
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        with_float!(x[0].dtype, T => rows::soft_cross_entropy_pullback::<T>(x[0].view(), x[1].view(), x[2].view(), out.fill()));
        Ok(())
    }

    /// Through the formula.
    fn pullback(&self, at: &At, h: &Tensor) -> Cotangents {
        pulled(at, h, |x| (x[0].softmax(-1) * x[1].sum_axes_keep(-1) - &x[1]) * x[2].unsqueeze(-1))
    }

    fn uses(&self, _: &[bool]) -> Uses {
        Uses::inputs([0, 1, 2])
    }

    fn samples() -> Vec<Sample> {
        let of = |s: &[usize]| {
            let draws = [Domain::any, Domain::positive].map(|d| Draw::new(d, s));
            let [x, t] = draws;
            Sample::new(SoftCrossEntropyPullback, [x, t, Draw::new(Domain::any, &s[..s.len() - 1])])
        };
        vec![of(&[4]), of(&[3, 3])]
    }
}
