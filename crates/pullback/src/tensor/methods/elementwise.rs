//! Elementwise methods: those of the table, comparisons, logic, choice and conversion.

use super::methods;
use crate::dtype::DType;
use crate::error::{Result, Within, or_panic};
use crate::ops::*;
use crate::tensor::operand::{align, conform};
use crate::tensor::{Operand, Tensor, bind};
use pullback_table::elementwise_table;
use std::borrow::Cow;

/// Two operands of a common type and shape, and the operation on them.
#[track_caller]
pub(crate) fn binary<'a>(op: impl Into<Op>, a: &'a Tensor, b: Operand<'a>) -> Result<Tensor> {
    if let Operand::Borrowed(b) = b
        && a.dtype() == b.dtype()
        && a.node().shape == b.node().shape
    {
        return bind(op, &[a, b]);
    }
    let op = op.into();
    let (name, location) = (op.name(), crate::location::caller());
    // Not in a closure, which would hide the caller from what broadcasting records.
    let aligned = match b.tensor_like(a) {
        Ok(b) => align(Cow::Borrowed(a), b),
        Err(e) => Err(e),
    };
    let (a, b) = aligned.map_err(|e| e.renamed(name).at(location))?;
    bind(op, &[&a, &b])
}

macro_rules! table_methods {
    ($($(#[$doc:meta])* $P:ident $m:ident $try:ident($($x:ident),+) = $value:tt;
        d = [$($d:expr),+]; reads $([$($r:ident)*])+; $facts:tt)*) => {
        impl Tensor {
            $(
                try_method! { $P $try($($x),+) }
                method! { $(#[$doc])* $P $m $try($($x),+) = $value }
            )*
        }
    };
}

/// A method from a row: public, unless it is an operator, which `operators` has, or an operation of rules alone.
macro_rules! method {
    ($(#[$doc:meta])* $P:ident $m:ident $try:ident $x:tt = ($($operator:tt)*)) => {};
    ($(#[$doc:meta])* Rem $($rest:tt)*) => {};
    ($(#[$doc:meta])* Gate $m:ident $try:ident($a:ident, $b:ident) = $value:tt) => { method! { @ $(#[$doc])* pub(crate) $m $try($b) } };
    ($(#[$doc:meta])* Share $m:ident $try:ident($a:ident, $b:ident) = $value:tt) => { method! { @ $(#[$doc])* pub(crate) $m $try($b) } };
    ($(#[$doc:meta])* $P:ident $m:ident $try:ident($x:ident) = $value:tt) => {
        $(#[$doc])*
        #[must_use]
        #[track_caller]
        pub fn $m(&self) -> Tensor { or_panic(self.$try()) }
    };
    ($(#[$doc:meta])* $P:ident $m:ident $try:ident($a:ident, $b:ident) = $value:tt) => { method! { @ $(#[$doc])* pub $m $try($b) } };
    (@ $(#[$doc:meta])* $vis:vis $m:ident $try:ident($b:ident)) => {
        $(#[$doc])*
        #[must_use]
        #[track_caller]
        $vis fn $m<'a>(&self, $b: impl Into<Operand<'a>>) -> Tensor { or_panic(self.$try($b)) }
    };
}

/// Its `try_` form.
macro_rules! try_method {
    // Of a complex number it is a real one, and no row of the table.
    (Abs $try:ident($x:ident)) => {
        #[track_caller]
        pub(crate) fn $try(&self) -> Result<Tensor> {
            match self.dtype().is_complex() {
                true => self.try_real()?.try_hypot(self.try_imag()?),
                false => bind(Abs, &[self]),
            }
        }
    };
    ($P:ident $try:ident($x:ident)) => {
        #[track_caller]
        pub(crate) fn $try(&self) -> Result<Tensor> {
            bind($P, &[self])
        }
    };
    ($P:ident $try:ident($a:ident, $b:ident)) => {
        #[track_caller]
        pub(crate) fn $try<'a>(&self, $b: impl Into<Operand<'a>>) -> Result<Tensor> {
            binary($P, self, $b.into())
        }
    };
}
elementwise_table!(table_methods);

methods! { $ choice_methods;
    /// Whether each element equals that of `b`, as a bool tensor.
    eq try_eq<'a>(&self, b: impl Into<Operand<'a>>) -> Tensor { compared("eq", Relation::Eq, self, b.into()) }
    /// Whether each element differs from that of `b`, as a bool tensor.
    ne try_ne<'a>(&self, b: impl Into<Operand<'a>>) -> Tensor { compared("ne", Relation::Ne, self, b.into()) }
    /// Whether each element is less than that of `b`, as a bool tensor.
    lt try_lt<'a>(&self, b: impl Into<Operand<'a>>) -> Tensor { compared("lt", Relation::Lt, self, b.into()) }
    /// Whether each element is at most that of `b`, as a bool tensor.
    le try_le<'a>(&self, b: impl Into<Operand<'a>>) -> Tensor { compared("le", Relation::Le, self, b.into()) }
    /// Whether each element is greater than that of `b`, as a bool tensor.
    gt try_gt<'a>(&self, b: impl Into<Operand<'a>>) -> Tensor { compared("gt", Relation::Gt, self, b.into()) }
    /// Whether each element is at least that of `b`, as a bool tensor.
    ge try_ge<'a>(&self, b: impl Into<Operand<'a>>) -> Tensor { compared("ge", Relation::Ge, self, b.into()) }
    /// Both true; of integers, the bits that both have. The operator `&` is the same.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = Tensor::from([-1.0, 0.5, 2.0]);
    /// assert_eq!((x.gt(0.0) & x.lt(1.0)).to_vec::<bool>(), [false, true, false]);
    /// assert_eq!((Tensor::from([6i64, 5]) & 3).to_vec::<i64>(), [2, 1]);
    /// ```
    #[doc(alias = "bitwise_and")]
    #[doc(alias = "logical_and")]
    and try_and<'a>(&self, b: impl Into<Operand<'a>>) -> Tensor {
        connected("and", Connective::And, BitOperation::And, self, b.into())
    }
    /// At least one true; of integers, the bits that one of them has. The operator `|` is the same.
    #[doc(alias = "bitwise_or")]
    #[doc(alias = "logical_or")]
    or try_or<'a>(&self, b: impl Into<Operand<'a>>) -> Tensor {
        connected("or", Connective::Or, BitOperation::Or, self, b.into())
    }
    /// Exactly one true; of integers, the bits that one of them alone has. The operator `^` is the same.
    #[doc(alias = "bitwise_xor")]
    #[doc(alias = "logical_xor")]
    xor try_xor<'a>(&self, b: impl Into<Operand<'a>>) -> Tensor {
        connected("xor", Connective::Xor, BitOperation::Xor, self, b.into())
    }
    /// True where this is false.
    logical_not try_logical_not(&self) -> Tensor { bind(Not, &[self]).map_err(|e| e.renamed("logical_not")) }

    /// Every bit the other way; of truth values, true where this is false. The operator `!` is the same.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// assert_eq!((!Tensor::from([0i64, 5])).to_vec::<i64>(), [-1, -6]);
    /// ```
    bitwise_not try_bitwise_not(&self) -> Tensor {
        match self.dtype() {
            DType::U8 => bits("bitwise_not", BitOperation::Xor, self, 255.into()),
            dtype if dtype.is_int() => bits("bitwise_not", BitOperation::Xor, self, (-1).into()),
            _ => bind(Not, &[self]).map_err(|e| e.renamed("bitwise_not")),
        }
    }
    /// The bits of integers moved up by so many places; 0 where that is below 0 or more than there are. The operator `<<` is the same.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// assert_eq!((Tensor::from([1i64, 3]) << 4).to_vec::<i64>(), [16, 48]);
    /// ```
    #[doc(alias = "bitwise_left_shift")]
    left_shift try_left_shift<'a>(&self, places: impl Into<Operand<'a>>) -> Tensor {
        bits("left_shift", BitOperation::Left, self, places.into())
    }
    /// The bits of integers moved down by so many places, of which those of the sign take the place; all of them where that is below 0. The
    /// operator `>>` is the same.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// assert_eq!((Tensor::from([48i64, -5]) >> 1).to_vec::<i64>(), [24, -3]);
    /// ```
    #[doc(alias = "bitwise_right_shift")]
    right_shift try_right_shift<'a>(&self, places: impl Into<Operand<'a>>) -> Tensor {
        bits("right_shift", BitOperation::Right, self, places.into())
    }

    /// Limits each element to `[low, high]`; the derivative is 1 inside and at both ends. The bounds are numbers, or tensors that broadcast: each
    /// has the derivative where it is the result. Where `low` is above `high`, tensors give `high`, and numbers an error.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = Tensor::from([-2.0, 0.5, 2.0]);
    /// assert_eq!(x.clamp(0.0, 1.0).to_vec::<f64>(), [0.0, 0.5, 1.0]);
    /// assert_eq!(x.clamp(&Tensor::from([-3.0, 0.0, 0.0]), 1.0).to_vec::<f64>(), [-2.0, 0.5, 1.0]);
    /// ```
    #[doc(alias = "clip")]
    clamp try_clamp<'a>(&self, low: impl Into<Operand<'a>>, high: impl Into<Operand<'a>>) -> Tensor {
        match (low.into(), high.into()) {
            (Operand::Number(low), Operand::Number(high)) if self.dtype().is_float() => {
                bind(Clamp { low: low.to_f64(), high: high.to_f64() }, &[self])
            }
            (low, high) => {
                let raised = limited("clamp", Relation::Lt, self, low)?;
                limited("clamp", Relation::Gt, &raised, high)
            }
        }
    }

    /// Raises each element to at least `low`; the derivative at the bound is 1.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// assert_eq!(Tensor::from([-2.0, 0.5]).clamp_min(0.0).to_vec::<f64>(), [0.0, 0.5]);
    /// ```
    clamp_min try_clamp_min<'a>(&self, low: impl Into<Operand<'a>>) -> Tensor {
        match low.into() {
            Operand::Number(low) if self.dtype().is_float() => {
                bind(Clamp { low: low.to_f64(), high: f64::INFINITY }, &[self]).map_err(|e| e.renamed("clamp_min"))
            }
            low => limited("clamp_min", Relation::Lt, self, low),
        }
    }

    /// Lowers each element to at most `high`; the derivative at the bound is 1.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// assert_eq!(Tensor::from([2.0, 0.5]).clamp_max(1.0).to_vec::<f64>(), [1.0, 0.5]);
    /// ```
    clamp_max try_clamp_max<'a>(&self, high: impl Into<Operand<'a>>) -> Tensor {
        match high.into() {
            Operand::Number(high) if self.dtype().is_float() => {
                bind(Clamp { low: f64::NEG_INFINITY, high: high.to_f64() }, &[self]).map_err(|e| e.renamed("clamp_max"))
            }
            high => limited("clamp_max", Relation::Gt, self, high),
        }
    }

    /// The elements as another type. Gradients flow through it between float types.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// assert_eq!(Tensor::from([1.7, -1.7]).cast(DType::I64).to_vec::<i64>(), [1, -1]);
    /// ```
    cast try_cast(&self, to: DType) -> Tensor {
        if self.dtype() == to { Ok(self.clone()) } else { bind(Cast { to }, &[self]) }
    }

    /// The elements where `mask` is false, `value` where it is true.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = Tensor::from([1.0, -2.0]);
    /// assert_eq!(x.masked_fill(&x.lt(0.0), 0.0).to_vec::<f64>(), [1.0, 0.0]);
    /// ```
    masked_fill try_masked_fill<'a>(&self, mask: &Tensor, value: impl Into<Operand<'a>>) -> Tensor {
        let value = value.into().tensor_like(self).within("masked_fill")?;
        Tensor::try_where(mask, value.as_ref(), self).map_err(|e| e.renamed("masked_fill"))
    }
}

/// A connective of truth values, or the same on the bits of integers.
#[track_caller]
fn connected(
    name: &'static str,
    connective: Connective,
    operation: BitOperation,
    a: &Tensor,
    b: Operand,
) -> Result<Tensor> {
    if a.dtype().is_int() || b.as_tensor().is_some_and(|b| b.dtype().is_int()) {
        return bits(name, operation, a, b);
    }
    binary(Logic { connective }, a, b).map_err(|e| e.renamed(name))
}

#[track_caller]
fn bits(name: &'static str, operation: BitOperation, a: &Tensor, b: Operand) -> Result<Tensor> {
    binary(Bitwise { operation }, a, b).map_err(|e| e.renamed(name))
}

/// The bound where the element compares so with it, else the element.
#[track_caller]
fn limited(name: &'static str, relation: Relation, x: &Tensor, bound: Operand) -> Result<Tensor> {
    let bound = bound.tensor_like(x).within(name)?;
    let beyond = compared(name, relation, x, Operand::Borrowed(&bound))?;
    Tensor::try_where(&beyond, &*bound, x).map_err(|e| e.renamed(name))
}

#[track_caller]
fn compared(name: &'static str, relation: Relation, a: &Tensor, b: Operand) -> Result<Tensor> {
    binary(Compare { relation }, a, b).map_err(|e| e.renamed(name))
}

impl Tensor {
    /// `a` where `mask` is true, `b` where it is false. All three broadcast.
    ///
    /// Only the chosen side is differentiated: the other gets a cotangent of exactly zero, which stays zero through
    /// elementwise operations even where their derivative is infinite.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = Tensor::from([0.0, 4.0]).requires_grad();
    /// Tensor::where_(&x.gt(0.0), &x.sqrt(), 0.0).sum().backward();
    /// assert_eq!(x.grad().unwrap().to_vec::<f64>(), [0.0, 0.25]);
    /// ```
    #[must_use]
    #[track_caller]
    pub fn where_<'a>(mask: &Tensor, a: impl Into<Operand<'a>>, b: impl Into<Operand<'a>>) -> Tensor {
        or_panic(Tensor::try_where(mask, a, b))
    }

    #[track_caller]
    pub(crate) fn try_where<'a>(
        mask: &Tensor,
        a: impl Into<Operand<'a>>,
        b: impl Into<Operand<'a>>,
    ) -> Result<Tensor> {
        let location = crate::location::caller();
        choose(mask, a.into(), b.into()).map_err(|e| e.in_op(Where::NAME).at(location))
    }
}

#[track_caller]
fn choose<'a>(mask: &Tensor, a: Operand<'a>, b: Operand<'a>) -> Result<Tensor> {
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
    let (a, b) = align(a, b)?;
    let shape = crate::shape::Shape::broadcast(mask.shape(), a.shape())?;
    let dtype = a.dtype();
    let mask = conform(Cow::Borrowed(mask), mask.dtype(), &shape)?;
    bind(Where, &[&mask, &*conform(a, dtype, &shape)?, &*conform(b, dtype, &shape)?])
}
