//! Factorisations of large matrices on all threads: faer factors the blocks, and what a block changes to its right is shared out by columns.
//! How it is cut depends on the matrix alone, and so do the bits of the result.

use super::super::movement::Target;
use super::*;
use faer::linalg::cholesky::llt::factor as llt;
use faer::linalg::lu::partial_pivoting::factor as plu;
use faer::linalg::matmul::matmul;
use faer::linalg::triangular_solve as faer_solve;
use faer::{Accum, Par};
use std::ops::Range;

/// Sides from which on it is worth it.
pub(super) const LARGE: usize = 256;
/// Columns that are factored at once.
const BLOCK: usize = 64;
/// Columns that a thread changes at once.
const PIECE: usize = 64;

/// A matrix of which threads use disjoint blocks.
#[derive(Clone, Copy)]
struct Shared<T> {
    first: Target<T>,
    rows: usize,
}

impl<T: Real> Shared<T> {
    fn new(a: &mut Columns<T>) -> Self {
        Shared { first: Target::new(&mut a.data), rows: a.rows }
    }

    /// # Safety
    /// The block is inside of the matrix, which is alive, and nobody else uses any of its elements meanwhile.
    unsafe fn block<'a>(self, rows: Range<usize>, columns: Range<usize>) -> MatMut<'a, T> {
        let at = (columns.start * self.rows + rows.start) as isize;
        // SAFETY: the caller's promise.
        unsafe {
            MatMut::from_raw_parts_mut(self.first.at(at), rows.len(), columns.len(), 1, self.rows as isize)
        }
    }

    /// # Safety
    /// The block is inside of the matrix, which is alive, and nobody writes to any of its elements meanwhile.
    unsafe fn read<'a>(self, rows: Range<usize>, columns: Range<usize>) -> MatRef<'a, T> {
        let at = (columns.start * self.rows + rows.start) as isize;
        // SAFETY: the caller's promise.
        unsafe { MatRef::from_raw_parts(self.first.at(at), rows.len(), columns.len(), 1, self.rows as isize) }
    }
}

/// Calls `f` with pieces that cover the range, on all threads.
fn pieces(range: Range<usize>, f: impl Fn(Range<usize>) + Sync) {
    parallel::split(range.len().div_ceil(PIECE), 1, 1, |part| {
        for k in part {
            let start = range.start + k * PIECE;
            f(start..(start + PIECE).min(range.end));
        }
    });
}

/// Puts the factor of Cholesky into the lower triangle of a square matrix, whose upper one is not read; whether there is one.
pub(super) fn cholesky<T: Real>(a: &mut Columns<T>) -> bool {
    let (n, minus) = (a.rows, T::from_f64(-1.0));
    let all = Shared::new(a);
    for start in (0..n).step_by(BLOCK) {
        let (block, rest) = (start..(start + BLOCK).min(n), (start + BLOCK).min(n)..n);
        let need = llt::cholesky_in_place_scratch::<T>(block.len(), Par::Seq, Default::default());
        let factored = with_stack(need, |stack| {
            // SAFETY: this thread alone works on the matrix.
            let corner = unsafe { all.block(block.clone(), block.clone()) };
            llt::cholesky_in_place(corner, Default::default(), Par::Seq, stack, Default::default())
        });
        if factored.is_err() {
            return false;
        }
        pieces(rest.clone(), |rows| {
            // SAFETY: each piece has its own rows of these columns; the corner above them is only read.
            let (corner, part) =
                unsafe { (all.read(block.clone(), block.clone()), all.block(rows, block.clone())) };
            faer_solve::solve_lower_triangular_in_place(corner, part.transpose_mut(), Par::Seq);
        });
        pieces(rest.clone(), |columns| {
            let rows = columns.start..n;
            // SAFETY: each piece has its own columns; those to the left are only read.
            let (left, top, part) = unsafe {
                (
                    all.read(rows.clone(), block.clone()),
                    all.read(columns.clone(), block.clone()),
                    all.block(rows, columns),
                )
            };
            matmul(part, Accum::Add, left, top.transpose(), minus, Par::Seq);
        });
    }
    true
}

/// Puts the factors of a matrix into its place, and says in which order its rows are.
pub(super) fn lu<T: Real>(a: &mut Columns<T>, order: &mut [usize]) {
    let (m, n, minus) = (a.rows, a.columns(), T::from_f64(-1.0));
    order.iter_mut().enumerate().for_each(|(k, row)| *row = k);
    let all = Shared::new(a);
    for start in (0..m.min(n)).step_by(BLOCK) {
        let block = start..(start + BLOCK).min(n).min(m);
        let (mut forward, mut inverse) = (vec![0usize; m - start], vec![0usize; m - start]);
        let need = plu::lu_in_place_scratch::<usize, T>(m - start, block.len(), Par::Seq, Default::default());
        with_stack(need, |stack| {
            // SAFETY: this thread alone works on the matrix.
            let panel = unsafe { all.block(start..m, block.clone()) };
            plu::lu_in_place(panel, &mut forward, &mut inverse, Par::Seq, stack, Default::default());
        });
        let before = order[start..].to_vec();
        forward.iter().zip(&mut order[start..]).for_each(|(&from, row)| *row = before[from]);
        let rearrange = |mut part: MatMut<T>| {
            let mut column = Vec::with_capacity(m - start);
            for j in 0..part.ncols() {
                column.clear();
                column.extend(forward.iter().map(|&from| *part.as_ref().get(from, j)));
                column.iter().enumerate().for_each(|(i, &v)| *part.as_mut().get_mut(i, j) = v);
            }
        };
        pieces(0..start, |columns| {
            // SAFETY: each piece has its own columns.
            rearrange(unsafe { all.block(start..m, columns) });
        });
        pieces(block.end..n, |columns| {
            // SAFETY: each piece has its own columns, above and below; those to the left are only read.
            let (corner, left) =
                unsafe { (all.read(block.clone(), block.clone()), all.read(block.end..m, block.clone())) };
            // SAFETY: as above.
            let mut whole = unsafe { all.block(start..m, columns) };
            rearrange(whole.as_mut());
            let (mut above, below) = whole.split_at_row_mut(block.len());
            faer_solve::solve_unit_lower_triangular_in_place(corner, above.as_mut(), Par::Seq);
            matmul(below, Accum::Add, left, above.as_ref(), minus, Par::Seq);
        });
    }
}
