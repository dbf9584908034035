//! Generic code compiled for the processor that it runs on.

/// Runs `f` compiled for the vector instructions that this processor has, as far as the compiler puts what `f` calls in line.
///
/// A program for every processor of its kind uses the instructions that all of them have. Loops over [`Dual`](super::Dual) and
/// [`Lanes`](super::Lanes), or over plain numbers, can be several times faster with what most have today. Mark the functions that `f`
/// calls `#[inline(always)]`; others are run as they were compiled. Results are the same to the last bit.
///
/// ```
/// use pullback::scalar::{Dual, native};
/// let x: Vec<Dual<f64, 8>> = (0..100).map(|k| Dual::variable(k as f64, k % 8)).collect();
/// let sum: Dual<f64, 8> = native(|| x.iter().map(|&x| x * x).sum());
/// assert_eq!(sum.real(), 328350.0);
/// ```
#[inline(always)]
pub fn native<R>(f: impl FnOnce() -> R) -> R {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2,fma,bmi1,bmi2,f16c,lzcnt")]
        fn v3<R>(f: impl FnOnce() -> R) -> R {
            f()
        }
        if crate::backend::cpu::dispatch::has_v3() {
            // SAFETY: the processor has these instructions.
            return unsafe { v3(f) };
        }
    }
    f()
}
