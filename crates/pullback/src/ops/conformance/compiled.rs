//! The law of compiling: a compiled operation is the operation, and so are its gradient and the gradient of it compiled.

use super::*;
use crate::{compile, grad, value_and_grad};
use pullback_testing::alike;

/// Of f32 within the rounding of a few operations; fused kernels contract products and sums.
fn close(found: &Tensor, expected: &Tensor, what: &str) {
    assert_eq!((found.shape(), found.dtype()), (expected.shape(), expected.dtype()), "{what}");
    let tolerance = if expected.dtype().real() == DType::F64 { 1e-13 } else { 1e-5 };
    let pairs = found.numbers().into_iter().zip(expected.numbers());
    for (a, b) in pairs {
        assert!(alike(a, b, tolerance), "{what}: {a} is not {b}");
    }
}

#[test]
fn every_operation_compiled_is_the_operation_with_its_gradients() {
    for dtype in [DType::F32, DType::F64] {
        all_hold(cases(dtype), |case| {
            let what = format!("{:?} in {dtype}", case.op);
            let x = case.floats();
            close(&compile(|x: &Vec<Tensor>| case.apply(x)).call(&x), &case.apply(&x), &what);
            if !case.differentiable() {
                return;
            }
            // Weights, so that no two cotangents are equal.
            let weighted = |x: &Vec<Tensor>| {
                let y = case.apply(x);
                let w = Tensor::arange(1.0, 1.0 + y.numel() as f64, 1.0).cast(y.dtype());
                let sum = (&y * w.reshape(y.shape().to_vec())).sum();
                // Of a complex number both parts, of different weights.
                sum.real() + sum.imag() * 0.7
            };
            let (value, gradient) = value_and_grad(weighted)(&x);
            let compiled = compile(value_and_grad(weighted)).call(&x);
            close(&compiled.0, &value, &what);
            let through = compile(weighted);
            let through = grad(|x: &Vec<Tensor>| through.call(x))(&x);
            for ((a, b), c) in compiled.1.iter().zip(&gradient).zip(&through) {
                close(a, b, &format!("the compiled gradient of {what}"));
                close(c, b, &format!("the gradient of the compiled {what}"));
            }
        });
    }
}

/// An operation beside itself with two operands exchanged: only where that changes nothing may the two be one.
#[test]
fn the_order_of_operands_is_kept() {
    let mut tried = std::collections::BTreeSet::new();
    all_hold([DType::F32, DType::F64].into_iter().flat_map(cases), |case| {
        let alike = |i: usize, j: usize| {
            let (a, b) = (&case.all[i], &case.all[j]);
            (a.dtype(), a.shape()) == (b.dtype(), b.shape())
        };
        for (i, j) in
            (0..case.all.len()).flat_map(|j| (0..j).map(move |i| (i, j))).filter(|&(i, j)| alike(i, j))
        {
            let both = |x: &Vec<Tensor>| {
                let mut exchanged = x.clone();
                exchanged.swap(i, j);
                let apply = |x: &[Tensor]| bind(case.op.clone(), &x.iter().collect::<Vec<_>>());
                // Inputs that the operation refuses in the other order, such as labels, have no other order.
                [apply(x), apply(&exchanged)].into_iter().flatten().collect::<Vec<Tensor>>()
            };
            let (found, expected) = (compile(both).call(&case.all), both(&case.all));
            assert_eq!(found.len(), expected.len());
            for (k, (a, b)) in found.iter().zip(&expected).enumerate() {
                close(a, b, &format!("{:?}, with {i} and {j} exchanged ({k})", case.op));
            }
            tried.insert(case.op.name());
        }
    });
    assert!(
        ["atan2", "sub", "div", "pow", "compare", "matmul"].iter().all(|op| tried.contains(op)),
        "{tried:?}"
    );
}
