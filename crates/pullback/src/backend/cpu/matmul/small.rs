//! Products of matrices with at most 16 rows and columns, where setting up gemm would take longer.

use super::super::vectorised::vectorised;
use super::{Dims, Fused, Matrix, Target, fused};

/// The largest dimension of a small product.
pub(super) const MAX: usize = 16;

/// # Safety
/// The matrices have the dimensions given, at most [`MAX`], and nobody else uses that part of the output.
pub(super) unsafe fn product<T: Fused>(
    d: Dims,
    a: Matrix<T>,
    b: Matrix<T>,
    out: Target<T>,
    at: isize,
    row: usize,
) {
    vectorised! {
        fn run<T: Fused>(d: Dims, a: Matrix<T>, b: Matrix<T>, out: *mut T, row: usize) {
            // SAFETY: the promise made to `product`.
            unsafe {
                match d.n {
                    8 if b.column == 1 => direct::<FMA, 8, T>(d, a, b, out, row),
                    16 if b.column == 1 => direct::<FMA, 16, T>(d, a, b, out, row),
                    1..=8 => packed::<FMA, 8, T>(d, a, b, out, row),
                    _ => packed::<FMA, 16, T>(d, a, b, out, row),
                }
            }
        }
    }
    // SAFETY: the output is in bounds, by the caller's promise.
    run(d, a, b, unsafe { out.at(at) }, row);
}

/// One row of the product, from a function that gives the rows of the right-hand side.
///
/// # Safety
/// The left-hand side has this row.
#[inline(always)]
unsafe fn line<const FMA: bool, const W: usize, T: Fused>(
    k: usize,
    i: usize,
    a: Matrix<T>,
    right: impl Fn(usize) -> [T; W],
) -> [T; W] {
    let mut sums = [T::default(); W];
    for p in 0..k {
        // SAFETY: inside the matrix.
        let left = unsafe { a.at(i, p) };
        let right = right(p);
        for j in 0..W {
            sums[j] = fused::<FMA, T>(left, right[j], sums[j]);
        }
    }
    sums
}

/// The product with a right-hand side of `W` contiguous columns.
///
/// # Safety
/// As for [`product`], with `W` columns.
#[inline(always)]
unsafe fn direct<const FMA: bool, const W: usize, T: Fused>(
    d: Dims,
    a: Matrix<T>,
    b: Matrix<T>,
    out: *mut T,
    row: usize,
) {
    for i in 0..d.m {
        // SAFETY: rows of `b` are contiguous, and row `i` of the output has `W` elements.
        unsafe {
            let sums = line::<FMA, W, T>(d.k, i, a, |p| b.skip(p, 0).first.cast::<[T; W]>().read());
            out.add(i * row).cast::<[T; W]>().write(sums);
        }
    }
}

/// The product with the right-hand side packed into rows of `W` elements, the missing ones zero.
///
/// # Safety
/// As for [`product`], with at most `W` columns.
#[inline(always)]
unsafe fn packed<const FMA: bool, const W: usize, T: Fused>(
    d: Dims,
    a: Matrix<T>,
    b: Matrix<T>,
    out: *mut T,
    row: usize,
) {
    let mut packed = [[T::default(); W]; MAX];
    for (p, to) in packed.iter_mut().enumerate().take(d.k) {
        for (j, x) in to.iter_mut().enumerate().take(d.n) {
            // SAFETY: inside the matrix.
            *x = unsafe { b.at(p, j) };
        }
    }
    for i in 0..d.m {
        // SAFETY: row `i` of the output has `n` elements.
        unsafe {
            let sums = line::<FMA, W, T>(d.k, i, a, |p| packed[p]);
            std::slice::from_raw_parts_mut(out.add(i * row), d.n).copy_from_slice(&sums[..d.n]);
        }
    }
}
