//! Moves: permutations, reshapes, broadcasts and slices that cancel or join, and computation moved to where it is smaller.
//!
//! Moving elements is exact. The rules for sums are not to the last bit: sums of sums and of repeated elements are rounded in another order, and
//! no less accurately, within `n` units in the last place for sums of `n` terms.

use super::Options;
use super::rewrite::{Rewrite, rewrite};
use crate::DType;
use crate::graph::{Graph, Ref, Step};
use crate::ops::{
    AxisMap, Broadcast, Dot, Movement, Mul, Op, Permute, Primitive, Reshape, Slice, SliceSpec, Sum,
};
use crate::shape::{Axes, Shape};
use smallvec::SmallVec;

pub(super) fn moves(graph: &Graph, _: &Options) -> Graph {
    rewrite(graph, rule)
}

/// Computes elementwise values before they are repeated, even where the repeated operand is needed too, and in the order that they are
/// needed in: some operations more, and less work.
pub(super) fn shrink(graph: &Graph, _: &Options) -> Graph {
    rewrite(graph, |w, step| match &step.op {
        op if op.elementwise() => shrunk(w, step, true),
        Op::Reshape(r) => ordered(w, step.args[0], &r.to),
        _ => None,
    })
}

fn rule(w: &mut Rewrite, step: &Step) -> Option<Ref> {
    let x = *step.args.first()?;
    joined(w, step).or_else(|| match &step.op {
        Op::Permute(p) => permuted(w, x, &p.perm),
        Op::Reshape(r) => reshaped(w, x, &r.to),
        Op::Broadcast(b) => broadcast(w, x, &b.to),
        Op::Slice(s) => match &w.step(x)?.op {
            Op::SliceAssign(inner) if inner.region == s.region => Some(w.step(x)?.args[1]),
            _ => None,
        },
        Op::Sum(s) => summed(w, x, &s.axes, step),
        op if op.elementwise() => shrunk(w, step, false),
        _ => None,
    })
}

/// The index maps of one operand of a step, if it is moved axis by axis.
fn maps(w: &Rewrite, step: &Step, operand: usize) -> Option<Maps> {
    let shapes: SmallVec<[Shape; 2]> = step.args.iter().map(|&a| w.shape(a)).collect();
    let shapes: SmallVec<[&[usize]; 2]> = shapes.iter().map(|s| &**s).collect();
    (0..step.avals[0].shape.len()).map(|axis| step.op.axis_map(&shapes, operand, axis)).collect()
}

type Maps = SmallVec<[AxisMap; 4]>;

/// A move that changes nothing left out, and one after another as one.
fn joined(w: &mut Rewrite, step: &Step) -> Option<Ref> {
    if step.op.stops_gradient() {
        return None;
    }
    // An operand of which every element stays in its place is the result.
    let operands = match step.op.movement()? {
        Movement::View => 0..1,
        Movement::Over => 1..2,
        Movement::Joined => 0..step.args.len(),
    };
    for k in operands {
        let shape = w.shape(step.args[k]);
        if let Some(maps) = maps(w, step, k)
            && is_identity(&maps, &shape)
        {
            return Some(step.args[k]);
        }
    }
    let before = w.step(step.args[0])?.clone();
    let views = [&step.op, &before.op].iter().all(|op| op.movement() == Some(Movement::View));
    if !views || before.op.stops_gradient() {
        return None;
    }
    let (outer, inner) = (maps(w, step, 0)?, maps(w, &before, 0)?);
    let both =
        outer.iter().map(|m| m.of.map_or(Some(*m), |k| m.after(&inner[k]))).collect::<Option<Maps>>()?;
    let source = before.args[0];
    let shape = w.shape(source);
    if is_identity(&both, &shape) {
        return Some(source);
    }
    Some(w.push(view(&both, &shape)?, &[source]))
}

/// Whether maps of a value of this shape move nothing.
fn is_identity(maps: &[AxisMap], shape: &[usize]) -> bool {
    maps.len() == shape.len() && maps.iter().zip(shape).enumerate().all(|(k, (m, &n))| m.is_whole(k, n))
}

/// The one operation on a value of this shape that has these maps, if there is one.
fn view(maps: &[AxisMap], shape: &[usize]) -> Option<Op> {
    let whole = |m: &AxisMap| m.of.is_some_and(|k| m.is_whole(k, shape[k]));
    let lead = maps.len().checked_sub(shape.len())?;
    let to: Shape = maps.iter().map(|m| m.len).collect();
    let stretches = |(axis, m): (usize, &AxisMap)| match axis.checked_sub(lead) {
        Some(k) if m.of.is_some() => m.is_whole(k, shape[k]),
        Some(k) => shape[k] == 1,
        None => m.of.is_none(),
    };
    if lead == 0 && maps.iter().all(whole) {
        return Some(Permute { perm: maps.iter().filter_map(|m| m.of).collect() }.into());
    }
    if maps.iter().enumerate().all(stretches) {
        return Some(Broadcast { to }.into());
    }
    let slices = maps.iter().enumerate().all(|(k, m)| m.of == Some(k) && m.is_full() && m.len > 0);
    let axes = || maps.iter().map(|m| (m.start as usize, m.step, m.len)).collect();
    (lead == 0 && slices).then(|| Slice { region: SliceSpec { axes: axes() } }.into())
}

fn permuted(w: &mut Rewrite, x: Ref, perm: &Axes) -> Option<Ref> {
    let step = w.step(x)?;
    let (op, args) = (step.op.clone(), step.args.clone());
    match op {
        // Axes of length 1 can be moved by the reshape itself.
        Op::Reshape(_) if keeps_order(&w.shape(x), perm) => {
            let shape = w.shape(x);
            let to = perm.iter().map(|&p| shape[p]).collect();
            Some(w.push(Reshape { to }, &[args[0]]))
        }
        Op::Dot(_) if swaps_last(perm) && w.single(x) => transposed_product(w, args[0], args[1]),
        op if op.elementwise() && w.single(x) => unpermuted(w, &op, &args, perm),
        _ => None,
    }
}

/// Whether the axes longer than 1 stay in their order.
fn keeps_order(shape: &[usize], perm: &[usize]) -> bool {
    let long: Axes = perm.iter().copied().filter(|&p| shape[p] != 1).collect();
    long.is_sorted() && !shape.contains(&0)
}

fn swaps_last(perm: &[usize]) -> bool {
    let r = perm.len();
    r >= 2 && perm[..r - 2].iter().enumerate().all(|(k, &p)| k == p) && perm[r - 1] == r - 2
}

/// `(ab)ᵀ = bᵀaᵀ`, if a factor is a transpose already.
fn transposed_product(w: &mut Rewrite, a: Ref, b: Ref) -> Option<Ref> {
    let transposed =
        |w: &Rewrite, x: Ref| w.operand(x, |op| matches!(op, Op::Permute(p) if swaps_last(&p.perm)));
    let (before_a, before_b) = (transposed(w, a), transposed(w, b));
    let gone = |w: &Rewrite, x: Ref, before: Option<Ref>| before.is_some() && w.single(x);
    if !gone(w, a, before_a) && !gone(w, b, before_b) {
        return None;
    }
    let swap = |w: &mut Rewrite, x: Ref| {
        let r = w.shape(x).len();
        let perm = (0..r - 2).chain([r - 1, r - 2]).collect();
        w.push(Permute { perm }, &[x])
    };
    let at = before_a.unwrap_or_else(|| swap(w, a));
    let bt = before_b.unwrap_or_else(|| swap(w, b));
    Some(w.push(Dot, &[bt, at]))
}

/// An operation between a permutation and its inverse, without both.
fn unpermuted(w: &mut Rewrite, op: &Op, args: &[Ref], perm: &Axes) -> Option<Ref> {
    let inverse_of = |first: &Axes| perm.iter().map(|&p| first[p]).eq(0..perm.len());
    let cancels = |op: &Op| matches!(op, Op::Permute(p) if inverse_of(&p.perm));
    let mut sources: SmallVec<[Option<Ref>; 3]> = SmallVec::new();
    for &a in args {
        sources.push(match w.splat(a) {
            Some(_) => None,
            None => Some(w.operand(a, cancels)?),
        });
    }
    let shape = w.shape((*sources.iter().flatten().next()?).to_owned());
    let args: SmallVec<[Ref; 3]> =
        sources.iter().zip(args).map(|(s, &a)| s.unwrap_or_else(|| w.resized(a, &shape))).collect();
    Some(w.push(op.clone(), &args))
}

fn reshaped(w: &mut Rewrite, x: Ref, to: &Shape) -> Option<Ref> {
    if w.shape(x) == *to {
        return Some(x);
    }
    let step = w.step(x)?;
    let first = step.args[0];
    let joins = match &step.op {
        // A reshape of what is seen in another order is a copy, and two of the same would be two.
        Op::Reshape(_) => w.single(x) || !w.step(first).is_some_and(|s| s.op.is_view()),
        Op::Permute(p) => keeps_order(&w.shape(first), &p.perm),
        _ => false,
    };
    joins.then(|| if w.shape(first) == *to { first } else { w.push(Reshape { to: to.clone() }, &[first]) })
}

/// A reshape of computed values that are permuted first is a copy: without it, if they are computed in that order.
fn ordered(w: &mut Rewrite, x: Ref, to: &Shape) -> Option<Ref> {
    let Op::Permute(p) = &w.step(x).filter(|_| w.single(x))?.op else { return None };
    let (perm, source) = (p.perm.clone(), w.operand(x, |_| true)?);
    let (shape, strides) = (w.shape(source), w.shape(source).strides());
    let seen: SmallVec<[_; 6]> = perm.iter().map(|&p| strides[p]).collect();
    let is_copy = Reshape { to: to.clone() }.view(&w.shape(x), 0, &seen).is_none();
    if !is_copy || shape.numel() == 0 || !is_inner(w, source) {
        return None;
    }
    let moved = permuted_before(w, source, &perm, DEEPEST);
    Some(w.push(Reshape { to: to.clone() }, &[moved]))
}

/// Operations on the way to what they read, at most: as many as a group has.
const DEEPEST: usize = 64;

/// Whether a value is computed by elements, and read by one operation alone.
fn is_inner(w: &Rewrite, x: Ref) -> bool {
    w.single(x) && w.step(x).is_some_and(|s| s.op.elementwise())
}

/// The permuted value, computed from permuted operands.
fn permuted_before(w: &mut Rewrite, x: Ref, perm: &Axes, depth: usize) -> Ref {
    if w.splat(x).is_some() {
        let shape = w.shape(x);
        return w.resized(x, &perm.iter().map(|&p| shape[p]).collect());
    }
    if depth == 0 || !is_inner(w, x) {
        return w.push(Permute { perm: perm.clone() }, &[x]);
    }
    let Step { op, args, .. } = w.step(x).expect("it is computed").clone();
    let args: SmallVec<[Ref; 3]> = args.iter().map(|&a| permuted_before(w, a, perm, depth - 1)).collect();
    w.push(op, &args)
}

fn broadcast(w: &mut Rewrite, x: Ref, to: &Shape) -> Option<Ref> {
    let Op::Reshape(r) = &w.step(x)?.op else { return None };
    let first = w.step(x)?.args[0];
    let before = w.shape(first);
    // New axes in front are what a broadcast makes itself.
    let joins = r.to.len() > before.len()
        && r.to.ends_with(&before)
        && r.to[..r.to.len() - before.len()].iter().all(|&n| n == 1);
    joins.then(|| if w.shape(first) == *to { first } else { w.push(Broadcast { to: to.clone() }, &[first]) })
}

fn summed(w: &mut Rewrite, x: Ref, axes: &Axes, step: &Step) -> Option<Ref> {
    let shape = w.shape(x);
    let dtype = w.aval(x).dtype;
    if axes.iter().all(|&a| shape[a] == 1) && dtype == step.avals[0].dtype {
        let to = step.avals[0].shape.clone();
        return Some(if shape == to { x } else { w.push(Reshape { to }, &[x]) });
    }
    let inner = w.step(x).filter(|_| w.single(x))?;
    let (op, source) = (inner.op.clone(), inner.args[0]);
    match op {
        Op::Sum(first) => {
            // The axes that the first sum has left, by their places before it.
            let rank = w.shape(source).len();
            let left: Axes = (0..rank).filter(|k| !first.axes.contains(k)).collect();
            let mut all: Axes = first.axes.iter().copied().chain(axes.iter().map(|&a| left[a])).collect();
            all.sort_unstable();
            Some(w.push(Sum { axes: all }, &[source]))
        }
        Op::Reshape(_) | Op::Permute(_) if axes.len() == shape.len() => {
            let all = (0..w.shape(source).len()).collect();
            Some(w.push(Sum { axes: all }, &[source]))
        }
        Op::Broadcast(_) if dtype.is_float() => sum_of_repeated(w, source, &shape, axes, dtype),
        _ => None,
    }
}

/// The sum over axes of which some repeat their elements: those are multiplied. Only where that takes no more operations.
fn sum_of_repeated(w: &mut Rewrite, x: Ref, full: &Shape, axes: &Axes, dtype: DType) -> Option<Ref> {
    let before = w.shape(x);
    let lead = full.len() - before.len();
    let repeated = |a: usize| a < lead || (before[a - lead] == 1 && full[a] != 1);
    let (gone, rest): (Axes, Axes) = axes.iter().copied().partition(|&a| repeated(a));
    let count: usize = gone.iter().map(|&a| full[a]).product();
    // Nothing may be left to repeat.
    if gone.is_empty()
        || count == 0
        || !is_exact(count, dtype)
        || (0..full.len()).any(|a| repeated(a) && !gone.contains(&a))
    {
        return None;
    }
    let to: Shape =
        before.iter().enumerate().filter(|(k, _)| !gone.contains(&(k + lead))).map(|(_, &n)| n).collect();
    if to != before && !rest.is_empty() {
        return None;
    }
    let mut y = if to == before { x } else { w.push(Reshape { to }, &[x]) };
    if !rest.is_empty() {
        let axes = rest.iter().map(|a| a - lead).collect();
        y = w.push(Sum { axes }, &[y]);
    }
    let count = w.number(count as f64, &w.aval(y));
    Some(w.push(Mul, &[y, count]))
}

/// Whether a type holds a whole number.
fn is_exact(n: usize, dtype: DType) -> bool {
    let digits = match dtype {
        DType::F64 => 53,
        DType::F32 => 24,
        DType::F16 => 11,
        _ => 8,
    };
    n <= 1 << digits
}

/// An elementwise operation on operands that are all broadcast, or all reshaped, from one shape: first the operation, then the move.
/// Then fewer elements are computed, and moves come to where they meet others. Unless `eager`, only if that takes no more operations.
fn shrunk(w: &mut Rewrite, step: &Step, eager: bool) -> Option<Ref> {
    let mut source: Option<(Shape, bool)> = None;
    let mut single = false;
    for &a in &step.args {
        if w.splat(a).is_some() {
            continue;
        }
        let inner = w.step(a)?;
        let broadcasts = match inner.op {
            Op::Broadcast(_) => true,
            Op::Reshape(_) => false,
            _ => return None,
        };
        let from = (w.shape(inner.args[0]), broadcasts);
        if source.get_or_insert_with(|| from.clone()) != &from {
            return None;
        }
        single |= w.single(a);
    }
    let (shape, broadcasts) = source?;
    // Repeating to nothing at all would compute what was not computed before.
    if !(single || eager && broadcasts) || (broadcasts && shape.numel() >= step.avals[0].shape.numel()) {
        return None;
    }
    let args: SmallVec<[Ref; 3]> = step
        .args
        .iter()
        .map(|&a| match w.splat(a) {
            Some(_) => w.resized(a, &shape),
            None => w.operand(a, |_| true).expect("it was looked at above"),
        })
        .collect();
    let small = w.push(step.op.clone(), &args);
    let to = step.avals[0].shape.clone();
    Some(if broadcasts { w.push(Broadcast { to }, &[small]) } else { w.push(Reshape { to }, &[small]) })
}
