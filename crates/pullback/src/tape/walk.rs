//! The walk backward.

use super::context::{detects_anomaly, suspended, with_caller};
use super::record::{At, Record};
use crate::error::{Result, err};
use crate::small::Small;
use crate::tensor::{Link, Node, Tensor};
use smallvec::SmallVec;
use std::collections::{BTreeMap, btree_map::Entry};

/// Outputs, with their cotangents.
pub(crate) type Seeds = SmallVec<[(Link, Tensor); 1]>;

/// Cotangents that have arrived and wait for their node's turn, by the node's id.
///
/// Inputs are older than their users, so when the newest pending node is taken, all its contributions have
/// arrived: the map is the whole topological sort, needs no marks on the nodes and is as small as the front of the walk.
#[derive(Default)]
struct Pending {
    /// The newest, apart from the map: along a chain it is always this one that comes next.
    top: Option<(u64, Arrived)>,
    rest: BTreeMap<u64, Arrived>,
}

struct Arrived {
    link: Link,
    g: Tensor,
}

impl Arrived {
    /// The first contribution is stored, the second allocates a sum, later ones are added in place.
    fn add(&mut self, g: &Tensor) {
        self.g += g;
    }
}

impl Pending {
    fn add(&mut self, link: Link, g: Tensor) {
        let id = link.node().id;
        let newest = match &mut self.top {
            Some((top, arrived)) if *top == id => return arrived.add(&g),
            Some((top, _)) => *top < id,
            None => self.rest.last_key_value().is_none_or(|(&last, _)| last < id),
        };
        if newest {
            let older = self.top.replace((id, Arrived { link, g }));
            self.rest.extend(older);
            return;
        }
        match self.rest.entry(id) {
            Entry::Vacant(e) => {
                e.insert(Arrived { link, g });
            }
            Entry::Occupied(mut e) => e.get_mut().add(&g),
        }
    }

    fn pop(&mut self) -> Option<Arrived> {
        self.top.take().or_else(|| self.rest.pop_last()).map(|(_, arrived)| arrived)
    }
}

/// Pulls the seeds back to the inputs of transform `level`, and hands the total cotangent of every node on the way to
/// `visit`, which says whether to go on beyond it.
///
/// Owning its links, the walk frees each record as soon as it is done, unless somebody else holds it. Rules run with `level`
/// suspended: they record themselves for outer transforms only.
pub(crate) fn pull(
    level: u64,
    seeds: Seeds,
    mut visit: impl FnMut(&Node, &Tensor) -> Result<Walk>,
) -> Result<()> {
    let mut pending = Pending::default();
    suspended(level, || {
        for (link, g) in seeds {
            pending.add(link, g);
        }
        while let Some(Arrived { link, mut g }) = pending.pop() {
            let node = link.node();
            if let Some(leaf) = node.leaf.get() {
                g = leaf.run_hooks(g)?;
            }
            if matches!(visit(node, &g)?, Walk::Stop) || node.leaf_of == level {
                continue;
            }
            let Some(record) = &node.record else { continue };
            with_caller(record.location, || step(level, &link, record, g, &mut pending))?;
        }
        Ok(())
    })
}

/// What to do after a node was visited.
pub(crate) enum Walk {
    On,
    Stop,
}

/// Turns the cotangent of one output into contributions to its inputs.
fn step(level: u64, link: &Link, record: &Record, g: Tensor, pending: &mut Pending) -> Result<()> {
    let name = record.op.name();
    let needs: Small<bool> = record.inputs.iter().map(|i| i.node().deps.contains(level)).collect();
    let output = link.kept();
    let at = At { name, inputs: &record.inputs, output: output.as_ref(), needs: &needs };
    let contributions = record.op.pullback(&at, &g).map_err(|e| e.in_op(name).at(record.location))?;
    debug_assert_eq!(contributions.len(), needs.len(), "{name}: one cotangent for each input");
    for (k, (input, g)) in record.inputs.iter().zip(contributions).enumerate() {
        let Some(g) = g.filter(|_| needs[k]) else { continue };
        debug_assert_eq!(g.shape(), &input.node().shape[..], "{name}: shape of cotangent {k}");
        debug_assert_eq!(g.dtype(), input.node().dtype, "{name}: type of cotangent {k}");
        if detects_anomaly() && !g.is_finite_everywhere() {
            return Err(err!(
                NotFinite,
                "the cotangent of input {k} is not finite: {} ({:?}); the forward operation stands at this line",
                g.first_not_finite(),
                g.shape(),
            )
            .in_op(name)
            .at(record.location));
        }
        pending.add(input.link(), g);
    }
    Ok(())
}
