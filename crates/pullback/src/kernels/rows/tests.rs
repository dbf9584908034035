use super::super::sample::{Dice, Strided, cases, indices, shape};
use super::*;
use crate::kernels::isa::forced::with_each_isa;
use half::bf16;

/// The rows of an array, in f64.
fn rows_of<T: Copy>(x: &Strided<T>, f: impl Fn(T) -> f64) -> Vec<Vec<f64>> {
    let mut all = Vec::new();
    indices(&x.shape, |i| all.push(f(x.at(i))));
    all.chunks(*x.shape.last().unwrap()).map(<[f64]>::to_vec).collect()
}

fn lse(x: &[f64]) -> f64 {
    let max = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    max + x.iter().map(|x| (x - max).exp()).sum::<f64>().ln()
}

fn close(out: &[f64], expected: impl IntoIterator<Item = f64>, eps: f64) -> bool {
    out.iter().zip(expected).all(|(&a, b)| pullback_testing::close(a, b, eps))
}

/// Checks every function on one array, as the type that `to` and `from` convert to.
fn check<T>(
    x: &Strided<f64>,
    g: &Strided<f64>,
    labels: &Strided<i64>,
    to: fn(f64) -> T,
    from: fn(T) -> f64,
    eps: f64,
) where
    T: Compute<Wide: RowMath>,
{
    let (x, g) = (x.cast(to), g.cast(to));
    let (xs, gs) = (rows_of(&x, from), rows_of(&g, from));
    let n = *x.shape.last().unwrap();
    let mut out = vec![to(f64::NAN); x.view().len()];
    let each = |out: &[T], what: &str, f: &dyn Fn(usize) -> Vec<f64>| {
        for (i, row) in out.chunks(n).enumerate() {
            let row: Vec<f64> = row.iter().map(|&x| from(x)).collect();
            assert!(close(&row, f(i), eps), "{what}: {row:?} is not {:?}", f(i));
        }
    };
    let soft = |x: &[f64]| -> Vec<f64> { x.iter().map(|v| (v - lse(x)).exp()).collect() };
    softmax(x.view(), &mut out);
    each(&out, "softmax", &|i| soft(&xs[i]));
    log_softmax(x.view(), &mut out);
    each(&out, "log_softmax", &|i| xs[i].iter().map(|v| v - lse(&xs[i])).collect());

    softmax_pullback(x.view(), g.view(), &mut out);
    each(&out, "softmax_pullback", &|i| {
        let dot: f64 = xs[i].iter().zip(&gs[i]).map(|(y, g)| y * g).sum();
        xs[i].iter().zip(&gs[i]).map(|(y, g)| y * (g - dot)).collect()
    });
    log_softmax_pullback(x.view(), g.view(), &mut out);
    each(&out, "log_softmax_pullback", &|i| {
        let sum: f64 = gs[i].iter().sum();
        xs[i].iter().zip(&gs[i]).map(|(y, g)| g - y.exp() * sum).collect()
    });

    let mut losses = vec![to(f64::NAN); xs.len()];
    let mut wanted = Vec::new();
    indices(&labels.shape, |i| wanted.push(labels.at(i) as usize));
    cross_entropy(x.view(), labels.view(), 0.0, &mut losses).unwrap();
    let losses: Vec<f64> = losses.into_iter().map(from).collect();
    assert!(close(&losses, xs.iter().zip(&wanted).map(|(x, &l)| lse(x) - x[l]), eps), "cross_entropy");
    let weights = Strided::contiguous(gs.iter().map(|g| to(g[0])).collect(), &labels.shape);
    cross_entropy_pullback(x.view(), labels.view(), weights.view(), 0.0, &mut out).unwrap();
    each(&out, "cross_entropy_pullback", &|i| {
        let mut row = soft(&xs[i]);
        row[wanted[i]] -= 1.0;
        row.iter().map(|v| v * gs[i][0]).collect()
    });
}

#[test]
fn every_function_on_random_layouts() {
    let mut r = Dice(12);
    for case in cases(120) {
        let mut shape = shape(&mut r, 1 + case % 3, 6);
        *shape.last_mut().unwrap() = [1, 2, 31, 32, 33, 100][case % 6];
        let x = Strided::random(&mut r, &shape, |r| 3.0 * r.unit());
        let g = Strided::random(&mut r, &shape, |r| r.unit());
        let n = *shape.last().unwrap();
        let labels = Strided::random(&mut r, &shape[..shape.len() - 1], |r| r.roll(n) as i64);
        check::<f64>(&x, &g, &labels, |x| x, |x| x, 1e-13);
        check::<f32>(&x, &g, &labels, |x| x as f32, |x| x as f64, 2e-5);
        // One rounding of a bf16 is 2^-9; the sums are in f32.
        check::<bf16>(&x, &g, &labels, bf16::from_f64, bf16::to_f64, 1e-2);
    }
}

#[test]
fn logsumexp_over_any_axes() {
    let mut r = Dice(13);
    for case in cases(100) {
        let shape = shape(&mut r, 1 + case % 4, 6);
        let axes: Vec<usize> = (0..shape.len()).filter(|_| r.roll(2) == 0).collect();
        let x = Strided::random(&mut r, &shape, |r| 100.0 * r.unit());
        let mut sums: Vec<Vec<f64>> = Vec::new();
        let kept: Vec<usize> = (0..shape.len()).filter(|k| !axes.contains(k)).collect();
        sums.resize(kept.iter().map(|&k| shape[k]).product(), Vec::new());
        indices(&shape, |i| sums[kept.iter().fold(0, |at, &k| at * shape[k] + i[k])].push(x.at(i)));
        let mut out = vec![f64::NAN; sums.len()];
        logsumexp(x.view(), &axes, &mut out);
        assert!(close(&out, sums.iter().map(|x| lse(x)), 1e-14), "{shape:?} over {axes:?}");
    }
}

#[test]
fn infinities() {
    let (inf, n) = (f32::INFINITY, 40);
    let mut row = vec![-inf; n];
    let mut out = vec![0.0; n];
    let shape = [1, n];
    let strides = [n as isize, 1];
    let mut total = [0.0];
    softmax(View::new(&row, 0, &shape, &strides), &mut out);
    assert!(out.iter().all(|x| x.is_nan()));
    logsumexp_last(View::new(&row, 0, &shape, &strides), &mut total);
    assert_eq!(total, [-inf]);
    row[3] = 1.0;
    softmax(View::new(&row, 0, &shape, &strides), &mut out);
    assert!(out.iter().enumerate().all(|(i, &x)| x == if i == 3 { 1.0 } else { 0.0 }));
    log_softmax(View::new(&row, 0, &shape, &strides), &mut out);
    assert!(out.iter().enumerate().all(|(i, &x)| x == if i == 3 { 0.0 } else { -inf }));
    cross_entropy(View::new(&row, 0, &shape, &strides), View::new(&[2], 0, &[1], &[1]), 0.0, &mut total)
        .unwrap();
    assert_eq!(total, [inf]);
    row[5] = inf;
    logsumexp_last(View::new(&row, 0, &shape, &strides), &mut total);
    assert_eq!(total, [inf]);
    row[6] = f32::NAN;
    logsumexp_last(View::new(&row, 0, &shape, &strides), &mut total);
    assert!(total[0].is_nan());
}

#[test]
fn a_label_out_of_range_is_named() {
    let x = [0f32; 6];
    let view = View::new(&x, 0, &[2, 3], &[3, 1]);
    let error = cross_entropy(view, View::new(&[2, 3], 0, &[2], &[1]), 0.0, &mut [0.0; 2]).unwrap_err();
    assert_eq!(error, OutOfRange { position: 1, value: 3 });
    let error = cross_entropy(view, View::new(&[-1, 0], 0, &[2], &[1]), 0.0, &mut [0.0; 2]).unwrap_err();
    assert_eq!(error, OutOfRange { position: 0, value: -1 });
}

#[test]
fn the_number_of_threads_does_not_change_the_bits() {
    let mut r = Dice(14);
    let x: Vec<f32> = (0..300 * 777).map(|_| r.unit() as f32).collect();
    let run = |threads| {
        parallel::set_num_threads(threads);
        let mut out = vec![0.0; x.len()];
        softmax(View::new(&x, 0, &[300, 777], &[777, 1]), &mut out);
        out
    };
    assert!(run(1) == run(2));
}

#[test]
fn short_rows_taken_together_have_the_bits_of_single_ones() {
    let (mut r, count) = (Dice(15), 600);
    for n in 1..=34 {
        let mut x: Vec<f64> = (0..count * n).map(|_| 50.0 * r.unit()).collect();
        x[0] = f64::NEG_INFINITY;
        x[n..2 * n].fill(f64::NEG_INFINITY);
        x[3 * n - 1] = f64::INFINITY;
        x[4 * n - 1] = f64::NAN;
        // The same numbers with gaps between them, which are read row by row.
        let gaps: Vec<f64> = x.iter().flat_map(|&x| [x, 0.0]).collect();
        with_each_isa(|isa| {
            let (mut together, mut single) = (vec![0.0; count], vec![0.0; count]);
            logsumexp_last(View::new(&x, 0, &[count, n], &[n as isize, 1]), &mut together);
            logsumexp_last(View::new(&gaps, 0, &[count, n], &[2 * n as isize, 2]), &mut single);
            let same = |(a, b): (&f64, &f64)| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
            assert!(together.iter().zip(&single).all(same), "{isa:?}: rows of {n}");
            assert!(single[1] == f64::NEG_INFINITY && single[2] == f64::INFINITY && single[3].is_nan());
        });
    }
}
