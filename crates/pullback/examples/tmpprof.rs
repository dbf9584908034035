use pullback::scalar::*;
use std::time::Instant;
fn product<T: Real>(x: &[T]) -> T { x.iter().product() }
fn rosenbrock<T: Real>(x: &[T]) -> T {
    let mut s = T::constant(0.0);
    for i in 0..x.len() - 1 {
        let (a, b) = (x[i] - 1.0, x[i + 1] - x[i] * x[i]);
        s += a * a + b * b * 100.0;
    }
    s
}
fn go(name: &str, f: fn(&[Var])->Var, n: usize) {
    let x: Vec<f64> = (0..n).map(|k| 1.0 + 1e-6*(k as f64)).collect();
    let mut tape = Tape::new();
    let mut best = [1e9f64; 3];
    let mut g = vec![0.0; n];
    for _ in 0..3000 {
        tape.record(|t| {
            let t0 = Instant::now();
            let v = t.inputs(&x);
            let t1 = Instant::now();
            let y = f(&v);
            let t2 = Instant::now();
            t.gradient(y, &v, &mut g);
            let t3 = Instant::now();
            best[0] = best[0].min((t1-t0).as_secs_f64()*1e6);
            best[1] = best[1].min((t2-t1).as_secs_f64()*1e6);
            best[2] = best[2].min((t3-t2).as_secs_f64()*1e6);
        });
    }
    println!("{name}: inputs {:.2} record {:.2} sweep {:.2} us", best[0], best[1], best[2]);
}
fn main() { go("product", product, 10000); go("rosen", rosenbrock, 1000);
 let f = Function::record(rosenbrock, 4); println!("{}", f.gradient_function()); }
