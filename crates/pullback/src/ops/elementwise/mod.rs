//! Elementwise operations: the rows of the [table](pullback_table) as primitives, and the few that need a file.
//!
//! Pullback and pushforward both follow from the partials of a row. The chain rule multiplies with
//! [`gate`](crate::Tensor::gate), so an exactly zero cotangent stays zero where a partial is infinite or NaN, and an exactly zero
//! partial lets nothing through.

mod clamp;
mod complex;
mod integer;

pub(crate) use clamp::Clamp;
pub(super) use integer::run as on_integers;

use super::*;
use crate::dtype::{Element, with_float};
use crate::error::{Error, err};
use crate::kernels::cost::Cost;
use crate::kernels::map::{self, Map1, Map2};
use crate::kernels::view::View;
use pullback_table::{Integer, Number, Row, elementwise_table, function, row, special as of};
use smallvec::smallvec;

/// What a partial derivative in the table can be: a literal, or a tensor.
trait Partial {
    /// The tangent `t` times this.
    fn chain(self, t: &Tensor) -> Tensor;

    /// The cotangent `g` times the conjugate of this.
    fn pulled(self, g: &Tensor) -> Tensor;
}

impl Partial for f64 {
    fn chain(self, t: &Tensor) -> Tensor {
        match self {
            1.0 => t.clone(),
            -1.0 => -t,
            0.0 => t.zeros_like(),
            c => t * c,
        }
    }

    fn pulled(self, g: &Tensor) -> Tensor {
        self.chain(g)
    }
}

impl Partial for Tensor {
    fn chain(self, t: &Tensor) -> Tensor {
        t.gate(self)
    }

    fn pulled(self, g: &Tensor) -> Tensor {
        if self.dtype().is_complex() { g.gate(self.conj()) } else { g.gate(self) }
    }
}

impl Partial for &Tensor {
    fn chain(self, t: &Tensor) -> Tensor {
        t.gate(self)
    }

    fn pulled(self, g: &Tensor) -> Tensor {
        if self.dtype().is_complex() { g.gate(self.conj()) } else { g.gate(self) }
    }
}

/// The position of a name among a row's arguments; `y`, the value, comes after them. Names are one letter.
const fn position(name: &str, args: &[&str]) -> usize {
    let mut k = 0;
    while k < args.len() && args[k].as_bytes()[0] != name.as_bytes()[0] {
        k += 1;
    }
    k
}

fn primal<'a>(at: &'a At, k: usize) -> &'a Tensor {
    if k < at.arity() { at.x(k) } else { at.y() }
}

/// The row's function on numbers as a kernel.
macro_rules! kernel {
    ($P:ident $m:ident($x:ident) = special) => {
        kernel!(@map $P $m, Map1, ($x));
        impl $P {
            fn run(x: &[Value], out: &mut Output) -> Result<()> {
                special(&|[x]| of::$m(x), Self::value(Cost::OPERAND), x, out);
                Ok(())
            }
        }
    };
    ($P:ident $m:ident($a:ident, $b:ident) = special) => {
        kernel!(@map $P $m, Map2, ($a, $b));
        impl $P {
            fn run(x: &[Value], out: &mut Output) -> Result<()> {
                special(&|[a, b]| of::$m(a, b), Self::value(Cost::OPERAND, Cost::OPERAND), x, out);
                Ok(())
            }
        }
    };
    ($P:ident $m:ident($x:ident) = $value:tt) => { kernel!(@ $P $m, Map1, run1, ($x)); };
    ($P:ident $m:ident($a:ident, $b:ident) = $value:tt) => { kernel!(@ $P $m, Map2, run2, ($a, $b)); };
    (@ $P:ident $m:ident, $Map:ident, $run:ident, ($($x:ident),+)) => {
        kernel!(@map $P $m, $Map, ($($x),+));
        impl $P {
            fn run(x: &[Value], out: &mut Output) -> Result<()> { $run::<$P>(x, out, &row::$P) }
        }
    };
    (@map $P:ident $m:ident, $Map:ident, ($($x:ident),+)) => {
        impl $Map for $P {
            #[inline(always)]
            fn value<N: Number>($($x: N),+) -> N { function::$m($($x),+) }
        }
    };
}

/// The row's formula on tensors, if it has one.
macro_rules! formula {
    (($($x:ident),+) = base, $args:ident) => { None };
    (($($x:ident),+) = special, $args:ident) => { None };
    (($($x:ident),+) = $formula:tt, $args:ident) => {
        match $args {
            [$($x),+] => Some($formula),
            _ => None,
        }
    };
}

/// Whether the kernel of a row can write over an operand: one that takes so long gains nothing.
macro_rules! overwrites {
    (special) => {
        false
    };
    ($value:tt) => {
        true
    };
}

macro_rules! rows {
    ($($(#[$doc:meta])* $P:ident $m:ident $try:ident($($x:ident),+) = $value:tt;
        d = [$($d:expr),+]; reads $([$($r:ident)*])+; $facts:tt)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub(crate) struct $P;

        #[allow(dead_code, reason = "partials that read nothing look no name up")]
        impl $P {
            const ARGS: &[&str] = &[$(stringify!($x)),+];
        }

        kernel!($P $m($($x),+) = $value);

        #[allow(unused_variables, unused_mut, reason = "partials that read nothing use no primal values")]
        impl Primitive for $P {
            const NAME: &'static str = row::$P.name;
            const ARITY: Option<usize> = Some($P::ARGS.len());
            const LEADING_BATCH: bool = true;

            fn infer(&self, x: &[Arg]) -> Result<Aval> {
                same_type(x, &row::$P)
            }

            fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
                Self::run(x, out)
            }

            fn elementwise(&self) -> bool {
                true
            }

            fn overwrites(&self, _: usize, dtype: DType) -> bool {
                dtype.is_float() && overwrites!($value)
            }

            fn flops(&self, _: &[&[usize]], y: &[usize]) -> u64 {
                let operand = |_: &str| Cost::OPERAND;
                Self::value($(operand(stringify!($x))),+).flops() * y.iter().product::<usize>() as u64
            }

            fn formula(&self, args: &[Tensor]) -> Option<Tensor> {
                formula!(($($x),+) = $value, args)
            }

            fn pullback(&self, at: &At, g: &Tensor) -> Cotangents {
                let mut k = 0..;
                smallvec![$(k.next().filter(|&k| at.needs(k)).map(|_| {
                    $(let $r = primal(at, const { position(stringify!($r), $P::ARGS) });)*
                    Partial::pulled($d, g)
                })),+]
            }

            #[allow(unused_mut, reason = "some partials read nothing")]
            fn uses(&self, needs: &[bool]) -> Uses {
                let mut needs = needs.iter();
                let mut uses = Uses::NOTHING;
                $(if needs.next() == Some(&true) {
                    $(uses = uses.and(match const { position(stringify!($r), $P::ARGS) } {
                        k if k < $P::ARGS.len() => Uses::inputs([k]),
                        _ => Uses::OUTPUT,
                    });)*
                })+
                uses
            }

            fn linearity(&self) -> Linearity {
                row::$P.linearity
            }

            fn commutes(&self) -> bool {
                row::$P.commutes
            }

            #[allow(unused_variables, reason = "some partials read nothing")]
            fn pushforward(&self, at: &At, t: &[Option<Tensor>]) -> Result<Tensor> {
                let mut t = t.iter();
                let terms = [$(t.next().and_then(Option::as_ref).map(|t| {
                    $(let $r = primal(at, const { position(stringify!($r), $P::ARGS) });)*
                    Partial::chain($d, t)
                })),+];
                Ok(terms.into_iter().flatten().reduce(|a, b| a + b).expect("a pushforward has at least one tangent"))
            }

            fn samples() -> Vec<Sample> {
                let shapes: [&[usize]; 3] = [&[], &[5], &[2, 3]];
                let inputs = |s| row::$P.domains.iter().map(|&domain| Draw::new(domain, s)).collect::<Vec<_>>();
                shapes.into_iter().map(|s| Sample::new($P, inputs(s))).collect()
            }
        }
    )*};
}
elementwise_table!(rows);

/// Equal shapes and types: floats or, where the operation has versions for them, integers and complex numbers.
fn same_type(x: &[Arg], row: &Row) -> Result<Aval> {
    let first = x[0];
    if let Some(other) = x[1..].iter().find(|a| a.dtype != first.dtype || a.shape != first.shape) {
        let (s, t) = (first.shape, other.shape);
        return Err(err!(Shape, "operands must agree, got {} {s:?} and {} {t:?}", first.dtype, other.dtype));
    }
    let dtype = first.dtype;
    if dtype.is_float()
        || (dtype.is_int() && row.integer.is_some())
        || (dtype.is_complex() && complex::takes(row.name))
    {
        return Ok(Aval { dtype: first.dtype, shape: first.shape.clone() });
    }
    Err(needs_float(first.dtype))
}

/// An error for numbers that are neither less nor greater than others.
pub(crate) fn check_ordered(dtype: DType) -> Result<()> {
    match dtype.is_complex() {
        true => {
            Err(err!(DType, "complex numbers have no order, got {dtype}; take .real(), .imag() or .abs()"))
        }
        false => Ok(()),
    }
}

pub(crate) fn needs_float(dtype: DType) -> Error {
    if dtype.is_complex() {
        return err!(DType, "takes no complex numbers, got {dtype}; use .real(), .imag() or .abs() first");
    }
    err!(DType, "takes floats, got {dtype}; use .cast(DType::F32) or .cast(DType::F64) first")
}

/// Integers and complex numbers.
fn run_other(x: &[Value], out: &mut Output, row: &Row) -> Result<()> {
    if x[0].dtype.is_complex() {
        complex::run(row.name, x, out);
        return Ok(());
    }
    integer::run(row.integer.expect("`infer` has accepted integers"), x, out)
}

fn run1<M: Map1>(x: &[Value], out: &mut Output, row: &Row) -> Result<()> {
    let dtype = x[0].dtype;
    if !dtype.is_float() {
        return run_other(x, out, row);
    }
    with_float!(dtype, T => if let Some((_, x)) = out.overwritten::<T>() {
        map::map1_in_place::<M, T>(x);
        return Ok(());
    });
    with_float!(dtype, T => match x[0].splat::<T>() {
        Some(v) => {
            let mut y = [v];
            map::map1_in_place::<M, T>(&mut y);
            out.splat(y[0]);
        }
        None => map::map1::<M, T>(x[0].view(), out.fill()),
    });
    Ok(())
}

fn run2<M: Map2>(x: &[Value], out: &mut Output, row: &Row) -> Result<()> {
    let dtype = x[0].dtype;
    if !dtype.is_float() {
        return run_other(x, out, row);
    }
    with_float!(dtype, T => if let Some((k, own)) = out.overwritten::<T>() {
        match k {
            0 => map::map2_into_left::<M, T>(own, x[1].view()),
            _ => map::map2_into_right::<M, T>(x[0].view(), own),
        }
        return Ok(());
    });
    with_float!(dtype, T => match (x[0].splat::<T>(), x[1].splat::<T>()) {
        (Some(a), Some(b)) => {
            let mut y = [a];
            map::map2_into_left::<M, T>(&mut y, View::of(&[b]));
            out.splat(y[0]);
        }
        _ => map::map2::<M, T>(x[0].view(), x[1].view(), out.fill()),
    });
    Ok(())
}

/// A function of `N` single numbers on floats of any type.
pub(super) fn special<const N: usize>(
    f: &(dyn Fn([f64; N]) -> f64 + Sync),
    work: Cost,
    x: &[Value],
    out: &mut Output,
) {
    with_float!(x[0].dtype, T => {
        let repeated: [Option<T>; N] = std::array::from_fn(|k| x[k].splat());
        if repeated.iter().all(Option::is_some) {
            let one = repeated.map(|v| [v.expect("all are")]);
            let mut y = [one[0][0]];
            map::special(f, work, one.each_ref().map(View::of), &mut y);
            return out.splat(y[0]);
        }
        map::special(f, work, std::array::from_fn(|k| x[k].view::<T>()), out.fill());
    });
}

/// The same value, which nothing is differentiated through.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct StopGradient;

impl Primitive for StopGradient {
    const NAME: &'static str = "stop_gradient";
    const VIEW: bool = true;
    const LEADING_BATCH: bool = true;

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        Ok(Aval { dtype: x[0].dtype, shape: x[0].shape.clone() })
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        eval_view(self, &x[0], out);
        Ok(())
    }

    fn elementwise(&self) -> bool {
        true
    }

    fn axis_map(&self, x: &[&[usize]], _: usize, axis: usize) -> Option<AxisMap> {
        Some(AxisMap::along(axis, x[0][axis]))
    }

    fn view(&self, _: &[usize], offset: usize, strides: &[isize]) -> Option<Layout> {
        Some(Layout { offset, strides: strides.iter().copied().collect() })
    }

    fn stops_gradient(&self) -> bool {
        true
    }

    fn samples() -> Vec<Sample> {
        vec![Sample::new(StopGradient, [Draw::Index(5, [2, 3].into())])]
    }
}

/// Marks the boundary of a transform.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Identity;

impl Primitive for Identity {
    const NAME: &'static str = "identity";
    const VIEW: bool = true;
    const LEADING_BATCH: bool = true;

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        Ok(Aval { dtype: x[0].dtype, shape: x[0].shape.clone() })
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        eval_view(self, &x[0], out);
        Ok(())
    }

    fn elementwise(&self) -> bool {
        true
    }

    fn axis_map(&self, x: &[&[usize]], _: usize, axis: usize) -> Option<AxisMap> {
        Some(AxisMap::along(axis, x[0][axis]))
    }

    fn view(&self, _: &[usize], offset: usize, strides: &[isize]) -> Option<Layout> {
        Some(Layout { offset, strides: strides.iter().copied().collect() })
    }

    /// `g`.
    fn pullback(&self, _: &At, g: &Tensor) -> Cotangents {
        smallvec![Some(g.clone())]
    }

    fn linearity(&self) -> Linearity {
        Linearity::Linear
    }

    fn samples() -> Vec<Sample> {
        vec![Sample::new(Identity, [Draw::new(Domain::any, &[2, 3])])]
    }
}
