//! Rows brought to mean 0 and variance 1, with a fused pullback that is an operation of its own.

use super::elementwise::needs_float;
use super::*;
use crate::dtype::with_float;
use crate::error::err;
use crate::kernels::rows::{self, Normalisation};

/// `(x - mean) / sqrt(var + eps) w + b` for the rows of matrices `[.., r, n]`, with weights and shifts `[.., n]`; not centred, the mean counts
/// as 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LayerNorm {
    pub eps: f64,
    pub centred: bool,
}

/// Of the matrices: an error unless they have rows that are not empty, and one type and shape with the others of `whole`, and rows for `weights`.
fn check(x: &[Arg], whole: &[usize], weights: &[usize]) -> Result<()> {
    if !x[0].dtype.is_float() {
        return Err(needs_float(x[0].dtype));
    }
    let shape = x[0].shape;
    if shape.len() < 2 || shape.last() == Some(&0) {
        return Err(err!(Shape, "needs rows that are not empty, got shape {shape:?}"));
    }
    let row = shape.without(&[shape.len() - 2]);
    let fits = |k: usize| {
        x[k].dtype == x[0].dtype
            && *x[k].shape == if weights.contains(&k) { row.clone() } else { shape.clone() }
    };
    match whole.iter().chain(weights).find(|k| !fits(**k)) {
        Some(&k) => Err(err!(Shape, "{:?} does not fit rows of {:?}", x[k], x[0])),
        None => Ok(()),
    }
}

impl LayerNorm {
    fn how(self) -> Normalisation {
        Normalisation { eps: self.eps, centred: self.centred }
    }
}

impl Primitive for LayerNorm {
    const NAME: &'static str = "layer_norm";
    const ARITY: Option<usize> = Some(3);
    const LEADING_BATCH: bool = true;

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        check(x, &[], &[1, 2])?;
        Ok(Aval { dtype: x[0].dtype, shape: x[0].shape.clone() })
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        with_float!(x[0].dtype, T => rows::norm::<T>(x[0].view(), x[1].view(), x[2].view(), self.how(), out.fill()));
        Ok(())
    }

    fn flops(&self, x: &[&[usize]], _: &[usize]) -> u64 {
        8 * x[0].iter().product::<usize>() as u64
    }

    /// With `y` the normalised rows and `h = g w`: `(h - mean(h) - y mean(h y)) / sqrt(var + eps)`, `Σ g y` and `Σ g`.
    fn pullback(&self, at: &At, g: &Tensor) -> Cotangents {
        let rows = at.shape(0).len() - 2;
        if !at.needs(0) && !at.needs(1) {
            return [None, None, Some(g.summed([rows].as_slice().into()))].into_iter().collect();
        }
        let n = at.shape(0)[rows];
        let LayerNorm { eps, centred } = *self;
        let all = bind(LayerNormPullback { eps, centred }, &[at.x(0), at.x(1), g])
            .expect("types were checked by the forward pass");
        let row = |k: usize| all.narrowed(rows, n + k, 1).squeeze(rows as isize);
        let parts = [
            at.needs(0).then(|| all.narrowed(rows, 0, n)),
            at.needs(1).then(|| row(0)),
            at.needs(2).then(|| row(1)),
        ];
        parts.into_iter().collect()
    }

    fn uses(&self, needs: &[bool]) -> Uses {
        if needs[0] || needs[1] { Uses::inputs([0, 1]) } else { Uses::NOTHING }
    }

    fn samples() -> Vec<Sample> {
        let of = |centred: bool, s: &[usize], w: &[usize]| {
            let draws = [Draw::new(Domain::any, s), Draw::new(Domain::any, w), Draw::new(Domain::any, w)];
            Sample::new(LayerNorm { eps: 0.1, centred }, draws)
        };
        vec![
            of(true, &[3, 3], &[3]),
            of(false, &[3, 4], &[4]),
            of(true, &[2, 3, 4], &[2, 4]),
            of(true, &[2, 1], &[1]),
            of(false, &[0, 2], &[2]),
        ]
    }
}

/// The cotangents of a [`LayerNorm`] of `x` with weights `w` for that of its result, `g`, in one: for each matrix `[r, n]` that of `x`, and under it two
/// rows, that of the weights and that of the shifts. With `y` the normalised rows and `h = g w`: `(h - mean(h) - y mean(h y)) / sqrt(var + eps)`,
/// `Σ g y` and `Σ g`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LayerNormPullback {
    pub eps: f64,
    pub centred: bool,
}

impl LayerNormPullback {
    /// The same from other operations.
    fn composed(self, x: &Tensor, w: &Tensor, g: &Tensor) -> Tensor {
        let centred = if self.centred { x - x.mean_axes_keep(-1) } else { x.clone() };
        let factor = (centred.square().mean_axes_keep(-1) + self.eps).rsqrt();
        let y = centred * &factor;
        let h = g * w.unsqueeze(-2);
        let even = if self.centred { &h - h.mean_axes_keep(-1) } else { h.clone() };
        let dx = factor * (even - &y * (h * &y).mean_axes_keep(-1));
        Tensor::concat(&[dx, (g * y).sum_axes_keep(-2), g.sum_axes_keep(-2)], -2)
    }
}

impl Primitive for LayerNormPullback {
    const NAME: &'static str = "layer_norm_pullback";
    const ARITY: Option<usize> = Some(3);
    const LEADING_BATCH: bool = true;

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        check(x, &[2], &[1])?;
        let mut shape = x[0].shape.to_vec();
        let rows = shape.len() - 2;
        shape[rows] += 2;
        let shape: Shape = shape.into();
        shape.checked_len()?;
        Ok(Aval { dtype: x[0].dtype, shape })
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        let how = Normalisation { eps: self.eps, centred: self.centred };
        with_float!(x[0].dtype, T => rows::norm_pullback::<T>(x[0].view(), x[1].view(), x[2].view(), how, out.fill()));
        Ok(())
    }

    fn flops(&self, x: &[&[usize]], _: &[usize]) -> u64 {
        20 * x[0].iter().product::<usize>() as u64
    }

    /// Through the formula.
    fn pullback(&self, at: &At, h: &Tensor) -> Cotangents {
        pulled(at, h, |x| self.composed(&x[0], &x[1], &x[2]))
    }

    fn uses(&self, _: &[bool]) -> Uses {
        Uses::inputs([0, 1, 2])
    }

    fn samples() -> Vec<Sample> {
        let of = |centred: bool, s: &[usize], w: &[usize]| {
            let draws = [Draw::new(Domain::any, s), Draw::new(Domain::any, w), Draw::new(Domain::any, s)];
            Sample::new(LayerNormPullback { eps: 0.1, centred }, draws)
        };
        vec![of(true, &[3, 3], &[3]), of(false, &[3, 4], &[4]), of(true, &[2, 2, 3], &[2, 3])]
    }
}
