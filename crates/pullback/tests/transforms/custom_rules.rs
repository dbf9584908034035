//! Functions with rules and kernels of the user's own.

use pullback::{CustomOp, check, custom_op, custom_rule, linearize, prelude::*};
use pullback_testing::message;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// exp, with a rule that reads the output.
fn exp(x: &Tensor) -> Tensor {
    custom_rule(|x: &Tensor| x.exp()).pullback(|_, y, g| g * y).call(x)
}

/// A product with a rule that is wrong on purpose, so that it shows who follows it.
fn tripled(x: &Tensor) -> Tensor {
    custom_rule(|x: &Tensor| x.clone()).pullback(|_, _, g| g * 3.0).call(x)
}

#[test]
fn the_rule_is_what_every_transform_follows() {
    let x = Tensor::from([1.0, 2.0]);
    let t = Tensor::from([1.0, 10.0]);
    assert_eq!(tripled(&x).to_vec::<f64>(), [1.0, 2.0]);
    assert_eq!(grad(|x: &Tensor| tripled(x).sum())(&x).to_vec::<f64>(), [3.0, 3.0]);
    assert_eq!(jvp(tripled, &x, &t).1.to_vec::<f64>(), [3.0, 30.0]);
    assert_eq!(linearize(tripled, &x).1(&t).to_vec::<f64>(), [3.0, 30.0]);
    assert_eq!(jacobian(tripled)(&x).to_vec::<f64>(), [3.0, 0.0, 0.0, 3.0]);
    assert_eq!(vmap(grad(tripled))(&x).to_vec::<f64>(), [3.0, 3.0]);
    assert_eq!(grad(|x: &Tensor| vmap(tripled)(x).sum())(&x).to_vec::<f64>(), [3.0, 3.0]);
    assert_eq!(grad(|x: &Tensor| checkpoint(tripled)(x).sum())(&x).to_vec::<f64>(), [3.0, 3.0]);
    assert_eq!(jvp(|x: &Tensor| vmap(tripled)(x), &x, &t).1.to_vec::<f64>(), [3.0, 30.0]);
    assert_eq!(jvp(|x: &Tensor| checkpoint(tripled)(x), &x, &t).1.to_vec::<f64>(), [3.0, 30.0]);
    let x = x.requires_grad();
    tripled(&x).sum().backward();
    assert_eq!(x.grad().unwrap().to_vec::<f64>(), [3.0, 3.0]);
}

#[test]
fn a_rule_is_differentiated_in_turn() {
    let x = Tensor::scalar(0.7);
    let e = x.exp().item();
    assert_eq!(grad(exp)(&x).item(), e);
    assert_eq!(grad(grad(exp))(&x).item(), e);
    assert_eq!(grad(grad(grad(exp)))(&x).item(), e);
    let one = Tensor::scalar(1.0);
    assert_eq!(jvp(grad(exp), &x, &one).1.item(), e);
    assert_eq!(jvp(|x: &Tensor| jvp(exp, x, &one).1, &x, &one).1.item(), e);
    assert_eq!(grad(|x: &Tensor| jvp(exp, x, &one).1)(&x).item(), e);
    check::gradients(|x: &Tensor| exp(&x.sin()) * x, &Tensor::from([0.2, -0.4])).unwrap();
    check::gradients(vmap(grad(exp)), &Tensor::from([0.2, -0.4])).unwrap();
}

#[test]
fn the_output_is_not_computed_again() {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = runs.clone();
    let f = custom_rule(move |x: &Tensor| {
        counted.fetch_add(1, Relaxed);
        x.exp()
    })
    .pullback(|_, y, g| g * y);
    grad(|x: &Tensor| f.call(x))(&Tensor::scalar(1.0));
    assert_eq!(runs.load(Relaxed), 1);
}

#[test]
fn trees_and_integers() {
    let f = |x: &(Tensor, Tensor, Tensor)| {
        custom_rule(|(a, b, at): &(Tensor, Tensor, Tensor)| [a * b, a.index_select(0, at)])
            .pullback(|(a, b, at), _, [g, h]| (g * b + a.zeros_like().index_add(0, at, h), g * a, at.clone()))
            .call(x)
    };
    let (a, b, at) = (Tensor::from([1.0, 2.0]), Tensor::from([3.0, 4.0]), Tensor::from([1i64, 1]));
    let total = |(a, b): &(Tensor, Tensor)| {
        let [p, q] = f(&(a.clone(), b.clone(), at.clone()));
        p.sum() + q.square().sum()
    };
    let (ga, gb) = grad(total)(&(a.clone(), b.clone()));
    assert_eq!(ga.to_vec::<f64>(), [3.0, 12.0]);
    assert_eq!(gb.to_vec::<f64>(), [1.0, 2.0]);
    check::gradients(total, &(a, b)).unwrap();
}

#[test]
fn a_pushforward_of_its_own() {
    let f = || {
        custom_rule(|x: &Tensor| x.sin())
            .pushforward(|x, _, t| x.cos() * t * 2.0)
            .pullback(|x, _, g| x.cos() * g * 3.0)
            .into_fn()
    };
    let (zero, one) = (Tensor::scalar(0.0), Tensor::scalar(1.0));
    assert_eq!(jvp(f(), &zero, &one).1.item(), 2.0);
    assert_eq!(grad(f())(&zero).item(), 3.0);
    let forward = |x: &Tensor| custom_rule(|x: &Tensor| x.sin()).pushforward(|x, _, t| x.cos() * t).call(x);
    check::gradients(forward, &Tensor::from([0.3, 0.4])).unwrap();
}

#[test]
fn batching_of_its_own() {
    let batches = Arc::new(AtomicUsize::new(0));
    let counted = batches.clone();
    let f = custom_rule(|x: &Tensor| x.square().sum())
        .pullback(|x, _, g| x * g * 2.0)
        .batching(move |xs: &Tensor| {
            counted.fetch_add(1, Relaxed);
            xs.square().sum_axes(1)
        })
        .into_fn();
    let xs = Tensor::from([[1.0, 2.0], [3.0, 4.0]]);
    assert_eq!(vmap(&f)(&xs).to_vec::<f64>(), [5.0, 25.0]);
    assert_eq!(batches.load(Relaxed), 1);
    assert_eq!(vmap(grad(&f))(&xs).to_vec::<f64>(), [2.0, 4.0, 6.0, 8.0]);
    assert_eq!(grad(|xs: &Tensor| vmap(&f)(xs).sum())(&xs).to_vec::<f64>(), [2.0, 4.0, 6.0, 8.0]);
}

#[test]
fn mistakes_are_named_with_their_line() {
    let x = Tensor::from([1.0, 2.0]);
    let wrong = |x: &Tensor| custom_rule(|x: &Tensor| x.exp()).pullback(|_, _, g| g.sum()).call(x).sum();
    let e = message(|| grad(wrong)(&x));
    assert!(e.contains("the pullback returned f64 []") && e.contains("f64 [2]"), "{e}");
    assert!(e.contains("custom_rule") && e.contains("custom_rules.rs"), "{e}");

    let none = |x: &Tensor| custom_rule(|x: &Tensor| x.exp()).call(x).sum();
    let e = message(|| grad(none)(&x));
    assert!(e.contains(".pullback(..)") && e.contains("custom_rules.rs"), "{e}");
    let e = message(|| jvp(none, &x, &x));
    assert!(e.contains(".pullback(..)") && e.contains("custom_rules.rs"), "{e}");
}

#[test]
fn a_captured_tensor_does_not_lose_its_gradient_silently() {
    let hidden = |w: &Tensor| {
        let w = w.clone();
        custom_rule(move |x: &Tensor| x * &w).pullback(|_, _, g| g.clone()).call(&Tensor::scalar(2.0))
    };
    let w = Tensor::scalar(3.0);
    for e in [
        message(|| grad(hidden)(&w)),
        message(|| jvp(hidden, &w, &w)),
        message(|| vmap(hidden)(&Tensor::from([1.0, 2.0]))),
        message(|| hidden(&w.requires_grad())),
    ] {
        assert!(e.contains("captures a tensor") && e.contains("custom_rules.rs"), "{e}");
    }
    // What nobody differentiates may be captured.
    assert_eq!(hidden(&w).item(), 6.0);
}

struct Cumulative;

impl CustomOp for Cumulative {
    type Element = f64;

    fn name(&self) -> &'static str {
        "cumulative"
    }

    fn infer(&self, shapes: &[&[usize]]) -> Result<Vec<usize>, String> {
        match shapes {
            [[n]] => Ok(vec![*n]),
            _ => Err(format!("takes one vector, got {shapes:?}")),
        }
    }

    fn eval(&self, x: &[&[f64]], _: &[&[usize]], out: &mut [f64]) {
        let mut sum = 0.0;
        for (x, out) in x[0].iter().zip(out) {
            sum += x;
            *out = sum;
        }
    }

    fn pullback(&self, _: &[Tensor], _: &Tensor, g: &Tensor) -> Vec<Tensor> {
        vec![custom_op(Cumulative, &[&g.flip(0)]).flip(0)]
    }
}

#[test]
fn a_kernel_of_ones_own() {
    let f = |x: &Tensor| custom_op(Cumulative, &[&x.sin()]).square();
    let x = Tensor::from([0.1, 0.2, 0.3]);
    check::gradients(f, &x).unwrap();
    check::gradients(checkpoint(f), &x).unwrap();
    let xs = Tensor::from([[0.1, 0.2], [0.3, 0.4]]);
    check::gradients(vmap(f), &xs).unwrap();
    check::gradients(vmap(grad(|x: &Tensor| f(x).sum())), &xs).unwrap();
    assert_eq!(custom_op(Cumulative, &[&Tensor::from([1.0, 2.0]).flip(0)]).to_vec::<f64>(), [2.0, 3.0]);

    let e = pullback::try_custom_op(Cumulative, &[&xs]).unwrap_err();
    assert!(e.to_string().starts_with("cumulative: takes one vector"), "{e}");
    assert!(e.to_string().contains("custom_rules.rs"), "{e}");
    let e = pullback::try_custom_op(Cumulative, &[&Tensor::from([1f32])]).unwrap_err();
    assert!(e.to_string().contains("f32"), "{e}");
}
