//! The scalar side against plain `f64` code of the same function in the same binary.
//!
//! `cargo bench -p pullback --bench scalar` prints the table. Each figure is the minimum over many short rounds, in which
//! the variants take turns, so that a disturbance of the machine meets all of them.

mod counted;

use counted::{Counted, operations};
use pullback::scalar::{self, Dual, Function, Real, Tape, Var};
use std::hint::black_box;
use std::time::{Duration, Instant};

// ---- the functions -------------------------------------------------------------------------------------------------

fn product<T: Real>(x: &[T]) -> T {
    x.iter().product()
}

fn rosenbrock<T: Real>(x: &[T]) -> T {
    let mut s = T::constant(0.0);
    for i in 0..x.len() - 1 {
        let (a, b) = (x[i] - 1.0, x[i + 1] - x[i] * x[i]);
        s += a * a + b * b * 100.0;
    }
    s
}

const HIDDEN: usize = 8;

/// A recurrent cell of GradBench's kind: gates elementwise in the state, over many steps.
fn lstm<T: Real>(p: &[T]) -> T {
    let (weights, bias) = p.split_at(4 * HIDDEN);
    let mut hidden = [T::constant(0.1); HIDDEN];
    let mut cell = [T::constant(0.0); HIDDEN];
    let mut loss = T::constant(0.0);
    for step in 0..1024 {
        for k in 0..HIDDEN {
            let input = hidden[(k + step) % HIDDEN];
            let gate = |g: usize| input * weights[g * HIDDEN + k] + bias[g * HIDDEN + k];
            let (forget, ingate, outgate, change) =
                (gate(0).sigmoid(), gate(1).sigmoid(), gate(2).sigmoid(), gate(3).tanh());
            cell[k] = cell[k] * forget + ingate * change;
            hidden[k] = outgate * cell[k].tanh();
        }
        loss += hidden[step % HIDDEN] * hidden[step % HIDDEN];
    }
    loss
}

/// The determinant of the columns from `column` on and the given rows, by minors along the first of the columns.
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

fn log_sum_exp<T: Real>(x: &[T]) -> T {
    let top = x.iter().fold(f64::NEG_INFINITY, |m, x| m.max(x.value()));
    x.iter().map(|&x| (x - top).exp()).sum::<T>().ln() + top
}

fn log_sum_exp_fused<T: Real>(x: &[T]) -> T {
    T::log_sum_exp(x)
}

fn cross<T: Real>(a: [T; 3], b: [T; 3]) -> [T; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

/// The residual of one observation of bundle adjustment: camera (rotation, centre, focal length, principal point, two
/// radial distortions), point, weight.
fn reprojection<T: Real>(x: &[T]) -> [T; 2] {
    let rotation = [x[0], x[1], x[2]];
    let point = [x[11] - x[3], x[12] - x[4], x[13] - x[5]];
    let square = rotation[0] * rotation[0] + rotation[1] * rotation[1] + rotation[2] * rotation[2];
    let theta = square.sqrt();
    let (sin, cos) = theta.sin_cos();
    let inverse = theta.recip();
    let axis = rotation.map(|r| r * inverse);
    let turned = cross(axis, point);
    let along = (axis[0] * point[0] + axis[1] * point[1] + axis[2] * point[2]) * (-cos + 1.0);
    let p: [T; 3] = std::array::from_fn(|k| point[k] * cos + turned[k] * sin + axis[k] * along);
    let (u, v) = (p[0] / p[2], p[1] / p[2]);
    let r = u * u + v * v;
    let distortion = r * x[9] + r * r * x[10] + 1.0;
    [x[14] * (u * distortion * x[6] + x[7] - 0.3), x[14] * (v * distortion * x[6] + x[8] - 0.4)]
}

/// The price of a European call: spot, strike, rate, volatility, time.
fn black_scholes<T: Real>(x: &[T]) -> T {
    let (spot, strike, rate, volatility, time) = (x[0], x[1], x[2], x[3], x[4]);
    let spread = volatility * time.sqrt();
    let d1 = ((spot / strike).ln() + (rate + volatility * volatility * 0.5) * time) / spread;
    let d2 = d1 - spread;
    let normal = |x: T| (x * -std::f64::consts::FRAC_1_SQRT_2).erfc() * 0.5;
    spot * normal(d1) - strike * (-rate * time).exp() * normal(d2)
}

/// A cell where exp and tanh dominate.
fn lstm_cell<T: Real>(x: &[T]) -> T {
    let gate = |k: usize| x[k] * x[8] + x[k + 4] * x[9];
    let cell = x[10] * gate(0).sigmoid() + gate(1).sigmoid() * gate(2).tanh();
    gate(3).sigmoid() * cell.tanh()
}

const GRID: usize = 32;

/// One step of the heat equation on a square grid with fixed borders.
fn heat_step<T: Real>(_: usize, u: &[T], conductivity: &[T]) -> Vec<T> {
    let mut next = u.to_vec();
    for i in 1..GRID - 1 {
        for j in 1..GRID - 1 {
            let k = i * GRID + j;
            let around = u[k - 1] + u[k + 1] + u[k - GRID] + u[k + GRID];
            next[k] = u[k] + conductivity[0] * (around - u[k] * 4.0);
        }
    }
    next
}

/// 1000 steps with 20 kept states, from the initial temperatures and the conductivity.
fn heat<T: Real>(x: &[T]) -> T {
    let (u, conductivity) = x.split_at(GRID * GRID);
    T::checkpointed(1000, 20, u, conductivity, heat_step).iter().map(|&u| u * u).sum()
}

// ---- measuring -----------------------------------------------------------------------------------------------------

/// The shortest time of one run of each of the closures, which take turns.
fn shortest<const N: usize>(mut runs: [&mut dyn FnMut(); N]) -> [f64; N] {
    let mut best = [f64::INFINITY; N];
    let mut repeat = [1u32; N];
    for (run, repeat) in runs.iter_mut().zip(&mut repeat) {
        run();
        let start = Instant::now();
        run();
        let once = start.elapsed().max(Duration::from_nanos(20));
        *repeat = (Duration::from_micros(500).as_nanos() / once.as_nanos()).clamp(1, 10_000) as u32;
    }
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(1200) {
        for ((run, best), &repeat) in runs.iter_mut().zip(&mut best).zip(&repeat) {
            let start = Instant::now();
            (0..repeat).for_each(|_| run());
            *best = best.min(start.elapsed().as_secs_f64() / f64::from(repeat));
        }
    }
    best
}

fn time(seconds: f64) -> String {
    match seconds {
        s if s < 1e-6 => format!("{:.1} ns", s * 1e9),
        s if s < 1e-3 => format!("{:.1} µs", s * 1e6),
        s => format!("{:.2} ms", s * 1e3),
    }
}

fn row(name: &str, primal: f64, derivative: f64, limit: f64, remark: &str) {
    let ratio = derivative / primal;
    let limit = if limit.is_nan() { String::new() } else { limit.to_string() };
    println!("| {name} | {} | {} | {ratio:.2} | {limit} | {remark} |", time(primal), time(derivative));
}

/// Primal against record and sweep on the warm tape. The time is also given for each operation of the program, as a
/// tape without shortcuts would record them (`counted`), and for each record of this one.
fn tape(
    name: &str,
    primal: fn(&[f64]) -> f64,
    on_tape: fn(&[Var]) -> Var,
    counted: fn(&[Counted]) -> Counted,
    x: &[f64],
    limit: f64,
) {
    let mut gradient = vec![0.0; x.len()];
    let records = Tape::new().record(|t| {
        let x = t.inputs(x);
        on_tape(&x);
        t.records()
    });
    let [plain, taped] = shortest([
        &mut || {
            black_box(primal(black_box(x)));
        },
        &mut || {
            black_box(scalar::gradient_into(on_tape, black_box(x), &mut gradient));
        },
    ]);
    let operations = operations(counted, x);
    let each = |count: usize| taped * 1e9 / count as f64;
    let mut remark = format!("{operations} operations, {:.1} ns each", each(operations));
    if records > 1 {
        remark += &format!("; {records} records, {:.1} ns each", each(records));
    }
    row(name, plain, taped, limit, &remark);
}

/// Primal in a scalar loop over points against the compiled gradient at all of them.
fn compiled(name: &str, primal: fn(&[f64]) -> f64, f: &Function, points: &[f64], limit: f64) {
    let n = f.inputs();
    let count = points.len() / n;
    let gradient = f.gradient_function();
    let mut out = vec![0.0; points.len()];
    let [plain, all] = shortest([
        &mut || {
            points.chunks(n).for_each(|x| {
                black_box(primal(black_box(x)));
            })
        },
        &mut || gradient.try_evaluate_many_into(black_box(points), &mut out).expect("one branch"),
    ]);
    let remark = format!("{} operations for each of {count} points", gradient.operations());
    row(name, plain / count as f64, all / count as f64, limit, &remark);
}

/// Numbers in `[low, high]` without a pattern.
fn numbers(n: usize, low: f64, high: f64) -> Vec<f64> {
    (1..=n).map(|k| low + (high - low) * (k as f64 * 0.618_033_988_749_894_9).fract()).collect()
}

fn dual<const N: usize>(
    name: &str,
    f: fn(&[Dual<f64, N>]) -> Dual<f64, N>,
    primal: fn(&[f64]) -> f64,
    x: &[f64],
    limit: f64,
) {
    let seeded: Vec<Dual<f64, N>> = x
        .iter()
        .enumerate()
        .map(|(k, &x)| if k < N { Dual::variable(x, k) } else { Dual::fixed(x) })
        .collect();
    let [plain, tangents] = shortest([
        &mut || {
            black_box(primal(black_box(x)));
        },
        &mut || {
            black_box(f(black_box(&seeded)));
        },
    ]);
    row(name, plain, tangents / N as f64, limit, &format!("{N} tangents, time for each"));
}

fn main() {
    // `cargo test` builds benches and asks them for their tests.
    if std::env::args().any(|a| a == "--test" || a == "--list") {
        return;
    }
    println!("| function | primal | derivative | ratio | limit | |\n|---|---|---|---|---|---|");
    tape("product of 10,000, tape", product, product, product, &numbers(10_000, 0.99, 1.01), 6.0);
    tape("Rosenbrock 1000, tape", rosenbrock, rosenbrock, rosenbrock, &numbers(1000, -1.0, 1.0), 12.0);
    tape("LSTM loop, tape", lstm, lstm, lstm, &numbers(8 * HIDDEN, -1.0, 1.0), 2.0);
    tape("determinant 9x9, tape", determinant, determinant, determinant, &numbers(81, -1.0, 1.0), 3.5);
    tape("log-sum-exp 80,000, tape", log_sum_exp, log_sum_exp, log_sum_exp, &numbers(80_000, -3.0, 3.0), 3.0);
    tape(
        "log-sum-exp 80,000, fused",
        log_sum_exp_fused,
        log_sum_exp_fused,
        log_sum_exp_fused,
        &numbers(80_000, -3.0, 3.0),
        1.6,
    );
    tape(
        "Black-Scholes and 5 Greeks, tape",
        black_scholes,
        black_scholes,
        black_scholes,
        &[100.0, 95.0, 0.05, 0.2, 0.5],
        f64::NAN,
    );

    let mut start = numbers(GRID * GRID, 0.0, 1.0);
    start.push(0.1);
    tape("heat equation 32x32, 1000 steps, 20 states", heat, heat, heat, &start, f64::NAN);

    let f = Function::record(rosenbrock, 32);
    compiled("Rosenbrock 32, compiled", rosenbrock, &f, &numbers(320_000, -1.0, 1.0), 1.5);
    let f = Function::record(lstm_cell, 11);
    compiled("LSTM cell, compiled", lstm_cell, &f, &numbers(110_000, -1.0, 1.0), 0.5);
    let f = Function::record(black_scholes, 5);
    compiled("Black-Scholes and 5 Greeks, compiled", black_scholes, &f, &numbers(50_000, 0.5, 1.5), f64::NAN);

    let f = Function::record(reprojection, 15);
    let jacobian = f.jacobian_function();
    let points = numbers(150_000, 0.5, 1.5);
    let mut out = vec![0.0; points.len() * 2];
    let mut single = [0.0; 30];
    let mut values = [0.0; 2];
    let [plain, compiled, taped] = shortest([
        &mut || {
            points.chunks(15).for_each(|x| {
                black_box(reprojection(black_box(x)));
            })
        },
        &mut || jacobian.try_evaluate_many_into(black_box(&points), &mut out).expect("one branch"),
        &mut || {
            points
                .chunks(15)
                .for_each(|x| scalar::jacobian_into(reprojection, black_box(x), &mut values, &mut single))
        },
    ]);
    let each = 1.0 / 10_000.0;
    row(
        "2x15 Jacobian of a reprojection, compiled",
        plain * each,
        compiled * each,
        f64::NAN,
        "limit 110 ns a point",
    );
    row("2x15 Jacobian of a reprojection, tape", plain * each, taped * each, f64::NAN, "");

    dual::<8>("Rosenbrock 1000, Dual", rosenbrock, rosenbrock, &numbers(1000, -1.0, 1.0), 1.3);
    dual::<8>("product of 10,000, Dual", product, product, &numbers(10_000, 0.99, 1.01), 1.3);
    dual::<8>("LSTM loop, Dual", lstm, lstm, &numbers(8 * HIDDEN, -1.0, 1.0), 1.3);
}
