//! Transforms of real numbers, of which one half tells the other: `X[n - k] = conj(X[k])`.
//!
//! An even number of them is transformed as half as many complex ones, `z[j] = x[2j] + i x[2j + 1]`. With `m = n / 2`,
//! `E[k] = (Z[k] + conj Z[m - k]) / 2` is the transform of the even elements and `O[k] = (Z[k] - conj Z[m - k]) / 2i` that of the odd ones, and
//! `X[k] = E[k] + w^k O[k]` for `w = exp(-2πi / n)`.

use super::plan::{Fourier, Powers, product};
use crate::kernels::movement;
use crate::kernels::parallel::{self, Disjoint};
use crate::kernels::scratch::filled;
use crate::kernels::view::View;
use num_complex::Complex;
use std::borrow::Cow;

/// Pairs of results a thread should compute before another one is worth waking.
const GRAIN: usize = 1 << 13;

/// The elements in row-major order.
fn packed<'a, T: bytemuck::Pod + Send + Sync>(x: View<'a, T>) -> Cow<'a, [T]> {
    match x.as_slice() {
        Some(slice) => Cow::Borrowed(slice),
        None => {
            let mut copy = filled(T::zeroed(), x.len());
            movement::copy(x, &mut copy);
            Cow::Owned(copy)
        }
    }
}

/// The first `n / 2 + 1` elements of the transform of each row of `n` real numbers, times `scale`.
pub(crate) fn half<T: Fourier>(x: View<T>, scale: f64, out: &mut [Complex<T>]) {
    let n = x.shape[x.shape.len() - 1];
    let rows = packed(x);
    let (m, scale) = (n / 2, T::of(scale));
    if !n.is_multiple_of(2) {
        let mut whole: Vec<Complex<T>> = rows.iter().map(|&v| Complex::new(v, T::ZERO)).collect();
        T::plan(n, false).rows(None, &mut whole, scale);
        for (out, whole) in out.chunks_exact_mut(m + 1).zip(whole.chunks_exact(n)) {
            out.copy_from_slice(&whole[..=m]);
        }
        return;
    }
    let mut packed = filled(Complex::new(T::ZERO, T::ZERO), rows.len() / 2);
    T::plan(m, false).rows(Some(bytemuck::cast_slice(&rows)), &mut packed, scale);
    let powers = Powers::<T>::new(m / 2 + 1, 1, n, false);
    let half = T::of(0.5);
    for (out, z) in out.chunks_exact_mut(m + 1).zip(packed.chunks_exact(m)) {
        (out[0], out[m]) = (real(z[0].re + z[0].im), real(z[0].re - z[0].im));
        let out = Disjoint::new(out);
        parallel::split(m / 2, GRAIN, 1, |part| {
            for k in part.start + 1..part.end + 1 {
                let (a, b) = (z[k], z[m - k].conj());
                let even = Complex::new((a.re + b.re) * half, (a.im + b.im) * half);
                let odd = Complex::new((a.im - b.im) * half, (b.re - a.re) * half);
                let odd = product(powers.at(k), odd);
                // SAFETY: each pair is written by one thread; where its two elements are one, the later write has the same value.
                unsafe {
                    out.part(m - k..m - k + 1)[0] = Complex::new(even.re - odd.re, odd.im - even.im);
                    out.part(k..k + 1)[0] = Complex::new(even.re + odd.re, even.im + odd.im);
                }
            }
        });
    }
}

/// `n` real numbers from the first `n / 2 + 1` elements of their transform, times `n scale`: the inverse of [`half`]. The imaginary parts of the
/// first element, and of the last if `n` is even, belong to no real numbers, and are not read.
pub(crate) fn from_half<T: Fourier>(x: View<Complex<T>>, scale: f64, n: usize, out: &mut [T]) {
    let m = n / 2;
    let rows = packed(x);
    let scale = T::of(scale);
    if !n.is_multiple_of(2) {
        let mut whole = filled(Complex::new(T::ZERO, T::ZERO), out.len());
        for (whole, x) in whole.chunks_exact_mut(n).zip(rows.chunks_exact(m + 1)) {
            whole[0] = real(x[0].re);
            for k in 1..=m {
                (whole[k], whole[n - k]) = (x[k], x[k].conj());
            }
        }
        T::plan(n, true).rows(None, &mut whole, scale);
        return out.iter_mut().zip(&whole).for_each(|(o, z)| *o = z.re);
    }
    let powers = Powers::<T>::new(m / 2 + 1, 1, n, true);
    let z: &mut [Complex<T>] = bytemuck::cast_slice_mut(out);
    for (z, x) in z.chunks_exact_mut(m).zip(rows.chunks_exact(m + 1)) {
        z[0] = Complex::new(x[0].re + x[m].re, x[0].re - x[m].re);
        let z = Disjoint::new(z);
        parallel::split(m / 2, GRAIN, 1, |part| {
            for k in part.start + 1..part.end + 1 {
                let (a, b) = (x[k], x[m - k].conj());
                let even = Complex::new(a.re + b.re, a.im + b.im);
                let odd = product(powers.at(k), Complex::new(a.re - b.re, a.im - b.im));
                // Z[k] = E + iO, and Z[m - k] = conj(E - iO).
                // SAFETY: as above.
                unsafe {
                    z.part(m - k..m - k + 1)[0] = Complex::new(even.re + odd.im, odd.re - even.im);
                    z.part(k..k + 1)[0] = Complex::new(even.re - odd.im, even.im + odd.re);
                }
            }
        });
    }
    T::plan(m, true).rows(None, z, scale);
}

fn real<T: Fourier>(v: T) -> Complex<T> {
    Complex::new(v, T::ZERO)
}
