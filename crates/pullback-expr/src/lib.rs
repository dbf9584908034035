//! The expression language of the program `pullback`, and what can be said of a formula without tensors.
//!
//! ```
//! use pullback_expr::{parse, scalar};
//! let program = parse("x1*x2 + sin(x1)").unwrap();
//! assert_eq!(program.inputs(), ["x1", "x2"]);
//! let point = [("x1".to_string(), scalar::Array::number(2.0)), ("x2".to_string(), scalar::Array::number(3.0))];
//! let trace = scalar::trace(&program, &point).unwrap();
//! assert_eq!(trace.gradient("x1")[0], 3.0 + 2f64.cos());
//! ```
//!
//! - [`parse`] makes a [`Program`] of a text; a [`Problem`] points at the place that is wrong.
//! - [`interpret`] runs a program over any [`Domain`]: tensors in the program `pullback`, numbers in [`scalar`].
//! - [`scalar`] keeps every operation with its value, its adjoint and its contributions; it is what runs inside the page of `pullback view`.
//! - [`symbolic`] writes the local derivatives of the elementwise table as formulas.
//! - [`layout`] places a graph in layers.
//!
//! The derivative rules are those of the library: both are made of the same [table](pullback_table).

pub mod function;
mod interpret;
pub mod json;
pub mod layout;
mod lexer;
mod names;
mod number_format;
mod parser;
pub mod picture;
mod problem;
mod program;
pub mod scalar;
pub mod symbolic;
mod vocabulary;
#[cfg(target_arch = "wasm32")]
mod wasm;

pub use interpret::{Domain, Item, Values, interpret};
pub use number_format::{Digits, number};
pub use parser::{parse, parse_point};
pub use problem::{Problem, Span};
pub use program::{Builtin, Connective, Index, Node, Program, Reduction, Relation, Statement};
