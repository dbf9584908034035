//! Kernels that can make their result some rows at a time, so that what is done with the rows finds them in cache.

use super::movement::Target;
use std::ops::Range;

/// A result that is ready to be computed, as a whole or some of its rows.
pub(crate) trait InRows<T>: Sync {
    /// How many rows there are.
    fn rows(&self) -> usize;

    /// Elements of a row.
    fn columns(&self) -> usize;

    /// Where rows may be cut: at multiples of this.
    fn unit(&self) -> usize;

    /// Multiply-adds for an element.
    fn depth(&self) -> usize;

    /// Computes some whole rows, from one [unit](InRows::unit) to another or to the end, into their place of an array of all.
    ///
    /// # Safety
    /// The array has all elements of the result, and nobody else uses those rows.
    unsafe fn compute(&self, rows: Range<usize>, out: Target<T>);

    /// Computes all, on several threads if that is worth it.
    fn all(&self, out: &mut [T]);
}

/// Such a kernel, by the type of its elements.
pub(crate) enum RowKernel<'a> {
    F32(&'a dyn InRows<f32>),
    F64(&'a dyn InRows<f64>),
}
