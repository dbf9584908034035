//! Sums of numbers times vectors, some of each at once in registers.
//!
//! `sums[s, l] = Σ numbers[lanes[l] + step.number] · vectors[starts[s] + step.vector ..]`, over the steps. In a convolution lanes are pixels, steps the
//! channels and taps of a window, and a vector holds weights for many output channels; where there are few of these, lanes are output channels
//! and a vector is a row of pixels. In the gradient of a kernel lanes are channels and taps, and steps are pixels.

use super::super::isa::with_isa;
use super::super::matmul::{Fused, fused};

/// What a step adds to the places of the number and of the vector.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub number: isize,
    pub vector: isize,
}

/// Numbers and vectors to be multiplied and added up.
pub(super) struct Tiles<'a, T> {
    pub numbers: *const T,
    pub vectors: *const T,
    pub steps: &'a [Step],
    /// A multiple of the height.
    pub lanes: &'a [isize],
    pub starts: &'a [isize],
    /// The size of the tiles: one that [`tile_of`] gave.
    pub tile: Tile,
    /// As many as starts, lanes and columns of a tile.
    pub sums: *mut T,
    /// Whether to add to the sums that are there.
    pub more: bool,
}

/// Lanes and columns that are summed up together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Tile {
    pub height: usize,
    pub width: usize,
}

/// A multiple of the height of every tile.
pub(super) const HIGHEST: usize = 24;

/// The bytes of a vector register.
pub(super) fn vector_bytes() -> usize {
    with_isa! { [] [] () -> usize; Portable => 16, V3 => 32, V4 if true => 64 }
}

/// The tile for so many columns, of which the last of a row may be too many; as wide as registers allow.
///
/// An instruction takes 4 cycles and one or two begin in each, so about eight sums have to be under way. AVX-512 has 32 registers for them, the
/// others 16; and of more than eight lanes the addresses would not stay in registers, which takes half of the speed.
pub(super) fn tile_of<T>(columns: usize) -> Tile {
    let lanes = vector_bytes() / size_of::<T>();
    let vectors = match vector_bytes() {
        64 if columns >= 4 * lanes => 4,
        _ if columns >= 2 * lanes => 2,
        _ => 1,
    };
    let height = match (vector_bytes(), vectors) {
        (64, 4) => 6,
        (64, _) => 8,
        (_, 2) => 6,
        _ => 8,
    };
    Tile { height, width: vectors * lanes }
}

/// The tile for one or a few lanes over rows of so many columns: rather a wide one.
pub(super) fn low_tile<T>(lanes: usize, columns: usize) -> Tile {
    let vector = vector_bytes() / size_of::<T>();
    let vectors = if columns > 2 * vector { 4 } else { columns.div_ceil(vector).clamp(1, 2) };
    let height = if lanes == 1 { 1 } else { 2 };
    Tile { height, width: vectors * vector }
}

/// # Safety
/// Every number and vector that is named is in bounds, nobody else uses the sums, and the tile is one of this module's.
pub(super) unsafe fn run<T: Fused>(job: &Tiles<T>) {
    with_isa! {
        [T: Fused] [T] (job: &Tiles<T>);
        // SAFETY: the caller's promise.
        Portable => unsafe { sized::<{ cfg!(target_arch = "aarch64") }, 16, T>(job) },
        // SAFETY: the caller's promise.
        V3 => unsafe { sized::<true, 32, T>(job) },
        // SAFETY: the caller's promise.
        V4 if true => unsafe { sized::<true, 64, T>(job) }
    }
}

/// Chooses the code for the tile, with registers of so many bytes.
///
/// # Safety
/// As for [`run`].
#[inline(always)]
unsafe fn sized<const FMA: bool, const BYTES: usize, T: Fused>(job: &Tiles<T>) {
    macro_rules! tiles {
        ($(($height:literal, $vectors:literal) if $when:expr),*) => {$(
            if $when && job.tile == (Tile { height: $height, width: $vectors * BYTES / size_of::<T>() }) {
                // SAFETY: the caller's promise.
                return unsafe {
                    match BYTES / size_of::<T>() {
                        16 => all::<FMA, $height, { $vectors * 16 }, T>(job),
                        8 => all::<FMA, $height, { $vectors * 8 }, T>(job),
                        4 => all::<FMA, $height, { $vectors * 4 }, T>(job),
                        _ => all::<FMA, $height, { $vectors * 2 }, T>(job),
                    }
                };
            }
        )*};
    }
    tiles! {
        (6, 4) if BYTES == 64, (8, 2) if BYTES == 64, (8, 1) if true, (6, 2) if BYTES != 64,
        (1, 4) if true, (1, 2) if true, (1, 1) if true, (2, 4) if true, (2, 2) if true, (2, 1) if true
    }
    // A tile that another instruction set was chosen for.
    // SAFETY: the caller's promise.
    unsafe { plain::<FMA, T>(job) }
}

/// All tiles.
///
/// # Safety
/// As for [`run`].
#[inline(always)]
unsafe fn all<const FMA: bool, const H: usize, const W: usize, T: Fused>(job: &Tiles<T>) {
    let mut sums = job.sums.cast::<[T; W]>();
    for &start in job.starts {
        // SAFETY: a step of a start is in bounds.
        let vectors = unsafe { job.vectors.offset(start) };
        for lanes in job.lanes.chunks_exact(H) {
            // SAFETY: the caller's promise.
            unsafe {
                tile::<FMA, H, W, T>(job, vectors, lanes, sums);
                sums = sums.add(H);
            }
        }
    }
}

/// One tile.
///
/// # Safety
/// As for [`run`].
#[inline(always)]
unsafe fn tile<const FMA: bool, const H: usize, const W: usize, T: Fused>(
    job: &Tiles<T>,
    vectors: *const T,
    lanes: &[isize],
    out: *mut [T; W],
) {
    let lanes: [*const T; H] = std::array::from_fn(|l| job.numbers.wrapping_offset(lanes[l]));
    let mut sums = [[T::default(); W]; H];
    // SAFETY: the caller's promise.
    unsafe {
        if job.more {
            (0..H).for_each(|l| sums[l] = *out.add(l));
        }
        for step in job.steps {
            let vector = vectors.offset(step.vector).cast::<[T; W]>().read();
            for (lane, sums) in lanes.iter().zip(&mut sums) {
                let number = *lane.wrapping_offset(step.number);
                for (sum, v) in sums.iter_mut().zip(vector) {
                    *sum = fused::<FMA, T>(number, v, *sum);
                }
            }
        }
        (0..H).for_each(|l| *out.add(l) = sums[l]);
    }
}

/// Products of vectors: `sums[l] += a[step.number ..] b[lanes[l] + step.vector ..]`, over the steps.
pub(super) struct Dots<'a, T> {
    pub a: *const T,
    pub b: *const T,
    pub steps: &'a [Step],
    /// A multiple of the [height](Dots::HEIGHT).
    pub lanes: &'a [isize],
    /// Elements of a vector: those of a register.
    pub width: usize,
    /// A vector for each lane.
    pub sums: *mut T,
}

impl Dots<'_, ()> {
    /// Lanes that are summed up together. Each reads a vector of its own, which takes longer than to multiply it.
    pub const HEIGHT: usize = 3;
}

/// # Safety
/// Every vector that is named is in bounds, and nobody else uses the sums.
pub(super) unsafe fn dots<T: Fused>(job: &Dots<T>) {
    with_isa! {
        [T: Fused] [T] (job: &Dots<T>);
        // SAFETY: the caller's promise.
        Portable => unsafe { dots_of::<{ cfg!(target_arch = "aarch64") }, T>(job) },
        // SAFETY: the caller's promise.
        V3 => unsafe { dots_of::<true, T>(job) },
        // SAFETY: the caller's promise.
        V4 if true => unsafe { dots_of::<true, T>(job) }
    }
}

/// # Safety
/// As for [`dots`].
#[inline(always)]
unsafe fn dots_of<const FMA: bool, T: Fused>(job: &Dots<T>) {
    // SAFETY: the caller's promise.
    unsafe {
        match job.width {
            16 => all_dots::<FMA, 16, T>(job),
            8 => all_dots::<FMA, 8, T>(job),
            4 => all_dots::<FMA, 4, T>(job),
            2 => all_dots::<FMA, 2, T>(job),
            width => unreachable!("no register has {width} elements"),
        }
    }
}

/// # Safety
/// As for [`dots`].
#[inline(always)]
unsafe fn all_dots<const FMA: bool, const W: usize, T: Fused>(job: &Dots<T>) {
    const H: usize = Dots::HEIGHT;
    let out = job.sums.cast::<[T; W]>();
    for (k, lanes) in job.lanes.chunks_exact(H).enumerate() {
        // SAFETY: the caller's promise.
        unsafe {
            let out = out.add(k * H);
            let lanes: [*const T; H] = std::array::from_fn(|l| job.b.wrapping_offset(lanes[l]));
            let mut sums: [[T; W]; H] = std::array::from_fn(|l| *out.add(l));
            for step in job.steps {
                let a = job.a.offset(step.number).cast::<[T; W]>().read();
                for (lane, sums) in lanes.iter().zip(&mut sums) {
                    let b = lane.wrapping_offset(step.vector).cast::<[T; W]>().read();
                    for i in 0..W {
                        sums[i] = fused::<FMA, T>(a[i], b[i], sums[i]);
                    }
                }
            }
            (0..H).for_each(|l| *out.add(l) = sums[l]);
        }
    }
}

/// Tiles of any size, one number after the other.
///
/// # Safety
/// As for [`run`].
unsafe fn plain<const FMA: bool, T: Fused>(job: &Tiles<T>) {
    let mut sum = job.sums;
    for &start in job.starts {
        for &lane in job.lanes {
            for column in 0..job.tile.width as isize {
                // SAFETY: the caller's promise.
                unsafe {
                    let first = if job.more { *sum } else { T::default() };
                    *sum = job.steps.iter().fold(first, |sum, step| {
                        let number = *job.numbers.offset(lane + step.number);
                        fused::<FMA, T>(number, *job.vectors.offset(start + step.vector + column), sum)
                    });
                    sum = sum.add(1);
                }
            }
        }
    }
}
