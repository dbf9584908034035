//! How an operand is read: which element of what was computed (or given) stands at each place of the shape it is used in.
//!
//! Broadcasts, permutations and reshapes cost nothing inside a fused group, because they only say how a value is read.

use crate::graph::{Graph, Ref};
use crate::ops::Op;
use smallvec::SmallVec;

/// The axes of a read, outermost first, without those of length 1: the length, and the axis of the value that it steps along;
/// an axis without one repeats the value.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct View {
    pub axes: SmallVec<[(usize, Option<usize>); 4]>,
    /// The elements were given another shape since, in the same order: nothing can be said of its axes.
    reshaped: bool,
}

impl View {
    fn of(shape: &[usize]) -> View {
        let axes = shape.iter().enumerate().filter(|(_, n)| **n != 1).map(|(k, &n)| (n, Some(k))).collect();
        View { axes, reshaped: false }
    }

    /// The number of elements read.
    pub fn len(&self) -> usize {
        self.axes.iter().map(|a| a.0).product()
    }

    /// Whether every element is read once, in row-major order.
    pub fn is_flat(&self) -> bool {
        self.axes.iter().all(|a| a.1.is_some()) && self.axes.is_sorted_by_key(|a| a.1)
    }

    /// How many elements in a row repeat the same one: the product of the last axes that repeat.
    pub fn repeats(&self) -> usize {
        self.axes.iter().rev().take_while(|a| a.1.is_none()).map(|a| a.0).product()
    }

    /// After how many elements everything repeats: the product of the axes behind the first ones that repeat.
    pub fn period(&self) -> usize {
        self.axes.iter().skip_while(|a| a.1.is_none()).map(|a| a.0).product()
    }

    /// The read of one element for each row of `cols`, if all of a row are the same.
    pub fn rows(&self, cols: usize) -> Option<View> {
        let mut kept = self.axes.clone();
        let mut left = cols;
        while left > 1 {
            match kept.pop() {
                Some((n, None)) if left.is_multiple_of(n) => left /= n,
                _ => return None,
            }
        }
        Some(View { axes: kept, reshaped: false })
    }

    /// The read of one row of `cols`, if all rows are the same.
    pub fn columns(&self, cols: usize) -> Option<View> {
        let repeated = self.axes.iter().take_while(|a| a.1.is_none()).count();
        let mut len = self.len();
        for k in 0..repeated {
            if len == cols {
                return Some(View { axes: self.axes[k..].into(), reshaped: false });
            }
            len /= self.axes[k].0;
        }
        (len == cols).then(|| View { axes: self.axes[repeated..].into(), reshaped: false })
    }

    /// This read seen through another operation, which takes and gives the shapes `from` and `to`.
    fn through(&self, op: &Op, from: &[usize], to: &[usize]) -> Option<View> {
        let mut old = self.axes.iter().copied();
        let mut next = |n: usize| if n == 1 { None } else { old.next() };
        match op {
            Op::Identity(_) | Op::StopGradient(_) => Some(self.clone()),
            Op::Reshape(_) => {
                let same = to.iter().filter(|n| **n != 1).eq(self.axes.iter().map(|a| &a.0));
                Some(View { axes: self.axes.clone(), reshaped: self.reshaped || !same })
            }
            _ if self.reshaped => None,
            Op::Broadcast(_) => {
                let lead = to.len() - from.len();
                let mut axes: SmallVec<[_; 4]> = to[..lead].iter().map(|&n| (n, None)).collect();
                axes.extend(from.iter().zip(&to[lead..]).map(|(&n, &m)| next(n).unwrap_or((m, None))));
                axes.retain(|a| a.0 != 1);
                Some(View { axes, reshaped: false })
            }
            Op::Permute(p) => {
                let all: SmallVec<[_; 4]> = from.iter().map(|&n| next(n)).collect();
                let axes = p.perm.iter().filter_map(|&k| all[k]).collect();
                Some(View { axes, reshaped: false })
            }
            _ => None,
        }
    }
}

/// Whether an operation only changes how elements are read.
pub(crate) fn is_view(op: &Op) -> bool {
    matches!(op, Op::Identity(_) | Op::StopGradient(_) | Op::Reshape(_) | Op::Broadcast(_) | Op::Permute(_))
}

/// The operands of each step of a graph, [resolved](resolve).
pub(crate) type Operands = Vec<SmallVec<[(Ref, View); 2]>>;

/// All operands of a graph.
pub(crate) fn operands(graph: &Graph) -> Operands {
    graph.steps.iter().map(|s| s.args.iter().map(|&a| resolve(graph, a)).collect()).collect()
}

/// The value behind an operand, and how it is read: views are followed as far as their strides can be told.
fn resolve(graph: &Graph, operand: Ref) -> (Ref, View) {
    let mut chain: SmallVec<[usize; 4]> = SmallVec::new();
    let mut base = operand;
    while let Ref::Step(k, 0) = base
        && is_view(&graph.steps[k].op)
    {
        chain.push(k);
        base = graph.steps[k].args[0];
    }
    let mut view = View::of(&graph.aval(base).shape);
    while let Some(k) = chain.pop() {
        let step = &graph.steps[k];
        view = match view.through(&step.op, &graph.aval(step.args[0]).shape, &step.avals[0].shape) {
            Some(view) => view,
            None => {
                base = step.args[0];
                let fresh = View::of(&graph.aval(base).shape);
                let seen = fresh.through(&step.op, &graph.aval(base).shape, &step.avals[0].shape);
                seen.expect("a view of what was just given a shape")
            }
        };
    }
    (base, view)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DType;
    use crate::graph::Builder;
    use crate::ops::{Aval, Broadcast, Permute, Reshape};
    use crate::tape::caller;

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
        let (base, view) = resolve(graph, flat);
        assert_eq!(base, Ref::Input(0));
        assert_eq!(view.axes.as_slice(), [(4, Some(1)), (5, None), (3, Some(0))]);
        assert!(!view.is_flat());
        let (base, view) = resolve(graph, again);
        assert_eq!(base, flat, "the strides of a reshaped broadcast cannot be told");
        assert_eq!(view.axes.as_slice(), [(2, None), (60, Some(0))]);
        assert_eq!(view.columns(60).unwrap().axes.as_slice(), [(60, Some(0))]);
        assert_eq!((view.repeats(), view.period()), (1, 60));
        assert!(view.rows(60).is_none());
    }

    #[test]
    fn a_row_value_is_found_under_its_broadcast() {
        let mut b = Builder::new(vec![Aval { dtype: DType::F32, shape: [2, 3].into() }]);
        let mut push = |op: Op, x| b.push(op, &[x], caller()).unwrap();
        let ones = push(Reshape { to: [2, 3, 1, 1].into() }.into(), Ref::Input(0));
        let wide = push(Broadcast { to: [2, 3, 4, 5].into() }.into(), ones);
        let (base, view) = resolve(b.graph(), wide);
        assert_eq!((base, view.repeats()), (Ref::Input(0), 20));
        assert!(view.rows(20).unwrap().is_flat());
        assert!(view.rows(5).is_some() && view.rows(40).is_none());
    }
}
