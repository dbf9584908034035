//! What the passes did, for people.

use super::cse::same_graph;
use super::measure::operations;
use super::pipeline::Pass;
use crate::graph::{Graph, Statistics};
use std::fmt;

/// What an optimisation did.
#[derive(Clone, Debug)]
pub struct Report {
    /// The cost of the graph that was given.
    pub before: Statistics,
    /// The cost of the result.
    pub after: Statistics,
    /// What each pass did, in the order of their first runs.
    pub passes: Vec<PassReport>,
}

/// What one pass did, in all its runs.
#[derive(Clone, Debug)]
pub struct PassReport {
    /// The name of the pass.
    pub name: &'static str,
    /// What it does, in words.
    pub about: &'static str,
    /// Operations before its first run.
    pub before: usize,
    /// How many operations its runs have removed; fewer than none if it has added some.
    pub removed: isize,
    /// How many of its runs have changed the graph.
    pub changes: usize,
}

impl Report {
    pub(super) fn new(before: Statistics) -> Report {
        Report { before, after: before, passes: Vec::new() }
    }

    /// Runs a pass, and notes what it does; the result, and whether it is another graph.
    pub(super) fn run(
        &mut self,
        pass: &Pass,
        graph: &Graph,
        run: impl FnOnce(&Graph) -> Graph,
    ) -> (Graph, bool) {
        let Pass { name, about, .. } = *pass;
        let new = run(graph);
        if cfg!(debug_assertions)
            && let Err(e) = new.verify()
        {
            panic!("the pass `{name}` made a graph that is not well formed: {e}\nfrom\n{graph}\ncame\n{new}");
        }
        let (before, after) = (operations(graph), operations(&new));
        let at = self.passes.iter().position(|p| p.name == name).unwrap_or_else(|| {
            self.passes.push(PassReport { name, about, before, removed: 0, changes: 0 });
            self.passes.len() - 1
        });
        self.passes[at].removed += before as isize - after as isize;
        let changed = !same_graph(graph, &new);
        self.passes[at].changes += usize::from(changed);
        (new, changed)
    }
}

/// One line for each pass that changed something, with the number of operations by which it changed the graph, and one for all.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for p in self.passes.iter().filter(|p| p.changes > 0) {
            let count = if p.removed == 0 { "0".into() } else { format!("{:+}", -p.removed) };
            writeln!(f, "{:<10}{count:>6}  {}", p.name, p.about)?;
        }
        let (b, a) = (self.before, self.after);
        write!(f, "{} operations of {}", a.operations, b.operations)?;
        write!(f, ", {} flops of {}, peak {} bytes of {}", a.flops, b.flops, a.peak_bytes, b.peak_bytes)
    }
}
