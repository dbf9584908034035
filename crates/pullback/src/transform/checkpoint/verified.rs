//! A checkpoint that tests its promise: that running the function again gives the same result.

use crate::error::{Result, err};
use crate::ops::Aval;
use crate::tensor::{Block, Data, Ran, Tensor};
use std::any::Any;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// A block that compares the result of its second run with that of the first. Of the first, only a digest is kept.
pub(super) struct Verified {
    body: Arc<dyn Block>,
    /// Of the outputs of the run that this is the record of.
    digests: Vec<Option<u64>>,
}

impl Verified {
    pub fn of(body: Arc<dyn Block>) -> Arc<dyn Block> {
        Arc::new(Verified { body, digests: Vec::new() })
    }
}

impl Block for Verified {
    fn name(&self) -> &'static str {
        self.body.name()
    }

    fn expand(&self, x: &[Tensor]) -> Result<Vec<Tensor>> {
        self.body.expand(x)
    }

    fn run_to_record(&self, x: &[Tensor]) -> Result<Ran> {
        let (outputs, ran) = self.body.run_to_record(x)?;
        let digests = outputs.iter().map(digest).collect();
        let body = ran.unwrap_or_else(|| self.body.clone());
        Ok((outputs, Some(Arc::new(Verified { body, digests }))))
    }

    fn residuals(&self) -> Vec<Tensor> {
        self.body.residuals()
    }

    fn with_residuals(&self, values: Vec<Tensor>) -> Option<Arc<dyn Block>> {
        let body = self.body.with_residuals(values)?;
        Some(Arc::new(Verified { body, digests: self.digests.clone() }))
    }

    fn signature(&self) -> Option<Vec<Aval>> {
        self.body.signature()
    }

    fn body(&self) -> Option<Box<dyn Any>> {
        self.body.body()
    }

    fn rerun(&self, x: &[Tensor]) -> Result<Vec<Tensor>> {
        let outputs = self.body.rerun(x)?;
        let again: Vec<Option<u64>> = outputs.iter().map(digest).collect();
        match again.iter().zip(&self.digests).position(|(a, b)| a != b) {
            None if again.len() == self.digests.len() => Ok(outputs),
            at => Err(err!(
                Value,
                "the function is not deterministic: output {} is not what it was when the function ran first, so its gradient \
                 would be that of another function",
                at.unwrap_or(again.len().min(self.digests.len()))
            )),
        }
    }
}

/// A number that stands for type, shape and elements; none for a placeholder, whose elements are not known.
fn digest(t: &Tensor) -> Option<u64> {
    let mut h = DefaultHasher::new();
    (t.dtype().size(), t.shape()).hash(&mut h);
    match t.data() {
        Data::Dual(d) => (digest(&d.primal)?, digest(&d.tangent)?).hash(&mut h),
        Data::Mapped(m) => digest(&m.value)?.hash(&mut h),
        Data::Traced(_) => return None,
        _ if t.dtype().is_differentiable() => t.numbers().iter().for_each(|v| v.to_bits().hash(&mut h)),
        _ => t.to_vec::<i64>().hash(&mut h),
    }
    Some(h.finish())
}
