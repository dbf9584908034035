use super::super::sample::{Dice, Strided, cases, shape};
use super::*;

/// Sums in f64, and the sum of the absolute terms by which errors are measured.
fn naive(a: &Strided<f64>, b: &Strided<f64>) -> Vec<(f64, f64)> {
    let rank = a.shape.len();
    let mut shape = a.shape.clone();
    shape[rank - 1] = b.shape[rank - 1];
    let mut out = Vec::new();
    super::super::sample::indices(&shape, |index| {
        let (mut ia, mut ib) = (index.to_vec(), index.to_vec());
        let mut sum = (0.0, 0.0);
        for p in 0..a.shape[rank - 1] {
            ia[rank - 1] = p;
            ib[rank - 2] = p;
            let term = a.at(&ia) * b.at(&ib);
            sum = (sum.0 + term, sum.1 + term.abs());
        }
        out.push(sum);
    });
    out
}

fn close(out: impl IntoIterator<Item = f64>, expected: &[(f64, f64)], eps: f64) -> bool {
    out.into_iter().zip(expected).all(|(x, &(y, scale))| (x - y).abs() <= eps * scale)
}

#[test]
fn products_of_random_layouts() {
    let mut r = Dice(5);
    for case in cases(150) {
        let batch = shape(&mut r, case % 3, 4);
        let most = [6, 20, 70][case % 3];
        let mut size = || if r.roll(4) == 0 { 1 } else { 1 + r.roll(most) };
        let (m, k, n) = (size(), size(), size());
        let a = Strided::random(&mut r, &[&batch[..], &[m, k]].concat(), |r| r.unit());
        let b = Strided::random(&mut r, &[&batch[..], &[k, n]].concat(), |r| r.unit());
        let expected = naive(&a, &b);
        let mut out = vec![f64::NAN; expected.len()];
        matmul(a.view(), b.view(), &mut out);
        assert!(close(out, &expected, 1e-14), "f64 {:?} {:?}", a.shape, b.shape);

        let (a32, b32) = (a.cast(|x| x as f32), b.cast(|x| x as f32));
        let mut out = vec![f32::NAN; expected.len()];
        matmul(a32.view(), b32.view(), &mut out);
        assert!(close(out.iter().map(|&x| x as f64), &expected, 3e-6), "f32 {:?} {:?}", a.shape, b.shape);

        let (a16, b16) = (a.cast(f16::from_f64), b.cast(f16::from_f64));
        let exact = naive(&a16.cast(f16::to_f64), &b16.cast(f16::to_f64));
        let mut out = vec![f16::NAN; expected.len()];
        matmul(a16.view(), b16.view(), &mut out);
        assert!(close(out.iter().map(|x| x.to_f64()), &exact, 1e-3), "f16 {:?} {:?}", a.shape, b.shape);

        let (ai, bi) = (a.cast(|x| (x * 9.0) as i64), b.cast(|x| (x * 9.0) as i64));
        let exact = naive(&ai.cast(|x| x as f64), &bi.cast(|x| x as f64));
        let mut out = vec![0; expected.len()];
        matmul(ai.view(), bi.view(), &mut out);
        assert!(close(out.iter().map(|&x| x as f64), &exact, 0.0), "i64");
    }
}

#[test]
fn zero_dimensions() {
    let mut out = [f32::NAN; 6];
    matmul(View::new(&[], 0, &[2, 0], &[0, 1]), View::new(&[], 0, &[0, 3], &[3, 1]), &mut out);
    assert_eq!(out, [0.0; 6]);
    matmul(View::new(&[], 0, &[0, 2], &[2, 1]), View::new(&[1f32, 2.0], 0, &[2, 1], &[1, 1]), &mut []);
}

/// Every element of a small product is one chain of multiply-adds, whatever the vectors are and however rows and columns are left over.
#[test]
fn small_products_are_chains_with_every_isa() {
    use super::super::isa::forced::with_each_isa;
    let mut r = Dice(10);
    for (m, n, k) in [(2, 2, 1), (4, 32, 7), (7, 63, 20), (13, 37, 512), (1 + small::ROWS, 16, 3)] {
        let mut random = |n: usize| (0..n).map(|_| r.unit() as f32).collect::<Vec<_>>();
        let (a, b) = (random(m * k), random(k * n));
        for transposed in [false, true] {
            let (row, column) = if transposed { (1, m) } else { (k, 1) };
            let transposed: Vec<f32> = (0..k * n).map(|e| b[e % k * n + e / k]).collect();
            let chain = |i: usize, j: usize, fused: bool| {
                (0..k).fold(0f32, |sum, p| match (a[i * row + p * column], b[p * n + j]) {
                    (x, y) if fused => x.mul_add(y, sum),
                    (x, y) => x * y + sum,
                })
            };
            let [split, fused] =
                [false, true].map(|f| (0..m * n).map(|e| chain(e / n, e % n, f)).collect::<Vec<_>>());
            with_each_isa(|isa| {
                let mut out = vec![f32::NAN; m * n];
                let a = Matrix { first: a.as_ptr(), row: row as isize, column: column as isize };
                let d = Dims { m, n, k };
                let along = Matrix { first: b.as_ptr(), row: n as isize, column: 1 };
                let across = Matrix { first: transposed.as_ptr(), row: 1, column: k as isize };
                for b in [along, across].into_iter().take(if small::is_along(d) { 1 } else { 2 }) {
                    out.fill(f32::NAN);
                    // SAFETY: the matrices made above.
                    unsafe { small::product(d, a, b, Target::new(&mut out), 0, n) };
                    assert!(out == fused || out == split, "{m} x {k} x {n}, {isa:?}");
                }
            });
        }
    }
}

/// The promise on which the splitting rests: the rows of a panel have the same bits when they are cut.
#[test]
fn pieces_have_the_bits_of_the_whole() {
    let mut r = Dice(6);
    for (m, n, k) in [
        (700, 3, 1500),
        (500, 60, 1100),
        (250, 130, 600),
        (130, 90, 700),
        (100, 128, 1024),
        (4001, 1, 1200),
        (320, 2, 7000),
    ] {
        for transposed in 0..4 {
            let data: Vec<f32> = (0..(m * k).max(k * n)).map(|_| r.unit() as f32).collect();
            let layout = |rows: usize, columns: usize, t: bool| {
                if t { (1, rows as isize) } else { (columns as isize, 1) }
            };
            let (row, column) = layout(m, k, transposed & 1 == 1);
            let a = Matrix { first: data.as_ptr(), row, column };
            let (row, column) = layout(k, n, transposed & 2 == 2);
            let b = Matrix { first: data.as_ptr(), row, column };
            let piece: Piece<f32> = if n == 1 { vector::product } else { by_gemm };
            let unit = unit(n);
            let compute = |cuts: &[usize]| {
                let mut out = vec![f32::NAN; m * n];
                let target = Target::new(&mut out);
                for w in cuts.windows(2) {
                    let d = Dims { m: w[1] - w[0], n, k };
                    // SAFETY: the pieces cover the matrices made above.
                    unsafe { piece(d, a.skip(w[0], 0), b, target, (w[0] * n) as isize, n) }
                }
                out.iter().map(|x| x.to_bits()).collect::<Vec<_>>()
            };
            let whole = compute(&[0, m]);
            let mut cuts: Vec<usize> = (0..m / unit).map(|u| u * unit).collect();
            cuts.push(m);
            assert!(whole == compute(&cuts), "{m} x {k} x {n}, transposed {transposed}");
            cuts.remove(1);
            assert!(whole == compute(&cuts), "{m} x {k} x {n}, transposed {transposed}");
        }
    }
}

#[test]
fn panels_and_columns_far_apart_are_multiplied_right() {
    let mut r = Dice(8);
    // More columns than one panel has, and columns of the right-hand side a power of two apart.
    for (m, n, k) in [(9, 130, 256), (40, 300, 512), (70, 257, 128), (1, 1300, 64), (8, 2, 256)] {
        let a = Strided {
            data: (0..m * k).map(|_| r.unit()).collect(),
            offset: 0,
            shape: vec![m, k],
            strides: vec![k as isize, 1],
        };
        let b = Strided {
            data: (0..k * n).map(|_| r.unit()).collect(),
            offset: 0,
            shape: vec![k, n],
            strides: vec![1, k as isize],
        };
        let expected = naive(&a, &b);
        let mut out = vec![f64::NAN; m * n];
        matmul(a.view(), b.view(), &mut out);
        assert!(close(out, &expected, 1e-14), "f64 {m} x {k} x {n}");
        let (a, b) = (a.cast(|x| x as f32), b.cast(|x| x as f32));
        let mut out = vec![f32::NAN; m * n];
        matmul(a.view(), b.view(), &mut out);
        assert!(close(out.iter().map(|&x| x as f64), &expected, 3e-6), "f32 {m} x {k} x {n}");
    }
}

/// Short rows and columns a power of two apart, in batches and alone, with more threads than matrices and fewer.
#[test]
fn scattered_factors_are_multiplied_right_by_any_number_of_threads() {
    let mut r = Dice(9);
    for (batch, m, n, k) in [(1, 300, 160, 64), (2, 150, 200, 64), (12, 20, 30, 16), (3, 9, 8, 256)] {
        let data: Vec<f64> = (0..batch * 512 * 512).map(|_| r.unit()).collect();
        for transposed in [false, true] {
            let a = Strided {
                data: data.clone(),
                offset: 3,
                shape: vec![batch, m, k],
                strides: vec![512 * 512, 512, 1],
            };
            let strides = if transposed { vec![512 * 512, 1, 512] } else { vec![512 * 512, 512, 1] };
            let b = Strided { data: data.clone(), offset: 5, shape: vec![batch, k, n], strides };
            let expected = naive(&a, &b);
            let run = |threads| {
                parallel::set_num_threads(threads);
                let mut out = vec![f64::NAN; batch * m * n];
                matmul(a.view(), b.view(), &mut out);
                out
            };
            let one = run(1);
            assert!([2, 5].into_iter().all(|threads| run(threads) == one), "{batch} x {m} x {k} x {n}");
            assert!(close(one, &expected, 1e-14), "{batch} x {m} x {k} x {n}");
        }
    }
}

#[test]
fn the_number_of_threads_does_not_change_the_bits() {
    let mut r = Dice(7);
    for (batch, m, n, k) in [
        (1, 300, 257, 200),
        (1, 200, 1024, 256),
        (1, 1, 5000, 900),
        (3, 100, 300, 300),
        (40, 30, 40, 300),
        (1, 5000, 1, 1001),
    ] {
        let a: Vec<f32> = (0..batch * m * k).map(|_| r.unit() as f32).collect();
        let b: Vec<f32> = (0..batch * n * k).map(|_| r.unit() as f32).collect();
        let (sa, sb) = ([batch, m, k], [batch, k, n]);
        let (ta, tb) = (row_major(&sa), row_major(&sb));
        let run = |threads| {
            parallel::set_num_threads(threads);
            let mut out = vec![0f32; batch * m * n];
            matmul(View::new(&a, 0, &sa, &ta), View::new(&b, 0, &sb, &tb), &mut out);
            out
        };
        let one = run(1);
        assert!([2, 3, 8].into_iter().all(|threads| run(threads) == one), "{m} x {k} x {n}");
    }
}
