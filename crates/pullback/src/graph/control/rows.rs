//! The rows of what a loop goes over, and its outputs as rows.

use crate::error::Result;
use crate::shape::Shape;
use crate::tensor::{Block, BlockAt, Link, Tensor, bind_block};
use std::sync::Arc;

/// The slices of stacked tensors, one step at a time.
pub(crate) struct Slices(Vec<Source>);

enum Source {
    /// Cut when asked for.
    Whole(Tensor),
    Cut(Vec<Tensor>),
}

impl Slices {
    /// If someone will differentiate, the tensors are cut at once, so that their cotangents come from one stack instead of a sum of
    /// as many mostly empty tensors as there are steps.
    pub fn new(stacked: &[&Tensor]) -> Result<Slices> {
        let source = |t: &&Tensor| {
            let plain = t.node().deps.is_empty() && t.data().frame() == 0;
            Ok(if plain { Source::Whole((*t).clone()) } else { Source::Cut(unstack(t)?) })
        };
        stacked.iter().map(source).collect::<Result<_>>().map(Slices)
    }

    pub fn at(&self, k: usize) -> Vec<Tensor> {
        let slice = |s: &Source| match s {
            Source::Whole(t) => t.get(k as isize),
            Source::Cut(rows) => rows[k].clone(),
        };
        self.0.iter().map(slice).collect()
    }
}

/// One slice of zeros of each stacked tensor.
pub(crate) fn empty_slices(stacked: &[&Tensor]) -> Vec<Tensor> {
    stacked.iter().map(|t| zeros(t, t.node().shape.without(&[0]))).collect()
}

fn zeros(like: &Tensor, shape: Shape) -> Tensor {
    Tensor::zeros_of(like.dtype(), shape)
}

/// The tensors of all steps along a new first axis; `like` gives the type if there are none.
pub(crate) fn stack(rows: &[Tensor], like: &Tensor) -> Result<Tensor> {
    if rows.is_empty() {
        return Ok(zeros(like, like.node().shape.inserted(0, 0)));
    }
    Tensor::try_stack(rows, 0)
}

/// The rows of a tensor, as one operation.
fn unstack(t: &Tensor) -> Result<Vec<Tensor>> {
    bind_block(Arc::new(Unstack { rows: t.shape()[0] }), &[t])
}

struct Unstack {
    rows: usize,
}

impl Block for Unstack {
    fn name(&self) -> &'static str {
        "unstack"
    }

    fn expand(&self, x: &[Tensor]) -> Result<Vec<Tensor>> {
        (0..self.rows).map(|k| x[0].try_get(k as isize)).collect()
    }

    fn pullback(&self, at: &BlockAt, gs: &[Option<Tensor>]) -> Result<Vec<(Link, Tensor)>> {
        let x = at.inputs[0].node();
        let zero = Tensor::zeros_of(x.dtype, x.shape.without(&[0]));
        let row = |k: usize| gs.get(k).cloned().flatten().unwrap_or_else(|| zero.clone());
        let rows: Vec<Tensor> = (0..self.rows).map(row).collect();
        Ok(vec![(at.inputs[0].link(), stack(&rows, &zero)?)])
    }
}
