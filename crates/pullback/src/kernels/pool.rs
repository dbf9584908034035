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
use std::ops::Range;

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
    let taps: Vec<Tap> = (0..spans[2].k).filter_map(|t| Tap::new(spans[2], t)).collect();
    let work = windows * spans.iter().map(|s| s.k).product::<usize>();
    let row = spans[2].y;
    let out = Disjoint::new(out);
    parallel::split(data.len() / plane, GRAIN.div_ceil(work), 1, |part| {
        // SAFETY: each channel is one thread's.
        let out = unsafe { out.part(part.start * windows..part.end * windows) };
        with_scratch(row, 0, |best: *mut T::Wide| {
            with_scratch(row, 0, |at: *mut i32| {
                // SAFETY: as many elements as were asked for, which are initialised and ours.
                let (best, at) = unsafe {
                    (std::slice::from_raw_parts_mut(best, row), std::slice::from_raw_parts_mut(at, row))
                };
                channels(&data[part.start * plane..part.end * plane], spans, &taps, best, at, out);
            });
        });
    });
}

/// One place of all windows along a row: the windows that see it inside of the row, and where the first of them does.
struct Tap {
    windows: Range<usize>,
    place: usize,
}

impl Tap {
    fn new(s: Span, t: usize) -> Option<Tap> {
        let shift = t * s.dilation;
        let first = s.low.saturating_sub(shift).div_ceil(s.stride);
        let last = (s.x + s.low).checked_sub(shift + 1)?;
        let end = (last / s.stride + 1).min(s.y);
        (first < end).then(|| Tap { windows: first..end, place: first * s.stride + shift - s.low })
    }
}

/// The places that window `i` sees along an axis.
#[inline(always)]
fn places(s: Span, i: usize) -> impl Iterator<Item = usize> + Clone {
    (0..s.k).filter_map(move |t| (i * s.stride + t * s.dilation).checked_sub(s.low).filter(|&p| p < s.x))
}

/// Takes every element of the row, `stride` apart, that is larger than the best until now, or the first one.
///
/// # Safety
/// The row has an element for each of the best.
#[inline(always)]
unsafe fn larger<F: Float>(row: &[F], stride: usize, line: i32, best: &mut [F], at: &mut [i32]) {
    for (k, (best, at)) in best.iter_mut().zip(at).enumerate() {
        // SAFETY: the caller's promise.
        let x = unsafe { *row.get_unchecked(k * stride) };
        // NaN is never larger, and nothing is larger than it.
        #[allow(clippy::eq_op, reason = "NaN is what does not equal itself")]
        let wins = (x > *best) | ((x != x) & (*best == *best)) | (*at < 0);
        *best = if wins { x } else { *best };
        *at = if wins { line + (k * stride) as i32 } else { *at };
    }
}

vectorised! {
    /// The positions in channels that lie one after the other.
    wide fn channels<F: Float>(
        data: &[F],
        spans: &[Span; 3],
        taps: &[Tap],
        best: &mut [F],
        at: &mut [i32],
        out: &mut [i64],
    ) {
        let _ = FMA;
        let [d, h, w] = *spans;
        let mut rows = out.chunks_exact_mut(w.y);
        for channel in data.chunks_exact(d.x * h.x * w.x) {
            for (i, j) in (0..d.y).flat_map(|i| (0..h.y).map(move |j| (i, j))) {
                at.fill(-1);
                best.fill(F::ZERO);
                for (p, q) in places(d, i).flat_map(|p| places(h, j).map(move |q| (p, q))) {
                    let line = (p * h.x + q) * w.x;
                    let row = &channel[line..line + w.x];
                    for tap in taps {
                        let (best, at) = (&mut best[tap.windows.clone()], &mut at[tap.windows.clone()]);
                        let (row, line) = (&row[tap.place..], (line + tap.place) as i32);
                        assert!((best.len() - 1) * w.stride < row.len());
                        // SAFETY: the assertion.
                        unsafe {
                            match w.stride {
                                1 => larger(row, 1, line, best, at),
                                2 => larger(row, 2, line, best, at),
                                stride => larger(row, stride, line, best, at),
                            }
                        }
                    }
                }
                let out = rows.next().expect("one row for each of the windows'");
                out.iter_mut().zip(&*at).for_each(|(o, &p)| *o = p as i64);
            }
        }
    }
}
