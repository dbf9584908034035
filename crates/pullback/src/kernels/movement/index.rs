//! Reading and adding at places named by integer arrays.
//!
//! A negative index counts from the end. Every index is checked before anything is written.

use super::super::parallel;
use super::super::strided::{Axes, row_major};
use super::super::view::View;
use super::Target;
use smallvec::SmallVec;

/// Elements a thread should have before another one is worth waking.
pub(super) const GRAIN: usize = 1 << 15;

/// An index that is outside its axis: where it stands in the index array (row-major), and what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OutOfRange {
    pub position: usize,
    pub value: i64,
}

/// What can be added up; integers wrap.
pub(crate) trait Plus: Copy + Send + Sync {
    fn plus(self, other: Self) -> Self;
}

macro_rules! plus {
    ($($T:ty)*, |$a:ident, $b:ident| $sum:expr) => {$(
        impl Plus for $T {
            #[inline(always)]
            fn plus(self, $b: $T) -> $T {
                let $a = self;
                $sum
            }
        }
    )*};
}
plus!(f32 f64 half::f16 half::bf16 num_complex::Complex<f32> num_complex::Complex<f64>, |a, b| a + b);
plus!(u8 i32 i64, |a, b| a.wrapping_add(b));

/// The place of a checked index in an axis of length `n`.
#[inline(always)]
pub(in crate::kernels) fn place(i: i64, n: usize) -> isize {
    (if i < 0 { i + n as i64 } else { i }) as isize
}

/// An error if an index is outside an axis of length `n`.
pub(in crate::kernels) fn check(index: View<i64>, n: usize) -> Result<(), OutOfRange> {
    let n = n as i64;
    let bad = |&i: &i64| i < -n || i >= n;
    if let Some(slice) = index.as_slice() {
        return match slice.iter().position(bad) {
            Some(position) => Err(OutOfRange { position, value: slice[position] }),
            None => Ok(()),
        };
    }
    let mut first = Ok(());
    Axes::of(index.shape, index.strides).walk(0..index.len(), |position, [at]| {
        let value = index.data[(index.offset as isize + at) as usize];
        if first.is_ok() && bad(&value) {
            first = Err(OutOfRange { position, value });
        }
    });
    first
}

/// `out[i, .., j, ..] = x[i, .., index[i, .., j, ..], ..]`: picks along `axis`, one index for each output.
///
/// `out` has the shape of `index`, which is no longer than `x` on the other axes.
pub(crate) fn gather<T: Copy + Send + Sync>(
    x: View<T>,
    axis: usize,
    index: View<i64>,
    out: &mut [T],
) -> Result<(), OutOfRange> {
    assert_eq!(index.len(), out.len(), "gather: the output has the shape of the index");
    assert!(
        x.shape.len() == index.shape.len()
            && (0..x.shape.len()).all(|k| k == axis || index.shape[k] <= x.shape[k]),
        "gather: an index array lies inside the array it picks from"
    );
    check(index, x.shape[axis])?;
    let (n, step) = (x.shape[axis], x.strides[axis]);
    let mut axes = Axes::new(
        (0..x.shape.len())
            .map(|k| (index.shape[k], [index.strides[k], if k == axis { 0 } else { x.strides[k] }])),
    );
    let inner = axes.pop_inner();
    if out.is_empty() {
        return Ok(());
    }
    let out = parallel::Disjoint::new(out);
    // A part of a row, from element `first` on.
    let pick = |at: [isize; 2], first: usize, row: &mut [T]| {
        for (j, out) in (first as isize..).zip(row) {
            let i = index.offset as isize + at[0] + j * inner.strides[0];
            let base = x.offset as isize + at[1] + j * inner.strides[1];
            // SAFETY: inside the index view; and the checked index is inside the axis of `x`.
            *out = unsafe {
                let i = *index.data.get_unchecked(i as usize);
                *x.data.get_unchecked((base + place(i, n) * step) as usize)
            };
        }
    };
    if axes.0.is_empty() {
        parallel::split(inner.len, GRAIN, 1, |part| {
            // SAFETY: parts are disjoint.
            pick([0; 2], part.start, unsafe { out.part(part.clone()) });
        });
        return Ok(());
    }
    parallel::split(axes.len(), GRAIN.div_ceil(inner.len), 1, |part| {
        // SAFETY: parts are disjoint.
        let out = unsafe { out.part(part.start * inner.len..part.end * inner.len) };
        let mut rows = out.chunks_exact_mut(inner.len);
        axes.walk(part, |_, at| pick(at, 0, rows.next().expect("one chunk for each row")));
    });
    Ok(())
}

/// `out[i, .., index[i, .., j, ..], ..] += src[i, .., j, ..]`: the transpose of [`gather`].
///
/// Contributions to one element are added in row-major order of `src`, whatever the number of threads; each of them as `widen`
/// makes it, for sums in a wider type.
pub(crate) fn scatter_add<A: Plus, T: Copy + Send + Sync>(
    out: &mut [A],
    shape: &[usize],
    axis: usize,
    index: View<i64>,
    src: View<T>,
    widen: impl Fn(T) -> A + Copy + Sync,
) -> Result<(), OutOfRange> {
    assert_eq!(out.len(), shape.iter().product::<usize>(), "scatter_add: the output is contiguous");
    assert_eq!(index.shape, src.shape, "scatter_add: one index for each element");
    assert!(
        shape.len() == index.shape.len() && (0..shape.len()).all(|k| k == axis || index.shape[k] <= shape[k]),
        "scatter_add: the source lies inside the array it adds to"
    );
    check(index, shape[axis])?;
    let strides = row_major(shape);
    let (n, step) = (shape[axis], strides[axis]);
    let walk = |k: usize, out_stride| (index.shape[k], [index.strides[k], src.strides[k], out_stride]);
    // Different indices on the axes before `axis` mean different outputs, so these may run in parallel.
    let outer = Axes::new((0..axis).map(|k| walk(k, strides[k])));
    let mut inner = Axes::new((axis..shape.len()).map(|k| walk(k, if k == axis { 0 } else { strides[k] })));
    let size = inner.len();
    if size == 0 {
        return Ok(());
    }
    let last = inner.pop_inner();
    let target = Target::new(out);
    let add = |mut at: [isize; 3]| {
        for _ in 0..last.len {
            // SAFETY: inside the views; the output is inside by the checked index, and another thread has
            // other outer indices.
            unsafe {
                let i = *index.data.get_unchecked((index.offset as isize + at[0]) as usize);
                let out = target.at(at[2] + place(i, n) * step);
                *out = (*out).plus(widen(*src.data.get_unchecked((src.offset as isize + at[1]) as usize)));
            }
            at.iter_mut().zip(last.strides).for_each(|(at, stride)| *at += stride);
        }
    };
    parallel::split(outer.len(), GRAIN.div_ceil(size), 1, |part| {
        outer.walk(part, |_, base| {
            inner.walk(0..inner.len(), |_, at| add([base[0] + at[0], base[1] + at[1], base[2] + at[2]]));
        });
    });
    Ok(())
}

/// The strides that repeat a 1-d index array over an array of this rank, along `axis`.
fn repeated(rank: usize, axis: usize, index: View<i64>) -> SmallVec<[isize; 6]> {
    (0..rank).map(|k| if k == axis { index.strides[0] } else { 0 }).collect()
}

/// `out[i, .., j, ..] = x[i, .., index[j], ..]`: whole slices of `x` along `axis`, in the order of `index`.
pub(crate) fn index_select<T: Copy + Send + Sync>(
    x: View<T>,
    axis: usize,
    index: View<i64>,
    out: &mut [T],
) -> Result<(), OutOfRange> {
    assert_eq!(index.shape.len(), 1, "index_select: the index is 1-d");
    check(index, x.shape[axis])?;
    let mut shape: SmallVec<[usize; 6]> = x.shape.into();
    shape[axis] = index.shape[0];
    assert_eq!(
        out.len(),
        shape.iter().product::<usize>(),
        "index_select: the output has an axis as long as the index"
    );
    let block: usize = x.shape[axis + 1..].iter().product();
    let inner = Axes::of(&x.shape[axis + 1..], &x.strides[axis + 1..]);
    let contiguous = match inner.0.as_slice() {
        [] => true,
        [a] => a.strides == [1],
        _ => false,
    };
    if !contiguous || block < 4 {
        let strides = repeated(shape.len(), axis, index);
        return gather(x, axis, View { shape: &shape, strides: &strides, ..index }, out);
    }
    let walk = |k: usize| if k == axis { [index.strides[0], 0] } else { [0, x.strides[k]] };
    let axes = Axes::new((0..=axis).map(|k| (shape[k], walk(k))));
    let (n, step) = (x.shape[axis], x.strides[axis]);
    let out = parallel::Disjoint::new(out);
    parallel::split(axes.len(), GRAIN.div_ceil(block), 1, |part| {
        // SAFETY: parts are disjoint.
        let out = unsafe { out.part(part.start * block..part.end * block) };
        let mut rows = out.chunks_exact_mut(block);
        axes.walk(part, |_, at| {
            let i = index.data[(index.offset as isize + at[0]) as usize];
            let from = (x.offset as isize + at[1] + place(i, n) * step) as usize;
            rows.next().expect("one chunk for each index").copy_from_slice(&x.data[from..from + block]);
        });
    });
    Ok(())
}

/// `out[i, .., index[j], ..] += src[i, .., j, ..]`: the transpose of [`index_select`].
///
/// Contributions to one element are added in the order of `index`, whatever the number of threads; each of them as `widen`
/// makes it, for sums in a wider type.
pub(crate) fn index_add<A: Plus, T: Copy + Send + Sync>(
    out: &mut [A],
    shape: &[usize],
    axis: usize,
    index: View<i64>,
    src: View<T>,
    widen: impl Fn(T) -> A + Copy + Sync,
) -> Result<(), OutOfRange> {
    assert_eq!(index.shape.len(), 1, "index_add: the index is 1-d");
    assert_eq!(out.len(), shape.iter().product::<usize>(), "index_add: the output is contiguous");
    assert_eq!(src.shape[axis], index.shape[0], "index_add: one index for each slice");
    check(index, shape[axis])?;
    // Then lengths need not be small enough to be multiplied.
    if out.is_empty() {
        return Ok(());
    }
    let block: usize = shape[axis + 1..].iter().product();
    let inner = Axes::of(&src.shape[axis + 1..], &src.strides[axis + 1..]);
    let contiguous = matches!(inner.0.as_slice(), [a] if a.strides == [1]);
    if !contiguous || axis != 0 {
        let strides = repeated(shape.len(), axis, index);
        let index = View { shape: src.shape, strides: &strides, ..index };
        return scatter_add(out, shape, axis, index, src, widen);
    }
    // Each thread owns some rows of the output and reads every index: cheap beside the additions.
    let n = shape[0];
    let grain = (GRAIN * n).div_ceil((index.len() * block).max(1));
    let out = parallel::Disjoint::new(out);
    parallel::split(n, grain, 1, |rows| {
        // SAFETY: parts are disjoint.
        let part = unsafe { out.part(rows.start * block..rows.end * block) };
        for j in 0..index.shape[0] {
            let i = index.data[(index.offset as isize + j as isize * index.strides[0]) as usize];
            let row = place(i, n) as usize;
            if rows.contains(&row) {
                let from = (src.offset as isize + j as isize * src.strides[0]) as usize;
                let to = &mut part[(row - rows.start) * block..][..block];
                for (o, &s) in to.iter_mut().zip(&src.data[from..from + block]) {
                    *o = o.plus(widen(s));
                }
            }
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::super::sample::{Dice, Strided, cases, indices, shape};
    use super::*;

    fn replaced(index: &[usize], axis: usize, i: i64, n: usize) -> Vec<usize> {
        let mut index = index.to_vec();
        index[axis] = place(i, n) as usize;
        index
    }

    fn flat(shape: &[usize], index: &[usize]) -> usize {
        index.iter().zip(shape).fold(0, |at, (&i, &n)| at * n + i)
    }

    #[test]
    fn gather_and_scatter_follow_their_formulas() {
        let mut r = Dice(2);
        for case in cases(200) {
            let rank = 1 + case % 4;
            let xs = shape(&mut r, rank, 6);
            let axis = r.roll(rank);
            let mut picked: Vec<usize> = xs.iter().map(|&n| 1 + r.roll(n)).collect();
            picked[axis] = r.roll(9);
            let n = xs[axis];
            let x = Strided::random(&mut r, &xs, |r| r.unit());
            let index = Strided::random(&mut r, &picked, |r| r.roll(2 * n) as i64 - n as i64);
            let src = Strided::random(&mut r, &picked, |r| r.unit());

            let (mut out, mut expected) = (vec![0.0; index.view().len()], Vec::new());
            gather(x.view(), axis, index.view(), &mut out).unwrap();
            indices(&picked, |i| expected.push(x.at(&replaced(i, axis, index.at(i), n))));
            assert_eq!(out, expected);

            let mut sums = vec![0.5; x.view().len()];
            let mut expected = sums.clone();
            scatter_add(&mut sums, &xs, axis, index.view(), src.view(), |x| x).unwrap();
            indices(&picked, |i| expected[flat(&xs, &replaced(i, axis, index.at(i), n))] += src.at(i));
            assert_eq!(sums, expected);
        }
    }

    #[test]
    fn select_and_add_follow_their_formulas() {
        let mut r = Dice(3);
        for case in cases(200) {
            let rank = 1 + case % 3;
            let xs = shape(&mut r, rank, 9);
            let axis = r.roll(rank);
            let n = xs[axis];
            let mut picked = xs.clone();
            picked[axis] = r.roll(12);
            let x = Strided::random(&mut r, &xs, |r| r.unit());
            let index = Strided::random(&mut r, &[picked[axis]], |r| r.roll(2 * n) as i64 - n as i64);
            let src = if case % 2 == 0 {
                Strided::random(&mut r, &picked, |r| r.unit())
            } else {
                Strided::contiguous((0..picked.iter().product()).map(|_| r.unit()).collect(), &picked)
            };

            let (mut out, mut expected) = (vec![0.0; picked.iter().product()], Vec::new());
            index_select(x.view(), axis, index.view(), &mut out).unwrap();
            indices(&picked, |i| expected.push(x.at(&replaced(i, axis, index.at(&[i[axis]]), n))));
            assert_eq!(out, expected);

            let mut sums = vec![0.5; xs.iter().product()];
            let mut expected = sums.clone();
            index_add(&mut sums, &xs, axis, index.view(), src.view(), |x| x).unwrap();
            indices(&picked, |i| {
                expected[flat(&xs, &replaced(i, axis, index.at(&[i[axis]]), n))] += src.at(i);
            });
            assert_eq!(sums, expected);
        }
    }

    #[test]
    fn large_cases_run_in_parallel_with_the_same_sums() {
        let mut r = Dice(4);
        let (rows, block, n) = (3000, 64, 50);
        let index: Vec<i64> = (0..rows).map(|_| r.roll(n) as i64).collect();
        let src: Vec<f32> = (0..rows * block).map(|_| r.unit() as f32).collect();
        let shape = [rows, block];
        let strides = [block as isize, 1];
        let view = View::new(&src, 0, &shape, &strides);
        let indices = [rows];
        let index_view = View::new(&index, 0, &indices, &[1]);
        let mut out = vec![0f32; n * block];
        index_add(&mut out, &[n, block], 0, index_view, view, |x| x).unwrap();
        let mut expected = vec![0f32; n * block];
        for j in 0..rows {
            for c in 0..block {
                expected[index[j] as usize * block + c] += src[j * block + c];
            }
        }
        assert_eq!(out, expected);
        let mut back = vec![0f32; rows * block];
        index_select(View::new(&out, 0, &[n, block], &strides), 0, index_view, &mut back).unwrap();
        assert!((0..rows * block).all(|i| back[i] == out[index[i / block] as usize * block + i % block]));
    }

    #[test]
    fn empty_slices_are_no_work() {
        let empty = View::<f32>::new(&[], 0, &[2, 0], &[0, 1]);
        let index = [1, 0];
        let index = View::new(&index, 0, &[2], &[1]);
        index_add(&mut [], &[3, 0], 0, index, empty, |x| x).unwrap();
        index_select(empty, 0, index, &mut []).unwrap();
        let none = View::new(&[], 0, &[0], &[1]);
        let mut out = [1.0, 2.0];
        index_add(&mut out, &[1, 2], 0, none, View::new(&[], 0, &[0, 2], &[2, 1]), |x| x).unwrap();
        assert_eq!(out, [1.0, 2.0]);
    }

    #[test]
    fn an_index_out_of_range_is_named_and_nothing_is_written() {
        let x = [1.0, 2.0, 3.0];
        let view = View::new(&x, 0, &[3], &[1]);
        let index = [0, -3, 3, -4];
        let mut out = [0.0; 4];
        let error = gather(view, 0, View::new(&index, 0, &[4], &[1]), &mut out).unwrap_err();
        assert_eq!(error, OutOfRange { position: 2, value: 3 });
        let reversed = View::new(&index, 3, &[4], &[-1]);
        let error = index_select(view, 0, reversed, &mut out).unwrap_err();
        assert_eq!(error, OutOfRange { position: 0, value: -4 });
        assert_eq!(out, [0.0; 4]);
    }
}
