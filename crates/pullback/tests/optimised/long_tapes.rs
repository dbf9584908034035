//! A hundred million recorded operations. Too slow without optimisation, so it is a test of release builds.
#![cfg(not(debug_assertions))]

use pullback::scalar::{Real, Tape, Var};
use pullback_testing::alone;

/// The largest memory of this process since the last call of `forget_peak`, in bytes. 0 where it cannot be told.
fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|l| l.starts_with("VmHWM:"));
    line.and_then(|l| l.split_whitespace().nth(1)?.parse::<usize>().ok()).unwrap_or(0) * 1024
}

fn forget_peak() {
    // Where this is not allowed, the peak is the larger one of all tests.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

const OPERATIONS: usize = 100_000_000;

/// One recorded operation for each number of the slice that is passed through.
fn spin<T: Real>(mut y: T, x: T, n: usize) -> T {
    for _ in 0..n {
        // The two are never the same node, so each product is a record; the value stays near 1.
        y *= x;
    }
    y
}

/// One after the other, because the peak is that of the process.
#[test]
fn a_long_tape_and_a_checkpointed_one() {
    let _turn = alone();
    with_checkpoints_in_64_mib();
    a_hundred_million_operations_in_3_gib();
}

fn a_hundred_million_operations_in_3_gib() {
    forget_peak();
    let mut tape = Tape::new();
    tape.record(|t| {
        let (y, x) = (t.input(1.0), t.input(1.0 - 1e-9));
        let z = spin(y, x, OPERATIONS);
        assert_eq!(t.records(), OPERATIONS);
        let d = t.derivative(z, x);
        assert!((d / (OPERATIONS as f64 * z.value()) - 1.0).abs() < 1e-6);
    });
    assert!(tape.bytes() <= 3 << 30, "{} bytes", tape.bytes());
    println!(
        "tape: {:.3} GiB, peak {:.3} GiB",
        tape.bytes() as f64 / (1u64 << 30) as f64,
        peak() as f64 / (1u64 << 30) as f64
    );
    assert!(peak() <= 3 << 30, "{} bytes", peak());
}

fn with_checkpoints_in_64_mib() {
    pullback::scalar::free_tapes();
    forget_peak();
    const INNER: usize = 10_000;
    Tape::new().record(|t| {
        let (y, x) = (t.input(1.0), t.input(1.0 - 1e-9));
        let last =
            Var::checkpointed(OPERATIONS / INNER, 50, &[y], &[x], |_, y, x| vec![spin(y[0], x[0], INNER)]);
        let d = t.derivative(last[0], x);
        assert!((d / (OPERATIONS as f64 * last[0].value()) - 1.0).abs() < 1e-6);
    });
    println!("peak {:.1} MiB", peak() as f64 / (1u64 << 20) as f64);
    assert!(peak() <= 64 << 20, "{} bytes", peak());
}
