//! Checkpoints whose values wait for the pullback in a file.

use super::spill::Spill;
use crate::error::Result;
use crate::location::caller;
use crate::ops::{Aval, Identity};
use crate::tape::{Input, Record, next_id};
use crate::tensor::{Block, BlockAt, Link, Ran, Tensor};
use smallvec::smallvec;
use std::path::Path;
use std::sync::Arc;

/// A block whose inputs and residuals are in a file while it is recorded.
pub(super) struct Offloaded {
    body: Arc<dyn Block>,
    dir: Arc<Path>,
    /// Of the run that this is the record of: the inputs that its record has only links to, then the residuals.
    values: Option<Spill>,
}

impl Offloaded {
    pub fn of(body: Arc<dyn Block>, dir: Arc<Path>) -> Arc<dyn Block> {
        Arc::new(Offloaded { body, dir, values: None })
    }
}

impl Block for Offloaded {
    fn name(&self) -> &'static str {
        self.body.name()
    }

    fn expand(&self, x: &[Tensor]) -> Result<Vec<Tensor>> {
        self.body.expand(x)
    }

    fn run_to_record(&self, x: &[Tensor]) -> Result<Ran> {
        let (outputs, ran) = self.body.run_to_record(x)?;
        Ok((outputs, ran.map(|body| Offloaded::of(body, self.dir.clone()))))
    }

    fn signature(&self) -> Option<Vec<Aval>> {
        self.body.signature()
    }

    fn store(&self, inputs: &mut [Input]) -> Result<Option<Arc<dyn Block>>> {
        let mut values = Vec::new();
        for input in inputs {
            if let Input::Saved(t) = input
                && is_intermediate(t)
            {
                let link = t.link();
                values.push(t.clone());
                *input = Input::Linked(link);
            }
        }
        let residuals = self.body.residuals();
        values.extend(residuals);
        let spill = Spill::new(&self.dir, &values)?;
        let body = self.body.with_residuals(Vec::new()).unwrap_or_else(|| self.body.clone());
        Ok(Some(Arc::new(Offloaded { body, dir: self.dir.clone(), values: Some(spill) })))
    }

    fn pullback(&self, at: &BlockAt, gs: &[Option<Tensor>]) -> Result<Vec<(Link, Tensor)>> {
        let values = self.values.as_ref().expect("the block has been recorded").load()?;
        let mut values = values.into_iter();
        let restored = |input: &Input| match input {
            Input::Saved(t) => Input::Saved(t.clone()),
            Input::Linked(link) => {
                Input::Saved(restored(link.clone(), &values.next().expect("there is a value for each link")))
            }
        };
        let inputs: Vec<Input> = at.inputs.iter().map(restored).collect();
        let body = self.body.with_residuals(values.collect()).unwrap_or_else(|| self.body.clone());
        body.pullback(&BlockAt { inputs: &inputs, ..*at }, gs)
    }
}

/// Whether a value came from a computation: others are in memory in any case.
fn is_intermediate(t: &Tensor) -> bool {
    t.node().record.is_some() && t.node().leaf_of == 0
}

/// A value that was read back, with the history that it had: that of an identity on the value it was.
fn restored(from: Link, value: &Tensor) -> Tensor {
    let deps = from.node().deps.clone();
    let record = Record { op: Identity.into(), inputs: smallvec![Input::Linked(from)], location: caller() };
    let mut node = value.copy();
    node.record = Some(record);
    node.deps = deps;
    node.id = next_id();
    node.into_tensor()
}
