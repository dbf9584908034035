//! Function transforms: each a short composition over the tape.

pub(crate) mod checkpoint;
mod compile;
pub(crate) mod control;
mod custom;
mod forward;
pub mod implicit;
mod jacobian;
mod linear;
mod reverse;
mod taylor;
mod trace;
mod tree;
mod vmap;

pub(crate) use checkpoint::avals;
pub use checkpoint::{
    Keep, Policy, checkpoint, checkpoint_dynamic, checkpoint_offloaded, checkpoint_policy,
    checkpoint_verified, name,
};
pub use compile::{Compiled, Executable, Explanation, compile};
pub use control::{
    Steps, associative_scan, cond, fori, map_over, scan, scan_checkpointed, scan_checkpointed_dynamic,
    switch, while_loop, while_loop_bounded, while_loop_checkpointed, while_loop_checkpointed_dynamic,
};
pub use custom::{CustomOp, CustomRule, custom_op, custom_rule, try_custom_op};
pub use forward::jvp;
pub use jacobian::{gauss_newton_vp, hessian, hvp, jacfwd, jacobian, jacrev};
pub use linear::{linearize, stop_gradient, transpose};
pub(crate) use reverse::pulled_for;
pub use reverse::{grad, value_and_grad, value_and_grad_aux, vjp};
pub use taylor::taylor;
pub use trace::{trace, try_trace};
pub(crate) use tree::from_leaves;
pub use tree::{NotShown, Path, Probe, Shown, Statics, Tree};
pub use vmap::{vmap, vmap_axes};
