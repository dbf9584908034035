//! The largest elements of windows.

use super::compute::Compute;
use super::conv::Span;
use super::math::Float;
use super::movement;
use super::parallel::{self, Disjoint};
use super::scratch::{filled, with_scratch};
use super::vectorised::vectorised;
use super::view::View;
use bytemuck::Pod;

/// Elements a thread should look at before another one is worth waking.
const GRAIN: usize = 1 << 14;

/// The position of the first largest element of each window over the last three axes, of which those in front may be missing. NaN is larger than all
/// numbers. Every window sees an element, and positions are below 2³¹.
pub(crate) fn arg_max<T: Compute<Wide: Pod> + Pod>(x: View<T>, spans: &[Span; 3], out: &mut [i64]) {
    let (plane, windows): (usize, usize) =
        (spans.iter().map(|s| s.x).product(), spans.iter().map(|s| s.y).product());
    if out.is_empty() {
        return;
    }
    assert_eq!(x.len() / plane, out.len() / windows, "pool: one result for each window");
    let mut packed = Vec::new();
    let data = x.as_slice().unwrap_or_else(|| {
        packed = filled(T::default(), x.len());
        movement::copy(x, &mut packed);
        &packed
    });
    let mut wide = Vec::new();
    let data = T::as_wide(data).unwrap_or_else(|| {
        wide = filled(T::Wide::default(), data.len());
        T::widen_all(data, &mut wide);
        &wide
    });
    let [d, h, w] = *spans;
    let rows = d.y * h.y;
    let work = w.y * spans.iter().map(|s| s.k).product::<usize>();
    let out = Disjoint::new(out);
    parallel::split(out_rows(data.len() / plane, rows), GRAIN.div_ceil(work), 1, |part| {
        with_scratch(2 * w.y, 0, |memory: *mut T::Wide| {
            with_scratch(w.y, 0, |positions: *mut i32| {
                // SAFETY: as many elements as were asked for, which are initialised and ours.
                let (best, at) = unsafe {
                    (
                        std::slice::from_raw_parts_mut(memory, w.y),
                        std::slice::from_raw_parts_mut(positions, w.y),
                    )
                };
                for row in part {
                    let (channel, i, j) = (row / rows, row % rows / h.y, row % h.y);
                    at.fill(-1);
                    best.fill(T::Wide::default());
                    let of_channel = &data[channel * plane..(channel + 1) * plane];
                    for (p, q) in places(d, i).flat_map(|p| places(h, j).map(move |q| (p, q))) {
                        let line = (p * h.x + q) * w.x;
                        let from = &of_channel[line..line + w.x];
                        (0..w.k).for_each(|t| tap(w, t, from, line as i32, best, at));
                    }
                    // SAFETY: each row is one thread's.
                    let out = unsafe { out.part(row * w.y..(row + 1) * w.y) };
                    out.iter_mut().zip(&*at).for_each(|(o, &p)| *o = p as i64);
                }
            });
        });
    });
}

fn out_rows(channels: usize, rows: usize) -> usize {
    channels * rows
}

/// The places that window `i` sees along an axis.
fn places(s: Span, i: usize) -> impl Iterator<Item = usize> + Clone {
    (0..s.k).filter_map(move |t| (i * s.stride + t * s.dilation).checked_sub(s.low).filter(|&p| p < s.x))
}

/// Looks at one tap of all windows along a row.
fn tap<F: Float>(s: Span, t: usize, row: &[F], line: i32, best: &mut [F], at: &mut [i32]) {
    // The windows of which this tap is inside of the row.
    let shift = t * s.dilation;
    let first = s.low.saturating_sub(shift).div_ceil(s.stride);
    let end = match (s.x + s.low).checked_sub(shift + 1) {
        Some(last) => (last / s.stride + 1).min(s.y),
        None => 0,
    };
    if first >= end {
        return;
    }
    let place = first * s.stride + shift - s.low;
    larger(&row[place..], s.stride, line + place as i32, &mut best[first..end], &mut at[first..end]);
}

vectorised! {
    /// Takes every element of the row, `stride` apart, that is larger than the best until now, or the first one.
    wide fn larger<F: Float>(row: &[F], stride: usize, line: i32, best: &mut [F], at: &mut [i32]) {
        let _ = FMA;
        /// # Safety
        /// The row has an element for each of the best.
        #[inline(always)]
        unsafe fn strided<F: Float>(row: &[F], stride: usize, line: i32, best: &mut [F], at: &mut [i32]) {
            for (k, (best, at)) in best.iter_mut().zip(at).enumerate() {
                // SAFETY: the caller's promise.
                let x = unsafe { *row.get_unchecked(k * stride) };
                // NaN is never larger, and nothing is larger than it.
                #[allow(clippy::eq_op)]
                let wins = (x > *best) | ((x != x) & (*best == *best)) | (*at < 0);
                *best = if wins { x } else { *best };
                *at = if wins { line + (k * stride) as i32 } else { *at };
            }
        }
        assert!((best.len() - 1) * stride < row.len());
        // SAFETY: the assertion.
        unsafe {
            match stride {
                1 => strided(row, 1, line, best, at),
                2 => strided(row, 2, line, best, at),
                _ => strided(row, stride, line, best, at),
            }
        }
    }
}
