//! Scans along an axis: sums, products and logarithms of sums so far, linear recurrences, and where the extreme so far stands.

use super::elementwise::{check_ordered, needs_float};
use super::*;
use crate::dtype::{Element, Scalar, with_float, with_real};
use crate::error::err;
use crate::kernels::scan;
use smallvec::smallvec;

pub(super) fn check_axis(axis: usize, x: Arg) -> Result<()> {
    match axis < x.shape.len() {
        true => Ok(()),
        false => Err(err!(Axis, "axis {axis} is not one of shape {:?}", x.shape)),
    }
}

fn scanned(op: impl Into<Op>, inputs: &[&Tensor]) -> Tensor {
    bind(op, inputs).expect("types were checked by the forward pass")
}

/// For each place along an axis the element that a scan has come from, and `first` where it begins.
fn previous(x: &Tensor, axis: usize, reverse: bool, first: f64) -> Tensor {
    let n = x.shape()[axis];
    if n == 0 {
        return x.clone();
    }
    let first = Tensor::full_of(Scalar::F64(first), x.dtype(), x.node().shape.with_ones(&[axis]));
    match reverse {
        true => Tensor::concat(&[&x.narrowed(axis, 1, n - 1), &first], axis as isize),
        false => Tensor::concat(&[&first, &x.narrowed(axis, 0, n - 1)], axis as isize),
    }
}

/// How the elements of a scan come together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Accumulation {
    Sum,
    Product,
    /// `ln Σ exp(x)`.
    LogSumExp,
}

/// What the elements up to each place make together, or those from it on if the scan runs in reverse. Integers and truth values as i64.
///
/// With `y` the result, and `j - 1` the place before `j` on the way of the scan: `y[j] = y[j-1] + x[j]`, `y[j-1] x[j]` or
/// `ln(exp y[j-1] + exp x[j])`. All three are linear in `y[j-1]` once `y` is known, so that cotangents run back in a
/// [linear recurrence](LinearScan) of factors `1`, `x[j+1]` or `exp(y[j] - y[j+1])`. None of them divides: zeros among the factors of a
/// product need no care. No factor of the last is larger than 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cumulative {
    pub axis: usize,
    pub of: Accumulation,
    pub reverse: bool,
}

impl Cumulative {
    /// `∂y[j] / ∂y[j-1]` and `∂y[j] / ∂x[j]`. The first is not read where the scan begins.
    ///
    /// Those of a product are f64, as its state is: a product so far may leave the range of a narrower type, and come back.
    fn partials(&self, at: &At) -> (Tensor, Tensor) {
        match self.of {
            Accumulation::Sum => unreachable!("a sum is linear"),
            Accumulation::Product => {
                let x = at.x(0).cast(DType::F64);
                let y = if at.x(0).dtype() == DType::F64 { at.y().clone() } else { scanned(*self, &[&x]) };
                (x, previous(&y, self.axis, self.reverse, 1.0))
            }
            Accumulation::LogSumExp => {
                let before = previous(at.y(), self.axis, self.reverse, 0.0);
                (difference(&before, at.y()).exp(), difference(at.x(0), at.y()).exp())
            }
        }
    }
}

/// `a - b`, and 0 where both are the same infinity.
fn difference(a: &Tensor, b: &Tensor) -> Tensor {
    let d = a - b;
    d.masked_fill(&d.ne(&d).and(a.eq(b)), 0.0)
}

impl Primitive for Cumulative {
    const NAME: &'static str = "cumulative";

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        check_axis(self.axis, x[0])?;
        let complex = x[0].dtype.is_complex();
        if complex || self.of == Accumulation::LogSumExp && !x[0].dtype.is_float() {
            return Err(needs_float(x[0].dtype));
        }
        let dtype = if x[0].dtype.is_float() { x[0].dtype } else { DType::I64 };
        Ok(Aval { dtype, shape: x[0].shape.clone() })
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        let Cumulative { axis, of, reverse } = *self;
        match of {
            Accumulation::Sum => {
                with_real!(x[0].dtype, T => scan::scan::<T, scan::Sum>(x[0].view(), axis, reverse, out.fill()))
            }
            Accumulation::Product => {
                with_real!(x[0].dtype, T => scan::scan::<T, scan::Product>(x[0].view(), axis, reverse, out.fill()))
            }
            Accumulation::LogSumExp => {
                with_float!(x[0].dtype, T => scan::scan::<T, scan::LogSumExp>(x[0].view(), axis, reverse, out.fill()))
            }
        }
        Ok(())
    }

    /// A scan of `g` the other way, with the factors above.
    fn pullback(&self, at: &At, g: &Tensor) -> Cotangents {
        let back = !self.reverse;
        if self.of == Accumulation::Sum {
            return smallvec![Some(scanned(Cumulative { reverse: back, ..*self }, &[g]))];
        }
        let (factor, partial) = self.partials(at);
        let (factor, g) = (previous(&factor, self.axis, back, 0.0), g.cast(partial.dtype()));
        let h = scanned(LinearScan { axis: self.axis, reverse: back }, &[&factor, &g]);
        smallvec![Some(h.gate(partial).cast(at.x(0).dtype()))]
    }

    fn uses(&self, _: &[bool]) -> Uses {
        if self.of == Accumulation::Sum { Uses::NOTHING } else { Uses::inputs([0]).and(Uses::OUTPUT) }
    }

    fn linearity(&self) -> Linearity {
        if self.of == Accumulation::Sum { Linearity::Linear } else { Linearity::Nonlinear }
    }

    fn pushforward(&self, at: &At, t: &[Option<Tensor>]) -> Result<Tensor> {
        let t = t[0].as_ref().expect("a pushforward has at least one tangent");
        if self.of == Accumulation::Sum {
            return bind(*self, &[t]);
        }
        let (factor, partial) = self.partials(at);
        let terms = t.cast(partial.dtype()).gate(partial);
        bind(LinearScan { axis: self.axis, reverse: self.reverse }, &[&factor, &terms])?.try_cast(t.dtype())
    }

    fn batch(&self, x: &[Batched], n: usize) -> Option<Result<Tensor>> {
        Some(Batched::bind_all(Cumulative { axis: self.axis + 1, ..*self }, x, n))
    }

    fn samples() -> Vec<Sample> {
        let of = |of, axis, reverse, s: &[usize]| {
            Sample::new(Cumulative { axis, of, reverse }, [Draw::new(Domain::any, s)])
        };
        let kinds = [Accumulation::Sum, Accumulation::Product, Accumulation::LogSumExp];
        let each = |kind| {
            [
                of(kind, 0, false, &[4]),
                of(kind, 0, true, &[3, 3]),
                of(kind, 1, false, &[3, 3]),
                of(kind, 1, true, &[2, 3, 2]),
                of(kind, 0, false, &[1]),
                of(kind, 0, false, &[0, 2]),
            ]
        };
        kinds.into_iter().flat_map(each).collect()
    }
}

/// `y[j] = a[j] y[j-1] + b[j]` along an axis, where `j - 1` is the place before `j` on the way of the scan; `y[j] = b[j]` where it begins.
///
/// The cotangent `h` of `b` runs back: `h[j] = g[j] + a[j+1] h[j+1]`; that of `a[j]` is `h[j] y[j-1]`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LinearScan {
    pub axis: usize,
    pub reverse: bool,
}

impl Primitive for LinearScan {
    const NAME: &'static str = "linear_scan";
    const ARITY: Option<usize> = Some(2);

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        let [a, b] = x else { unreachable!("linear_scan has two inputs") };
        check_axis(self.axis, *a)?;
        if !b.dtype.is_float() {
            return Err(needs_float(b.dtype));
        }
        if a.shape != b.shape || a.dtype != b.dtype {
            return Err(err!(
                Shape,
                "factors and terms must have one type and shape, got {} {:?} and {} {:?}",
                a.dtype,
                a.shape,
                b.dtype,
                b.shape
            ));
        }
        Ok(Aval { dtype: b.dtype, shape: b.shape.clone() })
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        with_float!(x[0].dtype, T => scan::recurrence::<T>(
            x[0].view(), x[1].view(), self.axis, self.reverse, |y| T::from_scalar(Scalar::F64(y)), out.fill()
        ));
        Ok(())
    }

    /// `h[j] y[j-1]` and `h`, where `h[j] = g[j] + a[j+1] h[j+1]`.
    fn pullback(&self, at: &At, g: &Tensor) -> Cotangents {
        let back = LinearScan { reverse: !self.reverse, ..*self };
        let h = scanned(back, &[&previous(at.x(0), self.axis, back.reverse, 0.0), g]);
        let da = at.needs(0).then(|| h.gate(previous(at.y(), self.axis, self.reverse, 0.0)));
        smallvec![da, at.needs(1).then_some(h)]
    }

    fn uses(&self, needs: &[bool]) -> Uses {
        if needs[0] { Uses::inputs([0]).and(Uses::OUTPUT) } else { Uses::inputs([0]) }
    }

    fn pushforward(&self, at: &At, t: &[Option<Tensor>]) -> Result<Tensor> {
        let of_a = t[0].as_ref().map(|t| t.gate(previous(at.y(), self.axis, self.reverse, 0.0)));
        let terms = match (of_a, &t[1]) {
            (Some(a), Some(b)) => a + b,
            (Some(a), None) => a,
            (None, Some(b)) => b.clone(),
            (None, None) => unreachable!("a pushforward has at least one tangent"),
        };
        bind(*self, &[at.x(0), &terms])
    }

    fn batch(&self, x: &[Batched], n: usize) -> Option<Result<Tensor>> {
        Some(Batched::bind_all(LinearScan { axis: self.axis + 1, ..*self }, x, n))
    }

    fn samples() -> Vec<Sample> {
        let of = |axis, reverse, s: &[usize]| {
            let both = [Draw::new(Domain::any, s), Draw::new(Domain::any, s)];
            Sample::new(LinearScan { axis, reverse }, both)
        };
        vec![
            of(0, false, &[4]),
            of(0, true, &[3, 3]),
            of(1, false, &[3, 3]),
            of(1, true, &[2, 3, 2]),
            of(0, false, &[1]),
            of(0, false, &[0]),
        ]
    }
}

/// For each place along an axis, that of the largest or smallest element up to it, the latest of equal ones; i64. NaN beats every number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CumExtreme {
    pub axis: usize,
    pub largest: bool,
}

impl Primitive for CumExtreme {
    const NAME: &'static str = "cumextreme";

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        check_axis(self.axis, x[0])?;
        check_ordered(x[0].dtype)?;
        Ok(Aval { dtype: DType::I64, shape: x[0].shape.clone() })
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        with_real!(x[0].dtype, T => match self.largest {
            true => scan::scan::<T, scan::Latest<true>>(x[0].view(), self.axis, false, out.fill()),
            false => scan::scan::<T, scan::Latest<false>>(x[0].view(), self.axis, false, out.fill()),
        });
        Ok(())
    }

    fn batch(&self, x: &[Batched], n: usize) -> Option<Result<Tensor>> {
        Some(Batched::bind_all(CumExtreme { axis: self.axis + 1, ..*self }, x, n))
    }

    fn samples() -> Vec<Sample> {
        let of = |axis, largest, s: &[usize]| {
            Sample::new(CumExtreme { axis, largest }, [Draw::new(Domain::any, s)])
        };
        vec![of(0, true, &[5]), of(1, false, &[2, 4]), of(0, true, &[3, 3]), of(1, true, &[2, 0])]
    }
}
