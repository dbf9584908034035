//! How transforms of a length are computed: found once, and kept.

use super::{GRAIN, block, scaled, turn};
use crate::kernels::complex::Part;
use crate::kernels::parallel::{self, Disjoint};
use crate::kernels::scratch::with_scratch;
use crate::kernels::vectorised::vectorised;
use num_complex::Complex;
use rustfft::{Fft, FftDirection, FftNum, FftPlanner};
use std::collections::HashMap;
use std::f64::consts::TAU;
use std::sync::{Arc, Mutex, PoisonError};

/// A number that can be transformed.
pub(crate) trait Fourier: FftNum + Part {
    fn of(v: f64) -> Self;
    /// The plan of a length and a direction.
    fn plan(n: usize, inverse: bool) -> Arc<Plan<Self>>;
}

/// Plans that are kept. A program that needs more lengths than these makes some of them again.
const KEPT: usize = 64;

pub(super) type Cache<T> = Mutex<Option<HashMap<(usize, bool), Arc<Plan<T>>>>>;

macro_rules! fourier {
    ($($T:ty)*) => {$(
        impl Fourier for $T {
            fn of(v: f64) -> $T {
                v as $T
            }
            fn plan(n: usize, inverse: bool) -> Arc<Plan<$T>> {
                static CACHE: Cache<$T> = Mutex::new(None);
                cached(&CACHE, n, inverse)
            }
        }
    )*};
}
fourier!(f32 f64);

fn cached<T: Fourier>(cache: &Cache<T>, n: usize, inverse: bool) -> Arc<Plan<T>> {
    // A plan is complete when it is put there, so a panic elsewhere has spoilt nothing.
    let mut kept = cache.lock().unwrap_or_else(PoisonError::into_inner);
    let plans = kept.get_or_insert_default();
    if let Some(plan) = plans.get(&(n, inverse)) {
        return plan.clone();
    }
    if plans.len() >= KEPT {
        plans.clear();
    }
    plans.entry((n, inverse)).or_insert(Arc::new(Plan::new(n, inverse))).clone()
}

/// `exp(∓2πi k / n)`, to the last bit of a double.
fn root(k: usize, n: usize, inverse: bool) -> Complex<f64> {
    let (sin, cos) = (TAU * (k % n) as f64 / n as f64).sin_cos();
    Complex::new(cos, if inverse { sin } else { -sin })
}

/// Powers of a root of unity, `root^(step k)`, as products of two from short tables: a long table would be read from memory.
pub(super) struct Powers<T> {
    /// `root^(step k)` for `k` below [`NEAR`].
    near: Vec<Complex<T>>,
    /// `root^(step NEAR k)`.
    far: Vec<Complex<T>>,
}

/// How many powers are next to each other in a table.
const NEAR: usize = 32;

impl<T: Fourier> Powers<T> {
    /// Those below `count` of `exp(∓2πi step / n)`.
    pub fn new(count: usize, step: usize, n: usize, inverse: bool) -> Powers<T> {
        let power = |k: usize| T::rounded(root(step * k, n, inverse));
        Powers {
            near: (0..NEAR).map(power).collect(),
            far: (0..count.div_ceil(NEAR)).map(|k| power(k * NEAR)).collect(),
        }
    }

    #[inline(always)]
    pub fn at(&self, k: usize) -> Complex<T> {
        product(self.far[k / NEAR], self.near[k % NEAR])
    }

    /// Multiplies element `k` by power `k`.
    fn multiply(&self, x: &mut [Complex<T>]) {
        for (x, &far) in x.chunks_mut(NEAR).zip(&self.far) {
            multiply(x, &self.near, far);
        }
    }
}

#[inline(always)]
pub(super) fn product<T: Fourier>(a: Complex<T>, b: Complex<T>) -> Complex<T> {
    Complex::new(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re)
}

vectorised! {
    /// `x[k] *= near[k] far`.
    fn multiply<T: Fourier>(x: &mut [Complex<T>], near: &[Complex<T>], far: Complex<T>) {
        for (x, &near) in x.iter_mut().zip(near) {
            *x = product(*x, product(near, far));
        }
    }
}

/// How transforms of one length and direction are computed.
pub(crate) enum Plan<T> {
    Direct(Arc<dyn Fft<T>>),
    Cut(Cut<T>),
}

/// A transform of `n1 n2` elements as many of `n1` and of `n2`.
pub(crate) struct Cut<T> {
    first: Arc<dyn Fft<T>>,
    second: Arc<dyn Fft<T>>,
    /// For each column of the matrix, what its transform is multiplied by.
    twiddles: Vec<Powers<T>>,
}

/// Transforms that are shorter are not cut: one thread does them in its own cache.
const LONG: usize = 1 << 14;
/// Parts of a cut are not shorter.
const PART: usize = 64;

impl<T: Fourier> Plan<T> {
    fn new(n: usize, inverse: bool) -> Plan<T> {
        let direction = if inverse { FftDirection::Inverse } else { FftDirection::Forward };
        let mut planner = FftPlanner::new();
        // The factors of a length should be alike. A length without such factors is not cut.
        let factor = (PART..=n.isqrt()).rev().find(|d| n.is_multiple_of(*d)).filter(|_| n >= LONG);
        let Some(n1) = factor else { return Plan::Direct(planner.plan_fft(n, direction)) };
        let n2 = n / n1;
        Plan::Cut(Cut {
            first: planner.plan_fft(n1, direction),
            second: planner.plan_fft(n2, direction),
            twiddles: (0..n2).map(|j| Powers::new(n1, j, n, inverse)).collect(),
        })
    }

    pub fn len(&self) -> usize {
        match self {
            Plan::Direct(fft) => fft.len(),
            Plan::Cut(cut) => cut.first.len() * cut.second.len(),
        }
    }

    /// The elements of scratch memory that [`direct`](Plan::direct) needs, if the transform is not cut.
    pub fn direct_scratch(&self) -> Option<usize> {
        match self {
            Plan::Direct(fft) => Some(fft.get_inplace_scratch_len()),
            Plan::Cut(_) => None,
        }
    }

    /// Transforms rows in place, on this thread. The transform is not cut.
    pub fn direct(&self, rows: &mut [Complex<T>], scratch: &mut [Complex<T>], scale: T) {
        let Plan::Direct(fft) = self else { unreachable!("the caller has asked") };
        fft.process_with_scratch(rows, scratch);
        rescale(rows, scale);
    }

    /// Transforms rows, from elsewhere or in place.
    pub fn rows(&self, from: Option<&[Complex<T>]>, out: &mut [Complex<T>], scale: T) {
        match self {
            Plan::Direct(fft) => direct_rows(&**fft, from, out, scale),
            Plan::Cut(cut) => {
                let n = self.len();
                for (k, row) in out.chunks_exact_mut(n).enumerate() {
                    cut.row(from.map(|x| &x[k * n..(k + 1) * n]), row, scale);
                }
            }
        }
    }
}

fn rescale<T: Fourier>(x: &mut [Complex<T>], scale: T) {
    if scale != T::of(1.0) {
        x.iter_mut().for_each(|z| *z = scaled(*z, scale));
    }
}

fn direct_rows<T: Fourier>(fft: &dyn Fft<T>, from: Option<&[Complex<T>]>, out: &mut [Complex<T>], scale: T) {
    let n = fft.len();
    let rows = out.len() / n;
    let out = Disjoint::new(out);
    parallel::split(rows, (GRAIN / n).max(1), 1, |part| {
        let range = part.start * n..part.end * n;
        // SAFETY: each row is written by one thread.
        let out = unsafe { out.part(range.clone()) };
        let scratch = match from {
            Some(_) => fft.get_immutable_scratch_len(),
            None => fft.get_inplace_scratch_len(),
        };
        with_scratch(scratch, 0, |memory: *mut Complex<T>| {
            // SAFETY: as many elements as were asked for, of this thread.
            let scratch = unsafe { std::slice::from_raw_parts_mut(memory, scratch) };
            match from {
                Some(x) => fft.process_immutable_with_scratch(&x[range], out, scratch),
                None => fft.process_with_scratch(out, scratch),
            }
        });
        rescale(out, scale);
    });
}

impl<T: Fourier> Cut<T> {
    /// Transforms one row, from elsewhere or in place.
    fn row(&self, from: Option<&[Complex<T>]>, out: &mut [Complex<T>], scale: T) {
        let n = out.len();
        with_scratch(n, size_of_val(out), |memory: *mut Complex<T>| {
            // SAFETY: as many elements as were asked for, which only this transform uses.
            let turned = unsafe { std::slice::from_raw_parts_mut(memory, n) };
            self.columns(from.unwrap_or(out), turned);
            self.across(turned, out, scale);
        });
    }

    /// Transforms the columns of the matrix, which become rows.
    fn columns(&self, x: &[Complex<T>], turned: &mut [Complex<T>]) {
        let (n1, n2, block) = (self.first.len(), self.second.len(), block::<T>());
        let turned = Disjoint::new(turned);
        parallel::split(n2.div_ceil(block), 1, 1, |part| {
            let scratch = self.first.get_inplace_scratch_len();
            with_scratch(scratch, 0, |memory: *mut Complex<T>| {
                // SAFETY: as many elements as were asked for, of this thread.
                let scratch = unsafe { std::slice::from_raw_parts_mut(memory, scratch) };
                for k in part {
                    let column = k * block;
                    let width = block.min(n2 - column);
                    // SAFETY: each column is written by one thread.
                    let rows = unsafe { turned.part(column * n1..(column + width) * n1) };
                    // SAFETY: the columns lie inside of the matrix, and the rows hold them.
                    unsafe { turn(x.as_ptr().add(column), n2, rows.as_mut_ptr(), n1, [n1, width]) };
                    self.first.process_with_scratch(rows, scratch);
                    for (row, twiddles) in rows.chunks_exact_mut(n1).zip(&self.twiddles[column..]) {
                        twiddles.multiply(row);
                    }
                }
            });
        });
    }

    /// Transforms along what were the rows, and writes the result in its order.
    fn across(&self, turned: &[Complex<T>], out: &mut [Complex<T>], scale: T) {
        let (n1, n2, block) = (self.first.len(), self.second.len(), block::<T>());
        let out = Disjoint::new(out);
        parallel::split(n1.div_ceil(block), 1, 1, |part| {
            let scratch = self.second.get_inplace_scratch_len();
            with_scratch(n2 * block + scratch, 0, |memory: *mut Complex<T>| {
                // SAFETY: as many elements as were asked for, of this thread.
                let memory = unsafe { std::slice::from_raw_parts_mut(memory, n2 * block + scratch) };
                let (rows, scratch) = memory.split_at_mut(n2 * block);
                for k in part {
                    let first = k * block;
                    let width = block.min(n1 - first);
                    let rows = &mut rows[..width * n2];
                    // SAFETY: the columns lie inside of both matrices, and each is written by one thread.
                    unsafe {
                        turn(turned.as_ptr().add(first), n1, rows.as_mut_ptr(), n2, [n2, width]);
                        self.second.process_with_scratch(rows, scratch);
                        rescale(rows, scale);
                        turn(rows.as_ptr(), n2, out.first().add(first), n1, [width, n2]);
                    }
                }
            });
        });
    }
}
