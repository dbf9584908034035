//! Discrete Fourier transforms of rows and columns.
//!
//! Short ones are done by the crate `rustfft`, many at a time on all threads. A long one is cut into short ones, of which the threads then
//! have many: as a matrix of `n1` rows and `n2` columns, its columns are transformed, multiplied by powers of a root of unity, and
//! transformed along the rows (Bailey 1990, "FFTs in external or hierarchical memory"). How a transform is cut depends on its length
//! alone, so that the number of threads does not change the bits.

mod plan;
mod real;

pub(crate) use plan::Fourier;
pub(crate) use real::{from_half, half};

use super::movement;
use super::parallel::{self, Disjoint};
use super::scratch::{filled, with_scratch};
use super::strided::row_major;
use super::view::View;
use num_complex::Complex;
use plan::Plan;

/// Elements a thread should transform before another one is worth waking.
const GRAIN: usize = 1 << 12;

/// Columns that are transformed together: as many as lie in two lines of the cache.
const fn block<T>() -> usize {
    128 / size_of::<Complex<T>>()
}

/// `out = scale Σ x[j] exp(∓2πi j k / n)` along each of the axes, one after the other; the exponent is positive for the inverse.
pub(crate) fn transform<T: Fourier>(
    x: View<Complex<T>>,
    axes: &[usize],
    inverse: bool,
    scale: f64,
    out: &mut [Complex<T>],
) {
    if out.is_empty() {
        return;
    }
    let mut source = x.as_slice();
    let mut scale = T::of(scale);
    for &axis in axes.iter().rev() {
        let (n, inner) = (x.shape[axis], x.shape[axis + 1..].iter().product::<usize>());
        let plan = T::plan(n, inverse);
        match source.take().filter(|_| inner == 1) {
            Some(source) => plan.rows(Some(source), out, scale),
            None => {
                // Before the first axis there is nothing in the output yet.
                if axis == *axes.last().expect("this one") {
                    movement::copy(x, out);
                }
                match inner {
                    1 => plan.rows(None, out, scale),
                    _ => columns(&plan, inner, out, scale),
                }
            }
        }
        scale = T::of(1.0);
    }
    if axes.is_empty() {
        movement::copy(x, out);
        out.iter_mut().for_each(|z| *z = scaled(*z, scale));
    }
}

#[inline(always)]
fn scaled<T: Fourier>(z: Complex<T>, scale: T) -> Complex<T> {
    Complex::new(z.re * scale, z.im * scale)
}

/// Transforms arrays of `n` rows and `inner` columns along their columns, in place.
fn columns<T: Fourier>(plan: &Plan<T>, inner: usize, out: &mut [Complex<T>], scale: T) {
    let n = plan.len();
    let Some(scratch) = plan.direct_scratch() else {
        // A long one has the threads for itself.
        let turned = [out.len() / (n * inner), inner, n];
        let mut rows = filled(Complex::new(T::ZERO, T::ZERO), out.len());
        let step = |s: &[usize; 3]| row_major(s);
        let strides = step(&[turned[0], n, inner]);
        movement::copy(View::new(out, 0, &turned, &[strides[0], strides[2], strides[1]]), &mut rows);
        plan.rows(None, &mut rows, scale);
        let strides = step(&turned);
        let shape = [turned[0], n, inner];
        return movement::copy(View::new(&rows, 0, &shape, &[strides[0], strides[2], strides[1]]), out);
    };
    let block = block::<T>();
    let (blocks, arrays) = (inner.div_ceil(block), out.len() / (n * inner));
    let grain = (GRAIN / (n * block)).max(1);
    let out = Disjoint::new(out);
    parallel::split(arrays * blocks, grain, 1, |part| {
        with_scratch(n * block + scratch, 0, |memory: *mut Complex<T>| {
            // SAFETY: as many elements as were asked for, of this thread.
            let memory = unsafe { std::slice::from_raw_parts_mut(memory, n * block + scratch) };
            let (columns, scratch) = memory.split_at_mut(n * block);
            for k in part {
                let (array, first) = (k / blocks * n * inner, k % blocks * block);
                let width = block.min(inner - first);
                let columns = &mut columns[..width * n];
                // SAFETY: each block of columns is read and written by one thread, and lies inside the array.
                unsafe {
                    let corner = out.first().add(array + first);
                    turn(corner, inner, columns.as_mut_ptr(), n, [n, width]);
                    plan.direct(columns, scratch, scale);
                    turn(columns.as_ptr(), n, corner, inner, [width, n]);
                }
            }
        });
    });
}

/// Writes a matrix of this many rows and columns, whose rows lie `from_step` apart, as its transpose, in tiles of a few lines of the cache.
///
/// # Safety
/// Both hold such matrices, which do not overlap.
unsafe fn turn<T: Copy>(
    from: *const T,
    from_step: usize,
    to: *mut T,
    to_step: usize,
    [rows, columns]: [usize; 2],
) {
    const TILE: usize = 8;
    for top in (0..rows).step_by(TILE) {
        for left in (0..columns).step_by(TILE) {
            let (bottom, right) = ((top + TILE).min(rows), (left + TILE).min(columns));
            for column in left..right {
                for row in top..bottom {
                    // SAFETY: inside of both, by the caller's promise.
                    unsafe { *to.add(column * to_step + row) = *from.add(row * from_step + column) };
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By the definition.
    fn slow(x: &[Complex<f64>], inverse: bool) -> Vec<Complex<f64>> {
        let n = x.len();
        let angle = if inverse { 1.0 } else { -1.0 } * std::f64::consts::TAU / n as f64;
        let term = |j: usize, k: usize| x[j] * Complex::from_polar(1.0, angle * (j * k % n) as f64);
        (0..n).map(|k| (0..n).map(|j| term(j, k)).sum()).collect()
    }

    fn numbers(n: usize) -> Vec<Complex<f64>> {
        (0..n).map(|k| Complex::new((k as f64 * 0.7).sin(), (k as f64 * 1.3).cos())).collect()
    }

    fn run(x: &[Complex<f64>], shape: &[usize], axes: &[usize], inverse: bool) -> Vec<Complex<f64>> {
        let mut out = vec![Complex::default(); x.len()];
        transform(View::new(x, 0, shape, &row_major(shape)), axes, inverse, 1.0, &mut out);
        out
    }

    fn close(found: &[Complex<f64>], expected: &[Complex<f64>], what: &str) {
        let worst = found.iter().zip(expected).map(|(a, b)| (a - b).norm()).fold(0.0, f64::max);
        let size = expected.iter().map(|z| z.norm()).fold(1.0, f64::max);
        assert!(worst <= 1e-13 * size, "{what}: off by {worst}");
    }

    #[test]
    fn transforms_of_all_lengths_are_the_definition() {
        for n in (1..40).chain([64, 97, 100, 128]) {
            let x = numbers(n);
            for inverse in [false, true] {
                close(&run(&x, &[n], &[0], inverse), &slow(&x, inverse), &format!("{n}"));
            }
        }
    }

    #[test]
    fn a_transform_that_is_cut_is_one_that_is_not() {
        for n in [1 << 14, 3 << 13, 125 * 144, 1 << 15] {
            let x = numbers(n);
            let found = run(&x, &[n], &[0], false);
            let mut whole = x.clone();
            rustfft::FftPlanner::new().plan_fft_forward(n).process(&mut whole);
            close(&found, &whole, &format!("{n}"));
            // Along the first axis, of which each column is long.
            let pairs: Vec<Complex<f64>> = x.iter().flat_map(|&z| [z, -z]).collect();
            let both = run(&pairs, &[n, 2], &[0], false);
            let first: Vec<Complex<f64>> = both.iter().step_by(2).copied().collect();
            assert_eq!(first, found, "{n}");
        }
    }

    #[test]
    fn axes_are_transformed_one_after_the_other() {
        let (shape, x) = ([3, 5, 37], numbers(3 * 5 * 37));
        let mut expected = x.clone();
        let steps = row_major(&shape);
        for axis in 0..3 {
            let (n, step) = (shape[axis], steps[axis] as usize);
            for first in (0..x.len()).filter(|k| k / step % n == 0) {
                let line: Vec<Complex<f64>> = (0..n).map(|k| expected[first + k * step]).collect();
                slow(&line, false).into_iter().enumerate().for_each(|(k, z)| expected[first + k * step] = z);
            }
        }
        close(&run(&x, &shape, &[0, 1, 2], false), &expected, "all axes");
    }

    #[test]
    fn half_of_a_real_transform_is_that_of_the_whole() {
        for n in (1..20).chain([1 << 15, 3 * 5 * 7 * 211]) {
            let z: Vec<Complex<f64>> = numbers(n).iter().map(|z| Complex::new(z.re, 0.0)).collect();
            let x: Vec<f64> = z.iter().map(|z| z.re).collect();
            let mut out = vec![Complex::default(); n / 2 + 1];
            half(View::new(&x, 0, &[1, n], &[n as isize, 1]), 1.0, &mut out);
            close(&out, &run(&z, &[n], &[0], false)[..n / 2 + 1], &format!("{n}"));

            let mut back = vec![0.0; n];
            from_half(View::new(&out, 0, &[1, n / 2 + 1], &[1, 1]), 1.0 / n as f64, n, &mut back);
            let worst = back.iter().zip(&x).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(worst < 1e-13, "{n}: off by {worst}");
        }
    }

    #[test]
    fn the_number_of_threads_does_not_change_a_bit() {
        let x = numbers(1 << 15);
        let shape = [2, 1 << 14];
        let all = run(&x, &shape, &[0, 1], false);
        let before = parallel::num_threads();
        parallel::set_num_threads(1);
        let one = run(&x, &shape, &[0, 1], false);
        parallel::set_num_threads(before);
        assert_eq!(all, one);
    }
}
