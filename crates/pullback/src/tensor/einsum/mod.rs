//! Sums of products by the names of their indices, lowered to diagonals, sums, transposes and matrix products.

mod notation;
mod order;

use super::operand::{check_dtypes, conform};
use super::{Tensor, bind};
use crate::DType;
use crate::error::{Result, err, or_panic};
use crate::location::{caller, with_caller};
use crate::ops::{Dot, Permute, Slice, Sum};
use crate::shape::{Axes, Shape};
use crate::tensor::methods::whole;
use notation::{Index, Meaning, meaning};
use order::Set;
use std::borrow::Cow;

/// Einstein's sum: a sum of products of elements, written by naming the index of each axis.
///
/// `"ij,jk->ik"` is a product of matrices: operands are separated by commas, an index that the output does not have is summed over. Letters
/// are indices, of either case, and spaces are ignored.
///
/// - An index twice in an operand takes its diagonal: `"ii->i"`; `"ii->"` is the trace.
/// - `...` stands for all other axes, aligned at the last one and broadcast: `"...ij,...jk->...ik"`. An output without it sums over them.
/// - Without `->` the output has the axes of the ellipsis and then each letter that stands there once, capitals first, in the order of the alphabet.
/// - An axis of length 1 is repeated to the length that the index has elsewhere.
///
/// Several operands are multiplied two by two, in the order that takes the fewest multiplications (up to eight; a good one beyond). Each
/// product of two is a matrix product where indices are summed, so that derivatives of any order are as fast.
///
/// ```
/// use pullback::{einsum, prelude::*};
/// let a = Tensor::from([[1.0, 2.0], [3.0, 4.0]]);
/// let x = Tensor::from([1.0, -1.0]);
/// assert_eq!(einsum("ij,j->i", &[&a, &x]).to_vec::<f64>(), [-1.0, -1.0]);
/// assert_eq!(einsum("ii", &[&a]).item(), 5.0);
/// assert_eq!(einsum("i,ij,j", &[&x, &a, &x]).item(), 0.0);
/// ```
///
/// The error of a notation that does not fit shows where:
///
/// ```text
/// einsum: the output has `z`, which no operand has
///     ij,jk->iz
///             ^
/// ```
#[must_use]
#[track_caller]
pub fn einsum<T: AsRef<Tensor>>(spec: &str, operands: &[T]) -> Tensor {
    or_panic(try_einsum(spec, operands))
}

/// [`einsum`], with bad arguments as an error.
#[track_caller]
pub fn try_einsum<T: AsRef<Tensor>>(spec: &str, operands: &[T]) -> Result<Tensor> {
    let operands: Vec<&Tensor> = operands.iter().map(AsRef::as_ref).collect();
    let line = caller();
    with_caller(line, || contracted(spec, &operands)).map_err(|e| e.renamed("einsum").at(line))
}

/// An operand with the numbers of the indices of its axes, each once.
struct Factor {
    value: Tensor,
    axes: Vec<usize>,
}

fn contracted(spec: &str, operands: &[&Tensor]) -> Result<Tensor> {
    let shapes: Vec<&[usize]> = operands.iter().map(|t| t.shape()).collect();
    let Meaning { operands: named, output, lengths } = meaning(spec, &shapes)?;
    if lengths.len() > Set::BITS as usize {
        return Err(err!(Value, "there are more than {} indices", Set::BITS));
    }
    let mut dtype = operands.first().map_or(DType::F64, |t| t.dtype());
    for pair in operands.windows(2) {
        let to = DType::promote(dtype, pair[1].dtype());
        check_dtypes(pair[0], pair[1], to)?;
        dtype = to;
    }
    if dtype == DType::Bool {
        return Err(err!(DType, "takes numbers, got bool; use .cast(DType::I64)"));
    }
    let numbers: Vec<Index> = lengths.keys().copied().collect();
    let number = |i: &Index| numbers.binary_search(i).expect("each index has a length");
    let lengths: Vec<usize> = lengths.into_values().collect();
    let output: Vec<usize> = output.iter().map(number).collect();
    let factors = operands.iter().zip(&named).map(|(t, named)| {
        let value = conform(Cow::Borrowed(*t), dtype, &t.node().shape)?.into_owned();
        Factor { value, axes: named.iter().map(number).collect() }.diagonal()?.without_ones(&lengths)
    });
    contract(factors.collect::<Result<_>>()?, &output, &lengths)
}

/// The sum of the products of factors, with the axes of the output. Every index has a length.
fn contract(mut factors: Vec<Factor>, output: &[usize], lengths: &[usize]) -> Result<Tensor> {
    let wanted = set(output);
    let sets: Vec<Set> = factors.iter().map(|f| set(&f.axes)).collect();
    // An index of a single factor is summed at once.
    let alone = |k: usize| {
        let others = sets.iter().enumerate().filter(|(j, _)| *j != k);
        others.fold(wanted, |all, (_, s)| all | s)
    };
    for (k, factor) in factors.iter_mut().enumerate() {
        factor.sum_all_but(alone(k))?;
    }
    let sets: Vec<Set> = factors.iter().map(|f| set(&f.axes)).collect();
    let costs: Vec<f64> = lengths.iter().map(|&n| n as f64).collect();
    for (a, b) in order::order(&sets, wanted, &costs) {
        let (b, a) = (factors.remove(a), factors.remove(b));
        let needed = factors.iter().fold(wanted, |all, f| all | set(&f.axes));
        let turned = factors.is_empty() && comes_first(&b, &a, output);
        let (a, b) = if turned { (b, a) } else { (a, b) };
        factors.push(product(a, b, needed, lengths)?);
    }
    let Factor { value, axes } = factors.pop().expect("a notation has an operand");
    // What stood with length 1 only was taken out.
    let perm: Axes = output.iter().filter_map(|i| axes.iter().position(|a| a == i)).collect();
    permuted(&value, perm)?.try_reshape(output.iter().map(|&i| lengths[i]).collect::<Shape>())
}

fn permuted(t: &Tensor, perm: Axes) -> Result<Tensor> {
    match perm.iter().enumerate().all(|(k, &p)| k == p) {
        true => Ok(t.clone()),
        false => bind(Permute { perm }, &[t]),
    }
}

fn set(axes: &[usize]) -> Set {
    axes.iter().fold(0, |all, &i| all | 1 << i)
}

/// Whether the output begins with an index of `a` alone, batch axes apart: then `a` is the left factor, and nothing has to be transposed.
fn comes_first(a: &Factor, b: &Factor, output: &[usize]) -> bool {
    let own = |f: &Factor, other: &Factor, i: &usize| f.axes.contains(i) && !other.axes.contains(i);
    let first = output.iter().find(|i| own(a, b, i) || own(b, a, i));
    first.is_some_and(|i| own(a, b, i))
}

/// The fewest terms of a row that are worth a product of vectors. Fewer are multiplied and summed.
const ROW: usize = 32;

/// The sum of the products of two factors over what they share and nobody else needs.
fn product(a: Factor, b: Factor, needed: Set, lengths: &[usize]) -> Result<Factor> {
    let (in_a, in_b) = (set(&a.axes), set(&b.axes));
    let of = |axes: &[usize], which: Set| -> Vec<usize> {
        axes.iter().copied().filter(|&i| which >> i & 1 == 1).collect()
    };
    let batch = of(&a.axes, in_a & in_b & needed);
    let (left, right) = (of(&a.axes, in_a & !in_b), of(&b.axes, in_b & !in_a));
    // In the order of the larger factor, which then need not be copied.
    let order = if a.value.numel() >= b.value.numel() { &a.axes } else { &b.axes };
    let summed = of(order, in_a & in_b & !needed);
    let size = |axes: &[usize]| axes.iter().map(|&i| lengths[i]).product::<usize>();
    let axes: Vec<usize> = [&batch[..], &left, &right].concat();
    let shape: Shape = axes.iter().map(|&i| lengths[i]).collect();
    let rows_only = left.is_empty() && right.is_empty() && size(&summed) < ROW && !batch.is_empty();
    if summed.is_empty() || rows_only {
        let all: Vec<usize> = [&axes[..], &summed].concat();
        let terms = a.spread(&all)?.try_mul(b.spread(&all)?)?;
        let last: Axes = (axes.len()..all.len()).collect();
        let value = if last.is_empty() { terms } else { bind(Sum { axes: last }, &[&terms])? };
        return Ok(Factor { value, axes });
    }
    let matrix = |f: &Factor, groups: [&[usize]; 2]| {
        let order = [&batch[..], groups[0], groups[1]].concat();
        let flat = batch.iter().map(|&i| lengths[i]).chain(groups.map(size));
        f.arranged(&order)?.try_reshape(flat.collect::<Shape>())
    };
    let value = bind(Dot, &[&matrix(&a, [&left, &summed])?, &matrix(&b, [&summed, &right])?])?;
    Ok(Factor { value: value.try_reshape(&shape)?, axes })
}

impl Factor {
    /// The axes in another order.
    fn arranged(&self, order: &[usize]) -> Result<Tensor> {
        let place = |i: &usize| self.axes.iter().position(|a| a == i).expect("it has these axes");
        permuted(&self.value, order.iter().map(place).collect())
    }

    /// The axes in this order, with length 1 where it has none.
    fn spread(&self, order: &[usize]) -> Result<Tensor> {
        let own: Vec<usize> = order.iter().copied().filter(|i| self.axes.contains(i)).collect();
        let value = self.arranged(&own)?;
        let mut lengths = value.shape().to_vec().into_iter();
        let shape = order.iter().map(|i| if self.axes.contains(i) { lengths.next().unwrap_or(1) } else { 1 });
        value.try_reshape(shape.collect::<Shape>())
    }

    /// The diagonal over axes of one index. With both at the end, as one axis of `n²` elements, it is every `n + 1`-th of them.
    fn diagonal(mut self) -> Result<Factor> {
        while let Some((a, b)) = self.repeated() {
            let rank = self.axes.len();
            let index = self.axes[a];
            let others: Vec<usize> = (0..rank).filter(|k| *k != a && *k != b).collect();
            let perm: Axes = others.iter().copied().chain([a, b]).collect();
            let n = self.value.shape()[a];
            let mut shape: Vec<usize> = others.iter().map(|&k| self.value.shape()[k]).collect();
            shape.push(n * n);
            let flat = permuted(&self.value, perm)?.try_reshape(shape.as_slice())?;
            let mut region = whole(flat.shape());
            region.axes[rank - 2] = (0, n as isize + 1, n);
            let axes = others.iter().map(|&k| self.axes[k]).chain([index]).collect();
            self = Factor { value: bind(Slice { region }, &[&flat])?, axes };
        }
        Ok(self)
    }

    fn repeated(&self) -> Option<(usize, usize)> {
        let pair = |b: usize| self.axes[..b].iter().position(|i| *i == self.axes[b]).map(|a| (a, b));
        (0..self.axes.len()).find_map(pair)
    }

    /// Without axes of one element that are longer elsewhere: the product repeats it along them.
    fn without_ones(self, lengths: &[usize]) -> Result<Factor> {
        let kept: Vec<usize> =
            (0..self.axes.len()).filter(|&k| self.value.shape()[k] == lengths[self.axes[k]]).collect();
        if kept.len() == self.axes.len() {
            return Ok(self);
        }
        let shape: Shape = kept.iter().map(|&k| self.value.shape()[k]).collect();
        Ok(Factor {
            value: self.value.try_reshape(&shape)?,
            axes: kept.iter().map(|&k| self.axes[k]).collect(),
        })
    }

    fn sum_all_but(&mut self, needed: Set) -> Result<()> {
        let summed: Axes = (0..self.axes.len()).filter(|&k| needed >> self.axes[k] & 1 == 0).collect();
        if !summed.is_empty() {
            self.value = bind(Sum { axes: summed }, &[&self.value])?;
            self.axes.retain(|i| needed >> i & 1 == 1);
        }
        Ok(())
    }
}

/// The sum of products over pairs of axes, of which the rest stays in order: those of `a`, then those of `b`.
pub(super) fn tensordot(a: &Tensor, b: &Tensor, of_a: &[usize], of_b: &[usize]) -> Result<Tensor> {
    if of_a.len() != of_b.len() {
        return Err(err!(
            Shape,
            "{} axes of the first and {} of the second are no pairs",
            of_a.len(),
            of_b.len()
        ));
    }
    if let Some((i, j)) = of_a.iter().zip(of_b).find(|(i, j)| a.shape()[**i] != b.shape()[**j]) {
        return Err(err!(
            Shape,
            "axis {i} of {:?} and axis {j} of {:?} have different lengths",
            a.shape(),
            b.shape()
        ));
    }
    let dtype = DType::promote(a.dtype(), b.dtype());
    check_dtypes(a, b, dtype)?;
    if a.rank() + b.rank() > Set::BITS as usize {
        return Err(err!(Shape, "{} axes are too many", a.rank() + b.rank()));
    }
    let axes_a: Vec<usize> = (0..a.rank()).collect();
    let pair = |j: usize| of_b.iter().position(|k| *k == j).map(|p| of_a[p]);
    let axes_b: Vec<usize> = (0..b.rank()).map(|j| pair(j).unwrap_or(a.rank() + j)).collect();
    let mut lengths: Vec<usize> = a.shape().to_vec();
    lengths.extend(b.shape());
    let kept_b = axes_b.iter().copied().filter(|&i| i >= a.rank());
    let output: Vec<usize> = (0..a.rank()).filter(|i| !of_a.contains(i)).chain(kept_b).collect();
    let factor = |t: &Tensor, axes| -> Result<Factor> {
        Ok(Factor { value: conform(Cow::Borrowed(t), dtype, &t.node().shape)?.into_owned(), axes })
    };
    contract(vec![factor(a, axes_a)?, factor(b, axes_b)?], &output, &lengths)
}

#[cfg(test)]
mod tests;
