//! Generic code compiled for the processor that it runs on.

use crate::backend::cpu::level::at_level;

/// Work that [`native`] compiles for the processor: a closure, or a type of its own where a closure is too long to be put in line.
///
/// The compiler decides whether it puts a closure in line, and does not with long ones; a method that is marked `#[inline(always)]` it must, and
/// a closure that is marked so.
///
/// ```
/// use pullback::scalar::{Native, native};
/// /// The sum of squared distances.
/// struct Distance<'a>(&'a [f64], &'a [f64]);
/// impl Native for Distance<'_> {
///     type Output = f64;
///     #[inline(always)]
///     fn run(self) -> f64 {
///         self.0.iter().zip(self.1).map(|(a, b)| (a - b) * (a - b)).sum()
///     }
/// }
/// assert_eq!(native(Distance(&[1.0, 2.0], &[4.0, 6.0])), 25.0);
/// ```
pub trait Native {
    /// What the work gives.
    type Output;

    /// Does the work. Mark it `#[inline(always)]`, and what it calls.
    fn run(self) -> Self::Output;
}

impl<R, F: FnOnce() -> R> Native for F {
    type Output = R;

    #[inline(always)]
    fn run(self) -> R {
        self()
    }
}

/// Runs `work` compiled for the vector instructions that this processor has, as far as the compiler puts what it calls in line.
///
/// A program for every processor of its kind uses the instructions that all of them have. Loops over [`Dual`](super::Dual) and
/// [`Lanes`](super::Lanes), or over plain numbers, can be several times faster with what most have today. Mark a closure and the
/// functions that it calls `#[inline(always)]`; what the compiler finds too long to put in line otherwise is run as it was compiled.
/// Results are the same to the last bit.
///
/// ```
/// use pullback::scalar::{Dual, native};
/// let x: Vec<Dual<f64, 8>> = (0..100).map(|k| Dual::variable(k as f64, k % 8)).collect();
/// let sum: Dual<f64, 8> = native(#[inline(always)] || x.iter().map(|&x| x * x).sum());
/// assert_eq!(sum.real(), 328350.0);
/// ```
///
/// Work that is more than a closure is a type of its own, with [`Native`].
#[inline(always)]
pub fn native<W: Native>(work: W) -> W::Output {
    at_level! {
        [W: Native] [_] (work: W) -> W::Output;
        Portable => work.run(),
        V3 => work.run(),
        V4 if true => work.run()
    }
}
