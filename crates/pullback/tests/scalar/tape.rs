//! The scalar tape: what is recorded, what is kept, and the derivatives read from it.

use pullback::scalar::{self, Dual, Lanes, Number, Real, Recording, Tape, Taped, Var, external};
use pullback_testing::assert_close;

pub(super) fn smooth<T: Real>(x: &[T]) -> T {
    let a = (x[0] * x[1]).sin() + x[2].exp() / (x[0] * x[0] + 1.0);
    a * a.tanh() + (x[1] - x[2] * 0.5).atan2(x[0]) - 2.0
}

/// Central differences, good to about 1e-9 here.
fn differences(f: impl Fn(&[f64]) -> f64, x: &[f64]) -> Vec<f64> {
    (0..x.len())
        .map(|k| {
            let at = |h: f64| {
                let mut x = x.to_vec();
                x[k] += h;
                f(&x)
            };
            let h = 1e-4;
            (8.0 * (at(h) - at(-h)) - (at(2.0 * h) - at(-2.0 * h))) / (12.0 * h)
        })
        .collect()
}

/// Records that do not fit into one chunk of a tape, which is smaller under Miri.
const MORE_THAN_A_CHUNK: usize = if cfg!(miri) { 1100 } else { 70_000 };

#[test]
fn gradient_is_the_slope() {
    let x = [0.7, -1.3, 0.4];
    assert_close(&scalar::gradient(smooth, &x), &differences(smooth, &x), 1e-10);
}

#[test]
fn only_meetings_of_two_nodes_are_recorded() {
    Tape::new().record(|t| {
        let (x, y) = (t.input(0.5), t.input(2.0));
        let _ = ((-x).exp() * 3.0 + 1.0).sin().powi(3) - x * x / (x + 1.0);
        assert_eq!(t.records(), 0);
        let z = x * y;
        assert_eq!(t.records(), 1);
        let _ = z.ln() + Var::constant(3.0) * z;
        assert_eq!(t.records(), 1);
    });
    assert_eq!(size_of::<Var>(), 24);
}

#[test]
fn a_product_and_a_sum_are_one_record() {
    Tape::new().record(|t| {
        let (x, y, z) = (t.input(3.0), t.input(5.0), t.input(7.0));
        let gradient = |w: Var, records: usize| {
            assert_eq!(t.records(), records);
            let mut g = [0.0; 3];
            t.gradient(w, &[x, y, z], &mut g);
            g
        };
        let start = t.position();
        let cases = [
            (x.mul_add(y, z), 1, 22.0, [5.0, 3.0, 1.0]),
            // The same variable twice or three times, and factors.
            (x.mul_add(y, x), 2, 18.0, [6.0, 3.0, 0.0]),
            (x.mul_add(x, x), 3, 12.0, [7.0, 0.0, 0.0]),
            ((-x).mul_add(y * 2.0, z), 4, -23.0, [-10.0, -6.0, 1.0]),
        ];
        for (w, records, value, expected) in cases {
            assert_eq!((w.value(), gradient(w, 4)), (value, expected), "up to record {records}");
        }
        t.rewind(start);
        // Where the sum has a factor there are two records; where there are fewer variables, at most one.
        assert_eq!(gradient(x.mul_add(y, -z), 2), [5.0, 3.0, -1.0]);
        t.rewind(start);
        let two = Var::constant(2.0);
        assert_eq!(gradient(two.mul_add(y, two), 0), [0.0, 2.0, 0.0]);
        assert_eq!(gradient(x.mul_add(y, two), 1), [5.0, 3.0, 0.0]);
        assert_eq!(gradient(two.mul_add(y, z), 2), [0.0, 2.0, 1.0]);
        assert_eq!(gradient(two.mul_add(two, two), 2), [0.0; 3]);
    });
}

/// Sums of products, by `mul_add` or written out.
fn sums<T: Real>(x: &[T], fused: bool) -> [T; 4] {
    let add = |sum: T, a: T, b: T| if fused { a.mul_add(b, sum) } else { a * b + sum };
    let mut y = [x[0] * x[1], x[1] + x[2], x[2], x[0].sin()];
    for k in 0..12 {
        let next = add(y[(k + 2) % 4], y[k % 4], x[k % 3].cos());
        y[(k + 1) % 4] = add(next, x[(k + 1) % 3], y[(k + 3) % 4]);
    }
    y
}

#[test]
fn fused_products_have_the_bits_of_those_written_out() {
    fn fused<T: Real>(x: &[T]) -> T {
        sums(x, true).into_iter().sum()
    }
    fn plain<T: Real>(x: &[T]) -> T {
        sums(x, false).into_iter().sum()
    }
    let x = [0.7, -1.3, 0.4];
    assert_eq!(scalar::value_and_gradient(fused, &x), scalar::value_and_gradient(plain, &x));
    assert_close(&scalar::gradient(fused, &x), &differences(fused, &x), 1e-10);
    assert_eq!(scalar::hessian(fused, &x), scalar::hessian(plain, &x));
    assert_eq!(scalar::hvp(fused, &x, &[1.0, 2.0, -1.0]), scalar::hvp(plain, &x, &[1.0, 2.0, -1.0]));
    // Several rows at once, and with four outputs of three inputs the walk forward.
    let rows = |fused: bool| scalar::jacobian(move |x: &[Var]| sums(x, fused)[..3].to_vec(), &x);
    assert_eq!(rows(true), rows(false));
    let columns = |fused: bool| scalar::jacobian(move |x: &[Var]| sums(x, fused), &x);
    assert_eq!(columns(true), columns(false));
    assert_close(&columns(true)[2], &rows(true)[2], 1e-14);
    // Reverse over reverse, and in lanes.
    fn slope<T: Taped>(x: &[T], f: fn(&[Var<T>]) -> Var<T>) -> T {
        scalar::record(|t: &Recording<'_, T>| {
            let x = t.inputs(x);
            t.derivative(f(&x), x[0])
        })
    }
    let second = |f: fn(&[Var<Var>]) -> Var<Var>| scalar::gradient(move |x| slope(x, f), &x);
    assert_close(&second(fused), &second(plain), 1e-14);
    let lanes = x.map(|x| Lanes([x, x + 0.5]));
    assert_eq!(slope(&lanes, fused), slope(&lanes, plain));
}

#[test]
fn fused_products_behind_checkpoints_and_preaccumulation() {
    fn looped<T: Real>(x: &[T], fused: bool) -> T {
        let step = move |_: usize, y: &[T], x: &[T]| vec![sums(&[y[0].sin(), x[0], x[1]], fused)[0]];
        T::checkpointed(20, 3, &x[..1], &x[1..], step)[0]
    }
    let x = [0.7, -1.3, 0.4];
    let by_loop = |fused: bool| scalar::gradient(move |x| looped(x, fused), &x);
    assert_eq!(by_loop(true), by_loop(false));
    let short = scalar::gradient(|x| Var::preaccumulate(|| sums(x, true)).into_iter().sum(), &x);
    assert_close(&short, &scalar::gradient(|x| sums(x, false).into_iter().sum(), &x), 1e-13);
}

#[test]
fn fused_products_grow_over_chunks() {
    fn squares<T: Real>(x: &[T]) -> T {
        x.windows(2).fold(x[0] * x[1], |sum, x| x[0].mul_add(x[1], sum))
    }
    let x: Vec<f64> = (0..MORE_THAN_A_CHUNK).map(|k| (k as f64).sin()).collect();
    let g = scalar::gradient(squares, &x);
    assert!(
        (2..x.len() - 1).all(|k| g[k] == x[k - 1] + x[k + 1] || (g[k] - x[k - 1] - x[k + 1]).abs() < 1e-15)
    );
    assert_close(&scalar::gradient(squares, &x[..3]), &[2.0 * x[1], 2.0 * x[0] + x[2], x[1]], 1e-15);
}

#[test]
fn a_hundred_thousand_records_grow_over_chunks() {
    fn product<T: Real>(x: &[T]) -> T {
        x.iter().product()
    }
    let n = MORE_THAN_A_CHUNK;
    let x: Vec<f64> = (0..n).map(|k| 1.0 + 1e-6 * (k as f64).sin()).collect();
    let (v, g) = scalar::value_and_gradient(product, &x);
    assert!((0..n).all(|k| (g[k] - v / x[k]).abs() < 1e-12));
    // Warm, and shorter than before.
    let g = scalar::gradient(product, &x[..3]);
    assert_close(&g, &[x[1] * x[2], x[0] * x[2], x[0] * x[1]], 1e-15);
}

#[test]
fn several_outputs_share_nodes_inputs_and_constants() {
    fn f<T: Real>(x: &[T]) -> Vec<T> {
        let p = x[0] * x[1];
        vec![p, -p * 2.0, x[0], T::constant(4.0), p.sin(), x[1] * 3.0, p + x[0], p, p, p * p]
    }
    let x = [0.3f64, 1.7];
    let (p, c) = (x[0] * x[1], (x[0] * x[1]).cos());
    let expected: Vec<[f64; 2]> = vec![
        [x[1], x[0]],
        [-2.0 * x[1], -2.0 * x[0]],
        [1.0, 0.0],
        [0.0, 0.0],
        [c * x[1], c * x[0]],
        [0.0, 3.0],
        [x[1] + 1.0, x[0]],
        [x[1], x[0]],
        [x[1], x[0]],
        [2.0 * p * x[1], 2.0 * p * x[0]],
    ];
    let j = scalar::jacobian(f, &x);
    for (row, e) in j.iter().zip(&expected) {
        assert_close(row, e, 1e-15);
    }
    // The same by reverse sweeps of every width: fewer outputs than inputs.
    for m in 1..=9 {
        let j =
            scalar::jacobian(|x: &[Var]| f(x)[..m].to_vec(), &[x[0], x[1], 0., 0., 0., 0., 0., 0., 0., 0.]);
        for (row, e) in j.iter().zip(&expected) {
            assert_close(&row[..2], e, 1e-15);
            assert!(row[2..].iter().all(|&d| d == 0.0));
        }
    }
}

#[test]
fn second_order_in_three_ways() {
    let x = [0.7, -1.3, 0.4];
    let h = scalar::hessian(smooth, &x);
    for i in 0..3 {
        let mut unit = [0.0; 3];
        unit[i] = 1.0;
        assert_close(&scalar::hvp(smooth, &x, &unit), &h[i], 1e-13);
        let row: Vec<f64> = (0..3).map(|j| scalar::second_partial(smooth, &x, i, j)).collect();
        assert_close(&row, &h[i], 1e-12);
        // Reverse over reverse.
        let row = scalar::gradient(
            |x: &[Var]| {
                Tape::<Var>::new().record(|t| {
                    let x: Vec<Var<Var>> = t.inputs(x);
                    t.derivative(smooth(&x), x[i])
                })
            },
            &x,
        );
        assert_close(&row, &h[i], 1e-12);
    }
}

#[test]
fn tapes_of_one_type_nest() {
    // The inner gradient is a constant for the outer tape, and does not disturb it.
    fn f<T: Real>(x: &[T]) -> T {
        let inner = scalar::gradient(|y: &[Var]| y[0] * y[0] * y[1], &[3.0, 4.0]);
        x[0] * x[1] * inner[0]
    }
    assert_eq!(scalar::gradient(f, &[1.0, 2.0]), [48.0, 24.0]);
}

#[test]
fn tapes_of_types_that_share_a_place_take_turns() {
    /// The derivative of a cube, three times in a row, and around one of another type.
    fn slope<const N: usize>(x: f64, inside: impl Fn() -> f64) -> f64 {
        (0..3).fold(0.0, |_, _| {
            scalar::record(|t: &Recording<'_, Dual<f64, N>>| {
                let x = t.input(Dual::fixed(x));
                let y = x * x;
                let inner = inside();
                t.derivative(y * x * inner, x).real() / inner
            })
        })
    }
    let check = || {
        assert_eq!(slope::<1>(2.0, || slope::<2>(1.0, || 1.0)), 12.0);
        assert_eq!(slope::<2>(2.0, || slope::<2>(1.0, || slope::<1>(1.0, || 1.0))), 12.0);
    };
    check();
    scalar::free_tapes();
    check();
    std::thread::spawn(check).join().unwrap();
}

#[test]
fn rewinding_forgets_what_came_after() {
    Tape::new().record(|t| {
        let (x, y) = (t.input(2.0), t.input(3.0));
        let a = x * y;
        let here = t.position();
        for k in 0..100 {
            let b = a * x + y * k as f64;
            assert_eq!(t.derivative(b, x), 12.0);
            t.rewind(here);
            assert_eq!(t.records(), 1);
        }
        assert_eq!(t.derivative(a * y, y), 12.0);
    });
}

#[test]
fn late_inputs_keep_their_adjoints() {
    Tape::new().record(|t| {
        let x = t.input(2.0);
        let y = t.input(5.0);
        let a = x * y;
        let late = t.input(7.0);
        let b = a * late * late;
        for _ in 0..2 {
            let mut g = [0.0; 3];
            t.gradient(b, &[x, late, y], &mut g);
            assert_eq!(g, [245.0, 140.0, 98.0]);
        }
    });
}

#[test]
fn fused_sums_have_the_derivatives_of_their_terms() {
    fn lse<T: Real>(x: &[T]) -> T {
        T::log_sum_exp(&[x[0] * x[1], x[1], x[0] + x[2], T::constant(0.5)])
    }
    fn dot<T: Real>(x: &[T]) -> T {
        T::dot(&[x[0] * x[1], x[1], T::constant(2.0)], &[x[2], x[1].sin(), x[0]])
    }
    let x = [0.7, -1.3, 0.4];
    assert_close(&scalar::gradient(lse, &x), &differences(lse, &x), 1e-10);
    assert_close(&scalar::gradient(dot, &x), &differences(dot, &x), 1e-10);
    let j = scalar::jacobian(|x: &[Var]| [lse(x), dot(x)], &x);
    assert_close(&j[1], &differences(dot, &x), 1e-10);
    let h = scalar::hessian(lse, &x);
    let fine = scalar::hessian(|x: &[_]| (x[0] * x[1]).exp().ln(), &x);
    assert!(h[0][0].is_finite() && fine[0][0].is_finite());
    assert_eq!(f64::log_sum_exp(&[]), f64::NEG_INFINITY);
    assert_eq!(f64::log_sum_exp(&[f64::INFINITY, 1.0]), f64::INFINITY);
}

#[test]
fn preaccumulation_changes_only_the_length_of_the_tape() {
    fn long<T: Real>(x: &[T]) -> Vec<T> {
        let mut y = vec![x[0] * x[1], x[1] + 2.0];
        for _ in 0..50 {
            y = vec![(y[0] * x[0] + y[1]).sin(), y[0].cos() * y[1]];
        }
        y
    }
    fn plain<T: Real>(x: &[T]) -> T {
        let y = long(x);
        y[0] * y[1] + x[2]
    }
    fn short<T: Real>(x: &[T]) -> T {
        let y = T::preaccumulate(|| long(x));
        y[0] * y[1] + x[2]
    }
    let x = [0.7, -1.3, 0.4];
    assert_close(&scalar::gradient(short, &x), &scalar::gradient(plain, &x), 1e-13);
    for (a, b) in scalar::hessian(short, &x).iter().zip(scalar::hessian(plain, &x)) {
        assert_close(a, &b, 1e-11);
    }
    Tape::new().record(|t| {
        let x = t.inputs(&x);
        short(&x);
        assert!(t.records() <= 4);
    });
}

/// Solves a 2 x 2 system.
fn solve(a: [f64; 4], b: [f64; 2]) -> [f64; 2] {
    let det = a[0] * a[3] - a[1] * a[2];
    [(b[0] * a[3] - a[1] * b[1]) / det, (a[0] * b[1] - b[0] * a[2]) / det]
}

#[test]
fn an_external_linear_solve() {
    fn by_operations<T: Real>(x: &[T]) -> Vec<T> {
        let det = x[0] * x[3] - x[1] * x[2];
        vec![(x[4] * x[3] - x[1] * x[5]) / det, (x[0] * x[5] - x[4] * x[2]) / det]
    }
    // A x = b: the cotangent of b is A⁻ᵀ g, that of A is minus its outer product with x.
    fn by_solver(x: &[Var]) -> Vec<Var> {
        let a: [f64; 4] = std::array::from_fn(|k| x[k].value());
        let y = solve(a, [x[4].value(), x[5].value()]);
        external(x, &y, move |g, d| {
            let w = solve([a[0], a[2], a[1], a[3]], [g[0], g[1]]);
            d.copy_from_slice(&[-w[0] * y[0], -w[0] * y[1], -w[1] * y[0], -w[1] * y[1], w[0], w[1]]);
        })
    }
    let x = [2.0, 0.5, -0.3, 1.5, 1.0, 4.0];
    for (a, b) in scalar::jacobian(by_solver, &x).iter().zip(scalar::jacobian(by_operations, &x)) {
        assert_close(a, &b, 1e-14);
    }
    // With a shared and scaled argument, and behind other operations.
    let f = |y: Vec<Var>, x: &[Var]| y[0] * y[1] + x[0].sin() * y[0];
    let g =
        scalar::gradient(|x: &[Var]| f(by_solver(&x.iter().map(|&a| a * 2.0).collect::<Vec<_>>()), x), &x);
    let e = scalar::gradient(
        |x: &[Var]| f(by_operations(&x.iter().map(|&a| a * 2.0).collect::<Vec<_>>()), x),
        &x,
    );
    assert_close(&g, &e, 1e-13);
}

#[test]
fn the_outputs_of_an_external_function_may_lie_in_several_chunks() {
    Tape::new().record(|t| {
        let x = t.input(2.0);
        let n = MORE_THAN_A_CHUNK;
        let y = external(&[x], &vec![2.0; n], |g, d| d[0] = g.iter().sum());
        // The second sweep finds the adjoints clean.
        for last in [3.0, 5.0] {
            assert_eq!(t.derivative(y[0] + y[n / 2] * 10.0 + y[n - 1] * last, x), 11.0 + last);
        }
    });
}

#[test]
fn what_does_not_depend_stays_so_behind_infinite_slopes() {
    fn f<T: Real>(x: &[T]) -> T {
        (x[0] * 0.0).sqrt() + x[0].relu().sqrt() + x[1] + T::constant(0.0).sqrt()
    }
    assert_eq!(scalar::gradient(f, &[-1.0, 2.0]), [0.0, 1.0]);
    assert_eq!(scalar::directional(f, &[-1.0, 2.0], &[1.0, 1.0]).1, 1.0);
    fn steep<T: Real>(x: &[T]) -> T {
        x[0].sqrt()
    }
    assert_eq!(scalar::gradient(steep, &[0.0]), [f64::INFINITY]);
}

#[test]
fn second_derivatives_stay_behind_infinite_slopes_too() {
    fn f<T: Real>(x: &[T]) -> T {
        x[0].sqrt() * x[1] + x[1] * x[2].square() + (x[0] * x[1]).sqrt()
    }
    let x = [0.0, 2.0, 3.0];
    let second = |i: usize, j: usize| scalar::second_partial(f, &x, i, j);
    // The slope in x[0] is infinite, and does not change with x[2].
    assert_eq!(scalar::directional(f, &x, &[1.0, 0.0, 0.0]).1, f64::INFINITY);
    assert_eq!(second(2, 0), 0.0);
    assert_eq!((second(1, 2), second(2, 1), second(2, 2), second(1, 1)), (6.0, 6.0, 4.0, 0.0));
}

#[test]
fn domain_errors_are_nan() {
    fn f<T: Real>(x: &[T]) -> T {
        x[0].ln() * x[1]
    }
    let (v, g) = scalar::value_and_gradient(f, &[-1.0, 2.0]);
    assert!(v.is_nan() && g[0] == -2.0 && g[1].is_nan());
    let (v, g) = scalar::value_and_gradient(f, &[0.0, 2.0]);
    assert!(v == f64::NEG_INFINITY && g[0] == f64::INFINITY && g[1] == f64::NEG_INFINITY);
}

#[test]
fn empty_input() {
    assert!(scalar::gradient(|_: &[Var]| Var::constant(1.0), &[]).is_empty());
    assert_eq!(scalar::jacobian(|_: &[Var]| [Var::constant(1.0)], &[]), [[0.0; 0]]);
    assert!(scalar::jacobian(|_: &[Var]| Vec::<Var>::new(), &[1.0]).is_empty());
    assert!(scalar::hessian(|_: &[Var<_>]| Var::constant(1.0), &[]).is_empty());
    assert!(scalar::hvp(|_: &[Var<_>]| Var::constant(1.0), &[], &[]).is_empty());
}
