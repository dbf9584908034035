//! The tensor handle, and `bind`, through which every operation goes.

pub(crate) mod archive;
mod attention;
mod autograd;
mod block;
pub(crate) mod buffer;
mod create;
mod data;
mod device;
mod display;
mod einsum;
mod elements;
mod fallible;
#[cfg(feature = "fft")]
pub mod fft;
mod in_place;
mod indexing;
#[cfg(any(feature = "ndarray", feature = "nalgebra"))]
mod interop;
#[cfg(feature = "linalg")]
pub mod linalg;
mod methods;
mod node;
mod operand;
mod operators;
mod random;
mod slicing;
mod sparse;
mod typed;

pub use attention::{Attention, attention, try_attention};
pub(crate) use autograd::check_real;
pub use autograd::{grad_of, try_grad_of};
pub(crate) use block::{Block, BlockAt, BlockRules, Ran, bind_block, bind_block_at, no_captures, replay};
pub(crate) use data::{DEVICE, Data, Dual, Layout, Mapped, Memory, Output, Strided, Tracer, Value};
pub(crate) use device::{Accelerator, Elements, common_device};
pub use device::{Device, with_device};
pub use einsum::{einsum, try_einsum};
pub use fallible::Fallible;
pub use indexing::{Ellipsis, IndexItem, IntoIndex, Selected};
pub use methods::{
    AxisList, Between, Conv, CrossEntropy, Interpolation, Lengths, Norm, PadMode, Padding, PerAxis, Pool,
};
pub(crate) use node::{Fresh, Link, Node, alive};
pub use operand::Operand;
pub use random::Key;
pub use slicing::{AxisRange, IntoRanges, NewAxis};
pub use sparse::Sparse;

use crate::DType;
use crate::allocation::ALWAYS_THERE;
use crate::error::{Result, caught, err};
use crate::location::{caller, with_caller};
use crate::ops::{Arg, Aval, Batched, Identity, Op};
use crate::shape::Shape;
use crate::small::Small;
use crate::tape::{
    At, Deps, Input, Record, enters, forgets, in_strict_mode, next_id, note_saved, suspended, suspended_all,
};
use smallvec::{SmallVec, smallvec};
use std::panic::Location;
use std::ptr::NonNull;

/// A multidimensional array of numbers: an immutable value with a cheap handle.
///
/// Cloning copies the handle, not the elements. Views (slices, transposes, broadcasts) share the buffer of the
/// tensor they came from. Mutation (`x += y`, [`slice_assign`](Tensor::slice_assign)) takes `&mut` and gives *this handle* a new
/// value; other handles, views and saved values keep the old one.
///
/// Operators and methods panic on bad arguments, with a message that says what is wrong. Their `try_` forms, which return it as an error, are
/// those of the trait [`Fallible`].
///
/// ```
/// use pullback::prelude::*;
/// let x = Tensor::from([[1.0, 2.0], [3.0, 4.0]]).requires_grad();
/// let loss = x.square().sum();
/// loss.backward();
/// assert_eq!(x.grad().unwrap().to_vec::<f64>(), [2.0, 4.0, 6.0, 8.0]);
/// ```
pub struct Tensor {
    node: NonNull<Node>,
}

// SAFETY: a node may be used from any thread (see `node`).
unsafe impl Send for Tensor {}
// SAFETY: as above.
unsafe impl Sync for Tensor {}

// A value does not change, and what gathers gradients is behind locks: a panic leaves nothing half done.
impl std::panic::UnwindSafe for Tensor {}
impl std::panic::RefUnwindSafe for Tensor {}

/// Applies an operation: infers the type of the result, computes it, pushes tangents that ride along, and keeps a
/// record if a live transform will need it.
#[track_caller]
pub(crate) fn bind(op: impl Into<Op>, inputs: &[&Tensor]) -> Result<Tensor> {
    bind_at(op.into(), inputs, caller())
}

fn bind_at(op: Op, inputs: &[&Tensor], location: &'static Location<'static>) -> Result<Tensor> {
    let frame = inputs.iter().map(|t| t.data().interpreter()).max().unwrap_or(0);
    match apply(&op, inputs, frame, location) {
        Ok(mut node) => {
            record(&mut node, op, inputs, frame, location);
            Ok(node.into_tensor())
        }
        Err(e) => Err(e.in_op(op.name()).at(location)),
    }
}

/// The result of an operation, without the record of it.
#[inline(always)]
fn apply(op: &Op, inputs: &[&Tensor], frame: u64, location: &'static Location<'static>) -> Result<Fresh> {
    let aval =
        each(inputs, |t| Arg { dtype: t.node().dtype, shape: &t.node().shape }, |args| op.infer(args))?;
    let mut node = Fresh::new(aval.dtype, aval.shape);
    if frame == 0 {
        // A kernel that finds no memory raises its error. The memory of small ones is not asked for, and to catch nothing would cost
        // them a twentieth of their time.
        let small = node.shape.numel() < ALWAYS_THERE && inputs.iter().all(|t| t.numel() < ALWAYS_THERE);
        let mut eval = || each(inputs, Tensor::value, |values| op.eval(values, &mut node.output()));
        if small {
            eval()?
        } else {
            caught(eval)??
        }
        if device::is_chosen() {
            device::settle(&mut node, inputs)?;
        }
    } else {
        let data = with_caller(location, || interpret(op, inputs, frame, &node))?;
        node.output().set(data);
    }
    debug_assert!(!matches!(node.output().data(), Data::Gone), "a kernel wrote no result");
    Ok(node)
}

/// An operation whose result is known already: recorded like any other, but not computed.
#[track_caller]
pub(crate) fn bind_known(op: &Op, inputs: &[&Tensor], value: &Tensor) -> Tensor {
    let frame = inputs.iter().map(|t| t.data().frame()).max().unwrap_or(0);
    let mut node = value.copy();
    record(&mut node, op.clone(), inputs, frame, caller());
    node.into_tensor()
}

/// Runs `then` with something of each input, in an array for the usual numbers of them: collecting would cost as much as a
/// small operation.
#[inline(always)]
fn each<'a, T, R>(inputs: &[&'a Tensor], of: impl Fn(&'a Tensor) -> T, then: impl FnOnce(&[T]) -> R) -> R {
    match inputs {
        [x] => then(&[of(x)]),
        [a, b] => then(&[of(a), of(b)]),
        more => then(&more.iter().map(|t| of(t)).collect::<Vec<T>>()),
    }
}

/// What the operation means to the innermost transform that wraps its inputs, or to the device that holds them.
#[cold]
fn interpret(op: &Op, inputs: &[&Tensor], level: u64, out: &Node) -> Result<Data> {
    if level == DEVICE {
        let x: SmallVec<[Value; 4]> = inputs.iter().map(|t| t.value()).collect();
        return device::run(op, &x, &Aval { dtype: out.dtype, shape: out.shape.clone() }, None);
    }
    enters(level);
    let innermost = inputs.iter().map(|t| t.data()).find(|d| d.frame() == level);
    // Transforms newer than this one record the result as a whole: nothing inside is recorded for them.
    let mut newer = Deps::default();
    inputs.iter().for_each(|t| newer.join(&t.node().deps, level));
    suspended_all(newer.ids(), || match innermost {
        Some(Data::Dual(_)) => push(op, inputs, level),
        Some(Data::Mapped(m)) => map(op, inputs, level, m.value.shape()[0]),
        Some(Data::Traced(t)) => {
            let aval = Aval { dtype: out.dtype, shape: out.shape.clone() };
            let made = t.apply(op, inputs, smallvec![aval])?.pop();
            Ok(Data::Traced(made.expect("an operation has an output for each type")))
        }
        _ => unreachable!("a frame has a value that made it"),
    })
}

/// Forward mode: the operation on the primals, and its pushforward on the tangents.
fn push(op: &Op, inputs: &[&Tensor], level: u64) -> Result<Data> {
    // A mask or an index is the same along every tangent: it has none.
    let dual = |t: &&Tensor| match t.data() {
        Data::Dual(d) if d.level == level => {
            (d.primal.clone(), t.dtype().is_differentiable().then(|| d.tangent.clone()))
        }
        _ => ((*t).clone(), None),
    };
    let (primals, tangents): (Vec<Tensor>, Vec<Option<Tensor>>) = inputs.iter().map(dual).unzip();
    let primal = bind_at(op.clone(), &primals.iter().collect::<Vec<_>>(), caller())?;
    if !primal.dtype().is_differentiable() || op.stops_gradient() || tangents.iter().all(Option::is_none) {
        return Ok(Data::Dual(Box::new(Dual { level, tangent: primal.zeros_like(), primal })));
    }
    let needs: Small<bool> = tangents.iter().map(Option::is_some).collect();
    let inputs: SmallVec<[Input; 2]> = primals.into_iter().map(Input::Saved).collect();
    let at = At { name: op.name(), inputs: &inputs, output: Some(&primal), needs: &needs };
    let tangent = op.pushforward(&at, &tangents)?;
    Ok(Data::Dual(Box::new(Dual { level, primal, tangent })))
}

/// Batching: the operation on all lanes at once, or, if it has no rule for that, on one after the other.
fn map(op: &Op, inputs: &[&Tensor], level: u64, n: usize) -> Result<Data> {
    let lane = |t: &&Tensor| match t.data() {
        Data::Mapped(m) if m.level == level => Batched { value: m.value.clone(), mapped: true },
        _ => Batched { value: (*t).clone(), mapped: false },
    };
    let lanes: Vec<Batched> = inputs.iter().map(lane).collect();
    let value = match op.batch(&lanes, n) {
        // Whatever the rule is made of.
        Some(value) => value.map_err(|e| e.renamed(op.name()))?,
        None => one_by_one(op, &lanes, n)?,
    };
    Ok(Data::Mapped(Box::new(Mapped { level, value })))
}

/// The batching rule of last resort.
fn one_by_one(op: &Op, lanes: &[Batched], n: usize) -> Result<Tensor> {
    let row = |k: usize| {
        let args: Vec<Tensor> =
            lanes.iter().map(|l| if l.mapped { l.value.get(k as isize) } else { l.value.clone() }).collect();
        bind_at(op.clone(), &args.iter().collect::<Vec<_>>(), caller())
    };
    let rows = (0..n).map(row).collect::<Result<Vec<Tensor>>>()?;
    match rows.is_empty() {
        true => Err(err!(Shape, "there are no lanes to map over")),
        false => Tensor::try_stack(&rows, 0),
    }
}

/// Notes how a result was made, if it depends on a live transform newer than the frame it was computed in.
#[inline(always)]
fn record(node: &mut Fresh, op: Op, inputs: &[&Tensor], frame: u64, location: &'static Location<'static>) {
    if node.dtype.is_differentiable() && !op.stops_gradient() {
        inputs.iter().for_each(|t| node.deps.join(&t.node().deps, frame));
    }
    if node.deps.is_empty() {
        return;
    }
    node.id = next_id();
    if forgets(&node.deps) {
        return;
    }
    let uses = each(inputs, |t| !t.node().deps.is_empty(), |needs| op.uses(needs));
    let input = |k: usize, t: &Tensor| {
        if uses.input(k) {
            if in_strict_mode() {
                note_saved(t.address(), op.name(), location);
            }
            Input::Saved(t.clone())
        } else {
            Input::Linked(t.link())
        }
    };
    let inputs = match inputs {
        [x] => smallvec![input(0, x)],
        [a, b] => SmallVec::from_buf([input(0, a), input(1, b)]),
        more => more.iter().enumerate().map(|(k, t)| input(k, t)).collect(),
    };
    node.keep = uses.output();
    node.record = Some(Record { op, inputs, location });
}

impl Tensor {
    pub(crate) fn new(dtype: DType, shape: Shape, data: Data) -> Tensor {
        let mut node = Fresh::new(dtype, shape);
        node.output().set(data);
        node.into_tensor()
    }

    /// A new node of equal value, without a history.
    pub(crate) fn copy(&self) -> Fresh {
        let mut node = Fresh::new(self.dtype(), self.node().shape.clone());
        node.output().set(self.data().clone());
        node
    }

    /// The concrete value of an input of a kernel.
    pub(crate) fn value(&self) -> Value<'_> {
        Value { dtype: self.node().dtype, shape: &self.node().shape, data: self.data(), window: None }
    }

    /// The same value without its history; transforms that wrap the value still see it.
    pub(crate) fn bare(&self) -> Tensor {
        if self.node().deps.is_empty() {
            return self.clone();
        }
        self.copy().into_tensor()
    }

    /// A new node of equal value that is an input of transform `level`; outer transforms see through it.
    pub(crate) fn leaf(&self, level: u64) -> Tensor {
        let mut node = self.copy();
        record(&mut node, Identity.into(), &[self], self.data().frame(), caller());
        if node.id == 0 {
            node.id = next_id();
        }
        node.deps.insert(level);
        node.leaf_of = level;
        node.into_tensor()
    }

    /// The same value, no longer of interest to transform `level`.
    pub(crate) fn without(&self, level: u64) -> Tensor {
        if !self.node().deps.contains(level) {
            return self.clone();
        }
        suspended(level, || bind(Identity, &[self])).expect("identity takes anything")
    }

    /// This value with a tangent for the forward-mode transform `level`.
    pub(crate) fn with_tangent(&self, level: u64, tangent: &Tensor) -> Tensor {
        let dual = Dual { level, primal: self.clone(), tangent: tangent.clone() };
        Tensor::new(self.dtype(), self.node().shape.clone(), Data::Dual(Box::new(dual)))
    }

    /// Where the node is: an identity for as long as the handle lives.
    pub(crate) fn address(&self) -> u64 {
        self.node.as_ptr() as u64
    }

    /// The length of each axis.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// assert_eq!(Tensor::zeros([2, 3]).shape(), [2, 3]);
    /// ```
    pub fn shape(&self) -> &[usize] {
        &self.node().shape
    }

    /// The type of the elements.
    pub fn dtype(&self) -> DType {
        self.node().dtype
    }

    /// The number of axes.
    pub fn rank(&self) -> usize {
        self.node().shape.len()
    }

    /// The number of elements.
    pub fn numel(&self) -> usize {
        self.node().shape.numel()
    }
}
