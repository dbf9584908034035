//! The elementwise functions of Pullback, one row each, and what they are written in.
//!
//! - [`elementwise_table!`] passes the rows to a macro of yours: value, partial derivatives, facts.
//! - [`Number`] is the vocabulary of the rows. Whatever implements it can be put through all of them.
//! - [`Row`] holds the facts of a row as a value: [`row::Tanh`], or all of them in [`ROWS`].
//! - `f64` is a `Number` here, by the standard library and by [`special`].
//!
//! ```
//! use pullback_table::{Number, row};
//! assert_eq!(Number::sigmoid(0.0), 0.5);
//! assert!(row::Mul.commutes && !row::Sub.commutes);
//! ```
//!
//! Programs use the crate `pullback`; this one is for what has to know every function, such as another front end.

pub mod function;
mod number;
mod plain;
pub mod row;
pub mod special;
mod table;

pub use number::Number;
pub use row::{Domain, Integer, Linearity, ROWS, Row};
