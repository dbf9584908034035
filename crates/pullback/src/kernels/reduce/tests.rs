use super::super::sample::{Dice, Strided, cases, indices, shape};
use super::super::strided::row_major;
use super::extreme::position;
use super::*;

/// The terms of each output, in row-major order, by plain indexing.
fn terms<T: Copy>(x: &Strided<T>, axes: &[usize]) -> Vec<Vec<T>> {
    let pick = |inside: bool| -> Vec<usize> {
        (0..x.shape.len()).filter(|k| axes.contains(k) == inside).map(|k| x.shape[k]).collect()
    };
    let mut out = Vec::new();
    indices(&pick(false), |outer| {
        let mut list = Vec::new();
        indices(&pick(true), |inner| {
            let (mut o, mut i) = (outer.iter(), inner.iter());
            let index: Vec<usize> = (0..x.shape.len())
                .map(|k| *if axes.contains(&k) { i.next() } else { o.next() }.unwrap())
                .collect();
            list.push(x.at(&index));
        });
        out.push(list);
    });
    out
}

fn run<T: Copy + Send + Sync, R: Reducer<T>>(x: &Strided<T>, axes: &[usize]) -> Vec<R::Out> {
    let n = (0..x.shape.len()).filter(|k| !axes.contains(k)).map(|k| x.shape[k]).product();
    let mut out = vec![R::finish(R::EMPTY); n];
    reduce::<T, R>(x.view(), axes, &mut out);
    out
}

fn random_case(r: &mut Dice, case: usize) -> (Vec<usize>, Vec<usize>) {
    let mut shape = shape(r, 1 + case % 4, 7);
    if case.is_multiple_of(3) {
        let k = r.roll(shape.len());
        let long = if cfg!(miri) { 500 } else { 5000 };
        shape[k] = [300, long, 0][case / 3 % 3] / if shape.len() > 2 { 10 } else { 1 };
    }
    let axes = (0..shape.len()).filter(|_| r.roll(2) == 0).collect();
    (shape, axes)
}

#[test]
fn floats_of_random_layouts() {
    let mut r = Dice(8);
    for case in cases(300) {
        let (shape, axes) = random_case(&mut r, case);
        let nan = case % 5 == 0;
        let x = Strided::random(&mut r, &shape, |r| {
            if nan && r.roll(40) == 0 { f64::NAN } else { 1.0 + 0.5 * r.unit() }
        });
        let x32 = x.cast(|x| x as f32);
        let close = |a: f64, b: f64, eps: f64| (a - b).abs() <= eps * b.abs() || (a.is_nan() && b.is_nan());
        let same = |a: f64, b: f64| a == b || (a.is_nan() && b.is_nan());
        let sums = run::<f64, Sum>(&x, &axes);
        let sums32 = run::<f32, Sum>(&x32, &axes);
        let (max, min) = (run::<f64, Max>(&x, &axes), run::<f64, Min>(&x, &axes));
        let (any, all) = (run::<f64, Any>(&x, &axes), run::<f64, All>(&x, &axes));
        let mut at = (vec![-1; sums.len()], vec![-1; sums.len()]);
        let expected = terms(&x, &axes);
        if expected.first().is_some_and(|t| !t.is_empty()) {
            position::<f64, Max>(x.view(), &axes, &mut at.0);
            position::<f64, Min>(x.view(), &axes, &mut at.1);
        }
        assert_eq!(expected.len(), sums.len());
        for (o, t) in expected.iter().enumerate() {
            let what = format!("{shape:?} over {axes:?}, strides {:?}", x.strides);
            assert!(close(sums[o], t.iter().sum(), 1e-13), "sum of {what}");
            assert!(close(sums32[o] as f64, t.iter().sum(), 1e-6), "sum in f32 of {what}");
            let nan = t.iter().any(|x| x.is_nan());
            let best =
                |f: fn(f64, f64) -> f64, none| if nan { f64::NAN } else { t.iter().copied().fold(none, f) };
            let (high, low) = (best(f64::max, f64::NEG_INFINITY), best(f64::min, f64::INFINITY));
            assert!(same(max[o], high), "max of {what}");
            assert!(same(min[o], low), "min of {what}");
            assert_eq!((any[o], all[o]), (!t.is_empty() as u8, 1), "truth of {what}");
            if !t.is_empty() {
                let first = |v: f64| t.iter().position(|&x| same(x, v)).unwrap() as i64;
                assert_eq!((at.0[o], at.1[o]), (first(high), first(low)), "position in {what}");
            }
        }
    }
}

/// Shapes that reach each of the loops: rows taken together, runs in place, short rows, wide columns.
#[test]
fn contiguous_arrays_of_many_shapes() {
    let mut r = Dice(15);
    for (shape, axes) in [
        (vec![3, 1003, 5], vec![1]),
        (vec![2, 5000, 3], vec![0, 1]),
        (vec![4, 6, 700], vec![0, 2]),
        (vec![2, 3, 9000], vec![0, 2]),
        (vec![50, 7], vec![1]),
        (vec![40, 600], vec![0]),
        (vec![17_000, 20], vec![0]),
        (vec![17_000, 130], vec![0]),
    ] {
        let data = (0..shape.iter().product()).map(|_| r.unit()).collect();
        let x = Strided::contiguous(data, &shape);
        let (sum, max) = (run::<f64, Sum>(&x, &axes), run::<f64, Max>(&x, &axes));
        let mut at = vec![0; sum.len()];
        position::<f64, Max>(x.view(), &axes, &mut at);
        for (o, t) in terms(&x, &axes).iter().enumerate() {
            let scale: f64 = t.iter().map(|x| x.abs()).sum();
            let high = t.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            assert!((sum[o] - t.iter().sum::<f64>()).abs() <= 1e-14 * scale, "{shape:?} over {axes:?}");
            assert_eq!((max[o], t[at[o] as usize]), (high, high), "{shape:?} over {axes:?}");
        }
    }
}

#[test]
fn integers_of_random_layouts() {
    let mut r = Dice(9);
    for case in cases(100) {
        let (shape, axes) = random_case(&mut r, case);
        let x = Strided::random(&mut r, &shape, |r| r.roll(7) as i32 - 2);
        let sum = run::<i32, Sum>(&x, &axes);
        let (any, all) = (run::<i32, Any>(&x, &axes), run::<i32, All>(&x, &axes));
        for (o, t) in terms(&x, &axes).iter().enumerate() {
            assert_eq!(sum[o], t.iter().map(|&x| x as i64).sum::<i64>());
            assert_eq!((any[o] == 1, all[o] == 1), (t.iter().any(|&x| x != 0), t.iter().all(|&x| x != 0)));
        }
    }
    let bytes = Strided::contiguous(vec![255u8; 1000], &[1000]);
    assert_eq!(run::<u8, Sum>(&bytes, &[0]), [255_000]);
}

#[test]
fn halves_are_summed_in_single_precision() {
    let x = Strided::contiguous(vec![half::f16::from_f32(0.1); 10_000], &[10_000]);
    // In f16 the sum would stop growing at 256.
    let exact = half::f16::from_f32(half::f16::from_f32(0.1).to_f32() * 10_000.0);
    assert_eq!(run::<half::f16, Sum>(&x, &[0]), [exact]);
}

#[test]
fn long_sums_stay_accurate() {
    let n = 3_000_000;
    let x = Strided::contiguous(vec![0.1f32; n], &[n / 2, 2]);
    let exact = n as f64 * 0.1f32 as f64;
    let error = |s: f32, exact: f64| (s as f64 / exact - 1.0).abs();
    // Equal terms are the worst case: all additions of a lane round the same way. A lane has 128 of them, of
    // 6e-8 each at most; one after the other the three million would be off by a hundredth.
    assert!(error(run::<f32, Sum>(&x, &[0, 1])[0], exact) < 4e-6);
    assert!(error(run::<f32, Sum>(&x, &[0])[1], exact / 2.0) < 4e-6);
    let wide = Strided { shape: vec![n / 10, 10], strides: vec![10, 1], ..x };
    assert!(run::<f32, Sum>(&wide, &[0]).iter().all(|&s| error(s, exact / 10.0) < 4e-6));
}

#[test]
fn the_number_of_threads_does_not_change_the_bits() {
    let mut r = Dice(10);
    for (shape, axes) in [
        (vec![1_000_003], vec![0]),
        (vec![50_000, 20], vec![0]),
        (vec![3, 100, 3000], vec![1]),
        (vec![5, 200_000], vec![1]),
        (vec![700, 1001], vec![1]),
    ] {
        let strides = row_major(&shape);
        let data: Vec<f32> = (0..shape.iter().product()).map(|_| r.unit() as f32).collect();
        let x = Strided { data, offset: 0, shape, strides: strides.to_vec() };
        let mut sums = [1, 2, 3, 8].map(|threads| {
            parallel::set_num_threads(threads);
            run::<f32, Sum>(&x, &axes)
        });
        let first = std::mem::take(&mut sums[0]);
        assert!(sums[1..].iter().all(|s| *s == first), "{:?} over {axes:?}", x.shape);
    }
}
