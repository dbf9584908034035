//! Windows by vectors of pixels, for groups of few channels: depthwise convolutions, and pictures as results.
//!
//! Rows of the source are copied with zeros around them, and with the elements that a stride reads next to each other side by side.

use super::super::matmul::Fused;
use super::super::movement::{self, Target};
use super::super::parallel;
use super::super::scratch::{filled, with_scratch};
use super::pack::Frame;
use super::tile::{self, Step, Tile, Tiles, low_tile};
use super::windows::{Phase, Windows};
use super::{Array, GRAIN};
use std::ops::Range;

/// Bytes of the sums of a block of rows.
const SUMS: usize = 64 << 10;

/// Some rows of an image.
struct Block {
    frame: Frame,
    classes: Vec<Lines>,
}

/// The rows of one class.
struct Lines {
    tile: Tile,
    /// A weight and a place of the source for each channel and tap.
    steps: Vec<Step>,
    /// Where the tiles of each row begin.
    starts: Vec<isize>,
    rows: Range<usize>,
}

fn block(w: &Windows, classes: &[[&Phase; 3]], rows: Range<usize>, tiles: &[Tile]) -> Block {
    let frame = w.frame(&rows, w.stride[2]);
    let strides = frame.strides();
    let lines = |(class, &tile): (&[&Phase; 3], &Tile)| {
        let range = |a: usize| {
            if a == w.cut() { rows.start..rows.end.min(class[a].count) } else { 0..class[a].count }
        };
        let begin = |a: usize| if a == w.cut() { rows.start } else { 0 };
        let start = std::array::from_fn(|a| frame.start[a] - (begin(a) * w.stride[a]) as isize);
        let at = |p: [usize; 3]| p[0] as isize * strides[0] + p[1] as isize * strides[1] + frame.column(p[2]);
        let taps = w.taps(*class, [0; 3], at, start);
        let size = frame.size() as isize;
        let places = (0..w.sources as isize).flat_map(|c| taps.iter().map(move |t| c * size + t.1));
        let steps = places.enumerate().map(|(k, vector)| Step { number: k as isize, vector }).collect();
        let mut starts = Vec::new();
        for i in range(0) {
            for j in range(1) {
                let line = ((i - begin(0)) * w.stride[0]) as isize * strides[0]
                    + ((j - begin(1)) * w.stride[1]) as isize * strides[1];
                starts.extend((0..range(2).len()).step_by(tile.width).map(|k| line + k as isize));
            }
        }
        Lines { tile, steps, starts, rows: range(w.cut()) }
    };
    Block { frame, classes: classes.iter().zip(tiles).map(lines).collect() }
}

pub(super) fn run<T: Fused>(w: &Windows, source: Array<T>, kernel: Array<T>, out: &mut [T]) {
    let classes = w.classes();
    // The weights of each group, class by class, and channel by channel.
    let taps: Vec<Vec<(isize, isize)>> = classes
        .iter()
        .map(|&c| w.taps(c, kernel.inner, |_| 0, c.map(|p| p.taps.iter().map(|t| t.1).min().unwrap_or(0))))
        .collect();
    let mut first = vec![0];
    taps.iter().for_each(|t| first.push(first[first.len() - 1] + t.len() * w.sources * w.results));
    let group = first[first.len() - 1];
    let mut weights = filled(T::default(), group * w.groups);
    let [result, channel] = w.kernel_strides(&kernel);
    let mut next = weights.iter_mut();
    for g in 0..w.groups {
        // SAFETY: the kernel has the group.
        let from = unsafe { w.kernel_of(&kernel, g) };
        for taps in &taps {
            for r in 0..w.results as isize {
                for s in 0..w.sources as isize {
                    for (&(tap, _), to) in taps.iter().zip(&mut next) {
                        // SAFETY: a weight of the kernel.
                        *to = unsafe { *from.offset(r * result + s * channel + tap) };
                    }
                }
            }
        }
    }
    // As vectors of whole rows, unless the cut is along the row.
    let (rows, behind) = w.lengths();
    let height = (SUMS / size_of::<T>() / (behind.max(1) * w.results))
        .max(if w.cut() == 2 { rows } else { 1 })
        .min(rows);
    let tiles: Vec<Tile> = classes.iter().map(|c| low_tile::<T>(w.results, c[2].count)).collect();
    let blocks: Vec<Block> =
        (0..rows).step_by(height).map(|a| block(w, &classes, a..(a + height).min(rows), &tiles)).collect();
    let images = w.images * w.groups;
    let work = (rows * behind * group / blocks.len()).max(1);
    let [d, h, v] = w.to;
    let plane = d * h * v;
    let target = Target::new(out);
    parallel::split(images * blocks.len(), GRAIN.div_ceil(work), 1, |units| {
        let sizes = blocks.iter().map(|b| b.frame.size() * w.sources + widest(b));
        let size = sizes.max().unwrap_or(0);
        let sums =
            blocks.iter().flat_map(|b| &b.classes).map(|l| l.starts.len() * l.tile.width * padded(w, l.tile));
        let sums_size = sums.max().unwrap_or(0);
        with_scratch(size + sums_size, 0, |memory: *mut T| {
            for unit in units {
                let (image, block) = (unit / blocks.len(), &blocks[unit % blocks.len()]);
                let (image, g) = (image / w.groups, image % w.groups);
                // SAFETY: the image and group exist, the memory is large enough for both parts, and the rows of this unit are nobody else's.
                unsafe {
                    let first_of = source.at(image, g * w.sources);
                    block.frame.copy(first_of, source.outer[1], &source, w.sources, memory);
                    let sums = memory.add(size);
                    for (c, lines) in block.classes.iter().enumerate() {
                        let weights = weights[g * group + first[c]..].as_ptr();
                        let depth = lines.steps.len() as isize;
                        let lanes: Vec<isize> = (0..padded(w, lines.tile))
                            .map(|l| l.min(w.results - 1) as isize * depth)
                            .collect();
                        tile::run(&Tiles {
                            numbers: weights,
                            vectors: memory,
                            steps: &lines.steps,
                            lanes: &lanes,
                            starts: &lines.starts,
                            tile: lines.tile,
                            sums,
                            more: false,
                        });
                        let out = target.at(((image * w.groups + g) * w.results * plane) as isize);
                        store(w, classes[c], lines, sums, out);
                    }
                }
            }
        });
    });
}

/// Elements that the last tile may read behind its row.
fn widest(block: &Block) -> usize {
    block.classes.iter().map(|l| l.tile.width).max().unwrap_or(0)
}

/// Channels of the result, in whole tiles.
fn padded(w: &Windows, tile: Tile) -> usize {
    w.results.next_multiple_of(tile.height)
}

/// # Safety
/// Nobody else uses these rows of the channels from `out` on.
unsafe fn store<T: Copy>(w: &Windows, class: [&Phase; 3], lines: &Lines, sums: *const T, out: *mut T) {
    let [d, h, v] = w.to;
    let rows = |a: usize| if a == w.cut() { lines.rows.clone() } else { 0..class[a].count };
    let (width, lanes) = (lines.tile.width, padded(w, lines.tile));
    let place = |a: usize, q: usize| class[a].first + q * class[a].step;
    let mut from = sums;
    // SAFETY: as many sums as there are tiles, and places of the result.
    unsafe {
        for i in rows(0) {
            for j in rows(1) {
                let out = out.add((place(0, i) * h + place(1, j)) * v);
                for first in (0..class[2].count).step_by(width) {
                    let n = width.min(class[2].count - first);
                    for r in 0..w.results {
                        let (from, out) = (from.add(r * width), out.add(r * d * h * v + place(2, first)));
                        match class[2].step {
                            1 => movement::copy_short(from, out, n),
                            s => (0..n).for_each(|k| *out.add(k * s) = *from.add(k)),
                        }
                    }
                    from = from.add(lanes * width);
                }
            }
        }
    }
}
