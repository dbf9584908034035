//! Tapes that are misused: panics, threads, variables that have outlived their tape or belong to another one.

use super::tape::smooth;
use pullback::scalar::{self, Tape, Var, external};

#[test]
fn threads_have_a_tape_each() {
    let x = [0.7, -1.3, 0.4];
    let expected = scalar::gradient(smooth, &x);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..200).for_each(|_| assert_eq!(scalar::gradient(smooth, &x), expected)));
        }
    });
}

#[test]
fn a_panic_while_recording_leaves_the_tape_usable() {
    let x = [0.7, -1.3, 0.4];
    let expected = scalar::gradient(smooth, &x);
    let caught = std::panic::catch_unwind(|| {
        scalar::gradient(
            |x: &[Var]| {
                let _ = smooth(x);
                panic!("in the middle")
            },
            &x,
        )
    });
    assert!(caught.is_err());
    assert_eq!(scalar::gradient(smooth, &x), expected);
}

#[test]
fn a_panic_while_sweeping_leaves_the_tape_usable() {
    Tape::new().record(|t| {
        let x = t.inputs(&[1.0, 2.0]);
        let y = external(&[x[0]], &[1.0], |_, _| panic!("in the sweep"))[0] * x[1];
        let here = std::panic::AssertUnwindSafe(|| t.derivative(y, x[0]));
        assert!(std::panic::catch_unwind(here).is_err());
        assert_eq!(t.derivative(x[0] * x[1], x[0]), 2.0);
    });
}

/// A variable that has outlived its tape.
fn stale() -> (Var, Var) {
    Tape::new().record(|t| (t.input(1.0), t.input(2.0)))
}

#[test]
#[should_panic(expected = "tape")]
fn a_variable_without_its_tape_is_an_error() {
    let (x, y) = stale();
    let _ = x * y;
}

#[test]
#[should_panic(expected = "another tape")]
fn a_variable_of_another_tape_is_an_error() {
    let (x, _) = stale();
    Tape::new().record(|t| {
        let y = t.input(1.0);
        let _ = x * y;
    });
}

#[test]
fn a_stale_variable_never_reads_outside() {
    // A large index, recorded on a short tape.
    let far = Tape::new().record(|t| t.inputs(&[1.0; 100_000])[99_999]);
    let outcome = std::panic::catch_unwind(|| {
        Tape::new().record(|t| {
            let y = t.input(1.0);
            t.derivative(far * y, y)
        })
    });
    assert!(outcome.is_err());
}

#[test]
#[should_panic(expected = "tape")]
fn a_stale_output_is_an_error_in_every_build() {
    let far = Tape::new().record(|t| t.inputs(&[1.0; 1000])[999]);
    Tape::new().record(|t| {
        let x = t.input(1.0);
        t.derivative(far, x)
    });
}

#[test]
#[should_panic(expected = "generation")]
fn a_variable_after_reset_is_an_error() {
    Tape::new().record(|t| {
        let x = t.input(1.0);
        t.reset();
        let _ = x + t.input(2.0);
    });
}

#[test]
#[should_panic(expected = "not to what was computed")]
fn derivatives_are_with_respect_to_inputs() {
    Tape::new().record(|t| {
        let a = t.input(1.0) * t.input(2.0);
        t.derivative(a * a, a)
    });
}
