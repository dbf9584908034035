//! The face that PyTorch users know: one transform that lives for ever.

use super::{Link, Node, Tensor};
use crate::DType;
use crate::error::{Error, Result, caught, err, or_panic};
use crate::location::caller;
use crate::ops::{Op, StopGradient};
use crate::tape::{AMBIENT, Hook, Leaf, Seeds, Walk, pull, pull_along};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

impl Tensor {
    /// A leaf of equal value whose gradient [`backward`](Tensor::backward) will gather in [`grad`](Tensor::grad).
    ///
    /// `backward` stops at it; function transforms around it, such as [`crate::grad`], see through it.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = Tensor::scalar(3.0).requires_grad();
    /// (&x * &x).backward();
    /// assert_eq!(x.grad().unwrap().item(), 6.0);
    /// ```
    #[must_use = "it returns the leaf, and leaves this tensor as it was"]
    #[track_caller]
    pub fn requires_grad(&self) -> Tensor {
        or_panic(self.try_requires_grad())
    }

    #[track_caller]
    pub(crate) fn try_requires_grad(&self) -> Result<Tensor> {
        if !self.dtype().is_differentiable() {
            let e = err!(
                Gradient,
                "a tensor of {} carries no gradient, only floats and complex numbers do; use .cast(DType::F32)",
                self.dtype()
            );
            return Err(e.in_op("requires_grad").at(caller()));
        }
        let leaf = self.without(AMBIENT).leaf(AMBIENT);
        leaf.watched();
        Ok(leaf)
    }

    /// What this node gathers, made on first use.
    fn watched(&self) -> &Arc<Leaf> {
        self.node().leaf.get_or_init(Arc::default)
    }

    /// A leaf with this value that shares the gradient and hooks of `old`.
    pub(super) fn parameter_like(&self, old: &Tensor) -> Tensor {
        let leaf = self.leaf(AMBIENT);
        if let Some(shared) = old.node().leaf.get() {
            let _ = leaf.node().leaf.set(shared.clone());
        }
        leaf
    }

    /// Whether [`backward`](Tensor::backward) can start here.
    pub fn needs_grad(&self) -> bool {
        self.node().deps.contains(AMBIENT)
    }

    /// Whether this was not computed from anything that needs a gradient.
    pub fn is_leaf(&self) -> bool {
        self.node().record.is_none() || self.node().leaf_of == AMBIENT
    }

    /// The gradient gathered so far, or `None` if no backward pass has arrived here since [`zero_grad`](Tensor::zero_grad), as in a value
    /// that is not a leaf: [`try_grad`](crate::Fallible::try_grad) says why there is none.
    #[must_use]
    pub fn grad(&self) -> Option<Tensor> {
        self.node().leaf.get()?.grad()
    }

    #[track_caller]
    pub(crate) fn try_grad(&self) -> Result<Tensor> {
        if let Some(g) = self.grad() {
            return Ok(g);
        }
        let e = match &self.node().record {
            _ if !self.needs_grad() => return Err(not_connected("grad")),
            Some(r) if !self.is_leaf() => err!(
                Gradient,
                "this is not a leaf: it was made by {} at {}, and gradients are gathered in leaves; an update of a parameter goes inside of \
                 no_grad(|| ..), with an operator such as `-=`, or call requires_grad() on the new value; for the gradient of a value on \
                 the way call retain_grad() before backward()",
                r.op.name(),
                crate::location::users_line(r.location)
            ),
            _ => err!(
                Gradient,
                "no backward pass has arrived here yet, or not since zero_grad(); call backward() on a loss that depends on this"
            ),
        };
        Err(e.in_op("grad").at(caller()))
    }

    /// Forgets the gradient.
    pub fn zero_grad(&self) {
        if let Some(leaf) = self.node().leaf.get() {
            leaf.clear();
        }
    }

    /// Asks for the gradient of a value that is not a leaf to be kept in [`grad`](Tensor::grad) too.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = Tensor::scalar(2.0).requires_grad();
    /// let y = x.square();
    /// y.retain_grad();
    /// (&y * 3.0).backward();
    /// assert_eq!(y.grad().unwrap().item(), 3.0);
    /// ```
    #[track_caller]
    pub fn retain_grad(&self) {
        if !self.needs_grad() {
            or_panic(Err(not_connected("retain_grad")))
        }
        self.watched().retain();
    }

    /// Calls `f` with the gradient of this value in every backward pass; what it returns replaces the gradient.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = Tensor::scalar(2.0).requires_grad();
    /// let hook = x.on_grad(|g| Some(g.clamp(-1.0, 1.0)));
    /// (&x * 100.0).backward();
    /// assert_eq!(x.grad().unwrap().item(), 1.0);
    /// hook.remove();
    /// ```
    #[track_caller]
    pub fn on_grad(&self, f: impl Fn(&Tensor) -> Option<Tensor> + Send + Sync + 'static) -> Hook {
        if !self.needs_grad() {
            or_panic(Err(not_connected("on_grad")))
        }
        self.watched().add_hook(Arc::new(f))
    }

    /// The same value, cut off from everything it was computed from, for every transform.
    #[must_use]
    #[track_caller]
    pub fn detach(&self) -> Tensor {
        if self.node().deps.is_empty() && self.data().frame() == 0 {
            return self.clone();
        }
        or_panic(super::bind(StopGradient, &[self]))
    }

    /// Adds the gradient of this scalar to the [`grad`](Tensor::grad) of every leaf it was computed from.
    ///
    /// The graph stays as long as this tensor does, so that it can be called again, and gradients add up;
    /// [`into_backward`](Tensor::into_backward) frees it on the way.
    #[track_caller]
    pub fn backward(&self) {
        or_panic(self.try_backward());
    }

    #[track_caller]
    pub(crate) fn try_backward(&self) -> Result<()> {
        let g = self.unit_seed("backward")?;
        self.try_backward_with(&g)
    }

    /// [`backward`](Tensor::backward) that gives the graph up and frees it as it goes: the least memory.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = Tensor::scalar(3.0).requires_grad();
    /// x.square().into_backward();
    /// assert_eq!(x.grad().unwrap().item(), 6.0);
    /// ```
    #[track_caller]
    pub fn into_backward(self) {
        let g = or_panic(self.unit_seed("into_backward"));
        or_panic(self.check_seed(&g, "into_backward"));
        let link = self.link();
        drop(self);
        or_panic(pull(AMBIENT, Seeds::from_iter([(link, g)]), gather));
    }

    /// [`backward`](Tensor::backward) from a value of any shape, with the cotangent that arrives there.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = Tensor::from([1.0, 2.0]).requires_grad();
    /// x.square().backward_with(&Tensor::from([1.0, 10.0]));
    /// assert_eq!(x.grad().unwrap().to_vec::<f64>(), [2.0, 40.0]);
    /// ```
    #[track_caller]
    pub fn backward_with(&self, seed: &Tensor) {
        or_panic(self.try_backward_with(seed));
    }

    #[track_caller]
    pub(crate) fn try_backward_with(&self, seed: &Tensor) -> Result<()> {
        self.check_seed(seed, "backward")?;
        caught(|| pull(AMBIENT, Seeds::from_iter([(self.link(), seed.clone())]), gather))?
    }

    /// [`backward`](Tensor::backward) that adds to the [`grad`](Tensor::grad) of the given tensors only, and does not
    /// visit what they do not depend on.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let (x, y) = (Tensor::scalar(2.0).requires_grad(), Tensor::scalar(3.0).requires_grad());
    /// (&x * &y).backward_to(&[&x]);
    /// assert_eq!(x.grad().unwrap().item(), 3.0);
    /// assert!(y.grad().is_none());
    /// ```
    #[track_caller]
    pub fn backward_to(&self, inputs: &[&Tensor]) {
        let found = or_panic(try_grad_of(self, inputs));
        for (input, g) in inputs.iter().zip(found) {
            if let Some(g) = g {
                input.watched().accumulate(&g);
            }
        }
    }

    /// The cotangent that a scalar starts with.
    #[track_caller]
    fn unit_seed(&self, name: &'static str) -> Result<Tensor> {
        check_real(self.dtype()).map_err(|e| e.in_op(name).at(caller()))?;
        if self.numel() == 1 {
            return Ok(self.detach().ones_like());
        }
        let e = err!(
            Gradient,
            "needs a scalar, got shape {:?}; reduce it with sum() or mean(), or give a seed of that shape to backward_with",
            self.shape()
        );
        Err(e.in_op(name).at(caller()))
    }

    #[track_caller]
    fn check_seed(&self, seed: &Tensor, name: &'static str) -> Result<()> {
        if !self.needs_grad() {
            return Err(not_connected(name));
        }
        if seed.shape() != self.shape() || seed.dtype() != self.dtype() {
            let e = err!(
                Gradient,
                "the seed must be like the value, {} {:?}, but is {} {:?}",
                self.dtype(),
                self.shape(),
                seed.dtype(),
                seed.shape()
            );
            return Err(e.in_op(name).at(caller()));
        }
        Ok(())
    }
}

#[track_caller]
fn not_connected(name: &'static str) -> Error {
    err!(
        Gradient,
        "this tensor does not depend on anything that requires a gradient; it may have been detached, computed under no_grad, \
         inside jvp, or be of integers; call requires_grad() on the inputs before computing it"
    )
    .in_op(name)
    .at(caller())
}

/// Adds what arrives at leaves and watched values to their gradients.
fn gather(link: &Link, g: &Tensor) -> Result<Walk> {
    let node = link.node();
    if let Some(leaf) = node.leaf.get().filter(|leaf| node.leaf_of == AMBIENT || leaf.retains()) {
        leaf.accumulate(g);
    }
    Ok(Walk::On)
}

/// The gradients of a scalar with respect to the given tensors, which may be leaves or intermediate values; touches no
/// [`grad`](Tensor::grad). `None` where the loss does not depend on the tensor, which is not the same as zero.
///
/// ```
/// use pullback::prelude::*;
/// let (x, y) = (Tensor::scalar(2.0).requires_grad(), Tensor::scalar(3.0).requires_grad());
/// let g = grad_of(&(&x * &x), &[&x, &y]);
/// assert_eq!(g[0].as_ref().unwrap().item(), 4.0);
/// assert!(g[1].is_none() && x.grad().is_none());
/// ```
#[must_use]
#[track_caller]
pub fn grad_of(loss: &Tensor, inputs: &[&Tensor]) -> Vec<Option<Tensor>> {
    or_panic(try_grad_of(loss, inputs))
}

/// [`grad_of`], with errors instead of panics.
#[track_caller]
pub fn try_grad_of(loss: &Tensor, inputs: &[&Tensor]) -> Result<Vec<Option<Tensor>>> {
    if let Some(k) = inputs.iter().position(|x| !x.needs_grad()) {
        let e = err!(
            Gradient,
            "input {k} does not require a gradient; call requires_grad() on it before computing the loss"
        );
        return Err(e.in_op("grad_of").at(caller()));
    }
    let g = loss.unit_seed("grad_of")?;
    loss.check_seed(&g, "grad_of")?;
    let wanted: HashSet<u64> = inputs.iter().map(|x| x.node().id).collect();
    let on_path = leads_to(loss.node(), &wanted);
    let mut found: HashMap<u64, Tensor> = HashMap::new();
    let enter = |node: &Node| match &on_path {
        Some(on_path) => wanted.contains(&node.id) || on_path.contains(&node.id),
        None => true,
    };
    let visit = |link: &Link, g: &Tensor| {
        let node = link.node();
        if wanted.contains(&node.id) {
            found.insert(node.id, g.clone());
        }
        // Beyond a wanted node that is on no path, nothing is wanted.
        Ok(if on_path.as_ref().is_none_or(|p| p.contains(&node.id)) { Walk::On } else { Walk::Stop })
    };
    caught(|| pull_along(AMBIENT, Seeds::from_iter([(loss.link(), g)]), enter, visit))??;
    Ok(inputs.iter().map(|x| found.get(&x.node().id).cloned()).collect())
}

/// The nodes through which the root depends on a wanted one. Inputs are older than their users, so one pass over the
/// reachable nodes in rising order decides. `None` if a block on the way may have captured anything.
fn leads_to(root: &Node, wanted: &HashSet<u64>) -> Option<HashSet<u64>> {
    let oldest = wanted.iter().copied().min().unwrap_or(u64::MAX);
    let mut reached: HashMap<u64, &Node> = HashMap::new();
    let mut todo = vec![root];
    while let Some(node) = todo.pop() {
        if node.id >= oldest && node.deps.contains(AMBIENT) && reached.insert(node.id, node).is_none() {
            todo.extend(inputs_of(node));
        }
    }
    let opaque =
        |n: &&Node| matches!(&n.record, Some(r) if matches!(&r.op, Op::Block(b) if b.signature().is_none()));
    if reached.values().any(opaque) {
        return None;
    }
    let mut order: Vec<&Node> = reached.into_values().collect();
    order.sort_unstable_by_key(|n| n.id);
    let mut on_path = HashSet::new();
    for node in order {
        if inputs_of(node).any(|n| wanted.contains(&n.id) || on_path.contains(&n.id)) {
            on_path.insert(node.id);
        }
    }
    Some(on_path)
}

fn inputs_of(node: &Node) -> impl Iterator<Item = &Node> {
    node.record.iter().flat_map(|r| r.inputs.iter().map(|i| i.node()))
}

/// A gradient is that of a real number. A complex one has two parts, and no direction of steepest ascent.
pub(crate) fn check_real(result: DType) -> Result<()> {
    if !result.is_complex() {
        return Ok(());
    }
    Err(err!(
        Gradient,
        "the result is {result}, and a gradient needs a real number; take .real(), .imag() or .abs() of it, or give a complex cotangent \
         to vjp or backward_with"
    ))
}
