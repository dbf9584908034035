use pullback::scalar::*;
fn minors<T: Real>(a: &[T], n: usize, column: usize, rows: &[usize]) -> T {
    if let [row] = rows {
        return a[row * n + column];
    }
    let mut others = [0; 16];
    let others = &mut others[..rows.len() - 1];
    others.copy_from_slice(&rows[1..]);
    let mut sum = T::constant(0.0);
    for k in 0..rows.len() {
        let term = a[rows[k] * n + column] * minors(a, n, column + 1, others);
        sum = if k % 2 == 0 { sum + term } else { sum - term };
        if k + 1 < rows.len() {
            others[k] = rows[k];
        }
    }
    sum
}
fn determinant<T: Real>(a: &[T]) -> T {
    let n = a.len().isqrt();
    minors(a, n, 0, &(0..n).collect::<Vec<_>>())
}
fn main() {
    let x: Vec<f64> = (0..81).map(|k| (k as f64 * 0.7).sin()).collect();
    let mut best = [f64::INFINITY;2];
    let mut tape = Tape::new();
    let mut g = vec![0.0; 81];
    for _ in 0..100 {
        tape.record(|t| {
        let x = t.inputs(&x);
        let t0 = std::time::Instant::now();
        let y = determinant(&x);
        best[0] = best[0].min(t0.elapsed().as_secs_f64());
        let t0 = std::time::Instant::now();
        t.gradient(y, &x, &mut g);
        best[1] = best[1].min(t0.elapsed().as_secs_f64());
        });
    }
    println!("{:.1} {:.1} us", best[0] * 1e6, best[1]*1e6);
}
