//! Corners where the number types once had different answers.

use pullback::scalar::{
    self, Dual, Function, HyperDual, Lanes, Number, Real, Symbol, Tape, Taylor, Var, WideDual,
};

const INF: f64 = f64::INFINITY;

/// `f` with several outputs at all of the types that have first derivatives.
macro_rules! jacobians {
    ($f:ident, $x:expr) => {{
        let x: &[f64] = &$x;
        let n = x.len();
        let units: Vec<Vec<f64>> =
            (0..n).map(|k| (0..n).map(|j| f64::from(u8::from(j == k))).collect()).collect();
        let directions: Vec<&[f64]> = units.iter().map(Vec::as_slice).collect();
        let columns: Vec<Vec<f64>> = units
            .iter()
            .map(|v| {
                let x: Vec<Dual> = x.iter().zip(v).map(|(&x, &v)| Dual::new(x, [v])).collect();
                $f(&x).iter().map(|y| y.tangents()[0]).collect()
            })
            .collect();
        let many: Vec<Dual<f64, 8>> = x.iter().enumerate().map(|(k, &x)| Dual::variable(x, k)).collect();
        let compiled = Function::record_at(|x: &[Symbol]| $f(x), x);
        let flat = compiled.jacobians(&x.repeat(70));
        let m = compiled.outputs();
        let by_rows: Vec<Vec<f64>> = (0..m).map(|k| scalar::gradient(|x: &[Var]| $f(x)[k], x)).collect();
        [
            ("tape", scalar::jacobian(|x: &[Var]| $f(x), x)),
            ("gradients", by_rows),
            ("dual", (0..m).map(|k| (0..n).map(|j| columns[j][k]).collect()).collect()),
            ("duals", $f(&many).iter().map(|y| y.tangents()[..n].to_vec()).collect()),
            ("wide", scalar::directions(|x: &[WideDual]| $f(x), x, &directions).1),
            ("compiled", compiled.jacobian(x)),
            ("lanes", (0..m).map(|k| flat[69 * m * n + k * n..][..n].to_vec()).collect()),
        ]
    }};
}

#[track_caller]
fn all_are(found: [(&str, Vec<Vec<f64>>); 7], expected: &[&[f64]]) {
    for (what, found) in found {
        assert_eq!(found, expected, "{what}");
    }
}

#[test]
fn an_infinite_slope_stays_in_its_entry() {
    fn f<T: Real>(x: &[T]) -> Vec<T> {
        vec![x[0].sqrt() + x[1], x[1] * 2.0]
    }
    all_are(jacobians!(f, [0.0, 1.0]), &[&[INF, 1.0], &[0.0, 2.0]]);
    // More outputs than inputs: the tape is walked forward.
    fn tall<T: Real>(x: &[T]) -> Vec<T> {
        vec![x[0].sqrt() + x[1], x[1] * 2.0, (x[0] * x[1]).ln(), x[0].sqrt() * 0.0 + x[1] * x[1]]
    }
    all_are(jacobians!(tall, [0.0, 1.0]), &[&[INF, 1.0], &[0.0, 2.0], &[INF, 0.0], &[0.0, 2.0]]);
}

#[test]
fn a_slope_of_zero_wins_over_an_infinite_one_everywhere() {
    fn behind<T: Real>(x: &[T]) -> Vec<T> {
        vec![(x[0] * 0.0).sqrt() + x[1]]
    }
    all_are(jacobians!(behind, [3.0, 2.0]), &[&[0.0, 1.0]]);
    fn product<T: Real>(x: &[T]) -> Vec<T> {
        vec![(x[0] * x[1]).sqrt()]
    }
    all_are(jacobians!(product, [0.0, 2.0]), &[&[INF, 0.0]]);
    fn norm<T: Real>(x: &[T]) -> Vec<T> {
        vec![(x[0] * x[0] + x[1] * x[1]).sqrt(), (x[0].square() + x[1].powi(2)).sqrt()]
    }
    all_are(jacobians!(norm, [0.0, 0.0]), &[&[0.0, 0.0], &[0.0, 0.0]]);
    fn top<T: Real>(x: &[T]) -> Vec<T> {
        vec![x[0].max(x[1].ln())]
    }
    all_are(jacobians!(top, [1.0, 0.0]), &[&[1.0, 0.0]]);
    fn after<T: Real>(x: &[T]) -> Vec<T> {
        vec![x[0].sqrt().square(), x[0].sqrt() * 0.0, x[0].sqrt() * x[1], x[1].mul_add(x[0].sqrt(), x[1])]
    }
    all_are(jacobians!(after, [0.0, 0.0]), &[&[0.0, 0.0], &[0.0, 0.0], &[0.0, 0.0], &[0.0, 1.0]]);
    fn sums<T: Real>(x: &[T]) -> Vec<T> {
        let steep = x[0].sqrt();
        vec![T::dot(&[steep, x[1]], &[x[1], x[1]]), T::dot(&[x[1], x[0]], &[x[0], x[1]]).sqrt()]
    }
    all_are(jacobians!(sums, [0.0, 0.0]), &[&[0.0, 0.0], &[0.0, 0.0]]);
}

/// NaN is looked for in sums, where infinities of both signs leave one too.
#[test]
fn infinities_of_both_signs_are_not_taken_for_nan() {
    fn f<T: Real>(x: &[T]) -> Vec<T> {
        vec![x[0].sqrt() - x[1].sqrt(), x[0].sqrt() * x[0] + x[1] * x[1].sqrt()]
    }
    all_are(jacobians!(f, [0.0, 0.0]), &[&[INF, -INF], &[0.0, 0.0]]);
    let (steep, second) = Tape::new().record(|t| {
        let (x, y) = (t.input(Lanes([0.0, 0.0, 4.0, 0.0])), t.input(Lanes([1.0, -1.0, 1.0, 0.0])));
        let z = x.sqrt() * y;
        (t.derivative(z, x), t.derivative(x.sqrt().mul_add(y, y), x))
    });
    assert_eq!(steep, Lanes([INF, -INF, 0.25, 0.0]));
    assert_eq!(second, steep);
    let slopes = scalar::gradient_at(|[x, y]| x.sqrt() - y.sqrt(), [Dual::<f64, 1>::fixed(0.0); 2]);
    assert_eq!(slopes.map(Dual::real), [INF, -INF]);
    assert_eq!(slopes.map(|d| d.tangents()[0]), [0.0, 0.0]);
}

#[test]
fn the_hessian_of_the_taken_piece_is_its_own() {
    fn f<T: Real>(x: &[T]) -> T {
        x[0].select_lt(T::constant(1.0), x[0].asin(), x[0] * x[0])
    }
    let compiled = Function::record_at(f, &[0.5]);
    assert_eq!(compiled.gradient(&[3.0]), [6.0]);
    assert_eq!(compiled.hessian(&[3.0]), [[2.0]]);
    assert_eq!(compiled.hvp(&[3.0], &[1.0]), [2.0]);
    assert_eq!(compiled.hessian_function().evaluate_many(&[3.0; 70])[69], 2.0);
    assert_eq!(compiled.sparse_hessian(&[3.0]).to_dense(), [[2.0]]);
    assert_eq!(compiled.sparse_hessian_by_substitution(&[3.0]).to_dense(), [[2.0]]);
    assert_eq!(compiled.hessian_function().total(0).evaluate(&[], &[3.0; 5]), [10.0]);
    assert_eq!(scalar::hessian(f, &[3.0]), [[2.0]]);
}

#[test]
fn sums_over_points_have_the_zeros_of_single_points() {
    fn f<T: Real>(x: &[T]) -> T {
        (x[0] * x[1]).sqrt() + x[0]
    }
    let gradient = Function::record(f, 2).gradient_function().select([0]);
    // d/dx = y / (2 sqrt(x y)) + 1, where y = 0 is a zero behind an infinite slope.
    let found = gradient.total(1).evaluate(&[4.0], &[0.0, 1.0, 0.0, 4.0]);
    assert_eq!(found, [1.0 + 1.25 + 1.0 + 1.5]);
}

#[test]
fn a_constant_exponent_has_second_derivatives_at_negative_numbers() {
    fn f<T: Real>(x: &[T]) -> T {
        x[0].pow(T::constant(2.0)) + x[0].pow(T::constant(3.0)) * x[1]
    }
    let x = [-1.0, 2.0];
    let h = scalar::hessian(f, &x);
    assert_eq!(h, [[-10.0, 3.0], [3.0, 0.0]]);
    for (i, row) in h.iter().enumerate() {
        for (j, &entry) in row.iter().enumerate() {
            assert_eq!(scalar::second_partial(f, &x, i, j), entry, "{i} {j}");
        }
    }
    assert_eq!(Function::record_at(f, &x).hessian(&x), h);
    let third = {
        let x: Dual<HyperDual> = Dual::new(HyperDual::hyper(-1.0, 1.0, 1.0), [Dual::constant(1.0)]);
        x.pow(Real::constant(3.0)).tangents()[0].second()
    };
    assert_eq!(third, 6.0);
}

#[test]
fn every_lane_of_log_sum_exp_has_its_own_maximum() {
    let (a, b) = ([0.0, -1000.0, 1000.0, -INF, INF, 0.5], [1.0, -999.0, 1001.0, -INF, 3.0, -0.5]);
    let expected: [f64; 6] = std::array::from_fn(|k| f64::log_sum_exp(&[a[k], b[k]]));
    assert_eq!(expected[3..5], [-INF, INF]);
    let close = |found: Lanes<6>| {
        for (found, expected) in found.0.into_iter().zip(expected) {
            let near = (found - expected).abs() <= 1e-15 * expected.abs();
            assert!(near || found == expected, "{found} for {expected}");
        }
    };
    close(Lanes::log_sum_exp(&[Lanes(a), Lanes(b)]));
    close(Dual::<_, 1>::log_sum_exp(&[Dual::variable(Lanes(a), 0), Dual::fixed(Lanes(b))]).real());
    let (y, slopes) = Tape::new().record(|t| {
        let x = t.inputs(&[Lanes(a), Lanes(b)]);
        let y = Var::log_sum_exp(&x);
        (y.inner(), t.derivative(y, x[0]))
    });
    close(y);
    for k in [0, 1, 2, 3, 5] {
        let slope = scalar::gradient(|x: &[Var]| Var::log_sum_exp(x), &[a[k], b[k]])[0];
        assert!((slopes.0[k] - slope).abs() <= 1e-15, "lane {k}: {} for {slope}", slopes.0[k]);
    }
    // A compiled function has the values of the plain one, at the ends too.
    let compiled = Function::record(Symbol::log_sum_exp, 2);
    for k in 0..6 {
        let found = compiled.value(&[a[k], b[k]]);
        assert!((found - expected[k]).abs() <= 1e-15 * expected[k].abs() || found == expected[k]);
    }
}

#[test]
fn lanes_choose_apart_on_tapes_and_in_duals() {
    fn f<T: Real>(x: T, y: T) -> T {
        let z = x.select_lt(y, x * y, y.sin()) + x.select_le(y * 2.0, y, x);
        z.clamp(-1.5, 1.5) * x.clamp(0.0, 1.0)
    }
    let (x, y) = ([-1.0, 0.25, 0.5, 2.0], [0.5, 0.25, 0.25, 1.0]);
    let (value, dx, dy) = Tape::new().record(|t| {
        let v = t.inputs(&[Lanes(x), Lanes(y)]);
        let z = f(v[0], v[1]);
        (z.inner(), t.derivative(z, v[0]), t.derivative(z, v[1]))
    });
    let dual: Dual<Lanes<4>, 2> = f(Dual::variable(Lanes(x), 0), Dual::variable(Lanes(y), 1));
    for k in 0..4 {
        let (v, g) = scalar::value_and_gradient(|x: &[Var]| f(x[0], x[1]), &[x[k], y[k]]);
        assert!((value.0[k] - v).abs() < 1e-15 && (dual.real().0[k] - v).abs() < 1e-15);
        for (found, d) in [(dx, g[0]), (dual.tangents()[0], g[0]), (dy, g[1]), (dual.tangents()[1], g[1])] {
            assert!((found.0[k] - d).abs() < 1e-14, "lane {k}: {} for {d}", found.0[k]);
        }
    }
}

/// An interpolation table, by an index from the value of the argument.
fn looked_up<T: Real>(x: &[T], index: fn(T) -> f64) -> T {
    let table = [1.0, 2.0, 5.0, 10.0, 3.0];
    let k = index(x[0]) as usize;
    (x[0] - k as f64) * (table[k + 1] - table[k]) + table[k]
}

#[test]
fn an_index_from_a_value_is_guarded() {
    // Of the number itself: the recording holds for that number alone.
    let careless = Function::record_at(|x: &[Symbol]| looked_up(x, |x| x.value().floor()), &[1.25]);
    assert_eq!(careless.value(&[1.25]), 2.75);
    let mut out = [0.0];
    let outside = careless.try_evaluate_into(&[2.25], &mut out).unwrap_err();
    let text = outside.to_string();
    assert!(text.contains("value()") && text.contains("corners.rs") && text.contains("floor"), "{text}");
    // Of a number that is the same over the interval: it holds there.
    let careful = Function::record_at(|x: &[Symbol]| looked_up(x, |x| x.floor().value()), &[1.25]);
    assert_eq!(careful.value(&[1.5]), 3.5);
    assert_eq!(careful.gradient(&[1.75]), [3.0]);
    assert!(careful.try_evaluate_into(&[2.5], &mut out).is_err());
    assert!(careful.try_evaluate_many_into(&[1.5, 1.75, 0.5], &mut [0.0; 3]).is_err());
    assert!(
        Function::record_at(|x: &[Symbol]| looked_up(x, |x| x.floor().value()), &[2.5]).value(&[2.5]) == 7.5
    );
    // A value that is no number is a value too.
    let nan =
        Function::record_at(|x: &[Symbol]| x[0] * f64::from(u8::from(x[0].ln().value().is_nan())), &[-1.0]);
    assert_eq!(nan.value(&[-2.0]), -2.0);
    assert!(nan.try_evaluate_into(&[2.0], &mut out).is_err());
}

#[test]
fn every_lane_of_a_sweep_has_the_third_operand_of_a_product_and_sum() {
    // The third operand is no factor, so that its derivative comes through it alone.
    fn f<T: Real>(x: &[T]) -> Vec<T> {
        (0..x.len() - 2).map(|k| x[0].mul_add(x[1], x[k + 2]).sin()).collect()
    }
    for outputs in 1..=17 {
        // More inputs than outputs: rows are swept. Then by one input alone, so that columns are pushed.
        let x: Vec<f64> = (0..outputs + 2).map(|k| 0.3 + 0.1 * k as f64).collect();
        let slope = |k: usize| (x[0] * x[1] + x[k + 2]).cos();
        let jacobian = scalar::jacobian(f, &x);
        for (k, row) in jacobian.iter().enumerate() {
            assert_eq!(row[k + 2], slope(k), "{outputs} outputs, {k}");
            assert_eq!((row[0], row[1]), (x[1] * slope(k), x[0] * slope(k)));
        }
        let columns = Tape::new().record(|t| {
            let v = t.inputs(&x);
            let y = f(&v);
            let third = [v[2]];
            let mut d = vec![0.0; y.len()];
            t.jacobian(&y, &third, &mut d);
            d
        });
        for (k, d) in columns.into_iter().enumerate() {
            assert_eq!(d, if k == 0 { slope(0) } else { 0.0 }, "{outputs} outputs, {k}");
        }
    }
}

/// `y (1 - y)` and `1 - y²` are zero there.
#[test]
fn slopes_keep_their_digits_where_a_function_saturates() {
    fn f<T: Real>(x: &[T]) -> Vec<T> {
        vec![x[0].sigmoid(), x[1].tanh(), (-x[1]).tanh(), x[2].sigmoid(), x[3].tanh()]
    }
    let logistic = |x: f64| (-x).exp() / (1.0 + (-x).exp()).powi(2);
    let sech = |x: f64| x.cosh().powi(-2);
    let expected = [logistic(40.0), sech(20.0), -sech(20.0), logistic(1.5), sech(0.25)];
    for (what, found) in jacobians!(f, [40.0, 20.0, 1.5, 0.25]) {
        for (row, (k, expected)) in found.iter().zip([0, 1, 1, 2, 3].into_iter().zip(expected)) {
            let error = (row[k] / expected - 1.0).abs();
            assert!(error < 1e-14, "{what}: {} is not {expected}", row[k]);
        }
    }
    let x = Taylor::<3>::variable(40.0).sigmoid();
    assert!((x.coefficient(1) / logistic(40.0) - 1.0).abs() < 1e-14);
}
