//! Discrete Fourier transforms. Lengths, normalisation and axes of real transforms are the business of [`fft`](crate::fft).

use super::elementwise::needs_float;
use super::*;
use crate::dtype::with_parts;
use crate::error::err;
use crate::kernels::fourier;
use crate::shape::Axes;
use smallvec::smallvec;

fn needs_elements(n: usize) -> Result<()> {
    match n {
        0 => Err(err!(Shape, "an axis of length 0 has no transform")),
        _ => Ok(()),
    }
}

/// What a transform of `n` elements costs: about `5 n log2(n)` for complex numbers.
fn flops(numel: usize, n: usize) -> u64 {
    (5 * numel as u64).saturating_mul(n.max(2).ilog2() as u64)
}

/// `y[k] = scale Σ x[j] exp(∓2πi j k / n)` along each of the axes. The exponent is positive for the inverse, which is the transpose of the
/// conjugate, and so the pullback.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fft {
    pub axes: Axes,
    pub inverse: bool,
    pub scale: f64,
}

impl Primitive for Fft {
    const NAME: &'static str = "fft";

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        if !x[0].dtype.is_complex() {
            return Err(err!(DType, "takes complex numbers, got {}", x[0].dtype));
        }
        let rising = self.axes.windows(2).all(|w| w[0] < w[1]);
        if !rising || self.axes.last().is_some_and(|&a| a >= x[0].shape.len()) {
            return Err(err!(Axis, "axes {:?} are not rising axes of shape {:?}", self.axes, x[0].shape));
        }
        self.axes.iter().try_for_each(|&a| needs_elements(x[0].shape[a]))?;
        Ok(Aval { dtype: x[0].dtype, shape: x[0].shape.clone() })
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        let Fft { axes, inverse, scale } = self;
        with_parts!(x[0].dtype, T => fourier::transform::<T>(x[0].view(), axes, *inverse, *scale, out.fill()));
        Ok(())
    }

    fn flops(&self, x: &[&[usize]], y: &[usize]) -> u64 {
        flops(y.iter().product(), self.axes.iter().map(|&a| x[0][a]).product())
    }

    /// The transform with the other sign of the exponent, `scale Σ g[k] exp(±2πi j k / n)`.
    fn pullback(&self, _: &At, g: &Tensor) -> Cotangents {
        let back = Fft { inverse: !self.inverse, ..self.clone() };
        smallvec![Some(bind(back, &[g]).expect("shapes were checked by the forward pass"))]
    }

    fn linearity(&self) -> Linearity {
        Linearity::Linear
    }

    fn batch(&self, x: &[Batched], n: usize) -> Option<Result<Tensor>> {
        let axes = self.axes.iter().map(|a| a + 1).collect();
        Some(Batched::bind_all(Fft { axes, ..self.clone() }, x, n))
    }

    fn samples() -> Vec<Sample> {
        let of = |axes: &[usize], inverse: bool, scale: f64, s: &[usize]| {
            Sample::new(Fft { axes: axes.into(), inverse, scale }, [Draw::complex(s)])
        };
        vec![
            of(&[0], false, 1.0, &[1]),
            of(&[0], false, 1.0, &[5]),
            of(&[0], true, 0.25, &[4]),
            of(&[1], false, 1.0, &[3, 3]),
            of(&[0], true, 0.5, &[3, 3]),
            of(&[0, 1], false, 1.0, &[2, 3]),
            of(&[0, 2], true, 1.0, &[2, 0, 3]),
            of(&[0, 2], false, 0.5, &[2, 3, 2]),
            of(&[], false, 2.0, &[3]),
        ]
    }
}

/// The first `n / 2 + 1` elements of the transform of `n` real ones along the last axis, times `scale`; the others are their conjugates.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rfft {
    pub scale: f64,
}

/// `n` real numbers along the last axis from the first `n / 2 + 1` elements of a transform, of which the others are the conjugates:
/// `y[j] = scale Σ x[k] exp(2πi j k / n)` over all `n` elements.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Irfft {
    pub n: usize,
    pub scale: f64,
}

/// The elements of a half that stand for two of the whole, times `factor`; the others as they are. Those that stand for themselves are the
/// first and, if `n` is even, the last.
fn weigh_pairs(x: &Tensor, n: usize, factor: f64) -> Tensor {
    let (last, pairs) = (x.rank() - 1, n.div_ceil(2) - 1);
    let part = |start: usize, len: usize| x.narrowed(last, start, len);
    let weighed = part(1, pairs) * factor;
    match n.is_multiple_of(2) {
        true => Tensor::concat(&[part(0, 1), weighed, part(1 + pairs, 1)], last as isize),
        false => Tensor::concat(&[part(0, 1), weighed], last as isize),
    }
}

impl Primitive for Rfft {
    const NAME: &'static str = "rfft";
    const LEADING_BATCH: bool = true;

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        let Some((&n, rows)) = x[0].shape.split_last() else {
            return Err(err!(Axis, "takes at least one axis, got a scalar"));
        };
        match x[0].dtype {
            DType::F32 | DType::F64 => {}
            other => return Err(needs_float(other)),
        }
        needs_elements(n)?;
        let shape = rows.iter().copied().chain([n / 2 + 1]).collect();
        Ok(Aval { dtype: x[0].dtype.complex(), shape })
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        with_parts!(x[0].dtype.complex(), T => fourier::half::<T>(x[0].view(), self.scale, out.fill()));
        Ok(())
    }

    fn flops(&self, x: &[&[usize]], _: &[usize]) -> u64 {
        flops(x[0].iter().product(), x[0].last().copied().unwrap_or(1)) / 2
    }

    /// `irfft` of `g`, of which the elements that stand for two of the whole are halved.
    fn pullback(&self, at: &At, g: &Tensor) -> Cotangents {
        // The transpose knows nothing of the other half, which `Irfft` adds: what stands for two is halved before.
        let n = at.shape(0)[at.shape(0).len() - 1];
        let back = Irfft { n, scale: self.scale };
        smallvec![Some(
            bind(back, &[&weigh_pairs(g, n, 0.5)]).expect("shapes were checked by the forward pass")
        )]
    }

    fn linearity(&self) -> Linearity {
        Linearity::Linear
    }

    fn samples() -> Vec<Sample> {
        let of = |scale: f64, s: &[usize]| Sample::new(Rfft { scale }, [Draw::new(Domain::any, s)]);
        vec![
            of(1.0, &[1]),
            of(1.0, &[2]),
            of(0.5, &[5]),
            of(1.0, &[2, 6]),
            of(1.0, &[2, 2, 3]),
            of(1.0, &[0, 4]),
        ]
    }
}

impl Primitive for Irfft {
    const NAME: &'static str = "irfft";
    const LEADING_BATCH: bool = true;

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        let Some((&m, rows)) = x[0].shape.split_last() else {
            return Err(err!(Axis, "takes at least one axis, got a scalar"));
        };
        if !x[0].dtype.is_complex() {
            return Err(err!(DType, "takes complex numbers, got {}", x[0].dtype));
        }
        needs_elements(self.n)?;
        if m != self.n / 2 + 1 {
            return Err(err!(
                Shape,
                "{} numbers have a transform of {} elements, but the last axis has {m}",
                self.n,
                self.n / 2 + 1
            ));
        }
        let shape: Shape = rows.iter().copied().chain([self.n]).collect();
        shape.checked_len()?;
        Ok(Aval { dtype: x[0].dtype.real(), shape })
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        with_parts!(x[0].dtype, T => fourier::from_half::<T>(x[0].view(), self.scale, self.n, out.fill()));
        Ok(())
    }

    fn flops(&self, _: &[&[usize]], y: &[usize]) -> u64 {
        flops(y.iter().product(), self.n) / 2
    }

    /// `rfft(g)`, of which the elements that stand for two of the whole are doubled.
    fn pullback(&self, _: &At, g: &Tensor) -> Cotangents {
        let back = bind(Rfft { scale: self.scale }, &[g]).expect("shapes were checked by the forward pass");
        smallvec![Some(weigh_pairs(&back, self.n, 2.0))]
    }

    fn linearity(&self) -> Linearity {
        Linearity::Linear
    }

    fn samples() -> Vec<Sample> {
        let of = |n: usize, scale: f64, s: &[usize]| Sample::new(Irfft { n, scale }, [Draw::complex(s)]);
        vec![
            of(1, 1.0, &[1]),
            of(2, 0.5, &[2]),
            of(3, 1.0, &[2]),
            of(4, 1.0, &[3]),
            of(7, 0.25, &[2, 4]),
            of(6, 1.0, &[2, 2, 4]),
            of(4, 1.0, &[0, 3]),
        ]
    }
}
