//! Reductions over axes. The reduced axes are dropped; the methods keep them as ones where asked.

use super::elementwise::{check_ordered, needs_float};
use super::*;
use crate::dtype::{Element, Scalar, with_float, with_parts, with_real};
use crate::error::err;
use crate::kernels::reduce::{self, extreme};
use crate::kernels::rows;
use crate::shape::Axes;
use crate::tensor::Data;
use num_complex::Complex;
use smallvec::smallvec;

fn check_axes(axes: &[usize], x: Arg) -> Result<()> {
    let rising = axes.windows(2).all(|w| w[0] < w[1]);
    match axes.last() {
        Some(&last) if !rising || last >= x.shape.len() => {
            Err(err!(Axis, "axes {axes:?} are not rising axes of shape {:?}", x.shape))
        }
        _ => Ok(()),
    }
}

/// An extreme of nothing does not exist, nor does one of complex numbers.
fn check_extreme(axes: &[usize], x: Arg) -> Result<()> {
    check_axes(axes, x)?;
    check_ordered(x.dtype)?;
    match axes.iter().find(|&&a| x.shape[a] == 0) {
        Some(a) => Err(err!(Shape, "nothing to choose from: axis {a} of shape {:?} has length 0", x.shape)),
        None => Ok(()),
    }
}

/// The same axes, where that of the lanes has come before them.
fn behind_lanes(axes: &[usize]) -> Axes {
    axes.iter().map(|a| a + 1).collect()
}

/// A reduced value (or its cotangent) repeated over the shape it was reduced from.
fn spread(g: &Tensor, axes: &[usize], full: &Shape) -> Tensor {
    g.reshape_to(&full.with_ones(axes)).broadcast_to(full)
}

/// How the elements of a reduction are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reduction {
    Sum,
    Max,
    Min,
}

/// Sum. Integers and truth values are summed as i64.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sum {
    pub axes: Axes,
}

impl Primitive for Sum {
    const NAME: &'static str = "sum";

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        check_axes(&self.axes, x[0])?;
        let dtype = if x[0].dtype.is_differentiable() { x[0].dtype } else { DType::I64 };
        Ok(Aval { dtype, shape: x[0].shape.without(&self.axes) })
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        // A repeated element is multiplied: the cotangents of sums and means are such, and gradients of broadcasts sum them.
        if x[0].dtype.is_float() && matches!(x[0].data, Data::Splat(_)) {
            let n: f64 = self.axes.iter().map(|&a| x[0].shape[a] as f64).product();
            with_float!(x[0].dtype, T => {
                let v = x[0].splat::<T>().map_or(0.0, |v| v.to_scalar().to_f64());
                let sum = if n == 0.0 { 0.0 } else { v * n };
                out.splat(T::from_scalar(Scalar::F64(sum)));
            });
            return Ok(());
        }
        if let (true, Data::Splat(_)) = (x[0].dtype.is_complex(), x[0].data) {
            let n: f64 = self.axes.iter().map(|&a| x[0].shape[a] as f64).product();
            with_parts!(x[0].dtype, T => {
                let z = x[0].splat::<Complex<T>>().map_or(Complex::default(), |z| z.to_scalar().to_complex());
                let sum = if n == 0.0 { Complex::default() } else { Complex::new(z.re * n, z.im * n) };
                out.splat(Complex::<T>::from_scalar(Scalar::Complex(sum)));
            });
            return Ok(());
        }
        if x[0].dtype.is_complex() {
            // Of the parts, which lie along another axis.
            with_parts!(x[0].dtype, T => x[0].with_pairs::<T>(|x| {
                let sums: &mut [Complex<T>] = out.fill();
                reduce::reduce::<T, reduce::Sum>(x, &self.axes, bytemuck::cast_slice_mut(sums))
            }));
            return Ok(());
        }
        with_real!(x[0].dtype, T => reduce::reduce::<T, reduce::Sum>(x[0].view(), &self.axes, out.fill()));
        Ok(())
    }

    /// `g`, repeated along the axes.
    fn pullback(&self, at: &At, g: &Tensor) -> Cotangents {
        smallvec![Some(spread(g, &self.axes, at.shape(0)))]
    }

    fn linearity(&self) -> Linearity {
        Linearity::Linear
    }

    fn reduction(&self) -> Option<(Reduction, &[usize])> {
        Some((Reduction::Sum, &self.axes))
    }

    fn batch(&self, x: &[Batched], n: usize) -> Option<Result<Tensor>> {
        Some(Batched::bind_all(Sum { axes: behind_lanes(&self.axes) }, x, n))
    }

    fn samples() -> Vec<Sample> {
        let of =
            |axes: &[usize], s: &[usize]| Sample::new(Sum { axes: axes.into() }, [Draw::new(Domain::any, s)]);
        vec![
            of(&[0], &[3, 3]),
            of(&[1], &[3, 3]),
            of(&[0, 2], &[2, 3, 2]),
            of(&[], &[3]),
            of(&[0], &[0]),
            of(&[1], &[3, 1]),
        ]
    }
}

/// Largest element; equal ones share the derivative.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Max {
    pub axes: Axes,
}

/// Smallest element; equal ones share the derivative.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Min {
    pub axes: Axes,
}

macro_rules! extremes {
    ($($P:ident $name:literal),*) => {$(
        impl Primitive for $P {
            const NAME: &'static str = $name;

            fn infer(&self, x: &[Arg]) -> Result<Aval> {
                check_extreme(&self.axes, x[0])?;
                Ok(Aval { dtype: x[0].dtype, shape: x[0].shape.without(&self.axes) })
            }

            fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
                if let Data::Splat(_) = x[0].data {
                    out.set(x[0].data.clone());
                    return Ok(());
                }
                with_real!(x[0].dtype, T => reduce::reduce::<T, reduce::$P>(x[0].view(), &self.axes, out.fill()));
                Ok(())
            }

            /// `g` at the winners, in equal shares, 0 elsewhere.
            fn pullback(&self, at: &At, g: &Tensor) -> Cotangents {
                let (won, count) = winners(at, &self.axes);
                smallvec![Some(spread(&(g / count), &self.axes, at.shape(0)).gate(won))]
            }

            fn uses(&self, _: &[bool]) -> Uses {
                Uses::inputs([0]).and(Uses::OUTPUT)
            }

            fn pushforward(&self, at: &At, t: &[Option<Tensor>]) -> Result<Tensor> {
                let t = t[0].as_ref().expect("a pushforward has at least one tangent");
                let (won, count) = winners(at, &self.axes);
                Ok(bind(Sum { axes: self.axes.clone() }, &[&t.gate(won)])? / count)
            }

            fn reduction(&self) -> Option<(Reduction, &[usize])> {
                Some((Reduction::$P, &self.axes))
            }

            fn batch(&self, x: &[Batched], n: usize) -> Option<Result<Tensor>> {
                Some(Batched::bind_all($P { axes: behind_lanes(&self.axes) }, x, n))
            }

            fn samples() -> Vec<Sample> {
                let of = |axes: &[usize], s: &[usize]| Sample::new($P { axes: axes.into() }, [Draw::new(Domain::any, s)]);
                vec![of(&[0], &[3, 3]), of(&[1], &[3, 3]), of(&[0, 2], &[2, 3, 2]), of(&[], &[3])]
            }
        }
    )*};
}
extremes!(Max "max", Min "min");

/// 1 for each winner and 0 for the others, and how many have won: the derivative of a winner is 1 over that.
fn winners(at: &At, axes: &[usize]) -> (Tensor, Tensor) {
    let x = at.x(0).detach();
    let y = at.y().detach();
    // Winners equal the extreme; NaN wins over numbers, and does not equal itself.
    let y = spread(&y, axes, at.shape(0));
    let won = x.eq(&y).or(x.ne(&x)).cast(x.dtype());
    let count = bind(Sum { axes: axes.into() }, &[&won]).expect("the axes were checked by the forward pass");
    (won, count)
}

/// Position of the first largest or smallest element over axes, in row-major order of those axes; i64.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ArgExtreme {
    pub axes: Axes,
    pub largest: bool,
}

impl Primitive for ArgExtreme {
    const NAME: &'static str = "argextreme";

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        check_extreme(&self.axes, x[0])?;
        Ok(Aval { dtype: DType::I64, shape: x[0].shape.without(&self.axes) })
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        with_real!(x[0].dtype, T => match self.largest {
            true => extreme::position::<T, reduce::Max>(x[0].view(), &self.axes, out.fill()),
            false => extreme::position::<T, reduce::Min>(x[0].view(), &self.axes, out.fill()),
        });
        Ok(())
    }

    fn batch(&self, x: &[Batched], n: usize) -> Option<Result<Tensor>> {
        Some(Batched::bind_all(ArgExtreme { axes: behind_lanes(&self.axes), ..*self }, x, n))
    }

    fn samples() -> Vec<Sample> {
        vec![Sample::new(
            ArgExtreme { axes: [1].as_slice().into(), largest: true },
            [Draw::new(Domain::any, &[2, 4])],
        )]
    }
}

/// Whether any, or every, element is not zero.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Truth {
    pub axes: Axes,
    pub every: bool,
}

impl Primitive for Truth {
    const NAME: &'static str = "truth";

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        check_axes(&self.axes, x[0])?;
        if x[0].dtype.is_complex() {
            return Err(err!(DType, "takes real numbers, got {}; compare with .ne(0.0) first", x[0].dtype));
        }
        Ok(Aval { dtype: DType::Bool, shape: x[0].shape.without(&self.axes) })
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        with_real!(x[0].dtype, T => match self.every {
            true => reduce::reduce::<T, reduce::All>(x[0].view(), &self.axes, out.fill()),
            false => reduce::reduce::<T, reduce::Any>(x[0].view(), &self.axes, out.fill()),
        });
        Ok(())
    }

    fn batch(&self, x: &[Batched], n: usize) -> Option<Result<Tensor>> {
        Some(Batched::bind_all(Truth { axes: behind_lanes(&self.axes), ..*self }, x, n))
    }

    fn samples() -> Vec<Sample> {
        vec![Sample::new(Truth { axes: [1].as_slice().into(), every: false }, [Draw::Mask([2, 3].into())])]
    }
}

/// `ln Σ exp(x)`, without overflow.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LogSumExp {
    pub axes: Axes,
}

impl Primitive for LogSumExp {
    const NAME: &'static str = "logsumexp";

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        if !x[0].dtype.is_float() {
            return Err(needs_float(x[0].dtype));
        }
        check_axes(&self.axes, x[0])?;
        Ok(Aval { dtype: x[0].dtype, shape: x[0].shape.without(&self.axes) })
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        with_float!(x[0].dtype, T => rows::logsumexp::<T>(x[0].view(), &self.axes, out.fill()));
        Ok(())
    }

    /// `g softmax(x)`.
    fn pullback(&self, at: &At, g: &Tensor) -> Cotangents {
        smallvec![Some(spread(g, &self.axes, at.shape(0)).gate(weights(at, &self.axes)))]
    }

    fn uses(&self, _: &[bool]) -> Uses {
        Uses::inputs([0]).and(Uses::OUTPUT)
    }

    fn pushforward(&self, at: &At, t: &[Option<Tensor>]) -> Result<Tensor> {
        let t = t[0].as_ref().expect("a pushforward has at least one tangent");
        bind(Sum { axes: self.axes.clone() }, &[&t.gate(weights(at, &self.axes))])
    }

    fn batch(&self, x: &[Batched], n: usize) -> Option<Result<Tensor>> {
        Some(Batched::bind_all(LogSumExp { axes: behind_lanes(&self.axes) }, x, n))
    }

    fn samples() -> Vec<Sample> {
        let of = |axes: &[usize], s: &[usize]| {
            Sample::new(LogSumExp { axes: axes.into() }, [Draw::new(Domain::any, s)])
        };
        vec![of(&[0], &[3, 3]), of(&[1], &[3, 3]), of(&[0, 2], &[2, 3, 2])]
    }
}

/// `exp(x - logsumexp(x))`: the softmax over the reduced axes.
fn weights(at: &At, axes: &[usize]) -> Tensor {
    (at.x(0) - spread(at.y(), axes, at.shape(0))).exp()
}
