//! Generic code compiled for the processor that it runs on.

use crate::kernels::isa::with_isa;

/// Runs `f` compiled for the vector instructions that this processor has, as far as the compiler inlines what `f` calls.
///
/// A program for every processor of its kind uses the instructions that all of them have. Loops over [`Dual`](super::Dual) and
/// [`Lanes`](super::Lanes), or over plain numbers, can be several times faster with what most have today. Mark the closure and the
/// functions that it calls `#[inline(always)]`; anything else that the compiler finds too long to inline runs as it was compiled.
/// Results are the same to the last bit.
///
/// ```
/// use pullback::scalar::{Dual, native};
/// let x: Vec<Dual<f64, 8>> = (0..100).map(|k| Dual::variable(k as f64, k % 8)).collect();
/// let sum: Dual<f64, 8> = native(#[inline(always)] || x.iter().map(|&x| x * x).sum());
/// assert_eq!(sum.real(), 328350.0);
/// ```
#[inline(always)]
pub fn native<R>(f: impl FnOnce() -> R) -> R {
    with_isa! {
        [R, F: FnOnce() -> R] [_, _] (f: F) -> R;
        Portable => f(),
        V3 => f(),
        V4 if true => f()
    }
}
