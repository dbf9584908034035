//! What is not a float has no derivative.

use super::*;

#[test]
fn asking_for_a_gradient_is_an_error_that_says_so() {
    for x in [Tensor::from([1, 2]), Tensor::from([1i64]), Tensor::from([1u8]), Tensor::from([true])] {
        let e = x.try_requires_grad().unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Gradient);
        assert!(e.to_string().contains(x.dtype().name()) && e.to_string().contains("cast"), "{e}");
    }
    let said = message(|| drop(grad(|x: &Tensor| x.sum().cast(DType::F64))(&Tensor::from([1, 2]))));
    assert!(said.contains("grad") && said.contains("i32"), "{said}");
    let said = message(|| drop(jvp(|x: &Tensor| x.clone(), &Tensor::from([1]), &Tensor::from([1]))));
    assert!(said.contains("jvp") && said.contains("i32"), "{said}");
}

#[test]
fn nothing_flows_through_them() {
    let x = leaf(2.5);
    let n = x.cast(DType::I64);
    assert!(
        !n.needs_grad() && !x.gt(0.0).needs_grad() && !Tensor::stack(&[&x, &x], 0).argmax(0).needs_grad()
    );
    (&x * n.cast(DType::F64)).backward();
    assert_eq!(x.grad().unwrap().item(), 2.0, "the count is a constant");
    assert!(n.try_backward().is_err());
}

#[test]
fn floats_of_other_precision_do_carry_them() {
    let x = Tensor::from([1.5f32, 2.5]).requires_grad();
    x.cast(DType::F64).square().sum().backward();
    let g = x.grad().unwrap();
    assert_eq!((g.dtype(), g.to_vec::<f64>()), (DType::F32, vec![3.0, 5.0]));
}

/// Sums at an index wrap as all integer arithmetic does.
#[test]
fn sums_of_integers_at_an_index_wrap() {
    let (zero, largest) = (Tensor::from([0i64, 0]), Tensor::from([i64::MAX, 1]));
    assert_eq!(Tensor::from([0i64]).index_add(0, &zero, &largest).to_vec::<i64>(), [i64::MIN]);
    assert_eq!(Tensor::from([0i64]).scatter_add(0, &zero, &largest).to_vec::<i64>(), [i64::MIN]);
}
