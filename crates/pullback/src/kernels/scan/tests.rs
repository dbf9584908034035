use super::super::view::View;
use super::*;
use crate::kernels::sample::Dice;

/// The scan of one lane after the other.
fn plain<T: Copy, S: Step<T>>(x: &[T], n: usize, inner: usize, reverse: bool) -> Vec<S::Out> {
    let mut out: Vec<S::Out> = vec![S::value(S::START); x.len()];
    for lane in 0..x.len() / n {
        let base = lane / inner * n * inner + lane % inner;
        let mut state = S::START;
        for j in places(n, reverse) {
            let at = base + j as usize * inner;
            state = S::step(state, x[at], j as i64);
            out[at] = S::value(state);
        }
    }
    out
}

#[test]
fn scans_run_along_any_axis_in_both_directions() {
    let mut dice = Dice(1);
    for shape in [[3, 5, 4], [1, 40, 1], [2, 1, 3], [40, 3, 2], [1, 1, 1], [2, 7, 300]] {
        let x: Vec<f64> = (0..shape.iter().product()).map(|_| dice.unit() - 0.5).collect();
        let strides = row_major(&shape);
        for reverse in [false, true] {
            let mut out = vec![0.0; x.len()];
            scan::<f64, Product>(View::new(&x, 0, &shape, &strides), 1, reverse, &mut out);
            assert_eq!(out, plain::<f64, Product>(&x, shape[1], shape[2], reverse), "{shape:?}");
            let mut places = vec![0; x.len()];
            scan::<f64, Latest<true>>(View::new(&x, 0, &shape, &strides), 1, reverse, &mut places);
            assert_eq!(places, plain::<f64, Latest<true>>(&x, shape[1], shape[2], reverse), "{shape:?}");
        }
    }
}

#[test]
fn views_are_scanned_as_they_stand() {
    let x: Vec<i32> = (1..=6).collect();
    let mut out = [0; 6];
    // Transposed, and then backward along the scanned axis.
    scan::<i32, Sum>(View::new(&x, 0, &[3, 2], &[1, 3]), 0, false, &mut out);
    assert_eq!(out, [1, 4, 3, 9, 6, 15]);
    scan::<i32, Sum>(View::new(&x, 2, &[2, 3], &[3, -1]), 1, false, &mut out);
    assert_eq!(out, [3, 5, 6, 6, 11, 15]);
    scan::<i32, Sum>(View::new(&x[..1], 0, &[4], &[0]), 0, true, &mut out[..4]);
    assert_eq!(out[..4], [4, 3, 2, 1]);
}

/// A long sum is that of its blocks, whatever the direction and the stride.
#[test]
fn long_sums_are_exact_where_every_order_is() {
    let n = if cfg!(miri) { blocked::LONG + 5 } else { 3 * blocked::LONG + 777 };
    let mut dice = Dice(2);
    let x: Vec<f32> = (0..2 * n).map(|_| dice.roll(9) as f32 - 4.0).collect();
    for (stride, reverse) in [(1, false), (1, true), (-1, false), (-1, true)] {
        let from = if stride < 0 { n - 1 } else { 0 };
        let (shape, strides) = ([2, n], [n as isize, stride]);
        let mut out = vec![0f32; 2 * n];
        scan::<f32, Sum>(View::new(&x, from, &shape, &strides), 1, reverse, &mut out);
        for lane in 0..2 {
            let mut sum = 0.0;
            for j in places(n, reverse) {
                sum += x[(lane * n + from).wrapping_add_signed(j * stride)];
                assert_eq!(out[lane * n + j as usize], sum, "{stride} {reverse} at {j}");
            }
        }
    }
}

#[test]
fn long_sums_of_what_is_not_negative_never_fall() {
    let n = if cfg!(miri) { blocked::LONG } else { 200_000 };
    let mut dice = Dice(3);
    let x: Vec<f64> = (0..n).map(|_| dice.unit().abs() * 10f64.powi(-(dice.roll(18) as i32))).collect();
    let mut out = vec![0.0; n];
    scan::<f64, Sum>(View::new(&x, 0, &[n], &[1]), 0, false, &mut out);
    assert!(out.windows(2).all(|w| w[0] <= w[1]));
}

#[test]
fn sums_of_singles_are_rounded_once() {
    let n = 100_000;
    let x = vec![0.1f32; n];
    let mut out = vec![0f32; n];
    scan::<f32, Sum>(View::new(&x, 0, &[n], &[1]), 0, false, &mut out);
    assert_eq!(out[n - 1], (0.1f32 as f64 * n as f64) as f32);
}

#[test]
fn logarithms_of_sums_meet_infinities_and_nan() {
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    let of = |x: &[f64]| {
        let mut out = vec![0.0; x.len()];
        scan::<f64, LogSumExp>(View::new(x, 0, &[x.len()], &[1]), 0, false, &mut out);
        out
    };
    assert_eq!(of(&[-inf, -inf, 3.0, -inf]), [-inf, -inf, 3.0, 3.0]);
    assert_eq!(of(&[1.0, inf, inf, 2.0, -inf]), [1.0, inf, inf, inf, inf]);
    assert_eq!(of(&[1e308, -1e308, 1e308]), [1e308, 1e308, 1e308 + 2f64.ln()]);
    let y = of(&[1.0, nan, inf, 2.0]);
    assert!(y[0] == 1.0 && y[1..].iter().all(|y| y.is_nan()), "{y:?}");
    assert!((of(&[0.5, -1.0, 2.0])[2] - (0.5f64.exp() + (-1f64).exp() + 2f64.exp()).ln()).abs() < 1e-15);
}

#[test]
fn the_latest_of_equal_extremes_and_nan_stay() {
    let nan = f32::NAN;
    let x = [2.0, 1.0, 2.0, -0.0, nan, 5.0, nan, 0.0];
    let mut out = [0; 8];
    scan::<f32, Latest<true>>(View::new(&x, 0, &[8], &[1]), 0, false, &mut out);
    assert_eq!(out, [0, 0, 2, 2, 4, 4, 6, 6]);
    scan::<f32, Latest<false>>(View::new(&x, 0, &[8], &[1]), 0, false, &mut out);
    assert_eq!(out, [0, 1, 1, 3, 4, 4, 6, 6]);
}
