//! The largest errors of the elementary functions: over every `f32`, and over samples of `f64`. They are the table of
//! [`kernels::math`](crate::kernels::math), and take too long to run with the other tests:
//!
//! ```sh
//! cargo test --release -p pullback --lib exhaustive -- --ignored --nocapture --test-threads=1
//! ```
//!
//! An `f32` result is compared with the `f64` kernel, which is exact for the purpose. The values of `f64` are written to the file that
//! `PULLBACK_VALUES` names, for [a script](../../../tests/peers/record/ulps.py) that computes with fifty digits.

use super::accuracy::ulps_f32;
use super::{each1, each2, noise, row};
use crate::kernels::isa::{Isa, forced::with_each_isa};
use crate::kernels::map::{Map1, Map2};
use std::fmt::Write;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The largest error with each instruction set, and where it is.
type Worst = Vec<(Isa, f64, [f32; 2])>;

fn put(worst: &mut Worst, isa: Isa, error: f64, at: [f32; 2]) {
    match worst.iter_mut().find(|w| w.0 == isa) {
        Some(w) if w.1 >= error => {}
        Some(w) => *w = (isa, error, at),
        None => worst.push((isa, error, at)),
    }
}

/// What all threads find, each working on a chunk of arguments at a time.
fn on_all_threads(chunks: u32, work: impl Fn(u32, &mut Worst) + Sync) -> Worst {
    let next = AtomicU32::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let each = || {
        let mut worst = Worst::new();
        while let k = next.fetch_add(1, Relaxed)
            && k < chunks
        {
            work(k, &mut worst);
        }
        worst
    };
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..threads).map(|_| scope.spawn(each)).collect();
        let mut worst = Worst::new();
        for (isa, error, at) in all.into_iter().flat_map(|t| t.join().expect("no thread panics")) {
            put(&mut worst, isa, error, at);
        }
        worst
    })
}

/// The largest error of a chunk, and where it is. A NaN in the place of a number is the largest of all.
fn largest(found: &[f32], exact: &[f64]) -> (f64, usize) {
    let error = |y: f32, exact: f64| match ulps_f32(y, exact) {
        _ if y.is_nan() && exact.is_nan() => 0.0,
        error if error.is_nan() => f64::INFINITY,
        error => error,
    };
    let errors = found.iter().zip(exact).map(|(&y, &exact)| error(y, exact)).enumerate();
    errors.fold((0.0, 0), |worst, (k, error)| if error > worst.0 { (error, k) } else { worst })
}

/// Every `f32`.
fn every<M: Map1>() -> Worst {
    const CHUNK: u32 = 1 << 16;
    on_all_threads(u32::MAX / CHUNK + 1, |chunk, worst| {
        let x: Vec<f32> = (0..CHUNK).map(|k| f32::from_bits(chunk * CHUNK + k)).collect();
        let wide: Vec<f64> = x.iter().map(|&x| x.into()).collect();
        let exact = each1::<M, f64>(&wide);
        with_each_isa(|isa| {
            let (error, k) = largest(&each1::<M, f32>(&x), &exact);
            put(worst, isa, error, [x[k], 0.0]);
        });
    })
}

/// Pairs of any `f32`, and pairs of common size.
fn many_pairs<M: Map2>() -> Worst {
    const CHUNK: usize = 1 << 16;
    on_all_threads(1 << 10, |chunk, worst| {
        let argument = |which: u64| -> Vec<f32> {
            let any = |u: f64| f32::from_bits((u * 2f64.powi(32)) as u32);
            let common = |u: f64| (u * 6.0 - 3.0) as f32;
            let place = |u: f64| if chunk % 2 == 0 { any(u) } else { common(u) };
            noise(2 * u64::from(chunk) + which).take(CHUNK).map(place).collect()
        };
        let [a, b] = [0, 1].map(argument);
        let [wide_a, wide_b] = [&a, &b].map(|x| x.iter().map(|&x| x.into()).collect::<Vec<f64>>());
        let exact = each2::<M, f64>(&wide_a, &wide_b);
        with_each_isa(|isa| {
            let (error, k) = largest(&each2::<M, f32>(&a, &b), &exact);
            put(worst, isa, error, [a[k], b[k]]);
        });
    })
}

/// Calls a macro with all elementary functions: the domains that `f64` samples are drawn from beside all numbers.
macro_rules! elementary {
    ($each:ident) => {
        $each! {
            exp Exp (-745.0, 709.7); exp2 Exp2 (-1074.0, 1023.9); expm1 Expm1 (-40.0, 709.7); ln Ln (0.5, 2.0); log2 Log2 (0.5, 2.0);
            log10 Log10 (0.5, 2.0); log1p Log1p (-0.9999, 3.0); sin Sin (-100.0, 100.0); cos Cos (-100.0, 100.0); tan Tan (-100.0, 100.0);
            asin Asin (-1.0, 1.0); acos Acos (-1.0, 1.0); atan Atan (-5.0, 5.0); sinh Sinh (-20.0, 20.0); cosh Cosh (-20.0, 20.0);
            tanh Tanh (-20.0, 20.0); asinh Asinh (-5.0, 5.0); acosh Acosh (1.0, 50.0); atanh Atanh (-1.0, 1.0); cbrt Cbrt (-8.0, 8.0);
            sigmoid Sigmoid (-40.0, 40.0); erf Erf (-6.0, 6.0); erfc Erfc (-6.0, 27.0)
        }
    };
}

#[test]
#[ignore = "minutes"]
fn every_f32() {
    let mut beyond = Vec::new();
    let mut report = |name: &str, worst: Worst| {
        println!("{name:8} {worst:?}");
        beyond.extend(worst.into_iter().filter(|w| w.1 > 2.0).map(|w| (name.to_string(), w)));
    };
    macro_rules! each {
        ($($name:ident $M:ident $domain:expr);*) => { $(report(stringify!($name), every::<row::$M>());)* };
    }
    elementary!(each);
    report("pow", many_pairs::<row::Pow>());
    report("atan2", many_pairs::<row::Atan2>());
    report("hypot", many_pairs::<row::Hypot>());
    assert!(beyond.is_empty(), "more than two units of the last place: {beyond:?}");
}

#[test]
#[ignore = "for a script that compares"]
fn values_of_f64() {
    const SAMPLES: usize = 40_000;
    let mut text = String::new();
    let line = |text: &mut String, isa: Isa, name: &str, all: &[f64]| {
        let bits: Vec<String> = all.iter().map(|v| format!("{:x}", v.to_bits())).collect();
        writeln!(text, "{isa:?} {name} {}", bits.join(" ")).expect("a string takes all");
    };
    // Evenly over the domain, and evenly in magnitude from its ends next to 0.
    let draw = |seed: u64, (low, high): (f64, f64)| -> Vec<f64> {
        let even = noise(seed).take(SAMPLES).map(move |u| low + (high - low) * u);
        let small = noise(seed + 1).zip(noise(seed + 2)).take(SAMPLES / 4);
        let small = small.map(|(u, v)| if v < 0.5 { low } else { high } * 2f64.powf(-60.0 * u));
        even.chain(small.filter(|&x| x >= low && x <= high)).collect()
    };
    macro_rules! each {
        ($($name:ident $M:ident $domain:expr);*) => {$(
            let x = draw(11, $domain);
            with_each_isa(|isa| {
                let y = each1::<row::$M, f64>(&x);
                x.iter().zip(y).for_each(|(&x, y)| line(&mut text, isa, stringify!($name), &[x, y]));
            });
        )*};
    }
    elementary!(each);
    macro_rules! each_of_two {
        ($($name:ident $M:ident $first:expr, $second:expr);*) => {$(
            let (a, b) = (draw(21, $first), draw(31, $second));
            with_each_isa(|isa| {
                let n = a.len().min(b.len());
                let y = each2::<row::$M, f64>(&a[..n], &b[..n]);
                y.into_iter().enumerate().for_each(|(k, y)| line(&mut text, isa, stringify!($name), &[a[k], b[k], y]));
            });
        )*};
    }
    each_of_two! {
        pow Pow (0.3, 3.0), (-580.0, 580.0); atan2 Atan2 (-3.0, 3.0), (-3.0, 3.0); hypot Hypot (-3.0, 3.0), (-3.0, 3.0)
    }
    let path = std::env::var("PULLBACK_VALUES").expect("PULLBACK_VALUES names the file");
    std::fs::write(path, text).expect("the file can be written");
}
