//! Every primitive operation, each defined once: its name, shape rule, kernel, pullback and test samples.
//!
//! To add one: write its struct and `impl Primitive` in a file here (or a row in the [table]), and name it in the
//! list at the end of this file. Everything else is derived from that list.

mod cast;
mod compare;
mod dot;
mod elementwise;
mod index;
mod layout;
mod logic;
mod reduce;
#[cfg_attr(not(test), allow(dead_code, reason = "only tests draw from them"))]
mod sample;
mod softmax;
pub(crate) mod table;

#[cfg(test)]
mod conformance;
#[cfg(test)]
mod fault;

pub(crate) use {
    cast::*, compare::*, dot::*, elementwise::*, index::*, layout::*, logic::*, reduce::*, sample::*,
    softmax::*,
};

use crate::DType;
use crate::error::Result;
use crate::shape::Shape;
use crate::tape::{At, Cotangents, Level, Seeds, Uses, Walk, pull};
use crate::tensor::{Output, Tensor, Value, bind};

/// The type of a tensor without its value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Aval {
    pub dtype: DType,
    pub shape: Shape,
}

/// An input's type, borrowed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arg<'a> {
    pub dtype: DType,
    pub shape: &'a Shape,
}

/// How an operation depends on its differentiable inputs. Forward mode follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Linearity {
    /// Linear in all inputs together.
    Linear,
    /// Linear in each input while the others stay.
    Multilinear,
    Nonlinear,
}

/// One operation.
pub(crate) trait Primitive: Clone + PartialEq + std::fmt::Debug + Into<Op> {
    const NAME: &'static str;

    /// The type of the result. All errors about arguments are found here.
    fn infer(&self, x: &[Arg]) -> Result<Aval>;

    /// Computes the result. Fails only on what `infer` could not see: values.
    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()>;

    /// Cotangents of the inputs from that of the output, in differentiable operations only, and linear in `g`.
    fn pullback(&self, at: &At, g: &Tensor) -> Cotangents;

    /// The primal values that the pullback reads when the cotangents of `needs` are wanted.
    fn uses(&self, needs: &[bool]) -> Uses;

    fn linearity(&self) -> Linearity {
        Linearity::Nonlinear
    }

    /// The tangent of the output. Derived: an operation overrides it only for speed.
    fn pushforward(&self, at: &At, t: &[Option<Tensor>]) -> Result<Tensor> {
        match self.linearity() {
            Linearity::Linear => {
                // Inputs that are not differentiable (masks, indices) stay what they are.
                let fixed = |k: usize| match at.dtype(k).is_float() {
                    true => Tensor::zeros_of(at.dtype(k), at.shape(k)),
                    false => at.x(k).clone(),
                };
                let all: Vec<Tensor> =
                    t.iter().enumerate().map(|(k, t)| t.clone().unwrap_or_else(|| fixed(k))).collect();
                bind(self.clone(), &all.iter().collect::<Vec<_>>())
            }
            Linearity::Multilinear => {
                let mut sum: Option<Tensor> = None;
                for (k, t) in t.iter().enumerate() {
                    let Some(t) = t else { continue };
                    let args: Vec<&Tensor> =
                        (0..at.arity()).map(|j| if j == k { t } else { at.x(j) }).collect();
                    let term = bind(self.clone(), &args)?;
                    sum = Some(match sum {
                        Some(s) => s + term,
                        None => term,
                    });
                }
                Ok(sum.expect("a pushforward has at least one tangent"))
            }
            // The transpose of the pullback, which is linear in its cotangent.
            Linearity::Nonlinear => transpose(|g| self.pullback(at, g), at.y(), t),
        }
    }

    /// Inputs to test it with. An operation without samples is not tested, and does not pass.
    #[cfg_attr(not(test), allow(dead_code, reason = "only tests draw from them"))]
    fn samples() -> Vec<Sample>;
}

/// `Jt` from `g -> Jᵀg`, by pulling `<Jᵀg, t>` back to `g`.
fn transpose(rule: impl Fn(&Tensor) -> Cotangents, y: &Tensor, t: &[Option<Tensor>]) -> Result<Tensor> {
    let level = Level::new();
    let g = Tensor::ones_of(y.dtype(), y.node().shape.clone()).leaf(level.id());
    let mut seeds = Seeds::new();
    for (ct, t) in rule(&g).into_iter().zip(t) {
        if let (Some(ct), Some(t)) = (ct, t)
            && ct.node().deps.contains(level.id())
        {
            seeds.push((ct.link(), t.clone()));
        }
    }
    let mut dy = None;
    pull(level.id(), seeds, |node, total| {
        if node.id == g.node().id {
            dy = Some(total.clone());
        }
        Ok(Walk::On)
    })?;
    Ok(dy.unwrap_or_else(|| Tensor::zeros_of(y.dtype(), &y.node().shape)))
}

macro_rules! primitives {
    ($($P:ident),* $(,)?) => {
        /// Any operation.
        #[derive(Clone, Debug, PartialEq)]
        pub(crate) enum Op { $($P($P)),* }
        $(impl From<$P> for Op {
            fn from(p: $P) -> Op { Op::$P(p) }
        })*
        impl Op {
            /// The names of all operations.
            #[cfg(test)]
            pub const NAMES: &[&str] = &[$($P::NAME),*];
            pub fn name(&self) -> &'static str { match self { $(Op::$P(_) => $P::NAME),* } }
            pub fn infer(&self, x: &[Arg]) -> Result<Aval> { match self { $(Op::$P(p) => p.infer(x)),* } }
            pub fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> { match self { $(Op::$P(p) => p.eval(x, out)),* } }
            pub fn uses(&self, needs: &[bool]) -> Uses { match self { $(Op::$P(p) => p.uses(needs)),* } }
            #[cfg(test)]
            pub fn linearity(&self) -> Linearity { match self { $(Op::$P(p) => p.linearity()),* } }
            fn rule(&self, at: &At, g: &Tensor) -> Cotangents { match self { $(Op::$P(p) => p.pullback(at, g)),* } }
            pub fn pushforward(&self, at: &At, t: &[Option<Tensor>]) -> Result<Tensor> { match self { $(Op::$P(p) => p.pushforward(at, t)),* } }
            /// The samples of every operation.
            #[cfg(test)]
            pub fn samples() -> Vec<Sample> { let mut all = Vec::new(); $(all.extend($P::samples());)* all }
        }
    };
}

impl Op {
    #[cfg(not(test))]
    pub fn pullback(&self, at: &At, g: &Tensor) -> Result<Cotangents> {
        Ok(self.rule(at, g))
    }

    /// In tests a fault can be put into any rule, to see that the laws find it.
    #[cfg(test)]
    pub fn pullback(&self, at: &At, g: &Tensor) -> Result<Cotangents> {
        Ok(fault::apply(self, at, g, |op| op.rule(at, g)))
    }
}

primitives! {
    Identity, Neg, Abs, Sign, Step, Floor, Ceil, Round, Trunc, Square, Sqrt, Rsqrt, Cbrt, Recip, Exp, Exp2, Expm1, Ln,
    Log2, Log10, Log1p, Sin, Cos, Tan, Asin, Acos, Atan, Sinh, Cosh, Tanh, Asinh, Acosh, Atanh, Sigmoid, Softplus,
    Relu, Gelu, Silu, Erf, Erfc, Add, Sub, Mul, Gate, Div, Rem, Pow, Xlogy, Maximum, Minimum, Share, Atan2, Hypot,
    Logaddexp, Clamp, Cast, Compare, Where, Logic, Not,
    Sum, Max, Min, ArgExtreme, Truth, LogSumExp,
    Reshape, Permute, Broadcast, Slice, SliceAssign, Concat,
    Gather, ScatterAdd, IndexSelect, IndexAdd,
    Dot, Softmax, SoftmaxPullback, LogSoftmax, LogSoftmaxPullback, CrossEntropy, CrossEntropyPullback,
}
