//! Unrolling: the step of a loop that has one, in the place of the loop.

use super::Options;
use super::inline::spliced;
use super::rewrite::{Refs, Rewrite, rewrite_blocks};
use crate::graph::{Body, Graph, Ref};
use crate::ops::{Reshape, Slice, SliceSpec};

/// Replaces loops of one step. Its items are slices of the stacked inputs, and its outputs stacks of one.
pub(super) fn unroll(graph: &Graph, _: &Options) -> Graph {
    rewrite_blocks(graph, |w, step| match step.op.body()? {
        Body::Scan(scan) if scan.steps.len() == 1 => {
            let mut inputs = step.args.to_vec();
            for a in &mut inputs[scan.state..scan.state + scan.items] {
                *a = item(w, *a, scan.steps.start);
            }
            let mut outputs = spliced(w, &scan.body, &inputs);
            let stacked: Refs = outputs.drain(scan.state..).collect();
            if scan.stacks {
                outputs.extend(stacked.into_iter().map(|y| {
                    let to = w.shape(y).inserted(0, 1);
                    w.push(Reshape { to }, &[y])
                }));
            }
            Some(outputs)
        }
        _ => None,
    })
}

/// The slice `k` along the first axis.
fn item(w: &mut Rewrite, stacked: Ref, k: usize) -> Ref {
    let shape = w.shape(stacked);
    let rest = shape[1..].iter().map(|&n| (0, 1, n));
    let axes = std::iter::once((k, 1, 1)).chain(rest).collect();
    let slice = w.push(Slice { region: SliceSpec { axes } }, &[stacked]);
    w.push(Reshape { to: shape.without(&[0]) }, &[slice])
}
