//! Matrix products over views, with leading batch axes.
//!
//! The large ones are done by the crate `gemm` on one thread, one [panel](PANEL) of columns after the other, and split over panels, rows
//! or the batch here. A split does not change the bits: panels depend on the dimensions alone, and gemm cuts the inner dimension
//! into blocks whose length depends on that dimension alone, except for small results, and no piece is cut so small ([`unit`]).

mod small;
mod vector;

use super::compute::Compute;
use super::in_rows::InRows;
use super::movement::{self, Target};
use super::parallel::{self, Disjoint};
use super::scratch::{filled, with_scratch};
use super::strided::{Axes, row_major};
use super::view::View;
use bytemuck::Pod;
use gemm_common::Parallelism;
use half::{bf16, f16};
use smallvec::SmallVec;
use std::ops::{Add, Mul, Range};

/// Multiply-adds a thread should have before another one is worth waking.
const GRAIN: usize = 1 << 21;

/// A matrix in a buffer: a pointer to its first element, and the steps to the next row and column.
#[derive(Clone, Copy)]
struct Matrix<T> {
    first: *const T,
    row: isize,
    column: isize,
}

// SAFETY: a matrix is only read.
unsafe impl<T: Sync> Sync for Matrix<T> {}

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

impl Dims {
    /// The multiply-adds, or the most that can be counted: repeated numbers have lengths that no memory would hold.
    fn work(self) -> usize {
        self.m.saturating_mul(self.n).saturating_mul(self.k)
    }
}

/// Numbers with a fused multiply-add.
pub(crate) trait Fused: Compute + Pod + Add<Output = Self> + Mul<Output = Self> {
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
pub(super) fn fused<const FMA: bool, T: Fused>(x: T, y: T, z: T) -> T {
    if FMA { x.mul_add(y, z) } else { x * y + z }
}

/// How one piece of a product is computed: its output starts at an offset, with rows so far apart.
type Piece<T> = unsafe fn(Dims, Matrix<T>, Matrix<T>, Target<T>, isize, usize);

/// How a product is computed. Chosen by its dimensions.
struct Method<T> {
    piece: Piece<T>,
    /// Columns of a piece, but for the last one.
    panel: usize,
    /// Whether the columns of the right-hand side have to be next to each other.
    along: bool,
}

/// Bytes of a row of a panel. With so few columns gemm reads a transposed left-hand side as it lies, without packing it first: a
/// gradient of weights then runs at 113 instead of 100 GFlop/s, and no other product is slower.
const PANEL: usize = 512;

/// Columns of the panels that a product is cut into: about the same for each, in whole vectors.
fn panel<T>(columns: usize) -> usize {
    let panels = (columns * size_of::<T>()).div_ceil(PANEL);
    columns.div_ceil(panels).next_multiple_of(64 / size_of::<T>())
}

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

/// The fewest rows of a piece that has so many columns.
///
/// gemm rounds differently for results of up to 64 x 64 or up to 256 elements, and for vectors.
fn unit(columns: usize) -> usize {
    if columns > 64 { 32 } else { 160 }
}

/// A product over the last two axes that is ready to be computed, as a whole or some of its rows.
pub(crate) struct Prepared<'a, T> {
    /// The factors, and whether each matrix of them is copied before it is read.
    a: (View<'a, T>, bool),
    b: (View<'a, T>, bool),
    /// Whether the panels of a matrix of `b` are copies that lie one after the other, each without gaps.
    apart: bool,
    dims: Dims,
    piece: Piece<T>,
    panel: usize,
    batch: Axes<2>,
}

/// Rows or columns that lie a multiple of so many bytes apart fall into the same few places of the cache.
const CONFLICT: usize = 1024;
/// Bytes of a row up to which that matters, where rows are read along.
const SHORT: usize = 512;

/// Whether a copy without gaps is worth making before a matrix is read `times` times. Columns that lie so far apart, `across`, would be
/// packed line by line for every piece, at half the speed of the product or less.
fn is_scattered<T>(x: &View<T>, across: bool, times: usize) -> bool {
    let rank = x.shape.len();
    let (row, column) = (x.strides[rank - 2], x.strides[rank - 1]);
    let far =
        |stride: isize, n: usize| n > 1 && (stride.unsigned_abs() * size_of::<T>()).is_multiple_of(CONFLICT);
    let (rows, columns) = (x.shape[rank - 2], x.shape[rank - 1]);
    let along = column.abs() == 1 && far(row, rows) && columns * size_of::<T>() <= SHORT;
    times >= 8 && (along || (across && row.abs() == 1 && far(column, columns)))
}

/// Lets `f` have a copy of a view, in memory of this thread: as `copy` makes it.
fn copied<T: Pod>(x: View<T>, copy: impl FnOnce(View<T>, &mut [T]), f: impl FnOnce(View<T>)) {
    with_scratch(x.len(), x.len() * size_of::<T>(), |memory: *mut T| {
        // SAFETY: the scratch memory has so many elements, and is ours until the product is done.
        let memory = unsafe { std::slice::from_raw_parts_mut(memory, x.len()) };
        copy(x, memory);
        f(View::new(memory, 0, x.shape, &row_major(x.shape)));
    });
}

/// Rows of a panel that are copied at once.
const ROWS: usize = 256;

/// Copies a matrix panel by panel, so that each is without gaps.
fn copy_panels<T: Copy + Send + Sync>(x: View<T>, panel: usize, out: &mut [T]) {
    let &[k, n] = x.shape else { unreachable!("a matrix") };
    let pieces = k.div_ceil(ROWS);
    let out = Disjoint::new(out);
    parallel::split(n.div_ceil(panel) * pieces, 1, 1, |part| {
        for i in part {
            let (column, row) = (i / pieces * panel, i % pieces * ROWS);
            let (columns, rows) = (panel.min(n - column), ROWS.min(k - row));
            let offset = x.offset as isize + row as isize * x.strides[0] + column as isize * x.strides[1];
            let first = column * k + row * columns;
            // SAFETY: pieces are disjoint parts of the copy.
            let out = unsafe { out.part(first..first + rows * columns) };
            movement::copy(View::new(x.data, offset as usize, &[rows, columns], x.strides), out);
        }
    });
}

/// Prepares the product of views whose shapes fit and are not empty.
fn prepare<T: Pod + Send + Sync>(
    a: View<T>,
    b: View<T>,
    method: impl Fn(Dims) -> Method<T>,
    use_it: impl FnOnce(&Prepared<T>),
) {
    let rank = a.shape.len();
    let dims = Dims { m: a.shape[rank - 2], k: a.shape[rank - 1], n: b.shape[rank - 1] };
    let Method { piece, panel, along } = method(dims);
    let transposed = along && b.strides[rank - 1] != 1;
    let scattered = [is_scattered(&a, false, dims.n), transposed || is_scattered(&b, true, dims.m)];
    // Of many matrices each is copied by the thread that needs it, when it does.
    let many = a.shape[..rank - 2].iter().product::<usize>() > 1;
    let batch = Axes::new((0..rank - 2).map(|i| (a.shape[i], [a.strides[i], b.strides[i]])));
    let with_both = |a: View<T>, b: View<T>| {
        let [a, b] = [(a, scattered[0] && many), (b, scattered[1] && many)];
        use_it(&Prepared { a, b, apart: scattered[1], dims, piece, panel, batch });
    };
    let with_a = |a: View<T>| match scattered[1] && !many {
        true => copied(b.matrix(b.offset), |x, out| copy_panels(x, panel, out), |b| with_both(a, b)),
        false => with_both(a, b),
    };
    match scattered[0] && !many {
        true => copied(a, movement::copy, with_a),
        false => with_a(a),
    }
}

impl<T: Pod + Send + Sync> InRows<T> for Prepared<'_, T> {
    fn rows(&self) -> usize {
        self.batch.len() * self.dims.m
    }

    fn columns(&self) -> usize {
        self.dims.n
    }

    fn depth(&self) -> usize {
        self.dims.k
    }

    fn unit(&self) -> usize {
        if self.batch.len() > 1 { self.dims.m } else { unit(self.panel.min(self.dims.n)) }
    }

    unsafe fn compute(&self, rows: Range<usize>, out: Target<T>) {
        let m = self.dims.m;
        self.batch.walk(rows.start / m..rows.end.div_ceil(m), |i, at| {
            let rows = rows.start.max(i * m) - i * m..rows.end.min((i + 1) * m) - i * m;
            self.factors(at, |factors| {
                for p in 0..self.panels() {
                    // SAFETY: by the caller's promise.
                    unsafe { self.piece(i, factors, rows.clone(), p, out) };
                }
            });
        });
    }

    fn all(&self, out: &mut [T]) {
        let (panels, target) = (self.panels(), Target::new(out));
        let Dims { m, n, .. } = self.dims;
        let (work, threads) = (self.dims.work(), parallel::num_threads());
        if work < 2 * GRAIN || self.batch.len() >= 2 * threads {
            return parallel::split(self.batch.len(), GRAIN.div_ceil(work), 1, |part| {
                // SAFETY: each matrix of the batch has its own part of the output.
                unsafe { self.compute(part.start * m..part.end * m, target) };
            });
        }
        // Every piece packs its panel again, so there are two for each thread and not many.
        let rows = (2 * threads).div_ceil(panels).min(m / unit(self.panel.min(n))).max(1);
        let grain = GRAIN.div_ceil(work / (panels * rows)).max(1);
        let part = |k: usize| m * k / rows..m * (k + 1) / rows;
        self.batch.walk(0..self.batch.len(), |i, at| {
            self.factors(at, |factors| {
                parallel::split(panels * rows, grain, 1, |pieces| {
                    // SAFETY: pieces are disjoint parts of the output.
                    pieces.for_each(|p| unsafe {
                        self.piece(i, factors, part(p / panels), p % panels, target)
                    });
                });
            });
        });
    }
}

impl<T: Pod + Send + Sync> Prepared<'_, T> {
    fn panels(&self) -> usize {
        self.dims.n.div_ceil(self.panel)
    }

    /// Lets `f` have the two matrices that start at these offsets.
    fn factors(&self, at: [isize; 2], f: impl FnOnce([Matrix<T>; 2])) {
        let matrix = |x: View<'_, T>| Matrix {
            first: &raw const x.data[x.offset],
            row: x.strides[0],
            column: x.strides[1],
        };
        let [(a, copy_a), (b, copy_b)] = [self.a, self.b];
        let [a, b] = [(a, at[0]), (b, at[1])].map(|(x, at)| x.matrix((x.offset as isize + at) as usize));
        let with_a = |a: View<'_, T>| match copy_b {
            true => copied(b, |x, out| copy_panels(x, self.panel, out), |b| f([matrix(a), matrix(b)])),
            false => f([matrix(a), matrix(b)]),
        };
        match copy_a {
            true => copied(a, movement::copy, with_a),
            false => with_a(a),
        }
    }

    /// Computes some rows of a panel of one of the products, of these matrices.
    ///
    /// # Safety
    /// The target has all elements of the product, and nobody else uses those of this piece.
    unsafe fn piece(
        &self,
        i: usize,
        [a, b]: [Matrix<T>; 2],
        rows: Range<usize>,
        panel: usize,
        out: Target<T>,
    ) {
        let Dims { m, n, k } = self.dims;
        let columns = panel * self.panel..((panel + 1) * self.panel).min(n);
        let first = i * m * n + rows.start * n + columns.start;
        // SAFETY: both matrices are in bounds; the rest is the caller's promise.
        unsafe {
            let b = match self.apart {
                true => {
                    Matrix { first: b.first.add(columns.start * k), row: columns.len() as isize, column: 1 }
                }
                false => b.skip(0, columns.start),
            };
            let a = a.skip(rows.start, 0);
            (self.piece)(Dims { m: rows.len(), n: columns.len(), k }, a, b, out, first as isize, n);
        }
    }
}

/// By gemm. The output starts at `at` and its rows are `row` apart.
///
/// # Safety
/// The matrices have the dimensions given, and nobody else uses that part of the output.
unsafe fn by_gemm<T: Native>(d: Dims, a: Matrix<T>, b: Matrix<T>, out: Target<T>, at: isize, row: usize) {
    // Gemm likes columns that are contiguous; ours are rows, so that it computes the transposed product.
    let (mut a, mut b) = (a, b);
    if b.row < 0 {
        // It does not take its first operand's columns backwards: the terms are added from the other end.
        let last = d.k as isize - 1;
        a = Matrix { first: a.first.wrapping_offset(last * a.column), column: -a.column, ..a };
        b = Matrix { first: b.first.wrapping_offset(last * b.row), row: -b.row, ..b };
    }
    // SAFETY: the caller's promise; `read_dst` is false, so the output is only written.
    unsafe {
        T::gemm()(
            d.n,
            d.m,
            d.k,
            out.at(at),
            row as isize,
            1,
            false,
            b.first,
            b.row,
            b.column,
            a.first,
            a.row,
            a.column,
            T::default(),
            T::ONE,
            false,
            false,
            false,
            Parallelism::None,
        );
    }
}

/// `dst = lhs rhs`: the dimensions, then of `dst` the pointer, the strides of columns and rows, whether it is read; of `lhs` and `rhs` the pointer
/// and the strides of columns and rows; the factors of `dst` and of the product; what is conjugated; the threads.
type Gemm<T> = unsafe fn(
    usize,
    usize,
    usize,
    *mut T,
    isize,
    isize,
    bool,
    *const T,
    isize,
    isize,
    *const T,
    isize,
    isize,
    T,
    T,
    bool,
    bool,
    bool,
    Parallelism,
);

/// The floats that gemm computes with. Its parts are used directly, because the crate that joins them brings complex products too, which take longer to
/// compile than these.
pub(crate) trait Native: Fused {
    fn gemm() -> Gemm<Self>;
}
impl Native for f32 {
    fn gemm() -> Gemm<f32> {
        gemm_f32::gemm::f32::get_gemm_fn()
    }
}
impl Native for f64 {
    fn gemm() -> Gemm<f64> {
        gemm_f64::gemm::f64::get_gemm_fn()
    }
}

/// Prepares a product like [`matmul`], of operands that are not empty.
pub(crate) fn prepared<T: Native>(a: View<T>, b: View<T>, use_it: impl FnOnce(&Prepared<T>)) {
    let method = |d: Dims| {
        if d.m == 1 || d.n == 1 {
            Method { piece: vector::product::<T>, panel: d.n.min(vector::COLUMNS), along: false }
        } else if small::is_small(d) {
            Method { piece: small::product::<T>, panel: d.n, along: small::is_along(d) }
        } else {
            Method { piece: by_gemm::<T>, panel: panel::<T>(d.n), along: false }
        }
    };
    prepare(a, b, method, use_it);
}

macro_rules! floats {
    ($($T:ty)*) => {$(
        impl Product for $T {
            fn product(a: View<$T>, b: View<$T>, out: &mut [$T]) {
                prepared(a, b, |p| p.all(out));
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
                prepare(a, b, |d| Method { piece: plain, panel: d.n, along: false }, |p| p.all(out));
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
                let mut wide = filled(0f32, out.len());
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
        let mut packed;
        let (source, offset, strides) = if high - low < 2 * x.len() {
            (&x.data[low..=high], x.offset - low, x.strides.into())
        } else {
            packed = filled(T::default(), x.len());
            movement::copy(x, &mut packed);
            (packed.as_slice(), 0, row_major(x.shape))
        };
        let mut data = filled(W::default(), source.len());
        T::widen_all(source, &mut data);
        Widened { data, offset, shape: x.shape, strides }
    }

    fn view(&self) -> View<'_, W> {
        View::new(&self.data, self.offset, self.shape, &self.strides)
    }
}

#[cfg(test)]
mod tests;
