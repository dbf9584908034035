//! Loop-invariant code: what every step of a loop computes alike is computed once, before it.

use super::Options;
use super::rewrite::{Refs, Rewrite, rewrite_blocks};
use crate::graph::{Body, Builder, Graph, Ref, Scan, Step};
use std::sync::Arc;

/// Moves operations that depend on shared inputs and constants alone out of loops; their results become further shared inputs. A loop of no
/// steps stays as it is, because it computes nothing.
pub(super) fn hoist(graph: &Graph, _: &Options) -> Graph {
    rewrite_blocks(graph, |w, step| match step.op.body()? {
        Body::Scan(scan) if !scan.steps.is_empty() => {
            let fixed = invariant(&scan.body, scan.state + scan.items);
            if !fixed.contains(&true) {
                return None;
            }
            let (body, more) = split(w, &scan.body, &fixed, &step.args);
            let scan = Body::Scan(Scan { body: Arc::new(body), ..scan });
            let args: Vec<Ref> = step.args.iter().copied().chain(more).collect();
            Some(w.push_body(scan, &args))
        }
        _ => None,
    })
}

/// The steps worth moving: those that do not depend on the first inputs, and are more than another view of a shared input, or are read by one
/// that is.
fn invariant(body: &Graph, varying: usize) -> Vec<bool> {
    let mut fixed: Vec<bool> = Vec::with_capacity(body.len());
    for step in &body.steps {
        fixed.push(step.args.iter().all(|a| match *a {
            Ref::Input(k) => k >= varying,
            Ref::Const(_) => true,
            Ref::Step(k, _) => fixed[k],
        }));
    }
    let mut worth = vec![false; body.len()];
    for (k, step) in body.steps.iter().enumerate().rev() {
        worth[k] |= fixed[k] && !step.op.is_view();
        if worth[k] {
            step.args.iter().for_each(|a| {
                if let Ref::Step(j, _) = *a {
                    worth[j] = true;
                }
            });
        }
    }
    worth
}

/// Places the fixed steps of a body in the graph around it. The rest of the body, with the inputs that it needs more, and their values.
fn split(w: &mut Rewrite, body: &Graph, fixed: &[bool], inputs: &[Ref]) -> (Graph, Vec<Ref>) {
    let escapes = |a: &&Ref| matches!(a, Ref::Step(j, _) if fixed[*j]);
    let rest_of_body = body.steps.iter().enumerate().filter(|(k, _)| !fixed[*k]).flat_map(|(_, s)| &s.args);
    let mut types = body.inputs.clone();
    // The values of fixed steps that the rest reads, and the inputs that they become.
    let mut more: Vec<(Ref, Ref)> = Vec::new();
    for &a in rest_of_body.chain(&body.outputs).filter(escapes) {
        if !more.iter().any(|m| m.0 == a) {
            types.push(body.aval(a));
            more.push((a, Ref::Input(types.len() - 1)));
        }
    }
    let mut rest = Builder::new(types);
    body.consts.iter().for_each(|c| {
        rest.constant(c.clone());
    });
    let mut outside: Vec<Refs> = Vec::new();
    let mut inside: Vec<Refs> = Vec::new();
    let kept = |a: Ref, inside: &[Refs]| match a {
        Ref::Step(j, _) if fixed[j] => {
            more.iter().find(|m| m.0 == a).expect("what is read has become an input").1
        }
        Ref::Step(j, slot) => inside[j][slot],
        other => other,
    };
    for (k, step) in body.steps.iter().enumerate() {
        let n = step.avals.len();
        if fixed[k] {
            let args = step
                .args
                .iter()
                .map(|&a| match a {
                    Ref::Input(i) => inputs[i],
                    Ref::Const(c) => w.out.constant(body.consts[c].clone()),
                    Ref::Step(j, slot) => outside[j][slot],
                })
                .collect();
            outside.push(w.place(Step { args, ..step.clone() }));
            inside.push(Refs::new());
        } else {
            outside.push(Refs::new());
            let args = step.args.iter().map(|&a| kept(a, &inside)).collect();
            let at = rest.place(Step { args, ..step.clone() });
            inside.push((0..n).map(|slot| at.slot(slot)).collect());
        }
    }
    let outputs = body.outputs.iter().map(|&a| kept(a, &inside)).collect();
    let values = more.iter().map(|(a, _)| match *a {
        Ref::Step(j, slot) => outside[j][slot],
        other => other,
    });
    (rest.finish(outputs, Vec::new()), values.collect())
}
