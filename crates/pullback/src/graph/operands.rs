//! How an operand is read: which element of what was computed (or given) stands at each place of the shape it is used in.
//!
//! Broadcasts, permutations, reshapes, slices and pads cost nothing inside a fused group, because they only say how a value is
//! read. A pad is a value within an array of one number: a concatenation with constants, or the pullback of a slice.

use super::{Graph, Ref, Step, effort};
use crate::DType;
use crate::ops::Op;
use crate::tensor::Data;
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

/// One axis of a read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Axis {
    pub len: usize,
    /// The axis of the value that it steps along; an axis without one repeats the value.
    pub of: Option<usize>,
    /// Which element of that axis is at the first place (one before the first, if that place has none), and the step to the next.
    pub start: isize,
    pub step: isize,
    /// The places that have elements: from the first to before the second.
    pub inside: (usize, usize),
}

impl Axis {
    /// Whether all its places have the same element.
    pub fn repeats(&self) -> bool {
        self.of.is_none() && self.is_full()
    }

    /// Whether all its places have elements.
    pub fn is_full(&self) -> bool {
        self.inside == (0, self.len)
    }

    fn repeated(len: usize) -> Axis {
        Axis { len, of: None, start: 0, step: 0, inside: (0, len) }
    }

    /// The places `start + step k` for `k < len`; `None` where it cannot be told simply which of them have elements.
    fn sliced(&self, (start, step, len): (usize, isize, usize)) -> Option<Axis> {
        let inside = match self.is_full() {
            true => (0, len),
            false if step == 1 => {
                let clip = |at: usize| at.saturating_sub(start).min(len);
                (clip(self.inside.0), clip(self.inside.1))
            }
            false => return None,
        };
        let first = self.start + self.step * start as isize;
        Some(Axis { len, of: self.of, start: first, step: self.step * step, inside })
    }
}

/// The axes of a read, outermost first, without those of length 1.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct View {
    pub axes: SmallVec<[Axis; 2]>,
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
        let axis =
            |(k, &len): (usize, &usize)| Axis { len, of: Some(k), start: 0, step: 1, inside: (0, len) };
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
        self.axes.iter().all(Axis::repeats).then(|| self.with(SmallVec::new()))
    }

    fn with(&self, axes: SmallVec<[Axis; 2]>) -> View {
        View { axes, fixed: self.fixed.clone(), fill: self.fill, reshaped: false }
    }

    /// This read seen through another step; `None` where its axes could not be told any more.
    fn through(&self, graph: &Graph, step: &Step) -> Option<View> {
        let (from, to) = (&*graph.aval(moved(graph, step)?).shape, &*step.avals[0].shape);
        let mut old = self.axes.iter().copied();
        let mut next = |n: usize| if n == 1 { None } else { old.next() };
        match &step.op {
            Op::Identity(_) | Op::StopGradient(_) => Some(self.clone()),
            Op::Reshape(_) => {
                let same = to.iter().filter(|n| **n != 1).eq(self.axes.iter().map(|a| &a.len));
                Some(View { reshaped: self.reshaped || !same, ..self.clone() })
            }
            _ if self.reshaped => None,
            Op::Broadcast(_) => {
                let lead = to.len() - from.len();
                let mut axes: SmallVec<[Axis; 2]> = to[..lead].iter().map(|&n| Axis::repeated(n)).collect();
                axes.extend(
                    from.iter().zip(&to[lead..]).map(|(&n, &m)| next(n).unwrap_or(Axis::repeated(m))),
                );
                axes.retain(|a| a.len != 1);
                Some(self.with(axes))
            }
            Op::Permute(p) => {
                let all: SmallVec<[_; 4]> = from.iter().map(|&n| next(n)).collect();
                Some(self.with(p.perm.iter().filter_map(|&k| all[k]).collect()))
            }
            Op::Slice(s) => {
                let mut view = self.with(SmallVec::new());
                for (&n, &part) in from.iter().zip(&s.region.axes) {
                    let axis = match next(n) {
                        Some(axis) => axis.sliced(part)?,
                        None => Axis::repeated(part.2),
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
            _ => {
                let pad = pad(graph, step)?;
                if self.is_padded() && self.fill != pad.fill {
                    return None;
                }
                let mut view = self.with(SmallVec::new());
                view.fill = pad.fill;
                for ((&n, &len), start) in from.iter().zip(to).zip(pad.starts) {
                    // An axis of length 1 has its element at one place of the longer one.
                    let axis = next(n).or((len != 1).then(|| Axis::repeated(1)));
                    view.axes.extend(axis.map(|a| Axis {
                        len,
                        start: a.start - a.step * start as isize,
                        inside: (a.inside.0 + start, a.inside.1 + start),
                        ..a
                    }));
                }
                Some(view)
            }
        }
    }
}

/// The elements from one place of an axis to the next, in row-major order.
fn stride(shape: &[usize], axis: usize) -> isize {
    shape[axis + 1..].iter().product::<usize>() as isize
}

/// A value put into an array of one number.
struct Pad {
    /// Which operand it is.
    operand: usize,
    /// Where its first element comes to lie on each axis.
    starts: SmallVec<[usize; 4]>,
    fill: Exact,
}

/// The pad that a step is, if it is one.
fn pad(graph: &Graph, step: &Step) -> Option<Pad> {
    let shape = |k: usize| graph.aval(step.args[k]).shape;
    let number = |k: usize| repeated(graph, step.args[k]).map(Exact::new);
    let pad = match &step.op {
        Op::SliceAssign(s) => {
            let dense = s.region.axes.iter().all(|part| part.1 == 1 || part.2 == 1);
            let fill = number(0).filter(|_| dense && number(1).is_none())?;
            Pad { operand: 1, starts: s.region.axes.iter().map(|part| part.0).collect(), fill }
        }
        Op::Concat(c) => {
            let operand = (0..step.args.len()).find(|&k| number(k).is_none())?;
            let others = || (0..step.args.len()).filter(|&k| k != operand);
            let fill = number(others().next()?).filter(|&fill| others().all(|k| number(k) == Some(fill)))?;
            let mut starts = SmallVec::from_elem(0, step.avals[0].shape.len());
            starts[c.axis] = (0..operand).map(|k| shape(k)[c.axis]).sum();
            Pad { operand, starts, fill }
        }
        _ => return None,
    };
    (shape(pad.operand).numel() > 0).then_some(pad)
}

/// The number that a constant repeats.
pub(crate) fn repeated(graph: &Graph, at: Ref) -> Option<f64> {
    let Ref::Const(k) = at else { return None };
    let value = graph.consts[k].value();
    match (value.data, value.dtype) {
        (Data::Splat(_), DType::F32) => value.splat::<f32>().map(f64::from),
        (Data::Splat(_), DType::F64) => value.splat::<f64>(),
        (Data::Splat(_), DType::Bool) => value.splat::<u8>().map(f64::from),
        _ => None,
    }
}

/// The operand of which a step only says how it is read: that of a view, or what is padded.
pub(crate) fn moved(graph: &Graph, step: &Step) -> Option<Ref> {
    match step.op.is_view() {
        true => Some(step.args[0]),
        false => pad(graph, step).map(|pad| step.args[pad.operand]),
    }
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
    use crate::ops::{Aval, Broadcast, Concat, Permute, Region, Reshape, Slice, SliceAssign};

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

    fn region(axes: &[(usize, isize, usize)]) -> Region {
        Region { axes: axes.into() }
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
