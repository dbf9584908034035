//! How operations that only move elements map indices, axis by axis. Views, fusion, the rules for moves and narrowing all follow from it.

use super::Layout;
use crate::shape::Strides;

/// What the elements of the result are, for an operation that only moves them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Movement {
    /// Every place has an element of the one operand.
    View,
    /// Places that have no element of the second operand have the first operand's element of the same place.
    Over,
    /// Every place has an element of one of the operands.
    Joined,
}

/// Which elements of an operand stand along one axis of the result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct AxisMap {
    pub len: usize,
    /// The axis of the operand that it steps along; an axis without one repeats the operand.
    pub of: Option<usize>,
    /// Which element of that axis is at the first place (one before the first, if that place has none), and the step to the next.
    pub start: isize,
    pub step: isize,
    /// The places that have elements: from the first to before the second.
    pub inside: (usize, usize),
}

impl AxisMap {
    /// An axis of the operand as it is.
    pub fn along(of: usize, len: usize) -> AxisMap {
        AxisMap { len, of: Some(of), start: 0, step: 1, inside: (0, len) }
    }

    /// One element at all places.
    pub fn repeated(len: usize) -> AxisMap {
        AxisMap { len, of: None, start: 0, step: 0, inside: (0, len) }
    }

    /// The elements `start + step k` of an axis, for `k < len`.
    pub fn sliced(of: usize, (start, step, len): (usize, isize, usize)) -> AxisMap {
        // Where there is no first element, or no second one, start and step may lead anywhere.
        let (start, step) = (if len > 0 { start as isize } else { 0 }, if len > 1 { step } else { 1 });
        AxisMap { len, of: Some(of), start, step, inside: (0, len) }
    }

    /// An axis of `n` elements, which lie from place `start` on.
    pub fn placed(of: usize, n: usize, start: usize, len: usize) -> AxisMap {
        AxisMap { len, of: Some(of), start: -(start as isize), step: 1, inside: (start, start + n) }
    }

    /// Whether all its places have elements.
    pub fn is_full(&self) -> bool {
        self.inside == (0, self.len)
    }

    /// Whether all its places have the same element.
    pub fn repeats(&self) -> bool {
        self.of.is_none() && self.is_full()
    }

    /// Whether it is axis `of` as it is.
    pub fn is_whole(&self, of: usize, len: usize) -> bool {
        self.len == len && (len == 0 || *self == AxisMap::along(of, len))
    }

    /// This map of what another map makes of an operand; `None` where it cannot be told simply which places have elements.
    pub fn after(&self, inner: &AxisMap) -> Option<AxisMap> {
        let inside = match inner.is_full() {
            true => self.inside,
            false if self.step == 1 => {
                let (first, end) = (self.inside.0 as isize, self.inside.1 as isize);
                let clip = |at: usize| (at as isize - self.start).clamp(first, end) as usize;
                (clip(inner.inside.0), clip(inner.inside.1))
            }
            false => return None,
        };
        let (start, step) = (inner.start + inner.step * self.start, inner.step * self.step);
        Some(AxisMap { len: self.len, of: inner.of, start, step, inside })
    }
}

/// Where elements lie that are seen through these maps, one for each axis, in an array of these strides.
pub(crate) fn seen_through(maps: impl Iterator<Item = AxisMap>, offset: usize, strides: &[isize]) -> Layout {
    let (mut first, mut empty) = (offset as isize, false);
    let stride = |m: AxisMap| {
        empty |= m.len == 0;
        let Some(axis) = m.of else { return 0 };
        first += m.start * strides[axis];
        m.step * strides[axis]
    };
    let strides: Strides = maps.map(stride).collect();
    Layout { offset: if empty { offset } else { first as usize }, strides }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::Op;
    use crate::tensor::{Tensor, bind};

    /// The places of a shape, in row-major order.
    fn places(shape: &[usize]) -> Vec<Vec<usize>> {
        shape.iter().fold(vec![Vec::new()], |all, &n| {
            all.iter().flat_map(|p| (0..n).map(|k| [p.as_slice(), &[k]].concat())).collect()
        })
    }

    /// The element of an operand that maps say stands at a place, if one does.
    fn source(maps: &[AxisMap], place: &[usize], rank: usize) -> Option<Vec<usize>> {
        let mut at = vec![0; rank];
        for (map, &p) in maps.iter().zip(place) {
            if p < map.inside.0 || p >= map.inside.1 {
                return None;
            }
            if let Some(axis) = map.of {
                at[axis] = usize::try_from(map.start + map.step * p as isize).unwrap();
            }
        }
        Some(at)
    }

    #[test]
    fn maps_say_where_every_element_comes_from() {
        let mut moved = 0;
        for sample in Op::samples().into_iter().filter(|s| s.op.movement().is_some()) {
            let shapes: Vec<Vec<usize>> = sample
                .inputs
                .iter()
                .map(|d| d.tensor(crate::Key::new(1), crate::DType::F64).shape().to_vec())
                .collect();
            let numbered = |(k, shape): (usize, &Vec<usize>)| {
                let n: usize = shape.iter().product();
                let first = 1000.0 * k as f64;
                Tensor::arange(first, first + n as f64, 1.0).reshape(shape.as_slice())
            };
            let x: Vec<Tensor> = shapes.iter().enumerate().map(numbered).collect();
            let y = bind(sample.op.clone(), &x.iter().collect::<Vec<_>>()).unwrap();
            let borrowed: Vec<&[usize]> = shapes.iter().map(|s| s.as_slice()).collect();
            let mut covered = vec![false; y.numel()];
            for (k, x) in x.iter().enumerate() {
                let maps = (0..y.rank()).map(|axis| sample.op.axis_map(&borrowed, k, axis));
                let Some(maps) = maps.collect::<Option<Vec<AxisMap>>>() else { continue };
                let (from, to) = (x.to_vec::<f64>(), y.to_vec::<f64>());
                for (n, place) in places(y.shape()).iter().enumerate() {
                    let Some(at) = source(&maps, place, x.rank()) else { continue };
                    let flat = at.iter().zip(x.shape()).fold(0, |flat, (&i, &n)| flat * n + i);
                    assert_eq!(to[n], from[flat], "{:?} at {place:?}", sample.op);
                    covered[n] = true;
                    moved += 1;
                }
            }
            if sample.op.movement() == Some(Movement::Joined) {
                assert!(!covered.contains(&false), "{:?} has places without an element", sample.op);
            }
        }
        assert!(moved > 100, "{moved} elements were compared");
    }

    #[test]
    fn maps_one_after_another_are_one() {
        let within = AxisMap::placed(0, 9, 3, 12);
        let cut = AxisMap::sliced(0, (1, 1, 9)).after(&within).unwrap();
        assert_eq!(cut, AxisMap { len: 9, of: Some(0), start: -2, step: 1, inside: (2, 9) });
        let back = AxisMap::sliced(0, (8, -2, 4)).after(&AxisMap::sliced(3, (1, 2, 9))).unwrap();
        assert_eq!((back.of, back.start, back.step, back.len), (Some(3), 17, -4, 4));
        assert_eq!(AxisMap::sliced(0, (0, 2, 3)).after(&within), None, "every second place of a pad");
        assert!(AxisMap::sliced(0, (2, 1, 3)).after(&AxisMap::repeated(7)).unwrap().repeats());
    }
}
