//! The list of all passes, and how they run: on a graph as it was traced, in turn until nothing changes, where memory is short, and for
//! a backend.

use super::fuse::{self, Fusion};
use super::report::{PassReport, Report};
use super::{
    Options, cse, dce, fold, hoist, inline, measure, moves, narrow, remat, share, simplify, strength, trim,
    unroll,
};
use crate::graph::{Body, Graph, Statistics, Step};
use crate::ops::Op;
use Run::{Fit, Lower, Optimise, Trace};

/// One pass.
pub(super) struct Pass {
    pub name: &'static str,
    pub about: &'static str,
    pub run: Run,
}

/// The stage that a pass belongs to, and what it is told there.
#[derive(Clone, Copy)]
pub(super) enum Run {
    /// Once, on a graph as it was traced: what it has captured is still inside.
    Trace(fn(&Graph) -> Graph),
    /// In turn with the others, until nothing changes.
    Optimise(fn(&Graph, &Options) -> Graph),
    /// Where the graph needs more than so many bytes.
    Fit(fn(&Graph, usize) -> Graph),
    /// Once, for a backend. The result is run, and not differentiated.
    Lower(fn(&Graph, &Target) -> Graph),
}

/// What a graph is lowered for.
#[derive(Clone, Copy)]
pub(super) struct Target<'a> {
    pub backend: &'a dyn Fusion,
    /// How much work may be done again where that saves memory, in additions.
    pub spare: u64,
}

pub(super) const PASSES: &[Pass] = &[
    pass("sparse", "constants of few nonzero rows reduced to these", Trace(narrow::sparse_constants)),
    pass("inline", "calls replaced by what they call", Optimise(inline::inline)),
    pass("unroll", "loops of one step replaced by the step", Optimise(unroll::unroll)),
    pass("fold", "constants computed", Optimise(fold::fold)),
    pass("simplify", "operations that change nothing left out", Optimise(simplify::simplify)),
    pass("strength", "divisions and powers made cheaper", Optimise(strength::strength)),
    pass("moves", "moves of elements joined or left out", Optimise(moves::moves)),
    pass("shrink", "values computed before they are repeated or moved", Optimise(moves::shrink)),
    pass("cse", "equal values computed once", Optimise(cse::cse)),
    pass("hoist", "work taken out of loops", Optimise(hoist::hoist)),
    pass("trim", "unused inputs, outputs and states dropped", Optimise(trim::trim)),
    pass("dce", "dead code dropped", Optimise(dce::dce)),
    pass("remat", "cheap values computed again to save memory", Fit(remat::remat)),
    pass("narrow", "values computed only in the rows that matter", Lower(narrow::narrow)),
    pass("share", "functions written out where most of their work is done anyway", Lower(share::share)),
    pass("fuse", "operations joined to groups that run as one", Lower(fuse::fuse)),
];

const fn pass(name: &'static str, about: &'static str, run: Run) -> Pass {
    Pass { name, about, run }
}

/// Rounds of all passes; each makes the graph smaller or simpler, and few graphs need more than three.
const ROUNDS: usize = 16;

/// A graph that was just traced, and what the passes did to it.
pub(crate) fn traced(graph: Graph) -> (Graph, Vec<PassReport>) {
    let mut report = Report::new(Statistics::default());
    let run = |graph: Graph, pass: &Pass| match pass.run {
        Trace(run) => report.run(pass, &graph, |g| everywhere(g, &run, &run)).0,
        _ => graph,
    };
    let graph = PASSES.iter().fold(graph, run);
    (graph, report.passes)
}

/// Runs passes until nothing changes. What a pass does counts only where its result is accepted.
pub(super) fn optimised(
    graph: &Graph,
    options: &Options,
    report: &mut Report,
    accept: impl Fn(&Graph) -> bool,
) -> Graph {
    let mut graph = graph.clone();
    let passes = PASSES.iter().filter_map(|pass| match pass.run {
        Optimise(run) => Some((pass, run)),
        _ => None,
    });
    let passes: Vec<_> = passes.collect();
    // Every pass has seen the graph as it is when as many in a row as there are have left it alone.
    let mut quiet = 0;
    for (pass, run) in passes.iter().cycle().take(ROUNDS * passes.len()) {
        let noted = report.clone();
        let run = |g: &Graph| run(g, options);
        let (new, changed) = report.run(pass, &graph, |g| everywhere(g, &run, &run));
        match changed {
            true if accept(&new) => (graph, quiet) = (new, 0),
            true => (*report, quiet) = (noted, quiet + 1),
            false => quiet += 1,
        }
        if quiet == passes.len() {
            break;
        }
    }
    graph
}

/// The graph in no more than so many bytes, as far as that can be had.
pub(super) fn fitted(graph: &Graph, limit: usize, report: &mut Report) -> Graph {
    let mut graph = graph.clone();
    for pass in PASSES {
        if let Fit(run) = pass.run
            && measure::peak(&graph) > limit
        {
            // In another order of the steps, constants are read in another order too.
            graph = report.run(pass, &graph, |g| dce::dce(&run(g, limit), &Options::default())).0;
        }
    }
    graph
}

/// An optimised graph as a backend runs it. What the passes before have saved may be spent on values that are computed again: a graph
/// never does more work than the one it came from.
pub(crate) fn lowered(graph: &Graph, backend: &dyn Fusion, report: &mut Report) -> Graph {
    let spare = report.before.flops.saturating_sub(report.after.flops);
    let target = Target { backend, spare };
    // The work inside of a loop counts for each of its steps.
    let inner = Target { spare: 0, ..target };
    let mut graph = graph.clone();
    for pass in PASSES {
        if let Lower(run) = pass.run {
            graph = report.run(pass, &graph, |g| everywhere(g, &|g| run(g, &inner), &|g| run(g, &target))).0;
        }
    }
    graph
}

/// A pass on the graphs inside of a graph, then on the graph itself.
pub(super) fn everywhere(
    graph: &Graph,
    inner: &dyn Fn(&Graph) -> Graph,
    outer: &dyn Fn(&Graph) -> Graph,
) -> Graph {
    if !has_blocks(graph) {
        return outer(graph);
    }
    let mut graph = graph.clone();
    for step in &mut graph.steps {
        inside(step, inner);
    }
    outer(&graph)
}

/// Whether there are loops, branches, calls or other blocks.
pub(super) fn has_blocks(graph: &Graph) -> bool {
    graph.steps.iter().any(|step| matches!(step.op, Op::Block(_)))
}

/// A pass on the graphs that an operation runs, but for fused groups, which are the work of the last one. A block that does not change stays
/// the same block, with all that it may keep besides the graph.
fn inside(step: &mut Step, pass: &dyn Fn(&Graph) -> Graph) {
    let Some(body) = step.op.body().filter(|b| !matches!(b, Body::Fused(_))) else { return };
    let mut changed = false;
    let mapped = body.map(|graph| {
        let new = everywhere(graph, pass, pass);
        changed |= !cse::same_graph(graph, &new);
        new
    });
    if changed {
        step.op = Op::Block(mapped.block());
    }
}
