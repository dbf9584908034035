//! Narrowing: a value of which few rows are read, or which is zero but for few rows, is computed in those alone.
//!
//! The gradient of the last element of a long vector is zero almost everywhere, and stays so through the first operations of the way back:
//! an exact zero wins over whatever it is multiplied by. What the forward pass computed for the other rows is then read by nobody.
//! Rows are those of the first axis. Values are the same to the bit.

use super::pipeline::Target;
use super::{Options, dce};
use crate::graph::constant;
use crate::graph::{Builder, Graph, Ref, Step, effort};
use crate::ops::{Aval, AxisMap, Movement, Op, Slice, SliceAssign, SliceSpec};
use crate::shape::Shape;
use crate::tensor::Tensor;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::ops::Range;
use std::panic::Location;

#[cfg(test)]
mod tests;

/// Some rows that follow one another.
type Rows = Range<usize>;

/// A value is narrowed to no more than one row in so many: less would not be worth the slices.
const ONE_IN: usize = 4;

/// Values of fewer elements are left as they are.
const SMALL: usize = 1 << 9;

/// The graph with values narrowed to the rows that matter.
pub(super) fn narrow(graph: &Graph, _: &Target) -> Graph {
    let kinds: Vec<Kind> = graph.steps.iter().map(|step| Kind::of(graph, step)).collect();
    let mut parts = read_rows(graph, &kinds, &nonzero_rows(graph, &kinds));
    even_out(graph, &mut parts);
    let whole = |k: usize| parts[k].is_none() || parts[k] == Some(0..rows(graph, Ref::Step(k, 0)));
    if (0..graph.len()).all(whole) {
        return graph.clone();
    }
    let mut new =
        Narrowed { graph, parts, values: Vec::with_capacity(graph.len()), out: Builder::like(graph) };
    for (step, kind) in graph.steps.iter().zip(&kinds) {
        let value = new.step(step, kind);
        new.values.push(value);
    }
    let all = |a: Ref| 0..rows(graph, a);
    let outputs = graph.outputs.iter().map(|&a| new.read(a, all(a), Location::caller())).collect();
    let names = graph.names.iter().filter_map(|(name, a)| Some((name.clone(), new.whole(*a)?))).collect();
    dce::dce(&new.out.finish(outputs, names), &Options::default())
}

/// Constants that are zero but for few rows, as these rows put into zeros.
pub(super) fn sparse_constants(graph: &Graph) -> Graph {
    let short: Vec<Option<Rows>> = graph.consts.iter().map(few_nonzero).collect();
    if short.iter().all(Option::is_none) {
        return graph.clone();
    }
    let mut out = Builder::like(graph);
    let mut place: Vec<Ref> = Vec::with_capacity(graph.consts.len());
    for (k, rows) in short.into_iter().enumerate() {
        let t = &graph.consts[k];
        place.push(match rows {
            None => Ref::Const(k),
            Some(rows) => {
                let region = region(&rows, &t.node().shape);
                let zeros = out.constant(Tensor::zeros_of(t.dtype(), t.node().shape.clone()));
                // A tensor of its own, that does not hold the memory of the long one.
                let part =
                    Tensor::from_slice(&t.region(&region).to_vec::<f64>(), [rows.len()]).cast(t.dtype());
                let part = out.constant(part);
                push(&mut out, SliceAssign { region }, &[zeros, part], Location::caller())
            }
        });
    }
    let before = out.graph().len();
    let moved = |a: &Ref| match *a {
        Ref::Const(k) => place[k],
        Ref::Step(k, slot) => Ref::Step(k + before, slot),
        input => input,
    };
    for step in &graph.steps {
        out.place(Step { args: step.args.iter().map(moved).collect(), ..step.clone() });
    }
    let names = graph.names.iter().map(|(name, a)| (name.clone(), moved(a))).collect();
    let outputs = graph.outputs.iter().map(moved).collect();
    // The long constants are dropped.
    dce::dce(&out.finish(outputs, names), &Options::default())
}

/// The rows of a long vector that are not all zeros, if they are few.
fn few_nonzero(t: &Tensor) -> Option<Rows> {
    let long = t.shape().len() == 1 && t.numel() >= SMALL && t.dtype().is_float();
    if !long || !constant::is_literal(t) || constant::is_splat(t) {
        return None;
    }
    let zero = |v: &f64| v.to_bits() == 0;
    let n = t.numel();
    // Two looks are enough for most.
    let end = |k: usize| t.region(&region(&(k..k + 1), &t.node().shape)).to_vec::<f64>();
    if !zero(&end(0)[0]) && !zero(&end(n - 1)[0]) {
        return None;
    }
    let values = t.to_vec::<f64>();
    let first = values.iter().position(|v| !zero(v)).unwrap_or(0);
    let last = values.iter().rposition(|v| !zero(v)).map_or(first + 1, |k| k + 1);
    Some(first..last).filter(|rows| rows.len() * ONE_IN <= n)
}

/// What the rows of a result have to do with those of the operands.
enum Kind {
    /// Each row is one of the same rows of all operands.
    Each,
    /// The rows of the operand from this one on.
    From(usize),
    /// The first operand, with these rows replaced by the second.
    Replaced(Rows),
    /// The rows of all operands, one after the other.
    Joined,
    /// Nothing is known.
    Other,
}

impl Kind {
    fn of(graph: &Graph, step: &Step) -> Kind {
        let [aval] = &step.avals[..] else { return Kind::Other };
        if aval.shape.is_empty() || aval.shape.numel() == 0 || matches!(step.op, Op::Block(_)) {
            return Kind::Other;
        }
        let operands: SmallVec<[Aval; 2]> = step.args.iter().map(|&a| graph.aval(a)).collect();
        // Operations on integers may fail, and are to fail wherever they did.
        if step.op.elementwise() {
            let fits = |a: &Aval| a.shape == aval.shape && !a.dtype.is_int();
            return if operands.iter().all(fits) { Kind::Each } else { Kind::Other };
        }
        let shapes: SmallVec<[&[usize]; 2]> = operands.iter().map(|a| &*a.shape).collect();
        let whole_rows = |k: usize| rows_of(step, &shapes, k);
        let kind = match step.op.movement() {
            Some(Movement::View) => whole_rows(0).map(|map| Kind::From(map.start as usize)),
            Some(Movement::Over) => whole_rows(1).map(|map| Kind::Replaced(map.inside.0..map.inside.1)),
            Some(Movement::Joined) => {
                (0..operands.len()).all(|k| whole_rows(k).is_some()).then_some(Kind::Joined)
            }
            None => None,
        };
        kind.unwrap_or(Kind::Other)
    }
}

/// Where the rows of an operand come to lie in the result, if they stay whole and in their order.
fn rows_of(step: &Step, shapes: &[&[usize]], operand: usize) -> Option<AxisMap> {
    let map = |axis: usize| step.op.axis_map(shapes, operand, axis);
    let (shape, rank) = (shapes[operand], step.avals[0].shape.len());
    let whole = |axis: usize| map(axis).is_some_and(|m| m.is_whole(axis, shape[axis]));
    let rest = shape.len() == rank && (1..rank).all(whole);
    map(0).filter(|m| rest && m.of == Some(0) && m.step == 1)
}

fn rows(graph: &Graph, at: Ref) -> usize {
    graph.aval(at).shape.first().copied().unwrap_or(1)
}

/// Rows as a region of a shape.
fn region(rows: &Rows, shape: &[usize]) -> SliceSpec {
    let first = (rows.start, 1, rows.len());
    SliceSpec { axes: std::iter::once(first).chain(shape[1..].iter().map(|&n| (0, 1, n))).collect() }
}

/// A shape with another number of rows.
fn with_rows(shape: &Shape, n: usize) -> Shape {
    std::iter::once(n).chain(shape[1..].iter().copied()).collect()
}

/// The rows from the first to the last that are in either.
fn hull(a: Rows, b: Rows) -> Rows {
    match (a.is_empty(), b.is_empty()) {
        (true, _) => b,
        (_, true) => a,
        _ => a.start.min(b.start)..a.end.max(b.end),
    }
}

/// The rows that are in both.
fn meet(a: &Rows, b: &Rows) -> Rows {
    let (start, end) = (a.start.max(b.start), a.end.min(b.end));
    if start < end { start..end } else { 0..0 }
}

fn up(rows: Rows, by: usize) -> Rows {
    if rows.is_empty() { rows } else { rows.start + by..rows.end + by }
}

fn down(rows: Rows, by: usize) -> Rows {
    if rows.is_empty() { rows } else { rows.start - by..rows.end - by }
}

/// For the result of each step: rows outside of which all elements are zeros, without a sign.
fn nonzero_rows(graph: &Graph, kinds: &[Kind]) -> Vec<Rows> {
    let mut found: Vec<Rows> = Vec::with_capacity(graph.len());
    let few: Vec<Option<Rows>> = graph.consts.iter().map(few_nonzero).collect();
    for (k, (step, kind)) in graph.steps.iter().zip(kinds).enumerate() {
        let all = 0..rows(graph, Ref::Step(k, 0));
        let of = |n: usize| match step.args[n] {
            Ref::Step(k, 0) => found[k].clone(),
            constant @ Ref::Const(_) if graph.number(constant).is_some_and(|v| v.to_bits() == 0) => 0..0,
            Ref::Const(k) => few[k].clone().unwrap_or(0..rows(graph, Ref::Const(k))),
            other => 0..rows(graph, other),
        };
        let positive = |n: usize| graph.number(step.args[n]).is_some_and(|v| v > 0.0 && v.is_finite());
        found.push(match (kind, &step.op) {
            (Kind::Each, Op::Gate(_)) => of(0),
            (Kind::Each, Op::Add(_) | Op::Sub(_)) => hull(of(0), of(1)),
            (Kind::Each, Op::Mul(_)) if positive(1) => of(0),
            (Kind::Each, Op::Mul(_)) if positive(0) => of(1),
            (Kind::From(start), _) => down(meet(&of(0), &up(all, *start)), *start),
            (Kind::Replaced(part), _) => {
                let around = Some(of(0)).filter(|rows| meet(rows, part) != *rows).unwrap_or(0..0);
                hull(around, up(of(1), part.start))
            }
            (Kind::Joined, _) => {
                let mut start = 0;
                (0..step.args.len()).fold(0..0, |joined, n| {
                    let own = up(of(n), start);
                    start += rows(graph, step.args[n]);
                    hull(joined, own)
                })
            }
            _ => all,
        });
    }
    found
}

/// The rows of each result that are to be computed, if any: those that are read and not zeros, or all where that would not be worth it.
fn read_rows(graph: &Graph, kinds: &[Kind], nonzero: &[Rows]) -> Vec<Option<Rows>> {
    let mut read: Vec<Option<Rows>> = vec![None; graph.len()];
    let want = |read: &mut Vec<Option<Rows>>, at: Ref, part: Rows| {
        if let Ref::Step(k, _) = at {
            read[k] = Some(hull(read[k].take().unwrap_or(0..0), part));
        }
    };
    graph.outputs.iter().for_each(|&a| want(&mut read, a, 0..rows(graph, a)));
    for (k, (step, kind)) in graph.steps.iter().zip(kinds).enumerate().rev() {
        let Some(part) = read[k].clone() else { continue };
        let all = 0..rows(graph, Ref::Step(k, 0));
        let mut part = meet(&part, &nonzero[k]);
        let small = step.avals[0].shape.numel() < SMALL;
        if small || part.len() * ONE_IN > all.len() || matches!(kind, Kind::Other) {
            part = all;
        }
        match kind {
            Kind::Other => step.args.iter().for_each(|&a| want(&mut read, a, 0..rows(graph, a))),
            Kind::Each => step.args.iter().for_each(|&a| want(&mut read, a, part.clone())),
            Kind::From(start) => want(&mut read, step.args[0], up(part.clone(), *start)),
            Kind::Replaced(new) => {
                let inside = meet(&part, new);
                if inside != part {
                    want(&mut read, step.args[0], part.clone());
                }
                want(&mut read, step.args[1], down(inside, new.start));
            }
            Kind::Joined => {
                let mut start = 0;
                for &a in &step.args {
                    let own = start..start + rows(graph, a);
                    want(&mut read, a, down(meet(&part, &own), start));
                    start = own.end;
                }
            }
        }
        read[k] = Some(part);
    }
    read
}

/// Values that are made of each other and have equally many rows are narrowed to the same ones, so that they can be fused as before.
///
/// That is always right: a row that is added is read by nobody, or is zero. It comes out as zero in the second case, because then so
/// do the rows that it is made of, and whatever it comes out as in the first.
fn even_out(graph: &Graph, parts: &mut [Option<Rows>]) {
    let all = |k: usize| rows(graph, Ref::Step(k, 0));
    let narrow: Vec<bool> = parts
        .iter()
        .enumerate()
        .map(|(k, part)| part.as_ref().is_some_and(|part| !part.is_empty() && part.len() < all(k)))
        .collect();
    // The values that are made of each other, named by one of them.
    let mut group: Vec<usize> = (0..graph.len()).collect();
    // Each look makes the way shorter for later ones, so that a chain takes no time quadratic in its length.
    let named = |group: &mut [usize], mut k: usize| {
        while group[k] != k {
            effort::note(1);
            group[k] = group[group[k]];
            k = group[k];
        }
        k
    };
    for (k, step) in graph.steps.iter().enumerate().filter(|(k, _)| narrow[*k]) {
        for arg in &step.args {
            if let Ref::Step(p, 0) = *arg
                && narrow[p]
            {
                let (a, b) = (named(&mut group, k), named(&mut group, p));
                group[b] = a;
                group[p] = a;
            }
        }
    }
    let mut common: HashMap<(usize, usize), Rows> = HashMap::new();
    let keys: Vec<(usize, usize)> = (0..graph.len()).map(|k| (named(&mut group, k), all(k))).collect();
    for (k, part) in parts.iter().enumerate().filter(|(k, _)| narrow[*k]) {
        let common = common.entry(keys[k]).or_insert(0..0);
        *common = hull(common.clone(), part.clone().expect("it is narrow"));
    }
    for (k, part) in parts.iter_mut().enumerate().filter(|(k, _)| narrow[*k]) {
        // Rows that lie far apart are not computed with all between them.
        let common = Some(&common[&keys[k]]).filter(|rows| rows.len() * ONE_IN <= all(k));
        *part = common.or(part.as_ref()).cloned();
    }
}

/// Adds an operation, which fits its operands.
fn push(out: &mut Builder, op: impl Into<Op>, args: &[Ref], at: &'static Location<'static>) -> Ref {
    out.push(op, args, at).expect("a rewrite keeps types")
}

/// A graph that is being written anew.
struct Narrowed<'g> {
    graph: &'g Graph,
    /// The rows of each old result that the new one has. The others are zeros, or do not matter.
    parts: Vec<Option<Rows>>,
    /// The new results; none for those without rows.
    values: Vec<Option<Ref>>,
    out: Builder,
}

impl Narrowed<'_> {
    /// The new value of a step, if it has one.
    fn step(&mut self, step: &Step, kind: &Kind) -> Option<Ref> {
        let part = self.parts[self.values.len()].clone()?;
        let at = step.location;
        if let Kind::Other = kind {
            let all = |a: Ref| 0..rows(self.graph, a);
            let args: Vec<Rows> = step.args.iter().map(|&a| all(a)).collect();
            let args = step.args.iter().zip(args).map(|(&a, all)| self.read(a, all, at)).collect();
            return Some(self.out.place(Step { args, ..step.clone() }));
        }
        if part.is_empty() {
            return None;
        }
        Some(match kind {
            Kind::From(start) => self.read(step.args[0], up(part, *start), at),
            Kind::Replaced(new) => {
                let inside = meet(&part, new);
                if inside == part {
                    self.read(step.args[1], down(part, new.start), at)
                } else if inside.is_empty() {
                    self.read(step.args[0], part, at)
                } else {
                    let shape = with_rows(&step.avals[0].shape, part.len());
                    let around = self.read(step.args[0], part.clone(), at);
                    let inner = self.read(step.args[1], down(inside.clone(), new.start), at);
                    let region = region(&down(inside, part.start), &shape);
                    push(&mut self.out, SliceAssign { region }, &[around, inner], at)
                }
            }
            Kind::Joined => {
                let (mut start, mut args) = (0, Vec::new());
                for &a in &step.args {
                    let own = start..start + rows(self.graph, a);
                    let inside = meet(&part, &own);
                    if !inside.is_empty() {
                        args.push(self.read(a, down(inside, start), at));
                    }
                    start = own.end;
                }
                if let [one] = args[..] { one } else { push(&mut self.out, step.op.clone(), &args, at) }
            }
            Kind::Each | Kind::Other => {
                let args: Vec<Ref> = step.args.iter().map(|&a| self.read(a, part.clone(), at)).collect();
                push(&mut self.out, step.op.clone(), &args, at)
            }
        })
    }

    /// Some rows of an old value, as a new one.
    fn read(&mut self, old: Ref, part: Rows, at: &'static Location<'static>) -> Ref {
        let aval = self.graph.aval(old);
        let (value, has) = match old {
            Ref::Step(k, slot) => {
                let has = self.parts[k].clone().unwrap_or(0..0);
                (self.values[k].map(|v| v.slot(slot)), if slot == 0 { has } else { 0..rows(self.graph, old) })
            }
            other => (Some(other), 0..rows(self.graph, other)),
        };
        if let (Some(value), true) = (value, has == part) {
            return value;
        }
        let shape = with_rows(&aval.shape, part.len());
        if let Ref::Const(k) = old
            && constant::is_splat(&self.graph.consts[k])
        {
            return self.out.constant(constant::resized(&self.graph.consts[k], shape));
        }
        let inside = meet(&has, &part);
        let zeros = |out: &mut Builder| out.constant(Tensor::zeros_of(aval.dtype, shape.clone()));
        let Some(value) = value.filter(|_| !inside.is_empty()) else { return zeros(&mut self.out) };
        let own = match inside == has {
            true => value,
            false => {
                let region = region(&down(inside.clone(), has.start), &shape);
                push(&mut self.out, Slice { region }, &[value], at)
            }
        };
        if inside == part {
            return own;
        }
        let zeros = zeros(&mut self.out);
        let region = region(&down(inside, part.start), &shape);
        push(&mut self.out, SliceAssign { region }, &[zeros, own], at)
    }

    /// A value that has all of its rows.
    fn whole(&self, old: Ref) -> Option<Ref> {
        match old {
            Ref::Step(k, slot) => {
                let all = self.parts[k].as_ref()?.len() == rows(self.graph, Ref::Step(k, 0));
                self.values[k].filter(|_| all).map(|v| v.slot(slot))
            }
            other => Some(other),
        }
    }
}
