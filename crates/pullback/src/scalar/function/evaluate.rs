//! Evaluates a program at many points, in blocks that run a lane for each, or at one.

use super::exchange::{Points, gather, scatter};
use super::program::{Program, Programs};
use super::steps::{run_block, run_single};
use super::workspace::{Line, PARTS, Workspace};
use crate::kernels::isa::with_isa;
use crate::kernels::lane::Portable;
use crate::kernels::math::Isa;
use crate::kernels::parallel::{self, Disjoint};
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Points that run together. 64 lanes make the decoding of a step small against its work.
const LANES: usize = 64;

/// Points that run together where there are few. A step on 8 would take as long: it waits for the result of the one before.
const FEW: usize = 16;

/// So many points are few. More take as long in blocks of `FEW` as in one of `LANES` that is not full.
const MAX_FEW: usize = 32;

/// A point at which a comparison came out otherwise than when the function was recorded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Failure {
    pub point: usize,
    pub guard: usize,
}

/// Whether there is a NaN. All are looked at, without a branch for each.
fn has_nan(results: &[f64]) -> bool {
    results.iter().fold(false, |any, y| any | y.is_nan())
}

/// Evaluates the function at every point into the rows of `out`.
///
/// Returns the first point that fails a check.
pub(super) fn many(programs: &Programs, points: Points, out: &mut [f64]) -> Option<Failure> {
    let failure = many_by(&programs.plain, points, out);
    if failure.is_some() || !has_nan(out) {
        return failure;
    }
    let careful = programs.careful()?;
    // Those points alone, so that what the others get does not depend on their company.
    let rows = careful.outputs.len();
    let again: Vec<usize> = (0..points.len()).filter(|&k| has_nan(&out[k * rows..][..rows])).collect();
    let mut results = vec![0.0; again.len() * rows];
    let failure = many_by(careful, points.chosen(&again), &mut results);
    for (&k, row) in again.iter().zip(results.chunks(rows)) {
        out[k * rows..][..rows].copy_from_slice(row);
    }
    failure.map(|failure| Failure { point: again[failure.point], ..failure })
}

fn many_by(program: &Program, points: Points, out: &mut [f64]) -> Option<Failure> {
    let rows = program.outputs.len();
    let n = points.len();
    assert_eq!(out.len(), n * rows);
    let first_failure = AtomicUsize::new(usize::MAX);
    let failed_guard = AtomicUsize::new(0);
    let out = Disjoint::new(out);
    // About a nanosecond for each step and point: a part should be worth waking a thread for.
    let grain = (100_000 / (program.steps.len() + 1)).max(LANES);
    parallel::split(n, grain, LANES, |range| {
        // SAFETY: the ranges of a split are disjoint.
        let out = unsafe { out.part(range.start * rows..range.end * rows) };
        if let Some(failure) = rows_part(program, points.part(range.clone()), out) {
            let point = range.start + failure.point;
            if first_failure.fetch_min(point, Ordering::Relaxed) > point {
                failed_guard.store(failure.guard, Ordering::Relaxed);
            }
        }
    });
    let point = first_failure.into_inner();
    (point != usize::MAX).then(|| Failure { point, guard: failed_guard.into_inner() })
}

/// The points that run in blocks of `LANES`, and those after them that run in blocks of `FEW`.
fn cut(n: usize) -> (Range<usize>, Range<usize>) {
    let rest = n % LANES;
    let many = if rest > MAX_FEW { n } else { n - rest };
    (0..many, many..n)
}

/// Evaluates consecutive points on this thread.
#[inline(always)]
fn rows_on<I: Isa>(program: &Program, points: Points, out: &mut [f64]) -> Option<Failure> {
    #[inline(always)]
    fn blocks<const L: usize, I: Isa>(
        program: &Program,
        points: Points,
        out: &mut [f64],
        range: Range<usize>,
        workspace: &mut Workspace,
    ) -> Option<Failure> {
        let rows = program.outputs.len();
        let (slots, _) = workspace.slots_and_parts::<L>(program);
        for start in range.clone().step_by(L) {
            let width = L.min(range.end - start);
            gather::<L, I>(&program.inputs, 0, points.part(start..start + width), slots);
            if let Some(failure) = run_block(program, slots) {
                return Some(Failure { point: start + failure.point.min(width - 1), ..failure });
            }
            scatter::<L, I>(program, slots, &mut out[start * rows..][..width * rows]);
        }
        None
    }
    let (many, few) = cut(points.len());
    let (mut workspace, mut failure) = (Workspace::take(), None);
    if !many.is_empty() {
        failure = blocks::<LANES, I>(program, points, out, many, &mut workspace);
    }
    if failure.is_none() && !few.is_empty() {
        failure = blocks::<FEW, I>(program, points, out, few, &mut workspace);
    }
    workspace.keep();
    failure
}

/// Adds the first numbers of `lanes` to partial sums, each number to the one of its place in a vector.
#[inline(always)]
fn add<const L: usize>(parts: &mut [f64; PARTS], lanes: &[f64; L], width: usize) {
    let (vectors, _) = lanes.as_chunks::<PARTS>();
    let (whole, rest) = (width / PARTS, width % PARTS);
    for vector in &vectors[..whole] {
        for k in 0..PARTS {
            parts[k] += vector[k];
        }
    }
    if rest > 0 {
        for k in 0..PARTS {
            parts[k] += if k < rest { vectors[whole][k] } else { 0.0 };
        }
    }
}

/// The sum of partial sums.
#[inline(always)]
fn total(parts: &[f64; PARTS]) -> f64 {
    let fours = [parts[0] + parts[4], parts[1] + parts[5], parts[2] + parts[6], parts[3] + parts[7]];
    (fours[0] + fours[2]) + (fours[1] + fours[3])
}

/// Adds each output over consecutive points, which share the first inputs, to its place in `sums`.
///
/// A point counts in the same partial sum in whatever block it is, and after the points before it: how points are cut into blocks does
/// not show in the result.
#[inline(always)]
fn sums_on<I: Isa>(program: &Program, shared: &[f64], points: Points, sums: &mut [f64]) -> Option<Failure> {
    /// Blocks of `L` points. `ONE` of them has all points: its partial sums need no memory.
    #[inline(always)]
    fn blocks<const L: usize, const ONE: bool, I: Isa>(
        program: &Program,
        shared: &[f64],
        points: Points,
        sums: &mut [f64],
        range: Range<usize>,
        workspace: &mut Workspace,
    ) -> Option<Failure> {
        let (slots, parts) = workspace.slots_and_parts::<L>(program);
        let (common, inputs) =
            program.inputs.split_at(program.inputs.partition_point(|&(k, _)| (k as usize) < shared.len()));
        for &(input, slot) in common {
            slots[slot as usize].0.fill(shared[input as usize]);
        }
        for start in range.clone().step_by(L) {
            let width = L.min(range.end - start);
            gather::<L, I>(inputs, shared.len() as u32, points.part(start..start + width), slots);
            if let Some(failure) = run_block(program, slots) {
                return Some(Failure { point: start + failure.point.min(width - 1), ..failure });
            }
            if ONE {
                for (sum, &slot) in sums.iter_mut().zip(&program.outputs) {
                    let mut parts = [0.0; PARTS];
                    add(&mut parts, &slots[slot as usize].0, width);
                    *sum += total(&parts);
                }
            } else {
                for (Line(parts), &slot) in parts.iter_mut().zip(&program.outputs) {
                    add(parts, &slots[slot as usize].0, width);
                }
            }
        }
        None
    }
    let n = points.len();
    let mut workspace = Workspace::take();
    if n <= FEW {
        let failure = blocks::<FEW, true, I>(program, shared, points, sums, 0..n, &mut workspace);
        workspace.keep();
        return failure;
    }
    let (many, few) = cut(n);
    workspace.parts.clear();
    workspace.parts.resize(sums.len(), Line([0.0; PARTS]));
    let mut failure = None;
    if !many.is_empty() {
        failure = blocks::<LANES, false, I>(program, shared, points, sums, many, &mut workspace);
    }
    if failure.is_none() && !few.is_empty() {
        failure = blocks::<FEW, false, I>(program, shared, points, sums, few, &mut workspace);
    }
    for (sum, Line(parts)) in sums.iter_mut().zip(&workspace.parts) {
        *sum += total(parts);
    }
    workspace.keep();
    failure
}

/// Defines a function that runs `$body` compiled for the instructions this processor has.
macro_rules! compiled_for_processor {
    (fn $name:ident($($x:ident: $T:ty),*) = $body:ident) => {
        fn $name($($x: $T),*) -> Option<Failure> {
            with_isa! {
                [] [] ($($x: $T),*) -> Option<Failure>;
                Portable => $body::<Portable>($($x),*),
                V3 => $body::<crate::kernels::lane::Fma>($($x),*),
                V4 if true => $body::<crate::kernels::lane::Fma>($($x),*)
            }
        }
    };
}
compiled_for_processor! {
    fn rows_part(program: &Program, points: Points, out: &mut [f64]) = rows_on
}
compiled_for_processor! {
    fn sums_part(program: &Program, shared: &[f64], points: Points, sums: &mut [f64]) = sums_on
}

/// The sum of each output over the points, all of which have the inputs `shared` before their own.
///
/// The program must keep the slots of the shared inputs. Points are summed in groups whose size depends on the program alone, so that the
/// number of threads does not show in the result.
pub(super) fn sums(programs: &Programs, shared: &[f64], points: Points, sums: &mut [f64]) -> Option<Failure> {
    let failure = sums_by(&programs.plain, shared, points, sums);
    if failure.is_some() || !has_nan(sums) {
        return failure;
    }
    programs.careful().and_then(|careful| sums_by(careful, shared, points, sums))
}

fn sums_by(program: &Program, shared: &[f64], points: Points, sums: &mut [f64]) -> Option<Failure> {
    let rows = program.outputs.len();
    let n = points.len();
    assert_eq!(sums.len(), rows);
    let size = (200_000 / (program.steps.len() + 1)).max(LANES).next_multiple_of(LANES);
    sums.fill(0.0);
    let groups = n.div_ceil(size);
    if groups <= 1 {
        return sums_part(program, shared, points, sums);
    }
    let mut partial = vec![0.0; groups * rows];
    let places = Disjoint::new(&mut partial);
    let failure = Mutex::new(None::<Failure>);
    parallel::split(groups, 1, 1, |range| {
        for g in range {
            // SAFETY: each group has its own place, and belongs to one range.
            let place = unsafe { places.part(g * rows..(g + 1) * rows) };
            let (start, end) = (g * size, n.min((g + 1) * size));
            if let Some(found) = sums_part(program, shared, points.part(start..end), place) {
                let found = Failure { point: start + found.point, ..found };
                let mut first = failure.lock().expect("nothing panics while it is held");
                if first.is_none_or(|f| found.point < f.point) {
                    *first = Some(found);
                }
            }
        }
    });
    for group in partial.chunks_exact(rows.max(1)) {
        sums.iter_mut().zip(group).for_each(|(sum, part)| *sum += part);
    }
    failure.into_inner().expect("nothing panics while it is held")
}

/// Evaluates the function at one point, in `workspace`.
pub(super) fn one(
    programs: &Programs,
    x: &[f64],
    out: &mut [f64],
    workspace: &mut Vec<f64>,
) -> Option<Failure> {
    let failure = one_by(&programs.plain, x, out, workspace);
    if failure.is_some() || !has_nan(out) {
        return failure;
    }
    programs.careful().and_then(|careful| one_by(careful, x, out, workspace))
}

fn one_by(program: &Program, x: &[f64], out: &mut [f64], workspace: &mut Vec<f64>) -> Option<Failure> {
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
