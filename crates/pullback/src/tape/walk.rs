//! The walk backward.

use super::context::{detects_anomaly, standing_in, suspended};
use super::level::Level;
use super::record::{At, Record};
use crate::error::{Result, err};
use crate::location::with_caller;
use crate::ops::Op;
use crate::tensor::{BlockAt, Link, Node, Tensor};
use smallvec::SmallVec;
use std::collections::{BTreeMap, HashMap, btree_map::Entry};

/// Outputs, with their cotangents.
pub(crate) type Seeds = SmallVec<[(Link, Tensor); 1]>;

/// Cotangents that have arrived and wait for their node's turn, by the node's id.
///
/// Inputs are older than their users, so when the newest pending node is taken, all its contributions have
/// arrived: the map is the whole topological sort, needs no marks on the nodes and is as small as the front of the walk.
#[derive(Default)]
struct Pending {
    /// The newest, apart from the map: along a chain it is always this one that comes next.
    top: Option<Arrived>,
    rest: BTreeMap<u64, Arrived>,
}

struct Arrived {
    link: Link,
    g: Total,
}

/// What has arrived at a node: one cotangent, or one for each output of a block.
enum Total {
    One(Tensor),
    Slots(Vec<Option<Tensor>>),
}

/// Which output of a block a contribution is to; none if it is to a node that is no block.
type Slot = Option<usize>;

impl Arrived {
    #[inline(always)]
    fn new(link: Link, slot: Slot, g: Tensor) -> Arrived {
        let g = match slot {
            None => Total::One(g),
            Some(k) => {
                let mut slots = vec![None; k];
                slots.push(Some(g));
                Total::Slots(slots)
            }
        };
        Arrived { link, g }
    }

    /// The first contribution is stored, the second allocates a sum, later ones are added in place.
    fn add(&mut self, slot: Slot, g: Tensor) {
        match (&mut self.g, slot) {
            (Total::One(sum), None) => *sum += &g,
            (Total::Slots(sums), Some(k)) => {
                if sums.len() <= k {
                    sums.resize_with(k + 1, || None);
                }
                match &mut sums[k] {
                    Some(sum) => *sum += &g,
                    empty => *empty = Some(g),
                }
            }
            _ => unreachable!("a node is a block or it is not"),
        }
    }
}

impl Pending {
    fn add(&mut self, link: Link, slot: Slot, g: Tensor) {
        let id = link.node().id;
        let newest = match &mut self.top {
            Some(top) if top.link.node().id == id => return top.add(slot, g),
            Some(top) => top.link.node().id < id,
            None => self.rest.last_key_value().is_none_or(|(&last, _)| last < id),
        };
        if newest {
            if let Some(older) = self.top.take() {
                self.rest.insert(older.link.node().id, older);
            }
            self.top = Some(Arrived::new(link, slot, g));
            return;
        }
        match self.rest.entry(id) {
            Entry::Vacant(e) => {
                e.insert(Arrived::new(link, slot, g));
            }
            Entry::Occupied(mut e) => e.get_mut().add(slot, g),
        }
    }

    #[inline(always)]
    fn pop(&mut self) -> Option<Arrived> {
        self.top.take().or_else(|| self.rest.pop_last().map(|(_, arrived)| arrived))
    }
}

/// The cotangents of the leaves of transform `level`, by their ids.
pub(crate) fn leaf_cotangents(level: u64, seeds: Seeds) -> Result<HashMap<u64, Tensor>> {
    let mut found = HashMap::new();
    pull(level, seeds, |link, g| {
        if link.node().leaf_of == level {
            found.insert(link.node().id, g.clone());
        }
        Ok(Walk::On)
    })?;
    Ok(found)
}

/// The cotangents of `x` from those of `f(x)`; zeros where there is no connection. `ambient` says that they are those of `backward`,
/// which `no_grad` is for.
pub(crate) fn pull_through(
    ambient: bool,
    f: impl FnOnce(&[Tensor]) -> Result<Vec<Tensor>>,
    x: &[Tensor],
    g: &[Tensor],
) -> Result<Vec<Tensor>> {
    let level = Level::new();
    let run = || {
        let leaves: Vec<Tensor> = x.iter().map(|x| x.leaf(level.id())).collect();
        let y = f(&leaves)?;
        let reached = y.iter().zip(g).filter(|(y, _)| y.node().deps.contains(level.id()));
        let seeds = reached.map(|(y, g)| (y.link(), g.clone())).collect();
        drop(y); // The walk is the last to hold the graph, and frees it as it goes.
        let mut found = leaf_cotangents(level.id(), seeds)?;
        let cotangent =
            |t: &Tensor| found.remove(&t.node().id).unwrap_or_else(|| t.without(level.id()).zeros_like());
        Ok(leaves.iter().map(cotangent).collect())
    };
    if ambient { standing_in(level.id(), run) } else { run() }
}

/// Pulls the seeds back to the inputs of transform `level`, and hands the total cotangent of every node on the way to
/// `visit`, which says whether to go on beyond it.
///
/// Owning its links, the walk frees each record as soon as it is done, unless somebody else holds it. Rules run with `level`
/// suspended: they record themselves for outer transforms only.
pub(crate) fn pull(
    level: u64,
    seeds: Seeds,
    visit: impl FnMut(&Link, &Tensor) -> Result<Walk>,
) -> Result<()> {
    pull_along(level, seeds, |_| true, visit)
}

/// [`pull`] that enters only some nodes: the cotangents of the others are not even computed.
pub(crate) fn pull_along(
    level: u64,
    seeds: Seeds,
    enter: impl Fn(&Node) -> bool,
    mut visit: impl FnMut(&Link, &Tensor) -> Result<Walk>,
) -> Result<()> {
    let enter = |node: &Node| node.deps.contains(level) && enter(node);
    let mut pending = Pending::default();
    suspended(level, || {
        for (link, g) in seeds {
            pending.add(link, None, g);
        }
        while let Some(Arrived { link, g }) = pending.pop() {
            let node = link.node();
            let mut g = match g {
                Total::One(g) => g,
                Total::Slots(gs) => {
                    let record = node.record.as_ref().expect("a block is recorded");
                    with_caller(record.location, || {
                        step_block(level, &link, record, &gs, &enter, &mut pending)
                    })?;
                    continue;
                }
            };
            if let Some(leaf) = node.leaf.get() {
                g = leaf.run_hooks(g)?;
            }
            if matches!(visit(&link, &g)?, Walk::Stop) || node.leaf_of == level {
                continue;
            }
            let Some(record) = &node.record else {
                return Err(err!(
                    Gradient,
                    "a value on the way was computed where nothing is recorded, and its history is lost"
                ));
            };
            if let Op::Slot(k) = record.op {
                // Transforms older than the block's frame have looked into it: for them there is the record of the body.
                match &record.inputs[..] {
                    [block, body] if !block.node().deps.contains(level) => pending.add(body.link(), None, g),
                    [block, ..] => pending.add(block.link(), Some(k), g),
                    [] => unreachable!("an output is one of a block"),
                }
                continue;
            }
            with_caller(record.location, || step(&link, record, g, &enter, &mut pending))?;
        }
        Ok(())
    })
}

/// Turns the cotangents of a block's outputs into contributions.
fn step_block(
    level: u64,
    link: &Link,
    record: &Record,
    gs: &[Option<Tensor>],
    enter: &impl Fn(&Node) -> bool,
    pending: &mut Pending,
) -> Result<()> {
    let Op::Block(block) = &record.op else { unreachable!("only blocks have slots") };
    let at = BlockAt { level, id: link.node().id, inputs: &record.inputs };
    let named = |e: crate::Error| e.in_op(block.name()).at(record.location);
    for (link, g) in block.pullback(&at, gs).map_err(named)? {
        if !enter(link.node()) {
            continue;
        }
        if detects_anomaly() && !g.is_finite_everywhere() {
            let input = record.inputs.iter().position(|i| i.node().id == link.node().id);
            let of = input.map_or("a captured value".into(), |k| format!("input {k}"));
            return Err(named(anomaly(&of, &g)));
        }
        pending.add(link, None, g);
    }
    Ok(())
}

/// A cotangent that is not finite.
fn anomaly(of: &str, g: &Tensor) -> crate::Error {
    err!(
        NotFinite,
        "the cotangent of {of} is not finite: {} ({:?}); the forward operation stands at this line",
        g.first_not_finite(),
        g.shape(),
    )
}

/// What to do after a node was visited.
pub(crate) enum Walk {
    On,
    Stop,
}

/// Turns the cotangent of one output into contributions to its inputs.
fn step(
    link: &Link,
    record: &Record,
    g: Tensor,
    enter: &impl Fn(&Node) -> bool,
    pending: &mut Pending,
) -> Result<()> {
    let name = record.op.name();
    let inputs = &record.inputs[..];
    let (mut few, many);
    let needs: &[bool] = match inputs {
        // In an array for the usual numbers of them: collecting costs as much as a small operation.
        [] | [_] | [_, _] => {
            few = [false; 2];
            inputs.iter().zip(&mut few).for_each(|(i, needs)| *needs = enter(i.node()));
            &few[..inputs.len()]
        }
        _ => {
            many = inputs.iter().map(|i| enter(i.node())).collect::<Vec<bool>>();
            &many
        }
    };
    let output = link.kept();
    let at = At { name, inputs, output: output.as_ref(), needs };
    let mut contributions = record.op.pullback(&at, &g);
    debug_assert_eq!(contributions.len(), needs.len(), "{name}: one cotangent for each input");
    for (k, (input, g)) in inputs.iter().zip(&mut contributions).enumerate() {
        let Some(g) = g.take().filter(|_| needs[k]) else { continue };
        debug_assert_eq!(g.shape(), &input.node().shape[..], "{name}: shape of cotangent {k}");
        debug_assert_eq!(g.dtype(), input.node().dtype, "{name}: type of cotangent {k}");
        if detects_anomaly() && !g.is_finite_everywhere() {
            return Err(anomaly(&format!("input {k}"), &g).in_op(name).at(record.location));
        }
        pending.add(input.link(), None, g);
    }
    Ok(())
}
