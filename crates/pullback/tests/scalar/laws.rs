//! Laws of the scalar side: every function of the elementwise table at every number type, and random programs.

use pullback::scalar::{
    self, Dual, Function, HyperDual, Real, Single, Symbol, Tape, Taylor, Var, WideDual, directions,
};
use pullback_table::{Domain, function, row};
use pullback_testing::{Dice, alike, samples};

/// A function of the table at every type, with points of its domain.
struct Row {
    name: &'static str,
    points: Vec<Vec<f64>>,
    plain: fn(&[f64]) -> f64,
    var: fn(&[Var]) -> Var,
    dual: fn(&[Dual]) -> Dual,
    hyper: fn(&[HyperDual]) -> HyperDual,
    var_dual: fn(&[Var<Dual>]) -> Var<Dual>,
    var_var: fn(&[Var<Var>]) -> Var<Var>,
    single: fn(&[Var<Single>]) -> Var<Single>,
    wide: fn(&[WideDual]) -> WideDual,
    taylor: fn(&[Taylor<3>]) -> Taylor<3>,
    symbol: fn(&[Symbol]) -> Symbol,
    /// A piecewise constant or linear function, whose derivative says nothing at its kinks.
    smooth: bool,
}

/// The points of the domains of one or two arguments.
fn points(domains: &[Domain]) -> Vec<Vec<f64>> {
    match *domains {
        [a] => samples(a).map(|x| vec![x]).to_vec(),
        [a, b] => samples(a).into_iter().flat_map(|x| samples(b).map(|y| vec![x, y])).collect(),
        _ => unreachable!("rows have one or two arguments"),
    }
}

/// The rows of the table, and the functions that are listed.
macro_rules! rows {
    ({ $($name:ident ($($arg:ident)+) = |$x:ident| $value:expr;)* }
        $($(#[$doc:meta])* $P:ident $m:ident $try:ident($($a:ident),+) = $row:tt;
        d = $d:tt; reads $([$($r:ident)*])+; $facts:tt)*) => {
        fn rows() -> Vec<Row> {
            $(fn $m<T: Real>(x: &[T]) -> T {
                let &[$($a),+] = x else { unreachable!("the points have as many numbers") };
                function::$m($($a),+)
            })*
            $(fn $name<T: Real>($x: &[T]) -> T {
                $value
            })*
            vec![$(rows!(@ $m, row::$P.domains),)* $(rows!(@ $name, &[$(Domain::$arg),+])),*]
        }
    };
    (@ $f:ident, $domains:expr) => {
        Row {
            name: stringify!($f),
            points: points($domains),
            plain: $f, var: $f, dual: $f, hyper: $f, var_dual: $f, var_var: $f,
            single: $f, wide: $f, taylor: $f, symbol: $f,
            smooth: !["maximum", "minimum", "share"].contains(&stringify!($f)),
        }
    };
}
pullback_table::elementwise_table! { rows {
    powi (nonzero) = |x| x[0].powi(-3) + x[0].powi(0) + x[0].powi(5);
    powf (positive) = |x| x[0].powf(1.7) + x[0].powf(-2.0);
    clamp (fractional) = |x| x[0].clamp(-1.0, 1.0);
    with_plain (nonzero) = |x| (x[0] + 2.0) * 3.0 / 1.5 - 0.5 + x[0] % 0.9;
    select_lt (any any) = |x| x[0].select_lt(T::constant(0.1), x[0] * x[1], x[1].sin());
    select_le (any any) = |x| x[0].select_le(T::constant(0.1), x[0] * x[1], x[1].sin());
    assigned (any nonzero) = |x| {
        let mut y = x[0];
        y += x[1];
        y *= x[0];
        y -= x[1];
        y /= x[1];
        y += 1.0;
        y
    };
    summed (any any) = |x| x.iter().sum::<T>() * x.iter().copied().product::<T>();
    mul_add (any any) = |x| x[0].sin().mul_add(x[1], x[0] * x[1]) + x[1].mul_add(x[0], -x[0]);
    fused (any any) = |x| T::log_sum_exp(x) + T::dot(x, &[x[1], x[0].sin()]) + x[0].mul_add(x[1], x[0]);
} }

/// The derivative by Richardson-extrapolated central differences.
fn slope(f: impl Fn(f64) -> f64) -> f64 {
    let d = |h: f64| (f(h) - f(-h)) / (2.0 * h);
    let h = 2e-3;
    let (a, b, c, e) = (d(h), d(h / 2.0), d(h / 4.0), d(h / 8.0));
    let (a, b, c) = ((4.0 * b - a) / 3.0, (4.0 * c - b) / 3.0, (4.0 * e - c) / 3.0);
    let (a, b) = ((16.0 * b - a) / 15.0, (16.0 * c - b) / 15.0);
    (64.0 * b - a) / 63.0
}

#[track_caller]
fn close(what: &str, x: &[f64], a: f64, b: f64, tolerance: f64) {
    assert!(alike(a, b, tolerance), "{what} at {x:?}: {a} and {b}");
}

fn moved(x: &[f64], k: usize, h: f64) -> Vec<f64> {
    let mut x = x.to_vec();
    x[k] += h;
    x
}

fn at_tie(row: &Row, x: &[f64]) -> bool {
    !row.smooth && x[0] == x[1]
}

#[test]
fn first_derivatives_at_every_type() {
    for row in rows() {
        let recorded: Vec<Function> = row.points.iter().map(|x| Function::record_at(row.symbol, x)).collect();
        for (x, compiled) in row.points.iter().zip(recorded).filter(|(x, _)| !at_tie(&row, x)) {
            let value = (row.plain)(x);
            let (v, gradient) = scalar::value_and_gradient(row.var, x);
            assert_eq!(v, value, "{} at {x:?} on the tape", row.name);
            // The functions of the lanes differ from the standard library's by a few units in the last place.
            close(row.name, x, compiled.value(x), value, 4e-15);
            let by_program = compiled.gradient(x);
            let units: Vec<Vec<f64>> = (0..x.len()).map(|k| moved(&vec![0.0; x.len()], k, 1.0)).collect();
            let units: Vec<&[f64]> = units.iter().map(Vec::as_slice).collect();
            let wide = directions(|x: &[WideDual]| [(row.wide)(x)], x, &units).1;
            let single = Tape::<Single>::new().record(|t| {
                let x: Vec<_> = x.iter().map(|&x| t.input(Single(x as f32))).collect();
                let mut g = vec![Single(0.0); x.len()];
                t.gradient((row.single)(&x), &x, &mut g);
                g
            });
            for k in 0..x.len() {
                let difference = slope(|h| (row.plain)(&moved(x, k, h)));
                close(row.name, x, gradient[k], difference, 2e-10);
                let d = scalar::directional(row.dual, x, units[k]);
                assert_eq!(d.0, value);
                close(row.name, x, d.1, gradient[k], 1e-14);
                close(row.name, x, wide[0][k], gradient[k], 1e-14);
                close(row.name, x, by_program[k], gradient[k], 2e-14);
                close(row.name, x, single[k].value(), gradient[k], 2e-5);
                let series: Vec<Taylor<3>> = x
                    .iter()
                    .enumerate()
                    .map(|(j, &x)| if j == k { Taylor::variable(x) } else { Taylor::constant(x) })
                    .collect();
                let y = (row.taylor)(&series);
                // Whole powers are products there.
                close(row.name, x, y.value(), value, 4e-16);
                close(row.name, x, y.derivative(1), gradient[k], 1e-13);
            }
        }
    }
}

#[test]
fn second_derivatives_at_every_type() {
    for row in rows() {
        for x in row.points.iter().filter(|x| !at_tie(&row, x)) {
            let compiled = Function::record_at(row.symbol, x);
            let by_program = compiled.hessian(x);
            for k in 0..x.len() {
                let unit = moved(&vec![0.0; x.len()], k, 1.0);
                let product = scalar::hvp(row.var_dual, x, &unit);
                let product_by_program = compiled.hvp(x, &unit);
                let reverse_twice = scalar::gradient(
                    |x: &[Var]| {
                        Tape::<Var>::new().record(|t| {
                            let x = t.inputs(x);
                            t.derivative((row.var_var)(&x), x[k])
                        })
                    },
                    x,
                );
                for j in 0..x.len() {
                    let difference = slope(|h| scalar::gradient(row.var, &moved(x, j, h))[k]);
                    close(row.name, x, product[j], difference, 2e-9);
                    close(row.name, x, reverse_twice[j], product[j], 1e-12);
                    close(row.name, x, scalar::second_partial(row.hyper, x, j, k), product[j], 1e-12);
                    close(row.name, x, by_program[k][j], product[j], 1e-12);
                    close(row.name, x, product_by_program[j], product[j], 1e-12);
                }
                let series: Vec<Taylor<3>> = x
                    .iter()
                    .enumerate()
                    .map(|(j, &x)| if j == k { Taylor::variable(x) } else { Taylor::constant(x) })
                    .collect();
                close(row.name, x, (row.taylor)(&series).derivative(2), product[k], 1e-12);
            }
        }
    }
}

#[test]
fn ties_share_their_derivative() {
    fn top<T: Real>(x: &[T]) -> T {
        x[0].max(x[1]) + x[0].min(x[1]) * 3.0
    }
    assert_eq!(scalar::gradient(top, &[2.0, 2.0]), [2.0, 2.0]);
    assert_eq!(Function::record(top, 2).gradient(&[2.0, 2.0]), [2.0, 2.0]);
    fn border<T: Real>(x: &[T]) -> T {
        x[0].clamp(0.0, 1.0)
    }
    for (x, d) in [(0.0, 1.0), (1.0, 1.0), (-0.1, 0.0), (1.1, 0.0)] {
        assert_eq!(scalar::gradient(border, &[x]), [d]);
        assert_eq!(Function::record(border, 1).gradient(&[x]), [d]);
    }
}

/// A program of random operations on a growing list of numbers, the same for every type.
fn random_program<T: Real>(x: &[T], seed: u64) -> T {
    let mut dice = Dice(seed);
    let mut next = |n: usize| dice.roll(n);
    let mut v = x.to_vec();
    for _ in 0..40 {
        let (a, b) = (v[next(v.len())], v[next(v.len())]);
        let y = match next(16) {
            0 => a + b,
            1 => a - b * 0.7,
            2 => a * b,
            3 => a / (b * b + 1.0),
            4 => a.sin(),
            5 => (a * 0.3).tanh(),
            6 => (-(a * a)).exp(),
            7 => (a * a + 0.5).ln(),
            8 => (a * a + 0.1).sqrt(),
            9 => a.maximum(b),
            10 => a.atan2(b + 3.0),
            11 => a.select_lt(b, a * 2.0, b.cos()),
            12 => a.sigmoid() * b,
            13 => a.clamp(-1.5, 1.5),
            14 => {
                if a < b {
                    a * a
                } else {
                    b - 1.0
                }
            }
            _ => a.erf(),
        };
        v.push(y);
    }
    v.iter().copied().sum()
}

#[test]
fn random_programs_agree_at_every_type() {
    for seed in 0..60u64 {
        let x: Vec<f64> =
            (0..4).map(|k| ((seed * 4 + k) as f64 * 0.618_033_988_7).fract() * 3.0 - 1.5).collect();
        let value = random_program(&x, seed);
        let (v, g) = scalar::value_and_gradient(|x: &[Var]| random_program(x, seed), &x);
        assert_eq!(v, value, "seed {seed}");
        let compiled = Function::record_at(|x: &[Symbol]| random_program(x, seed), &x);
        close("value", &x, compiled.value(&x), value, 1e-12);
        let by_program = compiled.gradient(&x);
        // Enough points for full and broken blocks of lanes.
        let many = compiled.gradients(&x.repeat(67));
        let units: Vec<Vec<f64>> = (0..4).map(|k| moved(&[0.0; 4], k, 1.0)).collect();
        let h = scalar::hessian(|x: &[Var<Dual<f64, 4>>]| random_program(x, seed), &x);
        let h_by_program = compiled.hessian(&x);
        let sparse = compiled.sparse_hessian(&x).to_dense();
        let substituted = compiled.sparse_hessian_by_substitution(&x).to_dense();
        for k in 0..4 {
            let d = scalar::directional(|x: &[Dual]| random_program(x, seed), &x, &units[k]).1;
            close("dual", &x, d, g[k], 1e-11);
            close("compiled", &x, by_program[k], g[k], 1e-11);
            assert!((0..67).all(|p| many[4 * p + k] == by_program[k]), "one point and many, seed {seed}");
            for j in 0..4 {
                close("hessian", &x, h_by_program[k][j], h[k][j], 1e-9);
                close("sparse hessian", &x, sparse[k][j], h[k][j], 1e-9);
                close("substituted hessian", &x, substituted[k][j], h[k][j], 1e-8);
            }
        }
    }
}

#[test]
fn taylor_series_of_any_degree() {
    // ln(1 + sin t) and its derivatives by nested dual numbers.
    fn f<T: Real>(x: T) -> T {
        (x.sin() + 1.5).ln() * x.exp() + (x * x + 2.0).powf(0.3) + x.atan() / (x + 3.0)
    }
    type D<T> = Dual<T, 1>;
    let lift = |x: f64| {
        let one = D::new(x, [1.0]);
        let two = D::new(one, [D::constant(1.0)]);
        let three = D::new(two, [D::<D<f64>>::constant(1.0)]);
        D::new(three, [D::<D<D<f64>>>::constant(1.0)])
    };
    let y = f(Taylor::<9>::variable(0.4));
    let n = f(lift(0.4));
    let fourth = n.tangents()[0].tangents()[0].tangents()[0].tangents()[0];
    let third = n.tangents()[0].tangents()[0].tangents()[0].real();
    close("third", &[0.4], y.derivative(3), third, 1e-12);
    close("fourth", &[0.4], y.derivative(4), fourth, 1e-12);
    // The series is the function nearby.
    let h = 0.05f64;
    let sum: f64 = (0..9).map(|k| y.coefficient(k) * h.powi(k as i32)).sum();
    close("sum", &[h], sum, f(0.45), 1e-12);
    assert_eq!(f(Taylor::<1>::variable(0.4)).value(), f(0.4));
}
