//! Transposes, in square blocks that pass through registers.

use super::super::isa::with_isa;
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;
use std::array;

/// A matrix whose lines, each with `length` elements side by side, become the columns of another.
#[derive(Clone, Copy)]
pub(super) struct Transpose<W> {
    pub from: *const W,
    /// From one line to the next.
    pub line: isize,
    pub lines: usize,
    pub length: usize,
    pub to: *mut W,
    /// From one row of the output to the next; what is in a row lies side by side.
    pub row: isize,
}

/// # Safety
/// All elements are in bounds in both arrays, which do not overlap.
pub(super) unsafe fn transpose<W: Word>(t: Transpose<W>) {
    with_isa! {
        [W: Word] [W] (t: Transpose<W>);
        // SAFETY: the caller's promise.
        Portable => unsafe { t.by_blocks::<false>() },
        // SAFETY: the caller's promise, and the processor has AVX.
        V3 => unsafe { t.by_blocks::<true>() },
    }
}

/// Lines that are read together, some elements of each: what is written then fills whole lines of the cache, and what is read is not
/// needed again when another line has taken its place there.
const LINES: usize = 32;
const ELEMENTS: usize = 16;

impl<W: Word> Transpose<W> {
    /// # Safety
    /// As for [`transpose`], and the processor has AVX if that is asked for.
    #[inline(always)]
    unsafe fn by_blocks<const AVX: bool>(self) {
        let Transpose { from, line, lines, length, to, row } = self;
        let (whole_lines, whole_length) = (lines - lines % W::SIDE, length - length % W::SIDE);
        // SAFETY: all lines are below `lines` and all elements below `length`.
        unsafe {
            let at = |l: usize, e: usize| {
                (from.offset(l as isize * line).add(e), to.offset(e as isize * row).add(l))
            };
            for first in (0..whole_lines).step_by(LINES) {
                for start in (0..whole_length).step_by(ELEMENTS) {
                    for l in (first..(first + LINES).min(whole_lines)).step_by(W::SIDE) {
                        for e in (start..(start + ELEMENTS).min(whole_length)).step_by(W::SIDE) {
                            let (from, to) = at(l, e);
                            if AVX {
                                W::block_avx(from, line, to, row)
                            } else {
                                W::block(from, line, to, row)
                            }
                        }
                    }
                }
            }
            for l in 0..lines {
                for e in if l < whole_lines { whole_length } else { 0 }..length {
                    let (from, to) = at(l, e);
                    *to = *from;
                }
            }
        }
    }
}

/// Elements that are moved by their bits.
pub(super) trait Word: Copy {
    /// Side of the blocks, which fill a vector of AVX.
    const SIDE: usize;

    /// Copies the first `SIDE` elements of as many lines.
    ///
    /// # Safety
    /// As for [`transpose`].
    unsafe fn block(from: *const Self, line: isize, to: *mut Self, row: isize);

    /// The same with other instructions.
    ///
    /// # Safety
    /// As for [`transpose`], and the processor has AVX if it is one of x86-64.
    unsafe fn block_avx(from: *const Self, line: isize, to: *mut Self, row: isize) {
        // SAFETY: the caller's promise.
        unsafe { Self::block(from, line, to, row) }
    }
}

/// # Safety
/// As for [`transpose`].
#[inline(always)]
unsafe fn block<W: Copy, const SIDE: usize>(from: *const W, line: isize, to: *mut W, row: isize) {
    // SAFETY: the caller's promise; an array asks for no more alignment than its elements.
    unsafe {
        let lines: [[W; SIDE]; SIDE] = array::from_fn(|l| *from.offset(l as isize * line).cast());
        (0..SIDE).for_each(|e| {
            *to.offset(e as isize * row).cast() = array::from_fn::<W, SIDE, _>(|l| lines[l][e]);
        });
    }
}

impl Word for u32 {
    const SIDE: usize = 8;

    #[inline(always)]
    unsafe fn block(from: *const u32, line: isize, to: *mut u32, row: isize) {
        // SAFETY: the caller's promise.
        unsafe { block::<u32, 8>(from, line, to, row) }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline]
    #[target_feature(enable = "avx")]
    unsafe fn block_avx(from: *const u32, line: isize, to: *mut u32, row: isize) {
        // SAFETY: the caller's promise.
        let x: [__m256; 8] =
            array::from_fn(|l| unsafe { _mm256_loadu_ps(from.offset(l as isize * line).cast()) });
        // Two, then four lines side by side in each half of a register, then eight across both halves.
        let [low, high] = [0, 1].map(|h| {
            let pair = |l: usize| {
                if h == 0 { _mm256_unpacklo_ps(x[l], x[l + 1]) } else { _mm256_unpackhi_ps(x[l], x[l + 1]) }
            };
            [pair(0), pair(2), pair(4), pair(6)]
        });
        for (h, [a, b, c, d]) in [low, high].into_iter().enumerate() {
            let four = [
                (_mm256_shuffle_ps::<0b01_00_01_00>(a, b), _mm256_shuffle_ps::<0b01_00_01_00>(c, d)),
                (_mm256_shuffle_ps::<0b11_10_11_10>(a, b), _mm256_shuffle_ps::<0b11_10_11_10>(c, d)),
            ];
            for (i, (left, right)) in four.into_iter().enumerate() {
                let e = (2 * h + i) as isize;
                // SAFETY: the caller's promise.
                unsafe {
                    _mm256_storeu_ps(to.offset(e * row).cast(), _mm256_permute2f128_ps::<0x20>(left, right));
                    _mm256_storeu_ps(
                        to.offset((e + 4) * row).cast(),
                        _mm256_permute2f128_ps::<0x31>(left, right),
                    );
                }
            }
        }
    }
}

impl Word for u64 {
    const SIDE: usize = 4;

    #[inline(always)]
    unsafe fn block(from: *const u64, line: isize, to: *mut u64, row: isize) {
        // SAFETY: the caller's promise.
        unsafe { block::<u64, 4>(from, line, to, row) }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline]
    #[target_feature(enable = "avx")]
    unsafe fn block_avx(from: *const u64, line: isize, to: *mut u64, row: isize) {
        // SAFETY: the caller's promise.
        let x: [__m256d; 4] =
            array::from_fn(|l| unsafe { _mm256_loadu_pd(from.offset(l as isize * line).cast()) });
        let pairs = [
            (_mm256_unpacklo_pd(x[0], x[1]), _mm256_unpacklo_pd(x[2], x[3])),
            (_mm256_unpackhi_pd(x[0], x[1]), _mm256_unpackhi_pd(x[2], x[3])),
        ];
        for (i, (left, right)) in pairs.into_iter().enumerate() {
            let e = i as isize;
            // SAFETY: the caller's promise.
            unsafe {
                _mm256_storeu_pd(to.offset(e * row).cast(), _mm256_permute2f128_pd::<0x20>(left, right));
                _mm256_storeu_pd(
                    to.offset((e + 2) * row).cast(),
                    _mm256_permute2f128_pd::<0x31>(left, right),
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::isa::forced::with_each_isa;
    use super::*;

    fn check<W: Word + PartialEq + std::fmt::Debug>(number: impl Fn(usize) -> W) {
        with_each_isa(|isa| {
            for (lines, length) in [(1, 1), (3, 9), (4, 4), (8, 8), (7, 65), (33, 17), (40, 24), (70, 35)] {
                let (line, row) = (length + 3, lines + 2);
                let from: Vec<W> = (0..lines * line).map(|i| number(i + 1)).collect();
                let mut to = vec![number(0); length * row];
                let t = Transpose {
                    from: from.as_ptr(),
                    line: line as isize,
                    lines,
                    length,
                    to: to.as_mut_ptr(),
                    row: row as isize,
                };
                // SAFETY: both arrays have so many elements.
                unsafe { transpose(t) };
                for (i, &x) in to.iter().enumerate() {
                    let (e, l) = (i / row, i % row);
                    let expected = if l < lines { number(l * line + e + 1) } else { number(0) };
                    assert_eq!(x, expected, "{lines} x {length}, row {e}, column {l}, {isa:?}");
                }
            }
        });
    }

    #[test]
    fn every_element_goes_to_its_place_and_nothing_else_is_written() {
        check(|i| i as u32);
        check(|i| i as u64);
    }
}
