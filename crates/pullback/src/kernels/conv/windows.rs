//! Results that are each the sum over a window of the source: the convolution, and the gradient of its input.
//!
//! With a stride the places of an input gradient fall into phases, each of which is reached by its own taps of the kernel; then each phase
//! is a convolution with stride 1, and nothing is multiplied with zeros between.

use super::super::matmul::Fused;
use super::pack::Frame;
use super::tile::vector_bytes;
use super::{Array, Geometry};

/// Places along an axis that are reached by the same taps: `first`, `first + step`, ..
#[derive(Clone, Debug)]
pub(super) struct Phase {
    pub first: usize,
    pub step: usize,
    pub count: usize,
    /// Taps of the kernel, and the place of the source that each reads for the first result.
    pub taps: Vec<(usize, isize)>,
}

pub(super) struct Windows {
    pub images: usize,
    pub groups: usize,
    /// Channels of a group that are read, and that are written.
    pub sources: usize,
    pub results: usize,
    /// The lengths of the source and of the result.
    pub from: [usize; 3],
    pub to: [usize; 3],
    /// Steps in the source from one place of a phase to the next.
    pub stride: [usize; 3],
    pub phases: [Vec<Phase>; 3],
    /// Whether the first axis of the kernel has the channels that are read.
    turned: bool,
}

impl Windows {
    pub fn of_output(g: &Geometry) -> Windows {
        let phases = g.spans.each_ref().map(|s| {
            let taps = (0..s.k).map(|t| (t, (t * s.dilation) as isize - s.low as isize)).collect();
            vec![Phase { first: 0, step: 1, count: s.y, taps }]
        });
        Windows {
            images: g.images,
            groups: g.groups,
            sources: g.inputs,
            results: g.outputs,
            from: g.extents(|s| s.x),
            to: g.extents(|s| s.y),
            stride: g.extents(|s| s.stride),
            phases,
            turned: false,
        }
    }

    /// Place `p` of the input is read by output `i` with tap `t` where `p + low = i stride + t dilation`. With `p + low = q stride + r` that is
    /// `i = q - (t dilation - r) / stride`, for the taps whose division has no rest.
    pub fn of_input(g: &Geometry) -> Windows {
        let phases = g.spans.each_ref().map(|s| {
            let phase = |r: usize| {
                let q = s.low.saturating_sub(r).div_ceil(s.stride);
                let first = q * s.stride + r - s.low;
                let count = s.x.saturating_sub(first).div_ceil(s.stride);
                let reach = (0..s.k).filter(|t| t * s.dilation % s.stride == r);
                let at = |t: usize| q as isize - ((t * s.dilation - r) / s.stride) as isize;
                Phase { first, step: s.stride, count, taps: reach.map(|t| (t, at(t))).collect() }
            };
            (0..s.stride.min(s.x)).map(|r| (r + s.low) % s.stride).map(phase).collect()
        });
        Windows {
            images: g.images,
            groups: g.groups,
            sources: g.outputs,
            results: g.inputs,
            from: g.extents(|s| s.y),
            to: g.extents(|s| s.x),
            stride: [1; 3],
            phases,
            turned: true,
        }
    }

    /// Whether a vector of channels would be mostly empty, and one of pixels is not.
    pub fn is_narrow<T>(&self) -> bool {
        let vector = vector_bytes() / size_of::<T>();
        self.results * 4 <= vector && self.to[2] * 2 >= vector
    }

    pub fn run<T: Fused>(&self, source: Array<T>, kernel: Array<T>, out: &mut [T]) {
        match self.is_narrow::<T>() {
            true => super::rows::run(self, source, kernel, out),
            false => super::channels::run(self, source, kernel, out),
        }
    }

    /// All combinations of phases along the axes.
    pub fn classes(&self) -> Vec<[&Phase; 3]> {
        let [d, h, w] = &self.phases;
        let all = d.iter().flat_map(|d| h.iter().flat_map(move |h| w.iter().map(move |w| [d, h, w])));
        all.filter(|class| class.iter().all(|p| p.count > 0)).collect()
    }

    /// The taps of a class: a number for each tap of the kernel, and where each reads in a frame that begins at `start`.
    pub fn taps(
        &self,
        class: [&Phase; 3],
        kernel: [isize; 3],
        at: impl Fn([usize; 3]) -> isize,
        start: [isize; 3],
    ) -> Vec<(isize, isize)> {
        let mut all = Vec::new();
        for &(i, a) in &class[0].taps {
            for &(j, b) in &class[1].taps {
                for &(k, c) in &class[2].taps {
                    let tap = i as isize * kernel[0] + j as isize * kernel[1] + k as isize * kernel[2];
                    all.push((
                        tap,
                        at([(a - start[0]) as usize, (b - start[1]) as usize, (c - start[2]) as usize]),
                    ));
                }
            }
        }
        all
    }

    /// The axis along which the work is cut: the first one that is longer than 1.
    pub fn cut(&self) -> usize {
        self.to.iter().position(|&n| n > 1).unwrap_or(2)
    }

    /// How many places there are along the axis that is cut, at most, and in what lies behind it.
    pub fn lengths(&self) -> (usize, usize) {
        let most = |a: usize| self.phases[a].iter().map(|p| p.count).max().unwrap_or(0);
        (most(self.cut()), (self.cut() + 1..3).map(most).product())
    }

    /// What some places along the cut read, of all classes.
    pub fn frame(&self, rows: &std::ops::Range<usize>, apart: usize) -> Frame {
        let mut frame = Frame { start: [0; 3], len: [0; 3], extent: self.from, apart };
        for a in 0..3 {
            let rows =
                |p: &Phase| if a == self.cut() { rows.start..rows.end.min(p.count) } else { 0..p.count };
            let stride = self.stride[a] as isize;
            let mut reach: Option<(isize, isize)> = None;
            for (p, &(_, at)) in self.phases[a].iter().flat_map(|p| p.taps.iter().map(move |t| (p, t))) {
                let rows = rows(p);
                if rows.is_empty() {
                    continue;
                }
                let (low, high) = (rows.start as isize * stride + at, (rows.end as isize - 1) * stride + at);
                reach = Some(reach.map_or((low, high), |(l, h)| (l.min(low), h.max(high))));
            }
            let (low, high) = reach.unwrap_or((0, 0));
            (frame.start[a], frame.len[a]) = (low, (high - low + 1) as usize);
        }
        frame
    }

    /// The step from one channel of the kernel to the next: of those that are written, and of those that are read.
    pub fn kernel_strides<T>(&self, kernel: &Array<T>) -> [isize; 2] {
        if self.turned { [kernel.outer[1], kernel.outer[0]] } else { kernel.outer }
    }

    /// The first element of the kernel of a group.
    ///
    /// # Safety
    /// The kernel has that group.
    pub unsafe fn kernel_of<T>(&self, kernel: &Array<T>, group: usize) -> *const T {
        // SAFETY: the caller's promise.
        unsafe { kernel.at(group * if self.turned { self.sources } else { self.results }, 0) }
    }
}
