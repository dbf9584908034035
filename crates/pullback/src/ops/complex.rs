//! Between real and complex numbers: a complex tensor from its parts, the parts of one, and the conjugate.
//!
//! The cotangent of a complex number `z = x + iy` is that of PyTorch, `∂L/∂x + i ∂L/∂y` of a real `L`: the direction of steepest ascent. A
//! pullback is then the transpose of the pushforward with respect to the real inner product `Re Σ conj(a) b`, as it is for real
//! tensors, and that of a holomorphic `f` multiplies by `conj(f'(z))`.
//!
//! Rejected: real and imaginary parts as views of the same memory. A view would then change the type of the elements, which plans, passes and
//! devices take for granted.

use super::elementwise::needs_float;
use super::*;
use crate::dtype::with_parts;
use crate::error::{Error, err};
use crate::kernels::{map, movement};
use num_complex::Complex;
use smallvec::smallvec;

fn needs_complex(dtype: DType) -> Error {
    err!(DType, "takes complex numbers, got {dtype}; use .cast(DType::C64) or .cast(DType::C128) first")
}

/// `re + i im`, of two tensors of f32 or f64.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct MakeComplex;

impl Primitive for MakeComplex {
    const NAME: &'static str = "complex";
    const ARITY: Option<usize> = Some(2);
    const LEADING_BATCH: bool = true;

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        if x[0].dtype != x[1].dtype || x[0].shape != x[1].shape {
            return Err(err!(Shape, "operands must agree, got {:?} and {:?}", x[0], x[1]));
        }
        match x[0].dtype {
            DType::F32 | DType::F64 => Ok(Aval { dtype: x[0].dtype.complex(), shape: x[0].shape.clone() }),
            other => Err(needs_float(other)),
        }
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        with_parts!(x[0].dtype.complex(), T => match (x[0].splat::<T>(), x[1].splat::<T>()) {
            (Some(re), Some(im)) => out.splat(Complex::new(re, im)),
            _ => map::zip_with(x[0].view::<T>(), x[1].view::<T>(), out.fill(), Complex::new),
        });
        Ok(())
    }

    fn elementwise(&self) -> bool {
        true
    }

    /// `Re g` and `Im g`.
    fn pullback(&self, at: &At, g: &Tensor) -> Cotangents {
        smallvec![at.needs(0).then(|| g.real()), at.needs(1).then(|| g.imag())]
    }

    fn linearity(&self) -> Linearity {
        Linearity::Linear
    }

    fn samples() -> Vec<Sample> {
        let of = |s: &[usize]| {
            Sample::new(MakeComplex, [Draw::new(Domain::any, s), Draw::new(Domain::nonzero, s)])
        };
        vec![of(&[]), of(&[4]), of(&[2, 3]), of(&[0])]
    }
}

/// The real part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Real;

/// The imaginary part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Imag;

macro_rules! parts {
    ($($P:ident $name:literal $part:literal, |$g:ident| $pulled:expr;)*) => {$(
        impl Primitive for $P {
            const NAME: &'static str = $name;
            const LEADING_BATCH: bool = true;

            fn infer(&self, x: &[Arg]) -> Result<Aval> {
                match x[0].dtype.is_complex() {
                    true => Ok(Aval { dtype: x[0].dtype.real(), shape: x[0].shape.clone() }),
                    false => Err(needs_complex(x[0].dtype)),
                }
            }

            fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
                with_parts!(x[0].dtype, T => match x[0].splat::<[T; 2]>() {
                    Some(parts) => out.splat(parts[$part]),
                    None => x[0].with_parts::<T>($part, |x| movement::copy(x, out.fill())),
                });
                Ok(())
            }

            fn elementwise(&self) -> bool {
                true
            }

            /// `g` as that part of a complex number.
            fn pullback(&self, _: &At, $g: &Tensor) -> Cotangents {
                smallvec![Some($pulled)]
            }

            fn uses(&self, _: &[bool]) -> Uses {
                Uses::NOTHING
            }

            fn linearity(&self) -> Linearity {
                Linearity::Linear
            }

            fn samples() -> Vec<Sample> {
                [&[][..], &[4], &[2, 3], &[0]].map(|s| Sample::new($P, [Draw::complex(s)])).into()
            }
        }
    )*};
}
parts! {
    Real "real" 0, |g| g.cast(g.dtype().complex());
    Imag "imag" 1, |g| Tensor::complex(g.zeros_like(), g);
}

/// The conjugate: the imaginary part with the other sign.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Conj;

impl Primitive for Conj {
    const NAME: &'static str = "conj";
    const LEADING_BATCH: bool = true;

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        match x[0].dtype.is_complex() {
            true => Ok(Aval { dtype: x[0].dtype, shape: x[0].shape.clone() }),
            false => Err(needs_complex(x[0].dtype)),
        }
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        with_parts!(x[0].dtype, T => match x[0].splat::<Complex<T>>() {
            Some(z) => out.splat(z.conj()),
            None => map::map_with(x[0].view::<Complex<T>>(), out.fill(), |z| z.conj()),
        });
        Ok(())
    }

    fn elementwise(&self) -> bool {
        true
    }

    /// `conj(g)`.
    fn pullback(&self, _: &At, g: &Tensor) -> Cotangents {
        smallvec![Some(g.conj())]
    }

    fn linearity(&self) -> Linearity {
        Linearity::Linear
    }

    fn samples() -> Vec<Sample> {
        [&[][..], &[4], &[2, 3], &[0]].map(|s| Sample::new(Conj, [Draw::complex(s)])).into()
    }
}
