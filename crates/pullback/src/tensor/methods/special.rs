//! What elements are (NaN, infinite, negative), and functions that are made of those of the table.

use super::methods;
use crate::dtype::{DType, Element, with_float};
use crate::error::{Result, Within, or_panic};
use crate::ops::{BetaInc, GammaInc, needs_float};
use crate::tensor::operand::{align, conform};
use crate::tensor::{Operand, Tensor, bind};
use std::borrow::Cow;

methods! { $ special_methods;
    /// Whether each element is NaN, as a bool tensor.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// assert_eq!(Tensor::from([1.0, f64::NAN]).isnan().to_vec::<bool>(), [false, true]);
    /// ```
    isnan try_isnan(&self) -> Tensor { self.try_ne(self).map_err(|e| e.renamed("isnan")) }

    /// Whether each element is infinite, of either sign, as a bool tensor.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = Tensor::from([1.0, f64::NEG_INFINITY, f64::NAN]);
    /// assert_eq!(x.isinf().to_vec::<bool>(), [false, true, false]);
    /// ```
    isinf try_isinf(&self) -> Tensor {
        if !self.dtype().is_differentiable() {
            return Ok(Tensor::zeros_of(DType::Bool, self.node().shape.clone()));
        }
        self.try_abs()?.try_eq(f64::INFINITY).map_err(|e| e.renamed("isinf"))
    }

    /// Whether each element is neither infinite nor NaN, as a bool tensor.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = Tensor::from([1.0, f64::INFINITY, f64::NAN]);
    /// assert_eq!(x.isfinite().to_vec::<bool>(), [true, false, false]);
    /// ```
    isfinite try_isfinite(&self) -> Tensor {
        if !self.dtype().is_differentiable() {
            return Ok(Tensor::ones_of(DType::Bool, self.node().shape.clone()));
        }
        self.try_abs()?.try_lt(f64::INFINITY).map_err(|e| e.renamed("isfinite"))
    }

    /// Whether each element has a negative sign, as a bool tensor; that of `-0.0` is negative.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// assert_eq!(Tensor::from([1.0, -0.0, -2.0]).signbit().to_vec::<bool>(), [false, true, true]);
    /// ```
    signbit try_signbit(&self) -> Tensor {
        if !self.dtype().is_float() {
            return self.try_lt(0).map_err(|e| e.renamed("signbit"));
        }
        self.ones_like().try_copysign(self)?.try_lt(0.0).map_err(|e| e.renamed("signbit"))
    }

    /// NaN replaced by 0, and infinities by the largest numbers of the type. Their derivative is 0, that of all others 1.
    /// [`masked_fill`](Tensor::masked_fill) with [`isnan`](Tensor::isnan) puts other numbers there.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = Tensor::from([1.0, f64::NAN, f64::INFINITY]);
    /// assert_eq!(x.nan_to_num().to_vec::<f64>(), [1.0, 0.0, f64::MAX]);
    /// ```
    nan_to_num try_nan_to_num(&self) -> Tensor {
        if self.dtype().is_complex() {
            return Err(needs_float(self.dtype())).within("nan_to_num");
        }
        if !self.dtype().is_float() {
            return Ok(self.clone());
        }
        let largest: f64 = with_float!(self.dtype(), T => T::MAX.to_scalar().to_f64());
        self.try_masked_fill(&self.try_isnan()?, 0.0)?.try_clamp(-largest, largest).map_err(|e| e.renamed("nan_to_num"))
    }

    /// The point between this (`weight` 0) and `end` (`weight` 1): `self (1 - weight) + end weight`. All three broadcast.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// assert_eq!(Tensor::from([0.0, 1.0]).lerp(10.0, 0.5).to_vec::<f64>(), [5.0, 5.5]);
    /// ```
    lerp try_lerp<'a>(&self, end: impl Into<Operand<'a>>, weight: impl Into<Operand<'a>>) -> Tensor {
        let weight = weight.into().tensor_like(self).within("lerp")?;
        let rest = weight.try_neg().map_err(|e| e.renamed("lerp"))?.try_add(1.0).map_err(|e| e.renamed("lerp"))?;
        let start = self.try_mul(&rest).map_err(|e| e.renamed("lerp"))?;
        let end = weight.try_mul(end).map_err(|e| e.renamed("lerp"))?;
        start.try_add(end).map_err(|e| e.renamed("lerp"))
    }

    /// The part after the point, `x - trunc(x)`, with the sign of `x`. The derivative is 1.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// assert_eq!(Tensor::from([1.5, -1.5]).frac().to_vec::<f64>(), [0.5, -0.5]);
    /// ```
    frac try_frac(&self) -> Tensor {
        let whole = self.try_trunc().map_err(|e| e.renamed("frac"))?;
        self.try_sub(whole).map_err(|e| e.renamed("frac"))
    }

    /// Limits each element to `[-1, 1]`; the derivative is 1 inside and at both ends. [`clamp`](Tensor::clamp) has other bounds.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// assert_eq!(Tensor::from([-3.0, 0.5]).hardtanh().to_vec::<f64>(), [-1.0, 0.5]);
    /// ```
    #[doc(alias = "hard_tanh")]
    hardtanh try_hardtanh(&self) -> Tensor { self.try_clamp(-1.0, 1.0).map_err(|e| e.renamed("hardtanh")) }

    /// Scaled exponential linear unit, `1.0507.. elu(x, 1.6732..)`, under which the elements of deep networks keep mean 0 and variance 1.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// assert_eq!(Tensor::from([0.0, 2.0]).selu().to_vec::<f64>(), [0.0, 2.0 * 1.0507009873554805]);
    /// ```
    selu try_selu(&self) -> Tensor {
        let unit = self.try_elu(1.6732632423543772).map_err(|e| e.renamed("selu"))?;
        unit.try_mul(1.0507009873554805).map_err(|e| e.renamed("selu"))
    }

    /// Bessel function of the first kind, of order 0.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = Tensor::from([0.0]);
    /// assert_eq!(x.bessel_j0().to_vec::<f64>(), [1.0]);
    /// assert_eq!(grad(|x: &Tensor| x.bessel_j1().sum())(&x).to_vec::<f64>(), [0.5]);
    /// ```
    #[doc(alias = "j0")]
    bessel_j0 try_bessel_j0(&self) -> Tensor { self.try_bessel_j(0.0).map_err(|e| e.renamed("bessel_j0")) }

    /// Bessel function of the first kind, of order 1.
    #[doc(alias = "j1")]
    bessel_j1 try_bessel_j1(&self) -> Tensor { self.try_bessel_j(1.0).map_err(|e| e.renamed("bessel_j1")) }

    /// Bessel function of the second kind, of order 0: minus infinity at 0, NaN below.
    #[doc(alias = "y0")]
    bessel_y0 try_bessel_y0(&self) -> Tensor { self.try_bessel_y(0.0).map_err(|e| e.renamed("bessel_y0")) }

    /// Bessel function of the second kind, of order 1: minus infinity at 0, NaN below.
    #[doc(alias = "y1")]
    bessel_y1 try_bessel_y1(&self) -> Tensor { self.try_bessel_y(1.0).map_err(|e| e.renamed("bessel_y1")) }

    /// Modified Bessel function of the first kind, of order 0.
    #[doc(alias = "i0")]
    bessel_i0 try_bessel_i0(&self) -> Tensor { self.try_bessel_i(0.0).map_err(|e| e.renamed("bessel_i0")) }

    /// Modified Bessel function of the first kind, of order 1.
    #[doc(alias = "i1")]
    bessel_i1 try_bessel_i1(&self) -> Tensor { self.try_bessel_i(1.0).map_err(|e| e.renamed("bessel_i1")) }

    /// `exp(-|x|)` times the modified Bessel function of order 0.
    #[doc(alias = "i0e")]
    bessel_i0e try_bessel_i0e(&self) -> Tensor { self.try_bessel_ie(0.0).map_err(|e| e.renamed("bessel_i0e")) }

    /// `exp(-|x|)` times the modified Bessel function of order 1.
    #[doc(alias = "i1e")]
    bessel_i1e try_bessel_i1e(&self) -> Tensor { self.try_bessel_ie(1.0).map_err(|e| e.renamed("bessel_i1e")) }

    /// Regularised lower incomplete gamma function `P(a, x) = 1/Γ(a) ∫₀ˣ t^(a-1) exp(-t) dt` of this `a` and `x`, both positive; NaN where one
    /// is negative. It has derivatives of every order with respect to both.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let (a, x) = (Tensor::from([1.0]), Tensor::from([2.0]));
    /// assert!((a.gammainc(&x).item() - (1.0 - (-2f64).exp())).abs() < 1e-15);
    /// ```
    #[doc(alias = "igamma")]
    gammainc try_gammainc<'a>(&self, x: impl Into<Operand<'a>>) -> Tensor {
        super::binary(GammaInc { upper: false, order: 0 }, self, x.into())
    }

    /// Regularised upper incomplete gamma function `Q(a, x) = 1 - P(a, x)` of this `a` and `x`, accurate where it is small; see
    /// [`gammainc`](Tensor::gammainc).
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let q = Tensor::from([1.0]).gammaincc(30.0);
    /// assert!((q.item() / (-30f64).exp() - 1.0).abs() < 1e-14);
    /// ```
    #[doc(alias = "igammac")]
    gammaincc try_gammaincc<'a>(&self, x: impl Into<Operand<'a>>) -> Tensor {
        super::binary(GammaInc { upper: true, order: 0 }, self, x.into()).map_err(|e| e.renamed("gammaincc"))
    }

    /// Regularised incomplete beta function `I_x(a, b) = 1/B(a, b) ∫₀ˣ t^(a-1) (1-t)^(b-1) dt` of this `a`, of `b` and of `x`, for positive `a`
    /// and `b` and `0 <= x <= 1`; NaN elsewhere. All three broadcast. It has derivatives of every order with respect to all.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let a = Tensor::from([2.0]);
    /// assert!((a.betainc(3.0, 0.5).item() - 0.6875).abs() < 1e-15);
    /// ```
    betainc try_betainc<'a>(&self, b: impl Into<Operand<'a>>, x: impl Into<Operand<'a>>) -> Tensor {
        let b = b.into().tensor_like(self).within("betainc")?;
        let x = x.into().tensor_like(self).within("betainc")?;
        let (a, b) = align(Cow::Borrowed(self), b).within("betainc")?;
        let (a, x) = align(a, x).within("betainc")?;
        let (b, x) = (conform(b, x.dtype(), &x.node().shape)?, x);
        bind(BetaInc { by_a: 0, by_b: 0 }, &[&a, &b, &x])
    }
}
