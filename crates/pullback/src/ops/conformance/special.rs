//! The law of special points: at zeros, ends of domains, infinities, ties and equal elements every mode gives the same derivatives, of
//! first and second order. Values are compared as they are, NaN and infinities included: a mode that is NaN where another one is a
//! number is wrong, whichever of them it is.

use super::*;
use crate::{compile, grad, hessian, hvp, jacfwd, jvp, vjp};
use pullback_testing::alike;

type Function = fn(&Tensor) -> Tensor;

/// Of f64, within the rounding of a few operations.
fn same(a: f64, b: f64) -> bool {
    alike(a, b, 1e-12)
}

/// Which modes disagree with the gradient in reverse mode and the Hessian by forward over reverse. The function takes the
/// elements along the first axis of `x` to one result, for each of the points along the second, if there is one.
fn disagreements(name: &str, f: impl Fn(&Tensor) -> Tensor, x: &Tensor) -> Vec<String> {
    let (f, n) = (&f, x.shape()[0]);
    let total = &|x: &Tensor| f(x).sum();
    let unit = |k: usize| {
        let row = Tensor::eye(n).get(k as isize);
        if x.rank() == 1 { row } else { row.unsqueeze(1) * Tensor::ones(x.shape()) }
    };
    let along = |of: &dyn Fn(&Tensor) -> Tensor| (0..n).flat_map(|k| of(&unit(k)).to_vec::<f64>()).collect();
    let compiled = compile(total);
    let compiled_hvp = compile(|(x, v): &(Tensor, Tensor)| hvp(total, x, v));
    let mut first: Vec<(&str, Vec<f64>)> = vec![
        ("reverse", grad(total)(x).to_vec()),
        ("forward", along(&|v| jvp(f, x, v).1)),
        ("compiled reverse", compile(grad(total)).call(x).to_vec()),
        ("reverse of compiled", grad(|x: &Tensor| compiled.call(x))(x).to_vec()),
    ];
    let twice = |v: &Tensor| {
        let tangents: Vec<Tensor> = (0..n).map(|k| jvp(|x: &Tensor| jvp(f, x, v).1, x, &unit(k)).1).collect();
        Tensor::stack(&tangents.iter().collect::<Vec<_>>(), 0)
    };
    let mut second: Vec<(&str, Vec<f64>)> = vec![
        ("forward over reverse", along(&|v| hvp(total, x, v))),
        ("reverse over reverse", along(&|v| vjp(grad(total), x).1(v))),
        ("reverse over forward", along(&|v| grad(|x: &Tensor| jvp(total, x, v).1)(x))),
        ("forward over forward", along(&twice)),
        ("compiled hvp", along(&|v| compiled_hvp.call(&(x.clone(), v.clone())))),
    ];
    if x.rank() == 1 {
        first.push(("jacfwd", jacfwd(total)(x).to_vec()));
        second.push(("hessian", hessian(total)(x).t().to_vec()));
    }
    let mut found = Vec::new();
    for modes in [first, second] {
        let (reference, expected) = &modes[0];
        for (mode, values) in &modes[1..] {
            assert_eq!(values.len(), expected.len(), "{name}: {mode}");
            for (k, (&a, &b)) in values.iter().zip(expected).enumerate().filter(|(_, (a, b))| !same(**a, **b))
            {
                let point = if x.rank() == 1 { x.clone() } else { x.t().get((k % x.shape()[1]) as isize) };
                found.push(format!("{name} at {:?}: {mode} {a}, {reference} {b}", point.to_vec::<f64>()));
            }
        }
    }
    found
}

#[test]
fn all_modes_agree_at_special_points_of_every_row() {
    let odd = [0.0, -0.0, 0.5, 1.0, -1.0, 2.0, -2.0, 3.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
    let mut found = Vec::new();
    let mut tried = 0;
    for sample in Op::samples() {
        if !is_row(&sample.op) || !matches!(&sample.inputs[0], Draw::Float(_, s) if s.is_empty()) {
            continue;
        }
        let arity = sample.inputs.len();
        let mut points: Vec<[f64; 2]> = odd.iter().flat_map(|&a| odd.map(|b| [a, b])).collect();
        // There ∂²/∂a∂b = a^(b-1) (1 + b ln a) is ∞ - ∞ in one order, and -∞ in the other.
        if matches!(sample.op, Op::Pow(_)) {
            points.retain(|[a, b]| !(*a == 0.0 && (*b == 0.5 || *b == f64::NEG_INFINITY)));
        }
        let rows: Vec<f64> = (0..arity).flat_map(|k| points.iter().map(move |p| p[k])).collect();
        let x = Tensor::from(&rows[..]).reshape([arity, points.len()]);
        let f = |x: &Tensor| {
            let args: Vec<Tensor> = (0..arity as isize).map(|k| x.get(k)).collect();
            bind(sample.op.clone(), &args.iter().collect::<Vec<_>>()).unwrap()
        };
        found.extend(disagreements(sample.op.name(), f, &x));
        tried += 1;
    }
    assert!(tried > 50, "only {tried} rows");
    assert!(found.is_empty(), "{} disagreements:\n{}", found.len(), found.join("\n"));
}

#[test]
fn all_modes_agree_at_special_points_of_reductions() {
    let inf = f64::INFINITY;
    let points: Vec<Vec<f64>> = vec![
        vec![0.0, 0.0, 0.0],
        vec![2.0, 2.0, 2.0],
        vec![0.0, 1.0, 0.0],
        vec![0.0, -1.0, 2.0],
        vec![-1.0, -1.0, -2.0],
        vec![-inf, 0.0, 1.0],
        vec![-inf, -inf, -inf],
        vec![inf, 0.0, 1.0],
    ];
    let functions: [(&str, Function); 17] = [
        ("sum", |x| x.sum().square()),
        ("mean", |x| x.mean().square()),
        ("prod", |x| x.prod()),
        ("max", |x| x.max()),
        ("min", |x| x.min()),
        ("sqrt of max", |x| x.max().sqrt()),
        ("sqrt of relu", |x| x.relu().sum().sqrt()),
        ("logsumexp", |x| x.logsumexp()),
        ("var", |x| x.var()),
        ("std", |x| x.std()),
        ("norm", |x| x.norm()),
        ("root of a square", |x| x.square().sqrt().sum()),
        ("root of a sum of squares", |x| x.square().sum().sqrt()),
        ("root of a product", |x| (x.get(0) * x.get(1)).sqrt()),
        ("clamp", |x| x.clamp(0.0, 1.0).square().sum()),
        ("maximum of a logarithm", |x| x.get(0).maximum(x.get(1).ln())),
        ("where", |x| Tensor::where_(&x.gt(0.0), x.ln(), x).sum()),
    ];
    let points: Vec<Tensor> = points.iter().map(|p| Tensor::from(&p[..])).collect();
    let found: Vec<String> = (functions.iter())
        .flat_map(|(name, f)| points.iter().flat_map(|x| disagreements(name, f, x)).collect::<Vec<_>>())
        .collect();
    assert!(found.is_empty(), "{} disagreements:\n{}", found.len(), found.join("\n"));
}

/// Where elements are zero or equal, what scans and orders choose is the same in all modes.
#[test]
fn all_modes_agree_at_zeros_and_ties_of_scans_and_orders() {
    let functions: [(&str, Function); 10] = [
        ("cumsum", |x| x.cumsum(0).square().sum()),
        ("cumprod", |x| x.cumprod(0).sum()),
        ("cumlogsumexp", |x| x.cumlogsumexp(0).square().sum()),
        ("cummax", |x| x.cummax(0).square().sum()),
        ("linear_scan", |x| x.linear_scan(x, 0).sum()),
        ("sort", |x| (x.sort(0).0 * x.cumsum(0)).sum()),
        ("topk", |x| x.topk(2, 0).0.prod()),
        ("median", |x| x.median().square()),
        ("segment_max", |x| x.segment_max(&Tensor::from([0i64, 1, 0]), 2).prod()),
        ("p_norm", |x| x.p_norm(3.0, 0)),
    ];
    for x in [[0.0, 0.0, 0.0], [2.0, 2.0, 2.0], [0.0, 1.0, 0.0], [-1.0, 0.0, -1.0], [1.5, 2.0, 0.5]] {
        for (name, f) in functions {
            assert_eq!(disagreements(name, f, &Tensor::from(x)), Vec::<String>::new());
        }
    }
}

/// A branch that is not taken has no derivative of any order, whatever it holds.
#[test]
fn all_modes_are_zero_behind_a_guard() {
    let guarded: [(&str, Function); 11] = [
        ("sqrt", |x| x.sqrt()),
        ("ln", |x| x.ln()),
        ("recip", |x| x.recip()),
        ("rsqrt", |x| x.rsqrt()),
        ("cbrt", |x| x.cbrt()),
        ("pow 0.5", |x| x.pow(0.5)),
        ("pow -1.5", |x| x.pow(-1.5)),
        ("sinc", |x| x.sin() / x),
        ("x ln x", |x| x * x.ln()),
        ("quotient", |x| 1.0 / (x * x)),
        ("sqrt of ln", |x| x.ln().sqrt() * x),
    ];
    for (name, f) in guarded {
        let guard = move |x: &Tensor| Tensor::where_(&x.gt(0.0), f(x), 0.0);
        assert_eq!(disagreements(name, guard, &Tensor::from([[0.0, 4.0]])), Vec::<String>::new());
        let (x, one) = (Tensor::scalar(0.0), Tensor::scalar(1.0));
        let along = |f: &dyn Fn(&Tensor) -> Tensor, x: &Tensor| jvp(f, x, &one).1;
        let thirds: [(&str, Tensor); 6] = [
            ("rrr", grad(grad(grad(guard)))(&x)),
            ("frr", along(&grad(grad(guard)), &x)),
            ("rfr", grad(|x: &Tensor| along(&grad(guard), x))(&x)),
            ("ffr", along(&|x| along(&grad(guard), x), &x)),
            ("rrf", grad(grad(|x: &Tensor| along(&guard, x)))(&x)),
            ("fff", along(&|x| along(&|x| along(&guard, x), x), &x)),
        ];
        for (mode, value) in
            [("first", grad(guard)(&x)), ("second", grad(grad(guard))(&x))].iter().chain(&thirds)
        {
            assert_eq!(value.item(), 0.0, "{name} in {mode}");
        }
    }
}

#[test]
fn the_logarithm_of_a_sum_of_nothing_is_minus_infinity() {
    let y = Tensor::zeros([2, 0, 3]).logsumexp_axes(1);
    assert_eq!((y.shape(), y.to_vec::<f64>()), (&[2, 3][..], vec![f64::NEG_INFINITY; 6]));
    assert_eq!(Tensor::zeros([0, 3]).logsumexp_axes(0).to_vec::<f64>(), [f64::NEG_INFINITY; 3]);
    assert_eq!(Tensor::zeros([0, 3]).logsumexp().item(), f64::NEG_INFINITY);
    assert_eq!(
        Tensor::zeros([2, 0]).cast(DType::F16).logsumexp_axes(1).to_vec::<f64>(),
        [f64::NEG_INFINITY; 2]
    );
    assert_eq!(Tensor::zeros([2, 0]).logsumexp_axes(0).shape(), [0]);
    let g = grad(|x: &Tensor| x.logsumexp_axes(1).sum())(&Tensor::zeros([2, 0]));
    assert_eq!(g.shape(), [2, 0]);
}

/// Log-space dynamic programming starts from -∞, and two impossible things together are impossible.
#[test]
fn infinities_add_in_log_space() {
    let inf = f64::INFINITY;
    for (a, b, y, da) in [
        (-inf, -inf, -inf, 0.5),
        (inf, inf, inf, 0.5),
        (-inf, inf, inf, 0.0),
        (-inf, 2.0, 2.0, 0.0),
        (inf, 2.0, inf, 1.0),
    ] {
        for (a, b, da) in [(a, b, da), (b, a, 1.0 - da)] {
            let (a, b) = (Tensor::scalar(a), Tensor::scalar(b));
            assert_eq!(a.logaddexp(&b).item(), y, "{a} and {b}");
            assert_eq!(grad(|a: &Tensor| a.logaddexp(&b))(&a).item(), da, "{a} and {b}");
            assert_eq!(compile(|a: &Tensor| a.logaddexp(&b)).call(&a).item(), y);
        }
    }
    assert!(Tensor::scalar(f64::NAN).logaddexp(1.0).item().is_nan());
    assert!(Tensor::scalar(1.0).logaddexp(f64::NAN).item().is_nan());
    // At a tie of finite numbers there is curvature.
    let second = grad(grad(|a: &Tensor| a.logaddexp(3.0)))(&Tensor::scalar(3.0)).item();
    assert_eq!(second, 0.25);
}

/// x, gelu(x) and its derivative.
#[allow(clippy::excessive_precision)]
const GELU: [(f64, f64, f64); 10] = [
    (-0.25, -0.100323418579269069, 0.304626645116363974),
    (-1.0, -0.158655253931457051, -0.0833154705876862984),
    (-3.0, -0.00404969409489028358, -0.011945647204183927),
    (-5.0, -1.43325785939596956e-6, -7.14694600179229463e-6),
    (-7.0, -8.95868780720084503e-12, -6.26632303146663184e-11),
    (-9.5, -9.96978932159447712e-21, -9.46909347383138332e-20),
    (-20.0, -5.50724823721246739e-88, -1.1014360483133464e-86),
    (-37.0, -2.11846135233409342e-298, -7.83829866941851624e-297),
    (0.75, 0.580029485717348851, 0.999225721739235104),
    (4.0, 3.99987331503266752, 1.00050364966122642),
];

/// x Φ(x) = x erfc(-x / √2) / 2, with reference values of 40 digits.
#[test]
fn gelu_keeps_its_digits_in_the_left_tail_and_does_not_overflow() {
    // The rounding of x / √2 counts x² times in the tail.
    let close = |a: f64, b: f64, x: f64| {
        assert!((a - b).abs() <= (4.0 + x * x) * f64::EPSILON * b.abs(), "at {x}: {a} is not {b}");
    };
    for (x, y, slope) in GELU {
        let at = Tensor::scalar(x);
        close(at.gelu().item(), y, x);
        // The slope is a difference of two terms there, each of them exact to a few units.
        let found = grad(|x: &Tensor| x.gelu())(&at).item();
        assert!((found - slope).abs() <= 1e-12 * slope.abs(), "slope at {x}: {found} is not {slope}");
    }
    for (dtype, most) in [(DType::F64, f64::MAX), (DType::F32, f64::from(f32::MAX))] {
        let x = Tensor::scalar(most).cast(dtype);
        assert_eq!(x.gelu().cast(DType::F64).item(), most);
        assert_eq!(grad(|x: &Tensor| x.gelu())(&x).cast(DType::F64).item(), 1.0);
        assert_eq!((-x).gelu().cast(DType::F64).item(), 0.0);
    }
}

#[test]
fn decided_derivatives_at_the_ends_of_domains() {
    let inf = f64::INFINITY;
    let at = |f: fn(&Tensor, &Tensor) -> Tensor, a: f64, b: f64| {
        let g = grad(|(a, b): &(Tensor, Tensor)| f(a, b))(&(Tensor::scalar(a), Tensor::scalar(b)));
        (g.0.item(), g.1.item())
    };
    assert_eq!(at(|a, b| a.pow(b), 0.0, 0.0), (0.0, -inf));
    assert_eq!(at(|a, b| a.xlogy(b), 0.0, 0.0), (-inf, 0.0));
    assert_eq!(at(|a, b| a.atan2(b), 0.0, 0.0), (0.0, 0.0));
    assert_eq!(at(|a, b| a.hypot(b), 0.0, 0.0), (0.0, 0.0));
    assert!(Tensor::scalar(f64::NAN).xlogy(1.0).item().is_nan());
    let ends: [(Function, f64, f64, f64); 11] = [
        (|x| x.sqrt(), 0.0, inf, -inf),
        (|x| x.ln(), 0.0, inf, -inf),
        (|x| x.log1p(), -1.0, inf, -inf),
        (|x| x.cbrt(), 0.0, inf, 0.0),
        (|x| x.asin(), 1.0, inf, inf),
        (|x| x.asin(), -1.0, inf, -inf),
        (|x| x.acos(), 1.0, -inf, -inf),
        (|x| x.acosh(), 1.0, inf, -inf),
        (|x| x.atanh(), 1.0, inf, inf),
        (|x| x.pow(0.0), 0.0, 0.0, 0.0),
        (|x| x.pow(1.0), 0.0, 1.0, 0.0),
    ];
    for (f, x, first, second) in ends {
        let x = Tensor::scalar(x);
        assert_eq!((grad(f)(&x).item(), grad(grad(f))(&x).item()), (first, second), "at {x}");
    }
    let (x, one) = (Tensor::scalar(0.0), Tensor::scalar(1.0));
    let third = |f: fn(&Tensor) -> Tensor| jvp(|x: &Tensor| hvp(f, x, &one), &x, &one).1.item();
    assert_eq!((third(|x| x.pow(0.0)), third(|x| x.pow(1.0)), third(|x| x.pow(2.0))), (0.0, 0.0, 0.0));
    assert_eq!(third(|x| x.pow(3.0)), 6.0);
}

#[test]
fn the_deviation_of_equal_numbers_has_the_derivative_zero() {
    for x in [vec![2.0; 4], vec![0.0; 3], vec![-1.0]] {
        let x = Tensor::from(&x[..]);
        assert_eq!(grad(|x: &Tensor| x.std())(&x).to_vec::<f64>(), vec![0.0; x.numel()]);
        assert_eq!(compile(grad(|x: &Tensor| x.std())).call(&x).to_vec::<f64>(), vec![0.0; x.numel()]);
        assert_eq!(jacfwd(|x: &Tensor| x.std())(&x).to_vec::<f64>(), vec![0.0; x.numel()]);
    }
}
