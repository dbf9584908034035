//! Between points, whose numbers lie together, and slots, whose lanes do.

use super::program::Program;
use super::workspace::{PARTS, Slot};
use crate::kernels::math::Isa;
use std::ops::Range;

/// Points and slots are each other's transpose; they are exchanged in squares of this side, whose rows are
/// read and written whole.
const SIDE: usize = 4;

#[inline(always)]
fn transposed<I: Isa>(tile: [[f64; SIDE]; SIDE]) -> [[f64; SIDE]; SIDE] {
    // The compiler moves the numbers one by one; in vectors it is twelve instructions.
    #[cfg(target_arch = "x86_64")]
    if I::FMA {
        use std::arch::x86_64::{
            _mm256_loadu_pd, _mm256_permute2f128_pd, _mm256_storeu_pd, _mm256_unpackhi_pd, _mm256_unpacklo_pd,
        };
        let mut out = [[0.0; SIDE]; SIDE];
        // SAFETY: a processor with FMA has AVX, and each row is four numbers.
        unsafe {
            let row = tile.each_ref().map(|row| _mm256_loadu_pd(row.as_ptr()));
            let (even01, odd01) = (_mm256_unpacklo_pd(row[0], row[1]), _mm256_unpackhi_pd(row[0], row[1]));
            let (even23, odd23) = (_mm256_unpacklo_pd(row[2], row[3]), _mm256_unpackhi_pd(row[2], row[3]));
            _mm256_storeu_pd(out[0].as_mut_ptr(), _mm256_permute2f128_pd::<0x20>(even01, even23));
            _mm256_storeu_pd(out[1].as_mut_ptr(), _mm256_permute2f128_pd::<0x20>(odd01, odd23));
            _mm256_storeu_pd(out[2].as_mut_ptr(), _mm256_permute2f128_pd::<0x31>(even01, even23));
            _mm256_storeu_pd(out[3].as_mut_ptr(), _mm256_permute2f128_pd::<0x31>(odd01, odd23));
        }
        return out;
    }
    std::array::from_fn(|i| std::array::from_fn(|j| tile[j][i]))
}

/// Points whose numbers follow one another, or some of them.
#[derive(Clone, Copy)]
pub(super) struct Points<'p> {
    numbers: &'p [f64],
    /// The numbers of each point.
    columns: usize,
    len: usize,
    /// Which points of `numbers` these are, if not all.
    chosen: Option<&'p [usize]>,
}

impl<'p> Points<'p> {
    /// All of `len` points.
    pub fn all(numbers: &'p [f64], columns: usize, len: usize) -> Self {
        assert_eq!(numbers.len(), columns * len);
        Points { numbers, columns, len, chosen: None }
    }

    /// Those of all points that are numbered in `chosen`, in that order.
    pub fn chosen(self, chosen: &'p [usize]) -> Self {
        assert!(self.chosen.is_none(), "points are chosen from all");
        Points { len: chosen.len(), chosen: Some(chosen), ..self }
    }

    #[inline(always)]
    pub fn len(&self) -> usize {
        self.len
    }

    #[inline(always)]
    pub fn part(self, range: Range<usize>) -> Self {
        let len = range.len();
        match self.chosen {
            Some(chosen) => Points { len, chosen: Some(&chosen[range]), ..self },
            None => {
                let numbers = &self.numbers[range.start * self.columns..range.end * self.columns];
                Points { numbers, len, ..self }
            }
        }
    }

    /// The numbers of one point.
    #[inline(always)]
    fn row(&self, k: usize) -> &'p [f64] {
        let k = self.chosen.map_or(k, |chosen| chosen[k]);
        &self.numbers[k * self.columns..][..self.columns]
    }
}

/// Loads the inputs of at most `L` points into their slots. `inputs` says which input goes to which slot; a point starts with
/// input number `origin`.
#[inline(always)]
pub(super) fn gather<const L: usize, I: Isa>(
    inputs: &[(u32, u32)],
    origin: u32,
    points: Points,
    slots: &mut [Slot<L>],
) {
    let all = inputs;
    let mut width = points.len();
    if (1..L).contains(&width) {
        // Idle lanes repeat the last point, so that no check fails for their sake. Its own lane is written with them, in whole vectors:
        // to read a vector just after one of its numbers was written takes long.
        width -= 1;
        let last = points.row(width);
        for &(input, slot) in all {
            let (vectors, _) = slots[slot as usize].0.as_chunks_mut::<PARTS>();
            vectors[width / PARTS..].fill([last[(input - origin) as usize]; PARTS]);
        }
    }
    // Points in the outer loop: they come from far, and are read from their beginning to their end. Two squares at a time, where there
    // are so many: what has to be found out about their slots is found out once.
    let (pairs, squares) = (width / (2 * SIDE) * (2 * SIDE), width / SIDE * SIDE);
    for lane in (0..pairs).step_by(2 * SIDE) {
        squares_of::<L, 2, I>(all, origin, points, lane, slots);
    }
    if pairs < squares {
        squares_of::<L, 1, I>(all, origin, points, pairs, slots);
    }
    for lane in squares..width {
        let row = points.row(lane);
        for &(input, slot) in all {
            slots[slot as usize].0[lane] = row[(input - origin) as usize];
        }
    }
}

/// Loads the inputs of `S` times `SIDE` points, the first of which goes to `lane`.
#[inline(always)]
fn squares_of<const L: usize, const S: usize, I: Isa>(
    mut inputs: &[(u32, u32)],
    origin: u32,
    points: Points,
    lane: usize,
    slots: &mut [Slot<L>],
) {
    // Loops instead of `from_fn`, whose closures the compiler would call for squares of this size, and bare pointers, which stay in registers.
    let mut rows = [[std::ptr::null::<f64>(); SIDE]; S];
    for (k, row) in rows.as_flattened_mut().iter_mut().enumerate() {
        *row = points.row(lane + k).as_ptr();
    }
    while let Some((&(first, slot), rest)) = inputs.split_first() {
        let at = (first - origin) as usize;
        match inputs.split_first_chunk::<SIDE>() {
            Some((group, rest)) if group[SIDE - 1].0 == first + (SIDE as u32 - 1) => {
                assert!(at + SIDE <= points.columns);
                let mut columns = [[[0.0; SIDE]; SIDE]; S];
                for (to, rows) in columns.iter_mut().zip(&rows) {
                    let mut square = [[0.0; SIDE]; SIDE];
                    for (to, row) in square.iter_mut().zip(rows) {
                        // SAFETY: a row has as many numbers as there are columns.
                        *to = unsafe { *row.add(at).cast() };
                    }
                    *to = transposed::<I>(square);
                }
                for (k, &(_, slot)) in group.iter().enumerate() {
                    let lanes = &mut slots[slot as usize].0[lane..lane + S * SIDE];
                    for (to, square) in lanes.as_chunks_mut::<SIDE>().0.iter_mut().zip(&columns) {
                        *to = square[k];
                    }
                }
                inputs = rest;
            }
            _ => {
                assert!(at < points.columns);
                let lanes = &mut slots[slot as usize].0[lane..lane + S * SIDE];
                for (to, row) in lanes.iter_mut().zip(rows.as_flattened()) {
                    // SAFETY: as above.
                    *to = unsafe { *row.add(at) };
                }
                inputs = rest;
            }
        }
    }
}

/// Writes the outputs of each lane as a row.
#[inline(always)]
pub(super) fn scatter<const L: usize, I: Isa>(program: &Program, slots: &[Slot<L>], out: &mut [f64]) {
    let rows = program.outputs.len();
    let width = out.len().checked_div(rows).unwrap_or(0);
    let full = width / SIDE * SIDE;
    let (groups, rest) = program.outputs.as_chunks::<SIDE>();
    for lane in (0..full).step_by(SIDE) {
        for (g, group) in groups.iter().enumerate() {
            let column =
                |k: usize| *slots[group[k] as usize].0[lane..].first_chunk().expect("inside the slot");
            let tile = transposed::<I>(std::array::from_fn(column));
            for (k, row) in tile.iter().enumerate() {
                out[(lane + k) * rows + g * SIDE..][..SIDE].copy_from_slice(row);
            }
        }
        for (j, &slot) in rest.iter().enumerate() {
            let at = lane * rows + groups.len() * SIDE + j;
            (0..SIDE).for_each(|k| out[at + k * rows] = slots[slot as usize].0[lane + k]);
        }
    }
    for lane in full..width {
        for (y, &slot) in out[lane * rows..][..rows].iter_mut().zip(&program.outputs) {
            *y = slots[slot as usize].0[lane];
        }
    }
}
