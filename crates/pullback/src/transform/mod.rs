//! Function transforms: each a short composition over the tape.

mod checkpoint;
mod forward;
mod reverse;
mod tree;
mod vmap;

pub use checkpoint::{checkpoint, checkpoint_dynamic};
pub use forward::jvp;
pub use reverse::{grad, value_and_grad, vjp};
pub(crate) use tree::from_leaves;
pub use tree::{Path, Tree};
pub use vmap::{vmap, vmap_axes};
