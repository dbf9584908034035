//! A number that counts the operations a tape without shortcuts would record: all those on variables, of one
//! argument or two, with a constant operand or not.

use pullback::scalar::{Number, Real};
use std::cell::Cell;
use std::fmt;
use std::iter::{Product, Sum};
use std::ops;

thread_local! {
    static OPERATIONS: Cell<usize> = const { Cell::new(0) };
}

/// How many operations on variables `f` runs at `x`.
pub fn operations(f: fn(&[Counted]) -> Counted, x: &[f64]) -> usize {
    let x: Vec<Counted> = x.iter().map(|&value| Counted { value, active: true }).collect();
    OPERATIONS.set(0);
    f(&x);
    OPERATIONS.get()
}

/// A value, and whether it depends on a variable.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counted {
    value: f64,
    active: bool,
}

impl Counted {
    /// The result of an operation on operands of which one is a variable, or none.
    fn result(value: f64, active: bool) -> Self {
        OPERATIONS.set(OPERATIONS.get() + usize::from(active));
        Counted { value, active }
    }
}

macro_rules! method {
    ($m:ident($x:ident $(, $b:ident)?) = base) => {
        fn $m(self $(, $b: Self)?) -> Self {
            Counted::result(Number::$m(self.value $(, $b.value)?), self.active $(| $b.active)?)
        }
    };
    ($m:ident $x:tt = special) => { method! { $m $x = base } };
    ($m:ident $x:tt = $other:tt) => {};
}

macro_rules! number {
    ($($(#[$doc:meta])* $P:ident $m:ident $try:ident $x:tt = $value:tt;
        d = $d:tt; reads $([$($r:ident)*])+; $facts:tt)*) => {
        impl Number for Counted {
            $(method! { $m $x = $value })*
        }
    };
}
pullback_table::elementwise_table!(number);

impl Real for Counted {
    fn constant(value: f64) -> Self {
        Counted { value, active: false }
    }
    fn value(self) -> f64 {
        self.value
    }
    fn powi(self, n: i32) -> Self {
        Counted::result(self.value.powi(n), self.active)
    }
    fn powf(self, p: f64) -> Self {
        Counted::result(self.value.powf(p), self.active)
    }
}

macro_rules! operators {
    ($($Op:ident $op:ident $Assign:ident $assign:ident),+) => {$(
        impl ops::$Op for Counted {
            type Output = Counted;
            fn $op(self, other: Counted) -> Counted {
                let active = self.active || other.active;
                Counted::result(ops::$Op::$op(self.value, other.value), active)
            }
        }
        impl ops::$Op<f64> for Counted {
            type Output = Counted;
            fn $op(self, other: f64) -> Counted {
                Counted::result(ops::$Op::$op(self.value, other), self.active)
            }
        }
        impl ops::$Assign for Counted {
            fn $assign(&mut self, other: Counted) {
                *self = ops::$Op::$op(*self, other);
            }
        }
        impl ops::$Assign<f64> for Counted {
            fn $assign(&mut self, other: f64) {
                *self = ops::$Op::$op(*self, other);
            }
        }
    )+};
}
operators!(Add add AddAssign add_assign, Sub sub SubAssign sub_assign, Mul mul MulAssign mul_assign);
operators!(Div div DivAssign div_assign, Rem rem RemAssign rem_assign);

impl ops::Neg for Counted {
    type Output = Counted;
    fn neg(self) -> Counted {
        Counted::result(-self.value, self.active)
    }
}

impl Sum for Counted {
    fn sum<I: Iterator<Item = Self>>(terms: I) -> Self {
        terms.fold(Counted::constant(0.0), |s, x| s + x)
    }
}
impl<'a> Sum<&'a Counted> for Counted {
    fn sum<I: Iterator<Item = &'a Counted>>(terms: I) -> Self {
        terms.copied().sum()
    }
}
impl Product for Counted {
    fn product<I: Iterator<Item = Self>>(factors: I) -> Self {
        factors.fold(Counted::constant(1.0), |p, x| p * x)
    }
}
impl<'a> Product<&'a Counted> for Counted {
    fn product<I: Iterator<Item = &'a Counted>>(factors: I) -> Self {
        factors.copied().product()
    }
}

impl From<f64> for Counted {
    fn from(value: f64) -> Self {
        Counted::constant(value)
    }
}
impl PartialEq for Counted {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}
impl PartialEq<f64> for Counted {
    fn eq(&self, other: &f64) -> bool {
        self.value == *other
    }
}
impl PartialOrd for Counted {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        self.value.partial_cmp(&other.value)
    }
}
impl PartialOrd<f64> for Counted {
    fn partial_cmp(&self, other: &f64) -> Option<std::cmp::Ordering> {
        self.value.partial_cmp(other)
    }
}
impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}
