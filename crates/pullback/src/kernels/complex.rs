//! Complex numbers: their arithmetic, and the product of complex matrices as one of real ones.
//!
//! Plain loops: there are no instances for the sets of instructions, so that real tensors pay for complex ones with no build time.

use super::matmul::{self, Product};
use super::movement;
use super::scratch::filled;
use super::strided::row_major;
use super::view::View;
use bytemuck::Pod;
use num_complex::Complex;
use std::ops::{Add, Mul, Neg, Sub};

/// The type of the parts of a complex number.
pub(crate) trait Part:
    Product + Pod + PartialEq + Neg<Output = Self> + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self>
{
    const ZERO: Self;
    fn double(z: Complex<Self>) -> Complex<f64>;
    fn rounded(z: Complex<f64>) -> Complex<Self>;
}

impl Part for f32 {
    const ZERO: f32 = 0.0;
    fn double(z: Complex<f32>) -> Complex<f64> {
        Complex::new(z.re.into(), z.im.into())
    }
    fn rounded(z: Complex<f64>) -> Complex<f32> {
        Complex::new(z.re as f32, z.im as f32)
    }
}

impl Part for f64 {
    const ZERO: f64 = 0.0;
    fn double(z: Complex<f64>) -> Complex<f64> {
        z
    }
    fn rounded(z: Complex<f64>) -> Complex<f64> {
        z
    }
}

/// `a / b` by Smith's method, which divides by the larger part first: the textbook formula squares both, and overflows for 1e200.
pub(crate) fn quotient(a: Complex<f64>, b: Complex<f64>) -> Complex<f64> {
    if b.re.abs() >= b.im.abs() {
        // Division by a real zero gives infinities and NaN, as division of real numbers does.
        if b.re == 0.0 && b.im == 0.0 {
            return Complex::new(a.re / b.re, a.im / b.re);
        }
        let ratio = b.im / b.re;
        let scale = b.re + b.im * ratio;
        Complex::new((a.re + a.im * ratio) / scale, (a.im - a.re * ratio) / scale)
    } else {
        let ratio = b.re / b.im;
        let scale = b.im + b.re * ratio;
        Complex::new((a.re * ratio + a.im) / scale, (a.im * ratio - a.re) / scale)
    }
}

/// `out = a b` over the last two axes; the leading axes are a batch, of the same lengths in both.
///
/// The real and imaginary parts of a row of `a` are a row of twice as many real numbers. Times a matrix in which `x + iy` stands as
/// `[[x, y], [-y, x]]` it is the row of the result, in the same form: one real product instead of four, and nothing to take apart or to
/// put together.
pub(crate) fn matmul<T: Part>(a: View<Complex<T>>, b: View<Complex<T>>, out: &mut [Complex<T>]) {
    let rank = a.shape.len();
    let whole = |x: View<Complex<T>>| {
        let mut copy = filled(Complex::new(T::ZERO, T::ZERO), x.len());
        movement::copy(x, &mut copy);
        copy
    };
    let (rows, columns) = (whole(a), expanded(&whole(b), b.shape[rank - 1]));
    let doubled = |shape: &[usize], axes: &[usize]| {
        let mut shape = shape.to_vec();
        axes.iter().for_each(|&k| shape[k] *= 2);
        shape
    };
    let (left, right) = (doubled(a.shape, &[rank - 1]), doubled(b.shape, &[rank - 2, rank - 1]));
    matmul::matmul::<T>(
        View::new(bytemuck::cast_slice(&rows), 0, &left, &row_major(&left)),
        View::new(&columns, 0, &right, &row_major(&right)),
        bytemuck::cast_slice_mut(out),
    );
}

/// Each number `x + iy` of a matrix of `n` columns as `[[x, y], [-y, x]]`.
fn expanded<T: Part>(x: &[Complex<T>], n: usize) -> Vec<T> {
    let mut out = filled(T::ZERO, 4 * x.len());
    for (row, out) in x.chunks(n.max(1)).zip(out.chunks_mut(4 * n.max(1))) {
        let (upper, lower) = out.split_at_mut(2 * row.len());
        for ((z, upper), lower) in row.iter().zip(upper.chunks_mut(2)).zip(lower.chunks_mut(2)) {
            upper.copy_from_slice(&[z.re, z.im]);
            lower.copy_from_slice(&[-z.im, z.re]);
        }
    }
    out
}
