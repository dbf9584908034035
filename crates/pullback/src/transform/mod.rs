//! Function transforms: each a short composition over the tape.

mod forward;
mod reverse;
mod tree;

pub use forward::jvp;
pub use reverse::{grad, value_and_grad, vjp};
pub(crate) use tree::from_leaves;
pub use tree::{Path, Tree};
