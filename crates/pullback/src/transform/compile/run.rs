//! A compiled graph as an operation: the plan where values are known, the operations where a transform is active.

use crate::backend::{self, Backend, Executor, Profile, host};
use crate::error::Result;
use crate::graph::{Graph, Statistics, trace_leaves};
use crate::ops::Aval;
use crate::opt::{Options, PassReport, Report, lowered, traced};
use crate::tape::{detects_anomaly, is_ambient, outside_of_scopes, pull_through};
use crate::tensor::{Block, BlockAt, Data, Device, Link, Tensor, bind_block, common_device, replay};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

/// What a pullback depends on.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Pattern {
    /// Which inputs want a cotangent.
    wanted: Vec<bool>,
    /// Which outputs bring one.
    given: Vec<bool>,
    /// Whether it is that of `backward`, which `no_grad` is for.
    ambient: bool,
}

/// A compiled pullback, and what its rules have captured: the last inputs of its graph.
type Pullback = (Arc<CompiledGraph>, Vec<Tensor>);

/// A graph with its plan, and the plans of its pullbacks.
pub(super) struct CompiledGraph {
    graph: Arc<Graph>,
    optimised: Graph,
    report: Report,
    plan: Box<dyn Executor>,
    /// Plans for other devices than the host, made when a value there is met.
    elsewhere: Mutex<Vec<(Device, Arc<dyn Executor>)>>,
    donated: Vec<usize>,
    options: Options,
    pullbacks: Mutex<HashMap<Pattern, Pullback>>,
    itself: Weak<CompiledGraph>,
}

impl CompiledGraph {
    /// Optimises and plans a graph, to which these passes were applied since it was traced.
    pub fn new(
        graph: Graph,
        done: Vec<PassReport>,
        donated: &[usize],
        options: &Options,
    ) -> Result<Arc<CompiledGraph>> {
        let (plan, optimised, mut report) = planned(&graph, donated, options, host())?;
        report.passes.splice(0..0, done);
        Ok(Arc::new_cyclic(|itself| CompiledGraph {
            graph: Arc::new(graph),
            optimised,
            report,
            plan,
            elsewhere: Mutex::default(),
            donated: donated.to_vec(),
            options: options.clone(),
            pullbacks: Mutex::default(),
            itself: itself.clone(),
        }))
    }

    /// The graph as it was traced.
    pub fn graph(&self) -> &Arc<Graph> {
        &self.graph
    }

    /// What the passes did.
    pub fn report(&self) -> &Report {
        &self.report
    }

    pub fn statistics(&self) -> Statistics {
        self.plan.statistics()
    }

    /// How many operations run together with what is done to their results.
    pub fn epilogues(&self) -> usize {
        self.plan.epilogues()
    }

    /// Where the time goes.
    pub fn profile(&self, inputs: &[Tensor]) -> Result<Profile> {
        self.plan.profile(inputs)
    }

    fn block(&self) -> Arc<dyn Block> {
        self.itself.upgrade().expect("a compiled graph is held by whoever runs it")
    }

    /// The graph as it runs.
    pub fn optimised(&self) -> &Graph {
        &self.optimised
    }

    pub fn apply(&self, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
        if inputs.iter().all(|t| is_plain(t)) {
            return self.run(inputs);
        }
        bind_block(self.block(), inputs)
    }

    /// Runs the graph where its inputs are.
    fn run(&self, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
        match device(inputs.iter().copied())? {
            None => self.plan.run(inputs),
            Some(device) => self.plan_on(&device)?.run(inputs),
        }
    }

    /// The plan for a device other than the host.
    fn plan_on(&self, device: &Device) -> Result<Arc<dyn Executor>> {
        let plans = || self.elsewhere.lock().unwrap_or_else(|e| e.into_inner());
        if let Some((_, plan)) = plans().iter().find(|(d, _)| d == device) {
            return Ok(plan.clone());
        }
        let plan = planned(&self.graph, &self.donated, &self.options, backend::of(device))?.0;
        let plan: Arc<dyn Executor> = plan.into();
        plans().push((device.clone(), plan.clone()));
        Ok(plan)
    }

    /// [`apply`](CompiledGraph::apply) to inputs that are handed over.
    pub fn apply_owned(&self, inputs: Vec<Tensor>) -> Result<Vec<Tensor>> {
        if inputs.iter().all(is_plain) {
            return match device(inputs.iter())? {
                None => self.plan.run_owned(inputs),
                Some(device) => self.plan_on(&device)?.run_owned(inputs),
            };
        }
        bind_block(self.block(), &inputs.iter().collect::<Vec<_>>())
    }

    /// The graph from the inputs and the cotangents that there are to the cotangents that are wanted.
    fn pullback_graph(&self, pattern: &Pattern) -> Result<Graph> {
        let n = self.graph.inputs.len();
        let outputs = self.graph.types();
        let cotangents = outputs.into_iter().zip(&pattern.given).filter(|(_, given)| **given).map(|(t, _)| t);
        let types: Vec<Aval> = self.graph.inputs.iter().cloned().chain(cotangents).collect();
        trace_leaves(
            |all| {
                let (x, g) = all.split_at(n);
                let Pattern { wanted, given, ambient } = pattern;
                let run = |leaves: &[Tensor]| {
                    let mut leaves = leaves.iter();
                    let input = |(x, wanted): (&Tensor, &bool)| {
                        if *wanted { leaves.next().expect("one for each that is wanted") } else { x }.clone()
                    };
                    let inputs: Vec<Tensor> = x.iter().zip(wanted).map(input).collect();
                    Ok(chosen(self.graph.eval(&inputs)?, given))
                };
                pull_through(*ambient, run, &chosen(x.to_vec(), wanted), g)
            },
            types,
        )
    }

    fn pullback_for(&self, pattern: Pattern) -> Result<Pullback> {
        let pullbacks = || self.pullbacks.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(known) = pullbacks().get(&pattern) {
            return Ok(known.clone());
        }
        let (graph, done) = traced(outside_of_scopes(|| self.pullback_graph(&pattern))?);
        let (graph, captured) = graph.lift_large();
        let pullback = (CompiledGraph::new(graph, done, &[], &self.options)?, captured);
        pullbacks().insert(pattern, pullback.clone());
        Ok(pullback)
    }
}

/// A graph optimised and planned for a backend, as it runs there, and what the passes did.
fn planned(
    graph: &Graph,
    donated: &[usize],
    options: &Options,
    backend: &dyn Backend,
) -> Result<(Box<dyn Executor>, Graph, Report)> {
    let options = Options { differentiable: false, ..options.clone() };
    let (optimised, mut report) = graph.optimize_with(&options);
    let optimised = lowered(&optimised, backend, &mut report);
    Ok((backend.compile(&optimised, donated)?, optimised, report))
}

/// The device that these are on, unless it is the host.
fn device<'a>(mut inputs: impl Iterator<Item = &'a Tensor> + Clone) -> Result<Option<Device>> {
    let all = inputs.clone().map(Tensor::data);
    match inputs.any(|t| matches!(t.data(), Data::Placed(_))) {
        true => common_device(all).map(Some),
        false => Ok(None),
    }
}

/// Whether no transform is active on a value: nothing has to be recorded.
fn is_plain(t: &Tensor) -> bool {
    t.data().frame() == 0 && t.node().deps.is_empty()
}

/// Those of which it is said.
fn chosen(all: Vec<Tensor>, which: &[bool]) -> Vec<Tensor> {
    all.into_iter().zip(which).filter(|(_, chosen)| **chosen).map(|(t, _)| t).collect()
}

impl Block for CompiledGraph {
    fn name(&self) -> &'static str {
        "compiled"
    }

    /// Under a transform the body is what it is made of; so a traced one is traced in place, and optimised with what is around it.
    fn expand(&self, x: &[Tensor]) -> Result<Vec<Tensor>> {
        match x.iter().all(is_plain) {
            true => self.run(&x.iter().collect::<Vec<_>>()),
            false => self.graph.eval(x),
        }
    }

    fn pullback(&self, at: &BlockAt, gs: &[Option<Tensor>]) -> Result<Vec<(Link, Tensor)>> {
        if detects_anomaly() {
            // Operation by operation, each with its line.
            return replay(at, gs, |x| self.graph.eval(x));
        }
        let wanted: Vec<bool> = at.inputs.iter().map(|i| i.node().deps.contains(at.level)).collect();
        let given: Vec<bool> =
            (0..self.graph.outputs.len()).map(|k| gs.get(k).is_some_and(Option::is_some)).collect();
        let x = at.x();
        let links = at.inputs.iter().zip(&wanted).filter(|(_, wanted)| **wanted).map(|(i, _)| i.link());
        let links: Vec<Link> = links.collect();
        let ambient = is_ambient(at.level);
        let (pullback, captured) = self.pullback_for(Pattern { wanted, given, ambient })?;
        let inputs: Vec<&Tensor> = x.iter().chain(gs.iter().flatten()).chain(&captured).collect();
        let cotangents = pullback.apply(&inputs)?;
        Ok(links.into_iter().zip(cotangents).collect())
    }
}
