//! The transforms, each on its own. How they combine is in `composition`.

use crate::close;
use pullback::prelude::*;
use pullback::{
    Policy, checkpoint_with, custom_rule, gauss_newton_vp, linearize, taylor, transpose, value_and_grad_aux,
};
use pullback_testing::message;

fn three(x: &Tensor) -> Tensor {
    Tensor::stack(&[x.get(0) * x.get(1), x.get(0).sin(), x.get(1).exp()], 0)
}

fn rosenbrock(x: &Tensor) -> Tensor {
    (1.0 - x.get(0)).square() + 100.0 * (x.get(1) - x.get(0).square()).square()
}

#[test]
fn rows_and_columns_are_the_same_matrix() {
    let x = Tensor::from([2.0, 3.0]);
    let expected = [3.0, 2.0, 2f64.cos(), 0.0, 0.0, 3f64.exp()];
    for j in [jacobian(three)(&x), jacfwd(three)(&x), jacrev(three)(&x)] {
        assert_eq!(j.shape(), [3, 2]);
        assert_eq!(j.to_vec::<f64>(), expected);
    }
}

#[test]
fn a_jacobian_has_the_axes_of_the_output_and_then_of_the_input() {
    let x = Tensor::from([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
    let f = |x: &Tensor| x.t().square();
    for j in [jacobian(f)(&x), jacfwd(f)(&x), jacrev(f)(&x)] {
        assert_eq!(j.shape(), [3, 2, 2, 3]);
        assert_eq!(j.item_at([2, 1, 1, 2]), 12.0);
        assert_eq!(j.sum().item(), 42.0);
    }
    assert_eq!(jacobian(|x: &Tensor| x.sum())(&x).shape(), [2, 3]);
    assert_eq!(jacfwd(|x: &Tensor| x.exp())(&Tensor::zeros([0])).shape(), [0, 0]);
    assert_eq!(jacrev(|x: &Tensor| x.exp())(&Tensor::from([1f32])).dtype(), DType::F32);
    // A function that does not depend on its input has a Jacobian of zeros.
    assert_eq!(jacfwd(|_: &Tensor| Tensor::ones([2]))(&Tensor::from([1.0])).to_vec::<f64>(), [0.0, 0.0]);
}

#[test]
fn a_jacobian_of_integers_is_refused() {
    let e = message(|| jacfwd(|x: &Tensor| x.clone())(&Tensor::from([1, 2])));
    assert!(e.contains("only floats") && e.contains("derivatives.rs"), "{e}");
}

#[test]
fn hessians() {
    let at = Tensor::from([-1.2, 1.0]);
    let h = hessian(rosenbrock)(&at);
    close(&h, &Tensor::from([[1330.0, 480.0], [480.0, 200.0]]), 1e-13);
    let v = Tensor::from([1.0, -2.0]);
    close(&hvp(rosenbrock, &at, &v), &h.matmul(&v), 1e-13);
}

#[test]
fn a_gauss_newton_product_is_that_of_the_matrices() {
    let x = Tensor::from([0.3, 0.7]);
    let v = Tensor::from([1.5, -0.5]);
    let loss = |y: &Tensor| y.square().square().sum();
    let (j, h) = (jacobian(three)(&x), hessian(loss)(&three(&x)));
    close(&gauss_newton_vp(three, loss, &x, &v), &j.t().matmul(&h.matmul(&j.matmul(&v))), 1e-13);
}

#[test]
fn auxiliary_outputs_are_values_only() {
    let f = |x: &Tensor| (x.square().sum(), (x.exp(), vec![x.clone()]));
    let (y, g, (e, same)) = value_and_grad_aux(f)(&Tensor::from([1.0, 2.0]));
    assert_eq!((y.item(), g.to_vec::<f64>()), (5.0, vec![2.0, 4.0]));
    assert_eq!(e.to_vec::<f64>(), Tensor::from([1.0, 2.0]).exp().to_vec::<f64>());
    assert_eq!(same[0].to_vec::<f64>(), [1.0, 2.0]);
    // An outer gradient still sees them.
    let outer = grad(|x: &Tensor| value_and_grad_aux(f)(x).2.0.sum())(&Tensor::from([0.5]));
    close(&outer, &Tensor::from([0.5f64.exp()]), 1e-15);
}

#[test]
fn a_linearized_function_runs_once() {
    let runs = std::cell::Cell::new(0);
    let f = |x: &Tensor| {
        runs.set(runs.get() + 1);
        // Reading a value is allowed: the primal is known.
        if x.get(0).item() > 0.0 { three(x) } else { x.clone() }
    };
    let x = Tensor::from([2.0, 3.0]);
    let (y, push) = linearize(f, &x);
    assert_eq!(y.to_vec::<f64>(), three(&x).to_vec::<f64>());
    for t in [Tensor::from([1.0, 0.0]), Tensor::from([-0.5, 2.0])] {
        assert_eq!(push(&t).to_vec::<f64>(), jvp(three, &x, &t).1.to_vec::<f64>());
    }
    assert_eq!(runs.get(), 1);
    let e = message(|| push(&Tensor::from([1.0])));
    assert!(e.contains("linearize") && e.contains("[1]") && e.contains("derivatives.rs"), "{e}");
}

#[test]
fn a_linearized_function_of_a_tree() {
    let f = |(a, b): &(Tensor, Vec<Tensor>)| [a * &b[0], b[1].sin()];
    let x = (Tensor::scalar(2.0), vec![Tensor::scalar(3.0), Tensor::scalar(0.0)]);
    let t = (Tensor::scalar(1.0), vec![Tensor::scalar(10.0), Tensor::scalar(5.0)]);
    let [a, b] = linearize(f, &x).1(&t);
    assert_eq!((a.item(), b.item()), (23.0, 5.0));
}

#[test]
fn a_transpose_satisfies_its_definition() {
    let a = Tensor::randn(Key::new(1), [3, 4], DType::F64);
    let f = |x: &Tensor| a.matmul(x) * 2.0;
    let (x, g) = (Tensor::randn(Key::new(2), [4], DType::F64), Tensor::randn(Key::new(3), [3], DType::F64));
    close(&f(&x).dot(&g), &transpose(f, &x)(&g).dot(&x), 1e-14);
    // Twice is once.
    close(&transpose(|g: &Tensor| transpose(f, &x)(g), &g)(&x), &f(&x), 1e-14);
    let e = message(|| transpose(|x: &Tensor| x + 1.0, &x));
    assert!(e.contains("not linear") && e.contains("derivatives.rs"), "{e}");
}

#[test]
fn a_stopped_gradient_stops_both_modes() {
    let f = |x: &Tensor| {
        let (a, b) = stop_gradient(&(x.clone(), x.square()));
        a * x + b
    };
    let x = Tensor::scalar(3.0);
    assert_eq!(grad(f)(&x).item(), 3.0);
    assert_eq!(jvp(f, &x, &Tensor::scalar(1.0)).1.item(), 3.0);
}

/// Against the series, to order 6 and beyond.
#[track_caller]
fn expands(f: impl Fn(&Tensor) -> Tensor, at: f64, expected: &[f64]) {
    let order = expected.len() - 1;
    let found = taylor(f, &Tensor::scalar(at), &Tensor::scalar(1.0), order);
    for (k, (found, expected)) in found.iter().zip(expected).enumerate() {
        let found = found.item();
        assert!(pullback_testing::close(found, *expected, 1e-13), "order {k}: {found}, not {expected}");
    }
    assert_eq!(found.len(), expected.len());
}

#[test]
fn taylor_coefficients_are_those_of_the_series() {
    expands(|x| x.exp(), 0.0, &[1.0, 1.0, 0.5, 1.0 / 6.0, 1.0 / 24.0, 1.0 / 120.0, 1.0 / 720.0]);
    expands(|x| x.sin(), 0.0, &[0.0, 1.0, 0.0, -1.0 / 6.0, 0.0, 1.0 / 120.0, 0.0, -1.0 / 5040.0]);
    expands(|x| 1.0 / (1.0 - x), 0.5, &[2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0]);
    expands(|x| (1.0 - x).recip(), 0.0, &[1.0; 31]); // far beyond what nesting could do
    expands(|x| 1.0 / (1.0 - x), 0.0, &[1.0; 21]);
    expands(|x| x.sqrt(), 1.0, &[1.0, 0.5, -0.125, 0.0625, -5.0 / 128.0, 7.0 / 256.0, -21.0 / 1024.0]);
    expands(|x| x.log1p(), 0.0, &[0.0, 1.0, -0.5, 1.0 / 3.0, -0.25, 0.2, -1.0 / 6.0]);
    expands(|x| x.tanh(), 0.0, &[0.0, 1.0, 0.0, -1.0 / 3.0, 0.0, 2.0 / 15.0, 0.0]);
    // exp(sin x) = 1 + x + x²/2 - x⁴/8 - x⁵/15 - x⁶/240
    expands(|x| x.sin().exp(), 0.0, &[1.0, 1.0, 0.5, 0.0, -0.125, -1.0 / 15.0, -1.0 / 240.0]);
    // What is constant, and what is cut off
    expands(|x| x.sign() + x.detach(), 2.0, &[3.0, 0.0, 0.0]);
    expands(|_| Tensor::scalar(7.0), 2.0, &[7.0, 0.0, 0.0]);
}

#[test]
fn taylor_coefficients_of_programs() {
    let w = Tensor::randn(Key::new(1), [3, 3], DType::F64);
    let rule = custom_rule(|x: &Tensor| x.exp()).pullback(|_, y, g| g * y).into_fn();
    let f = |x: &Tensor| {
        let h = checkpoint(|x: &Tensor| w.matmul(x).tanh())(x);
        (rule(&h) / (h.square() + 1.5)).log_softmax(0).sum() * h.max()
    };
    let (x, v) = (Tensor::from([0.2, -0.4, 0.7]), Tensor::from([1.0, 0.5, -2.0]));
    // The reference: derivatives one inside of the other.
    let nested = |order: usize| {
        fn derivative(f: &dyn Fn(&Tensor) -> Tensor, t: &Tensor, order: usize) -> Tensor {
            match order {
                0 => f(t),
                _ => jvp(|t: &Tensor| derivative(f, t, order - 1), t, &Tensor::scalar(1.0)).1,
            }
        }
        derivative(&|t: &Tensor| f(&(&x + t * &v)), &Tensor::scalar(0.0), order)
    };
    let mut factorial = 1.0;
    for (k, c) in taylor(f, &x, &v, 4).iter().enumerate() {
        factorial *= k.max(1) as f64;
        close(&(c * factorial), &nested(k), 1e-11);
    }
    // They are differentiable.
    pullback::check::gradients(|x: &Tensor| taylor(|x: &Tensor| x.sin().exp(), x, &v, 3).remove(3), &x)
        .unwrap();
    let e = message(|| taylor(|x: &Tensor| x.exp(), &x, &Tensor::scalar(1.0), 2));
    assert!(e.contains("taylor") && e.contains("derivatives.rs"), "{e}");
}

#[test]
fn a_dynamic_checkpoint_may_differentiate_inside() {
    let f = checkpoint_with(Policy::rerun(), |x: &Tensor| grad(|x: &Tensor| x.square() * x)(x));
    assert_eq!(grad(f)(&Tensor::scalar(2.0)).item(), 12.0);
}

#[test]
fn a_mask_from_the_input_has_no_tangent() {
    let f = |x: &Tensor| Tensor::where_(&x.gt(0.0), x * 3.0, x * 5.0) + x.gt(0.0).cast(DType::F64);
    let (y, dy) = jvp(f, &Tensor::from([1.0, -1.0]), &Tensor::ones([2]));
    assert_eq!(y.to_vec::<f64>(), [4.0, -5.0]);
    assert_eq!(dy.to_vec::<f64>(), [3.0, 5.0]);
    let picked = |x: &Tensor| x.index_select(0, &x.argmax(0).unsqueeze(0));
    assert_eq!(jvp(picked, &Tensor::from([1.0, 4.0]), &Tensor::from([7.0, 8.0])).1.to_vec::<f64>(), [8.0]);
}

#[test]
fn nothing_is_left_behind() {
    let run = || {
        let x = Tensor::from([0.5, 0.6]);
        let exp = custom_rule(|x: &Tensor| x.exp()).pullback(|_, y, g| g * y).into_fn();
        let _ = taylor(|x: &Tensor| (x.sin().exp() / x).sqrt(), &x, &x, 4);
        hessian(|x: &Tensor| exp(x).sum())(&x);
        grad(grad(|x: &Tensor| exp(x)))(&Tensor::scalar(1.0));
        linearize(|x: &Tensor| exp(x).tanh(), &x).1(&x);
        let root = |p: &Tensor| implicit::root(|p: &Tensor, x: &Tensor| x.square() - p, p, p);
        grad(grad(root))(&Tensor::scalar(2.0));
    };
    run();
    let before = pullback::memory::live_tensors();
    run();
    assert_eq!(pullback::memory::live_tensors(), before);
}
