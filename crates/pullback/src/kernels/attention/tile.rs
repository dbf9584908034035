//! Products of tiles that lie in cache, and what is done to the rows of a tile.
//!
//! Tiles are copies: their columns are padded with zeros to whole vectors ([`padded`]), or cut into panels of [`panel`] columns, so that inner loops have
//! no ends to care for.

use super::super::isa::with_isa;
use super::super::matmul::{Fused, fused};
use super::super::rows::RowMath;
use super::super::vectorised::vectorised;

/// Columns of a panel: two vectors of the longest.
pub(super) const fn panel<T>() -> usize {
    128 / size_of::<T>()
}

/// Columns with padding: whole vectors of the longest.
pub(super) fn padded<T>(columns: usize) -> usize {
    columns.next_multiple_of(64 / size_of::<T>())
}

/// Rows that are summed up together in registers.
const ROWS: usize = 4;

/// The left factor of a product: its elements, and the steps to the next row and column.
#[derive(Clone, Copy)]
pub(super) struct Left<'a, T> {
    pub x: &'a [T],
    pub row: usize,
    pub column: usize,
}

/// `out = a b`, or `out += a b`, of `m x k` and `k x n` matrices, `n` [padded]: the rows of `b` are `b_row` apart, those of `out` are `row` apart.
#[allow(clippy::too_many_arguments, reason = "three matrices")]
pub(super) fn product<T: Fused>(
    (m, k, n): (usize, usize, usize),
    a: Left<T>,
    b: &[T],
    b_row: usize,
    out: &mut [T],
    row: usize,
    add: bool,
) {
    if m == 0 || n == 0 {
        return;
    }
    assert!(n == padded::<T>(n) && n <= row && n <= b_row, "tiles: whole vectors");
    assert!((m - 1) * row + n <= out.len(), "tiles: the result is in bounds");
    let reach = |rows: usize, columns: usize| (rows - 1) * a.row + (columns - 1) * a.column;
    assert!(
        k == 0 || (k - 1) * b_row + n <= b.len() && reach(m, k) < a.x.len(),
        "tiles: the factors are in bounds"
    );
    let of =
        Operands { k, a: a.x.as_ptr(), a_row: a.row, a_column: a.column, b: b.as_ptr(), b_row, row, add };
    run(of, m, n, out.as_mut_ptr());
}

#[derive(Clone, Copy)]
struct Operands<T> {
    k: usize,
    a: *const T,
    a_row: usize,
    a_column: usize,
    b: *const T,
    b_row: usize,
    row: usize,
    add: bool,
}

/// Chooses the instructions, and strips of as many columns as registers hold.
fn run<T: Fused>(of: Operands<T>, m: usize, n: usize, out: *mut T) {
    with_isa! {
        [T: Fused] [T] (of: Operands<T>, m: usize, n: usize, out: *mut T);
        // SAFETY: `product` checked the bounds.
        Portable => unsafe {
            match size_of::<T>() {
                4 => strips::<{ cfg!(target_arch = "aarch64") }, 8, 8, T>(of, m, n, out),
                _ => strips::<{ cfg!(target_arch = "aarch64") }, 4, 4, T>(of, m, n, out),
            }
        },
        // SAFETY: as above.
        V3 => unsafe {
            match size_of::<T>() {
                4 => strips::<true, 16, 16, T>(of, m, n, out),
                _ => strips::<true, 8, 8, T>(of, m, n, out),
            }
        },
        // SAFETY: as above.
        V4 if true => unsafe {
            match size_of::<T>() {
                4 => strips::<true, 32, 16, T>(of, m, n, out),
                _ => strips::<true, 16, 8, T>(of, m, n, out),
            }
        }
    }
}

/// Strips of `W` columns, and of `V` for the last ones.
///
/// # Safety
/// The matrices have these dimensions, and `n` is a multiple of `V`.
#[inline(always)]
unsafe fn strips<const FMA: bool, const W: usize, const V: usize, T: Fused>(
    of: Operands<T>,
    m: usize,
    n: usize,
    out: *mut T,
) {
    let mut first = 0;
    while first < n {
        // SAFETY: the columns from `first` on are in bounds.
        unsafe {
            let of = Operands { b: of.b.add(first), ..of };
            if first + W <= n {
                strip::<FMA, W, T>(of, m, out.add(first));
                first += W;
            } else {
                strip::<FMA, V, T>(of, m, out.add(first));
                first += V;
            }
        }
    }
}

/// # Safety
/// As for [`strips`], with `W` columns.
#[inline(always)]
unsafe fn strip<const FMA: bool, const W: usize, T: Fused>(of: Operands<T>, m: usize, out: *mut T) {
    let whole = m - m % ROWS;
    // SAFETY: these rows are in bounds.
    unsafe {
        for i in (0..whole).step_by(ROWS) {
            rows::<FMA, ROWS, W, T>(Operands { a: of.a.add(i * of.a_row), ..of }, out.add(i * of.row));
        }
        for i in whole..m {
            rows::<FMA, 1, W, T>(Operands { a: of.a.add(i * of.a_row), ..of }, out.add(i * of.row));
        }
    }
}

/// # Safety
/// As for [`strip`], with `R` rows.
#[inline(always)]
unsafe fn rows<const FMA: bool, const R: usize, const W: usize, T: Fused>(of: Operands<T>, out: *mut T) {
    let mut sums = [[T::default(); W]; R];
    // SAFETY: rows of `out` and of `b` have `W` elements here, and the elements of `a` are inside of it.
    unsafe {
        if of.add {
            for (i, sums) in sums.iter_mut().enumerate() {
                *sums = out.add(i * of.row).cast::<[T; W]>().read();
            }
        }
        for p in 0..of.k {
            let right = of.b.add(p * of.b_row).cast::<[T; W]>().read();
            for (i, sums) in sums.iter_mut().enumerate() {
                let left = *of.a.add(i * of.a_row + p * of.a_column);
                for j in 0..W {
                    sums[j] = fused::<FMA, T>(left, right[j], sums[j]);
                }
            }
        }
        for (i, sums) in sums.into_iter().enumerate() {
            out.add(i * of.row).cast::<[T; W]>().write(sums);
        }
    }
}

/// The rows of a tile: so many, of `n` elements each, `stride` apart.
#[derive(Clone, Copy)]
pub(super) struct Rows {
    pub count: usize,
    pub n: usize,
    pub stride: usize,
}

const LANES: usize = 16;

/// What is subtracted from the scores of a row before the exponential is taken: infinities must not be subtracted from themselves.
#[inline(always)]
fn shift<W: RowMath>(top: W) -> W {
    if top.is_finite() { top } else { W::default() }
}

#[inline(always)]
fn larger<W: RowMath>(a: W, b: W) -> W {
    if (b > a) | is_nan(b) { b } else { a }
}

#[inline(always)]
#[allow(clippy::eq_op, reason = "NaN is the only number that differs from itself")]
fn is_nan<W: RowMath>(x: W) -> bool {
    x != x
}

vectorised! {
    /// One step of a softmax that sees its rows piece by piece: scores become `exp(s - top)` with the largest score so far, their sums and the
    /// rows of results that have gathered (`out`, `row` apart) are brought to it.
    wide pub(super) fn soften<W: RowMath>(
        s: &mut [W], tile: Rows, tops: &mut [W], sums: &mut [W], out: &mut [W], row: usize,
    ) {
        for i in 0..tile.count {
            let s = &mut s[i * tile.stride..][..tile.n];
            let (chunks, tail) = s.as_chunks::<LANES>();
            let mut lanes = [tops[i]; LANES];
            for chunk in chunks {
                for l in 0..LANES {
                    lanes[l] = larger(lanes[l], chunk[l]);
                }
            }
            let top = lanes.iter().chain(tail).fold(tops[i], |a, &b| larger(a, b));
            let by = shift(top);
            for x in &mut *s {
                *x = (*x - by).exp::<FMA>();
            }
            let (chunks, tail) = s.as_chunks::<LANES>();
            let mut lanes = [W::default(); LANES];
            for chunk in chunks {
                for l in 0..LANES {
                    lanes[l] = lanes[l] + chunk[l];
                }
            }
            let sum = lanes.iter().chain(tail).fold(W::default(), |a, &b| a + b);
            let factor = (tops[i] - by).exp::<FMA>();
            if factor != W::ONE {
                out[i * row..(i + 1) * row].iter_mut().for_each(|o| *o = *o * factor);
            }
            sums[i] = sums[i] * factor + sum;
            tops[i] = top;
        }
    }
}

vectorised! {
    /// `s = exp(s - total)`, one total for each row.
    wide pub(super) fn weights<W: RowMath>(s: &mut [W], tile: Rows, totals: &[W]) {
        for i in 0..tile.count {
            let by = shift(totals[i]);
            for x in &mut s[i * tile.stride..][..tile.n] {
                *x = (*x - by).exp::<FMA>();
            }
        }
    }
}

vectorised! {
    /// `h = p (h - centre)`, one centre for each row.
    pub(super) fn slopes<W: RowMath>(p: &[W], h: &mut [W], tile: Rows, centres: &[W]) {
        for i in 0..tile.count {
            let (p, h) = (&p[i * tile.stride..][..tile.n], &mut h[i * tile.stride..][..tile.n]);
            for (h, &p) in h.iter_mut().zip(p) {
                *h = p * (*h - centres[i]);
            }
        }
    }
}

vectorised! {
    /// `x *= factors`, element by element.
    pub(super) fn multiply<W: RowMath>(x: &mut [W], tile: Rows, factors: &[W]) {
        for i in 0..tile.count {
            let (x, f) = (&mut x[i * tile.stride..][..tile.n], &factors[i * tile.stride..][..tile.n]);
            x.iter_mut().zip(f).for_each(|(x, &f)| *x = *x * f);
        }
    }
}
