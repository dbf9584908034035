//! One of two graphs.

use super::{Known, known};
use crate::error::Result;
use crate::graph::{Body, Graph};
use crate::ops::Aval;
use crate::tensor::{Block, Tensor};
use std::any::Any;
use std::sync::Arc;

/// A choice in a graph. Its inputs: the condition, `inputs` common ones, then those of `then` alone, those of `otherwise` alone.
#[derive(Clone)]
pub(crate) struct Cond {
    pub then: Arc<Graph>,
    pub otherwise: Arc<Graph>,
    /// How many inputs the branches have in common.
    pub inputs: usize,
}

impl Block for Cond {
    fn name(&self) -> &'static str {
        "cond"
    }

    fn expand(&self, x: &[Tensor]) -> Result<Vec<Tensor>> {
        let (condition, x) = x.split_first().expect("the condition is an input");
        let (common, captured) = x.split_at(self.inputs);
        let (first, second) = captured.split_at(self.then.inputs.len() - self.inputs);
        let then = || self.then.eval(&[common, first].concat());
        let otherwise = || self.otherwise.eval(&[common, second].concat());
        match known(condition)? {
            Known::One(true) => then(),
            Known::One(false) => otherwise(),
            // Another transform runs inside of the traced one, and sees both.
            Known::Lanes { .. } | Known::Nothing => {
                then()?.iter().zip(otherwise()?).map(|(a, b)| Tensor::try_where(condition, a, &b)).collect()
            }
        }
    }

    fn signature(&self) -> Option<Vec<Aval>> {
        Some(self.then.types())
    }

    fn body(&self) -> Option<Box<dyn Any>> {
        Some(Box::new(Body::Cond(self.clone())))
    }
}
