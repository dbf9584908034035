use crate::recorded::{Case, check};
use pullback::prelude::*;

#[test]
fn complex_numbers() {
    check(include_str!("cases/complex.json"), |case: &Case, x: &[Tensor]| {
        let axis = |x: &Tensor| x.shape().len() as isize - 1;
        match case.name.as_str() {
            "neg" => -&x[0],
            "square" => x[0].square(),
            "exp" => x[0].exp(),
            "sin" => x[0].sin(),
            "cos" => x[0].cos(),
            "sinh" => x[0].sinh(),
            "cosh" => x[0].cosh(),
            "log" => x[0].ln(),
            "sqrt" => x[0].sqrt(),
            "reciprocal" => x[0].recip(),
            "abs" => x[0].abs(),
            "angle" => x[0].angle(),
            "conj" => x[0].conj(),
            "real" => x[0].real(),
            "imag" => x[0].imag(),
            "add" => &x[0] + &x[1],
            "sub" => &x[0] - &x[1],
            "mul" => &x[0] * &x[1],
            "div" => &x[0] / &x[1],
            "complex" => Tensor::complex(&x[0], &x[1]),
            "polar" => Tensor::polar(&x[0], &x[1]),
            "sum" => x[0].sum_axes(case.int("axis") as isize),
            "mean" => x[0].mean_axes(case.int("axis") as isize),
            "matmul" => x[0].matmul(&x[1]),
            "where" => Tensor::where_(&x[0].real().gt(0.0), &x[0], &x[1]),
            "index_select" => x[0].index_select(axis(&x[0]), &x[1]),
            "gather" => x[0].gather(axis(&x[0]), &x[1]),
            "scatter_add" => x[0].scatter_add(axis(&x[0]), &x[1], &x[2]),
            "power" => (&x[0] * x[0].conj()).real(),
            "fidelity" => (x[0].conj() * &x[1]).sum().abs().square(),
            "unwrapped" => (&x[0] * &x[0]).ln().imag(),
            other => panic!("no such case: {other}"),
        }
    });
}
