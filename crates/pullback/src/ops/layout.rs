//! Moving elements without changing them. All linear; each one's pullback is another of them.
//!
//! Most of these copy nothing: they are new strides on the same buffer.

use super::*;
use crate::dtype::with_bits;
use crate::error::err;
use crate::kernels::movement;
use crate::shape::{Axes, Strides};
use smallvec::{SmallVec, smallvec};

/// The same elements, in row-major order, in another shape.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Reshape {
    pub to: Shape,
}

impl Primitive for Reshape {
    const NAME: &'static str = "reshape";
    const VIEW: bool = true;

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        if self.to.checked_len()? != x[0].shape.numel() {
            return Err(err!(Shape, "shape {:?} does not hold the elements of {:?}", self.to, x[0].shape));
        }
        Ok(Aval { dtype: x[0].dtype, shape: self.to.clone() })
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        eval_view(self, &x[0], out);
        Ok(())
    }

    fn view(&self, shape: &[usize], offset: usize, strides: &[isize]) -> Option<Layout> {
        let strides = match is_row_major(shape, strides) {
            true => self.to.strides(),
            false => regrouped(shape, strides, &self.to)?,
        };
        Some(Layout { offset, strides })
    }

    /// `g` in the shape of `x`.
    fn pullback(&self, at: &At, g: &Tensor) -> Cotangents {
        smallvec![Some(g.reshape_to(at.shape(0)))]
    }

    fn linearity(&self) -> Linearity {
        Linearity::Linear
    }

    fn batch(&self, x: &[Batched], n: usize) -> Option<Result<Tensor>> {
        Some(Batched::bind_all(Reshape { to: self.to.inserted(0, n) }, x, n))
    }

    fn samples() -> Vec<Sample> {
        let of = |from: &[usize], to: &[usize]| {
            Sample::new(Reshape { to: to.into() }, [Draw::new(Domain::any, from)])
        };
        vec![of(&[2, 3], &[3, 2]), of(&[4], &[2, 1, 2]), of(&[1], &[])]
    }
}

/// The strides by which elements are seen in another shape, if there are any: each new axis must be a part of old ones that one stride
/// steps through.
fn regrouped(shape: &[usize], strides: &[isize], to: &[usize]) -> Option<Strides> {
    let mut runs: SmallVec<[(usize, isize); 6]> = SmallVec::new();
    for (&n, &stride) in shape.iter().zip(strides).filter(|(n, _)| **n != 1) {
        match runs.last_mut() {
            Some(run) if run.1 == stride * n as isize => *run = (run.0 * n, stride),
            _ => runs.push((n, stride)),
        }
    }
    let mut found: SmallVec<[isize; 6]> = SmallVec::from_elem(1, to.len());
    let (mut left, mut stride) = (1, 1);
    for (&n, found) in to.iter().zip(&mut found).rev().filter(|(n, _)| **n != 1) {
        if left == 1 {
            (left, stride) = runs.pop()?;
        }
        if n == 0 || left % n != 0 {
            return None;
        }
        *found = stride;
        (left, stride) = (left / n, stride * n as isize);
    }
    Some(found.into_iter().collect())
}

/// The view that the index maps of an operation describe.
pub(super) fn mapped(
    op: &impl Primitive,
    rank: usize,
    shape: &[usize],
    offset: usize,
    strides: &[isize],
) -> Option<Layout> {
    let map = |axis| op.axis_map(&[shape], 0, axis).expect("it moves elements axis by axis");
    Some(seen_through((0..rank).map(map), offset, strides))
}

/// Evaluates an operation that sees its input another way, without a copy where its [`view`](Primitive::view) is one.
pub(super) fn eval_view(op: &impl Primitive, x: &Value, out: &mut Output) {
    let view = x.layout().and_then(|(offset, strides)| op.view(x.shape, offset, strides));
    match x.seen(view) {
        Some(data) => out.set(data),
        None => with_bits!(x.dtype, T => movement::copy::<T>(x.view(), out.fill())),
    }
}

pub(crate) fn is_row_major(shape: &[usize], strides: &[isize]) -> bool {
    let mut expected = 1;
    shape.iter().zip(strides).rev().all(|(&n, &s)| {
        let fits = n == 1 || s == expected;
        expected *= n as isize;
        fits
    })
}

/// Axes in another order: axis `k` of the result is axis `perm[k]` of the input.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Permute {
    pub perm: Axes,
}

impl Primitive for Permute {
    const NAME: &'static str = "permute";
    const VIEW: bool = true;

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        let mut seen = self.perm.clone();
        seen.sort_unstable();
        if !seen.iter().copied().eq(0..x[0].shape.len()) {
            return Err(err!(Axis, "{:?} is not a permutation of the {} axes", self.perm, x[0].shape.len()));
        }
        Ok(Aval { dtype: x[0].dtype, shape: self.perm.iter().map(|&p| x[0].shape[p]).collect() })
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        eval_view(self, &x[0], out);
        Ok(())
    }

    fn axis_map(&self, x: &[&[usize]], _: usize, axis: usize) -> Option<AxisMap> {
        let of = self.perm[axis];
        Some(AxisMap::along(of, x[0][of]))
    }

    fn view(&self, shape: &[usize], offset: usize, strides: &[isize]) -> Option<Layout> {
        mapped(self, self.perm.len(), shape, offset, strides)
    }

    /// `g` with the inverse permutation.
    fn pullback(&self, _: &At, g: &Tensor) -> Cotangents {
        let mut inverse: Axes = SmallVec::from_elem(0, self.perm.len());
        self.perm.iter().enumerate().for_each(|(k, &p)| inverse[p] = k);
        smallvec![Some(g.permuted(inverse))]
    }

    fn linearity(&self) -> Linearity {
        Linearity::Linear
    }

    fn batch(&self, x: &[Batched], n: usize) -> Option<Result<Tensor>> {
        let perm = std::iter::once(0).chain(self.perm.iter().map(|p| p + 1)).collect();
        Some(Batched::bind_all(Permute { perm }, x, n))
    }

    fn samples() -> Vec<Sample> {
        let of =
            |p: &[usize], s: &[usize]| Sample::new(Permute { perm: p.into() }, [Draw::new(Domain::any, s)]);
        vec![of(&[1, 0], &[3, 3]), of(&[2, 0, 1], &[2, 3, 4])]
    }
}

/// Repeats axes of length 1, and adds axes at the front.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Broadcast {
    pub to: Shape,
}

impl Primitive for Broadcast {
    const NAME: &'static str = "broadcast_to";
    const VIEW: bool = true;

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        self.to.checked_len()?;
        let fits = self.to.len() >= x[0].shape.len()
            && x[0].shape.iter().rev().zip(self.to.iter().rev()).all(|(&n, &m)| n == m || n == 1);
        if !fits {
            return Err(err!(
                Shape,
                "shape {:?} does not broadcast to {:?}; aligned at the last axis, lengths must be equal or 1",
                x[0].shape,
                self.to
            ));
        }
        Ok(Aval { dtype: x[0].dtype, shape: self.to.clone() })
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        eval_view(self, &x[0], out);
        Ok(())
    }

    fn axis_map(&self, x: &[&[usize]], _: usize, axis: usize) -> Option<AxisMap> {
        let (lead, len) = (self.to.len() - x[0].len(), self.to[axis]);
        Some(match axis.checked_sub(lead) {
            Some(of) if x[0][of] == len => AxisMap::along(of, len),
            _ => AxisMap::repeated(len),
        })
    }

    fn view(&self, shape: &[usize], offset: usize, strides: &[isize]) -> Option<Layout> {
        mapped(self, self.to.len(), shape, offset, strides)
    }

    /// The sum of `g` over the axes that were repeated or added.
    fn pullback(&self, at: &At, g: &Tensor) -> Cotangents {
        let x = at.shape(0);
        let lead = self.to.len() - x.len();
        let repeated = |&a: &usize| a < lead || (x[a - lead] == 1 && self.to[a] != 1);
        let axes: Axes = (0..self.to.len()).filter(repeated).collect();
        let summed = if axes.is_empty() { g.clone() } else { g.summed(axes) };
        smallvec![Some(summed.reshape_to(x))]
    }

    fn linearity(&self) -> Linearity {
        Linearity::Linear
    }

    fn batch(&self, x: &[Batched], n: usize) -> Option<Result<Tensor>> {
        // The new axes come between the lanes and the old ones.
        let (lanes, old) = x[0].value.node().shape.split_at(1);
        let ones = std::iter::repeat_n(&1, self.to.len() - old.len());
        let apart: Shape = lanes.iter().chain(ones).chain(old).copied().collect();
        // With the lanes there may be more axes than a tensor can have.
        let apart = x[0].value.try_reshape(apart);
        Some(apart.and_then(|apart| bind(Broadcast { to: self.to.inserted(0, n) }, &[&apart])))
    }

    fn samples() -> Vec<Sample> {
        let of = |from: &[usize], to: &[usize]| {
            Sample::new(Broadcast { to: to.into() }, [Draw::new(Domain::any, from)])
        };
        vec![of(&[2, 1], &[4, 2, 3]), of(&[], &[3]), of(&[1, 3], &[2, 3])]
    }
}

/// Tensors one after the other along an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Concat {
    pub axis: usize,
}

impl Primitive for Concat {
    const NAME: &'static str = "concat";
    const ARITY: Option<usize> = None;

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        let Some(first) = x.first() else { return Err(err!(Shape, "needs at least one tensor")) };
        if self.axis >= first.shape.len() {
            return Err(err!(Axis, "axis {} is out of range for shape {:?}", self.axis, first.shape));
        }
        let agrees = |other: &Arg| {
            let lengths = other.shape.iter().zip(first.shape.iter()).enumerate();
            other.dtype == first.dtype
                && other.shape.len() == first.shape.len()
                && lengths.clone().all(|(k, (m, n))| m == n || k == self.axis)
        };
        for other in x {
            if !agrees(other) {
                return Err(err!(
                    Shape,
                    "all shapes must agree but for axis {}, got {} {:?} and {} {:?}",
                    self.axis,
                    first.dtype,
                    first.shape,
                    other.dtype,
                    other.shape
                ));
            }
        }
        let total = x.iter().try_fold(0usize, |n, a| n.checked_add(a.shape[self.axis]));
        let total = total.ok_or_else(|| err!(Shape, "the length of axis {} overflows", self.axis))?;
        let shape: Shape =
            (0..first.shape.len()).map(|k| if k == self.axis { total } else { first.shape[k] }).collect();
        shape.checked_len()?;
        Ok(Aval { dtype: first.dtype, shape })
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        with_bits!(x[0].dtype, T => {
            let strides = out.shape().strides();
            let out = out.fill::<T>();
            let mut start = 0;
            for part in x.iter().filter(|p| !p.shape.contains(&0)) {
                movement::copy_into::<T>(part.view(), out, start * strides[self.axis] as usize, &strides);
                start += part.shape[self.axis];
            }
        });
        Ok(())
    }

    fn movement(&self) -> Option<Movement> {
        Some(Movement::Joined)
    }

    fn axis_map(&self, x: &[&[usize]], k: usize, axis: usize) -> Option<AxisMap> {
        let n = x[k][axis];
        if axis != self.axis {
            return Some(AxisMap::along(axis, n));
        }
        let lengths = x.iter().map(|shape| shape[axis]);
        Some(AxisMap::placed(axis, n, lengths.clone().take(k).sum(), lengths.sum()))
    }

    /// The part of `g` that each operand became.
    fn pullback(&self, at: &At, g: &Tensor) -> Cotangents {
        let mut start = 0;
        let mut part = |k: usize| {
            let n = at.shape(k)[self.axis];
            start += n;
            at.needs(k).then(|| g.narrowed(self.axis, start - n, n))
        };
        (0..at.arity()).map(&mut part).collect()
    }

    fn linearity(&self) -> Linearity {
        Linearity::Linear
    }

    fn batch(&self, x: &[Batched], n: usize) -> Option<Result<Tensor>> {
        Some(Batched::bind_all(Concat { axis: self.axis + 1 }, x, n))
    }

    fn samples() -> Vec<Sample> {
        let draw = |s: &[usize]| Draw::new(Domain::any, s);
        vec![
            Sample::new(Concat { axis: 0 }, [draw(&[2, 3]), draw(&[1, 3])]),
            Sample::new(Concat { axis: 1 }, [draw(&[2, 1]), draw(&[2, 3]), draw(&[2, 2])]),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_shape_is_a_view_where_strides_allow_it() {
        // An axis of length 1 comes and goes; a slice of rows; a permuted array by its own runs.
        let seen = |shape: &[usize], strides: &[isize], to: &[usize]| {
            let view = Reshape { to: to.into() }.view(shape, 7, strides)?;
            assert_eq!(view.offset, 7);
            Some(view.strides.to_vec())
        };
        assert_eq!(seen(&[1, 4, 3], &[99, 8, 1], &[4, 3]), Some(vec![8, 1]));
        assert_eq!(seen(&[4, 3], &[8, 1], &[2, 1, 2, 3]), Some(vec![16, 1, 8, 1]));
        assert_eq!(seen(&[3, 4, 5], &[1, 15, 3], &[3, 20]), Some(vec![1, 3]));
        assert_eq!(seen(&[3, 4, 5], &[1, 15, 3], &[3, 2, 10]), Some(vec![1, 30, 3]));
        assert_eq!(seen(&[2, 6], &[0, 0], &[3, 4]), Some(vec![0, 0]));
        assert_eq!(seen(&[6], &[-2], &[2, 3]), Some(vec![-6, -2]));
        // Across a gap there is none.
        assert_eq!(seen(&[4, 3], &[8, 1], &[12]), None);
        assert_eq!(seen(&[3, 4], &[1, 3], &[4, 3]), None);
        assert_eq!(seen(&[2, 0], &[1, 5], &[0, 7]), None);
    }

    #[test]
    fn views_of_every_regrouping_hold_the_right_elements() {
        let x = Tensor::arange(0.0, 120.0, 1.0).reshape([2, 3, 4, 5]);
        let orders: [[isize; 4]; 4] = [[0, 1, 2, 3], [1, 0, 2, 3], [2, 3, 0, 1], [3, 1, 0, 2]];
        let shapes: [&[usize]; 6] = [&[120], &[6, 20], &[20, 6], &[1, 3, 2, 1, 20], &[4, 5, 6], &[5, 24]];
        for order in orders {
            let permuted = x.permute(&order);
            // Element by element, in row-major order.
            let expected = Tensor::concat(&[&permuted], 0).to_vec::<f64>();
            for shape in shapes {
                assert_eq!(permuted.reshape(shape).to_vec::<f64>(), expected, "{order:?} {shape:?}");
            }
        }
    }
}
