//! A checkpoint that tests its promise: that running the function again gives the same result.

use super::apply;
use crate::error::{Result, err};
use crate::tensor::{Block, BlockAt, Data, Link, Ran, Tensor, replay};
use crate::transform::Tree;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::Location;
use std::sync::Arc;

/// [`checkpoint_dynamic`](crate::checkpoint_dynamic) that compares the result of the second run with that of the first, bit by bit, and fails if
/// the function is not deterministic. Of the first result only a digest is kept.
///
/// ```
/// use pullback::prelude::*;
/// use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
/// let calls = AtomicU32::new(0);
/// let fickle = checkpoint_verified(move |x: &Tensor| x * (1.0 + f64::from(calls.fetch_add(1, Relaxed))));
/// let x = Tensor::scalar(2.0).requires_grad();
/// let e = fickle(&x).try_backward().unwrap_err();
/// assert!(e.to_string().contains("not deterministic"), "{e}");
/// ```
#[track_caller]
pub fn checkpoint_verified<X, Y, F>(f: F) -> impl Fn(&X) -> Y
where
    X: Tree + Clone + Send + Sync + 'static,
    Y: Tree + Send + 'static,
    F: Fn(&X) -> Y + Send + Sync + 'static,
{
    let location = Location::caller();
    let f = Arc::new(f);
    move |x: &X| apply(&f, x, location, |body| Arc::new(Verified { body, digests: Vec::new() }))
}

struct Verified {
    body: Arc<dyn Block>,
    /// Of the outputs of the run that this is the record of.
    digests: Vec<Option<u64>>,
}

impl Block for Verified {
    fn name(&self) -> &'static str {
        self.body.name()
    }

    fn expand(&self, x: &[Tensor]) -> Result<Vec<Tensor>> {
        self.body.expand(x)
    }

    fn run_to_record(&self, x: &[Tensor]) -> Result<Ran> {
        let outputs = self.expand(x)?;
        let digests = outputs.iter().map(digest).collect();
        Ok((outputs, Some(Arc::new(Verified { body: self.body.clone(), digests }))))
    }

    fn pullback(&self, at: &BlockAt, gs: &[Option<Tensor>]) -> Result<Vec<(Link, Tensor)>> {
        replay(at, gs, |x| {
            let outputs = self.expand(x)?;
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
        })
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
        _ if t.dtype().is_float() => t.to_vec::<f64>().iter().for_each(|v| v.to_bits().hash(&mut h)),
        _ => t.to_vec::<i64>().hash(&mut h),
    }
    Some(h.finish())
}
