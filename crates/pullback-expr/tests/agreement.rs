//! The engine of the page against the library: the same values and the same derivatives, for every function of the table and for
//! whole programs.

use pullback::{Fallible, Tensor};
use pullback_expr::function::Function;
use pullback_expr::scalar::{self, Array};
use pullback_testing::samples;

macro_rules! dispatch {
    ($($(#[$doc:meta])* $P:ident $m:ident $try:ident($($x:ident),+) = $value:tt;
        d = [$($d:expr),+]; reads $([$($r:ident)*])+; $facts:tt)*) => {
        fn library(f: Function, x: &[Tensor]) -> Tensor {
            match f { $(Function::$P => method!(x, $try($($x),+)).unwrap(),)* }
        }
    };
}
macro_rules! method {
    ($v:ident, $try:ident($x:ident)) => {
        $v[0].$try()
    };
    ($v:ident, $try:ident($x:ident, $y:ident)) => {
        $v[0].$try(&$v[1])
    };
}
pullback_table::elementwise_table!(dispatch);

fn close(a: f64, b: f64) -> bool {
    // The kernels of the library and the standard library differ by a few units in the last place.
    a == b || pullback_testing::close(a, b, 1e-13)
}

#[test]
fn every_function_has_the_librarys_value_and_derivatives() {
    for &f in Function::ALL {
        for k in 0..5 {
            let x: Vec<f64> =
                f.row().domains.iter().enumerate().map(|(i, &d)| samples(d)[(k + 2 * i) % 5]).collect();
            let tensors: Vec<Tensor> = x.iter().map(|v| Tensor::scalar(*v)).collect();
            let value = library(f, &tensors).item();
            assert!(close(f.value(&x), value), "{f:?}{x:?}: {} and {value}", f.value(&x));
            let g = pullback::grad(|x: &Vec<Tensor>| library(f, x))(&tensors);
            for (i, (slope, g)) in f.slopes(&x).iter().zip(&g).enumerate() {
                assert!(close(*slope, g.item()), "{f:?}{x:?} with respect to {i}: {slope} and {}", g.item());
            }
        }
    }
}

#[test]
fn halves_and_kinks_as_in_the_library() {
    let cases: &[(Function, &[&[f64]])] = &[
        (Function::Round, &[&[0.5], &[1.5], &[2.5], &[-0.5], &[-1.5], &[0.4999999999999999]]),
        (Function::Abs, &[&[0.0], &[-0.0]]),
        (Function::Relu, &[&[0.0]]),
        (Function::Sign, &[&[0.0]]),
        (Function::Maximum, &[&[1.0, 1.0]]),
        (Function::Hypot, &[&[0.0, 0.0]]),
        (Function::Pow, &[&[0.0, 2.0], &[0.0, 1.0], &[-2.0, 3.0]]),
    ];
    for (f, points) in cases {
        for x in *points {
            let tensors: Vec<Tensor> = x.iter().map(|v| Tensor::scalar(*v)).collect();
            assert_eq!(f.value(x), library(*f, &tensors).item(), "{f:?}{x:?}");
            // The derivative by the exponent at a negative base is not real, and nobody asks for it.
            let g =
                pullback::grad(|b: &Tensor| library(*f, &[std::slice::from_ref(b), &tensors[1..]].concat()))(
                    &tensors[0],
                );
            assert_eq!(f.slopes(x)[0], g.item(), "{f:?}{x:?}");
        }
    }
}

fn number(v: f64) -> Array {
    Array::number(v)
}

#[test]
fn textbook_gradients() {
    type Case<'a> = (&'a str, &'a [(&'a str, f64)], f64, &'a [f64]);
    let cases: &[Case] = &[
        ("(x+y)^2", &[("x", 2.0), ("y", 3.0)], 25.0, &[10.0, 10.0]),
        ("x^2+x", &[("x", 3.0)], 12.0, &[7.0]),
        ("x*y+(x+y)", &[("x", 2.0), ("y", 3.0)], 11.0, &[4.0, 3.0]),
        ("x1*x2+sin(x1)", &[("x1", 2.0), ("x2", 3.0)], 6.0 + 2f64.sin(), &[3.0 + 2f64.cos(), 2.0]),
        ("ln(x1)+x1*x2-sin(x2)", &[("x1", 2.0), ("x2", 5.0)], 11.652071455223084, &[5.5, 1.7163378145367738]),
        ("if x > 1 and not x > 3 then x^3 else -x", &[("x", 2.0)], 8.0, &[12.0]),
        ("max(x, y, 1)", &[("x", 2.0), ("y", 2.0)], 2.0, &[0.5, 0.5]),
        ("sum(i, 1, 3, sum(j, i, 3, x^j))", &[("x", 2.0)], 34.0, &[45.0]),
        ("-x^2", &[("x", 3.0)], -9.0, &[-6.0]),
        ("2^x^2", &[("x", 2.0)], 16.0, &[64.0 * std::f64::consts::LN_2]),
    ];
    for (text, point, value, gradient) in cases {
        let program = pullback_expr::parse(text).unwrap();
        let point: Vec<(String, Array)> = point.iter().map(|(n, v)| (n.to_string(), number(*v))).collect();
        let trace = scalar::trace(&program, &point).unwrap();
        let got = trace.value(trace.outputs[0].elements[0]);
        assert!(close(got, *value), "{text}: {got} and {value}");
        for ((name, _), expected) in point.iter().zip(*gradient) {
            let g = trace.gradient(name)[0];
            assert!(close(g, *expected), "{text}: d/d{name} is {g} and {expected}");
        }
        // Forward mode along each input gives the same.
        for (k, expected) in gradient.iter().enumerate() {
            let mut direction = vec![0.0; point.len()];
            direction[k] = 1.0;
            let scalar::Operand::Node(at) = trace.outputs[0].elements[0] else { panic!("{text}") };
            assert!(close(trace.tangents(&direction)[at], *expected), "{text}");
        }
    }
}
