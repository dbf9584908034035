//! Decompositions and solvers of the last two axes, by faer; the leading axes are a batch, whose matrices are shared among the threads.
//!
//! Matrices with an element that is not finite give NaN: no iteration is begun that might not end.

mod blocked;
mod exponential;
mod factors;
mod lu;
mod spectral;
mod triangle;

pub(crate) use exponential::exponential;
pub(crate) use factors::{cholesky, qr};
pub(crate) use lu::{cofactor, det, inverse, lu, slogdet, solve};
pub(crate) use spectral::{eigh, eigvalsh, least_squares, pseudoinverse, singular_values, svd};
pub(crate) use triangle::{part, solve_triangular};

use super::movement;
use super::parallel::{self, Disjoint};
use super::scratch::filled;
use super::strided::Axes;
use super::view::View;
use bytemuck::Pod;
use faer::dyn_stack::{MemBuffer, MemStack, StackReq};
use faer::traits::RealField;
use faer::{MatMut, MatRef};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The floats that matrices are decomposed in.
pub(crate) trait Real: RealField + Pod + Send + Sync + Into<f64> {
    const NAN: Self;
    const EPSILON: f64;
    fn from_f64(v: f64) -> Self;
    fn is_finite(self) -> bool;
}

macro_rules! real {
    ($($T:ident)*) => {$(
        impl Real for $T {
            const NAN: $T = $T::NAN;
            const EPSILON: f64 = $T::EPSILON as f64;
            fn from_f64(v: f64) -> $T {
                v as $T
            }
            fn is_finite(self) -> bool {
                $T::is_finite(self)
            }
        }
    )*};
}
real!(f32 f64);

/// The first matrix of the batch that has no result.
#[derive(Debug, PartialEq)]
pub(crate) struct Failed(pub usize);

/// Floating-point operations that a thread should have before another one is worth waking.
const GRAIN: usize = 1 << 16;

/// Calls `f` for each matrix of the batch, with the operands' matrices and its part of the output; `f` says whether there is a result.
/// One call takes so much `work`.
fn each<T: Real, const N: usize>(
    x: [View<T>; N],
    out: &mut [T],
    work: usize,
    f: impl Fn([View<T>; N], &mut [T]) -> bool + Sync,
) -> Result<(), Failed> {
    let batch = Axes::new(
        (0..x[0].shape.len() - 2).map(|k| (x[0].shape[k], std::array::from_fn(|i| x[i].strides[k]))),
    );
    let count = batch.len();
    if count == 0 {
        return Ok(());
    }
    let size = out.len() / count;
    let (out, failed) = (Disjoint::new(out), AtomicUsize::new(usize::MAX));
    parallel::split(count, GRAIN.div_ceil(work.max(1)), 1, |range| {
        batch.walk(range, |i, at: [isize; N]| {
            let matrices = std::array::from_fn(|k| x[k].matrix((x[k].offset as isize + at[k]) as usize));
            // SAFETY: each matrix has its own part of the output.
            let out = unsafe { out.part(i * size..(i + 1) * size) };
            if !f(matrices, out) {
                failed.fetch_min(i, Ordering::Relaxed);
            }
        });
    });
    match failed.into_inner() {
        usize::MAX => Ok(()),
        i => Err(Failed(i)),
    }
}

/// A matrix whose columns lie one after the other.
struct Columns<T> {
    data: Vec<T>,
    rows: usize,
}

impl<T: Real> Columns<T> {
    fn zeros(rows: usize, columns: usize) -> Self {
        Columns { data: filled(T::from_f64(0.0), rows * columns), rows }
    }

    fn identity(rows: usize, columns: usize) -> Self {
        let mut identity = Columns::zeros(rows, columns);
        (0..rows.min(columns)).for_each(|k| *identity.at(k, k) = T::from_f64(1.0));
        identity
    }

    fn of(x: View<T>) -> Self {
        let mut copy = Columns::zeros(x.shape[0], x.shape[1]);
        let (shape, strides) = ([x.shape[1], x.shape[0]], [x.strides[1], x.strides[0]]);
        movement::copy(View::new(x.data, x.offset, &shape, &strides), &mut copy.data);
        copy
    }

    /// The symmetric part, `(x + xᵀ) / 2`, of a square matrix.
    fn symmetric(x: View<T>) -> Self {
        let mut copy = Columns::of(x);
        let (n, half) = (copy.rows, T::from_f64(0.5));
        // In tiles, of which both sides of the diagonal are in cache.
        for (top, left) in (0..n).step_by(TILE).flat_map(|i| (0..=i).step_by(TILE).map(move |j| (i, j))) {
            for j in left..(left + TILE).min(n) {
                for i in top.max(j + 1)..(top + TILE).min(n) {
                    // Halves first: their sum does not overflow.
                    let mean = copy.data[j * n + i] * half + copy.data[i * n + j] * half;
                    (copy.data[j * n + i], copy.data[i * n + j]) = (mean, mean);
                }
            }
        }
        copy
    }

    fn columns(&self) -> usize {
        self.data.len().checked_div(self.rows).unwrap_or(0)
    }

    fn at(&mut self, row: usize, column: usize) -> &mut T {
        &mut self.data[column * self.rows + row]
    }

    fn get(&self, row: usize, column: usize) -> T {
        self.data[column * self.rows + row]
    }

    fn column(&mut self, k: usize) -> &mut [T] {
        &mut self.data[k * self.rows..(k + 1) * self.rows]
    }

    fn is_finite(&self) -> bool {
        self.data.iter().all(|v| v.is_finite())
    }

    fn mat(&self) -> MatRef<'_, T> {
        MatRef::from_column_major_slice(&self.data, self.rows, self.columns())
    }

    fn mat_mut(&mut self) -> MatMut<'_, T> {
        let columns = self.columns();
        MatMut::from_column_major_slice_mut(&mut self.data, self.rows, columns)
    }

    /// Writes the matrix into a row-major one.
    fn write(&self, out: &mut [T]) {
        let shape = [self.rows, self.columns()];
        movement::copy(View::new(&self.data, 0, &shape, &[1, self.rows as isize]), out);
    }
}

/// Calls `f` with the number of a column and some columns from it on, one after the other in memory, on all threads. How many it
/// gets depends on the matrix alone. One column takes so much `work`.
fn by_columns<T: Real>(x: &mut Columns<T>, work: usize, f: impl Fn(usize, &mut [T]) + Sync) {
    const PIECE: usize = 64;
    let (rows, columns) = (x.rows, x.columns());
    let all = Disjoint::new(&mut x.data);
    parallel::split(columns.div_ceil(PIECE), GRAIN.div_ceil(work.max(1) * PIECE), 1, |part| {
        for first in part.map(|k| k * PIECE) {
            let columns = first..(first + PIECE).min(columns);
            // SAFETY: each piece has its own columns.
            f(first, unsafe { all.part(columns.start * rows..columns.end * rows) });
        }
    });
}

/// Rows and columns of a tile.
const TILE: usize = 32;

/// Lets `f` have memory that an algorithm of faer asks for.
fn with_stack<R>(need: StackReq, f: impl FnOnce(&mut MemStack) -> R) -> R {
    f(MemStack::new(&mut MemBuffer::new(need)))
}

/// There is a result, and it is not a number.
fn not_finite<T: Real>(out: &mut [T]) -> bool {
    out.fill(T::NAN);
    true
}
