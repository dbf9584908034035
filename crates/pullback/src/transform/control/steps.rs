//! What a loop goes over: a number of steps, or the slices of stacked inputs.

use super::same_carry;
use crate::error::{Result, err};
use crate::graph::control::{GraphStep, LoopStep};
use crate::graph::trace_leaves;
use crate::ops::Aval;
use crate::tensor::Tensor;
use crate::transform::{Tree, avals, from_leaves};
use std::sync::Arc;

/// What a loop goes over: a number of steps (`50`), or a tree of tensors whose first axis is that of the steps (`&xs`).
pub trait Steps {
    /// What one step sees of it.
    type Item: Tree;

    /// The number of steps; an error where the inputs disagree about it.
    fn count(&self) -> Result<usize>;

    /// The stacked tensors.
    fn stacked(&self) -> Vec<&Tensor>;

    /// An item made of one slice of each stacked tensor.
    fn item(&self, slices: &[Tensor]) -> Self::Item;
}

impl Steps for usize {
    type Item = ();

    fn count(&self) -> Result<usize> {
        Ok(*self)
    }

    fn stacked(&self) -> Vec<&Tensor> {
        Vec::new()
    }

    fn item(&self, _: &[Tensor]) {}
}

impl<X: Tree> Steps for &X {
    type Item = X;

    fn count(&self) -> Result<usize> {
        let mut first: Option<(String, usize)> = None;
        for (name, t) in self.named() {
            let Some(&n) = t.shape().first() else {
                return Err(err!(Shape, "the input `{name}` is a scalar and has no axis of steps"));
            };
            match &first {
                Some((other, m)) if *m != n => {
                    return Err(err!(
                        Shape,
                        "the inputs have different numbers of steps along their first axes: `{other}` has {m}, `{name}` has {n}"
                    ));
                }
                _ => first = Some((name, n)),
            }
        }
        let none = || err!(Structure, "the inputs have no tensors; give the number of steps instead");
        first.map(|(_, n)| n).ok_or_else(none)
    }

    fn stacked(&self) -> Vec<&Tensor> {
        self.leaves()
    }

    fn item(&self, slices: &[Tensor]) -> X {
        from_leaves(*self, slices.iter().cloned())
    }
}

/// Traces a step: its body, what it captured, and an output for the structure.
pub(super) fn traced_body<C: Tree, S: Steps, Y: Tree>(
    f: &impl Fn(&C, &S::Item) -> (C, Y),
    init: &C,
    steps: &S,
) -> Result<(Arc<dyn LoopStep>, Vec<Tensor>, Y)> {
    let width = init.leaves().len();
    let slice = |t: &Tensor| Aval { dtype: t.dtype(), shape: t.node().shape.without(&[0]) };
    let inputs = avals(init).into_iter().chain(steps.stacked().into_iter().map(slice)).collect();
    let mut output = None;
    let run = |leaves: &[Tensor]| {
        let (state, item) = leaves.split_at(width);
        let before = from_leaves(init, state.iter().cloned());
        let (after, y) = f(&before, &steps.item(item));
        same_carry(&before, &after)?;
        let outputs = after.leaves().into_iter().chain(y.leaves()).cloned().collect();
        output = Some(y);
        Ok(outputs)
    };
    let (body, shared) = GraphStep::of(trace_leaves(run, inputs)?, width);
    Ok((body, shared, output.expect("the step was traced")))
}
