//! Operations whose kernel is the user's own code over slices.

use super::{Batching, Custom};
use crate::allocation::ask_for;
use crate::error::{Result, err, or_panic};
use crate::ops::Aval;
use crate::{Element, Scalar, Shape, Tensor};
use std::panic::Location;
use std::sync::Arc;

/// An operation with a kernel of the user's: it computes on slices, and says in tensor operations how to pull back.
///
/// ```
/// use pullback::{CustomOp, custom_op, prelude::*};
///
/// struct Cube;
///
/// impl CustomOp for Cube {
///     type Element = f64;
///     fn name(&self) -> &'static str {
///         "cube"
///     }
///     fn infer(&self, shapes: &[&[usize]]) -> Result<Vec<usize>, String> {
///         Ok(shapes[0].to_vec())
///     }
///     fn eval(&self, x: &[&[f64]], _shapes: &[&[usize]], out: &mut [f64]) {
///         for (o, x) in out.iter_mut().zip(x[0]) {
///             *o = x * x * x;
///         }
///     }
///     fn pullback(&self, x: &[Tensor], _y: &Tensor, g: &Tensor) -> Vec<Tensor> {
///         vec![g * x[0].square() * 3.0]
///     }
/// }
///
/// let x = Tensor::from([1.0, 2.0]);
/// assert_eq!(grad(|x: &Tensor| custom_op(Cube, &[x]).sum())(&x).to_vec::<f64>(), [3.0, 12.0]);
/// ```
pub trait CustomOp: Send + Sync + 'static {
    /// The type of all elements, of inputs and output.
    type Element: Element;

    /// The name, for messages.
    fn name(&self) -> &'static str;

    /// The shape of the output from those of the inputs, or why they do not fit.
    fn infer(&self, shapes: &[&[usize]]) -> std::result::Result<Vec<usize>, String>;

    /// The kernel: writes every element of the output. Elements are in row-major order.
    fn eval(&self, x: &[&[Self::Element]], shapes: &[&[usize]], out: &mut [Self::Element]);

    /// The cotangent of each input from inputs, output and cotangent of the output, in tensor operations, and linear in `g`. Forward
    /// mode is its transpose.
    fn pullback(&self, x: &[Tensor], y: &Tensor, g: &Tensor) -> Vec<Tensor>;
}

/// Applies an operation of the user's. Panics on inputs that it refuses; [`try_custom_op`] returns the error.
///
/// See [`CustomOp`] for an example.
#[track_caller]
pub fn custom_op<O: CustomOp>(op: impl Into<Arc<O>>, inputs: &[&Tensor]) -> Tensor {
    or_panic(try_custom_op(op, inputs))
}

/// [`custom_op`], with errors instead of panics.
#[track_caller]
pub fn try_custom_op<O: CustomOp>(op: impl Into<Arc<O>>, inputs: &[&Tensor]) -> Result<Tensor> {
    let op = op.into();
    let (name, location) = (op.name(), Location::caller());
    crate::location::with_caller(location, || apply(op, inputs)).map_err(|e| e.in_op(name).at(location))
}

fn apply<O: CustomOp>(op: Arc<O>, inputs: &[&Tensor]) -> Result<Tensor> {
    let dtype = O::Element::DTYPE;
    if let Some((k, t)) = inputs.iter().enumerate().find(|(_, t)| t.dtype() != dtype) {
        return Err(err!(DType, "input {k} is {}, but the kernel is for {dtype}", t.dtype()));
    }
    let shapes: Vec<&[usize]> = inputs.iter().map(|t| t.shape()).collect();
    let shape = op.infer(&shapes).map_err(|e| err!(Shape, "{e}"))?;
    let output = Aval { dtype, shape: Shape::from(shape.as_slice()) };
    let len = output.shape.checked_len()?;
    let (kernel, rule) = (op.clone(), op.clone());
    let custom = Custom {
        name: op.name(),
        inputs: inputs.iter().map(|t| Aval { dtype, shape: t.node().shape.clone() }).collect(),
        outputs: Some(vec![output]),
        body: Arc::new(move |x| {
            let elements = x.iter().map(Tensor::try_to_vec).collect::<Result<Vec<Vec<O::Element>>>>()?;
            ask_for::<O::Element>(len)?;
            let shapes: Vec<&[usize]> = x.iter().map(|t| t.shape()).collect();
            let mut out = vec![O::Element::from_scalar(Scalar::F64(0.0)); len];
            kernel.eval(&elements.iter().map(Vec::as_slice).collect::<Vec<_>>(), &shapes, &mut out);
            Ok(vec![Tensor::try_from_slice(&out, shape.as_slice())?])
        }),
        pullback: Some(Arc::new(move |x, y, g| Ok(rule.pullback(x, &y[0], &g[0])))),
        pushforward: None,
        batching: Batching::OneByOne,
    };
    Ok(custom.apply(inputs)?.remove(0))
}
