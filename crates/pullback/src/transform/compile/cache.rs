//! What a compiled function keeps: a graph for each signature of its inputs.

use super::run::CompiledGraph;
use crate::DType;
use crate::error::{Result, err};
use crate::ops::Aval;
use crate::tensor::Tensor;
use crate::transform::{Statics, Tree, avals};
use std::collections::VecDeque;
use std::panic::Location;
use std::sync::Arc;

/// What a graph depends on: the types of the leaves, and everything that is not a leaf.
#[derive(Clone, PartialEq)]
pub(super) struct Signature {
    avals: Vec<Aval>,
    statics: Statics,
}

impl Signature {
    pub fn of<X: Tree>(x: &X) -> Result<Signature> {
        let statics = Statics::of(x);
        match statics.hidden() {
            Some(field) => Err(err!(
                Structure,
                "the skipped field `{field}` has a type without `Debug`, so that nobody can say whether it has changed since the \
                 function was traced; derive `Debug` for it"
            )),
            None => Ok(Signature { avals: avals(x), statics }),
        }
    }

    /// What is new here, in words.
    fn difference<X: Tree>(&self, before: &Signature, x: &X) -> String {
        let named = |what: &str, name: &str| match name {
            "" => what.to_string(),
            name => format!("{what} `{name}`"),
        };
        let change = self.statics.change(&before.statics, x).map(|(path, was, is)| {
            let place = if path.is_empty() { "the input".into() } else { format!("`.{path}`") };
            let is_number = was.parse::<f64>().is_ok() && is.parse::<f64>().is_ok() && !path.ends_with(')');
            let advice = if is_number { ": put a number that changes into a tensor" } else { "" };
            format!("{place} was {was} and is {is}{advice}")
        });
        let (n, m) = (self.avals.len(), before.avals.len());
        if n != m {
            let why = change.map_or(String::new(), |change| format!(": {change}"));
            return format!("the input has {n} tensors, and had {m}{why}");
        }
        match self.avals.iter().zip(&before.avals).position(|(a, b)| a != b) {
            Some(k) => {
                let (is, was) = (&self.avals[k], &before.avals[k]);
                let wider = is.dtype != was.dtype && is.dtype == DType::promote(is.dtype, was.dtype);
                let advice = match wider && was.dtype.is_float() {
                    true => format!(
                        ": if it was meant to stay {}, strict_dtypes finds the operation that made it {}",
                        was.dtype, is.dtype
                    ),
                    false => String::new(),
                };
                format!("{} is {is}, and was {was}{advice}", named("the input", &x.names()[k]))
            }
            None => {
                change.unwrap_or_else(|| "something of the input that is not a tensor has changed".into())
            }
        }
    }
}

/// A traced function.
pub(super) struct Entry<Y> {
    pub block: Arc<CompiledGraph>,
    /// The tensors that it captured: the last inputs of the graph.
    pub captured: Vec<Tensor>,
    /// A result, for its structure.
    pub structure: Y,
}

/// Entries, the last used first.
pub(super) struct Cache<Y> {
    entries: VecDeque<(Signature, Arc<Entry<Y>>)>,
    limit: usize,
    traces: usize,
    reasons: Vec<String>,
}

/// After so many traces of one function it is worth a word.
const MANY: usize = 16;

impl<Y> Cache<Y> {
    pub fn new() -> Self {
        Cache { entries: VecDeque::new(), limit: 64, traces: 0, reasons: Vec::new() }
    }

    pub fn limit(&mut self, n: usize) {
        self.limit = n.max(1);
        self.entries.truncate(self.limit);
    }

    pub fn traces(&self) -> usize {
        self.traces
    }

    pub fn reasons(&self) -> &[String] {
        &self.reasons
    }

    pub fn entries(&self) -> impl Iterator<Item = &Entry<Y>> {
        self.entries.iter().map(|(_, e)| &**e)
    }

    pub fn find(&mut self, signature: &Signature) -> Option<Arc<Entry<Y>>> {
        let k = self.entries.iter().position(|(s, _)| s == signature)?;
        let found = self.entries.remove(k)?;
        let entry = found.1.clone();
        self.entries.push_front(found);
        Some(entry)
    }

    pub fn add<X: Tree>(
        &mut self,
        signature: Signature,
        x: &X,
        entry: Arc<Entry<Y>>,
        location: &'static Location<'static>,
    ) {
        self.traces += 1;
        if let Some((last, _)) = self.entries.front() {
            // The reasons of a loop without end would need memory without end.
            let reason = signature.difference(last, x);
            if self.traces == MANY {
                eprintln!(
                    "pullback: the function compiled at {location} has been traced {MANY} times, the last time because {reason}; \
                     each trace costs more than a call (pad the inputs to few shapes, or do not compile)"
                );
            }
            if self.reasons.len() < 1000 {
                self.reasons.push(reason);
            }
        }
        self.entries.truncate(self.limit - 1);
        self.entries.push_front((signature, entry));
    }
}
