//! Graphs inside graphs: what a block that is made of graphs looks like to passes, printer and backends.

use super::control::{Cond, Loop};
use super::{Call, Graph};
use crate::error::{Result, err};
use crate::ops::{Attrs, Aval, Op};
use crate::tensor::{Block, Tensor};
use std::any::Any;
use std::ops::Range;
use std::sync::Arc;

/// The graphs that a block runs, and how.
#[derive(Clone)]
pub(crate) enum Body {
    /// A graph applied as it is. Its name says why it is one: `checkpoint`, `no_grad`, or `call`.
    Call(Call),
    Scan(Scan),
    Cond(Cond),
    Fused(Fused),
}

/// Steps of a loop. The body takes the state, a slice of each of the stacked items, and the shared inputs, and returns the next state and
/// the outputs of the step.
#[derive(Clone)]
pub(crate) struct Scan {
    pub body: Arc<Graph>,
    /// How many tensors the state has.
    pub state: usize,
    /// How many of the inputs are stacked: step `k` takes slice `k` of each.
    pub items: usize,
    pub steps: Range<usize>,
    /// Whether the outputs of the steps are stacked and returned after the state.
    pub stacks: bool,
}

/// Operations that a backend may run as one kernel.
#[derive(Clone)]
pub(crate) struct Fused {
    pub body: Arc<Graph>,
}

impl Block for Fused {
    fn name(&self) -> &'static str {
        "fused"
    }

    fn expand(&self, x: &[Tensor]) -> Result<Vec<Tensor>> {
        self.body.eval(x)
    }

    fn signature(&self) -> Option<Vec<Aval>> {
        Some(self.body.types())
    }

    fn body(&self) -> Option<Box<dyn Any>> {
        Some(Box::new(Body::Fused(self.clone())))
    }
}

impl Op {
    /// The graphs that it runs, if it is made of graphs.
    pub fn body(&self) -> Option<Body> {
        match self {
            Op::Block(b) => b.body()?.downcast().ok().map(|body| *body),
            _ => None,
        }
    }

    /// Its static parameters, those of a block that is made of graphs among them.
    pub fn parameters(&self) -> Attrs {
        self.body().map_or_else(|| self.attributes(), |body| body.attributes())
    }
}

impl Body {
    /// The name of the block in a graph's text.
    pub fn name(&self) -> &'static str {
        match self {
            Body::Call(call) => call.name,
            Body::Scan(_) => "scan",
            Body::Cond(_) => "cond",
            Body::Fused(_) => "fused",
        }
    }

    /// The graphs inside, in the order in which they are printed.
    pub fn bodies(&self) -> Vec<&Arc<Graph>> {
        match self {
            Body::Call(Call { body, .. }) | Body::Scan(Scan { body, .. }) | Body::Fused(Fused { body }) => {
                vec![body]
            }
            Body::Cond(cond) => vec![&cond.then, &cond.otherwise],
        }
    }

    /// The same with each graph replaced by one of the same inputs and outputs.
    pub fn map(&self, mut f: impl FnMut(&Graph) -> Graph) -> Body {
        let mut out = self.clone();
        match &mut out {
            Body::Call(Call { body, .. }) | Body::Scan(Scan { body, .. }) | Body::Fused(Fused { body }) => {
                *body = Arc::new(f(body));
            }
            Body::Cond(Cond { then, otherwise, .. }) => {
                (*then, *otherwise) = (Arc::new(f(then)), Arc::new(f(otherwise)));
            }
        }
        out
    }

    /// Its parameters besides the graphs.
    pub fn attributes(&self) -> Attrs {
        let mut attrs = Attrs::default();
        match self {
            Body::Call(_) | Body::Fused(_) => {}
            Body::Scan(scan) => {
                attrs.put("state", &scan.state);
                attrs.put("items", &scan.items);
                attrs.put("from", &scan.steps.start);
                attrs.put("to", &scan.steps.end);
                attrs.put("stacks", &scan.stacks);
            }
            Body::Cond(cond) => attrs.put("inputs", &cond.inputs),
        }
        attrs
    }

    /// The body of a name with its parameters and graphs; `None` if there is none of that name.
    pub fn build(name: &str, attrs: &mut Attrs, bodies: Vec<Graph>) -> Result<Option<Body>> {
        let mut bodies = bodies.into_iter().map(Arc::new);
        let mut body = || bodies.next().ok_or_else(|| err!(Format, "`{name}` lacks a graph"));
        let built = match name {
            "call" => Body::Call(Call { name: "call", body: body()? }),
            "no_grad" => Body::Call(Call { name: "no_grad", body: body()? }),
            "checkpoint" => Body::Call(Call { name: "checkpoint", body: body()? }),
            "scan" => Body::Scan(Scan {
                body: body()?,
                state: attrs.take("state")?,
                items: attrs.take("items")?,
                steps: attrs.take("from")?..attrs.take("to")?,
                stacks: attrs.take("stacks")?,
            }),
            "cond" => Body::Cond(Cond { then: body()?, otherwise: body()?, inputs: attrs.take("inputs")? }),
            "fused" => Body::Fused(Fused { body: body()? }),
            _ => return Ok(None),
        };
        match bodies.next() {
            Some(_) => Err(err!(Format, "`{name}` has too many graphs")),
            None => Ok(Some(built)),
        }
    }

    /// An error unless the graphs fit each other and the inputs.
    pub fn check(&self, inputs: &[Aval]) -> Result<()> {
        let expected: Vec<Vec<Aval>> = match self {
            Body::Call(_) | Body::Fused(_) => vec![inputs.to_vec()],
            Body::Scan(Scan { body, state, items, steps, .. }) => {
                let shared = state.checked_add(*items).filter(|&n| n <= inputs.len());
                let (Some(shared), true) = (shared, steps.start <= steps.end) else {
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
                    if t.shape.first().is_none_or(|&n| n < steps.end) {
                        return Err(err!(
                            Shape,
                            "a loop of {} steps runs over shape {:?}",
                            steps.end,
                            t.shape
                        ));
                    }
                    t.shape = t.shape.without(&[0]);
                }
                vec![all]
            }
            Body::Cond(Cond { then, otherwise, inputs: common }) => {
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
            Body::Call(call) => Arc::new(call),
            Body::Scan(scan) => Arc::new(Loop::from(scan)),
            Body::Cond(cond) => Arc::new(cond),
            Body::Fused(group) => Arc::new(group),
        }
    }
}
