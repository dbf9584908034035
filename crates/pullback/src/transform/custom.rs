//! Functions with derivative rules of their own, over lists of tensors. What users see of them is in [`rule`] and [`kernel`].

mod kernel;
mod rule;

pub use kernel::{CustomOp, custom_op, try_custom_op};
pub use rule::{CustomRule, custom_rule};

use super::{jvp, vjp, vmap};
use crate::Tensor;
use crate::error::{Result, err, or_panic};
use crate::graph::trace_leaves;
use crate::ops::Aval;
use crate::tape::Deps;
use crate::tensor::{Block, BlockAt, BlockRules, Link, bind_block};
use std::sync::Arc;

/// What a function does.
pub(super) type Body = Arc<dyn Fn(&[Tensor]) -> Result<Vec<Tensor>> + Send + Sync>;

/// A rule: from inputs, outputs, and what is to be pulled back or pushed forward.
pub(super) type Rule = Arc<dyn Fn(&[Tensor], &[Tensor], &[Tensor]) -> Result<Vec<Tensor>> + Send + Sync>;

/// A function that transforms do not look into: they follow its rules. One of pullback and pushforward is enough, as each is the
/// transpose of the other.
#[derive(Clone)]
pub(super) struct Custom {
    pub name: &'static str,
    pub inputs: Vec<Aval>,
    /// The types of the outputs, if they are known beforehand; otherwise the body is traced for them.
    pub outputs: Option<Vec<Aval>>,
    pub body: Body,
    pub pullback: Option<Rule>,
    pub pushforward: Option<Rule>,
    pub batching: Batching,
}

/// How the body is applied to many lanes.
#[derive(Clone)]
pub(super) enum Batching {
    /// As its operations are.
    Body,
    /// One lane after the other, because it reads values.
    OneByOne,
    /// By a body for all of them.
    Own(Body),
}

impl Custom {
    /// Applies it.
    #[track_caller]
    pub fn apply(self, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
        bind_block(Arc::new(self), inputs)
    }

    /// Cotangents of the inputs.
    fn pulled(&self, x: &[Tensor], y: &[Tensor], g: &[Tensor]) -> Result<Vec<Tensor>> {
        let out = match (&self.pullback, &self.pushforward) {
            (Some(rule), _) => rule(x, y, g)?,
            (None, Some(rule)) => {
                let push = |t: &[Tensor]| {
                    rule(x, y, t).and_then(|out| self.check("pushforward", "tangent of output", out, y))
                };
                return pulled(push, &zeros(x), g);
            }
            (None, None) => return Err(self.no_rule()),
        };
        self.check("pullback", "cotangent of input", out, x)
    }

    fn no_rule(&self) -> crate::Error {
        err!(Gradient, "it has no derivative rule; add one with .pullback(..) or .pushforward(..)")
    }

    /// What a rule returned, if that is what it must be: tensors like these.
    fn check(&self, rule: &str, what: &str, out: Vec<Tensor>, like: &[Tensor]) -> Result<Vec<Tensor>> {
        if out.len() != like.len() {
            return Err(err!(
                Gradient,
                "the {rule} returned {} tensors instead of {}",
                out.len(),
                like.len()
            )
            .in_op(self.name));
        }
        for (k, (t, like)) in
            out.iter().zip(like).enumerate().filter(|(_, (_, l))| l.dtype().is_differentiable())
        {
            if t.shape() != like.shape() || t.dtype() != like.dtype() {
                return Err(err!(
                    Gradient,
                    "the {rule} returned {} {:?} as the {what} {k}, which must be {} {:?}",
                    t.dtype(),
                    t.shape(),
                    like.dtype(),
                    like.shape()
                )
                .in_op(self.name));
            }
        }
        Ok(out)
    }
}

/// The cotangents of the inputs of `f` at `x`; zeros for those that are not of floats, which have no part in it.
pub(super) fn pulled(
    f: impl Fn(&[Tensor]) -> Result<Vec<Tensor>>,
    x: &[Tensor],
    g: &[Tensor],
) -> Result<Vec<Tensor>> {
    let failed = std::cell::RefCell::new(None);
    let run = |t: &Vec<Tensor>| match f(&with_floats(x, t)) {
        Ok(y) => floats(&y),
        Err(e) => {
            failed.replace(Some(e));
            Vec::new()
        }
    };
    let (_, pull) = vjp(run, &floats(x));
    match failed.take() {
        Some(e) => Err(e),
        None => Ok(with_floats(&zeros(x), &pull(&floats(g)))),
    }
}

/// The tangents of the outputs of `f` at `x`.
pub(super) fn pushed(
    f: impl Fn(&[Tensor]) -> Result<Vec<Tensor>>,
    x: &[Tensor],
    t: &[Tensor],
) -> Result<Vec<Tensor>> {
    let mut failed = None;
    let run = |t: &Vec<Tensor>| {
        f(&with_floats(x, t)).unwrap_or_else(|e| {
            failed = Some(e);
            Vec::new()
        })
    };
    let (_, dy) = jvp(run, &floats(x), &floats(t));
    failed.map_or(Ok(dy), Err)
}

pub(super) fn zeros(like: &[Tensor]) -> Vec<Tensor> {
    like.iter().map(|t| t.detach().zeros_like()).collect()
}

fn floats(all: &[Tensor]) -> Vec<Tensor> {
    all.iter().filter(|t| t.dtype().is_differentiable()).cloned().collect()
}

/// `all` with its floats replaced.
fn with_floats(all: &[Tensor], floats: &[Tensor]) -> Vec<Tensor> {
    let mut next = floats.iter();
    let each = |t: &Tensor| match t.dtype().is_differentiable() {
        true => next.next().expect("one for each").clone(),
        false => t.clone(),
    };
    all.iter().map(each).collect()
}

impl Block for Custom {
    fn name(&self) -> &'static str {
        self.name
    }

    fn expand(&self, x: &[Tensor]) -> Result<Vec<Tensor>> {
        (self.body)(x)
    }

    fn signature(&self) -> Option<Vec<Aval>> {
        if let Some(known) = &self.outputs {
            return Some(known.clone());
        }
        let graph = trace_leaves(|x| (self.body)(x), self.inputs.clone()).ok()?;
        Some(graph.outputs.iter().map(|&a| graph.aval(a)).collect())
    }

    fn pullback(&self, at: &BlockAt, gs: &[Option<Tensor>]) -> Result<Vec<(Link, Tensor)>> {
        let all = at.x();
        let (x, y) = all.split_at(self.inputs.len());
        // What was kept of the outputs is their value. An outer transform needs to see where they come from.
        let mut watched = Deps::default();
        x.iter().for_each(|t| watched.join(&t.node().deps, t.data().frame()));
        let again = match watched.is_empty() {
            true => None,
            false => Some(self.clone().apply(&x.iter().collect::<Vec<_>>())?),
        };
        let y = again.as_deref().unwrap_or(y);
        let g: Vec<Tensor> = (y.iter().enumerate())
            .map(|(k, y)| gs.get(k).cloned().flatten().unwrap_or_else(|| y.detach().zeros_like()))
            .collect();
        let found = self.pulled(x, y, &g)?;
        let inputs = at.inputs.iter().zip(found).filter(|(_, g)| g.dtype().is_differentiable());
        Ok(inputs.map(|(input, g)| (input.link(), g)).collect())
    }

    fn rules(&self) -> Option<&dyn BlockRules> {
        Some(self)
    }
}

impl BlockRules for Custom {
    fn pushforward(&self, x: &[Tensor], y: &[Tensor], t: &[Option<Tensor>]) -> Result<Vec<Tensor>> {
        let t: Vec<Tensor> =
            (x.iter().zip(t)).map(|(x, t)| t.clone().unwrap_or_else(|| x.detach().zeros_like())).collect();
        let out = match (&self.pushforward, &self.pullback) {
            (Some(rule), _) => rule(x, y, &t)?,
            (None, Some(rule)) => {
                let pull = |g: &[Tensor]| {
                    rule(x, y, g).and_then(|out| self.check("pullback", "cotangent of input", out, x))
                };
                return pulled(pull, &zeros(y), &t);
            }
            (None, None) => return Err(self.no_rule()),
        };
        self.check("pushforward", "tangent of output", out, y)
    }

    fn batched(&self, n: usize) -> Arc<dyn Block> {
        let lanes = |a: &Aval| Aval { dtype: a.dtype, shape: a.shape.inserted(0, n) };
        let body = self.body.clone();
        let outputs: Option<Vec<Aval>> = self.outputs.as_ref().map(|o| o.iter().map(lanes).collect());
        let body: Body = match &self.batching {
            Batching::Own(all) => all.clone(),
            Batching::Body => Arc::new(move |x| Ok(vmap(|x: &Vec<Tensor>| or_panic(body(x)))(&x.to_vec()))),
            Batching::OneByOne => {
                let types = outputs.clone().expect("what reads values says what it returns");
                Arc::new(move |x| one_by_one(&body, x, n, &types))
            }
        };
        let name = self.name;
        let mapped = |rule: &Rule| -> Rule {
            let rule = rule.clone();
            Arc::new(move |x, y, g| {
                let each =
                    |v: &[Vec<Tensor>; 3]| or_panic(rule(&v[0], &v[1], &v[2]).map_err(|e| e.in_op(name)));
                Ok(vmap(each)(&[x.to_vec(), y.to_vec(), g.to_vec()]))
            })
        };
        Arc::new(Custom {
            name,
            inputs: self.inputs.iter().map(lanes).collect(),
            outputs,
            body,
            pullback: self.pullback.as_ref().map(mapped),
            pushforward: self.pushforward.as_ref().map(mapped),
            batching: match self.batching {
                Batching::OneByOne => Batching::OneByOne,
                _ => Batching::Body,
            },
        })
    }
}

/// The lanes one after the other; the types are those of the results of all of them.
fn one_by_one(body: &Body, x: &[Tensor], n: usize, types: &[Aval]) -> Result<Vec<Tensor>> {
    if n == 0 {
        return Ok(types.iter().map(|t| Tensor::zeros_of(t.dtype, &t.shape)).collect());
    }
    let lane = |k: usize| body(&x.iter().map(|t| t.get(k as isize)).collect::<Vec<_>>());
    let lanes = (0..n).map(lane).collect::<Result<Vec<_>>>()?;
    let stacked = |slot: usize| {
        let rows: Vec<&Tensor> = lanes.iter().map(|outputs| &outputs[slot]).collect();
        Tensor::try_stack(&rows, 0)
    };
    (0..types.len()).map(stacked).collect()
}
