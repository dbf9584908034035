//! Element types: promotion, casts, and the types of sums and products.

use super::*;
use half::{bf16, f16};

const ALL: [DType; 8] =
    [DType::Bool, DType::U8, DType::I32, DType::I64, DType::F16, DType::BF16, DType::F32, DType::F64];

/// The order of guide/semantics.md, and its one exception.
#[test]
fn promotion_follows_one_rule() {
    for (i, &a) in ALL.iter().enumerate() {
        for (j, &b) in ALL.iter().enumerate() {
            let halves = [a, b].contains(&DType::F16) && [a, b].contains(&DType::BF16);
            let expected = if halves { DType::F32 } else { ALL[i.max(j)] };
            assert_eq!(DType::promote(a, b), expected);
            if expected != DType::Bool {
                let sum = Tensor::full([1], 1.0).cast(a) + Tensor::full([1], 1.0).cast(b);
                assert_eq!((sum.dtype(), sum.item()), (expected, 2.0));
            }
        }
    }
}

#[test]
fn a_rust_number_never_widens_a_tensor() {
    for dtype in ALL.into_iter().filter(|d| *d != DType::Bool) {
        let x = Tensor::ones([2]).cast(dtype);
        assert_eq!((&x + 1.0).dtype(), dtype);
        assert_eq!((2 * &x).dtype(), dtype);
        assert_eq!(x.maximum(0).dtype(), dtype);
        assert_eq!(Tensor::where_(&x.gt(0), &x, 0.0).dtype(), dtype);
    }
}

#[test]
fn casts_truncate_saturate_and_test_for_zero() {
    let x = Tensor::from([-1.7, 1.7, 300.0, 3e9, 1e30, f64::NAN]);
    assert_eq!(x.cast(DType::U8).to_vec::<u8>(), [0, 1, 255, 255, 255, 0]);
    assert_eq!(x.cast(DType::I32).to_vec::<i32>(), [-1, 1, 300, i32::MAX, i32::MAX, 0]);
    assert_eq!(x.cast(DType::I64).to_vec::<i64>(), [-1, 1, 300, 3_000_000_000, i64::MAX, 0]);
    assert_eq!(Tensor::from([0.0, -0.5]).cast(DType::Bool).to_vec::<bool>(), [false, true]);
    let exact = Tensor::from([i64::MAX, i64::MIN]);
    assert_eq!(exact.to_vec::<i64>(), [i64::MAX, i64::MIN]);
}

#[test]
fn halves_are_stored_in_two_bytes_and_computed_in_four() {
    let x = Tensor::from([f16::from_f32(1.0), f16::from_f32(1e-4)]);
    assert_eq!(x.dtype().size(), 2);
    assert_eq!(Tensor::from([bf16::from_f32(3.0)]).item(), 3.0);
    // exp of 11 is within f16, its square is not; the step in between is rounded to f16.
    let y = Tensor::from([11.0]).cast(DType::F16).exp();
    assert!((y.item() - 11f64.exp()).abs() < 32.0);
    assert_eq!((&y * &y).item(), f64::INFINITY);
}

/// The sum does not fit f16, the mean does.
#[test]
fn means_of_halves_do_not_overflow() {
    let x = Tensor::full([1000], 100.0).cast(DType::F16);
    assert_eq!((x.sum().item(), x.mean().item(), x.var().item()), (f64::INFINITY, 100.0, 0.0));
    let x = Tensor::from([0.0, 600.0]).cast(DType::F16);
    assert_eq!(x.std_axes(0).dtype(), DType::F16);
    let g = grad(|x: &Tensor| x.mean())(&x);
    assert_eq!((g.dtype(), g.to_vec::<f64>()), (DType::F16, vec![0.5, 0.5]));
}

#[test]
fn means_are_quotients() {
    for n in 1..200 {
        assert_eq!(Tensor::ones([n]).mean().item(), 1.0, "of {n} ones");
    }
}

#[test]
fn sums_and_products_of_integers_are_wide() {
    let x = Tensor::full([3], 2_000_000_000);
    assert_eq!((x.sum().dtype(), x.sum().to_vec::<i64>()), (DType::I64, vec![6_000_000_000]));
    let x = Tensor::from([100_000, 100_000]);
    assert_eq!(x.prod().to_vec::<i64>(), [10_000_000_000]);
    assert_eq!(Tensor::from([true, true, false]).sum().to_vec::<i64>(), [2]);
}

#[test]
fn gradients_in_half_precision() {
    for dtype in [DType::F16, DType::BF16] {
        let x = Tensor::from([[0.5, -1.5], [2.0, 1.0]]).cast(dtype).requires_grad();
        x.matmul(&x).relu().sum().backward();
        let g = x.grad().unwrap();
        assert_eq!(g.dtype(), dtype);
        let exact = grad(|x: &Tensor| x.matmul(x).relu().sum())(&x.detach().cast(DType::F64));
        assert_eq!(g.to_vec::<f64>(), exact.to_vec::<f64>(), "these numbers are exact in halves");
    }
}
