//! Derivatives of functions on numbers, with loops and branches, at the speed of plain code.
//!
//! A function generic over [`Real`] runs on `f64`, and is differentiated by passing its name:
//!
//! ```
//! use pullback::scalar::{self, Function, Real};
//!
//! fn f<T: Real>(x: &[T]) -> T {
//!     let mut y = x[0];
//!     while y < 10.0 {
//!         y = y * x[1] + x[0].sin();
//!     }
//!     y
//! }
//! let x = [1.0, 1.5];
//! let (value, gradient) = scalar::value_and_gradient(f, &x);
//! assert_eq!(value, f(&x));
//! let (_, slope) = scalar::directional(f, &x, &[0.0, 1.0]);
//! assert!((gradient[1] - slope).abs() < 1e-12);
//! ```
//!
//! The number types: [`Dual`] carries tangents (forward mode), [`Var`] records on a [`Tape`] (reverse mode), [`Symbol`] records a
//! [`Function`] that is compiled, [`Taylor`] carries a series. All of them know the functions of the elementwise
//! table, and their derivatives from its partials alone. The [guide](crate::guide::scalar) says which one to use when.

mod chain;
mod checkpoint;
mod derivatives;
mod dual;
mod function;
mod interop;
mod lanes;
mod native;
mod operators;
mod plain;
mod real;
mod slope;
pub mod sparse;
mod tape;
mod taylor;
mod var;
mod wide;

pub use derivatives::{
    directional, gradient, gradient_into, hessian, hessian_into, hvp, hvp_into, jacobian, jacobian_into,
    second_partial, value_and_gradient,
};
pub use dual::{Dual, HyperDual};
pub use function::{Comparison, Function, Guard, Outputs, OutsideBranch, Symbol, Total};
#[cfg(feature = "argmin")]
pub use interop::Problem;
pub use lanes::Lanes;
pub use native::native;
pub use plain::Single;
#[doc(inline)]
pub use pullback_table::Number;
pub use real::Real;
pub use tape::{Position, Recording, Tape, Taped, external, free_tapes, gradient_at, record};
pub use taylor::Taylor;
pub use var::Var;
pub use wide::{WideDual, directions};
