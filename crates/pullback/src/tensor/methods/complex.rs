//! Methods of complex numbers.

use super::methods;
use crate::dtype::DType;
use crate::error::{Result, Within, or_panic};
use crate::ops::*;
use crate::tensor::operand::align;
use crate::tensor::{Operand, Tensor, bind};
use std::borrow::Cow;

methods! { $ complex_methods;
    /// The real part; a real tensor is its own.
    ///
    /// ```
    /// use pullback::{Complex, prelude::*};
    /// let z = Tensor::from([Complex::new(1.0, 2.0), Complex::new(3.0, -4.0)]);
    /// assert_eq!(z.real().to_vec::<f64>(), [1.0, 3.0]);
    /// ```
    real try_real(&self) -> Tensor {
        if self.dtype().is_complex() { bind(Real, &[self]) } else { Ok(self.clone()) }
    }

    /// The imaginary part; that of a real tensor is zero.
    ///
    /// ```
    /// use pullback::{Complex, prelude::*};
    /// let z = Tensor::from([Complex::new(1.0, 2.0), Complex::new(3.0, -4.0)]);
    /// assert_eq!(z.imag().to_vec::<f64>(), [2.0, -4.0]);
    /// ```
    imag try_imag(&self) -> Tensor {
        if self.dtype().is_complex() { bind(Imag, &[self]) } else { Ok(self.zeros_like()) }
    }

    /// The complex conjugate, `x - iy` of `x + iy`; a real tensor is its own.
    ///
    /// ```
    /// use pullback::{Complex, prelude::*};
    /// let z = Tensor::from([Complex::new(3.0, -4.0)]);
    /// assert_eq!((&z * z.conj()).real().to_vec::<f64>(), [25.0]);
    /// ```
    conj try_conj(&self) -> Tensor {
        if self.dtype().is_complex() { bind(Conj, &[self]) } else { Ok(self.clone()) }
    }

    /// The angle of a complex number in `(-π, π]`, `atan2(y, x)` of `x + iy`: 0 or π of a real one. The derivative at 0 is 0.
    ///
    /// ```
    /// use pullback::{Complex, prelude::*};
    /// let z = Tensor::from([Complex::new(0.0, 2.0), Complex::new(1.0, 0.0)]);
    /// assert_eq!(z.angle().to_vec::<f64>(), [std::f64::consts::FRAC_PI_2, 0.0]);
    /// ```
    angle try_angle(&self) -> Tensor {
        self.try_imag()?.try_atan2(self.try_real()?).map_err(|e| e.renamed("angle"))
    }
}

impl Tensor {
    /// `re + i im`, broadcast and promoted as operators do it. Parts of f64 make c128; f32 and the halves make c64.
    ///
    /// ```
    /// use pullback::{Complex, prelude::*};
    /// let z = Tensor::complex(&Tensor::from([1.0, 2.0]), 3.0);
    /// assert_eq!(z.dtype(), DType::C128);
    /// assert_eq!(z.to_vec::<Complex<f64>>(), [Complex::new(1.0, 3.0), Complex::new(2.0, 3.0)]);
    /// ```
    #[must_use]
    #[track_caller]
    pub fn complex<'a>(re: impl Into<Operand<'a>>, im: impl Into<Operand<'a>>) -> Tensor {
        or_panic(Tensor::try_complex(re, im))
    }

    #[track_caller]
    pub(crate) fn try_complex<'a>(re: impl Into<Operand<'a>>, im: impl Into<Operand<'a>>) -> Result<Tensor> {
        joined(re.into(), im.into()).within("complex")
    }

    /// The complex numbers with these absolute values and angles, `r (cos θ + i sin θ)`.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let z = Tensor::polar(&Tensor::from([2.0]), std::f64::consts::FRAC_PI_2);
    /// assert!((z.imag().get(0).item() - 2.0).abs() < 1e-15);
    /// ```
    #[must_use]
    #[track_caller]
    pub fn polar<'a>(abs: impl Into<Operand<'a>>, angle: impl Into<Operand<'a>>) -> Tensor {
        or_panic(Tensor::try_polar(abs, angle))
    }

    #[track_caller]
    pub(crate) fn try_polar<'a>(
        abs: impl Into<Operand<'a>>,
        angle: impl Into<Operand<'a>>,
    ) -> Result<Tensor> {
        let (abs, angle) = both(abs.into(), angle.into()).within("polar")?;
        let (x, y) = (abs.try_mul(&angle.try_cos()?)?, abs.try_mul(&angle.try_sin()?)?);
        Tensor::try_complex(x, y).map_err(|e| e.renamed("polar"))
    }

    /// `|z|² = x² + y²`, of a real tensor its square.
    #[track_caller]
    pub(crate) fn abs_squared(&self) -> Result<Tensor> {
        match self.dtype().is_complex() {
            true => self.try_real()?.try_square()?.try_add(self.try_imag()?.try_square()?),
            false => self.try_square(),
        }
    }
}

/// Two operands of which one at least is a tensor, of a common type and shape.
#[track_caller]
fn both<'a>(a: Operand<'a>, b: Operand<'a>) -> Result<(Cow<'a, Tensor>, Cow<'a, Tensor>)> {
    let (a, b) = match (a, b) {
        (a, Operand::Number(v)) => {
            let a = a.into_tensor();
            let b = Operand::Number(v).tensor_like(&a)?;
            (a, b)
        }
        (a, b) => {
            let b = b.into_tensor();
            (a.tensor_like(&b)?, b)
        }
    };
    align(a, b)
}

#[track_caller]
fn joined(re: Operand, im: Operand) -> Result<Tensor> {
    let (re, im) = both(re, im)?;
    match re.dtype() {
        DType::F16 | DType::BF16 => {
            bind(MakeComplex, &[&re.try_cast(DType::F32)?, &im.try_cast(DType::F32)?])
        }
        _ => bind(MakeComplex, &[&re, &im]),
    }
}
