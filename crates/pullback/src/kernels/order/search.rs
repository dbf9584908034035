//! Where elements belong in sorted lanes.

use super::super::movement::Target;
use super::super::parallel;
use super::super::strided::Axes;
use super::super::view::View;
use super::key::Ordered;

/// Elements a thread should have before another one is worth waking.
const GRAIN: usize = 1 << 12;

/// How many elements of a sorted lane are less than each value, or less or equal if `right`.
///
/// The lanes lie along the last axis of `sorted`; its other axes are the first ones of `values`, and each value is looked up in its lane.
pub(crate) fn search<T: Ordered>(sorted: View<T>, values: View<T>, right: bool, out: &mut [i64]) {
    assert_eq!(values.len(), out.len(), "search: one result for each value");
    if out.is_empty() {
        return;
    }
    let last = sorted.shape.len() - 1;
    let (n, step) = (sorted.shape[last], sorted.strides[last]);
    let lane = |k: usize| if k < last { sorted.strides[k] } else { 0 };
    let axes = Axes::new((0..values.shape.len()).map(|k| (values.shape[k], [values.strides[k], lane(k)])));
    let target = Target::new(out);
    parallel::split(axes.len(), GRAIN, 1, |range| {
        axes.walk(range, |i, [at, lane]| {
            let value = values.data[(values.offset as isize + at) as usize].key();
            let before = |j: usize| {
                let key = sorted.data[(sorted.offset as isize + lane + j as isize * step) as usize].key();
                if right { key <= value } else { key < value }
            };
            let (mut low, mut len) = (0, n);
            while len > 0 {
                let half = len / 2;
                if before(low + half) {
                    low += half + 1;
                    len -= half + 1;
                } else {
                    len = half;
                }
            }
            // SAFETY: inside the output; each value belongs to one thread.
            unsafe { *target.at(i as isize) = low as i64 };
        });
    });
}
