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
mod remat;
mod report;
mod rewrite;
mod simplify;
mod strength;
mod trim;

#[cfg(test)]
mod laws;
#[cfg(test)]
mod tests;

pub(crate) use fuse::fuse;
pub use measure::Cost;
pub use report::{PassReport, Report};

use crate::graph::{Graph, Region, Step};
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
    /// It lengthens the life of values, which may cost memory.
    keeps_longer: bool,
}

const PASSES: &[Pass] = &[
    Pass {
        name: "inline",
        about: "calls replaced by what they call",
        run: inline::inline,
        keeps_longer: false,
    },
    Pass { name: "fold", about: "constants computed", run: fold::fold, keeps_longer: false },
    Pass {
        name: "simplify",
        about: "operations that change nothing left out",
        run: simplify::simplify,
        keeps_longer: false,
    },
    Pass {
        name: "strength",
        about: "divisions and powers made cheaper",
        run: strength::strength,
        keeps_longer: false,
    },
    Pass {
        name: "layout",
        about: "moves of elements joined or left out",
        run: layout::layout,
        keeps_longer: false,
    },
    Pass { name: "cse", about: "equal values computed once", run: cse::cse, keeps_longer: true },
    Pass { name: "hoist", about: "work taken out of loops", run: hoist::hoist, keeps_longer: true },
    Pass {
        name: "trim",
        about: "unused inputs, outputs and states dropped",
        run: trim::trim,
        keeps_longer: false,
    },
    Pass { name: "dce", about: "dead code dropped", run: dce::dce, keeps_longer: false },
];

/// Rounds of all passes; each makes the graph smaller or simpler, and few graphs need more than three.
const ROUNDS: usize = 16;

impl Graph {
    /// An equivalent graph of fewer operations: constants folded, common subexpressions computed once, transposes cancelled, loop-invariant
    /// work taken out of loops, and so on. It computes the same values, but for the order in which sums are rounded, and
    /// never needs more operations, work or memory.
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
        let before = self.cost();
        let limit = options.memory.unwrap_or(usize::MAX).min(before.peak);
        let mut report = Report::new(before);
        let mut best = pipeline(self, options, &mut report, |_| true);
        if measure::peak(&best) > limit {
            best = report.run("remat", "cheap values computed again to save memory", &best, |g| {
                remat::remat(g, limit)
            });
        }
        // Values that are kept for a later use can cost more memory than all else has saved.
        if !best.cost().within(&before, options.fast_math) {
            report = Report::new(before);
            best = pipeline(self, options, &mut report, |p| !p.keeps_longer);
        }
        if !best.cost().within(&before, options.fast_math) {
            report = Report::new(before);
            best = report.run("dce", "dead code dropped", self, |g| everywhere(g, &|g| dce::dce(g, options)));
        }
        report.after = best.cost();
        (best, report)
    }

    /// What the graph costs, counted without running it.
    pub(crate) fn cost(&self) -> Cost {
        measure::cost(self)
    }
}

/// Runs passes until nothing changes.
fn pipeline(graph: &Graph, options: &Options, report: &mut Report, takes: impl Fn(&Pass) -> bool) -> Graph {
    let mut graph = graph.clone();
    for _ in 0..ROUNDS {
        let before = graph.clone();
        for pass in PASSES.iter().filter(|p| takes(p)) {
            graph = report.run(pass.name, pass.about, &graph, |g| everywhere(g, &|g| (pass.run)(g, options)));
        }
        if cse::same_graph(&before, &graph) {
            break;
        }
    }
    graph
}

/// A pass on the graphs inside of a graph, then on the graph itself.
fn everywhere(graph: &Graph, pass: &dyn Fn(&Graph) -> Graph) -> Graph {
    let mut graph = graph.clone();
    for step in &mut graph.steps {
        inside(step, pass);
    }
    pass(&graph)
}

/// A pass on the graphs that an operation runs, but for fused groups, which are the work of a pass after these. One that does not change stays the same block, with all that it may keep besides the graph.
fn inside(step: &mut Step, pass: &dyn Fn(&Graph) -> Graph) {
    let Some(region) = step.op.region().filter(|r| !matches!(r, Region::Fused { .. })) else { return };
    let mut changed = false;
    let mapped = region.map(|body| {
        let new = everywhere(body, pass);
        changed |= !cse::same_graph(body, &new);
        Ok(new)
    });
    if changed {
        step.op = Op::Block(mapped.expect("passes do not fail").block());
    }
}
