//! Numbers inside of numbers: duals of duals, duals of tape variables, and lanes of a tape.

use pullback::scalar::{Dual, HyperDual, Lanes, Number, Real, Tape, Var, gradient, gradient_at};

/// What does not move has no second derivative either, where the first one of something else is infinite.
#[test]
fn a_zero_tangent_stays_zero_behind_a_nested_slope_that_is_not_finite() {
    let moved_once = HyperDual::hyper(0.0, 1.0, 0.0);
    for y in [moved_once.sqrt(), moved_once.ln(), moved_once.recip(), moved_once.cbrt()] {
        assert_eq!(y.second(), 0.0, "{y:?}");
    }
    let product = HyperDual::hyper(f64::INFINITY, 1.0, 0.0) * HyperDual::hyper(2.0, 0.0, 0.0);
    assert_eq!(product.second(), 0.0);
}

/// Forces of two charges, differentiated by where one of them is: each mode inside of each.
#[test]
fn gradients_inside_of_derivatives_agree_in_all_modes() {
    fn potential<T: Real>(w: T, [x, y]: [T; 2]) -> T {
        ((x - 1.0).square() + (y + w).square()).rsqrt() + (x.square() + y.square()).rsqrt()
    }
    fn forward<T: Real>(w: T, x: [T; 2]) -> T {
        potential(Dual::fixed(w), [Dual::<T, 2>::variable(x[0], 0), Dual::variable(x[1], 1)]).tangents()[1]
    }
    macro_rules! reverse {
        ($w:expr, $x:expr) => {
            gradient_at(|x| potential(Var::fixed($w), x), $x)[1]
        };
    }
    let (w, x) = (0.25, [0.5, 0.75]);
    let h = 1e-5;
    let slope = (forward(w + h, x) - forward(w - h, x)) / (2.0 * h);
    assert_eq!(forward(w, x), reverse!(w, x));
    let moved = Dual::<f64>::variable(w, 0);
    let found = [
        forward(moved, x.map(Dual::fixed)).tangents()[0],
        reverse!(moved, x.map(Dual::fixed)).tangents()[0],
        gradient(|w| forward(w[0], x.map(Var::constant)), &[w])[0],
        gradient(|w| reverse!(w[0], x.map(Var::constant)), &[w])[0],
    ];
    for d in found {
        assert!((d - found[0]).abs() < 1e-14 && (d - slope).abs() < 1e-8, "{found:?} and {slope}");
    }
}

/// A softmax whose classes are lanes: each depends on all of them.
#[test]
fn sums_across_lanes_couple_them() {
    let x = [0.5, -1.0, 2.0, 0.25];
    let wanted = [0.0, 1.0, 0.0, 0.0];
    let loss = |x: &[Var]| x.iter().map(|x| x.exp()).sum::<Var>().ln() - x[1];
    let expected = gradient(loss, &x);
    let found = Tape::new().record(|t| {
        let x = t.input(Lanes(x));
        let loss = x.exp().across().ln() - (x * Var::fixed(Lanes(wanted))).across();
        let mut d = [Lanes([0.0; 4])];
        t.pullback(&[loss], &[Lanes([1.0, 0.0, 0.0, 0.0])], &[x], &mut d);
        d[0]
    });
    for (a, b) in found.0.iter().zip(expected) {
        assert!((a - b).abs() < 1e-15);
    }
}
