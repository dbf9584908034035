//! What tests share: dice, closeness, samples of domains, the message of a panic, and turns.
//!
//! It is a crate, so that unit tests and integration tests use the same code, and it knows no type of `pullback`: the unit tests of that crate
//! are compiled with a `Tensor` of their own, which is another type than that of the library this crate would depend on.

use pullback_table::Domain;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard};

/// Random numbers that repeat with their seed (SplitMix64).
pub struct Dice(pub u64);

impl Dice {
    /// Any 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A whole number below `n`.
    pub fn roll(&mut self, n: usize) -> usize {
        (self.bits() % n as u64) as usize
    }

    /// Uniform in `0..1`.
    pub fn fraction(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Uniform in `-1..1`.
    pub fn unit(&mut self) -> f64 {
        2.0 * self.fraction() - 1.0
    }

    /// Uniform in `low..high`.
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.fraction()
    }

    /// One of the list.
    pub fn pick<T: Clone>(&mut self, list: &[T]) -> T {
        list[self.roll(list.len())].clone()
    }
}

/// Whether `|a - b| <= tolerance (1 + |b|)`: absolute for small numbers, relative for large ones. Nothing is close to NaN or an infinity.
pub fn close(a: f64, b: f64, tolerance: f64) -> bool {
    b.is_finite() && (a - b).abs() <= tolerance * (1.0 + b.abs())
}

/// Whether the two are close, or the same infinity, or both NaN.
pub fn alike(a: f64, b: f64, tolerance: f64) -> bool {
    a == b || a.is_nan() && b.is_nan() || close(a, b, tolerance)
}

/// Fails unless there are as many numbers as expected, each [`close`] to its own.
#[track_caller]
pub fn assert_close(found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len());
    for (k, (&a, &b)) in found.iter().zip(expected).enumerate() {
        assert!(close(a, b, tolerance), "number {k} is {a} instead of {b}\n{found:?}\n{expected:?}");
    }
}

/// Points of a domain of the elementwise functions, away from its ends and from kinks.
pub fn samples(domain: Domain) -> [f64; 5] {
    match domain {
        Domain::any => [-2.3, -0.4, 0.3, 1.7, 3.1],
        Domain::nonzero => [-2.3, -0.4, 0.2, 1.7, 3.1],
        Domain::positive => [0.07, 0.4, 1.0, 1.7, 3.1],
        Domain::unit => [-0.9, -0.3, 0.1, 0.5, 0.8],
        Domain::above_one => [1.1, 1.4, 2.0, 2.7, 5.1],
        Domain::probability => [0.02, 0.3, 0.5, 0.8, 0.97],
        Domain::dividend => [-2.55, -2.4, 2.35, 2.45, 2.55],
        Domain::divisor => [0.93, 0.97, 1.0, 1.04, 1.07],
        Domain::order => [0.3, 0.8, 1.4, 2.5, 3.7],
        Domain::fractional => [-2.3, -0.6, 0.3, 1.7, 3.1],
    }
}

/// The message with which `f` panics.
#[track_caller]
pub fn message<T>(f: impl FnOnce() -> T) -> String {
    match caught(f) {
        Ok(_) => panic!("nothing panicked"),
        Err(text) => text,
    }
}

/// What `f` gives, or the message with which it panics.
pub fn caught<T>(f: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(f)).map_err(|payload| match payload.downcast::<String>() {
        Ok(text) => *text,
        Err(payload) => (*payload.downcast::<&str>().expect("a panic with a message")).into(),
    })
}

/// Fails with everything that breaks a law, not only with what breaks it first.
#[track_caller]
pub fn all_hold<T>(all: impl IntoIterator<Item = T>, mut law: impl FnMut(T)) {
    let broken: Vec<String> = all.into_iter().filter_map(|x| caught(|| law(x)).err()).collect();
    assert!(broken.is_empty(), "{} cases break the law:\n{}", broken.len(), broken.join("\n"));
}

/// Held by one test at a time: for those that count what the whole process does.
pub fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(|e| e.into_inner())
}
