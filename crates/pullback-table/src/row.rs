//! What is known of each row besides its value and its partial derivatives, as a constant with the name of the row.

use crate::elementwise_table;

/// What is known of a row of the elementwise table.
///
/// ```
/// use pullback_table::{Domain, Integer, row};
/// assert_eq!((row::Ln.name, row::Ln.domains), ("ln", &[Domain::positive][..]));
/// assert!(matches!(row::Maximum.integer, Some(Integer::Binary(f)) if f(2, 3) == 3));
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Row {
    /// The method of [`Number`](crate::Number), and the name in graphs and expressions.
    pub name: &'static str,
    /// Its documentation.
    pub about: &'static str,
    /// The names of its arguments.
    pub arguments: &'static [&'static str],
    /// How it depends on its arguments.
    pub linearity: Linearity,
    /// Where tests draw each argument from.
    pub domains: &'static [Domain],
    /// The work for an element in a vector loop, in additions; a row that is a formula has 0 here, and costs what its parts do.
    pub cost: usize,
    /// Whether the order of the arguments does not matter, to the last bit.
    pub commutes: bool,
    /// Whether vector loops cover a limited range only: beyond it they answer NaN, and the element has to be computed again.
    pub limited: bool,
    /// The function on integers, where it has such a version.
    pub integer: Option<Integer>,
}

/// How an operation depends on its differentiable inputs. Forward mode follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Linearity {
    /// Linear in all inputs together.
    Linear,
    /// Linear in each input while the others stay.
    Multilinear,
    /// Anything else.
    Nonlinear,
}

/// Where test inputs are drawn from, at a distance from kinks and poles.
#[allow(non_camel_case_types, reason = "as the rows of the table write them")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Domain {
    /// -1.5 to 1.5.
    any,
    /// 0.3 to 1.5, of either sign.
    nonzero,
    /// 0.3 to 1.8.
    positive,
    /// -0.8 to 0.8.
    unit,
    /// 0.2 to 0.8 above an integer.
    fractional,
    /// 1.2 to 2.7.
    above_one,
    /// 0.1 to 0.9.
    probability,
    /// 2.3 to 2.6, of either sign: no multiple of a `divisor`.
    dividend,
    /// 0.92 to 1.08.
    divisor,
    /// 0.2 to 0.8 above 0, 1 or 2: the order of a function, which is rounded down.
    order,
}

/// A function on integers. They wrap on overflow, as two's complement does.
#[derive(Clone, Copy, Debug)]
pub enum Integer {
    /// Of one argument.
    Unary(fn(i64) -> i64),
    /// Of two arguments.
    Binary(fn(i64, i64) -> i64),
    /// Of two arguments, of which the second must not be 0.
    Division(fn(i64, i64) -> i64),
}

/// The remainder of the division rounded down, with the sign of `b`.
fn floor_rem(a: i64, b: i64) -> i64 {
    let r = a.wrapping_rem(b);
    if r != 0 && (r < 0) != (b < 0) { r + b } else { r }
}

impl Row {
    const fn new(
        name: &'static str,
        about: &'static str,
        arguments: &'static [&'static str],
        linearity: Linearity,
        domains: &'static [Domain],
    ) -> Row {
        let (cost, commutes, limited, integer) = (0, false, false, None);
        Row { name, about, arguments, linearity, domains, cost, commutes, limited, integer }
    }

    const fn cost(self, cost: usize) -> Row {
        Row { cost, ..self }
    }

    const fn commutes(self) -> Row {
        Row { commutes: true, ..self }
    }

    const fn limited(self) -> Row {
        Row { limited: true, ..self }
    }

    const fn integer(self, integer: Integer) -> Row {
        Row { integer: Some(integer), ..self }
    }
}

macro_rules! rows {
    ($($(#[doc = $doc:literal])* $P:ident $m:ident $try:ident($($x:ident),+) = $value:tt; d = $d:tt; reads $([$($r:ident)*])+;
        { $lin:ident; domain $($dom:ident)+ $(; $fact:ident $($arg:expr)?)* })*) => {
        $(
            $(#[doc = $doc])*
            #[allow(non_upper_case_globals, reason = "the operation of the row has this name")]
            pub const $P: Row = {
                #[allow(unused_imports, reason = "few rows have a version on integers")]
                use Integer::*;
                Row::new(
                    stringify!($m),
                    concat!($($doc),*),
                    &[$(stringify!($x)),+],
                    Linearity::$lin,
                    &[$(Domain::$dom),+],
                )$(.$fact($($arg)?))*
            };
        )*

        /// All rows, in the order of the table.
        pub const ROWS: &[Row] = &[$($P),*];
    };
}
elementwise_table!(rows);

#[cfg(test)]
mod tests {
    use super::*;

    macro_rules! every_row {
        ($($(#[$doc:meta])* $P:ident $m:ident $try:ident($($x:ident),+) = $value:tt; d = [$($d:expr),+]; reads $([$($r:ident)*])+; $facts:tt)*) => {
            /// The value's kind, and how many partials, lists of what they read and domains a row has.
            const WRITTEN: &[(&str, [usize; 3])] = &[$((
                stringify!($value),
                [[$(stringify!($d)),+].len(), [$(&[$(stringify!($r)),*] as &[&str]),+].len(), $P.domains.len()],
            )),*];
        };
    }
    elementwise_table!(every_row);

    #[test]
    fn every_row_has_all_parts() {
        assert!(ROWS.len() > 45 && ROWS.len() == WRITTEN.len());
        for (row, (value, parts)) in ROWS.iter().zip(WRITTEN) {
            assert_eq!(*parts, [row.arguments.len(); 3], "{}", row.name);
            assert_eq!(row.cost == 0, value.starts_with('{'), "{} has a formula or a cost", row.name);
            assert!(!row.about.trim().is_empty(), "{}", row.name);
            assert!(row.arguments.len() == 2 || !row.commutes, "{}", row.name);
            let arity = match row.integer {
                None => row.arguments.len(),
                Some(Integer::Unary(_)) => 1,
                Some(Integer::Binary(_) | Integer::Division(_)) => 2,
            };
            assert_eq!(arity, row.arguments.len(), "{} on integers", row.name);
        }
    }

    #[test]
    fn names_are_unique() {
        for (k, row) in ROWS.iter().enumerate() {
            assert!(ROWS[..k].iter().all(|other| other.name != row.name), "{}", row.name);
        }
    }
}
