//! Products with sparse matrices. The places of a matrix are two lists of the same length: rows and columns, in any order, and a place may be there
//! more than once.

use super::math::Float;
use super::parallel::{self, Disjoint};
use super::vectorised::vectorised;

/// Multiplications a thread should have before another one is worth waking.
const GRAIN: usize = 1 << 14;

/// A number of a list that is outside of what it counts: where it stands, and what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outside {
    pub position: usize,
    pub value: i64,
}

/// An error for the first number of a list that is not in `0..n`.
pub(crate) fn check(list: &[i64], n: usize) -> Result<(), Outside> {
    let outside = |&i: &i64| i as u64 >= n as u64;
    // One pass without branches; only a list that is wrong is searched.
    if !list.iter().fold(false, |any, i| any | outside(i)) {
        return Ok(());
    }
    let position = list.iter().position(outside).expect("one is outside");
    Err(Outside { position, value: list[position] })
}

/// `out[i, :] = Σ values[e] x[from[e], :]` over the entries with `to[e] = i`, of rows of `k` elements, added in the order of the entries whatever
/// the number of threads. The lists were [checked](check).
pub(crate) fn product<F: Float>(to: &[i64], from: &[i64], values: &[F], x: &[F], k: usize, out: &mut [F]) {
    assert!(to.len() == from.len() && from.len() == values.len(), "sparse product: lists of one length");
    if k == 0 || out.is_empty() {
        return;
    }
    if to.is_sorted() {
        return by_rows(to, from, values, x, k, out);
    }
    let (to, from, values) = sorted(to, from, values, out.len() / k);
    by_rows(&to, &from, &values, x, k, out);
}

/// The entries in the order of their rows, those of one row in the order in which they were.
fn sorted<F: Float>(to: &[i64], from: &[i64], values: &[F], rows: usize) -> (Vec<i64>, Vec<i64>, Vec<F>) {
    let mut next = vec![0usize; rows + 1];
    to.iter().for_each(|&i| next[i as usize + 1] += 1);
    for i in 0..rows {
        next[i + 1] += next[i];
    }
    let (mut rows, mut columns, mut ordered) =
        (vec![0; to.len()], vec![0; to.len()], vec![F::ZERO; to.len()]);
    for ((&i, &j), &v) in to.iter().zip(from).zip(values) {
        let at = next[i as usize];
        next[i as usize] += 1;
        (rows[at], columns[at], ordered[at]) = (i, j, v);
    }
    (rows, columns, ordered)
}

fn by_rows<F: Float>(to: &[i64], from: &[i64], values: &[F], x: &[F], k: usize, out: &mut [F]) {
    let rows = out.len() / k;
    let each = k * (1 + to.len() / rows);
    let out = Disjoint::new(out);
    parallel::split(rows, GRAIN.div_ceil(each), 1, |part| {
        let first = to.partition_point(|&i| (i as usize) < part.start);
        // SAFETY: parts are disjoint.
        let out = unsafe { out.part(part.start * k..part.end * k) };
        some_rows(part.start, &to[first..], &from[first..], &values[first..], x, k, out);
    });
}

vectorised! {
    /// The rows from `first` on that have a place in `out`, of entries that begin there and are sorted.
    fn some_rows<F: Float>(first: usize, to: &[i64], from: &[i64], values: &[F], x: &[F], k: usize, out: &mut [F]) {
        let entries = to.len().min(from.len()).min(values.len());
        let mut e = 0;
        for (row, out) in out.chunks_exact_mut(k).enumerate() {
            let row = (first + row) as i64;
            if let [out] = out {
                let mut sum = F::ZERO;
                while e < entries && to[e] == row {
                    sum = sum + values[e] * x[from[e] as usize];
                    e += 1;
                }
                *out = sum;
                continue;
            }
            out.fill(F::ZERO);
            while e < entries && to[e] == row {
                let (v, x) = (values[e], &x[from[e] as usize * k..][..k]);
                out.iter_mut().zip(x).for_each(|(o, &x)| *o = *o + v * x);
                e += 1;
            }
        }
    }
}

/// `out[e] = a[to[e], :] · b[from[e], :]`, of rows of `k` elements. The lists were [checked](check).
pub(crate) fn sampled<F: Float>(to: &[i64], from: &[i64], a: &[F], b: &[F], k: usize, out: &mut [F]) {
    assert!(to.len() == from.len() && from.len() == out.len(), "sampled product: lists of one length");
    let n = out.len();
    let out = Disjoint::new(out);
    parallel::split(n, GRAIN.div_ceil(k.max(1)), 1, |part| {
        // SAFETY: parts are disjoint.
        some_samples(&to[part.clone()], &from[part.clone()], a, b, k, unsafe { out.part(part) });
    });
}

vectorised! {
    fn some_samples<F: Float>(to: &[i64], from: &[i64], a: &[F], b: &[F], k: usize, out: &mut [F]) {
        const LANES: usize = 8;
        for ((out, &i), &j) in out.iter_mut().zip(to).zip(from) {
            let (a, b) = (&a[i as usize * k..][..k], &b[j as usize * k..][..k]);
            let (mut sums, mut sum) = ([F::ZERO; LANES], F::ZERO);
            let (whole_a, whole_b) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
            whole_a.remainder().iter().zip(whole_b.remainder()).for_each(|(&a, &b)| sum = sum + a * b);
            for (a, b) in whole_a.zip(whole_b) {
                (0..LANES).for_each(|l| sums[l] = sums[l] + a[l] * b[l]);
            }
            *out = sums.into_iter().fold(sum, |s, v| s + v);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::Dice;
    use super::*;

    /// Every entry by itself, in order.
    fn plainly(to: &[i64], from: &[i64], values: &[f64], x: &[f64], k: usize, rows: usize) -> Vec<f64> {
        let mut out = vec![0.0; rows * k];
        for ((&i, &j), &v) in to.iter().zip(from).zip(values) {
            (0..k).for_each(|c| out[i as usize * k + c] += v * x[j as usize * k + c]);
        }
        out
    }

    #[test]
    fn products_of_any_pattern() {
        let mut r = Dice(5);
        for case in 0..40 {
            let (rows, columns, k) = (1 + r.roll(9), 1 + r.roll(9), r.roll(12));
            let large = if case % 10 == 0 && !cfg!(miri) { 40_000 } else { 30 };
            let entries = r.roll(large + 1);
            let mut to: Vec<i64> = (0..entries).map(|_| r.roll(rows) as i64).collect();
            if case % 2 == 0 {
                to.sort();
            }
            let from: Vec<i64> = (0..entries).map(|_| r.roll(columns) as i64).collect();
            // Small integers: every order of summation gives the same.
            let mut whole = |n: usize| -> Vec<f64> { (0..n).map(|_| r.roll(7) as f64 - 3.0).collect() };
            let (values, x, y) = (whole(entries), whole(columns * k), whole(rows * k));
            let mut out = vec![f64::NAN; rows * k];
            product(&to, &from, &values, &x, k, &mut out);
            assert_eq!(out, plainly(&to, &from, &values, &x, k, rows));
            let mut samples = vec![f64::NAN; entries];
            sampled(&to, &from, &y, &x, k, &mut samples);
            let dot =
                |e: usize| (0..k).map(|c| y[to[e] as usize * k + c] * x[from[e] as usize * k + c]).sum();
            assert_eq!(samples, (0..entries).map(dot).collect::<Vec<f64>>());
        }
    }

    #[test]
    fn numbers_outside_are_found() {
        assert_eq!(check(&[0, 2, 3, -1], 3), Err(Outside { position: 2, value: 3 }));
        assert_eq!(check(&[0, -1], 3), Err(Outside { position: 1, value: -1 }));
        assert_eq!(check(&[0, 2], 3), Ok(()));
        assert_eq!(check(&[], 0), Ok(()));
    }
}
