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
                if d.n <= 8 { wide::<FMA, 8, T>(d, a, b, out, row) } else { wide::<FMA, 16, T>(d, a, b, out, row) }
            }
        }
    }
    // SAFETY: the output is in bounds, by the caller's promise.
    run(d, a, b, unsafe { out.at(at) }, row);
}

/// The product with the right-hand side packed into rows of `W` elements, the missing ones zero.
///
/// # Safety
/// As for [`product`], with at most `W` columns.
#[inline(always)]
unsafe fn wide<const FMA: bool, const W: usize, T: Fused>(
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
        let mut sums = [T::default(); W];
        for (p, right) in packed.iter().enumerate().take(d.k) {
            // SAFETY: inside the matrix.
            let left = unsafe { a.at(i, p) };
            for j in 0..W {
                sums[j] = fused::<FMA, T>(left, right[j], sums[j]);
            }
        }
        // SAFETY: row `i` of the output has `n` elements.
        unsafe { std::slice::from_raw_parts_mut(out.add(i * row), d.n) }.copy_from_slice(&sums[..d.n]);
    }
}
