//! The gradient of the kernel by vectors of pixels, for groups of few channels: every weight is a product of two rows, again and again.

use super::super::matmul::Fused;
use super::super::movement;
use super::super::parallel::{self, Disjoint};
use super::super::scratch::with_scratch;
use super::pack::Frame;
use super::tile::{self, Dots, Step, vector_bytes};
use super::windows::Windows;
use super::{Array, GRAIN, Geometry};
use std::ops::Range;

/// Bytes of a block of rows of the input.
const ROWS: usize = 64 << 10;

/// Some rows of the output, along the cut.
struct Block {
    frame: Frame,
    /// Where each tap begins in the frame, in whole tiles.
    taps: Vec<isize>,
    /// The pieces of the rows of the cotangent, and of the input under them.
    steps: Vec<Step>,
    rows: Range<usize>,
}

fn block(w: &Windows, rows: Range<usize>, vector: usize) -> Block {
    let frame = w.frame(&rows, w.stride[2]);
    let strides = frame.strides();
    let begin = |a: usize| if a == w.cut() { rows.start } else { 0 };
    let start = std::array::from_fn(|a| frame.start[a] - (begin(a) * w.stride[a]) as isize);
    let at = |p: [usize; 3]| p[0] as isize * strides[0] + p[1] as isize * strides[1] + frame.column(p[2]);
    let all = w.taps(w.phases.each_ref().map(|p| &p[0]), [0; 3], at, start);
    let mut taps: Vec<isize> = all.iter().map(|t| t.1).collect();
    taps.resize(taps.len().next_multiple_of(Dots::HEIGHT), taps[taps.len() - 1]);
    let length = |a: usize| if a == w.cut() { rows.len() } else { w.to[a] };
    let mut steps = Vec::new();
    for i in 0..length(0) {
        for j in 0..length(1) {
            let line = ((i * w.stride[0]) as isize) * strides[0] + ((j * w.stride[1]) as isize) * strides[1];
            let row = (i * length(1) + j) * pitch(w, vector);
            let pieces = (0..length(2)).step_by(vector);
            steps.extend(pieces.map(|k| Step { number: (row + k) as isize, vector: line + k as isize }));
        }
    }
    Block { frame, taps, steps, rows }
}

/// Elements of a row of the cotangent in whole vectors.
fn pitch(w: &Windows, vector: usize) -> usize {
    w.to[2].next_multiple_of(vector)
}

pub(super) fn run<T: Fused + Into<f64>>(g: &Geometry, x: Array<T>, y: Array<T>, out: &mut [T]) {
    let w = Windows::of_output(g);
    let vector = vector_bytes() / size_of::<T>();
    let count: usize = g.spans.iter().map(|s| s.k).product();
    let (rows, behind) = w.lengths();
    let whole = w.frame(&(0..rows), w.stride[2]).size().max(1);
    // A cut along the rows themselves is none.
    let height = if w.cut() == 2 { rows } else { (rows * ROWS / (whole * size_of::<T>())).clamp(1, rows) };
    let blocks: Vec<Block> =
        (0..rows).step_by(height).map(|a| block(&w, a..(a + height).min(rows), vector)).collect();
    let frame = blocks.iter().map(|b| b.frame.size()).max().unwrap_or(0) + vector;
    let cotangents = blocks.iter().map(|b| b.steps.len() * vector).max().unwrap_or(0);
    let taps = count.next_multiple_of(Dots::HEIGHT);
    let units = g.groups * g.outputs * g.inputs;
    let work = (g.images * rows * behind).saturating_mul(count).max(1);
    let out = Disjoint::new(out);
    parallel::split(units, GRAIN.div_ceil(work), 1, |range| {
        with_scratch(frame + cotangents + taps * vector, 0, |memory: *mut T| {
            for unit in range {
                let (o, i) = (unit / g.inputs, unit % g.inputs);
                let c = o / g.outputs * g.inputs + i;
                // SAFETY: the memory has three parts, the channels exist, and the weights are those of this unit.
                unsafe {
                    let (panel, sums) = (memory.add(frame), memory.add(frame + cotangents));
                    let totals = std::slice::from_raw_parts_mut(sums, taps * vector);
                    totals.fill(T::default());
                    for image in 0..g.images {
                        let (x_of, y_of) = (x.at(image, c), y.at(image, o));
                        for block in &blocks {
                            let size = block.frame.size();
                            block.frame.copy(x_of, 0, &x, 1, memory);
                            std::slice::from_raw_parts_mut(memory.add(size), frame - size).fill(T::default());
                            copy_rows(&w, block, &y, y_of, vector, panel);
                            let Block { taps, steps, .. } = block;
                            tile::dots(&Dots {
                                a: panel,
                                b: memory,
                                steps,
                                lanes: taps,
                                width: vector,
                                sums,
                            });
                        }
                    }
                    let to = out.part(unit * count..(unit + 1) * count);
                    for (t, (to, sums)) in to.iter_mut().zip(totals.chunks_exact(vector)).enumerate() {
                        let sum = sums.iter().fold(T::default(), |a, &b| a + b);
                        // Behind its rows a cotangent of 0 meets numbers that belong to no product.
                        *to =
                            if Into::<f64>::into(sum).is_finite() { sum } else { plain(g, &x, c, &y, o, t) };
                    }
                }
            }
        });
    });
}

/// Rows of the cotangent, each filled up with zeros.
///
/// # Safety
/// The pointer is to a channel of the cotangent, and there is memory for the rows.
unsafe fn copy_rows<T: Copy + Default>(
    w: &Windows,
    block: &Block,
    y: &Array<T>,
    first: *const T,
    vector: usize,
    to: *mut T,
) {
    let range = |a: usize| if a == w.cut() { block.rows.clone() } else { 0..w.to[a] };
    let mut to = to;
    for i in range(0) {
        for j in range(1) {
            // SAFETY: the caller's promise.
            unsafe {
                let from = first.offset(i as isize * y.inner[0] + j as isize * y.inner[1]);
                let row = std::slice::from_raw_parts_mut(to, pitch(w, vector));
                let (inside, behind) = row.split_at_mut(w.to[2]);
                match y.inner[2] {
                    1 => movement::copy_short(from, inside.as_mut_ptr(), inside.len()),
                    s => inside.iter_mut().enumerate().for_each(|(k, o)| *o = *from.offset(k as isize * s)),
                }
                behind.fill(T::default());
                to = to.add(row.len());
            }
        }
    }
}

/// One weight, of nothing but its own products.
///
/// # Safety
/// The arrays have these channels.
unsafe fn plain<T: Fused>(g: &Geometry, x: &Array<T>, c: usize, y: &Array<T>, o: usize, tap: usize) -> T {
    let [_, h, v] = g.spans;
    let taps = [tap / (h.k * v.k), tap / v.k % h.k, tap % v.k];
    let place = |a: usize, i: usize| {
        let s = g.spans[a];
        (i * s.stride + taps[a] * s.dilation)
            .checked_sub(s.low)
            .filter(|&p| p < s.x)
            .map(|p| p as isize * x.inner[a])
    };
    let mut sum = T::default();
    for image in 0..g.images {
        for (i, j, k) in
            (0..g.spans[0].y).flat_map(|i| (0..h.y).flat_map(move |j| (0..v.y).map(move |k| (i, j, k))))
        {
            if let (Some(p), Some(q), Some(r)) = (place(0, i), place(1, j), place(2, k)) {
                let at = i as isize * y.inner[0] + j as isize * y.inner[1] + k as isize * y.inner[2];
                // SAFETY: places of the two channels.
                sum = unsafe { *x.at(image, c).offset(p + q + r) * *y.at(image, o).offset(at) + sum };
            }
        }
    }
    sum
}
