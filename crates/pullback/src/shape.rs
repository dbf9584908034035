//! Shapes, and the one rule of broadcasting.

use crate::error::{Error, Result, err};
use crate::small::Small;
use smallvec::SmallVec;
use std::fmt;
use std::ops::Deref;

/// The lengths of a tensor's axes. Up to four axes are stored without allocation.
///
/// Wherever a function takes `impl Into<Shape>`, it takes an array, a slice, a `Vec` or a single length.
///
/// ```
/// use pullback::prelude::*;
/// assert_eq!(Tensor::zeros([2, 3]).shape(), [2, 3]);
/// assert_eq!(Tensor::zeros(vec![4]).shape(), [4]);
/// assert_eq!(Tensor::zeros([]).shape(), []);
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Shape(Small<usize>);

/// Steps in the buffer, one for each axis.
pub(crate) type Strides = Small<isize>;

/// The most axes that a tensor can have, as in NumPy.
pub(crate) const MAX_RANK: usize = 64;

/// A list of axes.
pub(crate) type Axes = SmallVec<[usize; 4]>;

impl Shape {
    /// The number of elements, or an error if it, or the bytes that they need, cannot be counted.
    pub(crate) fn checked_len(&self) -> Result<usize> {
        if self.len() > MAX_RANK {
            return Err(err!(Shape, "a tensor has at most {MAX_RANK} axes, not {}", self.len()));
        }
        // Zero-length axes must not hide an overflow of the others: strides are computed from all of them.
        let full = self.0.iter().map(|&n| n.max(1)).try_fold(1usize, |a, n| a.checked_mul(n));
        match full {
            Some(n) if n <= isize::MAX as usize / 16 => Ok(if self.0.contains(&0) { 0 } else { n }),
            _ => Err(err!(Shape, "a tensor of shape {self:?} has more elements than memory can address")),
        }
    }

    /// The number of elements.
    #[inline]
    pub(crate) fn numel(&self) -> usize {
        self.0.iter().product()
    }

    /// The strides of a row-major array without gaps.
    #[inline]
    pub(crate) fn strides(&self) -> Strides {
        let n = |n: usize| n as isize;
        match self[..] {
            [] => Small::default(),
            [_] => Small::here(1, [1, 0, 0, 0]),
            [_, b] => Small::here(2, [n(b), 1, 0, 0]),
            [_, b, c] => Small::here(3, [n(b * c), n(c), 1, 0]),
            [_, b, c, d] => Small::here(4, [n(b * c * d), n(c * d), n(d), 1]),
            _ => {
                let mut strides = Strides::filled(1, self.len());
                for k in (1..self.len()).rev() {
                    strides[k - 1] = strides[k] * self[k] as isize;
                }
                strides
            }
        }
    }

    /// This shape with another axis before position `at`.
    pub(crate) fn inserted(&self, at: usize, n: usize) -> Shape {
        self[..at].iter().chain([&n]).chain(&self[at..]).copied().collect()
    }

    /// This shape with `axes` set to 1.
    pub(crate) fn with_ones(&self, axes: &[usize]) -> Shape {
        let mut s = self.clone();
        axes.iter().for_each(|&a| s.0[a] = 1);
        s
    }

    /// This shape without `axes`.
    pub(crate) fn without(&self, axes: &[usize]) -> Shape {
        self.0.iter().enumerate().filter(|(k, _)| !axes.contains(k)).map(|(_, &n)| n).collect()
    }

    /// The shape that both broadcast to, aligned at the last axis: equal lengths stay, a length of one stretches.
    pub(crate) fn broadcast(a: &[usize], b: &[usize]) -> Result<Shape> {
        let rank = a.len().max(b.len());
        let axis = |s: &[usize], k: usize| if k + s.len() < rank { 1 } else { s[k + s.len() - rank] };
        (0..rank)
            .map(|k| match (axis(a, k), axis(b, k)) {
                (m, n) if m == n => Ok(m),
                (1, n) => Ok(n),
                (m, 1) => Ok(m),
                (m, n) => Err(err!(
                    Shape,
                    "shapes {a:?} and {b:?} do not broadcast: axis -{} has length {m} in one and {n} in the other; \
                     aligned at the last axis, lengths must be equal or 1",
                    rank - k
                )),
            })
            .collect()
    }
}

/// A Rust integer as a signed one. What is too large for it stays too large, where `as` would make a count from the
/// end of it.
pub(crate) fn signed<T: TryInto<isize>>(n: T) -> isize {
    n.try_into().unwrap_or(isize::MAX)
}

/// An axis counted from the front, or from the end if negative.
pub(crate) fn axis(at: isize, rank: usize) -> Result<usize> {
    let k = if at < 0 { at + rank as isize } else { at };
    if k >= 0 && (k as usize) < rank {
        Ok(k as usize)
    } else {
        Err(err!(Axis, "axis {at} is out of range for a tensor of {rank} axes"))
    }
}

/// Distinct axes, in rising order.
pub(crate) fn axes(at: &[isize], rank: usize) -> Result<Axes> {
    let mut out = at.iter().map(|&a| axis(a, rank)).collect::<Result<Axes>>()?;
    out.sort_unstable();
    match out.windows(2).find(|w| w[0] == w[1]) {
        Some(w) => Err(err!(Axis, "axis {} is named twice in {at:?}", w[0])),
        None => Ok(out),
    }
}

impl Deref for Shape {
    type Target = [usize];
    fn deref(&self) -> &[usize] {
        &self.0
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self[..].fmt(f)
    }
}

impl FromIterator<usize> for Shape {
    fn from_iter<I: IntoIterator<Item = usize>>(iter: I) -> Self {
        Shape(iter.into_iter().collect())
    }
}

impl From<&[usize]> for Shape {
    fn from(s: &[usize]) -> Self {
        Shape(Small::from_slice(s))
    }
}

impl From<Vec<usize>> for Shape {
    fn from(s: Vec<usize>) -> Self {
        Shape(Small::from_slice(&s))
    }
}

impl From<usize> for Shape {
    fn from(n: usize) -> Self {
        Shape(Small::from_slice(&[n]))
    }
}

impl<const N: usize> From<[usize; N]> for Shape {
    fn from(s: [usize; N]) -> Self {
        Shape(Small::from_slice(&s))
    }
}

impl From<&Shape> for Shape {
    fn from(s: &Shape) -> Self {
        s.clone()
    }
}

impl<T: AsRef<[usize]> + ?Sized> PartialEq<T> for Shape {
    fn eq(&self, other: &T) -> bool {
        self[..] == *other.as_ref()
    }
}

/// A shape for `reshape` in which one length may be left open as -1.
pub(crate) fn resolve(to: &[isize], numel: usize) -> Result<Shape> {
    let wrong = |why: &str| -> Error { err!(Shape, "cannot reshape {numel} elements to {to:?}: {why}") };
    let mut open = None;
    let mut known = 1usize;
    for (k, &n) in to.iter().enumerate() {
        match n {
            -1 if open.is_some() => return Err(wrong("only one length may be -1")),
            -1 => open = Some(k),
            n if n < 0 => return Err(wrong("lengths are not negative")),
            n => {
                known = known
                    .checked_mul(n as usize)
                    .ok_or_else(|| wrong("the product of the lengths overflows"))?
            }
        }
    }
    let mut shape: Small<usize> = to.iter().map(|&n| n as usize).collect();
    match open {
        Some(_) if known == 0 => return Err(wrong("-1 is ambiguous when another length is 0")),
        Some(_) if !numel.is_multiple_of(known) => return Err(wrong("the other lengths do not divide it")),
        Some(k) => shape[k] = numel / known,
        None if known != numel => return Err(wrong("the number of elements differs")),
        None => {}
    }
    Ok(Shape(shape))
}
