//! Products with sparse matrices. The places of a matrix are data: two lists of i64, of rows and of columns, in any order.

use super::*;
use crate::allocation::ask_for;
use crate::dtype::with_float;
use crate::error::{err, or_panic};
use crate::kernels::compute::Compute;
use crate::kernels::movement;
use crate::kernels::sparse::{self, Outside};
use crate::kernels::view::View;
use bytemuck::Pod;
use smallvec::smallvec;
use std::borrow::Cow;

/// The axes in front and the number of places, if both lists have them.
fn check_places<'a>(x: &[Arg<'a>]) -> Result<(&'a [usize], usize)> {
    match (x[0], x[1], x[0].shape.split_last()) {
        (a, b, Some((&n, front))) if a.dtype == DType::I64 && b.dtype == DType::I64 && a.shape == b.shape => {
            Ok((front, n))
        }
        (a, b, _) => Err(err!(
            Shape,
            "places are two lists of i64 of one length, got {} {:?} and {} {:?}",
            a.dtype,
            a.shape,
            b.dtype,
            b.shape
        )),
    }
}

fn check_floats(a: Arg, b: Arg) -> Result<DType> {
    match a.dtype == b.dtype && a.dtype.is_float() {
        true => Ok(a.dtype),
        false => Err(err!(DType, "takes floats of one type, got {} and {}", a.dtype, b.dtype)),
    }
}

/// The rows and columns of a matrix with these axes in front.
fn matrix(shape: &[usize], front: &[usize]) -> Option<[usize; 2]> {
    shape.strip_prefix(front).and_then(|last| last.try_into().ok())
}

/// One of the arrays that lie behind the axes in front of the last `rank`, in row-major order.
fn lane<'a, T: Pod + Send + Sync>(x: &Value<'a>, rank: usize, mut lane: usize) -> Result<Cow<'a, [T]>> {
    let all = x.view::<T>();
    let front = x.shape.len() - rank;
    let mut first = all.offset as isize;
    for k in (0..front).rev() {
        first += (lane % x.shape[k]) as isize * all.strides[k];
        lane /= x.shape[k];
    }
    let view = View::new(all.data, first as usize, &all.shape[front..], &all.strides[front..]);
    if let Some(elements) = view.as_slice() {
        return Ok(Cow::Borrowed(elements));
    }
    ask_for::<T>(view.len())?;
    let mut own = vec![T::zeroed(); view.len()];
    movement::copy(view, &mut own);
    Ok(Cow::Owned(own))
}

/// The same in the type that it is computed in.
fn wide_lane<'a, T: Pod + Compute>(x: &Value<'a>, rank: usize, k: usize) -> Result<Cow<'a, [T::Wide]>> {
    let own = match lane::<T>(x, rank, k)? {
        Cow::Borrowed(all) => match T::as_wide(all) {
            Some(all) => return Ok(Cow::Borrowed(all)),
            None => Cow::Borrowed(all),
        },
        owned => owned,
    };
    let mut all = vec![<T::Wide as Default>::default(); own.len()];
    T::widen_all(&own, &mut all);
    Ok(Cow::Owned(all))
}

/// Has `f` write the result of each lane, of `each` elements, in the type that it is computed in.
fn in_lanes<T: Pod + Compute>(
    out: &mut Output,
    each: usize,
    mut f: impl FnMut(usize, &mut [T::Wide]) -> Result<()>,
) -> Result<()> {
    let out = out.fill::<T>();
    if each == 0 {
        return Ok(());
    }
    for (k, out) in out.chunks_exact_mut(each).enumerate() {
        if let Some(wide) = T::as_wide_mut(out) {
            f(k, wide)?;
            continue;
        }
        let mut wide = vec![<T::Wide as Default>::default(); each];
        f(k, &mut wide)?;
        T::narrow_all(&wide, out);
    }
    Ok(())
}

/// The places of a lane, inside of a matrix of these rows and columns.
fn places<'a>(x: &[Value<'a>], k: usize, rows: usize, columns: usize) -> Result<[Cow<'a, [i64]>; 2]> {
    let outside = |what: &'static str, n: usize| {
        move |Outside { position, value }: Outside| {
            err!(Index, "{what} {value} of entry {position} is outside of a matrix that has {n}")
        }
    };
    let [to, from] = [lane::<i64>(&x[0], 1, k)?, lane::<i64>(&x[1], 1, k)?];
    sparse::check(&to, rows).map_err(outside("row", rows))?;
    sparse::check(&from, columns).map_err(outside("column", columns))?;
    Ok([to, from])
}

/// `y[i, :] = Σ v[e] x[columns[e], :]` over the entries with `rows[e] = i`: a matrix of `rows` rows with the values `v` at its places, times a
/// dense one. Its transpose has the lists exchanged. All inputs may have the same axes in front.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SparseDot {
    pub rows: usize,
}

impl Primitive for SparseDot {
    const NAME: &'static str = "sparse_matmul";
    const ARITY: Option<usize> = Some(4);
    const CONTRACTION: bool = true;

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        let (front, n) = check_places(x)?;
        let (true, Some([_, k])) = (x[2].shape == x[0].shape, matrix(x[3].shape, front)) else {
            return Err(err!(
                Shape,
                "takes a value for each of {n} places and a dense matrix, got {:?} and {:?}",
                x[2].shape,
                x[3].shape
            ));
        };
        let shape: Shape = front.iter().chain(&[self.rows, k]).copied().collect();
        shape.checked_len()?;
        Ok(Aval { dtype: check_floats(x[2], x[3])?, shape })
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        let &[.., n, k] = x[3].shape else { unreachable!("a matrix") };
        with_float!(x[2].dtype, T => in_lanes::<T>(out, self.rows * k, |lane, out| {
            let [to, from] = places(x, lane, self.rows, n)?;
            let (values, dense) = (wide_lane::<T>(&x[2], 1, lane)?, wide_lane::<T>(&x[3], 2, lane)?);
            sparse::product(&to, &from, &values, &dense, k, out);
            Ok(())
        }))
    }

    fn flops(&self, x: &[&[usize]], y: &[usize]) -> u64 {
        let k = y.last().copied().unwrap_or(0);
        (2 * x[2].iter().product::<usize>() * k + y.iter().product::<usize>()) as u64
    }

    /// [`SampledDot`] of `g` and `x` for the values, and the transposed matrix times `g`.
    fn pullback(&self, at: &At, g: &Tensor) -> Cotangents {
        let (rows, columns, n) = (at.x(0), at.x(1), at.shape(3)[at.shape(3).len() - 2]);
        smallvec![
            None,
            None,
            at.needs(2).then(|| or_panic(bind(SampledDot, &[rows, columns, g, at.x(3)]))),
            at.needs(3).then(|| or_panic(bind(SparseDot { rows: n }, &[columns, rows, at.x(2), g]))),
        ]
    }

    fn uses(&self, needs: &[bool]) -> Uses {
        Uses::inputs([0, 1].into_iter().chain((2..4).filter(|&k| needs[5 - k])))
    }

    fn linearity(&self) -> Linearity {
        Linearity::Multilinear
    }

    fn batch(&self, x: &[Batched], lanes: usize) -> Option<Result<Tensor>> {
        let [rows, columns, values, dense] = x else { unreachable!("a sparse product has four inputs") };
        if rows.mapped || columns.mapped || values.mapped || dense.value.rank() != 3 {
            return Some(Batched::bind_all(*self, x, lanes));
        }
        // One matrix: the columns of all lanes beside each other.
        let (n, k) = (dense.value.shape()[1], dense.value.shape()[2]);
        let turned = |t: &Tensor| t.permuted([1, 0, 2].as_slice().into());
        let beside = turned(&dense.value).reshape_to(&[n, lanes * k].into());
        let y = bind(*self, &[&rows.value, &columns.value, &values.value, &beside]);
        Some(y.map(|y| turned(&y.reshape_to(&[self.rows, lanes, k].into()))))
    }

    fn samples() -> Vec<Sample> {
        let of = |front: &[usize], [rows, columns]: [usize; 2], places: usize, k: usize| {
            let with = |last: &[usize]| [front, last].concat();
            // In either order, so that exchanging rows and columns is another product and no error.
            let list = Draw::Index(rows.min(columns), with(&[places]).into());
            let floats =
                [Draw::new(Domain::any, &with(&[places])), Draw::new(Domain::any, &with(&[columns, k]))];
            Sample::new(SparseDot { rows }, [[list.clone(), list], floats].concat())
        };
        vec![
            of(&[], [3, 4], 6, 2),
            of(&[], [5, 2], 3, 1),
            of(&[], [1, 1], 1, 3),
            of(&[2], [2, 3], 4, 2),
            of(&[], [3, 2], 0, 2),
            of(&[], [2, 3], 4, 0),
        ]
    }
}

/// `y[e] = a[rows[e], :] · b[columns[e], :]`: the product `a bᵀ` at the places of a sparse matrix. All inputs may have the same axes in front.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SampledDot;

impl Primitive for SampledDot {
    const NAME: &'static str = "sampled_matmul";
    const ARITY: Option<usize> = Some(4);
    const CONTRACTION: bool = true;

    fn infer(&self, x: &[Arg]) -> Result<Aval> {
        let (front, _) = check_places(x)?;
        match (matrix(x[2].shape, front), matrix(x[3].shape, front)) {
            (Some([_, k]), Some([_, l])) if k == l => {
                Ok(Aval { dtype: check_floats(x[2], x[3])?, shape: x[0].shape.clone() })
            }
            _ => Err(err!(
                Shape,
                "takes two matrices whose rows have one length, got {:?} and {:?}",
                x[2].shape,
                x[3].shape
            )),
        }
    }

    fn eval(&self, x: &[Value], out: &mut Output) -> Result<()> {
        let (&[.., m, k], &[.., n, _]) = (x[2].shape, x[3].shape) else { unreachable!("two matrices") };
        let each = x[0].shape.last().copied().unwrap_or(0);
        with_float!(x[2].dtype, T => in_lanes::<T>(out, each, |lane, out| {
            let [to, from] = places(x, lane, m, n)?;
            let (a, b) = (wide_lane::<T>(&x[2], 2, lane)?, wide_lane::<T>(&x[3], 2, lane)?);
            sparse::sampled(&to, &from, &a, &b, k, out);
            Ok(())
        }))
    }

    fn flops(&self, x: &[&[usize]], y: &[usize]) -> u64 {
        (2 * x[2].last().copied().unwrap_or(0) * y.iter().product::<usize>()) as u64
    }

    /// The sparse matrix of values `g` times `b`, and its transpose times `a`.
    fn pullback(&self, at: &At, g: &Tensor) -> Cotangents {
        let (rows, columns) = (at.x(0), at.x(1));
        let times = |to: &Tensor, from: &Tensor, k: usize, x: &Tensor| {
            let rows = at.shape(k)[at.shape(k).len() - 2];
            or_panic(bind(SparseDot { rows }, &[to, from, g, x]))
        };
        smallvec![
            None,
            None,
            at.needs(2).then(|| times(rows, columns, 2, at.x(3))),
            at.needs(3).then(|| times(columns, rows, 3, at.x(2))),
        ]
    }

    fn uses(&self, needs: &[bool]) -> Uses {
        Uses::inputs([0, 1].into_iter().chain((2..4).filter(|&k| needs[5 - k])))
    }

    fn linearity(&self) -> Linearity {
        Linearity::Multilinear
    }

    fn batch(&self, x: &[Batched], lanes: usize) -> Option<Result<Tensor>> {
        Some(Batched::bind_all(*self, x, lanes))
    }

    fn samples() -> Vec<Sample> {
        let of = |front: &[usize], [rows, columns]: [usize; 2], places: usize, k: usize| {
            let with = |last: &[usize]| [front, last].concat();
            let list = Draw::Index(rows.min(columns), with(&[places]).into());
            let floats =
                [Draw::new(Domain::any, &with(&[rows, k])), Draw::new(Domain::any, &with(&[columns, k]))];
            Sample::new(SampledDot, [[list.clone(), list], floats].concat())
        };
        vec![
            of(&[], [3, 4], 6, 2),
            of(&[], [5, 2], 3, 1),
            of(&[2], [2, 3], 4, 2),
            of(&[], [3, 2], 0, 2),
            of(&[], [2, 3], 9, 17),
        ]
    }
}
