//! Products of small matrices, where setting up gemm and packing for it would take longer than the product.
//!
//! Some rows of a few vectors each are summed up in registers, and nothing is packed. Every element is one chain of multiply-adds, so that
//! neither the vectors nor the way the rows are taken change its bits.

use super::super::isa::with_isa;
use super::{Dims, Fused, Matrix, Target, fused};

/// The multiply-adds of a small product at most: about here gemm, which fetches what it packs, catches up where memory is far.
const MAX: usize = 1 << 20;
/// The longest chain. Sums of longer ones are cut by gemm, for the sake of their rounding errors.
const CHAIN: usize = 512;
/// Rows that are summed up together.
pub(super) const ROWS: usize = 4;

/// Elements of a right-hand side that is transposed here, if it has to be: a copy beforehand takes longer than such a product.
const TRANSPOSED: usize = 256;

/// Whether columns of the right-hand side have to be next to each other.
pub(super) fn is_along(d: Dims) -> bool {
    d.k * d.n > TRANSPOSED
}

/// Whether a product is small.
pub(super) fn is_small(d: Dims) -> bool {
    d.k <= CHAIN && d.work() <= MAX
}

/// # Safety
/// The matrices have the dimensions given, columns of the right-hand side are next to each other if they [have to be](is_along), and nobody
/// else uses that part of the output.
pub(super) unsafe fn product<T: Fused>(
    d: Dims,
    a: Matrix<T>,
    b: Matrix<T>,
    out: Target<T>,
    at: isize,
    row: usize,
) {
    /// Chooses the instructions, and strips of two vectors.
    ///
    /// # Safety
    /// As for [`product`].
    unsafe fn run<T: Fused>(d: Dims, a: Matrix<T>, b: Matrix<T>, out: *mut T, row: usize) {
        with_isa! {
            [T: Fused] [T] (d: Dims, a: Matrix<T>, b: Matrix<T>, out: *mut T, row: usize);
            // SAFETY: the caller's promise.
            Portable => unsafe {
                strips::<{ cfg!(target_arch = "aarch64") }, T>(d, a, b, out, row, 32 / size_of::<T>())
            },
            // SAFETY: the caller's promise.
            V3 => unsafe { strips::<true, T>(d, a, b, out, row, 64 / size_of::<T>()) },
            // SAFETY: the caller's promise.
            V4 if true => unsafe { strips::<true, T>(d, a, b, out, row, 128 / size_of::<T>()) }
        }
    }
    if b.column == 1 {
        // SAFETY: the output is in bounds, and the rest is the caller's promise.
        return unsafe { run(d, a, b, out.at(at), row) };
    }
    let mut transposed = [T::default(); TRANSPOSED];
    for (p, to) in transposed.chunks_exact_mut(d.n).take(d.k).enumerate() {
        // SAFETY: inside the matrix.
        to.iter_mut().enumerate().for_each(|(j, x)| *x = unsafe { b.at(p, j) });
    }
    let b = Matrix { first: transposed.as_ptr(), row: d.n as isize, column: 1 };
    // SAFETY: as above.
    unsafe { run(d, a, b, out.at(at), row) };
}

/// The product, one strip of at most `widest` columns after the other.
///
/// # Safety
/// As for [`product`].
#[inline(always)]
unsafe fn strips<const FMA: bool, T: Fused>(
    d: Dims,
    a: Matrix<T>,
    b: Matrix<T>,
    out: *mut T,
    row: usize,
    widest: usize,
) {
    let (mut first, mut width) = (0, widest);
    while first < d.n {
        while first + width > d.n {
            width /= 2;
        }
        // SAFETY: the columns from `first` on are in bounds.
        unsafe {
            let (b, out) = (b.skip(0, first), out.add(first));
            match width {
                32 => strip::<FMA, 32, T>(d, a, b, out, row),
                16 => strip::<FMA, 16, T>(d, a, b, out, row),
                8 => strip::<FMA, 8, T>(d, a, b, out, row),
                4 => strip::<FMA, 4, T>(d, a, b, out, row),
                2 => strip::<FMA, 2, T>(d, a, b, out, row),
                _ => strip::<FMA, 1, T>(d, a, b, out, row),
            }
        }
        first += width;
    }
}

/// The first `W` columns.
///
/// # Safety
/// As for [`product`]; there are as many columns.
#[inline(always)]
unsafe fn strip<const FMA: bool, const W: usize, T: Fused>(
    d: Dims,
    a: Matrix<T>,
    b: Matrix<T>,
    out: *mut T,
    row: usize,
) {
    let whole = d.m - d.m % ROWS;
    // SAFETY: these rows are in bounds.
    unsafe {
        for i in (0..whole).step_by(ROWS) {
            rows::<FMA, ROWS, W, T>(d.k, a.skip(i, 0), b, out.add(i * row), row);
        }
        for i in whole..d.m {
            rows::<FMA, 1, W, T>(d.k, a.skip(i, 0), b, out.add(i * row), row);
        }
    }
}

/// The first `R` rows of these columns.
///
/// # Safety
/// As for [`strip`]; there are as many rows.
#[inline(always)]
unsafe fn rows<const FMA: bool, const R: usize, const W: usize, T: Fused>(
    k: usize,
    a: Matrix<T>,
    b: Matrix<T>,
    out: *mut T,
    row: usize,
) {
    let mut sums = [[T::default(); W]; R];
    for p in 0..k {
        // SAFETY: row `p` of the right-hand side has `W` elements here.
        let right = unsafe { b.skip(p, 0).first.cast::<[T; W]>().read() };
        for (i, sums) in sums.iter_mut().enumerate() {
            // SAFETY: inside the matrix.
            let left = unsafe { a.at(i, p) };
            for j in 0..W {
                sums[j] = fused::<FMA, T>(left, right[j], sums[j]);
            }
        }
    }
    for (i, sums) in sums.into_iter().enumerate() {
        // SAFETY: row `i` of the output has `W` elements here.
        unsafe { out.add(i * row).cast::<[T; W]>().write(sums) };
    }
}
