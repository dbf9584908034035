//! Axes and pieces in another order, repeated, or put together.

use super::{AxisList, methods, whole};
use crate::error::{Result, Within, err, or_panic};
use crate::location::{caller, with_caller};
use crate::ops::*;
use crate::shape::{Axes, Shape, axis};
use crate::tensor::{Tensor, bind};

/// Runs the steps of a composition as one of the caller's.
#[track_caller]
pub(in crate::tensor) fn composed<T>(op: &'static str, f: impl FnOnce() -> Result<T>) -> Result<T> {
    let location = caller();
    with_caller(location, f).map_err(|e| e.renamed(op).at(location))
}

methods! { $ arrange_methods;
    /// The axes from `start` to `end`, which is included, as one.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// assert_eq!(Tensor::zeros([2, 3, 4, 5]).flatten_axes(1, -1).shape(), [2, 60]);
    /// ```
    #[doc(alias = "flatten")]
    flatten_axes try_flatten_axes(&self, start: isize, end: isize) -> Tensor {
        let (a, b) = axis(start, self.rank()).and_then(|a| Ok((a, axis(end, self.rank())?))).within("flatten_axes")?;
        if a > b {
            return Err(err!(Axis, "axis {start} comes after axis {end} of shape {:?}", self.shape())).within("flatten_axes");
        }
        let s = self.shape();
        let joined = s[a..=b].iter().product::<usize>();
        self.try_reshape(s[..a].iter().copied().chain([joined]).chain(s[b + 1..].iter().copied()).collect::<Shape>())
    }

    /// Two axes exchanged, by NumPy's name: [`transpose`](Tensor::transpose).
    #[doc(alias = "swapaxes")]
    swap_axes try_swap_axes(&self, a: isize, b: isize) -> Tensor {
        self.try_transpose(a, b).map_err(|e| e.renamed("swap_axes"))
    }

    /// Axes moved to other places, one or several; the others keep their order.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = Tensor::zeros([2, 3, 4, 5]);
    /// assert_eq!(x.move_axis(0, -1).shape(), [3, 4, 5, 2]);
    /// assert_eq!(x.move_axis([0, 1], [-1, 0]).shape(), [3, 4, 5, 2]);
    /// ```
    #[doc(alias("moveaxis", "movedim"))]
    move_axis try_move_axis(&self, from: impl Into<AxisList>, to: impl Into<AxisList>) -> Tensor {
        let perm = moved(&from.into(), &to.into(), self.rank()).within("move_axis")?;
        bind(Permute { perm }, &[self])
    }

    /// With the elements moved on by `shift` places along an axis; what leaves at one end comes in at the other.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// assert_eq!(Tensor::from([1, 2, 3, 4]).roll(1, 0).to_vec::<i32>(), [4, 1, 2, 3]);
    /// assert_eq!(Tensor::from([1, 2, 3, 4]).roll(-1, 0).to_vec::<i32>(), [2, 3, 4, 1]);
    /// ```
    roll try_roll(&self, shift: isize, at: isize) -> Tensor {
        let k = axis(at, self.rank()).within("roll")?;
        let n = self.shape()[k];
        let first = if n == 0 { 0 } else { (n as i128 - shift as i128).rem_euclid(n as i128) as usize };
        if first == 0 {
            return Ok(self.clone());
        }
        composed("roll", || {
            let parts = [self.try_narrow(k as isize, first, n - first)?, self.try_narrow(k as isize, 0, first)?];
            Tensor::try_concat(&parts, k as isize)
        })
    }

    /// The whole tensor repeated so many times along each axis, like [`repeat`](Tensor::repeat), with as many axes as the longer of both
    /// has: what is missing in front counts as 1.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// assert_eq!(Tensor::from([1, 2]).tile(&[2, 2]).shape(), [2, 4]);
    /// assert_eq!(Tensor::from([[1], [2]]).tile(&[3]).shape(), [2, 3]);
    /// ```
    tile try_tile(&self, times: &[usize]) -> Tensor {
        let rank = self.rank().max(times.len());
        let all: Vec<usize> = std::iter::repeat_n(1, rank - times.len()).chain(times.iter().copied()).collect();
        composed("tile", || self.try_at_least(rank)?.try_repeat(&all))
    }

    /// Each slice along an axis repeated: all of them as often, or each one as often as its own number says.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = Tensor::from([1, 2]);
    /// assert_eq!(x.repeat_interleave(2, 0).to_vec::<i32>(), [1, 1, 2, 2]);
    /// assert_eq!(x.repeat_interleave([1, 3], 0).to_vec::<i32>(), [1, 2, 2, 2]);
    /// ```
    repeat_interleave try_repeat_interleave(&self, times: impl Into<Shape>, at: isize) -> Tensor {
        let times = times.into();
        let k = axis(at, self.rank()).within("repeat_interleave")?;
        let n = self.shape()[k];
        if let [times] = times[..] {
            return composed("repeat_interleave", || {
                let repeated = self.node().shape.inserted(k + 1, times);
                let joined = n.checked_mul(times).ok_or_else(|| err!(Shape, "the repeated shape overflows"))?;
                let shape: Shape = (0..self.rank()).map(|a| if a == k { joined } else { self.shape()[a] }).collect();
                shape.checked_len()?;
                self.try_unsqueeze(k as isize + 1)?.try_broadcast_to(repeated)?.try_reshape(&shape)
            });
        }
        if times.len() != n {
            let e = err!(Shape, "one number for all, or one for each slice: got {} for axis {at} of shape {:?}", times.len(), self.shape());
            return Err(e).within("repeat_interleave");
        }
        composed("repeat_interleave", || {
            let total = times.iter().try_fold(0usize, |sum, &t| sum.checked_add(t));
            let total = total.ok_or_else(|| err!(Shape, "the repeated shape overflows"))?;
            crate::allocation::ask_for::<i64>(total)?;
            let order: Vec<i64> = times.iter().enumerate().flat_map(|(j, &t)| std::iter::repeat_n(j as i64, t)).collect();
            self.try_index_select(k as isize, &Tensor::from(order).beside(self)?)
        })
    }

    /// At most `n` pieces of equal length along an axis; the last one may be shorter. They share the buffer.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let parts = Tensor::arange(0, 7, 1).chunk(3, 0);
    /// assert_eq!(parts.iter().map(|p| p.numel()).collect::<Vec<_>>(), [3, 3, 1]);
    /// ```
    chunk try_chunk(&self, n: usize, at: isize) -> Vec<Tensor> {
        let k = axis(at, self.rank()).within("chunk")?;
        if n == 0 {
            return Err(err!(Value, "into no pieces")).within("chunk");
        }
        let total = self.shape()[k];
        let each = total.div_ceil(n).max(1);
        let pieces = total.div_ceil(each).max(1);
        composed("chunk", || {
            (0..pieces).map(|j| self.try_narrow(k as isize, j * each, each.min(total - j * each))).collect()
        })
    }

    /// The slices along an axis, which is dropped. They share the buffer.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let columns = Tensor::from([[1, 2], [3, 4]]).unbind(1);
    /// assert_eq!(columns[0].to_vec::<i32>(), [1, 3]);
    /// ```
    #[doc(alias = "unstack")]
    unbind try_unbind(&self, at: isize) -> Vec<Tensor> {
        let k = axis(at, self.rank()).within("unbind")?;
        crate::allocation::ask_for::<Tensor>(self.shape()[k]).within("unbind")?;
        composed("unbind", || {
            (0..self.shape()[k]).map(|j| self.try_narrow(k as isize, j, 1)?.try_squeeze(k as isize)).collect()
        })
    }

    /// With at least so many axes: new ones of length 1 come in front.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// assert_eq!(Tensor::from([1.0, 2.0]).at_least(2).shape(), [1, 2]);
    /// ```
    #[doc(alias("atleast_1d", "atleast_2d", "atleast_3d"))]
    at_least try_at_least(&self, rank: usize) -> Tensor {
        let missing = rank.saturating_sub(self.rank());
        if missing > crate::shape::MAX_RANK {
            return Err(err!(Shape, "a tensor has at most {} axes, not {rank}", crate::shape::MAX_RANK)).within("at_least");
        }
        self.try_reshape(std::iter::repeat_n(1, missing).chain(self.shape().iter().copied()).collect::<Shape>())
    }

    /// Turned by quarters in the plane of two axes, from the first axis towards the second.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = Tensor::from([[1, 2], [3, 4]]);
    /// assert_eq!(x.rot90(1, 0, 1).to_vec::<i32>(), [2, 4, 1, 3]);
    /// ```
    rot90 try_rot90(&self, times: isize, a: isize, b: isize) -> Tensor {
        let (j, k) = axis(a, self.rank()).and_then(|j| Ok((j, axis(b, self.rank())?))).within("rot90")?;
        if j == k {
            return Err(err!(Axis, "axis {a} is named twice: a plane has two axes")).within("rot90");
        }
        let (a, b) = (j as isize, k as isize);
        composed("rot90", || match times.rem_euclid(4) {
            0 => Ok(self.clone()),
            1 => self.try_flip(b)?.try_transpose(a, b),
            2 => self.try_flip([a, b]),
            _ => self.try_flip(a)?.try_transpose(a, b),
        })
    }

    /// In reverse order along the given axes; copies nothing.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let x = Tensor::from([[1, 2], [3, 4]]);
    /// assert_eq!(x.flip(1).to_vec::<i32>(), [2, 1, 4, 3]);
    /// assert_eq!(x.flip([0, 1]).to_vec::<i32>(), [4, 3, 2, 1]);
    /// ```
    flip try_flip(&self, over: impl Into<AxisList>) -> Tensor {
        let over = crate::shape::axes(&over.into().0, self.rank()).within("flip")?;
        let mut region = whole(self.shape());
        for k in over {
            let n = self.shape()[k];
            region.axes[k] = (n.saturating_sub(1), -1, n);
        }
        bind(Slice { region }, &[self])
    }
}

/// The permutation that moves axes.
fn moved(from: &AxisList, to: &AxisList, rank: usize) -> Result<Axes> {
    if from.0.len() != to.0.len() {
        return Err(err!(Axis, "{} axes cannot be moved to {} places", from.0.len(), to.0.len()));
    }
    let each = |list: &AxisList| {
        crate::shape::axes(&list.0, rank)?;
        list.0.iter().map(|&a| axis(a, rank)).collect::<Result<Axes>>()
    };
    let (from, to) = (each(from)?, each(to)?);
    let mut others = (0..rank).filter(|a| !from.contains(a));
    let at = |place: usize| match to.iter().position(|&t| t == place) {
        Some(k) => from[k],
        None => others.next().expect("as many axes as places"),
    };
    Ok((0..rank).map(at).collect())
}

impl Tensor {
    /// Tensors one after the other along the second axis, or along the only one.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let (a, b) = (Tensor::ones([2, 1]), Tensor::zeros([2, 2]));
    /// assert_eq!(Tensor::hstack(&[&a, &b]).shape(), [2, 3]);
    /// assert_eq!(Tensor::hstack(&[Tensor::ones([2]), Tensor::ones([1])]).shape(), [3]);
    /// ```
    #[must_use]
    #[track_caller]
    pub fn hstack<T: AsRef<Tensor>>(parts: &[T]) -> Tensor {
        or_panic(Tensor::try_hstack(parts))
    }

    #[track_caller]
    pub(crate) fn try_hstack<T: AsRef<Tensor>>(parts: &[T]) -> Result<Tensor> {
        composed("hstack", || {
            let parts = parts.iter().map(|t| t.as_ref().try_at_least(1)).collect::<Result<Vec<Tensor>>>()?;
            let at = parts.first().map_or(0, |t| (t.rank() - 1).min(1));
            Tensor::try_concat(&parts, at as isize)
        })
    }

    /// Tensors one after the other along the first axis; those of one axis are rows.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let (a, b) = (Tensor::from([1.0, 2.0]), Tensor::zeros([2, 2]));
    /// assert_eq!(Tensor::vstack(&[&a, &b]).shape(), [3, 2]);
    /// ```
    #[must_use]
    #[track_caller]
    #[doc(alias = "row_stack")]
    pub fn vstack<T: AsRef<Tensor>>(parts: &[T]) -> Tensor {
        or_panic(Tensor::try_vstack(parts))
    }

    #[track_caller]
    pub(crate) fn try_vstack<T: AsRef<Tensor>>(parts: &[T]) -> Result<Tensor> {
        composed("vstack", || {
            let parts = parts.iter().map(|t| t.as_ref().try_at_least(2)).collect::<Result<Vec<Tensor>>>()?;
            Tensor::try_concat(&parts, 0)
        })
    }

    /// Coordinates of a grid: of n vectors as many tensors of n axes, of which tensor `k` has vector `k` along axis `k` and repeats it over the
    /// others; copies nothing. It is the order that other libraries call `ij`; exchange the first two axes for `xy`.
    ///
    /// ```
    /// use pullback::prelude::*;
    /// let grid = Tensor::meshgrid(&[Tensor::from([1, 2]), Tensor::from([5, 6, 7])]);
    /// assert_eq!(grid[0].to_vec::<i32>(), [1, 1, 1, 2, 2, 2]);
    /// assert_eq!(grid[1].to_vec::<i32>(), [5, 6, 7, 5, 6, 7]);
    /// ```
    #[must_use]
    #[track_caller]
    pub fn meshgrid<T: AsRef<Tensor>>(axes: &[T]) -> Vec<Tensor> {
        or_panic(Tensor::try_meshgrid(axes))
    }

    #[track_caller]
    pub(crate) fn try_meshgrid<T: AsRef<Tensor>>(axes: &[T]) -> Result<Vec<Tensor>> {
        composed("meshgrid", || {
            let axes: Vec<&Tensor> = axes.iter().map(AsRef::as_ref).collect();
            if let Some(t) = axes.iter().find(|t| t.rank() > 1) {
                return Err(err!(Shape, "takes tensors of one axis, got shape {:?}", t.shape()));
            }
            let shape: Shape = axes.iter().map(|t| t.numel()).collect();
            shape.checked_len()?;
            let one = |(k, t): (usize, &&Tensor)| {
                let lengths: Shape = (0..shape.len()).map(|a| if a == k { shape[a] } else { 1 }).collect();
                t.try_reshape(&lengths)?.try_broadcast_to(&shape)
            };
            axes.iter().enumerate().map(one).collect()
        })
    }
}
