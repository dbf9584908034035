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
    /// Both true; truth values only.
    and try_and<'a>(&self, b: impl Into<Operand<'a>>) -> Tensor {
        binary(Logic { connective: Connective::And }, self, b.into()).map_err(|e| e.renamed("and"))
    }
    /// At least one true.
    or try_or<'a>(&self, b: impl Into<Operand<'a>>) -> Tensor {
        binary(Logic { connective: Connective::Or }, self, b.into()).map_err(|e| e.renamed("or"))
    }
    /// Exactly one true.
    xor try_xor<'a>(&self, b: impl Into<Operand<'a>>) -> Tensor {
        binary(Logic { connective: Connective::Xor }, self, b.into()).map_err(|e| e.renamed("xor"))
    }
    /// True where this is false.
    logical_not try_logical_not(&self) -> Tensor { bind(Not, &[self]).map_err(|e| e.renamed("logical_not")) }

    /// Limits each element to `[low, high]`; the derivative is 1 inside and at both ends.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// assert_eq!(Tensor::from([-2.0, 0.5, 2.0]).clamp(0.0, 1.0).to_vec::<f64>(), [0.0, 0.5, 1.0]);
    /// ```
    clamp try_clamp(&self, low: f64, high: f64) -> Tensor { bind(Clamp { low, high }, &[self]) }

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
