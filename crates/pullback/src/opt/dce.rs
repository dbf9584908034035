//! Dead code: operations and constants that nothing reads. Inputs stay, so that callers need not change.

use super::Options;
use crate::graph::{Graph, Ref};

/// Without the operations that no output needs, and the constants that no operation or output reads.
pub(super) fn dce(graph: &Graph, _: &Options) -> Graph {
    let mut graph = graph.clone().pruned();
    let mut place = vec![None; graph.consts.len()];
    let mut kept = Vec::new();
    let consts = std::mem::take(&mut graph.consts);
    let mut moved = |a: &mut Ref| {
        if let Ref::Const(k) = *a {
            let at = *place[k].get_or_insert_with(|| {
                kept.push(consts[k].clone());
                kept.len() - 1
            });
            *a = Ref::Const(at);
        }
    };
    // In the order in which they are read, so that the text does not depend on how the graph came about.
    graph.steps.iter_mut().flat_map(|s| s.args.iter_mut()).for_each(&mut moved);
    graph.outputs.iter_mut().for_each(&mut moved);
    // A name does not keep a constant.
    graph.names.retain(|(_, a)| !matches!(a, Ref::Const(_)));
    graph.consts = kept;
    graph
}
