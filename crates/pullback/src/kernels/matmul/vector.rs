//! Matrix times vector, vector times matrix, and the scalar product.

use super::super::scratch::refill;
use super::super::vectorised::vectorised;
use super::{Dims, Fused, Matrix, Target, fused};

/// Terms after which a partial sum is put away, so that rounding errors do not pile up.
const BLOCK: usize = 4096;
/// Independent sums of a scalar product: enough to hide the latency of an addition.
const LANES: usize = 32;
/// Outputs accumulated together where the matrix is stored by columns.
pub(super) const COLUMNS: usize = 512;

/// # Safety
/// One of `m` and `n` is 1, the matrices have the dimensions given, and nobody else uses that part of the
/// output.
pub(super) unsafe fn product<T: Fused>(
    d: Dims,
    a: Matrix<T>,
    b: Matrix<T>,
    out: Target<T>,
    at: isize,
    row: usize,
) {
    // x B = Bᵀ x. A piece of a row of outputs may be one element long: `row` tells what the whole is.
    let (size, matrix, vector) = if row == 1 { (d.m, a, b) } else { (d.n, b.transposed(), a.transposed()) };
    // SAFETY: the outputs of a vector are next to each other; in bounds by the caller's promise.
    let out = unsafe { std::slice::from_raw_parts_mut(out.at(at), size) };
    let mut packed = Vec::new();
    // SAFETY: the vector has `k` elements, a step of `row` apart.
    let vector = unsafe {
        if vector.row == 1 {
            std::slice::from_raw_parts(vector.first, d.k)
        } else {
            refill(&mut packed, (0..d.k).map(|p| vector.at(p, 0)));
            packed.as_slice()
        }
    };
    if matrix.column == 1 || size == 1 {
        let mut scratch = Vec::new();
        for (i, o) in out.iter_mut().enumerate() {
            // SAFETY: row `i` has `k` elements.
            let line = unsafe {
                if matrix.column == 1 {
                    std::slice::from_raw_parts(matrix.skip(i, 0).first, d.k)
                } else {
                    refill(&mut scratch, (0..d.k).map(|p| matrix.at(i, p)));
                    scratch.as_slice()
                }
            };
            *o = dot(line, vector);
        }
    } else {
        for (c, out) in out.chunks_mut(COLUMNS).enumerate() {
            // SAFETY: `skip` stays in the matrix, and `out` has as many elements as there are rows left.
            columns(unsafe { matrix.skip(c * COLUMNS, 0) }, vector, out);
        }
    }
}

/// The sum of the lanes. Apart from the loop, or its shuffles make the compiler use narrow vectors there too.
#[inline(never)]
fn pairwise<T: Fused>(lanes: &[T; LANES]) -> T {
    let mut sums = *lanes;
    let mut width = LANES / 2;
    while width > 0 {
        for l in 0..width {
            sums[l] = sums[l] + sums[l + width];
        }
        width /= 2;
    }
    sums[0]
}

vectorised! {
    /// The scalar product of two vectors of the same length.
    fn dot<T: Fused>(a: &[T], b: &[T]) -> T {
        let mut total = T::default();
        for (a, b) in a.chunks(BLOCK).zip(b.chunks(BLOCK)) {
            let mut sums = [T::default(); LANES];
            let (a, tail_a) = a.as_chunks::<LANES>();
            let (b, tail_b) = b.as_chunks::<LANES>();
            for (a, b) in a.iter().zip(b) {
                for l in 0..LANES {
                    sums[l] = fused::<FMA, T>(a[l], b[l], sums[l]);
                }
            }
            // A full vector again, so that the sums stay in registers.
            let (mut last_a, mut last_b) = ([T::default(); LANES], [T::default(); LANES]);
            last_a[..tail_a.len()].copy_from_slice(tail_a);
            last_b[..tail_b.len()].copy_from_slice(tail_b);
            for l in 0..LANES {
                sums[l] = fused::<FMA, T>(last_a[l], last_b[l], sums[l]);
            }
            total = total + pairwise(&sums);
        }
        total
    }
}

vectorised! {
    /// `out = matrix * vector`, adding columns (four at a time, to load the sums less often); the matrix has a row
    /// for each output.
    fn columns<T: Fused>(matrix: Matrix<T>, vector: &[T], out: &mut [T]) {
        let mut sums = [T::default(); COLUMNS];
        let sums = &mut sums[..out.len()];
        let (fours, tail) = vector.as_chunks::<4>();
        let fours = if matrix.row == 1 { fours } else { &[] };
        for (q, x) in fours.iter().enumerate() {
            // SAFETY: each column has as many elements as there are outputs.
            let column = |c| unsafe { std::slice::from_raw_parts(matrix.skip(0, 4 * q + c).first, sums.len()) };
            let (a, b, c, d) = (column(0), column(1), column(2), column(3));
            for ((((s, &a), &b), &c), &d) in sums.iter_mut().zip(a).zip(b).zip(c).zip(d) {
                let sum = fused::<FMA, T>(x[1], b, fused::<FMA, T>(x[0], a, *s));
                *s = fused::<FMA, T>(x[3], d, fused::<FMA, T>(x[2], c, sum));
            }
        }
        let tail = if matrix.row == 1 { tail } else { vector };
        for (p, &x) in (vector.len() - tail.len()..).zip(tail) {
            for (i, s) in sums.iter_mut().enumerate() {
                // SAFETY: inside the matrix.
                *s = fused::<FMA, T>(x, unsafe { matrix.at(i, p) }, *s);
            }
        }
        out.copy_from_slice(sums);
    }
}
