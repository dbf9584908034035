//! Slices, and assignment to parts.

use super::*;

#[test]
fn ranges_steps_positions_and_new_axes() {
    let x = ints(24).reshape([2, 3, 4]);
    let v = |t: Tensor| t.to_vec::<i64>();
    assert_eq!(v(x.slice((1, 2, 3))), [23]);
    assert_eq!(v(x.slice((-1, -1))), [20, 21, 22, 23]);
    assert_eq!(x.slice((.., 1..=1)).shape(), [2, 1, 4]);
    assert_eq!(v(x.slice((0, .., AxisRange::from(..).step(3)))), [0, 3, 4, 7, 8, 11]);
    assert_eq!(v(x.slice((0, 0, AxisRange::from(..).step(-1)))), [3, 2, 1, 0]);
    assert_eq!(v(x.slice((0, 0, AxisRange::from(..2).step(-1)))), [3]);
    assert_eq!(v(x.slice((0, 0, AxisRange::from(-2..0).step(-1)))), [2, 1]);
    assert_eq!(v(x.slice((0, 0, ..=-2))), [0, 1, 2]);
    let last = -1; // a literal would be taken for an empty range by clippy
    assert_eq!(v(x.slice((0, 0, 1..=last))), [1, 2, 3]);
    assert_eq!(x.slice((NewAxis, .., 0, NewAxis)).shape(), [1, 2, 1, 4]);
    assert_eq!(x.slice((.., NewAxis, NewAxis)).shape(), [2, 1, 1, 3, 4]);
    let ranges = [AxisRange::from(1), AxisRange::from(..2)];
    assert_eq!(x.slice(&ranges[..]).shape(), [2, 4]);
}

#[test]
fn assignment_to_parts() {
    let mut x = Tensor::zeros([3, 3]);
    x.slice_assign((.., 0), Tensor::from([1.0, 2.0, 3.0]));
    x.slice_assign(1, 9);
    x.slice_assign((AxisRange::from(..).step(-2), 2), Tensor::from([5.0f32, 6.0]));
    assert_eq!(x.to_vec::<f64>(), [1.0, 0.0, 6.0, 9.0, 9.0, 9.0, 3.0, 0.0, 5.0]);
}

fn range() -> impl Strategy<Value = (Option<isize>, Option<isize>, isize)> {
    let end = || proptest::option::of(-8isize..8);
    (end(), end(), prop_oneof![-3isize..=-1, 1isize..=3])
}

/// Python's rule, written as a walk.
fn walked(n: isize, (start, end, step): (Option<isize>, Option<isize>, isize)) -> Vec<i64> {
    let place = |p: isize| {
        let p = if p < 0 { p + n } else { p };
        if step > 0 { p.clamp(0, n) } else { p.clamp(-1, n - 1) }
    };
    let mut at = start.map_or(if step > 0 { 0 } else { n - 1 }, place);
    let end = end.map_or(if step > 0 { n } else { -1 }, place);
    let mut out = Vec::new();
    while if step > 0 { at < end } else { at > end } {
        out.push(at as i64);
        at += step;
    }
    out
}

proptest! {
    #[test]
    fn ranges_follow_python(n in 0i64..7, (start, end, step) in range()) {
        let taken = ints(n).slice(AxisRange::Range { start, end, step });
        prop_assert_eq!(taken.to_vec::<i64>(), walked(n as isize, (start, end, step)));
    }

    #[test]
    fn what_is_assigned_is_read_back(n in 0i64..7, (start, end, step) in range()) {
        let range = AxisRange::Range { start, end, step };
        let mut x = ints(n).cast(DType::F64).requires_grad() * 1.0;
        let part = Tensor::arange(100, 100 + x.slice(range).numel() as i64, 1);
        x.slice_assign(range, &part);
        prop_assert_eq!(x.slice(range).to_vec::<i64>(), part.to_vec::<i64>());
    }
}
