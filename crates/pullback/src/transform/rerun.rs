//! Options under which a closure is itself run again for the pullback.

use super::checkpoint::Keep;
use crate::schedule::Schedule;
use std::path::PathBuf;

/// The same options, for a closure that is itself run again for the pullback, instead of a trace of it: it may branch on values. It
/// owns what it captures (`'static`, `Send` and `Sync`); captured tensors get their gradients.
///
/// Made by [`Policy::rerun`](crate::Policy::rerun) for [`checkpoint_with`](crate::checkpoint_with), and by [`Schedule::rerun`] for [`scan_with`](crate::scan_with)
/// and [`while_loop_with`](crate::while_loop_with).
///
/// ```
/// use pullback::{Schedule, prelude::*, scan_with};
/// // Collatz: 6, 3, 10, 5, 16, 8, 4, 2, 1
/// let step = |x: &Tensor, _: &()| (if x.item() % 2.0 == 0.0 { x / 2.0 } else { x * 3.0 + 1.0 }, ());
/// let f = move |x: &Tensor| scan_with(Schedule::Sqrt.rerun(), step, x, 8).0;
/// assert_eq!(f(&Tensor::scalar(6.0)).item(), 1.0);
/// assert_eq!(grad(f)(&Tensor::scalar(6.0)).item(), 9.0 / 64.0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rerun<O>(pub(super) O);

impl Schedule {
    /// The same schedule, for a step that is itself run again, and may branch on values.
    pub fn rerun(self) -> Rerun<Schedule> {
        Rerun(self)
    }
}

impl Rerun<Keep> {
    /// The inputs in a file in the directory `dir` instead of memory, as by [`Policy::offload`](crate::Policy::offload).
    #[must_use]
    pub fn offload(self, dir: impl Into<PathBuf>) -> Self {
        Rerun(self.0.offload(dir))
    }

    /// Compares the results of both runs, as [`Policy::verify`](crate::Policy::verify) does.
    #[must_use]
    pub fn verify(self) -> Self {
        Rerun(self.0.verify())
    }
}
