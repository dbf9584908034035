//! Writing whole slices to places named by integers, and what goes with it: places in flattened axes, and repeated places.

use super::super::parallel;
use super::super::strided::Axes;
use super::super::view::View;
use super::index::{GRAIN, OutOfRange, check, place};
use std::collections::HashMap;

/// How a slice that is put somewhere meets what is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PutRule {
    /// It takes the place; of several the last one stays.
    Set,
    Mul,
    Max,
    Min,
}

/// Numbers that can be put together with others.
pub(crate) trait Combine: Copy + Send + Sync + PartialOrd {
    fn times(self, other: Self) -> Self;

    /// The larger one; NaN counts as the largest.
    #[inline(always)]
    fn larger(self, other: Self) -> Self {
        if other > self || other.partial_cmp(&other).is_none() { other } else { self }
    }

    /// The smaller one; NaN counts as the smallest.
    #[inline(always)]
    fn smaller(self, other: Self) -> Self {
        if other < self || other.partial_cmp(&other).is_none() { other } else { self }
    }
}

macro_rules! combine {
    ($($T:ty: $times:expr;)*) => {$(
        impl Combine for $T {
            #[inline(always)]
            fn times(self, other: $T) -> $T {
                let times: fn($T, $T) -> $T = $times;
                times(self, other)
            }
        }
    )*};
}
combine! {
    u8: |a, b| a.wrapping_mul(b);
    i32: |a, b| a.wrapping_mul(b);
    i64: |a, b| a.wrapping_mul(b);
    f32: |a, b| a * b;
    f64: |a, b| a * b;
}

/// Combines a slice with what is there, element by element.
pub(crate) fn combine<T: Combine>(rule: PutRule, to: &mut [T], from: &[T]) {
    let pairs = to.iter_mut().zip(from);
    match rule {
        PutRule::Set => pairs.for_each(|(to, &v)| *to = v),
        PutRule::Mul => pairs.for_each(|(to, &v)| *to = to.times(v)),
        PutRule::Max => pairs.for_each(|(to, &v)| *to = to.larger(v)),
        PutRule::Min => pairs.for_each(|(to, &v)| *to = to.smaller(v)),
    }
}

/// Slice `j` of `src` meets slice `index[j]` of `out` along the axis as `meet` says, in the order of the index, whatever the number of
/// threads. Both arrays are contiguous.
pub(crate) fn index_put<T: Copy + Send + Sync>(
    out: &mut [T],
    shape: &[usize],
    axis: usize,
    index: View<i64>,
    src: &[T],
    meet: impl Fn(&mut [T], &[T]) + Sync,
) -> Result<(), OutOfRange> {
    assert_eq!(index.shape.len(), 1, "index_put: the index is 1-d");
    let outer: usize = shape[..axis].iter().product();
    let (n, block) = (shape[axis], shape[axis + 1..].iter().product::<usize>());
    let m = index.shape[0];
    assert_eq!(out.len(), outer * n * block, "index_put: the output is contiguous");
    assert_eq!(src.len(), outer * m * block, "index_put: one slice for each index");
    check(index, n)?;
    if src.is_empty() {
        return Ok(());
    }
    // A thread owns some rows and reads every index, which is cheap beside the rows if they are long.
    let rows = if block >= 8 { 1 } else { n };
    let grain = (GRAIN * n).div_ceil(m * block * rows).max(1);
    let out = parallel::Disjoint::new(out);
    parallel::split(outer * n / rows, grain, 1, |part| {
        let own = part.start * rows..part.end * rows;
        // SAFETY: parts are disjoint.
        let part = unsafe { out.part(own.start * block..own.end * block) };
        for o in own.start / n..own.end.div_ceil(n) {
            for j in 0..m {
                let i = index.data[(index.offset as isize + j as isize * index.strides[0]) as usize];
                let row = o * n + place(i, n) as usize;
                if own.contains(&row) {
                    let from = &src[(o * m + j) * block..][..block];
                    meet(&mut part[(row - own.start) * block..][..block], from);
                }
            }
        }
    });
    Ok(())
}

/// The places in an array of the given shape, flattened, of one index for each axis. An error says for which axis.
pub(crate) fn flat_index(
    shape: &[usize],
    index: &[View<i64>],
    out: &mut [i64],
) -> Result<(), (usize, OutOfRange)> {
    for (axis, &i) in index.iter().enumerate() {
        check(i, shape[axis]).map_err(|e| (axis, e))?;
    }
    let target = parallel::Disjoint::new(out);
    let total = index[0].len();
    parallel::split(total, GRAIN, 1, |part| {
        // SAFETY: parts are disjoint.
        let out = unsafe { target.part(part.clone()) };
        out.fill(0);
        for (&i, &n) in index.iter().zip(shape) {
            Axes::of(i.shape, i.strides).walk(part.clone(), |position, [at]| {
                let value = i.data[(i.offset as isize + at) as usize];
                let to = &mut out[position - part.start];
                *to = *to * n as i64 + place(value, n) as i64;
            });
        }
    });
    Ok(())
}

/// For each index of a row, the position in the row of the last one before it that names the same place of an axis of length `n`; -1 if
/// there is none.
pub(crate) fn earlier(index: &[i64], row: usize, n: usize, out: &mut [i64]) -> Result<(), OutOfRange> {
    check(View::new(index, 0, &[index.len()], &[1]), n)?;
    // A table of all places, or a map of those that are named, where they are few.
    let mut table = vec![-1; if n / 8 > row { 0 } else { n }];
    let mut map = HashMap::new();
    for (index, out) in index.chunks_exact(row.max(1)).zip(out.chunks_exact_mut(row.max(1))) {
        for ((&i, out), j) in index.iter().zip(out).zip(0..) {
            let place = place(i, n) as usize;
            *out = match table.get_mut(place) {
                Some(last) => std::mem::replace(last, j),
                None => map.insert(place, j).unwrap_or(-1),
            };
        }
        map.clear();
        for &i in index {
            if let Some(last) = table.get_mut(place(i, n) as usize) {
                *last = -1;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(rule: PutRule, axis: usize, index: &[i64], src: &[f64]) -> Vec<f64> {
        let mut out = vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let shape = [index.len()];
        index_put(&mut out, &[2, 3], axis, View::new(index, 0, &shape, &[1]), src, |a, b| {
            combine(rule, a, b)
        })
        .unwrap();
        out
    }

    #[test]
    fn slices_meet_in_the_order_of_the_index() {
        let rows = [1.0, 9.0, -1.0, 7.0, 0.0, 8.0];
        assert_eq!(put(PutRule::Set, 0, &[1, -1], &rows), [1.0, 2.0, 3.0, 7.0, 0.0, 8.0]);
        assert_eq!(put(PutRule::Max, 0, &[0, 0], &rows), [7.0, 9.0, 8.0, 4.0, 5.0, 6.0]);
        assert_eq!(put(PutRule::Min, 0, &[0, 0], &rows), [1.0, 0.0, -1.0, 4.0, 5.0, 6.0]);
        assert_eq!(put(PutRule::Mul, 1, &[2, 0, 2], &rows), [9.0, 2.0, -3.0, 0.0, 5.0, 336.0]);
        let nan = put(PutRule::Max, 1, &[1], &[f64::NAN, 0.0]);
        assert!(nan[1].is_nan() && nan[4] == 5.0);
    }

    #[test]
    fn many_threads_write_what_one_does() {
        let (outer, n, m, block) = (3, 50, 2000, 16);
        let index: Vec<i64> =
            (0..m).map(|j| (j * j % n) as i64 - if j % 2 == 0 { 0 } else { n as i64 }).collect();
        let src: Vec<f32> = (0..outer * m * block).map(|k| (k % 1013) as f32).collect();
        let mut out = vec![0f32; outer * n * block];
        let mut expected = out.clone();
        index_put(&mut out, &[outer, n, block], 1, View::new(&index, 0, &[m], &[1]), &src, |to, from| {
            combine(PutRule::Set, to, from)
        })
        .unwrap();
        for o in 0..outer {
            for j in 0..m {
                let i = place(index[j], n) as usize;
                expected[(o * n + i) * block..][..block]
                    .copy_from_slice(&src[(o * m + j) * block..][..block]);
            }
        }
        assert_eq!(out, expected);
    }

    #[test]
    fn places_of_several_axes_are_flattened_and_checked() {
        let (a, b) = ([0i64, -1, 2], [3i64, 0, -4]);
        let mut out = [0; 3];
        let views = [View::new(&a, 0, &[3], &[1]), View::new(&b, 0, &[3], &[1])];
        flat_index(&[3, 4], &views, &mut out).unwrap();
        assert_eq!(out, [3, 8, 8]);
        let error = flat_index(&[3, 3], &views, &mut out).unwrap_err();
        assert_eq!(error, (1, OutOfRange { position: 0, value: 3 }));
    }

    #[test]
    fn earlier_equals_are_found_row_by_row() {
        let index = [2, 0, -1, 2, 0, 0, 1, 1];
        let mut out = [0; 8];
        earlier(&index, 4, 3, &mut out).unwrap();
        assert_eq!(out, [-1, -1, 0, 2, -1, 0, -1, 2]);
        assert!(earlier(&[3], 1, 3, &mut [0]).is_err());
        // An axis that has no memory: that of an empty tensor.
        let (n, far) = (1 << 50, 1 << 49);
        let mut out = [0; 6];
        earlier(&[7, far, 7, far, far - n as i64, 7], 3, n, &mut out).unwrap();
        assert_eq!(out, [-1, -1, 0, -1, 0, -1]);
        earlier(&[], 0, 0, &mut []).unwrap();
    }
}
