//! What the tape keeps of one operation.

use crate::ops::Op;
use crate::tensor::{Link, Node, Tensor};
use crate::{DType, shape::Shape};
use smallvec::SmallVec;
use std::panic::Location;
use std::sync::atomic::{AtomicU64, Ordering};

/// One operation that ran.
pub(crate) struct Record {
    pub op: Op,
    pub inputs: SmallVec<[Input; 2]>,
    pub location: &'static Location<'static>,
}

/// An input of a recorded operation, with its value only if the pullback reads it.
pub(crate) enum Input {
    Saved(Tensor),
    Linked(Link),
}

impl Input {
    pub fn node(&self) -> &Node {
        match self {
            Input::Saved(t) => t.node(),
            Input::Linked(l) => l.node(),
        }
    }

    pub fn link(&self) -> Link {
        match self {
            Input::Saved(t) => t.link(),
            Input::Linked(l) => l.clone(),
        }
    }
}

/// Ids grow with time, so the order of creation is an order in which inputs come before their users.
pub(crate) fn next_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// The primal values that a pullback reads; what it does not name is freed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Uses {
    inputs: u64,
    output: bool,
}

impl Uses {
    pub const NOTHING: Uses = Uses { inputs: 0, output: false };
    pub const OUTPUT: Uses = Uses { inputs: 0, output: true };

    /// The inputs at these positions. Operations of more than 64 inputs read none of them.
    pub fn inputs(at: impl IntoIterator<Item = usize>) -> Uses {
        Uses { inputs: at.into_iter().fold(0, |m, k| m | 1 << k), output: false }
    }

    pub fn and(self, other: Uses) -> Uses {
        Uses { inputs: self.inputs | other.inputs, output: self.output | other.output }
    }

    pub fn input(self, k: usize) -> bool {
        k < 64 && self.inputs >> k & 1 == 1
    }

    pub fn output(self) -> bool {
        self.output
    }
}

/// What a rule sees of the primal computation: the values that `uses` named, and the types of all.
pub(crate) struct At<'a> {
    pub name: &'static str,
    pub inputs: &'a [Input],
    pub output: Option<&'a Tensor>,
    /// Which inputs' cotangents (or tangents) are wanted.
    pub needs: &'a [bool],
}

impl At<'_> {
    /// The value of input `k`.
    pub fn x(&self, k: usize) -> &Tensor {
        match &self.inputs[k] {
            Input::Saved(t) => t,
            Input::Linked(_) => {
                panic!("{}: the rule reads input {k}, but `uses` does not name it", self.name)
            }
        }
    }

    /// The value of the output.
    pub fn y(&self) -> &Tensor {
        self.output.unwrap_or_else(|| {
            panic!("{}: the rule reads the output, but `uses` does not name it", self.name)
        })
    }

    pub fn shape(&self, k: usize) -> &Shape {
        &self.inputs[k].node().shape
    }

    pub fn dtype(&self, k: usize) -> DType {
        self.inputs[k].node().dtype
    }

    pub fn needs(&self, k: usize) -> bool {
        self.needs[k]
    }

    pub fn arity(&self) -> usize {
        self.inputs.len()
    }
}

/// The cotangent of each input; `None` where there is none or it was not needed, never a tensor of zeros.
pub(crate) type Cotangents = SmallVec<[Option<Tensor>; 2]>;
