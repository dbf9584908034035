//! Checking that a graph is one: every value is made before it is read, and has the type that its operation gives it.

use super::build::infer;
use super::{Graph, Ref};
use crate::error::{Error, Result, err};
use crate::ops::Aval;

impl Graph {
    /// An error if the graph is not well formed: a value read before it is made, a wrong number of inputs, a type that is not what the
    /// operation gives. Graphs that were traced or parsed are well formed.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let g = trace(|x: &Tensor| x.exp().sum(), &Tensor::zeros([3]));
    /// assert!(g.verify().is_ok());
    /// ```
    pub fn verify(&self) -> Result<()> {
        for (k, step) in self.steps.iter().enumerate() {
            let at = |e: Error| err!(Structure, "%{k} = {}: {e}", step.op.name());
            let inputs =
                step.args.iter().map(|&a| self.known(a, k)).collect::<Result<Vec<Aval>>>().map_err(at)?;
            let types = infer(&step.op, &inputs).map_err(at)?;
            if types != step.avals {
                return Err(at(err!(Structure, "is said to be {:?}, but is {types:?}", step.avals)));
            }
        }
        for &a in self.outputs.iter().chain(self.names.iter().map(|(_, a)| a)) {
            self.known(a, self.steps.len())?;
        }
        Ok(())
    }

    /// The type of a value that is there before step `k`.
    fn known(&self, at: Ref, k: usize) -> Result<Aval> {
        let there = match at {
            Ref::Input(i) => i < self.inputs.len(),
            Ref::Const(i) => i < self.consts.len(),
            Ref::Step(i, slot) => i < k && slot < self.steps[i].avals.len(),
        };
        match there {
            true => Ok(self.aval(at)),
            false => Err(err!(Structure, "reads a value that is not there: {at:?}")),
        }
    }
}
