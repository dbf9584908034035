//! Derivatives of functions on numbers, with loops and branches, at the speed of plain code.

mod chain;
mod checkpoint;
mod derivatives;
mod dual;
mod function;
mod interop;
mod operators;
mod plain;
mod real;
mod slope;
pub mod sparse;
mod special;
mod tape;
mod taylor;
mod var;
mod wide;

pub use crate::number::Number;
pub use derivatives::{
    directional, gradient, gradient_into, hessian, hessian_into, hvp, hvp_into, jacobian, jacobian_into,
    second_partial, value_and_gradient,
};
pub use dual::{Dual, HyperDual};
pub use function::{Comparison, Function, Guard, Outputs, OutsideBranch, Symbol};
#[cfg(feature = "argmin")]
pub use interop::Problem;
pub use plain::Single;
pub use real::Real;
pub use tape::{Position, Recording, Tape, Taped, external, free_tapes};
pub use taylor::Taylor;
pub use var::Var;
pub use wide::{WideDual, directions};
