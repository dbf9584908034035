//! Operations of several outputs: a whole function, a loop, a function with a rule of its own.
//!
//! A block is recorded as one node with its inputs, which stands for all outputs together; each output points to it. What it
//! means to forward mode and to batching is what its body means to them, unless it brings rules of its own.

use super::{Data, Dual, Fresh, Link, Mapped, Tensor, Tracer, bind};
use crate::DType;
use crate::error::{Result, err};
use crate::location::{caller, with_caller};
#[cfg(test)]
use crate::ops::fault;
use crate::ops::{Aval, Batched, Identity, Op};
use crate::shape::Shape;
use crate::tape::{
    Deps, Input, Record, Seeds, Walk, enters, forgets, forgetting, next_id, no_grad, pull, resumed,
    suspended_all,
};
use smallvec::{SmallVec, smallvec};
use std::any::Any;
use std::fmt;
use std::panic::Location;
use std::sync::Arc;

/// The outputs of a run, and the block to record for it if that keeps more of the run than the inputs.
pub(crate) type Ran = (Vec<Tensor>, Option<Arc<dyn Block>>);

/// A function that is recorded as one operation.
pub(crate) trait Block: Send + Sync {
    fn name(&self) -> &'static str;

    /// What it does, in operations.
    fn expand(&self, x: &[Tensor]) -> Result<Vec<Tensor>>;

    /// [`expand`](Block::expand) where the run may be recorded.
    fn run_to_record(&self, x: &[Tensor]) -> Result<Ran> {
        Ok((self.expand(x)?, None))
    }

    /// What it keeps besides the inputs.
    fn residuals(&self) -> Vec<Tensor> {
        Vec::new()
    }

    /// The same block with other values for those that it keeps, if it keeps any.
    fn with_residuals(&self, _values: Vec<Tensor>) -> Option<Arc<dyn Block>> {
        None
    }

    /// Is told when a run is recorded, with the inputs that the record keeps. It may put values elsewhere, leave links to the inputs in
    /// their place, and be recorded as a block that knows where they are.
    fn store(&self, _inputs: &mut [Input]) -> Result<Option<Arc<dyn Block>>> {
        Ok(None)
    }

    /// The types of the outputs, if it can stand in a graph as a node; otherwise its body is traced in its place.
    fn signature(&self) -> Option<Vec<Aval>> {
        None
    }

    /// What it is made of, for those who can look into it (graphs make blocks of graphs); nothing is known of it here.
    fn body(&self) -> Option<Box<dyn Any>> {
        None
    }

    /// Whether the pullback reaches tensors that the body has captured. If not, capturing one that needs a gradient is an error.
    fn reaches_captures(&self) -> bool {
        true
    }

    /// [`expand`](Block::expand) for the pullback, where what was kept of the first run need not be computed again.
    fn rerun(&self, x: &[Tensor]) -> Result<Vec<Tensor>> {
        self.expand(x)
    }

    /// Contributions to the inputs, and to older values that the body has captured, from the cotangents of the outputs.
    /// It runs the body again, and pulls the cotangents back through that run.
    fn pullback(&self, at: &BlockAt, gs: &[Option<Tensor>]) -> Result<Vec<(Link, Tensor)>> {
        replay(at, gs, |x| self.rerun(x))
    }

    /// Whether nothing inside is recorded for `backward`, as in [`no_grad`].
    fn is_quiet(&self) -> bool {
        false
    }

    /// Rules of its own for every transform, instead of what the body means to it. Its record keeps the outputs, after the inputs.
    fn rules(&self) -> Option<&dyn BlockRules> {
        None
    }
}

/// What a block means to transforms that do not look into its body.
pub(crate) trait BlockRules {
    /// The tangents of the outputs. The block is applied to the primals already.
    fn pushforward(&self, x: &[Tensor], y: &[Tensor], t: &[Option<Tensor>]) -> Result<Vec<Tensor>>;

    /// The block on `n` lanes at once, which lie along the first axis of all inputs and outputs.
    fn batched(&self, n: usize) -> Arc<dyn Block>;
}

/// What the rule of a block sees.
pub(crate) struct BlockAt<'a> {
    pub level: u64,
    /// The block's own id: values with smaller ones existed before it.
    pub id: u64,
    pub inputs: &'a [Input],
}

impl BlockAt<'_> {
    pub fn x(&self) -> Vec<Tensor> {
        let value = |i: &Input| match i {
            Input::Saved(t) => t.clone(),
            Input::Linked(_) => unreachable!("a block saves its inputs"),
        };
        self.inputs.iter().map(value).collect()
    }
}

/// Runs `f` on the inputs again, recorded, and pulls the cotangents back through it.
pub(crate) fn replay(
    at: &BlockAt,
    gs: &[Option<Tensor>],
    f: impl FnOnce(&[Tensor]) -> Result<Vec<Tensor>>,
) -> Result<Vec<(Link, Tensor)>> {
    let leaves: Vec<Tensor> = at
        .x()
        .iter()
        .map(|x| if x.dtype().is_differentiable() { x.leaf(at.level) } else { x.clone() })
        .collect();
    let outputs = resumed(at.level, || f(&leaves))?;
    let mut seeds = Seeds::new();
    for (y, g) in outputs.iter().zip(gs) {
        if let Some(g) = g
            && y.node().deps.contains(at.level)
        {
            seeds.push((y.link(), g.clone()));
        }
    }
    drop(outputs);
    let mut out = Vec::new();
    pull(at.level, seeds, |link, g| {
        let node = link.node();
        if let Some(k) = leaves.iter().position(|l| l.node().id == node.id) {
            out.push((at.inputs[k].link(), g.clone()));
            return Ok(Walk::Stop);
        }
        // Values older than the block are left to the outer walk.
        if node.id < at.id {
            out.push((link.clone(), g.clone()));
            return Ok(Walk::Stop);
        }
        Ok(Walk::On)
    })?;
    Ok(out)
}

impl fmt::Debug for dyn Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl PartialEq for dyn Block {
    fn eq(&self, other: &dyn Block) -> bool {
        std::ptr::addr_eq(self, other)
    }
}

/// Applies a block.
#[track_caller]
pub(crate) fn bind_block(block: Arc<dyn Block>, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
    bind_block_at(caller(), block, inputs)
}

/// [`bind_block`] where the line of the user's code is known from before.
pub(crate) fn bind_block_at(
    location: &'static Location<'static>,
    block: Arc<dyn Block>,
    inputs: &[&Tensor],
) -> Result<Vec<Tensor>> {
    let name = block.name();
    let fail = |e: crate::Error| e.in_op(name).at(location);
    if block.is_quiet() {
        let inputs: Vec<Tensor> = inputs.iter().map(|t| (*t).clone()).collect();
        return no_grad(|| block.expand(&inputs)).map_err(fail);
    }
    let frame = newest_frame(inputs.iter().copied());
    enters(frame);
    let innermost = inputs.iter().map(|t| t.data()).find(|d| frame != 0 && d.frame() == frame);
    let (outputs, mut block, frame) = match (innermost, block.rules()) {
        (Some(Data::Traced(t)), _) if let Some(avals) = block.signature() => {
            let op = Op::Block(block.clone());
            let made = with_caller(location, || t.apply(&op, inputs, avals.clone().into())).map_err(fail)?;
            let output =
                |(t, aval): (Arc<dyn Tracer>, Aval)| Tensor::new(aval.dtype, aval.shape, Data::Traced(t));
            (made.into_iter().zip(avals).map(output).collect(), block, frame)
        }
        (Some(Data::Dual(_)), Some(rules)) => {
            (push(&block, rules, inputs, frame).map_err(fail)?, block, frame)
        }
        (Some(Data::Mapped(m)), Some(rules)) => {
            (map(rules, inputs, frame, m.value.shape()[0]).map_err(fail)?, block, frame)
        }
        _ => run(block, inputs, frame).map_err(fail)?,
    };
    let mut deps = Deps::default();
    inputs.iter().for_each(|t| deps.join(&t.node().deps, frame));
    // What the body captured shows in its outputs.
    outputs.iter().for_each(|t| deps.join(&t.node().deps, frame));
    if deps.is_empty() {
        return Ok(outputs);
    }
    // An output of an older frame than the block's has a history of its own, for the transforms between the two.
    let between = |t: &Tensor| {
        let mut all = Deps::default();
        all.join(&t.node().deps, t.data().frame());
        all.ids().iter().copied().filter(|&id| id <= frame).collect::<SmallVec<[u64; 2]>>()
    };
    let output = |t: &Tensor, between: &[u64], record: Option<Record>| {
        let mut node = t.copy();
        node.record = record;
        node.deps = deps.clone();
        between.iter().for_each(|&id| node.deps.insert(id));
        node.id = next_id();
        node.into_tensor()
    };
    if forgets(&deps) {
        let known = |t: Tensor| {
            let ids = between(&t);
            let body =
                || Record { op: Identity.into(), inputs: smallvec![Input::Linked(t.link())], location };
            output(&t, &ids, (!ids.is_empty()).then(body))
        };
        return Ok(outputs
            .into_iter()
            .map(|t| if t.dtype().is_differentiable() { known(t) } else { t })
            .collect());
    }
    let mut saved: SmallVec<[Input; 2]> = inputs.iter().map(|t| Input::Saved((*t).clone())).collect();
    if block.rules().is_some() {
        for t in &outputs {
            saved.push(Input::Saved(older(t, frame).map_err(fail)?));
        }
    }
    block = block.store(&mut saved).map_err(fail)?.unwrap_or(block);
    let mut whole = Fresh::new(DType::Bool, Shape::default());
    whole.record = Some(Record { op: Op::Block(block), inputs: saved, location });
    whole.deps = deps.clone();
    whole.id = next_id();
    let whole = whole.into_tensor();
    let slot = |(slot, t): (usize, Tensor)| {
        if !t.dtype().is_differentiable() {
            return t.bare();
        }
        let ids = between(&t);
        let mut from = smallvec![Input::Linked(whole.link())];
        from.extend((!ids.is_empty()).then(|| Input::Linked(t.link())));
        output(&t, &ids, Some(Record { op: Op::Slot(slot), inputs: from, location }))
    };
    Ok(outputs.into_iter().enumerate().map(slot).collect())
}

fn newest_frame<'a>(values: impl Iterator<Item = &'a Tensor>) -> u64 {
    values.map(|t| t.data().frame()).max().unwrap_or(0)
}

/// Runs the body: its outputs, the block to record for them, and the frame that they were computed in.
///
/// Transforms newer than the frame record the block as a whole, so that nothing of the run is saved for them. Older ones see its operations.
fn run(
    block: Arc<dyn Block>,
    inputs: &[&Tensor],
    mut frame: u64,
) -> Result<(Vec<Tensor>, Arc<dyn Block>, u64)> {
    loop {
        let seen = |t: &&Tensor| {
            #[cfg(test)]
            if fault::strips(block.name()) {
                return Ok(t.bare());
            }
            older(t, frame)
        };
        let x = inputs.iter().map(seen).collect::<Result<Vec<Tensor>>>()?;
        let (ran, entered) = forgetting(frame, || block.run_to_record(&x));
        let (outputs, ran) = ran?;
        // Its rule is what transforms follow, whatever else the body reads.
        let ruled = block.rules().is_some() || !block.reaches_captures();
        if ruled {
            no_captures(&outputs, frame)?;
        }
        let newest = newest_frame(outputs.iter()).max(entered);
        if ruled || newest <= frame {
            return Ok((outputs, ran.unwrap_or(block), frame));
        }
        // The body has captured a value of a newer frame than those of the inputs. It runs again, and transforms older than that
        // see its operations: when they pull back, that frame may have ended.
        frame = newest;
    }
}

/// The same value without transforms newer than the frame, which record the block as a whole.
fn older(t: &Tensor, frame: u64) -> Result<Tensor> {
    if frame == 0 {
        return Ok(t.bare());
    }
    let mut newer = Deps::default();
    newer.join(&t.node().deps, frame);
    if newer.is_empty() { Ok(t.clone()) } else { suspended_all(newer.ids(), || bind(Identity, &[t])) }
}

/// Forward mode by the block's own rule: the block on the primals, and the rule on the tangents.
fn push(
    block: &Arc<dyn Block>,
    rules: &dyn BlockRules,
    inputs: &[&Tensor],
    level: u64,
) -> Result<Vec<Tensor>> {
    let dual = |t: &&Tensor| match t.data() {
        Data::Dual(d) if d.level == level => Ok((d.primal.clone(), Some(d.tangent.clone()))),
        _ => Ok((older(t, level)?, None)),
    };
    let pairs = inputs.iter().map(dual).collect::<Result<Vec<_>>>()?;
    let (x, t): (Vec<Tensor>, Vec<Option<Tensor>>) = pairs.into_iter().unzip();
    let y = bind_block(block.clone(), &x.iter().collect::<Vec<_>>())?;
    no_captures(&y, level - 1)?;
    let dy = rules.pushforward(&x, &y, &t)?;
    let pair = |(primal, tangent): (Tensor, Tensor)| {
        let (dtype, shape) = (primal.dtype(), primal.node().shape.clone());
        Tensor::new(dtype, shape, Data::Dual(Box::new(Dual { level, primal, tangent })))
    };
    Ok(y.into_iter().zip(dy).map(pair).collect())
}

/// Batching by the block's own rule.
fn map(rules: &dyn BlockRules, inputs: &[&Tensor], level: u64, n: usize) -> Result<Vec<Tensor>> {
    let all = |t: &&Tensor| match t.data() {
        Data::Mapped(m) if m.level == level => Ok(m.value.clone()),
        _ => Batched { value: older(t, level)?, mapped: false }.spread(n),
    };
    let x = inputs.iter().map(all).collect::<Result<Vec<Tensor>>>()?;
    let y = bind_block(rules.batched(n), &x.iter().collect::<Vec<_>>())?;
    no_captures(&y, level - 1)?;
    let lanes = |value: Tensor| {
        let shape = value.node().shape.without(&[0]);
        Tensor::new(value.dtype(), shape, Data::Mapped(Box::new(Mapped { level, value })))
    };
    Ok(y.into_iter().map(lanes).collect())
}

/// A rule knows of the inputs only: what reaches the outputs by another way would lose its derivative.
pub(crate) fn no_captures(outputs: &[Tensor], frame: u64) -> Result<()> {
    let hidden = |t: &Tensor| {
        let mut deps = Deps::default();
        deps.join(&t.node().deps, frame);
        t.data().frame() > frame || !deps.is_empty()
    };
    match outputs.iter().any(hidden) {
        true => Err(err!(
            Gradient,
            "the function captures a tensor that is differentiated or mapped, of which its rule knows nothing; make it an \
             input, or detach it"
        )),
        false => Ok(()),
    }
}
