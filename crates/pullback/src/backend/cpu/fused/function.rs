//! What one instruction of a fused program computes for each element, and the loops that do it.
//!
//! Truth values are numbers here, 0 or 1, so that they need no registers of their own.

use super::Real;
use super::formulas::Formula;
use crate::kernels::combined::{
    GateAdd, GateGate, GateMul, Map3, MulAdd, MulMul, MulSub, NegMulAdd, Select, SinCos, loop_pair,
    loop2_left, loop2_right, loop3, loop3_middle, loop3_rest, loop3_right, zip_left, zip_right,
};
use crate::kernels::cost::Cost;
use crate::kernels::dispatch::{loop1, loop2, zip_tile};
use crate::kernels::lane::{Lane, Portable};
use crate::kernels::map::{Map1, Map2};
use crate::kernels::math::{Float, pick};
use crate::ops::{self, Connective, Op, Relation};
use pullback_table::{Number, elementwise_table, row};

/// A loop over three vectors.
type Loop3<F> = fn(&[F], &[F], &[F], &mut [F]);

/// The loops of a function: one for each way that its operands can come. The first operand of three is always a vector.
#[derive(Clone, Copy)]
pub(super) enum Loops<F: 'static> {
    One(fn(&[F], &mut [F])),
    Two {
        both: fn(&[F], &[F], &mut [F]),
        right: fn(&[F], F, &mut [F]),
        left: fn(F, &[F], &mut [F]),
    },
    Three {
        all: Loop3<F>,
        middle: fn(&[F], F, &[F], &mut [F]),
        last: fn(&[F], &[F], F, &mut [F]),
        rest: fn(&[F], F, F, &mut [F]),
    },
}

fn three<F: Float, T: Map3>() -> Loops<F> {
    Loops::Three {
        all: loop3::<T, F>,
        middle: loop3_middle::<T, F>,
        last: loop3_right::<T, F>,
        rest: loop3_rest::<T, F>,
    }
}

fn two<F: Float, M: Map2>() -> Loops<F> {
    Loops::Two { both: loop2::<M, F>, right: loop2_right::<M, F>, left: loop2_left::<M, F> }
}

/// A loop of calls, which is compiled once and not for each instruction set.
#[inline(never)]
fn single1<F: Float, M: Map1>(x: &[F], out: &mut [F]) {
    out.iter_mut().zip(x).for_each(|(out, &x)| *out = M::value(Lane::<F, Portable>::new(x)).0);
}

/// The same for two operands.
#[inline(never)]
fn single2<F: Float, M: Map2>(a: &[F], b: &[F], out: &mut [F]) {
    let pairs = a.iter().zip(b);
    out.iter_mut()
        .zip(pairs)
        .for_each(|(out, (&a, &b))| *out = M::value(Lane::<F, Portable>::new(a), Lane::new(b)).0);
}

/// Loops of a function on plain floats.
macro_rules! plain {
    ($f:expr) => {
        Loops::Two {
            both: |a, b, out| zip_tile(a, b, out, $f),
            right: |a, b, out| zip_right(a, b, out, $f),
            left: |a, b, out| zip_left(a, b, out, $f),
        }
    };
}

#[inline(always)]
fn truth<F: Float>(holds: bool) -> F {
    pick(holds, F::ONE, F::ZERO)
}

/// `-(a b)`.
struct NegMul;
impl Map2 for NegMul {
    #[inline(always)]
    fn value<N: Number>(a: N, b: N) -> N {
        -(a * b)
    }
}

/// The derivative of a row of the table.
struct Slope<P>(std::marker::PhantomData<P>);

/// The derivatives of the rows that are [`Sloped`].
macro_rules! slope {
    (Gelu $($row:tt)*) => { slope!(@ Gelu $($row)*); };
    (Silu $($row:tt)*) => { slope!(@ Silu $($row)*); };
    (@ $P:ident ($x:ident) [$d:expr]) => {
        impl Map1 for Slope<ops::$P> {
            #[inline(always)]
            fn value<N: Number>($x: N) -> N {
                $d
            }
        }
    };
    ($($other:tt)*) => {};
}

macro_rules! slopes {
    ($($(#[$doc:meta])* $P:ident $m:ident $try:ident $x:tt = $value:tt;
        d = $d:tt; reads $([$($r:ident)*])+; $facts:tt)*) => {
        $(slope! { $P $x $d })*
    };
}
elementwise_table!(slopes);

/// The loops and the cost of a row of the table.
macro_rules! of_row {
    (loops $P:ident ($a:ident) special) => {
        Loops::One(single1::<F, ops::$P>)
    };
    (loops $P:ident ($a:ident, $b:ident) special) => {
        Loops::Two {
            both: single2::<F, ops::$P>,
            right: |a, b, out| {
                a.iter()
                    .zip(out)
                    .for_each(|(a, out)| single2::<F, ops::$P>(&[*a], &[b], std::slice::from_mut(out)))
            },
            left: |a, b, out| {
                b.iter()
                    .zip(out)
                    .for_each(|(b, out)| single2::<F, ops::$P>(&[a], &[*b], std::slice::from_mut(out)))
            },
        }
    };
    (loops $P:ident ($a:ident) $value:tt) => {
        Loops::One(loop1::<ops::$P, F>)
    };
    (loops $P:ident ($a:ident, $b:ident) $value:tt) => {
        two::<F, ops::$P>()
    };
    (work $P:ident ($a:ident)) => {
        <ops::$P as Map1>::value(Cost::OPERAND).work
    };
    (work $P:ident ($a:ident, $b:ident)) => {
        <ops::$P as Map2>::value(Cost::OPERAND, Cost::OPERAND).work
    };
}

macro_rules! functions {
    ($($(#[$doc:meta])* $P:ident $m:ident $try:ident($($x:ident),+) = $value:tt;
        d = [$($d:expr),+]; reads $([$($r:ident)*])+; $facts:tt)*) => {
        /// A function of one to three numbers: the rows of the table, comparisons and logic, what two of them make together, and derivatives.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Function {
            $($P,)*
            Equal, Unequal, Less, AtMost, Greater, AtLeast, And, Or, Xor, Not, IsTrue,
            Select, NegMul, MulAdd, MulSub, NegMulAdd, GateAdd, MulMul, GateMul, GateGate,
            Slope(Sloped),
        }

        impl Function {
            /// The function of an operation, if it is one of numbers element by element.
            pub fn of(op: &Op) -> Option<Function> {
                Some(match op {
                    $(Op::$P(_) => Function::$P,)*
                    Op::Compare(c) => match c.relation {
                        Relation::Eq => Function::Equal,
                        Relation::Ne => Function::Unequal,
                        Relation::Lt => Function::Less,
                        Relation::Le => Function::AtMost,
                        Relation::Gt => Function::Greater,
                        Relation::Ge => Function::AtLeast,
                    },
                    Op::Logic(l) => match l.connective {
                        Connective::And => Function::And,
                        Connective::Or => Function::Or,
                        Connective::Xor => Function::Xor,
                    },
                    Op::Not(_) => Function::Not,
                    Op::Where(_) => Function::Select,
                    _ => return None,
                })
            }

            pub fn loops<F: Float>(self) -> Loops<F> {
                match self {
                    $(Function::$P => of_row!(loops $P ($($x),+) $value),)*
                    Function::Equal => plain!(|a, b| truth(a == b)),
                    Function::Unequal => plain!(|a, b| truth(a != b)),
                    Function::Less => plain!(|a, b| truth(a < b)),
                    Function::AtMost => plain!(|a, b| truth(a <= b)),
                    Function::Greater => plain!(|a, b| truth(a > b)),
                    Function::AtLeast => plain!(|a, b| truth(a >= b)),
                    Function::And => plain!(|a, b| a * b),
                    Function::Or => plain!(|a, b| pick(a > b, a, b)),
                    Function::Xor => plain!(|a, b| truth(a != b)),
                    Function::Not => Loops::One(|x, out| zip_right(x, F::ONE, out, |x, one| one - x)),
                    Function::IsTrue => Loops::One(|x, out| zip_right(x, F::ZERO, out, |x, zero| truth(x != zero))),
                    Function::Select => three::<F, Select>(),
                    Function::NegMul => two::<F, NegMul>(),
                    Function::MulAdd => three::<F, MulAdd>(),
                    Function::MulSub => three::<F, MulSub>(),
                    Function::NegMulAdd => three::<F, NegMulAdd>(),
                    Function::GateAdd => three::<F, GateAdd>(),
                    Function::MulMul => three::<F, MulMul>(),
                    Function::GateMul => three::<F, GateMul>(),
                    Function::GateGate => three::<F, GateGate>(),
                    Function::Slope(of) => of.loops(),
                }
            }

            /// Whether it gives the same bits with its operands in the other order.
            pub fn commutes(self) -> bool {
                match self {
                    $(Function::$P => row::$P.commutes,)*
                    _ => false,
                }
            }

            /// Tenths of a nanosecond for an element, roughly.
            pub fn work(self) -> usize {
                match self {
                    $(Function::$P => of_row!(work $P ($($x),+)),)*
                    Function::Slope(of) => of.work(),
                    _ => 1,
                }
            }
        }
    };
}
elementwise_table!(functions);

/// A loop with two results.
pub(super) type Both<F> = fn(&[F], &mut [F], &mut [F]);

macro_rules! sloped {
    ($($P:ident)*) => {
        /// The rows whose derivative is worth an instruction, because it has most of its work in common with the value.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Sloped {
            $($P),*
        }

        impl Sloped {
            /// The row that a function is, or is the derivative of.
            fn of(f: Function) -> Option<Sloped> {
                match f {
                    $(Function::$P => Some(Sloped::$P),)*
                    Function::Slope(of) => Some(of),
                    _ => None,
                }
            }

            fn loops<F: Float>(self) -> Loops<F> {
                match self {
                    $(Sloped::$P => Loops::One(loop1::<Slope<ops::$P>, F>),)*
                }
            }

            fn work(self) -> usize {
                match self {
                    $(Sloped::$P => Slope::<ops::$P>::value(Cost::OPERAND).work,)*
                }
            }

            /// The row and its derivative, and the loop that computes both.
            fn pair<F: Float>(self) -> ([Function; 2], Both<F>) {
                match self {
                    $(Sloped::$P => {
                        ([Function::$P, Function::Slope(self)], loop_pair::<(ops::$P, Slope<ops::$P>), F>)
                    })*
                }
            }
        }

        impl Function {
            /// The functions that are worth finding where a graph has their formulas.
            pub fn written_out<F: Real>() -> Vec<(Function, Formula<F>)> {
                let all: &[(Function, Formula<F>)] = &[$(
                    (Function::$P, |x| ops::$P::value(x)),
                    (Function::Slope(Sloped::$P), |x| Slope::<ops::$P>::value(x)),
                )*];
                all.to_vec()
            }
        }
    };
}
sloped! { Gelu Silu }

impl Function {
    /// The two functions, of which this is one, that one loop computes of the same argument.
    pub fn pair<F: Float>(self) -> Option<([Function; 2], Both<F>)> {
        use Function::*;
        Some(match self {
            Sin | Cos => ([Sin, Cos], loop_pair::<SinCos, F>),
            other => Sloped::of(other)?.pair(),
        })
    }

    /// The value for operands that are known.
    pub fn fold<F: Float>(self, x: &[F]) -> F {
        let mut out = [F::ZERO];
        match (self.loops::<F>(), x) {
            (Loops::One(f), [x]) => f(&[*x], &mut out),
            (Loops::Two { right, .. }, [a, b]) => right(&[*a], *b, &mut out),
            (Loops::Three { rest, .. }, [a, b, c]) => rest(&[*a], *b, *c, &mut out),
            _ => unreachable!("{self:?} does not take {} operands", x.len()),
        }
        out[0]
    }
}
