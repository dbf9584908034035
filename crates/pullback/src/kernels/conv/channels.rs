//! Windows by vectors of channels: a tile has some pixels and as many channels of the result as registers hold.

use super::super::matmul::Fused;
use super::super::movement::{self, Target};
use super::super::parallel;
use super::super::scratch::{filled, with_scratch};
use super::pack::Frame;
use super::tile::{self, HIGHEST, Step, Tile, Tiles, tile_of};
use super::windows::{Phase, Windows};
use super::{Array, GRAIN};
use std::ops::Range;

/// Bytes of the sums of a block of pixels, which wait in the second cache while its channels are added up.
const SUMS: usize = 192 << 10;
/// Bytes of the weights that are gone through for one pixel after the other.
const WEIGHTS: usize = 64 << 10;

/// Some pixels of an image.
struct Block {
    frame: Frame,
    /// Whether the pixels are read from a copy.
    copied: bool,
    classes: Vec<Pixels>,
}

/// The pixels of one class.
struct Pixels {
    /// Where the window of each pixel begins, and of as many more as fill the highest tile.
    lanes: Vec<isize>,
    /// How many pixels there are.
    len: usize,
    /// Where channels and taps lie: `sources` times as many as there are taps.
    places: Vec<isize>,
    rows: Range<usize>,
}

/// The weights as tiles read them: for every class, tile of channels, and group.
struct Panels<T> {
    data: Vec<T>,
    /// Where the weights of a class begin, in elements for one column.
    first: Vec<usize>,
    /// The channels that tiles begin with, the tiles, and how many columns are before them.
    tiles: Vec<(usize, Tile)>,
    columns: usize,
    group: usize,
}

impl<T> Panels<T> {
    fn at(&self, group: usize, class: usize, steps: usize, tile: usize) -> usize {
        group * self.group + self.first[class] * self.columns + steps * self.tiles[tile].0
    }
}

fn pack<T: Fused>(w: &Windows, kernel: &Array<T>, classes: &[[&Phase; 3]]) -> Panels<T> {
    let (mut tiles, mut at) = (Vec::new(), 0);
    while at < w.results {
        let tile = tile_of::<T>(w.results - at);
        tiles.push((at, tile));
        at += tile.width;
    }
    let taps: Vec<Vec<(isize, isize)>> = classes
        .iter()
        .map(|&c| w.taps(c, kernel.inner, |_| 0, c.map(|p| p.taps.iter().map(|t| t.1).min().unwrap_or(0))))
        .collect();
    let mut first = vec![0];
    taps.iter().for_each(|t| first.push(first[first.len() - 1] + t.len() * w.sources));
    let group = first[first.len() - 1] * at;
    let mut panels =
        Panels { data: filled(T::default(), group * w.groups), first, tiles, columns: at, group };
    let [result, source] = w.kernel_strides(kernel);
    let target = Target::new(&mut panels.data);
    let units = w.groups * panels.tiles.len();
    let (panels_ref, kernel) = (&panels, *kernel);
    parallel::split(units, (1 << 15) / (group / panels_ref.tiles.len()).max(1) + 1, 1, |part| {
        for unit in part {
            let (g, t) = (unit / panels_ref.tiles.len(), unit % panels_ref.tiles.len());
            let (channel, tile) = panels_ref.tiles[t];
            let columns = tile.width.min(w.results - channel);
            for (c, taps) in taps.iter().enumerate() {
                let first = panels_ref.at(g, c, taps.len() * w.sources, t);
                // SAFETY: the panel of this unit, and weights that the kernel has.
                unsafe {
                    let from = w.kernel_of(&kernel, g);
                    let mut to = target.at(first as isize);
                    for s in 0..w.sources as isize {
                        for &(tap, _) in taps {
                            for k in 0..columns as isize {
                                *to.offset(k) =
                                    *from.offset((channel as isize + k) * result + s * source + tap);
                            }
                            to = to.add(tile.width);
                        }
                    }
                }
            }
        }
    });
    panels
}

/// The pixels of some rows along the cut.
fn block<T>(w: &Windows, classes: &[[&Phase; 3]], source: &Array<T>, rows: Range<usize>) -> Block {
    let frame = w.frame(&rows, 1);
    let copied = !frame.is_inside();
    let (strides, channel) =
        if copied { (frame.strides(), frame.size() as isize) } else { (source.inner, source.outer[1]) };
    let pixels = |class: &[&Phase; 3]| {
        let range = |a: usize| {
            if a == w.cut() { rows.start..rows.end.min(class[a].count) } else { 0..class[a].count }
        };
        let step = |a: usize| w.stride[a] as isize * strides[a];
        let mut lanes = Vec::new();
        for i in range(0) {
            for j in range(1) {
                for k in range(2) {
                    lanes.push(i as isize * step(0) + j as isize * step(1) + k as isize * step(2));
                }
            }
        }
        // Rows of the cut are counted from the first of the block in the frame, and from the first of all in the source.
        let first = lanes.first().copied().unwrap_or(0);
        let start = std::array::from_fn(|a| {
            let begin = if a == w.cut() { (rows.start * w.stride[a]) as isize } else { 0 };
            frame.start[a] - begin
        });
        lanes.iter_mut().for_each(|l| *l -= first);
        let at = |p: [usize; 3]| (0..3).map(|a| p[a] as isize * strides[a]).sum::<isize>();
        let taps = w.taps(*class, [0; 3], at, start);
        let places =
            (0..w.sources as isize).flat_map(|c| taps.iter().map(move |t| c * channel + t.1)).collect();
        let len = lanes.len();
        // What a tile is too high for repeats the last pixel.
        lanes.resize(len.next_multiple_of(HIGHEST), lanes.last().copied().unwrap_or(0));
        Pixels { len, lanes, places, rows: range(w.cut()) }
    };
    Block { frame, copied, classes: classes.iter().map(pixels).collect() }
}

pub(super) fn run<T: Fused>(w: &Windows, source: Array<T>, kernel: Array<T>, out: &mut [T]) {
    let classes = w.classes();
    let panels = pack(w, &kernel, &classes);
    let tiles = panels.tiles.len();
    let (rows, behind) = w.lengths();
    // Rows of a block: as many as the cache holds sums for, and not so many that threads wait for each other.
    let widest = panels.tiles[0].1.width * size_of::<T>();
    let images = w.images * w.groups;
    let wanted = (4 * parallel::num_threads()).div_ceil(images);
    let height = (SUMS / widest / behind.max(1))
        .min(rows.div_ceil(wanted).max(96usize.div_ceil(behind.max(1))))
        .clamp(1, rows);
    let blocks: Vec<Block> =
        (0..rows).step_by(height).map(|a| block(w, &classes, &source, a..(a + height).min(rows))).collect();
    let parts = if images * blocks.len() < 2 * parallel::num_threads() { tiles } else { 1 };
    let work = (rows * behind).saturating_mul(panels.group) / (blocks.len() * parts);
    let plane: usize = w.to.iter().product();
    let target = Target::new(out);
    parallel::split(images * blocks.len() * parts, GRAIN.div_ceil(work.max(1)), 1, |units| {
        for unit in units {
            let (image, rest) = (unit / (blocks.len() * parts), unit % (blocks.len() * parts));
            let (block, part) = (&blocks[rest / parts], rest % parts);
            let (image, group) = (image / w.groups, image % w.groups);
            let tiles = if parts == 1 { 0..tiles } else { part..part + 1 };
            // SAFETY: the image and the group exist.
            let first = unsafe { source.at(image, group * w.sources) };
            let each = |numbers: *const T| {
                for t in tiles.clone() {
                    let (channel, tile) = panels.tiles[t];
                    for (c, pixels) in block.classes.iter().enumerate().filter(|(_, p)| p.len > 0) {
                        let panel = panels.at(group, c, pixels.places.len(), t);
                        let channel = (image * w.groups + group) * w.results + channel;
                        let columns = tile.width.min(panels.columns_left(w, t));
                        // SAFETY: windows are in the frame, the panel has a vector for each place, and the unit has these pixels of
                        // these channels to itself.
                        unsafe {
                            let to = target.at((channel * plane) as isize);
                            sum(pixels, numbers, &panels.data[panel..], tile, |sums| {
                                store(w, classes[c], pixels, sums, tile.width, columns, to);
                            });
                        }
                    }
                }
            };
            match block.copied {
                // SAFETY: the frame is inside of the source.
                false => each(unsafe {
                    first.offset((0..3).map(|a| block.frame.start[a] * source.inner[a]).sum())
                }),
                true => {
                    let size = block.frame.size() * w.sources;
                    with_scratch(size, size * size_of::<T>(), |memory: *mut T| {
                        // SAFETY: the channels are those of the source, and the memory is large enough.
                        unsafe { block.frame.copy(first, source.outer[1], &source, w.sources, memory) };
                        each(memory);
                    });
                }
            }
        }
    });
}

impl<T> Panels<T> {
    /// Channels of the result from a tile on.
    fn columns_left(&self, w: &Windows, tile: usize) -> usize {
        w.results - self.tiles[tile].0
    }
}

/// Lets `f` have the sums of all pixels for the channels of a tile.
///
/// # Safety
/// Every place of every lane is in bounds.
unsafe fn sum<T: Fused>(
    pixels: &Pixels,
    numbers: *const T,
    panel: &[T],
    tile: Tile,
    f: impl FnOnce(*const T),
) {
    let lanes = &pixels.lanes[..pixels.len.next_multiple_of(tile.height)];
    let size = lanes.len() * tile.width;
    let chunk = (WEIGHTS / (tile.width * size_of::<T>())).max(1);
    let mut steps: Vec<Step> = Vec::with_capacity(chunk.min(pixels.places.len()));
    with_scratch(size, size * size_of::<T>(), |sums: *mut T| {
        let mut done = 0;
        loop {
            let places = &pixels.places[done..(done + chunk).min(pixels.places.len())];
            steps.clear();
            steps.extend(
                places
                    .iter()
                    .enumerate()
                    .map(|(k, &number)| Step { number, vector: (k * tile.width) as isize }),
            );
            let vectors = panel[done * tile.width..].as_ptr();
            let job =
                Tiles { numbers, vectors, steps: &steps, lanes, starts: &[0], tile, sums, more: done > 0 };
            // SAFETY: the caller's promise; the sums are ours.
            unsafe { tile::run(&job) };
            done += places.len();
            if done >= pixels.places.len() {
                break;
            }
        }
        f(sums);
    });
}

/// Writes the sums, pixel by pixel, to their channels.
///
/// # Safety
/// Nobody else uses those pixels of the `columns` channels from `out` on.
unsafe fn store<T: Copy>(
    w: &Windows,
    class: [&Phase; 3],
    pixels: &Pixels,
    sums: *const T,
    width: usize,
    columns: usize,
    out: *mut T,
) {
    let [d, h, v] = w.to;
    let plane = (d * h * v) as isize;
    let rows = |a: usize| if a == w.cut() { pixels.rows.clone() } else { 0..class[a].count };
    // SAFETY: the places are in the result, which the caller has to himself.
    unsafe {
        if class.iter().all(|p| p.step == 1) {
            let behind = w.to[w.cut() + 1..].iter().product::<usize>();
            let out = out.add(pixels.rows.start * behind);
            return movement::turn(sums, width as isize, pixels.len, columns, out, plane);
        }
        let mut lane = 0;
        let place = |a: usize, q: usize| class[a].first + q * class[a].step;
        for i in rows(0) {
            for j in rows(1) {
                let out = out.add((place(0, i) * h + place(1, j)) * v);
                for c in 0..columns {
                    let out = out.offset(c as isize * plane);
                    for (n, k) in rows(2).enumerate() {
                        *out.add(place(2, k)) = *sums.add((lane + n) * width + c);
                    }
                }
                lane += rows(2).len();
            }
        }
    }
}
