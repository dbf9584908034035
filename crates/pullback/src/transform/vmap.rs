//! Batching: a function of one example, applied to many at once.

mod axes;

use super::{Tree, from_leaves};
use crate::error::{Result, err, or_panic};
use crate::location::{entered, with_caller};
use crate::tape::Level;
use crate::tensor::{Data, Mapped, Tensor};
pub use axes::Axes;
use axes::Given;
use std::panic::Location;

/// A function of one example as a function of many, which lie along the first axis of every tensor of the input, and of
/// the output.
///
/// The function runs once, on all examples together; whatever does not depend on the example is computed once. It
/// composes with every other transform: `vmap(grad(f))` gives the gradient of each example.
///
/// ```
/// use pullback::prelude::*;
/// let w = Tensor::from([0.5, -0.5]);
/// let loss = |x: &Tensor| (x * &w).sum().tanh();
/// let xs = Tensor::from([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]);
/// assert_eq!(vmap(grad(loss))(&xs).shape(), [3, 2]);
/// ```
#[track_caller]
pub fn vmap<X: Tree, Y: Tree, F: Fn(&X) -> Y>(f: F) -> impl Fn(&X) -> Y {
    let location = Location::caller();
    move |x| or_panic(run(&f, x, &Given::new(&0isize), 0, location).map_err(|e| e.in_op("vmap").at(location)))
}

/// [`vmap`] over chosen axes: [for each tensor of the input](Axes) the axis of the examples, or `None` if all examples share it; and the axis of the
/// examples in the outputs.
///
/// ```
/// use pullback::{prelude::*, vmap_axes};
/// let f = |(a, b): &(Tensor, Tensor)| a.dot(b);
/// let (xs, w) = (Tensor::ones([2, 5]), Tensor::from([3.0, 4.0]));
/// let y = vmap_axes(f, (1, None), 0)(&(xs, w));
/// assert_eq!(y.to_vec::<f64>(), [7.0; 5]);
/// ```
#[track_caller]
pub fn vmap_axes<X: Tree, Y: Tree, F: Fn(&X) -> Y, A: Axes>(
    f: F,
    in_axes: A,
    out_axis: isize,
) -> impl Fn(&X) -> Y + use<X, Y, F, A> {
    let location = Location::caller();
    let in_axes = Given::new(&in_axes);
    move |x| or_panic(run(&f, x, &in_axes, out_axis, location).map_err(|e| e.in_op("vmap_axes").at(location)))
}

fn run<X: Tree, Y: Tree>(
    f: &impl Fn(&X) -> Y,
    x: &X,
    in_axes: &Given,
    out_axis: isize,
    location: &'static Location<'static>,
) -> Result<Y> {
    let _entered = entered(location);
    let (leaves, names) = (x.leaves(), x.names());
    let axes = in_axes.of(&names)?;
    let level = Level::new();
    let mut lanes: Option<(usize, String)> = None;
    let mut wrapped = Vec::with_capacity(leaves.len());
    for ((t, name), at) in leaves.iter().zip(names).zip(axes) {
        let Some(at) = at else {
            wrapped.push((*t).clone());
            continue;
        };
        let name = if name.is_empty() { "the input".into() } else { format!("input `{name}`") };
        if t.rank() == 0 {
            return Err(err!(
                Axis,
                "{name} is a scalar and has no axis of examples; give None for it in vmap_axes"
            ));
        }
        let value = with_caller(location, || to_front(t, at)).map_err(|e| e.within(&name))?;
        let n = value.shape()[0];
        match &lanes {
            Some((m, first)) if *m != n => {
                return Err(err!(Shape, "{first} has {m} examples along its axis, {name} has {n}"));
            }
            _ => lanes = Some((n, name)),
        }
        wrapped.push(mapped(value, level.id()));
    }
    let Some((n, _)) = lanes else {
        return Err(err!(Axis, "no input has an axis of examples"));
    };
    let y = f(&from_leaves(x, wrapped));
    let mut failed = None;
    let mut gathered = |t: &Tensor| {
        unwrapped(t, level.id(), n, out_axis).unwrap_or_else(|e| {
            failed = Some(e.within("the output"));
            t.clone()
        })
    };
    let out = with_caller(location, || y.map(&mut gathered));
    failed.map_or(Ok(out), Err)
}

/// A tensor whose first axis is that of the lanes, as the value of one lane.
pub(crate) fn mapped(value: Tensor, level: u64) -> Tensor {
    let shape = value.node().shape.without(&[0]);
    Tensor::new(value.dtype(), shape, Data::Mapped(Box::new(Mapped { level, value })))
}

/// All lanes of a result; one that depends on no lane is repeated.
fn unwrapped(t: &Tensor, level: u64, n: usize, out_axis: isize) -> Result<Tensor> {
    let value = match t.data() {
        Data::Mapped(m) if m.level == level => m.value.clone(),
        _ => t.try_unsqueeze(0)?.try_broadcast_to(t.node().shape.inserted(0, n))?,
    };
    if out_axis == 0 { Ok(value) } else { from_front(&value, out_axis) }
}

/// With the given axis moved to the front.
fn to_front(t: &Tensor, at: isize) -> Result<Tensor> {
    let at = crate::shape::axis(at, t.rank())?;
    if at == 0 {
        return Ok(t.clone());
    }
    let order: Vec<isize> =
        std::iter::once(at).chain((0..t.rank()).filter(|&k| k != at)).map(|k| k as isize).collect();
    t.try_permute(&order)
}

/// With the first axis moved to the given place.
fn from_front(t: &Tensor, at: isize) -> Result<Tensor> {
    let at = crate::shape::axis(at, t.rank())?;
    let mut order: Vec<isize> = (1..t.rank() as isize).collect();
    order.insert(at, 0);
    t.try_permute(&order)
}
