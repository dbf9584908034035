//! Runs a program on blocks of points, a lane for each, and on single points with the same results.

use super::exchange::{gather, scatter};
use super::graph::Op;
use super::program::{Check, Program, Step};
use crate::backend::cpu::lane::{Careful, Lane, Portable};
use crate::backend::cpu::math::Isa;
use crate::backend::cpu::parallel::{self, Disjoint};
use crate::number::Number;
use crate::ops::table::elementwise_table;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Points that run together. 64 lanes make the decoding of a step small against its work.
pub(super) const LANES: usize = 64;

/// The values of one slot, a lane for each point.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(super) struct Slot(pub [f64; LANES]);

/// A point at which a comparison came out otherwise than when the function was recorded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Failure {
    pub point: usize,
    pub guard: usize,
}

/// Evaluates the program at every point, `columns` numbers each, into the rows of `out`.
///
/// Returns the first point that fails a check.
pub(super) fn many(
    program: &Program,
    columns: usize,
    points: &[f64],
    out: &mut [f64],
    n: usize,
) -> Option<Failure> {
    let rows = program.outputs.len();
    assert!(points.len() == n * columns && out.len() == n * rows);
    let first_failure = AtomicUsize::new(usize::MAX);
    let failed_guard = AtomicUsize::new(0);
    let out = Disjoint::new(out);
    // About a nanosecond for each step and point: a part should be worth waking a thread for.
    let grain = (100_000 / (program.steps.len() + 1)).max(LANES);
    parallel::split(n, grain, LANES, |range| {
        // SAFETY: the ranges of a split are disjoint.
        let out = unsafe { out.part(range.start * rows..range.end * rows) };
        let points = &points[range.start * columns..range.end * columns];
        if let Some(failure) = part(program, columns, points, out, range.len()) {
            let point = range.start + failure.point;
            if first_failure.fetch_min(point, Ordering::Relaxed) > point {
                failed_guard.store(failure.guard, Ordering::Relaxed);
            }
        }
    });
    let point = first_failure.into_inner();
    (point != usize::MAX).then(|| Failure { point, guard: failed_guard.into_inner() })
}

/// Slots for a block of points, those of the constants filled.
fn with_constants(program: &Program) -> Vec<Slot> {
    let mut slots = vec![Slot([0.0; LANES]); program.slots];
    for &(value, slot) in &program.constants {
        slots[slot as usize].0.fill(value);
    }
    slots
}

/// Runs consecutive points on this thread.
#[inline(always)]
fn part_on<I: Isa>(
    program: &Program,
    columns: usize,
    points: &[f64],
    out: &mut [f64],
    n: usize,
) -> Option<Failure> {
    let rows = program.outputs.len();
    let mut slots = with_constants(program);
    for start in (0..n).step_by(LANES) {
        let width = LANES.min(n - start);
        gather::<I>(&program.inputs, 0, columns, &points[start * columns..][..width * columns], &mut slots);
        if let Some(failure) = block::<I>(program, &mut slots) {
            return Some(Failure { point: start + failure.point.min(width - 1), ..failure });
        }
        scatter::<I>(program, &slots, &mut out[start * rows..][..width * rows]);
    }
    None
}

/// Adds each output over consecutive points, which share the first inputs, to its place in `sums`.
#[inline(always)]
fn sum_on<I: Isa>(
    program: &Program,
    shared: &[f64],
    own: usize,
    points: &[f64],
    sums: &mut [f64],
    n: usize,
) -> Option<Failure> {
    /// Partial sums of an output: one vector of the widest kind.
    const PARTS: usize = 8;
    let mut slots = with_constants(program);
    let (common, inputs) =
        program.inputs.split_at(program.inputs.partition_point(|&(k, _)| (k as usize) < shared.len()));
    for &(input, slot) in common {
        slots[slot as usize].0.fill(shared[input as usize]);
    }
    let mut parts = vec![[0.0; PARTS]; sums.len()];
    for start in (0..n).step_by(LANES) {
        let width = LANES.min(n - start);
        gather::<I>(inputs, shared.len() as u32, own, &points[start * own..][..width * own], &mut slots);
        if let Some(failure) = block::<I>(program, &mut slots) {
            return Some(Failure { point: start + failure.point.min(width - 1), ..failure });
        }
        for (parts, &slot) in parts.iter_mut().zip(&program.outputs) {
            let (vectors, rest) = slots[slot as usize].0[..width].as_chunks::<PARTS>();
            for vector in vectors {
                (0..PARTS).for_each(|k| parts[k] += vector[k]);
            }
            (0..rest.len()).for_each(|k| parts[k] += rest[k]);
        }
    }
    for (sum, parts) in sums.iter_mut().zip(&parts) {
        *sum += parts.iter().sum::<f64>();
    }
    None
}

/// The sum of each output over the points, all of which have the inputs `shared` before their `own`.
///
/// The program must keep the slots of the shared inputs. Points are summed in groups whose size depends on the program alone, so that the
/// number of threads does not show in the result.
pub(super) fn sums(
    program: &Program,
    shared: &[f64],
    own: usize,
    points: &[f64],
    sums: &mut [f64],
    n: usize,
) -> Option<Failure> {
    let rows = program.outputs.len();
    assert!(points.len() == n * own && sums.len() == rows);
    let group = (200_000 / (program.steps.len() + 1)).max(LANES).next_multiple_of(LANES);
    let groups = n.div_ceil(group);
    let mut partial = vec![0.0; groups * rows];
    let places = Disjoint::new(&mut partial);
    let failure = Mutex::new(None::<Failure>);
    parallel::split(groups, 1, 1, |range| {
        for g in range {
            // SAFETY: each group has its own place, and belongs to one range.
            let place = unsafe { places.part(g * rows..(g + 1) * rows) };
            let (start, end) = (g * group, n.min((g + 1) * group));
            if let Some(found) =
                sum_part(program, shared, own, &points[start * own..end * own], place, end - start)
            {
                let found = Failure { point: start + found.point, ..found };
                let mut first = failure.lock().expect("nothing panics while it is held");
                if first.is_none_or(|f| found.point < f.point) {
                    *first = Some(found);
                }
            }
        }
    });
    sums.fill(0.0);
    for group in partial.chunks_exact(rows.max(1)) {
        sums.iter_mut().zip(group).for_each(|(sum, part)| *sum += part);
    }
    failure.into_inner().expect("nothing panics while it is held")
}

/// Evaluates the program at one point, in `workspace`.
pub(super) fn one(
    program: &Program,
    x: &[f64],
    out: &mut [f64],
    workspace: &mut Vec<f64>,
) -> Option<Failure> {
    assert_eq!(out.len(), program.outputs.len());
    workspace.clear();
    workspace.resize(program.slots, 0.0);
    for &(value, slot) in &program.constants {
        workspace[slot as usize] = value;
    }
    for &(input, slot) in &program.inputs {
        workspace[slot as usize] = x[input as usize];
    }
    if let Some(failure) = run_single(program, workspace) {
        return Some(failure);
    }
    for (y, &slot) in out.iter_mut().zip(&program.outputs) {
        *y = workspace[slot as usize];
    }
    None
}

/// Defines a function that runs `$body` compiled for the instructions this processor has.
macro_rules! compiled_for_processor {
    (fn $name:ident($($x:ident: $T:ty),*) = $body:ident, $lane:ident) => {
        fn $name($($x: $T),*) -> Option<Failure> {
            #[cfg(target_arch = "x86_64")]
            {
                use crate::backend::cpu::lane::V3;
                #[target_feature(enable = "avx2,fma,bmi1,bmi2,f16c,lzcnt")]
                fn v3($($x: $T),*) -> Option<Failure> {
                    $body::<$lane<V3>>($($x),*)
                }
                #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx2,fma,bmi1,bmi2,f16c,lzcnt")]
                fn v4($($x: $T),*) -> Option<Failure> {
                    $body::<$lane<V3>>($($x),*)
                }
                if has_v4() {
                    // SAFETY: the processor has these instructions.
                    return unsafe { v4($($x),*) };
                }
                if crate::backend::cpu::dispatch::has_v3() {
                    // SAFETY: the processor has these instructions.
                    return unsafe { v3($($x),*) };
                }
            }
            $body::<$lane<Portable>>($($x),*)
        }
    };
}

/// Whether the processor has AVX-512. Its results are those of the narrower vectors, to the last bit.
#[cfg(target_arch = "x86_64")]
fn has_v4() -> bool {
    crate::backend::cpu::dispatch::has_v3()
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl")
}

type Plain<I> = I;
compiled_for_processor! {
    fn part(program: &Program, columns: usize, points: &[f64], out: &mut [f64], n: usize) = part_on, Plain
}
compiled_for_processor! {
    fn sum_part(program: &Program, shared: &[f64], own: usize, points: &[f64], sums: &mut [f64], n: usize) = sum_on, Plain
}
compiled_for_processor! { fn run_single(program: &Program, slots: &mut [f64]) = single, Careful }

#[inline(always)]
fn block<I: Isa>(program: &Program, slots: &mut [Slot]) -> Option<Failure> {
    let mut checks = program.checks.iter().peekable();
    let fails = |check: &Check, slots: &[Slot]| {
        let (a, b) = (&slots[check.a as usize].0, &slots[check.b as usize].0);
        let point = (0..LANES).find(|&k| check.comparison.holds(a[k], b[k]) != check.outcome)?;
        Some(Failure { point, guard: check.guard })
    };
    for (k, step) in program.steps.iter().enumerate() {
        while let Some(check) = checks.next_if(|check| check.before == k) {
            if let Some(failure) = fails(check, slots) {
                return Some(failure);
            }
        }
        step_on_lanes::<I>(step, slots);
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
fn operands<'s, const N: usize>(
    step: &Step,
    slots: &'s mut [Slot],
) -> (&'s mut [f64; LANES], [&'s [f64; LANES]; N]) {
    let dst = step.dst as usize;
    let args: [usize; N] = std::array::from_fn(|k| step.args[k] as usize);
    assert!(dst < slots.len() && args.iter().all(|&a| a < slots.len() && a != dst));
    let base = slots.as_mut_ptr();
    // SAFETY: in bounds, and the destination is none of the arguments, which are only read.
    unsafe { (&mut (*base.add(dst)).0, args.map(|a| &(*base.add(a)).0)) }
}

// The loops are functions of references, so that the compiler knows that they do not overlap.

#[inline(always)]
fn each1<I: Isa>(dst: &mut [f64; LANES], a: &[f64; LANES], f: impl Fn(Lane<f64, I>) -> Lane<f64, I>) {
    for k in 0..LANES {
        dst[k] = f(Lane::new(a[k])).0;
    }
}

#[inline(always)]
fn each2<I: Isa>(
    dst: &mut [f64; LANES],
    a: &[f64; LANES],
    b: &[f64; LANES],
    f: impl Fn(Lane<f64, I>, Lane<f64, I>) -> Lane<f64, I>,
) {
    for k in 0..LANES {
        dst[k] = f(Lane::new(a[k]), Lane::new(b[k])).0;
    }
}

#[inline(always)]
fn each3<I: Isa>(
    step: &Step,
    slots: &mut [Slot],
    f: impl Fn(Lane<f64, I>, Lane<f64, I>, Lane<f64, I>) -> Lane<f64, I>,
) {
    let (dst, [a, b, c]) = operands(step, slots);
    for k in 0..LANES {
        dst[k] = f(Lane::new(a[k]), Lane::new(b[k]), Lane::new(c[k])).0;
    }
}

/// The result of a row for its arguments: `-a`, `a + b`, or the method of `Number`.
macro_rules! row {
    (neg, $a:expr) => { -$a };
    (add, $a:expr, $b:expr) => { $a + $b };
    (sub, $a:expr, $b:expr) => { $a - $b };
    (mul, $a:expr, $b:expr) => { $a * $b };
    (div, $a:expr, $b:expr) => { $a / $b };
    ($m:ident, $($x:expr),+) => { Number::$m($($x),+) };
}

#[inline(always)]
fn mul_add<I: Isa>(a: Lane<f64, I>, b: Lane<f64, I>, c: Lane<f64, I>) -> Lane<f64, I> {
    if I::FMA { Lane::new(a.0.mul_add(b.0, c.0)) } else { a * b + c }
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
        d = $d:tt; reads $([$($r:ident)*])+; $lin:ident; domain $($dom:ident)+;)*) => {
        /// One operation on single numbers.
        #[inline(always)]
        fn value<I: Isa>(op: Op, a: Lane<f64, I>, b: Lane<f64, I>, c: Lane<f64, I>) -> Lane<f64, I> {
            match op {
                // The first two are not steps.
                Op::Input | Op::Constant | Op::Fixed => a,
                Op::Less => flag(a.0 < b.0),
                Op::LessEqual => flag(a.0 <= b.0),
                Op::Select => choose(a, b, c),
                Op::MulAdd => mul_add(a, b, c),
                Op::MulSub => mul_add(a, b, -c),
                Op::NegMulAdd => mul_add(-a, b, c),
                $(Op::$P => evaluation!(@value $m a b $($x)+),)*
            }
        }

        /// One operation in every lane.
        #[inline(always)]
        fn step_on_lanes<I: Isa>(step: &Step, slots: &mut [Slot]) {
            match step.op {
                Op::Input | Op::Constant => {}
                Op::Fixed => evaluation!(@one step slots |a| a),
                Op::Less => evaluation!(@two step slots |a, b| flag(a.0 < b.0)),
                Op::LessEqual => evaluation!(@two step slots |a, b| flag(a.0 <= b.0)),
                Op::Select => each3::<I>(step, slots, choose),
                Op::MulAdd => each3::<I>(step, slots, mul_add),
                Op::MulSub => each3::<I>(step, slots, |a, b, c| mul_add(a, b, -c)),
                Op::NegMulAdd => each3::<I>(step, slots, |a, b, c| mul_add(-a, b, c)),
                $(Op::$P => evaluation!(@lanes step slots $m $($x)+),)*
            }
            if matches!(step.op, Op::Sin | Op::Cos | Op::Tan) {
                repair(step, slots);
            }
        }
    };
    (@value $m:ident $a:ident $b:ident $x:ident) => { row!($m, $a) };
    (@value $m:ident $a:ident $b:ident $x:ident $z:ident) => { row!($m, $a, $b) };
    (@lanes $step:ident $slots:ident $m:ident $x:ident) => { evaluation!(@one $step $slots |$x| row!($m, $x)) };
    (@lanes $step:ident $slots:ident $m:ident $x:ident $z:ident) => {
        evaluation!(@two $step $slots |$x, $z| row!($m, $x, $z))
    };
    (@one $step:ident $slots:ident $f:expr) => {{
        let (dst, [a]) = operands($step, $slots);
        each1::<I>(dst, a, $f)
    }};
    (@two $step:ident $slots:ident $f:expr) => {{
        let (dst, [a, b]) = operands($step, $slots);
        each2::<I>(dst, a, b, $f)
    }};
}
elementwise_table!(evaluation);

/// Computes lanes that came out as NaN again: the vector formulas of the trigonometric functions do not cover very large
/// arguments, and say so by a NaN.
#[inline(always)]
fn repair(step: &Step, slots: &mut [Slot]) {
    let (dst, [x]) = operands(step, slots);
    if !dst.iter().fold(false, |any, y| any | y.is_nan()) {
        return;
    }
    for (y, x) in dst.iter_mut().zip(x).filter(|(y, _)| y.is_nan()) {
        *y = match step.op {
            Op::Sin => x.sin(),
            Op::Cos => x.cos(),
            _ => x.tan(),
        };
    }
}
