//! How the iteration space of a group is cut: into blocks, which threads take one by one, and these into tiles, which stay in cache.
//!
//! The cuts depend on the shape and the program alone, so that results do not depend on the number of threads.

use super::space::Space;
use std::ops::Range;

/// Bytes of a register, unless a row has to be seen whole: half a dozen of them stay in the first cache, and an instruction works long
/// enough that the way to it does not show.
const TILE: usize = 4096;
/// Elements of a block.
const BLOCK: usize = 1 << 14;
/// Rows that a block has at least, where columns are reduced: each block leaves a row of partial results.
const REDUCED_ROWS: usize = 32;

pub(super) struct Geometry {
    pub rows: usize,
    pub cols: usize,
    pub tile_rows: usize,
    pub tile_cols: usize,
    block_rows: usize,
    block_cols: usize,
    pub row_blocks: usize,
    pub col_blocks: usize,
}

/// A rectangle of the iteration space.
#[derive(Clone)]
pub(super) struct Rectangle {
    pub rows: Range<usize>,
    pub cols: Range<usize>,
}

/// Elements of a tile.
fn tile(space: &Space) -> usize {
    TILE / space.dtype.size()
}

/// Whether a tile holds whole rows.
pub(super) fn spans(space: &Space) -> bool {
    space.whole || space.cols <= tile(space)
}

impl Geometry {
    pub fn new(space: &Space, reduces_columns: bool) -> Geometry {
        let (rows, cols) = (space.rows, space.cols);
        let tile_cols = if spans(space) { cols } else { tile(space) };
        let tile_rows = (tile(space) / tile_cols).clamp(1, rows);
        let block_cols = match spans(space) {
            true => cols,
            false if reduces_columns => cols.min(BLOCK / 4),
            false => cols.min(BLOCK),
        };
        let least = if reduces_columns { REDUCED_ROWS } else { 1 };
        let block_rows = (BLOCK / block_cols).max(least).next_multiple_of(tile_rows).min(rows);
        let (row_blocks, col_blocks) = (rows.div_ceil(block_rows), cols.div_ceil(block_cols));
        Geometry { rows, cols, tile_rows, tile_cols, block_rows, block_cols, row_blocks, col_blocks }
    }

    pub fn blocks(&self) -> usize {
        self.row_blocks * self.col_blocks
    }

    pub fn block(&self, number: usize) -> Rectangle {
        let (r, c) = (number / self.col_blocks * self.block_rows, number % self.col_blocks * self.block_cols);
        Rectangle {
            rows: r..(r + self.block_rows).min(self.rows),
            cols: c..(c + self.block_cols).min(self.cols),
        }
    }

    /// How many elements each block has, but for the last one, if blocks follow each other in row-major order.
    pub fn block_elements(&self) -> Option<usize> {
        (self.rows == 1 || self.col_blocks == 1).then(|| self.block_size())
    }

    /// Elements of a block, roughly.
    pub fn block_size(&self) -> usize {
        self.block_rows * self.block_cols
    }

    /// Most columns that a block has.
    pub fn block_width(&self) -> usize {
        self.block_cols
    }

    /// Elements of the largest tile.
    pub fn tile_size(&self) -> usize {
        self.tile_rows * self.tile_cols
    }

    /// The tiles of a block, row by row.
    pub fn tiles(&self, block: Rectangle) -> impl Iterator<Item = Rectangle> + use<> {
        let (height, width) = (self.tile_rows, self.tile_cols);
        block.rows.clone().step_by(height).flat_map(move |r| {
            let (rows, cols) = (r..(r + height).min(block.rows.end), block.cols.clone());
            let end = cols.end;
            cols.step_by(width).map(move |c| Rectangle { rows: rows.clone(), cols: c..(c + width).min(end) })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DType;

    #[test]
    fn tiles_cover_every_element_once() {
        for (rows, cols, whole, columns) in [
            (1, 1, false, false),
            (1, 513, false, false),
            (1, 100_003, false, true),
            (7, 511, false, true),
            (1000, 3, false, true),
            (3, 5000, true, true),
            (70, 5000, false, true),
            (5, 40_000, false, false),
        ] {
            let space = Space { dtype: DType::F32, rows, cols, whole, shifted: false, extents: Vec::new() };
            let g = Geometry::new(&space, columns);
            let mut seen = vec![0u8; rows * cols];
            for b in 0..g.blocks() {
                for t in g.tiles(g.block(b)) {
                    assert!(t.rows.len() <= g.tile_rows && t.cols.len() <= g.tile_cols);
                    assert!(t.rows.len() == 1 || t.cols.len() == cols, "rows of a tile follow each other");
                    t.rows.for_each(|r| t.cols.clone().for_each(|c| seen[r * cols + c] += 1));
                }
            }
            assert!(seen.iter().all(|&s| s == 1), "{rows} x {cols}");
        }
    }
}
