//! Passes: a graph in, a better graph out, one idea a file.
//!
//! Each pass is a function of a graph, runs inside of loops, branches and calls too, and is checked by the verifier in debug builds.
//! [`Graph::optimize`] runs them in turn until nothing changes.

mod constant;
mod cse;
mod dce;
mod fold;
mod fuse;
mod hoist;
mod inline;
mod layout;
mod measure;
mod narrow;
mod remat;
mod report;
mod rewrite;
mod share;
mod simplify;
mod strength;
mod trim;
mod unroll;

#[cfg(test)]
pub(crate) mod laws;
#[cfg(test)]
mod tests;

pub(crate) use fuse::{Fusion, fuse};
pub(crate) use narrow::{narrow, sparse_constants};
pub use report::{PassReport, Report};

use crate::graph::{Body, Graph, Statistics, Step, effort};
use crate::ops::Op;

/// What an optimisation may do. The default keeps values to the bit, but for sums, which may be added in another order.
///
/// ```
/// use pullback::opt::Options;
/// use pullback::prelude::*;
/// let g = trace(|x: &Tensor| x - x, &Tensor::zeros([3]));
/// assert_eq!(g.optimize().len(), 1); // infinity - infinity is not 0
/// let fast = Options { fast_math: true, ..Options::default() };
/// assert_eq!(g.optimize_with(&fast).0.len(), 0);
/// ```
#[derive(Clone, Debug)]
pub struct Options {
    /// Allows rules that hold for real numbers, but not for every float: `x - x = 0`, `x / c = x (1 / c)`, `x^2 = x x`.
    pub fast_math: bool,
    /// Computes cheap values again instead of keeping them, until results that are alive at once need no more than so many bytes, or nothing
    /// helps. Inputs and constants are not counted.
    pub memory: Option<usize>,
    /// Keeps what only derivatives see: `stop_gradient`. Turn it off for graphs that are run, and not differentiated, afterwards.
    pub differentiable: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { fast_math: false, memory: None, differentiable: true }
    }
}

/// One pass.
struct Pass {
    name: &'static str,
    about: &'static str,
    run: fn(&Graph, &Options) -> Graph,
}

const PASSES: &[Pass] = &[
    pass("inline", "calls replaced by what they call", inline::inline),
    pass("unroll", "loops of one step replaced by the step", unroll::unroll),
    pass("fold", "constants computed", fold::fold),
    pass("simplify", "operations that change nothing left out", simplify::simplify),
    pass("strength", "divisions and powers made cheaper", strength::strength),
    pass("layout", "moves of elements joined or left out", layout::layout),
    pass("shrink", "values computed before they are repeated or moved", layout::shrink),
    pass("cse", "equal values computed once", cse::cse),
    pass("hoist", "work taken out of loops", hoist::hoist),
    pass("trim", "unused inputs, outputs and states dropped", trim::trim),
    pass("dce", "dead code dropped", dce::dce),
];

const fn pass(name: &'static str, about: &'static str, run: fn(&Graph, &Options) -> Graph) -> Pass {
    Pass { name, about, run }
}

/// Rounds of all passes; each makes the graph smaller or simpler, and few graphs need more than three.
const ROUNDS: usize = 16;

impl Graph {
    /// An equivalent graph of fewer operations: constants folded, common subexpressions computed once, transposes cancelled, loop-invariant
    /// work taken out of loops, and so on. It computes the same values, but for the order in which sums are rounded, and
    /// never needs more operations, work or memory by its [`statistics`](Graph::statistics).
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let g = trace(|x: &Tensor| (x * 2.0 + x * 2.0).exp().sum(), &Tensor::zeros([3]));
    /// assert_eq!(g.optimize().to_string(), "\
    /// graph(x0: f64[3]) {
    ///   c0 = constant 4.0 : f64[3]
    ///   %0 = mul(x0, c0) : f64[3]
    ///   %1 = exp(%0) : f64[3]
    ///   %2 = sum(%1) {axes: [0]} : f64[]
    ///   return %2
    /// }");
    /// ```
    pub fn optimize(&self) -> Graph {
        self.optimize_with(&Options::default()).0
    }

    /// [`optimize`](Graph::optimize) as the options say, with a report of what was done.
    ///
    /// ```
    /// use pullback::{opt::Options, prelude::*};
    /// let g = trace(|x: &Tensor| x.sin() * x.sin(), &Tensor::zeros([3]));
    /// let (g, report) = g.optimize_with(&Options::default());
    /// assert_eq!((report.before.operations, report.after.operations), (3, 2));
    /// assert!(report.to_string().contains("cse"));
    /// # let _ = g;
    /// ```
    pub fn optimize_with(&self, options: &Options) -> (Graph, Report) {
        let before = self.statistics();
        let mut report = Report::new(before);
        let (limit, fast) = (measure::peak(self), options.fast_math);
        // First as all passes together make it. What most graphs gain from can cost another one more than all else has saved: then each pass
        // for itself must not make it worse.
        let mut best = pipeline(self, options, &mut report, |_| true);
        if measure::peak(&best) > limit {
            best = under(limit, &best, &mut report);
        }
        if !within(&best, &before, fast) {
            report = Report::new(before);
            best = pipeline(self, options, &mut report, |graph| within(graph, &before, fast));
        }
        if let Some(limit) = options.memory.filter(|&limit| measure::peak(&best) > limit) {
            best = under(limit, &best, &mut report);
        }
        #[cfg(test)]
        crate::graph::fault::in_graph(&mut best);
        report.after = best.statistics();
        (best, report)
    }
}

/// Whether a graph costs no more than another one did. With fast math a power may become several products, which are less work.
fn within(graph: &Graph, before: &Statistics, fast_math: bool) -> bool {
    let after = graph.statistics();
    (fast_math || after.operations <= before.operations)
        && after.flops <= before.flops
        && after.peak_bytes <= before.peak_bytes
}

/// The graph in less memory.
fn under(limit: usize, graph: &Graph, report: &mut Report) -> Graph {
    report.run("remat", "cheap values computed again to save memory", graph, |g| remat::remat(g, limit)).0
}

/// Runs passes until nothing changes. What a pass does counts only where its result is accepted.
fn pipeline(graph: &Graph, options: &Options, report: &mut Report, accept: impl Fn(&Graph) -> bool) -> Graph {
    let mut graph = graph.clone();
    // Every pass has seen the graph as it is when as many in a row as there are have left it alone.
    let mut quiet = 0;
    for pass in PASSES.iter().cycle().take(ROUNDS * PASSES.len()) {
        let noted = report.clone();
        let (new, changed) =
            report.run(pass.name, pass.about, &graph, |g| everywhere(g, &|g| (pass.run)(g, options)));
        match changed {
            true if accept(&new) => (graph, quiet) = (new, 0),
            true => (*report, quiet) = (noted, quiet + 1),
            false => quiet += 1,
        }
        if quiet == PASSES.len() {
            break;
        }
    }
    graph
}

/// A pass on the graphs inside of a graph, then on the graph itself.
fn everywhere(graph: &Graph, pass: &dyn Fn(&Graph) -> Graph) -> Graph {
    if !has_blocks(graph) {
        return pass(graph);
    }
    let mut graph = graph.clone();
    for step in &mut graph.steps {
        inside(step, pass);
    }
    pass(&graph)
}

/// Whether there are loops, branches, calls or other blocks.
fn has_blocks(graph: &Graph) -> bool {
    graph.steps.iter().any(|step| matches!(step.op, Op::Block(_)))
}

/// A pass on the graphs that an operation runs, but for fused groups, which are the work of a pass after these. One that does not change stays the same block, with all that it may keep besides the graph.
fn inside(step: &mut Step, pass: &dyn Fn(&Graph) -> Graph) {
    let Some(body) = step.op.body().filter(|b| !matches!(b, Body::Fused(_))) else { return };
    let mut changed = false;
    let mapped = body.map(|graph| {
        let new = everywhere(graph, pass);
        changed |= !cse::same_graph(graph, &new);
        new
    });
    if changed {
        step.op = Op::Block(mapped.block());
    }
}
