//! Inlining: a called graph in the place of the call, and the branch that a known condition chooses.

use super::Options;
use super::rewrite::{Refs, Rewrite, rewrite_blocks};
use crate::graph::{Body, Call, Cond, Graph, Ref, Step};

/// Puts the bodies of calls where they are called. A `checkpoint` stays: it is there so that its values are computed again. So does
/// `no_grad` where derivatives are to see it.
pub(super) fn inline(graph: &Graph, options: &Options) -> Graph {
    rewrite_blocks(graph, |w, step| match step.op.body()? {
        Body::Call(Call { name: "no_grad", .. }) if options.differentiable => None,
        Body::Call(Call { name: "checkpoint", .. }) | Body::Scan(_) | Body::Fused(_) => None,
        Body::Call(Call { body, .. }) => Some(spliced(w, &body, &step.args)),
        Body::Cond(Cond { then, otherwise, inputs }) => {
            let (condition, x) = step.args.split_first()?;
            let chosen = w.splat(*condition)? != 0.0;
            let (first, second) = x.split_at(then.inputs.len());
            Some(match chosen {
                true => spliced(w, &then, first),
                false => spliced(w, &otherwise, &[&first[..inputs], second].concat()),
            })
        }
    })
}

/// Adds the operations of a graph, with these values for its inputs; its outputs.
pub(super) fn spliced(w: &mut Rewrite, body: &Graph, inputs: &[Ref]) -> Refs {
    let consts: Vec<Ref> = body.consts.iter().map(|c| w.out.constant(c.clone())).collect();
    let mut steps: Vec<Refs> = Vec::with_capacity(body.len());
    let moved = |a: Ref, steps: &[Refs]| match a {
        Ref::Input(k) => inputs[k],
        Ref::Const(k) => consts[k],
        Ref::Step(k, slot) => steps[k][slot],
    };
    for step in &body.steps {
        let args = step.args.iter().map(|&a| moved(a, &steps)).collect();
        let refs = w.place(Step { args, ..step.clone() });
        steps.push(refs);
    }
    body.outputs.iter().map(|&a| moved(a, &steps)).collect()
}
