//! Reductions of slices by the segment that each belongs to.

use super::movement::index::{OutOfRange, check, place};
use super::movement::{self, Target};
use super::parallel;
use super::reduce::Reducer;
use super::scratch::filled;
use super::view::View;

/// Elements a thread should have before another one is worth waking.
const GRAIN: usize = 1 << 15;

/// Reduces the slices `x[.., j, ..]` of each segment, `ids[.., j]` being that of slice `j`: the output is `[.., segments, ..]`. The result of
/// nothing is that of the reduction.
pub(crate) fn extreme<T, R>(
    x: View<T>,
    ids: View<i64>,
    segments: usize,
    out: &mut [R::Out],
) -> Result<(), OutOfRange>
where
    T: Copy + Default + Send + Sync,
    R: Reducer<T, Out = T>,
{
    check(ids, segments)?;
    out.fill(R::finish(R::EMPTY));
    if x.len() == 0 {
        return Ok(());
    }
    let (last, n) = (ids.shape.len() - 1, ids.shape[ids.shape.len() - 1]);
    let inner: usize = x.shape[last + 1..].iter().product();
    let (x, ids) = (Packed::new(x), Packed::new(ids));
    let (x, ids) = (x.elements(), ids.elements());
    let lanes = ids.len() / n;
    let target = Target::new(out);
    // Each task has its own lane, or its own columns of it.
    let columns = if lanes < parallel::num_threads() { inner } else { 1 };
    let width = inner / columns;
    parallel::split(lanes * columns, GRAIN.div_ceil(n * width), 1, |range| {
        for task in range {
            let (lane, column) = (task / columns, task % columns * width);
            for j in 0..n {
                let segment = place(ids[lane * n + j], segments) as usize;
                let row = (lane * n + j) * inner + column;
                let to = (lane * segments + segment) * inner + column;
                for (c, &x) in x[row..row + width].iter().enumerate() {
                    // SAFETY: inside the output by the checked id; the lane and its columns belong to one task.
                    let o = unsafe { &mut *target.at((to + c) as isize) };
                    *o = R::finish(R::merge(R::lift(*o), R::lift(x)));
                }
            }
        }
    });
    Ok(())
}

/// The elements of a view side by side, copied if they are not so already.
enum Packed<'a, T> {
    There(&'a [T]),
    Copied(Vec<T>),
}

impl<'a, T: Copy + Default + Send + Sync> Packed<'a, T> {
    fn new(x: View<'a, T>) -> Self {
        match x.as_slice() {
            Some(slice) => Packed::There(slice),
            None => {
                let mut copy = filled(T::default(), x.len());
                movement::copy(x, &mut copy);
                Packed::Copied(copy)
            }
        }
    }

    fn elements(&self) -> &[T] {
        match self {
            Packed::There(slice) => slice,
            Packed::Copied(vec) => vec,
        }
    }
}
