//! Devices that run graphs.

pub(crate) mod cpu;
mod profile;
mod simulated;

pub use profile::{Profile, ProfileRow};

use crate::error::Result;
use crate::graph::{Graph, Statistics};
use crate::opt::Fusion;
use crate::tensor::{Device, Tensor};
use std::sync::Arc;

/// A device.
pub(crate) trait Backend: Fusion + Send + Sync {
    /// Prepares a graph to be run many times. The memory of `donated` inputs may be used for other values, where nobody else holds it.
    fn compile(&self, graph: &Graph, donated: &[usize]) -> Result<Box<dyn Executor>>;
}

/// A graph that is ready to run on a device. Several threads may run it at once.
pub(crate) trait Executor: Send + Sync {
    /// Runs the graph.
    fn run(&self, inputs: &[&Tensor]) -> Result<Vec<Tensor>>;

    /// Runs the graph on inputs that are handed over: the donated ones are overwritten, unless someone else holds them.
    fn run_owned(&self, inputs: Vec<Tensor>) -> Result<Vec<Tensor>>;

    /// What a run costs.
    fn statistics(&self) -> Statistics;

    /// How many operations run together with what is done to their elements.
    fn epilogues(&self) -> usize;

    /// Where the time goes.
    fn profile(&self, inputs: &[Tensor]) -> Result<Profile>;
}

/// What compiles graphs for a device.
pub(crate) fn of(device: &Device) -> &dyn Backend {
    match device.accelerator() {
        None => host(),
        Some(a) => &**a.compiler().downcast_ref::<Arc<dyn Backend>>().expect("a device names its backend"),
    }
}

/// The host processor.
pub(crate) fn host() -> &'static dyn Backend {
    &cpu::Cpu
}
