//! Draws from distributions whose parameter is a tensor. The axes of the keys are in front of those of the parameter, as they are in front of a
//! draw's shape.

use super::*;
use crate::allocation::ask_for;
use crate::dtype::{Element, Scalar, with_float};
use crate::error::{err, or_panic};
use crate::kernels::movement;
use crate::kernels::random::{Philox, draw, gamma, inside, poisson};
use bytemuck::{Pod, Zeroable};
use smallvec::smallvec;

/// The shape and type of the parameter, if there is one for each draw of each key.
fn parameter(x: &[Arg]) -> Result<Aval> {
    let (front, Arg { dtype, shape }) = (keys(x[0])?, x[1]);
    if !dtype.is_float() {
        return Err(err!(DType, "takes a parameter of floats, not {dtype}; use .cast(DType::F64)"));
    }
    match shape.starts_with(front) {
        true => Ok(Aval { dtype, shape: shape.clone() }),
        false => Err(err!(Shape, "the axes {front:?} of the keys are not those in front of {shape:?}")),
    }
}

/// The elements of a float operand in f64.
fn in_double(x: Value) -> Result<Vec<f64>> {
    ask_for::<f64>(2 * x.shape.iter().product::<usize>())?;
    Ok(with_float!(x.dtype, T => {
        let mut own = vec![T::zeroed(); x.shape.iter().product()];
        movement::copy::<T>(x.view(), &mut own);
        own.into_iter().map(|v| v.to_scalar().to_f64()).collect()
    }))
}

/// What `f` draws with each of the parameters; a single one needs no buffer.
fn drawn<T: Pod + Send>(
    x: &[Value],
    out: &mut Output,
    f: impl Fn(Philox, usize, f64) -> T + Sync,
) -> Result<()> {
    let (streams, parameters) = (streams(x[0]), in_double(x[1])?);
    match (&streams[..], &parameters[..]) {
        (&[stream], &[one]) => out.splat(f(stream, 0, one)),
        _ => draw(&streams, out.fill(), |s, k, at| f(s, k, parameters[at])),
    }
    Ok(())
}

/// `dᵏy / dαᵏ` of the logarithm `y` of a gamma variable of shape `α` and scale 1, where `y(α)` is the quantile of a fixed random number.
///
/// The pullback is `g dᵏ⁺¹y / dαᵏ⁺¹`: implicit reparameterisation, `dy/dα = -(∂P/∂α) / (∂P/∂y)` with the distribution function `P(α, eʸ)`. The
/// logarithm does not vanish where a small shape makes the variable itself smaller than any float.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LogGammaDraw {
    pub order: usize,
}

impl Primitive for LogGammaDraw {
    const NAME: &'static str = "log_gamma_draw";
    const ARITY: Option<usize> = Some(2);
    const LEADING_BATCH: bool = true;

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        if self.order > gamma::MAX_ORDER {
            return Err(err!(
                Gradient,
                "a gamma variable has its first {} derivatives with respect to its shape here, not the one of order {}",
                gamma::MAX_ORDER,
                self.order
            ));
        }
        parameter(x)
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        let one = |s: Philox, k: usize, alpha: f64| gamma::ln_quantile(alpha, inside(s.word(k)), self.order);
        with_float!(x[1].dtype, T => drawn(x, out, |s, k, alpha| T::from_scalar(Scalar::F64(one(s, k, alpha))).store()))
    }

    fn flops(&self, _: &[&[usize]], y: &[usize]) -> u64 {
        // Some steps of Newton's method, each with a series of some tens of terms.
        1000 * y.iter().product::<usize>() as u64
    }

    /// `g` times the derivative of the next order.
    fn pullback(&self, at: &At, g: &Tensor) -> Cotangents {
        let slope = or_panic(bind(LogGammaDraw { order: self.order + 1 }, &[at.x(0), at.x(1)]));
        smallvec![None, Some(g.gate(slope))]
    }

    fn uses(&self, _: &[bool]) -> Uses {
        Uses::inputs([0, 1])
    }

    fn samples() -> Vec<Sample> {
        let of = |order, keys: &[usize], shape: &[usize]| {
            Sample::new(LogGammaDraw { order }, [key(keys), Draw::new(Domain::positive, shape)])
        };
        vec![
            of(0, &[2], &[]),
            of(0, &[2], &[3]),
            of(0, &[3, 2], &[3, 2]),
            of(0, &[2], &[0, 2]),
            of(1, &[2], &[2]),
        ]
    }
}

/// The number of events at a rate, as i64: no gradient flows through it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Poisson;

impl Primitive for Poisson {
    const NAME: &'static str = "poisson";
    const ARITY: Option<usize> = Some(2);
    const LEADING_BATCH: bool = true;

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        parameter(x).map(|rate| Aval { dtype: DType::I64, shape: rate.shape })
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        if let Some(bad) = in_double(x[1])?.into_iter().find(|&r| !(0.0..f64::INFINITY).contains(&r)) {
            return Err(err!(Value, "a rate is finite and not negative, but one is {bad}"));
        }
        drawn(x, out, |s, k, rate| poisson::poisson(s.element(k), rate))
    }

    fn flops(&self, _: &[&[usize]], y: &[usize]) -> u64 {
        200 * y.iter().product::<usize>() as u64
    }

    fn pullback(&self, _: &At, _: &Tensor) -> Cotangents {
        smallvec![None, None]
    }

    fn samples() -> Vec<Sample> {
        let of = |keys: &[usize], shape: &[usize]| {
            Sample::new(Poisson, [key(keys), Draw::new(Domain::positive, shape)])
        };
        vec![of(&[2], &[]), of(&[3, 2], &[3, 4]), of(&[2], &[0])]
    }
}
