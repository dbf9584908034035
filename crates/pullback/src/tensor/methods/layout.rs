//! Shapes, axes and pieces.

use super::methods;
use crate::error::{Result, Within, err, or_panic};
use crate::location::{caller, with_caller};
use crate::ops::*;
use crate::shape::{Axes, Shape, axis, resolve, signed};
use crate::tensor::{Tensor, bind};
use smallvec::SmallVec;

/// Lengths for [`reshape`](Tensor::reshape), one of which may be -1: whatever is left.
pub struct Lengths(SmallVec<[isize; 4]>);

macro_rules! lengths {
    ($($t:ty),*) => {$(
        impl<const N: usize> From<[$t; N]> for Lengths {
            fn from(s: [$t; N]) -> Self { s.as_slice().into() }
        }
        impl From<&[$t]> for Lengths {
            fn from(s: &[$t]) -> Self { Lengths(s.iter().map(|&n| signed(n)).collect()) }
        }
        impl From<Vec<$t>> for Lengths {
            fn from(s: Vec<$t>) -> Self { s.as_slice().into() }
        }
        impl From<$t> for Lengths {
            fn from(n: $t) -> Self { [n].into() }
        }
    )*};
}
lengths!(isize, i32, usize);

impl From<&Shape> for Lengths {
    fn from(s: &Shape) -> Self {
        s[..].into()
    }
}

impl From<Shape> for Lengths {
    fn from(s: Shape) -> Self {
        s[..].into()
    }
}

methods! { $ layout_methods;
    /// The same elements in row-major order, in another shape; one length may be -1.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = Tensor::arange(0, 6, 1);
    /// assert_eq!(x.reshape([2, -1]).shape(), [2, 3]);
    /// ```
    reshape try_reshape(&self, to: impl Into<Lengths>) -> Tensor {
        let to = resolve(&to.into().0, self.numel()).within("reshape")?;
        if to == self.node().shape { return Ok(self.clone()) }
        bind(Reshape { to }, &[self])
    }

    /// All elements along one axis.
    flatten try_flatten(&self) -> Tensor { self.try_reshape(self.numel()) }

    /// Axes in another order: axis `k` of the result is axis `order[k]` of this.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// assert_eq!(Tensor::zeros([2, 3, 4]).permute(&[2, 0, 1]).shape(), [4, 2, 3]);
    /// ```
    permute try_permute(&self, order: &[isize]) -> Tensor {
        let perm = order.iter().map(|&a| axis(a, self.rank())).collect::<Result<Axes>>();
        bind(Permute { perm: perm.within("permute")? }, &[self])
    }

    /// Two axes exchanged.
    transpose try_transpose(&self, a: isize, b: isize) -> Tensor {
        let (a, b) = axis(a, self.rank()).and_then(|a| Ok((a, axis(b, self.rank())?))).within("transpose")?;
        let mut perm: Axes = (0..self.rank()).collect();
        perm.swap(a, b);
        bind(Permute { perm }, &[self])
    }

    /// The matrix transposed: the last two axes exchanged.
    t try_t(&self) -> Tensor {
        if self.rank() < 2 {
            return Err(err!(Shape, "needs at least two axes, got shape {:?}", self.shape()).in_op("t").at(caller()));
        }
        self.try_transpose(-2, -1)
    }

    /// Without an axis of length 1.
    squeeze try_squeeze(&self, at: isize) -> Tensor {
        let named = axis(at, self.rank()).and_then(|k| match self.shape()[k] {
            1 => Ok(k),
            n => Err(err!(Shape, "axis {at} of shape {:?} has length {n}, only axes of length 1 can go", self.shape())),
        });
        let k = named.within("squeeze")?;
        self.try_reshape(self.node().shape.without(&[k]))
    }

    /// With a new axis of length 1 before position `at` (counted from the end of the result, if negative).
    unsqueeze try_unsqueeze(&self, at: isize) -> Tensor {
        let k = axis(at, self.rank() + 1).within("unsqueeze")?;
        self.try_reshape(self.node().shape.inserted(k, 1))
    }

    /// Repeated to a larger shape by the rule of broadcasting; copies nothing.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// assert_eq!(Tensor::from([1.0, 2.0]).broadcast_to([2, 2]).to_vec::<f64>(), [1.0, 2.0, 1.0, 2.0]);
    /// ```
    broadcast_to try_broadcast_to(&self, to: impl Into<Shape>) -> Tensor {
        let to = to.into();
        if to == self.node().shape { return Ok(self.clone()) }
        bind(Broadcast { to }, &[self])
    }

    /// The whole tensor repeated so many times along each axis.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// assert_eq!(Tensor::from([1, 2]).repeat(&[2]).to_vec::<i32>(), [1, 2, 1, 2]);
    /// ```
    repeat try_repeat(&self, times: &[usize]) -> Tensor {
        let at_line = caller();
        let fail = |e: crate::Error| e.in_op("repeat").at(at_line);
        if times.len() != self.rank() {
            return Err(fail(err!(Shape, "one number for each axis: got {} for shape {:?}", times.len(), self.shape())));
        }
        let pairs = || self.shape().iter().zip(times);
        let apart: Shape = pairs().flat_map(|(&n, _)| [1, n]).collect();
        let tiled: Shape = pairs().flat_map(|(&n, &k)| [k, n]).collect();
        tiled.checked_len().map_err(fail)?;
        let shape: Shape = pairs().map(|(&n, &k)| n * k).collect();
        self.try_reshape(&apart)?.try_broadcast_to(tiled)?.try_reshape(&shape)
    }

    /// Pieces of the given lengths along an axis; they share the buffer.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let parts = Tensor::arange(0, 5, 1).split(&[2, 3], 0);
    /// assert_eq!(parts[1].to_vec::<i32>(), [2, 3, 4]);
    /// ```
    split try_split(&self, lengths: &[usize], at: isize) -> Vec<Tensor> {
        let at_line = caller();
        let fail = |e: crate::Error| e.in_op("split").at(at_line);
        let k = axis(at, self.rank()).map_err(fail)?;
        let total = lengths.iter().try_fold(0usize, |n, &m| n.checked_add(m));
        if total != Some(self.shape()[k]) {
            return Err(fail(err!(Shape, "lengths {lengths:?} do not add up to axis {at} of shape {:?}", self.shape())));
        }
        let mut start = 0;
        let mut piece = |&n: &usize| {
            start += n;
            self.try_narrow(at, start - n, n)
        };
        with_caller(at_line, || lengths.iter().map(&mut piece).collect())
    }

    /// `n` elements along an axis, from `start`; shares the buffer.
    narrow try_narrow(&self, at: isize, start: usize, n: usize) -> Tensor {
        let k = axis(at, self.rank()).within("narrow")?;
        let mut region = whole(self.shape());
        region.axes[k] = (if n == 0 { 0 } else { start }, 1, n);
        bind(Slice { region }, &[self]).map_err(|e| e.renamed("narrow"))
    }
}

impl Tensor {
    /// Tensors one after the other along an axis.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let (a, b) = (Tensor::from([1.0, 2.0]), Tensor::from([3.0]));
    /// assert_eq!(Tensor::concat(&[&a, &b], 0).to_vec::<f64>(), [1.0, 2.0, 3.0]);
    /// ```
    #[must_use]
    #[track_caller]
    pub fn concat<T: AsRef<Tensor>>(parts: &[T], at: isize) -> Tensor {
        or_panic(Tensor::try_concat(parts, at))
    }

    #[track_caller]
    pub(crate) fn try_concat<T: AsRef<Tensor>>(parts: &[T], at: isize) -> Result<Tensor> {
        let parts: Vec<&Tensor> = parts.iter().map(AsRef::as_ref).collect();
        let rank = parts.first().map_or(1, |t| t.rank());
        let axis = axis(at, rank).within("concat")?;
        bind(Concat { axis }, &parts)
    }

    /// Tensors of one shape along a new axis.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let (a, b) = (Tensor::from([1.0, 2.0]), Tensor::from([3.0, 4.0]));
    /// assert_eq!(Tensor::stack(&[a, b], 1).to_vec::<f64>(), [1.0, 3.0, 2.0, 4.0]);
    /// ```
    #[must_use]
    #[track_caller]
    pub fn stack<T: AsRef<Tensor>>(parts: &[T], at: isize) -> Tensor {
        or_panic(Tensor::try_stack(parts, at))
    }

    #[track_caller]
    pub(crate) fn try_stack<T: AsRef<Tensor>>(parts: &[T], at: isize) -> Result<Tensor> {
        with_caller(caller(), || {
            let rows: Result<Vec<Tensor>> = parts.iter().map(|t| t.as_ref().try_unsqueeze(at)).collect();
            Tensor::try_concat(&rows?, at)
        })
        .map_err(|e| e.renamed("stack"))
    }

    // For rules, whose shapes the forward pass has checked -----------------------------------------------------------

    #[track_caller]
    pub(crate) fn reshape_to(&self, to: &Shape) -> Tensor {
        if self.node().shape == *to {
            return self.clone();
        }
        or_panic(bind(Reshape { to: to.clone() }, &[self]))
    }

    #[track_caller]
    pub(crate) fn permuted(&self, perm: Axes) -> Tensor {
        or_panic(bind(Permute { perm }, &[self]))
    }

    /// The last two axes exchanged.
    #[track_caller]
    pub(crate) fn transposed(&self) -> Tensor {
        let mut perm: Axes = (0..self.rank()).collect();
        perm.swap(self.rank() - 2, self.rank() - 1);
        self.permuted(perm)
    }

    #[track_caller]
    pub(crate) fn narrowed(&self, axis: usize, start: usize, n: usize) -> Tensor {
        self.narrow(axis as isize, start, n)
    }

    #[track_caller]
    pub(crate) fn region(&self, region: &SliceSpec) -> Tensor {
        or_panic(bind(Slice { region: region.clone() }, &[self]))
    }

    #[track_caller]
    pub(crate) fn with_region(&self, region: &SliceSpec, part: &Tensor) -> Tensor {
        or_panic(bind(SliceAssign { region: region.clone() }, &[self, part]))
    }
}

/// Every element of a shape.
pub(crate) fn whole(shape: &[usize]) -> SliceSpec {
    SliceSpec { axes: shape.iter().map(|&n| (0, 1, n)).collect() }
}

impl AsRef<Tensor> for Tensor {
    fn as_ref(&self) -> &Tensor {
        self
    }
}
