//! The common iteration space of some operations: what may be fused, and how.
//!
//! A group runs over `rows` of `cols` elements each, in row-major order. Every value of it has one [`Extent`]. All questions of
//! what can be part of a group are answered here, for the pass that makes groups and for the compiler of their programs.

use super::function::Function;
use crate::DType;
use crate::graph::operands::{Operands, View, moved, repeated};
use crate::graph::{Graph, Ref};
use crate::ops::Op;

/// The longest row that a group works on as a whole: what it keeps of such a row still fits the second cache.
pub(crate) const LONGEST_ROW: usize = 8192;

/// Most elements that a tile computes beyond its own, so that its neighbours' are there for reads at other places, and most elements
/// that the members of such a group differ by.
pub(crate) const MAX_BEYOND: usize = 64;

/// How much of the iteration space a value of a group has elements for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Extent {
    /// One number for all.
    One,
    /// One for each row.
    Row,
    /// One for each element.
    Full,
    /// A result that is complete only at the end: one for each column.
    Columns,
    /// A result that is complete only at the end: a single number.
    Total,
}

/// The shape of a group, and where each of its operations belongs.
#[derive(Clone, Debug)]
pub(crate) struct Space {
    /// `F32` or `F64`.
    pub dtype: DType,
    pub rows: usize,
    pub cols: usize,
    /// A row has to be seen whole, because the result of its reduction is used in the same group.
    pub whole: bool,
    /// Members read each other at other places: there is one row, and each value has a length of its own.
    pub shifted: bool,
    /// The extent of each member's value, in the order of the members.
    pub extents: Vec<Extent>,
}

/// Which axes a reduction takes, those of length 1 apart.
enum Reduced {
    All,
    /// The last ones, so many elements together.
    Trailing(usize),
    /// The first ones; so many elements stay.
    Leading(usize),
}

fn reduced(shape: &[usize], axes: &[usize]) -> Option<Reduced> {
    let taken: Vec<(usize, bool)> =
        shape.iter().enumerate().filter(|(_, n)| **n != 1).map(|(k, &n)| (n, axes.contains(&k))).collect();
    let product = |which: bool| taken.iter().filter(|t| t.1 == which).map(|t| t.0).product();
    match (taken.first()?.1, taken.last()?.1) {
        _ if taken.windows(2).filter(|w| w[0].1 != w[1].1).count() > 1 => None,
        (true, true) => Some(Reduced::All),
        (false, true) => Some(Reduced::Trailing(product(true))),
        (true, false) => Some(Reduced::Leading(product(false))),
        (false, false) => None,
    }
}

/// Whether an operation can be part of a group at all: then it is a function of elements, or a reduction of them.
pub(crate) fn is_member(graph: &Graph, step: usize) -> bool {
    let step = &graph.steps[step];
    if step.avals.len() != 1 || moved(graph, step).is_some() {
        return false;
    }
    let known = |d: DType| matches!(d, DType::F32 | DType::F64 | DType::Bool);
    let inputs = || step.args.iter().map(|&a| graph.aval(a));
    let typed = known(step.avals[0].dtype) && inputs().all(|a| known(a.dtype) && a.shape.numel() > 0);
    typed
        && match &step.op {
            // Between truth and number, which are the same here.
            Op::Cast(c) => (c.to == DType::Bool) != (inputs().all(|a| a.dtype == DType::Bool)),
            Op::Clamp(_) => true,
            op if op.is_rowwise() => true,
            op => Function::of(op).is_some() || (op.reduction().is_some() && step.avals[0].dtype.is_float()),
        }
}

/// The space of a group of operations (rising positions of [members](is_member)), or `None` if they cannot be one.
pub(crate) fn of(graph: &Graph, operands: &Operands, members: &[usize]) -> Option<Space> {
    even(graph, operands, members).or_else(|| shifted(graph, operands, members))
}

/// The space of operations that read each other in place.
fn even(graph: &Graph, operands: &Operands, members: &[usize]) -> Option<Space> {
    let operands = |k: usize| operands[members[k]].as_slice();
    let place = |at: Ref| match at {
        Ref::Step(k, _) => members.binary_search(&k).ok(),
        _ => None,
    };
    let mut used = vec![false; members.len()];
    let all = (0..members.len()).flat_map(operands);
    all.filter_map(|(base, _)| place(*base)).for_each(|k| used[k] = true);
    let steps = || members.iter().map(|&m| &graph.steps[m]);

    let dtype = dtype(graph, members)?;
    let size = |k: usize| match graph.steps[members[k]].op.reduction() {
        Some(_) => operands(k)[0].1.len(),
        None => graph.steps[members[k]].avals[0].shape.numel(),
    };
    let n = (0..members.len()).map(size).max()?;

    let mut cols: Option<usize> = None;
    let mut agree = |c: usize| *cols.get_or_insert(c) == c;
    for (k, step) in steps().enumerate() {
        if size(k) != n {
            continue;
        }
        if let Some((_, axes)) = step.op.reduction() {
            let fits = match reduced(&graph.aval(step.args[0]).shape, axes)? {
                Reduced::Trailing(c) | Reduced::Leading(c) => agree(c),
                Reduced::All => !used[k] || agree(n),
            };
            if !fits {
                return None;
            }
        }
        if step.op.is_rowwise() && !step.avals[0].shape.last().is_some_and(|&c| agree(c)) {
            return None;
        }
        for (base, view) in operands(k) {
            let whole = || view.is_whole(&graph.aval(*base).shape);
            if place(*base).is_some() && !whole() && !agree(view.repeats()) {
                return None;
            }
        }
    }
    let cols = cols.unwrap_or_else(|| {
        let hint = |v: &View| match (v.repeats(), v.period()) {
            (r, _) if r > 1 => r,
            (_, p) => p,
        };
        let external = |k: &usize| size(*k) == n;
        let views = (0..members.len()).filter(external).flat_map(operands);
        views.map(|(_, v)| hint(v)).find(|c| (2..n).contains(c)).unwrap_or(n)
    });
    if cols == 0 || !n.is_multiple_of(cols) {
        return None;
    }
    let rows = n / cols;

    let mut extents: Vec<Extent> = Vec::with_capacity(members.len());
    let mut whole = false;
    for (k, step) in steps().enumerate() {
        let own = match size(k) {
            s if s == n => Extent::Full,
            _ if step.op.is_rowwise() => return None,
            s if s == rows => Extent::Row,
            _ => return None,
        };
        for (base, view) in operands(k) {
            let shape = graph.aval(*base).shape;
            let fits = match (place(*base).map(|p| extents[p]), own) {
                (None, _) => !view.is_padded() || repeated(graph, *base).is_none(),
                (Some(Extent::Full), Extent::Full) | (Some(Extent::Row), Extent::Row) => {
                    view.is_whole(&shape)
                }
                (Some(Extent::Row), Extent::Full) => view.rows(cols).is_some_and(|v| v.is_whole(&shape)),
                _ => false,
            };
            if !fits {
                return None;
            }
        }
        let extent = match step.op.reduction() {
            None => own,
            Some((_, axes)) => match (reduced(&graph.aval(step.args[0]).shape, axes)?, own) {
                (Reduced::Trailing(_), Extent::Full) => Extent::Row,
                (Reduced::Leading(_), Extent::Full) => Extent::Columns,
                (Reduced::All, Extent::Full) if used[k] => Extent::Row,
                (Reduced::All, _) => Extent::Total,
                _ => return None,
            },
        };
        whole |= used[k] && extent == Extent::Row && step.op.reduction().is_some();
        whole |= step.op.is_rowwise();
        extents.push(extent);
    }
    let shifted = false;
    (!whole || cols <= LONGEST_ROW).then_some(Space { dtype, rows, cols, whole, shifted, extents })
}

/// The space of operations that read each other at other places: slices and pads in row-major order. A tile then computes a few
/// elements of its neighbours again, and so many only that it hardly takes longer.
fn shifted(graph: &Graph, operands: &Operands, members: &[usize]) -> Option<Space> {
    let dtype = dtype(graph, members)?;
    let mut extents = Vec::with_capacity(members.len());
    let (mut least, mut most) = (usize::MAX, 1);
    for &m in members {
        let step = &graph.steps[m];
        let fold = step.op.reduction();
        let size = if fold.is_some() { operands[m][0].1.len() } else { step.avals[0].shape.numel() };
        (least, most) = (least.min(size), most.max(size));
        // A row has to lie in one tile, and there is only one here, which all tiles have their parts of.
        if step.op.is_rowwise() {
            return None;
        }
        // What is reduced is complete only at the end.
        let total = |axes| matches!(reduced(&graph.aval(step.args[0]).shape, axes), Some(Reduced::All));
        extents.push(match fold {
            None => Extent::Full,
            Some((_, axes)) if total(axes) => Extent::Total,
            Some(_) => return None,
        });
    }
    if most.checked_sub(least)? > MAX_BEYOND {
        return None;
    }
    // How far beyond a tile each value is needed, before it and after.
    let mut beyond = vec![(0isize, 0isize); members.len()];
    for (k, &m) in members.iter().enumerate().rev() {
        let (before, after) = beyond[k];
        if before + after > MAX_BEYOND as isize {
            return None;
        }
        for (base, view) in &operands[m] {
            let place = match *base {
                Ref::Step(k, _) => members.binary_search(&k).ok(),
                _ => None,
            };
            match place {
                Some(p) if extents[p] == Extent::Full => {
                    let by = view.shift(&graph.aval(*base).shape)?.by;
                    beyond[p] = (beyond[p].0.max(before - by), beyond[p].1.max(after + by));
                }
                None if !view.is_padded() || repeated(graph, *base).is_none() => {}
                _ => return None,
            }
        }
    }
    Some(Space { dtype, rows: 1, cols: most, whole: false, shifted: true, extents })
}

/// The one float type of some operations; `None` if there are several.
fn dtype(graph: &Graph, members: &[usize]) -> Option<DType> {
    let steps = members.iter().map(|&m| &graph.steps[m]);
    let all = steps.flat_map(|s| s.args.iter().map(|&a| graph.dtype(a)).chain([s.avals[0].dtype]));
    Some(common(all.filter(|d| d.is_float()))?.unwrap_or(DType::F32))
}

/// The one type that all have; `None` if they differ.
fn common(mut all: impl Iterator<Item = DType>) -> Option<Option<DType>> {
    let first = all.next();
    all.all(|d| Some(d) == first).then_some(first)
}
