//! A result that a group follows: how much of it is made at once, and where it may be cut.

use crate::kernels::in_rows::InRows;
use std::ops::Range;

/// A result that is made some rows at a time, each just before the blocks that read them.
pub(super) struct Ahead<'a> {
    /// So many blocks have whole rows that may be made apart from the others.
    pub unit: usize,
    /// How many blocks the rows are made for at once.
    pub step: usize,
    /// Tenths of a nanosecond for an element, roughly.
    pub work: usize,
    /// Elements of a block.
    block: usize,
    columns: usize,
    rows: usize,
    make: &'a (dyn Fn(Range<usize>) + Sync),
}

/// Elements that are made before they are read: most are still in the second cache then. Fewer would cost a matrix product more than
/// they save. In tests there are fewer, so that small results are cut too.
const AHEAD: usize = if cfg!(test) { 1 << 14 } else { 1 << 18 };

impl<'a> Ahead<'a> {
    /// `None` if the rows cannot be cut where blocks end, but for one or two places: then the result is better made at once.
    pub fn new<T>(
        kernel: &dyn InRows<T>,
        block: usize,
        blocks: usize,
        make: &'a (dyn Fn(Range<usize>) + Sync),
    ) -> Option<Self> {
        let columns = kernel.columns();
        let rows = kernel.unit() * columns;
        let unit = rows / gcd(rows, block);
        let step = (AHEAD / block).max(1).next_multiple_of(unit);
        let fits = blocks <= 1 || blocks >= 4 * unit;
        let work = kernel.depth() / 5;
        fits.then_some(Ahead { unit, step, work, block, columns, rows: kernel.rows(), make })
    }

    pub fn make(&self, blocks: Range<usize>) {
        let row = |block: usize| (block * self.block / self.columns).min(self.rows);
        let end = (blocks.end * self.block).div_ceil(self.columns).min(self.rows);
        (self.make)(row(blocks.start)..end);
    }
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}
