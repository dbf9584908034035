//! Variables that come to a tape which is not theirs: an error that says so, in every build.

use pullback::scalar::{self, Function, Number, Real, Recording, Symbol, Tape, Var};
use pullback_testing::message;
use std::panic::catch_unwind;

#[test]
fn a_step_that_captures_a_variable_is_an_error() {
    let captured = |how: fn(Var, Var) -> Var| {
        message(|| {
            scalar::gradient(
                |x: &[Var]| {
                    let rate = x[1];
                    Var::checkpointed(5, 2, &x[..1], &[], move |_, s, _| vec![how(s[0], rate)])[0]
                },
                &[1.5, 0.7],
            )
        })
    };
    for how in [|s, r| s * r, |s: Var, r: Var| s + r.sin() * r, |s: Var, r: Var| s.mul_add(r, s)] {
        let text = captured(how);
        assert!(text.contains("checkpointed") && text.contains("parameters"), "{text}");
    }
    // Nothing else is differentiated, so that nothing would be recorded.
    let text = message(|| {
        scalar::gradient(
            |x: &[Var]| {
                let rate = x[0];
                Var::checkpointed(5, 2, &[Var::constant(1.0)], &[], move |_, s, _| vec![s[0] * rate])[0]
            },
            &[0.7],
        )
    });
    assert!(text.contains("checkpointed"), "{text}");
}

/// `f` of an outer and an inner variable, in a derivative inside of another one.
#[track_caller]
fn inside(f: impl Fn(Var, Var) -> Var) -> String {
    message(|| {
        scalar::gradient(
            |x: &[Var]| {
                let inner = scalar::gradient(|y: &[Var]| f(x[0], y[0]), &[3.0]);
                x[0] * inner[0]
            },
            &[2.0],
        )
    })
}

#[test]
fn a_gradient_inside_another_does_not_meet_its_variables() {
    let texts = [
        inside(|x, y| x * y * x),
        inside(|x, y| y.mul_add(y, x)),
        inside(|x, y| y.sin().mul_add(x, y * y)),
        inside(|x, _| x.sin()),
        inside(|x, y| Var::dot(&[x, y], &[y, y])),
        inside(|x, y| Var::log_sum_exp(&[y, x])),
        inside(|x, y| scalar::external(&[x, y], &[1.0], |g, d| d.fill(g[0]))[0]),
        inside(|x, y| Var::preaccumulate(|| [x * y])[0]),
    ];
    for text in texts {
        assert!(text.contains("another tape"), "{text}");
    }
}

#[test]
fn an_inner_variable_does_not_come_back() {
    let text = message(|| {
        Tape::new().record(|outer| {
            let (x, y) = (outer.input(2.0), outer.input(5.0));
            let inner = scalar::record(|t: &Recording<'_, f64>| t.inputs(&[1.0, 2.0])[1]);
            outer.derivative(x * y + inner * x, x)
        })
    });
    assert!(text.contains("another tape"), "{text}");
    // As the variable that is differentiated by, too.
    let text = message(|| {
        Tape::new().record(|outer| {
            let x = outer.input(2.0);
            let inner = scalar::record(|t: &Recording<'_, f64>| t.input(1.0));
            outer.derivative(x * x, inner)
        })
    });
    assert!(text.contains("another tape"), "{text}");
}

#[test]
fn outputs_of_a_jacobian_are_of_its_tape() {
    let text = message(|| {
        let stale = Tape::new().record(|t| t.input(1.0));
        scalar::jacobian(|x: &[Var]| [x[0] * x[1], stale], &[1.0, 2.0])
    });
    assert!(text.contains("another tape"), "{text}");
}

#[test]
fn a_thread_does_not_meet_the_variables_of_another() {
    let on_thread = |f: fn(Var, Var) -> Var| {
        message(|| {
            scalar::gradient(
                |x: &[Var]| {
                    let (a, b) = (x[0], x[1]);
                    std::thread::scope(|s| {
                        let inner = s.spawn(move || scalar::gradient(|y: &[Var]| f(a, y[0]) * b, &[7.0])[0]);
                        inner.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                    });
                    a * b
                },
                &[2.0, 3.0],
            )
        })
    };
    for text in [on_thread(|x, y| x * y), on_thread(|x, _| x), on_thread(|_, y| y)] {
        assert!(text.contains("another tape"), "{text}");
    }
}

#[test]
fn a_thread_without_a_tape_loses_no_derivative() {
    let on_thread = |f: fn(Var, Var) -> Var| {
        catch_unwind(|| {
            scalar::gradient(
                |x: &[Var]| {
                    let (a, b) = (x[0], x[1]);
                    std::thread::spawn(move || f(a, b))
                        .join()
                        .unwrap_or_else(|p| std::panic::resume_unwind(p))
                },
                &[2.0, 3.0],
            )
        })
    };
    // A function of one variable needs no tape, and its result is good on the tape it came from.
    assert_eq!(on_thread(|a, _| a.square()).expect("nothing is recorded"), [4.0, 0.0]);
    for f in [|a, b| a * b, |a, b| Var::dot(&[a, b], &[b, a]), |a, b| Var::log_sum_exp(&[a, b])] {
        assert!(on_thread(f).is_err());
    }
}

#[test]
fn a_variable_from_before_a_reset_is_an_error() {
    let text = message(|| {
        Tape::new().record(|t| {
            let x = t.input(1.0);
            t.reset();
            let y = t.inputs(&[2.0, 3.0]);
            t.derivative(x * y[1], y[0])
        })
    });
    assert!(text.contains("reset"), "{text}");
}

#[test]
fn a_symbol_of_another_recording_is_an_error_before_anything_is_made_of_it() {
    for f in [|a: Symbol| -a, |a: Symbol| -(-a), |a: Symbol| a.exp(), |a: Symbol| a + 0.0] {
        let text = message(|| {
            Function::record(
                |x: &[Symbol]| {
                    let outer = x[0].sin() * x[1];
                    Function::record(|y: &[Symbol]| f(outer) + y[0] * y[1] - y[0], 3);
                    outer
                },
                2,
            )
        });
        assert!(text.contains("recording of another"), "{text}");
    }
}
