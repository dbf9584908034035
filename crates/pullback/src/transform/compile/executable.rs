//! A graph that is ready to run, and can be saved.

use super::run::CompiledGraph;
use crate::backend::Profile;
use crate::error::{Result, Within};
use crate::graph::{Graph, Statistics};
use crate::opt::Options;
use crate::tensor::Tensor;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// A graph with its plan. It comes from a [compiled function](crate::Compiled::executable), a [graph](Executable::new) or a [file](Executable::load).
///
/// ```
/// use pullback::{Executable, prelude::*};
/// let graph: Graph = "graph(x0: f64[2]) {\n %0 = exp(x0) : f64[2]\n return %0\n}".parse()?;
/// let exp = Executable::new(graph)?;
/// assert_eq!(exp.run(&[Tensor::zeros([2])])?[0].to_vec::<f64>(), [1.0, 1.0]);
/// # Ok::<(), pullback::Error>(())
/// ```
pub struct Executable {
    graph: Graph,
    compiled: Arc<CompiledGraph>,
    /// Constants that are part of an active transform: the last inputs of what is compiled.
    watched: Vec<Tensor>,
}

impl Executable {
    /// Optimises and plans a graph.
    #[track_caller]
    pub fn new(graph: Graph) -> Result<Executable> {
        Executable::with(graph, &Options::default())
    }

    /// [`new`](Executable::new), optimised as the options say.
    #[track_caller]
    pub fn with(graph: Graph, options: &Options) -> Result<Executable> {
        let (lifted, watched) = graph.clone().lift_watched();
        let compiled = graph
            .verify()
            .and_then(|()| CompiledGraph::new(lifted, Vec::new(), &[], options))
            .within("executable")?;
        Ok(Executable { graph, compiled, watched })
    }

    /// Runs the graph on tensors, one for each input. Like any operation it can be differentiated.
    #[track_caller]
    pub fn run(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        let run = self
            .graph()
            .accepts(inputs)
            .and_then(|()| self.compiled.apply(&inputs.iter().chain(&self.watched).collect::<Vec<_>>()));
        run.within("run")
    }

    /// Writes the graph to a file, with its constants: see [`Graph::save`].
    #[track_caller]
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        self.graph().save(path)
    }

    /// Reads a file that was saved here or elsewhere, and plans its graph for this machine.
    #[track_caller]
    pub fn load(path: impl AsRef<Path>) -> Result<Executable> {
        Executable::new(Graph::load(path)?)
    }

    /// The graph, before it was optimised.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// What a run costs.
    pub fn statistics(&self) -> Statistics {
        self.compiled.statistics()
    }

    /// Where the time of a run goes.
    #[track_caller]
    pub fn profile(&self, inputs: &[Tensor]) -> Result<Profile> {
        let all: Vec<Tensor> = inputs.iter().chain(&self.watched).map(Tensor::detach).collect();
        self.graph().accepts(inputs).and_then(|()| self.compiled.profile(&all)).within("profile")
    }
}

/// What the passes did, and the kernels.
impl fmt::Display for Executable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        super::explain::write(f, &self.compiled)
    }
}
