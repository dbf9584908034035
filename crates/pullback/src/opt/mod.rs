//! Passes: a graph in, a better graph out, one idea a file.
//!
//! Each pass is a function of a graph, runs inside of loops, branches and calls too, and is checked by the verifier in debug builds.
//! All of them stand in one list, in `pipeline.rs`, with the stage that they run in.

mod cse;
mod dce;
mod fold;
mod fuse;
mod hoist;
mod inline;
mod measure;
mod moves;
mod narrow;
mod pipeline;
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

pub(crate) use fuse::Fusion;
pub(crate) use pipeline::{lowered, traced};
pub use report::{PassReport, Report};

use crate::graph::{Graph, Statistics};

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
        let mut best = pipeline::optimised(self, options, &mut report, |_| true);
        best = pipeline::fitted(&best, limit, &mut report);
        if !within(&best, &before, fast) {
            report = Report::new(before);
            best = pipeline::optimised(self, options, &mut report, |graph| within(graph, &before, fast));
        }
        if let Some(limit) = options.memory {
            best = pipeline::fitted(&best, limit, &mut report);
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
