use super::super::view::View;
use super::*;
use crate::kernels::sample::Dice;
use std::cmp::Ordering;

/// NaN after every number.
fn compare(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

fn plain(x: &[f64], descending: bool) -> Vec<i64> {
    let mut order: Vec<i64> = (0..x.len() as i64).collect();
    let cmp = |a: &i64, b: &i64| compare(x[*a as usize], x[*b as usize]);
    order.sort_by(|a, b| if descending { cmp(b, a) } else { cmp(a, b) });
    order
}

fn sorted<T: Ordered>(x: &[T], descending: bool) -> Vec<i64> {
    let mut out = vec![0; x.len()];
    argsort(View::new(x, 0, &[x.len()], &[1]), 0, descending, &mut out);
    out
}

/// Numbers with ties, infinities, both zeros and NaN of both signs.
fn numbers(n: usize, dice: &mut Dice) -> Vec<f64> {
    let odd = [0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, -f64::NAN, 1.0, -1.0];
    (0..n).map(|_| if dice.roll(8) == 0 { odd[dice.roll(8)] } else { dice.unit() * 8.0 - 4.0 }).collect()
}

#[test]
fn every_type_and_length_is_sorted_and_equal_elements_keep_their_order() {
    let mut dice = Dice(1);
    let lengths = [1, 2, 7, 400, 600, 1500, if cfg!(miri) { 1501 } else { 100_000 }];
    for n in lengths {
        let x = numbers(n, &mut dice);
        let singles: Vec<f32> = x.iter().map(|&x| x as f32).collect();
        let halves: Vec<half::f16> = x.iter().map(|&x| half::f16::from_f64(x)).collect();
        let integers: Vec<i32> = x.iter().map(|&x| (x * 50.0).clamp(-300.0, 300.0) as i32).collect();
        let long: Vec<i64> = integers.iter().map(|&x| x as i64 * (1 << 40)).collect();
        let bytes: Vec<u8> = integers.iter().map(|&x| x as u8).collect();
        for d in [false, true] {
            assert_eq!(sorted(&x, d), plain(&x, d), "{n} f64");
            let wide = |v: Vec<f64>| plain(&v, d);
            assert_eq!(sorted(&singles, d), wide(singles.iter().map(|&x| x as f64).collect()), "{n} f32");
            assert_eq!(sorted(&halves, d), wide(halves.iter().map(|x| x.to_f64()).collect()), "{n} f16");
            assert_eq!(sorted(&integers, d), wide(integers.iter().map(|&x| x as f64).collect()), "{n} i32");
            assert_eq!(sorted(&long, d), wide(long.iter().map(|&x| x as f64).collect()), "{n} i64");
            assert_eq!(sorted(&bytes, d), wide(bytes.iter().map(|&x| x as f64).collect()), "{n} u8");
        }
    }
}

#[test]
fn lanes_are_sorted_along_any_axis_of_any_view() {
    let mut dice = Dice(2);
    let x: Vec<f32> = (0..60).map(|_| dice.roll(9) as f32).collect();
    // [3, 4, 5] read with its first axis backward.
    let (shape, strides) = ([3, 4, 5], [-20, 5, 1]);
    for axis in 0..3 {
        let view = View::new(&x, 40, &shape, &strides);
        let mut out = vec![0; 60];
        argsort(view, axis, false, &mut out);
        let own = row_major(&shape);
        for lane in 0..60 {
            let index = [lane / 20, lane / 5 % 4, lane % 5];
            if index[axis] != 0 {
                continue;
            }
            let at = |s: &[isize], j: usize| -> isize {
                (0..3).map(|k| s[k] * if k == axis { j } else { index[k] } as isize).sum()
            };
            let n = shape[axis];
            let own_lane: Vec<f64> = (0..n).map(|j| x[(40 + at(&strides, j)) as usize] as f64).collect();
            let found: Vec<i64> = (0..n).map(|j| out[at(&own, j) as usize]).collect();
            assert_eq!(found, plain(&own_lane, false), "axis {axis}");
        }
    }
}

#[test]
fn the_first_of_an_order_are_those_of_the_sorted_whole() {
    let mut dice = Dice(3);
    let long = if cfg!(miri) { 3000 } else { 200_000 };
    for (n, ks) in [(1, vec![0, 1]), (100, vec![1, 3, 100]), (long, vec![1, 10, 700, 2500])] {
        let random = numbers(n, &mut dice);
        let rising: Vec<f64> = (0..n).map(|i| (i / 3) as f64).collect();
        for x in [random, rising] {
            for (k, largest) in ks.iter().flat_map(|&k| [(k, true), (k, false)]) {
                let mut out = vec![0; k];
                select(View::new(&x, 0, &[n], &[1]), 0, k, largest, &mut out);
                assert_eq!(out, plain(&x, largest)[..k], "{k} of {n}, largest: {largest}");
                let singles: Vec<f32> = x.iter().map(|&x| x as f32).collect();
                let widened: Vec<f64> = singles.iter().map(|&x| x as f64).collect();
                select(View::new(&singles, 0, &[n], &[1]), 0, k, largest, &mut out);
                assert_eq!(out, plain(&widened, largest)[..k], "{k} of {n} f32, largest: {largest}");
            }
        }
    }
    // Many lanes that do not lie side by side.
    let x: Vec<i32> = (0..5000).map(|_| dice.roll(50) as i32).collect();
    let mut out = vec![0; 3 * 50];
    select(View::new(&x, 0, &[100, 50], &[50, 1]), 0, 3, true, &mut out);
    for c in 0..50 {
        let column: Vec<f64> = (0..100).map(|r| x[r * 50 + c] as f64).collect();
        let found: Vec<i64> = (0..3).map(|r| out[r * 50 + c]).collect();
        assert_eq!(found, plain(&column, true)[..3]);
    }
}

#[test]
fn values_are_found_on_both_sides_of_equal_ones() {
    let sorted = [-1.0, 0.0, 2.0, 2.0, f64::NAN];
    let values = [-5.0, -1.0, -0.0, 1.0, 2.0, 3.0, f64::NAN];
    let mut out = [0; 7];
    search(View::new(&sorted, 0, &[5], &[1]), View::new(&values, 0, &[7], &[1]), false, &mut out);
    assert_eq!(out, [0, 0, 1, 2, 2, 4, 4]);
    search(View::new(&sorted, 0, &[5], &[1]), View::new(&values, 0, &[7], &[1]), true, &mut out);
    assert_eq!(out, [0, 1, 2, 2, 4, 4, 5]);
    // Two lanes, each with its own values.
    let lanes = [1, 3, 5, 2, 4, 6];
    let values = [2, 5, 5, 1];
    let mut out = [9; 4];
    let (a, b) = (View::new(&lanes, 0, &[2, 3], &[3, 1]), View::new(&values, 0, &[2, 2], &[2, 1]));
    search::<i32>(a, b, false, &mut out);
    assert_eq!(out, [1, 2, 2, 0]);
}
