//! Indexing by ranges, positions, new axes, and tensors of positions or truth values, as NumPy has it; and updates of what an index names.

mod item;
mod plan;

use super::methods::{binary, composed, update_like};
use super::{Operand, Tensor, bind};
use crate::error::{Result, or_panic};
use crate::kernels::movement::put::PutRule;
use crate::ops::*;
use crate::shape::{Axes, Shape};
pub use item::{Ellipsis, IndexItem, IntoIndex};
use plan::{Picking, Plan, plan, replaced};

/// How an update meets what is there.
#[derive(Clone, Copy, PartialEq)]
enum Update {
    Add,
    Put(PutRule),
}

impl Picking {
    fn update(&self, x: &Tensor, how: Update, values: &Tensor) -> Result<Tensor> {
        let (axis, values) = (self.at, values.try_reshape(self.with(&[self.flat.numel()]))?);
        let op: Op = match how {
            Update::Add => IndexAdd { axis }.into(),
            Update::Put(rule) => IndexPut { axis, rule }.into(),
        };
        let part = bind(op, &[&self.lined_up(x)?, &self.flat, &values])?.try_reshape(self.permuted())?;
        let mut inverse: Axes = self.perm.clone();
        self.perm.iter().enumerate().for_each(|(k, &p)| inverse[p] = k);
        replaced(x, &self.region, &bind(Permute { perm: inverse }, &[&part])?)
    }
}

/// Two tensors of one shape, element by element.
fn meet(how: Update, x: &Tensor, values: &Tensor) -> Result<Tensor> {
    let values = Operand::Borrowed(values);
    match how {
        Update::Put(PutRule::Set) => Ok(values.into_tensor().into_owned()),
        Update::Add => binary(Add, x, values),
        Update::Put(PutRule::Mul) => binary(Mul, x, values),
        Update::Put(PutRule::Max) => binary(Maximum, x, values),
        Update::Put(PutRule::Min) => binary(Minimum, x, values),
    }
}

/// An update where a mask is true, by values that do not depend on which of its elements these are: the mask need not be known for it.
fn where_masked(x: &Tensor, how: Update, values: &Operand, plan: &Plan) -> Option<Result<Tensor>> {
    let (mask, at) = plan.mask()?;
    let (behind, shape) = (x.rank() - at - mask.rank(), values.as_tensor().map_or(&[][..], Tensor::shape));
    let selected = shape.len().checked_sub(behind + 1);
    if selected.is_some_and(|k| shape[k] != 1) {
        return None;
    }
    let ones = |n: usize| std::iter::repeat_n(1, n);
    // The axis of the selected elements, if the values have it, becomes those of the mask.
    let apart = |t: &Tensor| {
        let (before, behind) = shape.split_at(selected.unwrap_or(0));
        let over = if selected.is_some() { mask.rank() } else { 0 };
        let behind = &behind[usize::from(selected.is_some())..];
        t.try_reshape(
            before.iter().copied().chain(ones(over)).chain(behind.iter().copied()).collect::<Shape>(),
        )
    };
    let masked = || {
        let values = match values {
            Operand::Number(v) => Operand::Number(*v),
            Operand::Borrowed(t) => Operand::Owned(apart(t)?),
            Operand::Owned(t) => Operand::Owned(apart(t)?),
        };
        let values = update_like(x, values, &x.node().shape)?;
        let over: Shape = ones(at).chain(mask.shape().iter().copied()).chain(ones(behind)).collect();
        Tensor::try_where(&mask.try_reshape(over)?, &meet(how, x, &values)?, x)
    };
    Some(masked())
}

/// The elements of a tensor that an index names, to be read, or to be replaced in a new tensor. [`Tensor::at`] makes it.
///
/// Values are a number or a tensor that broadcasts to the shape of what the index names; the type of the tensor stays. Where positions
/// repeat, [`set`](Selected::set) keeps the last value in the order of the index, which alone has a gradient; all of them count for the
/// others. Each method has a `try_` form that returns bad arguments as an error.
pub struct Selected<'a> {
    x: &'a Tensor,
    items: Vec<IndexItem<'a>>,
}

macro_rules! updates {
    ($($(#[$doc:meta])* $name:ident $try:ident $said:literal = $how:expr;)*) => {
        impl Selected<'_> {$(
            $(#[$doc])*
            #[must_use]
            #[track_caller]
            pub fn $name<'b>(&self, values: impl Into<Operand<'b>>) -> Tensor {
                or_panic(self.$try(values))
            }

            #[doc = concat!("[`", stringify!($name), "`](Selected::", stringify!($name), "), with bad arguments as an error.")]
            #[track_caller]
            pub fn $try<'b>(&self, values: impl Into<Operand<'b>>) -> Result<Tensor> {
                let values = values.into();
                composed($said, || self.updated($how, values))
            }
        )*}
    };
}
updates! {
    /// The tensor with these elements replaced.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = Tensor::zeros([3, 2]);
    /// assert_eq!(x.at((.., 1)).set(&Tensor::from([1.0, 2.0, 3.0])).to_vec::<f64>(), [0.0, 1.0, 0.0, 2.0, 0.0, 3.0]);
    /// assert_eq!(x.at(([0, 2], [1, 0])).set(5.0).to_vec::<f64>(), [0.0, 5.0, 0.0, 0.0, 5.0, 0.0]);
    /// ```
    #[doc(alias("index_copy", "index_fill", "index_put"))]
    set try_set "at.set" = Update::Put(PutRule::Set);
    /// The tensor with values added to these elements, as often as positions repeat.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let counts = Tensor::zeros([3]).at([0, 2, 2]).add(1.0);
    /// assert_eq!(counts.to_vec::<f64>(), [1.0, 0.0, 2.0]);
    /// ```
    #[doc(alias("index_add", "index_put"))]
    add try_add "at.add" = Update::Add;
    /// The tensor with these elements multiplied by values.
    mul try_mul "at.mul" = Update::Put(PutRule::Mul);
    /// The tensor with the larger of these elements and the values; equal ones share the gradient.
    #[doc(alias = "index_reduce")]
    max try_max "at.max" = Update::Put(PutRule::Max);
    /// The tensor with the smaller of these elements and the values; equal ones share the gradient.
    #[doc(alias = "index_reduce")]
    min try_min "at.min" = Update::Put(PutRule::Min);
}

impl Selected<'_> {
    /// The elements themselves: [`Tensor::index`].
    #[must_use]
    #[track_caller]
    pub fn get(&self) -> Tensor {
        or_panic(composed("at.get", || picked(self.x, self.items.clone())))
    }

    fn updated(&self, how: Update, values: Operand) -> Result<Tensor> {
        let x = self.x;
        let plan = plan(x, self.items.clone())?;
        if plan.is_slice() {
            let values = update_like(x, values, &plan.kept())?;
            let part = match how {
                Update::Put(PutRule::Set) => values,
                _ => meet(
                    how,
                    &bind(Slice { region: plan.region.clone() }, &[x])?.try_reshape(plan.kept())?,
                    &values,
                )?,
            };
            return replaced(x, &plan.region, &part);
        }
        if let Some(done) = where_masked(x, how, &values, &plan) {
            return done;
        }
        let picking = plan.picking()?;
        let values = update_like(x, values, &picking.result()?)?;
        picking.update(x, how, &values)
    }
}

fn picked(x: &Tensor, items: Vec<IndexItem>) -> Result<Tensor> {
    let plan = plan(x, items)?;
    if plan.is_slice() {
        return bind(Slice { region: plan.region.clone() }, &[x])?.try_reshape(plan.kept());
    }
    plan.picking()?.get(x)
}

impl Tensor {
    /// Elements by one item for each axis: a range, a position, a [`NewAxis`](crate::NewAxis), an [`Ellipsis`], a tensor (or array) of positions of any shape, or
    /// a mask of truth values over as many axes as it has.
    ///
    /// The meaning is NumPy's. Tensors of positions broadcast against each other, and pick one element (or slice of the axes that are left) for each
    /// place of the common shape, whose axes stand where the tensors do; if a range, an ellipsis or a new axis stands between them, they come first. A
    /// position next to a tensor counts as a tensor. A mask is the positions where it is true; it must be known, which it is not inside of
    /// `compile` and `vmap`. Negative positions count from the end, others outside of the axis are an error.
    ///
    /// Ranges alone make a view ([`slice`](Tensor::slice)), anything else a copy.
    ///
    /// ```
    /// use pullback::{Ellipsis, prelude::*};
    /// let x = Tensor::arange(0, 12, 1).reshape([3, 4]);
    /// assert_eq!(x.index(([0, 2], [1, -1])).to_vec::<i32>(), [1, 11]);
    /// assert_eq!(x.index((1.., [3, 0])).to_vec::<i32>(), [7, 4, 11, 8]);
    /// assert_eq!(x.index(&x.gt(8)).to_vec::<i32>(), [9, 10, 11]);
    /// let rows = Tensor::from([[0, 1], [2, 0]]);
    /// assert_eq!(x.index(&rows).shape(), [2, 2, 4]);
    /// assert_eq!(x.index((Ellipsis, &rows)).shape(), [3, 2, 2]);
    /// ```
    #[must_use]
    #[track_caller]
    pub fn index<'a>(&self, items: impl IntoIndex<'a>) -> Tensor {
        or_panic(self.try_index(items))
    }

    #[track_caller]
    pub(crate) fn try_index<'a>(&self, items: impl IntoIndex<'a>) -> Result<Tensor> {
        let items = items.items();
        composed("index", || picked(self, items))
    }

    /// The elements that an [`index`](Tensor::index) names, to be replaced in a new tensor: `x.at(..).set(v)`, and `add`, `mul`, `max`, `min`.
    /// [`item_at`](Tensor::item_at) reads one number.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = Tensor::from([1.0, 2.0, 3.0]);
    /// assert_eq!(x.at(-1).set(0.0).to_vec::<f64>(), [1.0, 2.0, 0.0]);
    /// assert_eq!(x.at(&x.gt(1.5)).mul(10.0).to_vec::<f64>(), [1.0, 20.0, 30.0]);
    /// let g = grad(|x: &Tensor| x.at(0).set(5.0).square().sum())(&x);
    /// assert_eq!(g.to_vec::<f64>(), [0.0, 4.0, 6.0]);
    /// ```
    #[must_use]
    pub fn at<'a>(&'a self, items: impl IntoIndex<'a>) -> Selected<'a> {
        Selected { x: self, items: items.items() }
    }
}
