//! Matrix products over views, with leading batch axes.
//!
//! The large ones are done by the crate `gemm` on one thread, and split over rows, columns or the batch here.
//! A split does not change the bits: gemm cuts the inner dimension into blocks whose length depends on that
//! dimension alone, except for small results, and no piece is cut so small ([`unit`]).

mod small;
mod vector;

use super::compute::Compute;
use super::movement::{self, Target};
use super::parallel;
use super::strided::{Axes, row_major};
use super::view::View;
use half::{bf16, f16};
use smallvec::SmallVec;
use std::ops::{Add, Mul};

/// Multiply-adds a thread should have before another one is worth waking.
const GRAIN: usize = 1 << 21;

/// A matrix in a buffer: a pointer to its first element, and the steps to the next row and column.
#[derive(Clone, Copy)]
struct Matrix<T> {
    first: *const T,
    row: isize,
    column: isize,
}

impl<T> Matrix<T> {
    /// The matrix without its first rows and columns.
    ///
    /// # Safety
    /// The matrix has more rows and columns than that.
    #[inline(always)]
    unsafe fn skip(self, rows: usize, columns: usize) -> Self {
        // SAFETY: the element is in the matrix, by the caller's promise.
        let first = unsafe { self.first.offset(rows as isize * self.row + columns as isize * self.column) };
        Matrix { first, ..self }
    }

    fn transposed(self) -> Self {
        Matrix { row: self.column, column: self.row, ..self }
    }

    /// # Safety
    /// The matrix has this row and column.
    #[inline(always)]
    unsafe fn at(self, row: usize, column: usize) -> T
    where
        T: Copy,
    {
        // SAFETY: the caller's promise.
        unsafe { *self.first.offset(row as isize * self.row + column as isize * self.column) }
    }
}

/// The dimensions of a product of an `m x k` and a `k x n` matrix; none is zero.
#[derive(Clone, Copy)]
struct Dims {
    m: usize,
    n: usize,
    k: usize,
}

/// Numbers with a fused multiply-add.
trait Fused: Compute + Add<Output = Self> + Mul<Output = Self> {
    const ONE: Self;
    fn mul_add(self, a: Self, b: Self) -> Self;
}
impl Fused for f32 {
    const ONE: f32 = 1.0;
    #[inline(always)]
    fn mul_add(self, a: f32, b: f32) -> f32 {
        f32::mul_add(self, a, b)
    }
}
impl Fused for f64 {
    const ONE: f64 = 1.0;
    #[inline(always)]
    fn mul_add(self, a: f64, b: f64) -> f64 {
        f64::mul_add(self, a, b)
    }
}

/// `x y + z`, rounded once where that is one instruction.
#[inline(always)]
fn fused<const FMA: bool, T: Fused>(x: T, y: T, z: T) -> T {
    if FMA { x.mul_add(y, z) } else { x * y + z }
}

/// How one piece of a product is computed. Chosen by the dimensions of the whole product.
type Method<T> = unsafe fn(Dims, Matrix<T>, Matrix<T>, Target<T>, isize, usize);

/// A type that matrices can be multiplied in.
pub(crate) trait Product: Copy + Send + Sync + Default + 'static {
    /// `out = a b` over the last two axes.
    #[doc(hidden)]
    fn product(a: View<Self>, b: View<Self>, out: &mut [Self]);
}

/// `out = a b` over the last two axes; the leading axes are a batch, of the same lengths in both.
pub(crate) fn matmul<T: Product>(a: View<T>, b: View<T>, out: &mut [T]) {
    let rank = a.shape.len();
    assert!(rank >= 2 && b.shape.len() == rank, "matmul: equal ranks of at least 2");
    assert_eq!(a.shape[rank - 1], b.shape[rank - 2], "matmul: the inner dimensions agree");
    assert_eq!(a.shape[..rank - 2], b.shape[..rank - 2], "matmul: the batch axes agree");
    let n: usize = a.shape[..rank - 1].iter().product::<usize>() * b.shape[rank - 1];
    assert_eq!(out.len(), n, "matmul: the output is contiguous");
    if n == 0 {
        return;
    }
    if a.shape[rank - 1] == 0 {
        return out.fill(T::default());
    }
    T::product(a, b, out)
}

/// The fewest rows (or columns) of a piece whose other side has this length.
///
/// gemm rounds differently for results of up to 64 x 64 or up to 256 elements, and for vectors.
fn unit(other: usize) -> usize {
    if other > 64 { 32 } else { 160 }
}

fn batched<T: Copy + Send + Sync>(a: View<T>, b: View<T>, out: &mut [T], method: impl Fn(Dims) -> Method<T>) {
    let rank = a.shape.len();
    let dims = Dims { m: a.shape[rank - 2], k: a.shape[rank - 1], n: b.shape[rank - 1] };
    let Dims { m, n, k } = dims;
    let method = method(dims);
    let batch = Axes::new((0..rank - 2).map(|i| (a.shape[i], [a.strides[i], b.strides[i]])));
    let target = Target::new(out);
    let matrix = |x: View<'_, T>, at: isize| {
        // SAFETY: every index of the view was checked to be in bounds.
        let first = unsafe { x.data.as_ptr().offset(x.offset as isize + at) };
        Matrix { first, row: x.strides[rank - 2], column: x.strides[rank - 1] }
    };
    let work = m * n * k;
    if work < 2 * GRAIN || batch.len() >= 2 * parallel::num_threads() {
        return parallel::split(batch.len(), GRAIN.div_ceil(work), 1, |part| {
            batch.walk(part, |i, at| {
                // SAFETY: both matrices are in bounds, and each batch has its own part of the output.
                unsafe { method(dims, matrix(a, at[0]), matrix(b, at[1]), target, (i * m * n) as isize, n) };
            });
        });
    }
    let by_rows = m >= n;
    let (size, other) = if by_rows { (m, n) } else { (n, m) };
    let unit = unit(other);
    let units = (size / unit).max(1);
    // Every piece packs the other matrix again, so a thread gets two and not many.
    let grain = GRAIN.div_ceil(unit * other * k).max(units / (2 * parallel::num_threads()));
    batch.walk(0..batch.len(), |i, at| {
        parallel::split(units, grain, 1, |part| {
            let (a, b) = (matrix(a, at[0]), matrix(b, at[1]));
            let start = part.start * unit;
            // The last unit takes what is left over.
            let len = if part.end == units { size - start } else { part.len() * unit };
            let first = i * m * n;
            // SAFETY: both matrices are in bounds, and the pieces are disjoint rows or columns.
            unsafe {
                if by_rows {
                    let dims = Dims { m: len, ..dims };
                    method(dims, a.skip(start, 0), b, target, (first + start * n) as isize, n)
                } else {
                    let dims = Dims { n: len, ..dims };
                    method(dims, a, b.skip(0, start), target, (first + start) as isize, n)
                }
            }
        });
    });
}

/// By gemm. The output starts at `at` and its rows are `row` apart.
///
/// # Safety
/// The matrices have the dimensions given, and nobody else uses that part of the output.
unsafe fn by_gemm<T: Fused>(d: Dims, a: Matrix<T>, b: Matrix<T>, out: Target<T>, at: isize, row: usize) {
    // SAFETY: the caller's promise; `read_dst` is false, so the output is only written.
    unsafe {
        gemm::gemm(
            d.m,
            d.n,
            d.k,
            out.at(at),
            1,
            row as isize,
            false,
            a.first,
            a.column,
            a.row,
            b.first,
            b.column,
            b.row,
            T::default(),
            T::ONE,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
}

macro_rules! floats {
    ($($T:ty)*) => {$(
        impl Product for $T {
            fn product(a: View<$T>, b: View<$T>, out: &mut [$T]) {
                batched(a, b, out, |d| {
                    if d.m == 1 || d.n == 1 {
                        vector::product::<$T>
                    } else if d.m.max(d.n).max(d.k) <= small::MAX {
                        small::product::<$T>
                    } else {
                        by_gemm::<$T>
                    }
                });
            }
        }
    )*};
}
floats!(f32 f64);

macro_rules! integers {
    ($($T:ty)*) => {$(
        impl Product for $T {
            fn product(a: View<$T>, b: View<$T>, out: &mut [$T]) {
                /// # Safety
                /// As for `by_gemm`.
                unsafe fn plain(d: Dims, a: Matrix<$T>, b: Matrix<$T>, out: Target<$T>, at: isize, row: usize) {
                    for i in 0..d.m {
                        // SAFETY: the caller's promise.
                        let out = unsafe { std::slice::from_raw_parts_mut(out.at(at + (i * row) as isize), d.n) };
                        out.fill(0);
                        for p in 0..d.k {
                            // SAFETY: the caller's promise.
                            let x = unsafe { a.at(i, p) };
                            for (j, o) in out.iter_mut().enumerate() {
                                // SAFETY: the caller's promise.
                                *o = o.wrapping_add(x.wrapping_mul(unsafe { b.at(p, j) }));
                            }
                        }
                    }
                }
                batched(a, b, out, |_| plain);
            }
        }
    )*};
}
integers!(i32 i64 u8);

macro_rules! halves {
    ($($T:ty)*) => {$(
        impl Product for $T {
            fn product(a: View<$T>, b: View<$T>, out: &mut [$T]) {
                let (a, b) = (Widened::new(a), Widened::new(b));
                let mut wide = vec![0f32; out.len()];
                f32::product(a.view(), b.view(), &mut wide);
                <$T>::narrow_all(&wide, out);
            }
        }
    )*};
}
halves!(f16 bf16);

/// A view in the type it is computed in.
struct Widened<'a, W> {
    data: Vec<W>,
    offset: usize,
    shape: &'a [usize],
    strides: SmallVec<[isize; 6]>,
}

impl<'a, W: Compute> Widened<'a, W> {
    fn new<T: Compute<Wide = W>>(x: View<'a, T>) -> Self {
        let reach = |k: usize| (x.shape[k] as isize - 1) * x.strides[k];
        let low = (0..x.shape.len()).fold(x.offset as isize, |at, k| at + reach(k).min(0)) as usize;
        let high = (0..x.shape.len()).fold(x.offset as isize, |at, k| at + reach(k).max(0)) as usize;
        // Few gaps: all between the first and the last element is converted, and the layout stays.
        let mut packed = Vec::new();
        let (source, offset, strides) = if high - low < 2 * x.len() {
            (&x.data[low..=high], x.offset - low, x.strides.into())
        } else {
            packed.resize(x.len(), T::default());
            movement::copy(x, &mut packed);
            (packed.as_slice(), 0, row_major(x.shape))
        };
        let mut data = vec![W::default(); source.len()];
        T::widen_all(source, &mut data);
        Widened { data, offset, shape: x.shape, strides }
    }

    fn view(&self) -> View<'_, W> {
        View::new(&self.data, self.offset, self.shape, &self.strides)
    }
}

#[cfg(test)]
mod tests;
