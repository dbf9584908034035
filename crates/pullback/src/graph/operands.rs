//! How an operand is read: which element of what was computed (or given) stands at each place of the shape it is used in.
//!
//! Broadcasts, permutations, reshapes, slices and pads cost nothing inside a fused group, because they only say how a value is
//! read. A pad is a value within an array of one number: a concatenation with constants, or the pullback of a slice.

use super::{Graph, Ref, Step, effort};
use crate::DType;
use crate::ops::{AxisMap, Movement};
use crate::shape::Shape;
use smallvec::SmallVec;

/// A number that is equal to itself alone, to the bit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Exact(u64);

impl Exact {
    pub fn new(number: f64) -> Exact {
        Exact(number.to_bits())
    }

    pub fn get(self) -> f64 {
        f64::from_bits(self.0)
    }
}

/// The axes of a read, outermost first, without those of length 1.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct View {
    pub axes: SmallVec<[AxisMap; 2]>,
    /// Axes of the value of which only one place is read, and which one.
    pub fixed: SmallVec<[(usize, isize); 2]>,
    /// What is at places that have no element.
    pub fill: Exact,
    /// The elements were given another shape since, in the same order: nothing can be said of its axes.
    reshaped: bool,
}

/// A read in row-major order: place `k` has element `k + by`, if it is inside, and else a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Shift {
    pub len: usize,
    pub by: isize,
    pub inside: (usize, usize),
    pub fill: Exact,
}

impl Shift {
    /// Whether all places have elements.
    pub fn is_full(&self) -> bool {
        self.inside == (0, self.len)
    }
}

impl View {
    fn of(shape: &[usize]) -> View {
        let axis = |(k, &len): (usize, &usize)| AxisMap::along(k, len);
        let axes = shape.iter().enumerate().filter(|(_, n)| **n != 1).map(axis).collect();
        View { axes, ..View::default() }
    }

    /// The number of elements read.
    pub fn len(&self) -> usize {
        self.axes.iter().map(|a| a.len).product()
    }

    /// The element of a value of this shape that is at the first place, or would be.
    pub fn first(&self, shape: &[usize]) -> isize {
        let stepped = self.axes.iter().filter_map(|a| Some((a.of?, a.start)));
        self.fixed.iter().copied().chain(stepped).map(|(axis, at)| at * stride(shape, axis)).sum()
    }

    /// Whether some places have no element.
    pub fn is_padded(&self) -> bool {
        self.axes.iter().any(|a| !a.is_full())
    }

    /// The places that have elements.
    pub fn elements(&self) -> usize {
        self.axes.iter().map(|a| a.inside.1 - a.inside.0).product()
    }

    /// Whether no place has an element here and in another read of the same places.
    pub fn is_apart(&self, other: &View) -> bool {
        let same = self.axes.iter().map(|a| a.len).eq(other.axes.iter().map(|a| a.len));
        let mut axes = self.axes.iter().zip(&other.axes);
        same && axes.any(|(a, b)| a.inside.1 <= b.inside.0 || b.inside.1 <= a.inside.0)
    }

    /// The read of a value of this shape as one run of elements in row-major order, if it is that.
    pub fn shift(&self, shape: &[usize]) -> Option<Shift> {
        let mut inside = (0, 1);
        let mut len = 1;
        for (k, axis) in self.axes.iter().enumerate().rev() {
            let steps = axis.of.map(|axis| stride(shape, axis))?;
            if steps * axis.step != len as isize || (k > 0 && !axis.is_full()) {
                return None;
            }
            inside = (axis.inside.0 * len, axis.inside.1 * len);
            len *= axis.len;
        }
        Some(Shift { len, by: self.first(shape), inside, fill: self.fill })
    }

    /// Whether it reads every element of a value of this shape once, in row-major order.
    pub fn is_whole(&self, shape: &[usize]) -> bool {
        let all = shape.iter().product::<usize>();
        self.shift(shape).is_some_and(|s| s.by == 0 && s.len == all && s.is_full())
    }

    /// How many elements in a row repeat the same one: the product of the last axes that repeat.
    pub fn repeats(&self) -> usize {
        self.axes.iter().rev().take_while(|a| a.repeats()).map(|a| a.len).product()
    }

    /// After how many elements everything repeats: the product of the axes behind the first ones that repeat.
    pub fn period(&self) -> usize {
        self.axes.iter().skip_while(|a| a.repeats()).map(|a| a.len).product()
    }

    /// The read of one element for each row of `cols`, if all of a row are the same.
    pub fn rows(&self, cols: usize) -> Option<View> {
        let mut kept = self.axes.clone();
        let mut left = cols;
        while left > 1 {
            match kept.pop() {
                Some(axis) if axis.repeats() && left.is_multiple_of(axis.len) => left /= axis.len,
                _ => return None,
            }
        }
        Some(self.with(kept))
    }

    /// The read of one row of `cols`, if all rows are the same.
    pub fn columns(&self, cols: usize) -> Option<View> {
        let repeated = self.axes.iter().take_while(|a| a.repeats()).count();
        let mut len = self.len();
        for k in 0..repeated {
            if len == cols {
                return Some(self.with(self.axes[k..].into()));
            }
            len /= self.axes[k].len;
        }
        (len == cols).then(|| self.with(self.axes[repeated..].into()))
    }

    /// The read of one element, if all are the same.
    pub fn one(&self) -> Option<View> {
        self.axes.iter().all(AxisMap::repeats).then(|| self.with(SmallVec::new()))
    }

    fn with(&self, axes: SmallVec<[AxisMap; 2]>) -> View {
        View { axes, fixed: self.fixed.clone(), fill: self.fill, reshaped: false }
    }

    /// This read seen through another step; `None` where its axes could not be told any more.
    fn through(&self, graph: &Graph, step: &Step) -> Option<View> {
        let (moved, to) = (moved_operand(graph, step)?, &*step.avals[0].shape);
        let shapes: SmallVec<[Shape; 2]> = step.args.iter().map(|&a| graph.aval(a).shape).collect();
        let shapes: SmallVec<[&[usize]; 2]> = shapes.iter().map(|s| &**s).collect();
        let from = shapes[moved.operand];
        let map = |axis| step.op.axis_map(&shapes, moved.operand, axis);
        let Some(maps) = (0..to.len()).map(map).collect::<Option<SmallVec<[AxisMap; 4]>>>() else {
            // The same elements in the same order.
            let same = to.iter().filter(|n| **n != 1).eq(self.axes.iter().map(|a| &a.len));
            return Some(View { reshaped: self.reshaped || !same, ..self.clone() });
        };
        let whole = |(k, m): (usize, &AxisMap)| m.is_whole(k, from[k]);
        if from == to && maps.iter().enumerate().all(whole) {
            return Some(self.clone());
        }
        if self.reshaped || (self.is_padded() && moved.fill.is_some_and(|fill| fill != self.fill)) {
            return None;
        }
        let mut old = self.axes.iter().copied();
        let one = AxisMap::repeated(1);
        let old: SmallVec<[AxisMap; 4]> =
            from.iter().map(|&n| if n == 1 { one } else { old.next().unwrap_or(one) }).collect();
        let mut view = self.with(SmallVec::new());
        view.fill = moved.fill.unwrap_or(self.fill);
        for map in maps {
            let axis = match map.of {
                Some(k) => map.after(&old[k])?,
                None => map,
            };
            match (axis.len, axis.of) {
                (1, _) if !axis.is_full() => return None,
                (1, Some(of)) => view.fixed.push((of, axis.start)),
                (1, None) => {}
                _ => view.axes.push(axis),
            }
        }
        Some(view)
    }
}

/// The elements from one place of an axis to the next, in row-major order.
fn stride(shape: &[usize], axis: usize) -> isize {
    shape[axis + 1..].iter().product::<usize>() as isize
}

/// The operand that a step only moves.
struct Moved {
    operand: usize,
    /// The number that is at all other places, if it is a pad.
    fill: Option<Exact>,
}

/// The operand that a step only moves, if it does nothing else: that of a view, or what is put into an array of one number.
fn moved_operand(graph: &Graph, step: &Step) -> Option<Moved> {
    let number = |k: usize| repeated(graph, step.args[k]).map(Exact::new);
    let (operand, fill) = match step.op.movement()? {
        Movement::View => return Some(Moved { operand: 0, fill: None }),
        Movement::Over => (1, number(0).filter(|_| number(1).is_none())?),
        Movement::Joined => {
            let operand = (0..step.args.len()).find(|&k| number(k).is_none())?;
            let mut others = (0..step.args.len()).filter(|&k| k != operand);
            let fill = number(others.next()?)?;
            (operand, others.all(|k| number(k) == Some(fill)).then_some(fill)?)
        }
    };
    let shapes: SmallVec<[Shape; 2]> = step.args.iter().map(|&a| graph.aval(a).shape).collect();
    let shapes: SmallVec<[&[usize]; 2]> = shapes.iter().map(|s| &**s).collect();
    let mapped =
        (0..step.avals[0].shape.len()).all(|axis| step.op.axis_map(&shapes, operand, axis).is_some());
    (mapped && !shapes[operand].contains(&0)).then_some(Moved { operand, fill: Some(fill) })
}

/// The [number](Graph::number) that a constant of a type that can be fused repeats.
pub(crate) fn repeated(graph: &Graph, at: Ref) -> Option<f64> {
    graph.number(at).filter(|_| matches!(graph.dtype(at), DType::F32 | DType::F64 | DType::Bool))
}

/// The operand of which a step only says how it is read: that of a view, or what is padded.
pub(crate) fn moved(graph: &Graph, step: &Step) -> Option<Ref> {
    moved_operand(graph, step).map(|m| step.args[m.operand])
}

/// The operands of each step of a graph, [resolved](resolve).
pub(crate) type Operands = Vec<SmallVec<[(Ref, View); 2]>>;

/// All operands of a graph.
pub(crate) fn operands(graph: &Graph) -> Operands {
    let reads = reads(graph);
    graph.steps.iter().map(|s| s.args.iter().map(|&a| resolve(graph, &reads, a)).collect()).collect()
}

/// The value behind an operand, and how it is read: views are followed as far as their strides can be told.
fn resolve(graph: &Graph, reads: &[Option<(Ref, View)>], operand: Ref) -> (Ref, View) {
    match operand {
        Ref::Step(k, 0) if let Some(read) = &reads[k] => read.clone(),
        _ => (operand, View::of(&graph.aval(operand).shape)),
    }
}

/// What each step reads that only says how its operand is read, each from that of its operand.
fn reads(graph: &Graph) -> Vec<Option<(Ref, View)>> {
    let mut reads = Vec::with_capacity(graph.len());
    for step in &graph.steps {
        effort::note(1);
        let read = moved(graph, step).map(|before| {
            let (base, view) = resolve(graph, &reads, before);
            match view.through(graph, step) {
                Some(view) => (base, view),
                None => {
                    let fresh = View::of(&graph.aval(before).shape).through(graph, step);
                    (before, fresh.expect("a view of what was just given a shape"))
                }
            }
        });
        reads.push(read);
    }
    reads
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Builder;
    use crate::location::caller;
    use crate::ops::{Aval, Broadcast, Concat, Op, Permute, Reshape, Slice, SliceAssign, SliceSpec};

    /// The axes of a view: length, axis of the value, start and step.
    fn axes(view: &View) -> Vec<(usize, Option<usize>, isize, isize)> {
        view.axes.iter().map(|a| (a.len, a.of, a.start, a.step)).collect()
    }

    fn found(graph: &Graph, at: Ref) -> (Ref, View) {
        resolve(graph, &reads(graph), at)
    }

    #[test]
    fn views_are_followed_to_what_they_read() {
        let mut b = Builder::new(vec![Aval { dtype: DType::F32, shape: [3, 4].into() }]);
        let mut push = |op: Op, x| b.push(op, &[x], caller()).unwrap();
        let t = push(Permute { perm: [1, 0].as_slice().into() }.into(), Ref::Input(0));
        let ones = push(Reshape { to: [4, 1, 3].into() }.into(), t);
        let wide = push(Broadcast { to: [4, 5, 3].into() }.into(), ones);
        let flat = push(Reshape { to: [60].into() }.into(), wide);
        let again = push(Broadcast { to: [2, 60].into() }.into(), flat);
        let graph = b.graph();
        let (base, view) = found(graph, flat);
        assert_eq!(base, Ref::Input(0));
        assert_eq!(axes(&view), [(4, Some(1), 0, 1), (5, None, 0, 0), (3, Some(0), 0, 1)]);
        assert!(!view.is_whole(&[3, 4]));
        let (base, view) = found(graph, again);
        assert_eq!(base, flat, "the strides of a reshaped broadcast cannot be told");
        assert_eq!(axes(&view), [(2, None, 0, 0), (60, Some(0), 0, 1)]);
        assert_eq!(axes(&view.columns(60).unwrap()), [(60, Some(0), 0, 1)]);
        assert_eq!((view.repeats(), view.period()), (1, 60));
        assert!(view.rows(60).is_none());
    }

    #[test]
    fn a_row_value_is_found_under_its_broadcast() {
        let mut b = Builder::new(vec![Aval { dtype: DType::F32, shape: [2, 3].into() }]);
        let mut push = |op: Op, x| b.push(op, &[x], caller()).unwrap();
        let ones = push(Reshape { to: [2, 3, 1, 1].into() }.into(), Ref::Input(0));
        let wide = push(Broadcast { to: [2, 3, 4, 5].into() }.into(), ones);
        let (base, view) = found(b.graph(), wide);
        assert_eq!((base, view.repeats()), (Ref::Input(0), 20));
        assert!(view.rows(20).unwrap().is_whole(&[2, 3]));
        assert!(view.rows(5).is_some() && view.rows(40).is_none());
    }

    fn region(axes: &[(usize, isize, usize)]) -> SliceSpec {
        SliceSpec { axes: axes.into() }
    }

    #[test]
    fn slices_and_pads_are_one_shift() {
        let mut b = Builder::new(vec![Aval { dtype: DType::F64, shape: [9].into() }]);
        let number = |b: &mut Builder, v: f64, n: usize| b.constant(crate::Tensor::full([n], v));
        let two = number(&mut b, 2.0, 1);
        let longer = b.push(Concat { axis: 0 }, &[two, Ref::Input(0)], caller()).unwrap();
        let part = b.push(Slice { region: region(&[(0, 1, 9)]) }, &[longer], caller()).unwrap();
        let twos = number(&mut b, 2.0, 12);
        let within = b.push(SliceAssign { region: region(&[(3, 1, 9)]) }, &[twos, part], caller()).unwrap();
        let zeros = number(&mut b, 0.0, 12);
        let other = b.push(SliceAssign { region: region(&[(3, 1, 9)]) }, &[zeros, part], caller()).unwrap();
        let graph = b.graph();
        let shift = |at: Ref, shape: &[usize]| found(graph, at).1.shift(shape).unwrap();
        let fill = Exact::new(2.0);
        assert_eq!(shift(part, &[9]), Shift { len: 9, by: -1, inside: (1, 9), fill });
        assert_eq!(shift(within, &[9]), Shift { len: 12, by: -4, inside: (4, 12), fill });
        assert_eq!(found(graph, other).0, part, "two numbers beside one value are not followed");
    }

    #[test]
    fn slices_of_rows_are_a_shift_and_slices_of_columns_are_not() {
        let mut b = Builder::new(vec![Aval { dtype: DType::F64, shape: [4, 5].into() }]);
        let mut slice = |x, axes: &[(usize, isize, usize)]| {
            b.push(Slice { region: region(axes) }, &[x], caller()).unwrap()
        };
        let rows = slice(Ref::Input(0), &[(1, 1, 2), (0, 1, 5)]);
        let row = slice(rows, &[(1, 1, 1), (2, 1, 3)]);
        let columns = slice(Ref::Input(0), &[(0, 1, 4), (2, 1, 3)]);
        let back = slice(Ref::Input(0), &[(3, -1, 4), (0, 1, 5)]);
        let graph = b.graph();
        let shift = |at: Ref| found(graph, at).1.shift(&[4, 5]).map(|s| (s.by, s.len));
        assert_eq!(shift(rows), Some((5, 10)));
        assert_eq!(shift(row), Some((12, 3)));
        assert_eq!((shift(columns), shift(back)), (None, None));
        assert_eq!(axes(&found(graph, back).1), [(4, Some(0), 3, -1), (5, Some(1), 0, 1)]);
    }
}
