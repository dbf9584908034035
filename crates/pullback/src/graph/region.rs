//! Graphs inside graphs: what a block that runs other graphs looks like to passes, printer and executor.

use super::Graph;
use crate::error::{Result, err};
use crate::exec::fused::Fused;
use crate::ops::{Attrs, Aval};
use crate::tensor::Block;
use crate::transform::control::{cond_block, loop_block};
use std::sync::Arc;

/// The graphs that a block runs, and how.
#[derive(Clone)]
pub(crate) enum Region {
    /// A graph applied as it is. Its name says why it is one: `checkpoint`, `no_grad`, or `call`.
    Call { name: &'static str, body: Arc<Graph> },
    /// The steps `from..to` of a loop. The body takes the state, a slice of each of the stacked `items`, and the shared inputs, and
    /// returns the next state and the outputs of the step, which the loop stacks if `stacks`.
    Scan { body: Arc<Graph>, state: usize, items: usize, from: usize, to: usize, stacks: bool },
    /// One of two graphs. Its inputs: the condition, `inputs` common ones, then those of `then` alone, those of `otherwise` alone.
    Cond { then: Arc<Graph>, otherwise: Arc<Graph>, inputs: usize },
    /// Operations that run as one, tile by tile.
    Fused(Fused),
}

impl Region {
    /// The name of the block in a graph's text.
    pub fn name(&self) -> &'static str {
        match self {
            Region::Call { name, .. } => name,
            Region::Scan { .. } => "scan",
            Region::Cond { .. } => "cond",
            Region::Fused(_) => "fused",
        }
    }

    /// The graphs inside, in the order in which they are printed.
    pub fn bodies(&self) -> Vec<&Arc<Graph>> {
        match self {
            Region::Call { body, .. } | Region::Scan { body, .. } => vec![body],
            Region::Cond { then, otherwise, .. } => vec![then, otherwise],
            Region::Fused(group) => vec![&group.body],
        }
    }

    /// The same with each graph replaced by one of the same inputs and outputs.
    pub fn map(&self, mut f: impl FnMut(&Graph) -> Result<Graph>) -> Result<Region> {
        let mut out = self.clone();
        match &mut out {
            Region::Call { body, .. } | Region::Scan { body, .. } => *body = Arc::new(f(body)?),
            Region::Cond { then, otherwise, .. } => {
                (*then, *otherwise) = (Arc::new(f(then)?), Arc::new(f(otherwise)?));
            }
            Region::Fused(group) => *group = Fused::new(f(&group.body)?)?,
        }
        Ok(out)
    }

    /// Its parameters besides the graphs.
    pub fn describe(&self, attrs: &mut Attrs) {
        match self {
            Region::Call { .. } | Region::Fused(_) => {}
            Region::Scan { state, items, from, to, stacks, .. } => {
                attrs.put("state", state);
                attrs.put("items", items);
                attrs.put("from", from);
                attrs.put("to", to);
                attrs.put("stacks", stacks);
            }
            Region::Cond { inputs, .. } => attrs.put("inputs", inputs),
        }
    }

    /// The region of a name with its parameters and graphs; `None` if there is none of that name.
    pub fn build(name: &str, attrs: &mut Attrs, bodies: Vec<Graph>) -> Result<Option<Region>> {
        let mut bodies = bodies.into_iter().map(Arc::new);
        let mut body = || bodies.next().ok_or_else(|| err!(Format, "`{name}` lacks a graph"));
        let region = match name {
            "call" => Region::Call { name: "call", body: body()? },
            "no_grad" => Region::Call { name: "no_grad", body: body()? },
            "checkpoint" => Region::Call { name: "checkpoint", body: body()? },
            "scan" => Region::Scan {
                body: body()?,
                state: attrs.take("state")?,
                items: attrs.take("items")?,
                from: attrs.take("from")?,
                to: attrs.take("to")?,
                stacks: attrs.take("stacks")?,
            },
            "cond" => Region::Cond { then: body()?, otherwise: body()?, inputs: attrs.take("inputs")? },
            "fused" => Region::Fused(Fused::new(Graph::clone(&*body()?))?),
            _ => return Ok(None),
        };
        match bodies.next() {
            Some(_) => Err(err!(Format, "`{name}` has too many graphs")),
            None => Ok(Some(region)),
        }
    }

    /// An error unless the graphs fit each other and the inputs.
    pub fn check(&self, inputs: &[Aval]) -> Result<()> {
        let expected: Vec<Vec<Aval>> = match self {
            Region::Call { .. } | Region::Fused(_) => vec![inputs.to_vec()],
            Region::Scan { body, state, items, from, to, .. } => {
                let shared = state.checked_add(*items).filter(|&n| n <= inputs.len());
                let (Some(shared), true) = (shared, from <= to) else {
                    return Err(err!(
                        Structure,
                        "{state} states and {items} items of {} inputs",
                        inputs.len()
                    ));
                };
                let carried = body.types();
                if carried.len() < *state || carried[..*state] != inputs[..*state] {
                    return Err(err!(Structure, "the state changes its type from one step to the next"));
                }
                let mut all = inputs.to_vec();
                for t in &mut all[*state..shared] {
                    if t.shape.first().is_none_or(|n| n < to) {
                        return Err(err!(Shape, "a loop of {to} steps runs over shape {:?}", t.shape));
                    }
                    t.shape = t.shape.without(&[0]);
                }
                vec![all]
            }
            Region::Cond { then, otherwise, inputs: common } => {
                let own = then.inputs.len().checked_sub(*common);
                let (Some(own), Some((condition, rest))) = (own, inputs.split_first()) else {
                    return Err(err!(Structure, "the branches have fewer than {common} inputs"));
                };
                if condition.dtype != crate::DType::Bool || !condition.shape.is_empty() {
                    return Err(err!(DType, "the condition is {} {:?}", condition.dtype, condition.shape));
                }
                if rest.len() < common + own || then.types() != otherwise.types() {
                    return Err(err!(Structure, "the branches do not fit each other or the inputs"));
                }
                let second = [&rest[..*common], &rest[common + own..]].concat();
                vec![rest[..common + own].to_vec(), second]
            }
        };
        for (body, expected) in self.bodies().into_iter().zip(expected) {
            if body.inputs != expected {
                return Err(err!(
                    Structure,
                    "a graph inside takes {:?}, but is given {expected:?}",
                    body.inputs
                ));
            }
        }
        Ok(())
    }

    /// The block that runs it.
    pub fn block(self) -> Arc<dyn Block> {
        match self {
            Region::Call { name, body } => Arc::new(super::call::Call { name, graph: body }),
            Region::Scan { body, state, items, from, to, stacks } => {
                loop_block(body, state, items, from..to, stacks)
            }
            Region::Cond { then, otherwise, inputs } => cond_block(then, otherwise, inputs),
            Region::Fused(group) => Arc::new(group),
        }
    }
}
