//! The steps of a program, in every lane of a block of points or at a single one, with the same results.

use super::evaluate::Failure;
use super::graph::Op;
use super::program::{Check, Program, Step};
use super::workspace::Slot;
use crate::kernels::isa::with_isa;
use crate::kernels::lane::{Careful, Lane, Portable};
use crate::kernels::math::Isa;
use pullback_table::{elementwise_table, function, row};

/// Runs the steps in every lane of a block.
pub(super) fn run_block<const L: usize>(program: &Program, slots: &mut [Slot<L>]) -> Option<Failure> {
    with_isa! {
        [const L: usize] [L] (program: &Program, slots: &mut [Slot<L>]) -> Option<Failure>;
        Portable => block::<L, Portable>(program, slots),
        V3 => block::<L, crate::kernels::lane::Fma>(program, slots),
        V4 if true => block::<L, crate::kernels::lane::Fma>(program, slots)
    }
}

/// Runs the steps at one point. Longer vectors would not serve it.
pub(super) fn run_single(program: &Program, slots: &mut [f64]) -> Option<Failure> {
    with_isa! {
        [] [] (program: &Program, slots: &mut [f64]) -> Option<Failure>;
        Portable => single::<Careful<Portable>>(program, slots),
        V3 => single::<Careful<crate::kernels::lane::Fma>>(program, slots)
    }
}

#[inline(always)]
fn block<const L: usize, I: Isa>(program: &Program, slots: &mut [Slot<L>]) -> Option<Failure> {
    let mut checks = program.checks.iter().peekable();
    let fails = |check: &Check, slots: &[Slot<L>]| {
        let (a, b) = (&slots[check.a as usize].0, &slots[check.b as usize].0);
        let point = (0..L).find(|&k| check.comparison.holds(a[k], b[k]) != check.outcome)?;
        Some(Failure { point, guard: check.guard })
    };
    for (k, step) in program.steps.iter().enumerate() {
        while let Some(check) = checks.next_if(|check| check.before == k) {
            if let Some(failure) = fails(check, slots) {
                return Some(failure);
            }
        }
        step_on_lanes::<L, I>(step, slots);
    }
    checks.find_map(|check| fails(check, slots))
}

#[inline(always)]
fn single<I: Isa>(program: &Program, slots: &mut [f64]) -> Option<Failure> {
    let mut checks = program.checks.iter().peekable();
    let fails = |check: &Check, slots: &[f64]| {
        let holds = check.comparison.holds(slots[check.a as usize], slots[check.b as usize]);
        (holds != check.outcome).then_some(Failure { point: 0, guard: check.guard })
    };
    for (k, step) in program.steps.iter().enumerate() {
        while let Some(check) = checks.next_if(|check| check.before == k) {
            if let Some(failure) = fails(check, slots) {
                return Some(failure);
            }
        }
        let [a, b, c] = step.args.map(|a| Lane::<f64, I>::new(slots[a as usize]));
        slots[step.dst as usize] = value(step.op, a, b, c).0;
    }
    checks.find_map(|check| fails(check, slots))
}

/// The destination and the first `N` arguments of a step.
#[inline(always)]
fn operands<'s, const L: usize, const N: usize>(
    step: &Step,
    slots: &'s mut [Slot<L>],
) -> (&'s mut [f64; L], [&'s [f64; L]; N]) {
    let dst = step.dst as usize;
    let args: [usize; N] = std::array::from_fn(|k| step.args[k] as usize);
    assert!(dst < slots.len() && args.iter().all(|&a| a < slots.len() && a != dst));
    let base = slots.as_mut_ptr();
    // SAFETY: in bounds, and the destination is none of the arguments, which are only read.
    unsafe { (&mut (*base.add(dst)).0, args.map(|a| &(*base.add(a)).0)) }
}

// The loops are functions of references, so that the compiler knows that they do not overlap.

#[inline(always)]
fn each1<const L: usize, I: Isa>(dst: &mut [f64; L], a: &[f64; L], f: impl Fn(Lane<f64, I>) -> Lane<f64, I>) {
    for k in 0..L {
        dst[k] = f(Lane::new(a[k])).0;
    }
}

#[inline(always)]
fn each2<const L: usize, I: Isa>(
    dst: &mut [f64; L],
    a: &[f64; L],
    b: &[f64; L],
    f: impl Fn(Lane<f64, I>, Lane<f64, I>) -> Lane<f64, I>,
) {
    for k in 0..L {
        dst[k] = f(Lane::new(a[k]), Lane::new(b[k])).0;
    }
}

#[inline(always)]
fn each3<const L: usize, I: Isa>(
    step: &Step,
    slots: &mut [Slot<L>],
    f: impl Fn(Lane<f64, I>, Lane<f64, I>, Lane<f64, I>) -> Lane<f64, I>,
) {
    let (dst, [a, b, c]) = operands(step, slots);
    for k in 0..L {
        dst[k] = f(Lane::new(a[k]), Lane::new(b[k]), Lane::new(c[k])).0;
    }
}

#[inline(always)]
fn mul_add<I: Isa>(a: Lane<f64, I>, b: Lane<f64, I>, c: Lane<f64, I>) -> Lane<f64, I> {
    if I::FMA { Lane::new(a.0.mul_add(b.0, c.0)) } else { a * b + c }
}

#[inline(always)]
fn chain<I: Isa>(a: Lane<f64, I>, b: Lane<f64, I>) -> Lane<f64, I> {
    Lane::new(if (a.0 == 0.0) | (b.0 == 0.0) { 0.0 } else { a.0 * b.0 })
}

#[inline(always)]
fn flag<I: Isa>(holds: bool) -> Lane<f64, I> {
    Lane::new(if holds { 1.0 } else { 0.0 })
}

#[inline(always)]
fn choose<I: Isa>(mask: Lane<f64, I>, then: Lane<f64, I>, otherwise: Lane<f64, I>) -> Lane<f64, I> {
    if mask.0 != 0.0 { then } else { otherwise }
}

macro_rules! evaluation {
    ($($(#[$doc:meta])* $P:ident $m:ident $try:ident($($x:ident),+) = $value:tt;
        d = $d:tt; reads $([$($r:ident)*])+; $facts:tt)*) => {
        /// One operation on single numbers.
        #[inline(always)]
        fn value<I: Isa>(op: Op, a: Lane<f64, I>, b: Lane<f64, I>, c: Lane<f64, I>) -> Lane<f64, I> {
            match op {
                // The first two are not steps.
                Op::Input | Op::Constant | Op::Fixed => a,
                Op::Less => flag(a.0 < b.0),
                Op::LessEqual => flag(a.0 <= b.0),
                Op::Select => choose(a, b, c),
                Op::Chain => chain(a, b),
                Op::MulAdd => mul_add(a, b, c),
                Op::MulSub => mul_add(a, b, -c),
                Op::NegMulAdd => mul_add(-a, b, c),
                $(Op::$P => evaluation!(@value $m a b $($x)+),)*
            }
        }

        /// One operation in every lane.
        #[inline(always)]
        fn step_on_lanes<const L: usize, I: Isa>(step: &Step, slots: &mut [Slot<L>]) {
            match step.op {
                Op::Input | Op::Constant => {}
                Op::Fixed => evaluation!(@one step slots |a| a),
                Op::Less => evaluation!(@two step slots |a, b| flag(a.0 < b.0)),
                Op::LessEqual => evaluation!(@two step slots |a, b| flag(a.0 <= b.0)),
                Op::Select => each3::<L, I>(step, slots, choose),
                Op::Chain => evaluation!(@two step slots |a, b| chain(a, b)),
                Op::MulAdd => each3::<L, I>(step, slots, mul_add),
                Op::MulSub => each3::<L, I>(step, slots, |a, b, c| mul_add(a, b, -c)),
                Op::NegMulAdd => each3::<L, I>(step, slots, |a, b, c| mul_add(-a, b, c)),
                $(Op::$P => {
                    evaluation!(@lanes step slots $m $($x)+);
                    if row::$P.limited {
                        repair(step, slots, |[$($x),+]| function::$m($($x),+));
                    }
                })*
            }
        }
    };
    (@value $m:ident $a:ident $b:ident $x:ident) => { function::$m($a) };
    (@value $m:ident $a:ident $b:ident $x:ident $z:ident) => { function::$m($a, $b) };
    (@lanes $step:ident $slots:ident $m:ident $x:ident) => { evaluation!(@one $step $slots function::$m) };
    (@lanes $step:ident $slots:ident $m:ident $x:ident $z:ident) => { evaluation!(@two $step $slots function::$m) };
    (@one $step:ident $slots:ident $f:expr) => {{
        let (dst, [a]) = operands($step, $slots);
        each1::<L, I>(dst, a, $f)
    }};
    (@two $step:ident $slots:ident $f:expr) => {{
        let (dst, [a, b]) = operands($step, $slots);
        each2::<L, I>(dst, a, b, $f)
    }};
}
elementwise_table!(evaluation);

/// Computes lanes that came out as NaN again, by the standard library: the vector formulas of [limited](pullback_table::Row::limited)
/// rows do not cover very large arguments, and say so by a NaN.
#[inline(always)]
fn repair<const L: usize, const N: usize>(step: &Step, slots: &mut [Slot<L>], f: fn([f64; N]) -> f64) {
    let (dst, x) = operands(step, slots);
    if !dst.iter().fold(false, |any, y| any | y.is_nan()) {
        return;
    }
    for (k, y) in dst.iter_mut().enumerate().filter(|(_, y)| y.is_nan()) {
        *y = f(x.map(|x| x[k]));
    }
}
