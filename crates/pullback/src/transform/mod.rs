//! Function transforms: each a short composition over the tape.

mod checkpoint;
pub(crate) mod control;
mod forward;
mod reverse;
mod tree;
mod vmap;

pub use checkpoint::{Policy, checkpoint, checkpoint_dynamic, checkpoint_policy, checkpoint_verified, name};
pub use control::{
    Schedule, Steps, associative_scan, cond, fori, map_over, scan, scan_checkpointed,
    scan_checkpointed_dynamic, switch, while_loop, while_loop_bounded,
};
pub use forward::jvp;
pub use reverse::{grad, value_and_grad, vjp};
pub(crate) use tree::from_leaves;
pub use tree::{Path, Tree};
pub use vmap::{vmap, vmap_axes};
