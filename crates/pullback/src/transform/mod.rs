//! Function transforms: each a short composition over the tape.

pub(crate) mod checkpoint;
mod compile;
pub(crate) mod control;
mod custom;
mod forward;
pub mod implicit;
mod jacobian;
mod linear;
mod rerun;
mod reverse;
mod taylor;
mod trace;
mod tree;
mod vmap;

pub(crate) use checkpoint::avals;
pub use checkpoint::{CheckpointOptions, Keep, Policy, checkpoint, checkpoint_with, name};
pub use compile::{Compiled, Executable, Explanation, compile};
pub use control::{
    Bound, ScanOptions, Steps, WhileOptions, associative_scan, cond, fori, map_over, scan, scan_with, switch,
    while_loop, while_loop_with,
};
pub use custom::{CustomOp, CustomRule, custom_op, custom_rule, try_custom_op};
pub use forward::jvp;
pub use jacobian::{gauss_newton_vp, hessian, hvp, jacfwd, jacobian, jacrev};
pub use linear::{linearize, stop_gradient, transpose};
pub use rerun::Rerun;
pub(crate) use reverse::pulled_for;
pub use reverse::{grad, value_and_grad, value_and_grad_aux, vjp};
pub use taylor::taylor;
pub use trace::{trace, try_trace};
pub(crate) use tree::from_leaves;
pub use tree::{NotShown, Path, Probe, Shown, Statics, Tree};
pub use vmap::{Axes, vmap, vmap_axes};
