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
        $(table_method! { $(#[$doc])* $P $m $try($($x),+) = $value })*
    };
}

/// A method from a row. The operators have theirs in `operators`, with `try_` forms here.
macro_rules! table_method {
    ($(#[$doc:meta])* $P:ident $m:ident $try:ident($x:ident $(, $b:ident)?) = ($($operator:tt)*)) => { try_method! { $m $try($($b)?) $P } };
    ($(#[$doc:meta])* Rem rem $try:ident($a:ident, $b:ident) = base) => { try_method! { rem $try($b) Rem } };
    ($(#[$doc:meta])* $P:ident $m:ident $try:ident($x:ident) = $value:tt) => {
        methods! { $(#[$doc])* $m $try(&self) -> Tensor { bind($P, &[self]) } }
    };
    ($(#[$doc:meta])* $P:ident $m:ident $try:ident($a:ident, $b:ident) = $value:tt) => {
        methods! { $(#[$doc])* $m $try<'a>(&self, $b: impl Into<Operand<'a>>) -> Tensor { binary($P, self, $b.into()) } }
    };
}

macro_rules! try_method {
    ($m:ident $try:ident() $P:ident) => {
        try_method! { @ $m $try() -> |x| bind($P, &[x]) }
    };
    ($m:ident $try:ident($b:ident) $P:ident) => {
        try_method! { @ $m $try<'a>($b: impl Into<Operand<'a>>) -> |x| binary($P, x, $b.into()) }
    };
    (@ $m:ident $try:ident$(<$l:lifetime>)?($($b:ident: $t:ty)?) -> |$x:ident| $body:expr) => {
        impl Tensor {
            #[doc = concat!("The operator of [`", stringify!($m), "`](std::ops), with bad arguments as an error.")]
            #[track_caller]
            pub fn $try$(<$l>)?(&self $(, $b: $t)?) -> Result<Tensor> {
                let $x = self;
                $body
            }
        }
    };
}
elementwise_table!(table_methods);

macro_rules! comparisons {
    ($($m:ident $try:ident $R:ident $says:literal)*) => {
        methods! {
            $(
                #[doc = concat!("Whether each element ", $says, " that of `b`, as a bool tensor.")]
                $m $try<'a>(&self, b: impl Into<Operand<'a>>) -> Tensor {
                    binary(Compare { relation: Relation::$R }, self, b.into()).map_err(|e| e.renamed(stringify!($m)))
                }
            )*
        }
    };
}
comparisons! {
    eq try_eq Eq "equals"
    ne try_ne Ne "differs from"
    lt try_lt Lt "is less than"
    le try_le Le "is at most"
    gt try_gt Gt "is greater than"
    ge try_ge Ge "is at least"
}

methods! {
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

    /// [`where_`](Tensor::where_), with bad arguments as an error.
    #[track_caller]
    pub fn try_where<'a>(
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
