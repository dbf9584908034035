//! Checkpoints that keep some values: between all and nothing.

use super::graph_of;
use super::offload::Offloaded;
use super::verified::Verified;
use crate::error::Result;
use crate::graph::{Body, Call, Graph, Ref, give_name};
use crate::ops::{Aval, Op};
use crate::tensor::{Block, Ran, Tensor, bind_block_at};
use crate::transform::{Rerun, Tree, from_leaves};
use std::any::Any;
use std::panic::Location;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What a checkpoint keeps besides the inputs, in memory unless it is [offloaded](Policy::offload).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Policy {
    /// All that the pullback reads: as without a checkpoint.
    Everything,
    /// Nothing: as [`checkpoint`](crate::checkpoint).
    Nothing,
    /// The results of products of matrices and other contractions, which cost the most to compute.
    Products,
    /// The values that were given one of these names by [`name`].
    Named(&'static [&'static str]),
}

impl Policy {
    /// The same values, and the inputs of the checkpoint, in a file in the directory `dir` instead of memory.
    ///
    /// Each run that a gradient is taken of writes one file. It is read when the pullback comes to it, and removed when the record of the run is
    /// dropped. Gradients are those of a checkpoint in memory bit by bit, to any order and under [`vmap`](crate::vmap). In memory stay the inputs of the whole
    /// computation, such as parameters; the pairs of forward mode; and what an outer gradient keeps of the pullback of an inner one.
    ///
    /// A file that cannot be written is an error of the call, one that cannot be read back an error of the pullback
    /// ([`Io`](crate::ErrorKind::Io)). Files are the user's own to read. Those of a process that was killed are removed by the next one that offloads to the
    /// directory while none else does.
    ///
    /// ```
    /// use pullback::{Policy, checkpoint_with, memory, prelude::*};
    /// let layer = |x: &Tensor| x.sin().exp().tanh();
    /// let on_disk = checkpoint_with(Policy::Everything.offload(std::env::temp_dir()), layer);
    /// let x = Tensor::linspace(0.0, 1.0, 1000).requires_grad();
    /// let y = (0..10).fold(x.clone(), |x, _| on_disk(&x)).sum();
    /// assert_eq!(memory::report(&y).bytes(), 0);
    /// y.backward();
    /// let plain = grad(|x: &Tensor| (0..10).fold(x.clone(), |x, _| layer(&x)).sum());
    /// assert_eq!(x.grad().unwrap().to_vec::<f64>(), plain(&x.detach()).to_vec::<f64>());
    /// ```
    pub fn offload(self, dir: impl Into<PathBuf>) -> Keep {
        Keep::from(self).offload(dir)
    }

    /// Compares the result of the second run with that of the first, bit by bit: the pullback fails if the function is not deterministic. Of the first
    /// result only a digest is kept.
    ///
    /// ```
    /// use pullback::{Policy, checkpoint_with, prelude::*};
    /// use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
    /// let calls = AtomicU32::new(0);
    /// let f = move |x: &Tensor| x * (1.0 + f64::from(calls.fetch_add(1, Relaxed)));
    /// let fickle = checkpoint_with(Policy::rerun().verify(), f);
    /// let x = Tensor::scalar(2.0).requires_grad();
    /// let e = fickle(&x).try_backward().unwrap_err();
    /// assert!(e.to_string().contains("not deterministic"), "{e}");
    /// ```
    pub fn verify(self) -> Keep {
        Keep::from(self).verify()
    }

    /// Keeps the inputs alone, and runs the closure itself again: it may branch on values, and must own what it captures.
    ///
    /// ```
    /// use pullback::{Policy, checkpoint_with, prelude::*};
    /// let layer = |x: &Tensor| if x.item() > 0.0 { x.sin() } else { x.exp() };
    /// let kept = checkpoint_with(Policy::rerun().offload(std::env::temp_dir()), layer);
    /// let x = Tensor::scalar(0.5);
    /// let plain = |x: &Tensor| x.sin().sin().sin();
    /// assert_eq!(grad(|x: &Tensor| kept(&kept(&kept(x))))(&x).item(), grad(plain)(&x).item());
    /// ```
    pub fn rerun() -> Rerun<Keep> {
        Rerun(Policy::Nothing.into())
    }
}

/// What a checkpoint keeps, and how: a [`Policy`], in memory or [offloaded](Policy::offload), believed or [verified](Policy::verify).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keep {
    policy: Policy,
    /// The directory of the files.
    dir: Option<Arc<Path>>,
    verify: bool,
}

impl From<Policy> for Keep {
    fn from(policy: Policy) -> Keep {
        Keep { policy, dir: None, verify: false }
    }
}

impl Keep {
    /// [`Policy::offload`], for a checkpoint with other options.
    #[must_use]
    pub fn offload(self, dir: impl Into<PathBuf>) -> Keep {
        Keep { dir: Some(dir.into().into()), ..self }
    }

    /// [`Policy::verify`], for a checkpoint with other options.
    #[must_use]
    pub fn verify(self) -> Keep {
        Keep { verify: true, ..self }
    }

    /// Whether it is this policy and nothing else.
    pub(super) fn is_plain(&self, policy: Policy) -> bool {
        *self == Keep::from(policy)
    }

    /// The block that does what the options ask of this one.
    pub(super) fn around(&self, mut body: Arc<dyn Block>) -> Arc<dyn Block> {
        if self.verify {
            body = Verified::of(body);
        }
        match &self.dir {
            Some(dir) => Offloaded::of(body, dir.clone()),
            None => body,
        }
    }
}

/// Gives a value a name that [`Policy::Named`] knows it by.
///
/// ```
/// use pullback::{Policy, checkpoint_with, name, prelude::*};
/// let f = |x: &Tensor| name(&x.sin().exp(), "hidden").tanh();
/// let kept = checkpoint_with(Policy::Named(&["hidden"]), f);
/// let x = Tensor::scalar(0.5);
/// assert_eq!(grad(kept)(&x).item(), grad(f)(&x).item());
/// ```
#[must_use]
pub fn name(x: &Tensor, name: &'static str) -> Tensor {
    give_name(x, name);
    x.clone()
}

/// Applies a traced function as a block that keeps what the options say.
pub(super) fn keeping<X: Tree, Y: Tree>(
    f: &impl Fn(&X) -> Y,
    x: &X,
    keep: &Keep,
    location: &'static Location<'static>,
) -> Result<Y> {
    let _entered = crate::location::entered(location);
    let (graph, structure) = graph_of(f, x)?;
    let (graph, captured) = graph.lift();
    let inputs: Vec<&Tensor> = x.leaves().into_iter().chain(&captured).collect();
    let saved = saved(&graph, keep.policy);
    let block = Arc::new(Keeping { graph: Arc::new(graph), saved: saved.into(), values: Vec::new() });
    Ok(from_leaves(&structure, bind_block_at(location, keep.around(block), &inputs)?))
}

/// The steps of a graph whose results a policy keeps.
fn saved(graph: &Graph, policy: Policy) -> Vec<usize> {
    let is_product = |k: usize| graph.steps[k].op.is_contraction();
    let named = |k: usize, names: &[&str]| {
        graph.names.iter().any(|(n, at)| *at == Ref::Step(k, 0) && names.contains(&&**n))
    };
    let read = if policy == Policy::Everything { read(graph) } else { Vec::new() };
    let wanted = |k: usize| match policy {
        // A product that no pullback reads is on the way to what one reads, and would be recomputed.
        Policy::Everything => read[k] || is_product(k),
        Policy::Nothing => false,
        Policy::Products => is_product(k),
        Policy::Named(names) => named(k, names),
    };
    // A block within has its own way of keeping.
    let plain = |k: &usize| !matches!(graph.steps[*k].op, Op::Block(_));
    (0..graph.len()).filter(plain).filter(|&k| wanted(k)).collect()
}

/// Which steps' results a pullback reads.
fn read(graph: &Graph) -> Vec<bool> {
    let mut read = vec![false; graph.len()];
    for (k, step) in graph.steps.iter().enumerate() {
        let uses = match &step.op {
            Op::Block(_) => None,
            op => {
                let needs: Vec<bool> =
                    step.args.iter().map(|&a| graph.aval(a).dtype.is_differentiable()).collect();
                Some(op.uses(&needs))
            }
        };
        read[k] |= uses.is_some_and(|u| u.output());
        for (i, a) in step.args.iter().enumerate() {
            // A block keeps all its inputs.
            if let Ref::Step(j, _) = *a {
                read[j] |= uses.is_none_or(|u| u.input(i));
            }
        }
    }
    read
}

/// A graph of which the results of some steps are kept.
struct Keeping {
    graph: Arc<Graph>,
    /// The steps, in order.
    saved: Arc<[usize]>,
    /// Their results in the run that this is the record of.
    values: Vec<Tensor>,
}

impl Block for Keeping {
    fn name(&self) -> &'static str {
        "checkpoint"
    }

    fn expand(&self, x: &[Tensor]) -> Result<Vec<Tensor>> {
        self.graph.eval(x)
    }

    fn run_to_record(&self, x: &[Tensor]) -> Result<Ran> {
        let mut more = Graph::clone(&self.graph);
        more.outputs.extend(self.saved.iter().map(|&k| Ref::Step(k, 0)));
        let mut outputs = more.eval(x)?;
        let values = outputs.split_off(self.graph.outputs.len());
        let ran = Keeping { graph: self.graph.clone(), saved: self.saved.clone(), values };
        Ok((outputs, Some(Arc::new(ran))))
    }

    fn residuals(&self) -> Vec<Tensor> {
        self.values.clone()
    }

    fn with_residuals(&self, values: Vec<Tensor>) -> Option<Arc<dyn Block>> {
        Some(Arc::new(Keeping { graph: self.graph.clone(), saved: self.saved.clone(), values }))
    }

    fn signature(&self) -> Option<Vec<Aval>> {
        Some(self.graph.types())
    }

    fn body(&self) -> Option<Box<dyn Any>> {
        Some(Box::new(Body::Call(Call { name: "checkpoint", body: self.graph.clone() })))
    }

    fn rerun(&self, x: &[Tensor]) -> Result<Vec<Tensor>> {
        let known = |k: usize| self.saved.binary_search(&k).ok().and_then(|i| self.values.get(i));
        self.graph.eval_knowing(x, known)
    }
}
