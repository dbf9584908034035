//! Changing the type of elements.

use super::*;
use crate::dtype::{Element, with_stored};
use crate::error::err;
use crate::kernels::map;
use num_complex::Complex;
use smallvec::smallvec;

/// Each element as another type: floats round to nearest, floats to integers truncate towards zero and saturate,
/// anything but zero is true. A real number becomes a complex one without an imaginary part; a complex number does not become a real one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cast {
    pub to: DType,
}

impl Primitive for Cast {
    const NAME: &'static str = "cast";
    const LEADING_BATCH: bool = true;

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        if x[0].dtype.is_complex() && !self.to.is_complex() {
            return Err(err!(
                DType,
                "a {} does not become {}, for its imaginary part would be lost; use .real(), .imag() or .abs()",
                x[0].dtype,
                self.to
            ));
        }
        Ok(Aval { dtype: self.to, shape: x[0].shape.clone() })
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        if self.to.is_complex() {
            match (x[0].dtype, self.to) {
                (DType::Bool, DType::C64) => convert::<bool, Complex<f32>>(x[0], out),
                (DType::Bool, _) => convert::<bool, Complex<f64>>(x[0], out),
                (from, DType::C64) => with_stored!(from, A => convert::<A, Complex<f32>>(x[0], out)),
                (from, _) => with_stored!(from, A => convert::<A, Complex<f64>>(x[0], out)),
            }
            return Ok(());
        }
        macro_rules! to {
            ($From:ty; $($dtype:ident $To:ty),*) => {
                match self.to {
                    $(DType::$dtype => convert::<$From, $To>(x[0], out),)*
                    complex => unreachable!("a cast to {complex} has its own loop"),
                }
            };
        }
        macro_rules! from {
            ($($dtype:ident $From:ty),*) => {
                match x[0].dtype {
                    DType::C64 | DType::C128 => unreachable!("`infer` has refused it"),
                    $(DType::$dtype => to!($From; Bool bool, U8 u8, I32 i32, I64 i64, F16 half::f16, BF16 half::bf16, F32 f32, F64 f64),)*
                }
            };
        }
        from!(Bool bool, U8 u8, I32 i32, I64 i64, F16 half::f16, BF16 half::bf16, F32 f32, F64 f64);
        Ok(())
    }

    fn elementwise(&self) -> bool {
        true
    }

    /// `g` in the type of `x`.
    fn pullback(&self, at: &At, g: &Tensor) -> Cotangents {
        // Only the real part of a cotangent reaches a real number.
        let real = !at.dtype(0).is_complex() && g.dtype().is_complex();
        smallvec![Some(if real { g.real() } else { g.clone() }.cast(at.dtype(0)))]
    }

    fn linearity(&self) -> Linearity {
        Linearity::Linear
    }

    fn samples() -> Vec<Sample> {
        vec![
            Sample::new(Cast { to: DType::F64 }, [Draw::new(Domain::any, &[2, 3])]),
            Sample::new(Cast { to: DType::C128 }, [Draw::new(Domain::any, &[2, 3])]),
            Sample::new(Cast { to: DType::C128 }, [Draw::complex(&[3])]),
        ]
    }
}

fn convert<A: Element, B: Element>(x: Value, out: &mut Output) {
    // Through the widest type of either kind, which every element fits.
    let f = |v: A::Stored| B::from_scalar(A::load(v).to_scalar()).store();
    match x.splat::<A::Stored>() {
        Some(v) => out.splat(f(v)),
        None => map::map_with(x.view::<A::Stored>(), out.fill::<B::Stored>(), f),
    }
}
