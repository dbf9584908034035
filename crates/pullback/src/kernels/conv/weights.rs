//! The gradient of the kernel: for each of its elements a sum over all pixels of all images.
//!
//! Images are cut into parts that the shapes decide, each part has sums of its own, and these are added in order.

use super::super::matmul::Fused;
use super::super::movement::{self, Target};
use super::super::parallel;
use super::super::scratch::{filled, with_scratch};
use super::pack::Frame;
use super::tile::{self, HIGHEST, Step, Tile, Tiles, tile_of};
use super::windows::Windows;
use super::{Array, GRAIN, Geometry};

/// Pieces of work, at least, where there are images enough.
const PARTS: usize = 16;
/// Bytes of the cotangents that are gone through for one weight after the other.
const PANEL: usize = 16 << 10;
/// Bytes of a block of rows of the source.
const ROWS: usize = 384 << 10;

/// Some rows of the output, along the cut.
struct Block {
    frame: Frame,
    copied: bool,
    /// Where each channel and tap begins.
    lanes: Vec<isize>,
    /// Where the pixels lie.
    pixels: Vec<isize>,
    /// The first pixel.
    first: usize,
}

fn block<T>(g: &Geometry, w: &Windows, x: &Array<T>, rows: std::ops::Range<usize>) -> Block {
    let frame = w.frame(&rows, 1);
    let copied = !frame.is_inside();
    let (strides, channel) =
        if copied { (frame.strides(), frame.size() as isize) } else { (x.inner, x.outer[1]) };
    let begin = |a: usize| if a == w.cut() { rows.start } else { 0 };
    let start = std::array::from_fn(|a| frame.start[a] - (begin(a) * w.stride[a]) as isize);
    let class = w.phases.each_ref().map(|p| &p[0]);
    let at = |p: [usize; 3]| (0..3).map(|a| p[a] as isize * strides[a]).sum::<isize>();
    let taps = w.taps(class, [0; 3], at, start);
    let mut lanes: Vec<isize> =
        (0..g.inputs as isize).flat_map(|c| taps.iter().map(move |t| c * channel + t.1)).collect();
    lanes.resize(lanes.len().next_multiple_of(HIGHEST), lanes[lanes.len() - 1]);
    let range = |a: usize| if a == w.cut() { 0..rows.len() } else { 0..w.to[a] };
    let step = |a: usize| w.stride[a] as isize * strides[a];
    let mut pixels = Vec::new();
    for i in range(0) {
        for j in range(1) {
            for k in range(2) {
                pixels.push(i as isize * step(0) + j as isize * step(1) + k as isize * step(2));
            }
        }
    }
    let behind: usize = w.to[w.cut() + 1..].iter().product();
    Block { frame, copied, lanes, pixels, first: rows.start * behind }
}

pub(super) fn run<T: Fused + Into<f64>>(g: &Geometry, x: Array<T>, y: Array<T>, out: &mut [T]) {
    let w = Windows::of_output(g);
    if w.is_narrow::<T>() {
        return super::dots::run(g, x, y, out);
    }
    let weights = g.inputs * g.spans.iter().map(|s| s.k).product::<usize>();
    let (mut tiles, mut at) = (Vec::new(), 0);
    while at < g.outputs {
        let tile = tile_of::<T>(g.outputs - at);
        tiles.push((at, tile));
        at += tile.width;
    }
    let columns = at;
    let (rows, behind) = w.lengths();
    let whole = w.frame(&(0..rows), 1);
    let height = (rows * ROWS / (whole.size() * g.inputs * size_of::<T>()).max(1)).clamp(1, rows);
    let blocks: Vec<Block> =
        (0..rows).step_by(height).map(|a| block(g, &w, &x, a..(a + height).min(rows))).collect();
    let parts = (PARTS / (g.groups * g.outputs.div_ceil(64))).clamp(1, g.images);
    // The sums of every part, group and tile: channels and taps, each with its columns.
    let lanes = weights.next_multiple_of(HIGHEST);
    let size = lanes * columns;
    let mut sums = filled(T::default(), parts * g.groups * size);
    let target = Target::new(&mut sums);
    let units = g.groups * parts * tiles.len();
    let work = (g.images * rows * behind).saturating_mul(size) / (parts * tiles.len());
    parallel::split(units, GRAIN.div_ceil(work.max(1)), 1, |range| {
        for unit in range {
            let (t, rest) = (unit % tiles.len(), unit / tiles.len());
            let (group, part) = (rest / parts, rest % parts);
            let (channel, tile) = tiles[t];
            let first = (group * parts + part) * size + lanes * channel;
            for image in g.images * part / parts..g.images * (part + 1) / parts {
                for block in &blocks {
                    let more = image > g.images * part / parts || block.first > 0;
                    // SAFETY: the images and channels exist, and these sums are the unit's own.
                    unsafe {
                        let numbers = x.at(image, group * g.inputs);
                        let cotangent = y.at(image, group * g.outputs + channel);
                        let sums = target.at(first as isize);
                        add(
                            g,
                            &w,
                            block,
                            (&x, numbers),
                            (&y, cotangent),
                            (tile, tile.width.min(g.outputs - channel)),
                            sums,
                            more,
                        );
                    }
                }
            }
        }
    });
    // The parts in order, and columns back to channels.
    let out = Target::new(out);
    parallel::split(g.groups * tiles.len(), (1 << 15) / size.max(1) + 1, 1, |range| {
        for unit in range {
            let (group, (channel, tile)) = (unit / tiles.len(), tiles[unit % tiles.len()]);
            let n = lanes * tile.width;
            let at = |part: usize| (group * parts + part) * size + lanes * channel;
            // SAFETY: the sums and channels of this unit are nobody else's.
            unsafe {
                let total = std::slice::from_raw_parts_mut(target.at(at(0) as isize), n);
                for part in 1..parts {
                    let more = std::slice::from_raw_parts(target.at(at(part) as isize), n);
                    total.iter_mut().zip(more).for_each(|(a, &b)| *a = *a + b);
                }
                let to = out.at(((group * g.outputs + channel) * weights) as isize);
                let columns = tile.width.min(g.outputs - channel);
                movement::turn(total.as_ptr(), tile.width as isize, weights, columns, to, weights as isize);
            }
        }
    });
}

/// Adds what a block of pixels of one image contributes to the columns of a tile.
///
/// # Safety
/// The pointers are to the channels of an image, and the sums are there.
#[allow(clippy::too_many_arguments, reason = "the two arrays, and where they are read")]
unsafe fn add<T: Fused>(
    g: &Geometry,
    w: &Windows,
    block: &Block,
    (x, numbers): (&Array<T>, *const T),
    (y, cotangent): (&Array<T>, *const T),
    (tile, columns): (Tile, usize),
    sums: *mut T,
    more: bool,
) {
    let n = block.pixels.len();
    let copy = if block.copied { block.frame.size() * g.inputs } else { 0 };
    let width = tile.width;
    let lanes = &block.lanes[..(g.inputs * w.phases.iter().map(|p| p[0].taps.len()).product::<usize>())
        .next_multiple_of(tile.height)];
    with_scratch(copy + n * width, (copy + n * width) * size_of::<T>(), |memory: *mut T| {
        // SAFETY: the memory is large enough for both, and the rest is the caller's promise.
        unsafe {
            let numbers = match block.copied {
                true => {
                    block.frame.copy(numbers, x.outer[1], x, g.inputs, memory);
                    memory.cast_const()
                }
                false => numbers.offset((0..3).map(|a| block.frame.start[a] * x.inner[a]).sum()),
            };
            let panel = memory.add(copy);
            turn_pixels(w, block, y, cotangent, (width, columns), panel);
            let chunk = (PANEL / (width * size_of::<T>())).max(1);
            for (k, pixels) in block.pixels.chunks(chunk).enumerate() {
                let steps: Vec<Step> = pixels
                    .iter()
                    .enumerate()
                    .map(|(p, &number)| Step { number, vector: (p * width) as isize })
                    .collect();
                let vectors = panel.add(k * chunk * width);
                tile::run(&Tiles {
                    numbers,
                    vectors,
                    steps: &steps,
                    lanes,
                    starts: &[0],
                    tile,
                    sums,
                    more: more || k > 0,
                });
            }
        }
    });
}

/// The cotangents of a block, pixel by pixel, with zeros in the columns that are too many.
///
/// # Safety
/// As for [`add`].
unsafe fn turn_pixels<T: Fused>(
    w: &Windows,
    block: &Block,
    y: &Array<T>,
    cotangent: *const T,
    (width, columns): (usize, usize),
    panel: *mut T,
) {
    let [_, h, v] = w.to;
    let n = block.pixels.len();
    let flat = y.inner[2] == 1
        && (h == 1 || y.inner[1] == v as isize)
        && (w.to[0] == 1 || y.inner[0] == (h * v) as isize);
    // SAFETY: the caller's promise.
    unsafe {
        if flat {
            movement::turn(cotangent.add(block.first), y.outer[1], columns, n, panel, width as isize);
        } else {
            for p in 0..n {
                let at = block.first + p;
                let place = [at / v / h, at / v % h, at % v];
                let from = cotangent.offset((0..3).map(|a| place[a] as isize * y.inner[a]).sum());
                for c in 0..columns {
                    *panel.add(p * width + c) = *from.offset(c as isize * y.outer[1]);
                }
            }
        }
        if columns < width {
            for p in 0..n {
                std::slice::from_raw_parts_mut(panel.add(p * width + columns), width - columns)
                    .fill(T::default());
            }
        }
    }
}
