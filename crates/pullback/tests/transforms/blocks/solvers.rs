//! Solvers inside of transforms: cases that once were wrong.

use crate::near;
use pullback::ode::{self, Dopri5};
use pullback::{Schedule, implicit, prelude::*};
use pullback_testing::message;

fn scalar(v: f64) -> Tensor {
    Tensor::scalar(v)
}

#[test]
fn adaptive_steps_under_vmap_and_their_error_in_a_trace() {
    let f = |_: f64, y: &Tensor, p: &Tensor| -(p * y);
    let solver = Dopri5::default();
    let solved = |p: &Tensor| solver.solve(f, p, &scalar(1.0), 0.0, 1.0).unwrap().end().clone();
    let adjoint = |p: &Tensor| ode::adjoint(&solver, f, p, &scalar(1.0), 0.0, 1.0);
    // The third lane needs shorter steps than the others.
    let p = Tensor::from([0.1, 1.0, 30.0]);
    let each: Vec<Tensor> = (0..3).map(|k| (-p.get(k)).exp()).collect();
    for by in [&solved as &dyn Fn(&Tensor) -> Tensor, &adjoint] {
        let close = |a: &Tensor, b: &Tensor, what: &str| {
            let error = (a - b).abs().max().item();
            assert!(error < 1e-6, "{what}: {error}");
        };
        close(&vmap(by)(&p), &Tensor::stack(&each, 0), "vmap");
        close(&grad(|p: &Tensor| vmap(by)(p).sum())(&p), &-(-&p).exp(), "grad of vmap");
        close(&vmap(grad(by))(&p), &-(-&p).exp(), "vmap of grad");
        close(&vmap(|p: &Tensor| jvp(by, p, &scalar(1.0)).1)(&p), &-(-&p).exp(), "vmap of jvp");
    }
    let says =
        |e: String| assert!(e.contains("not known while a function is traced") && e.contains("rk4"), "{e}");
    says(message(|| drop(checkpoint(solved)(&p.get(0)))));
    says(message(|| drop(compile(solved).call(&p.get(0)))));
    says(message(|| drop(compile(|p: &Tensor| vmap(adjoint)(p)).call(&p))));
}

#[test]
fn an_adjoint_is_an_operation_of_traced_functions() {
    let f = |_: f64, y: &Tensor, p: &Tensor| -(p * y);
    let end = |p: &Tensor| ode::adjoint(&Dopri5::default(), f, p, &(p * 2.0), 0.0, 1.0);
    let p = scalar(0.5);
    let (value, slope) = value_and_grad(end)(&p);
    let second = grad(grad(end))(&p);
    assert!((slope.item() - (-0.5f64).exp()).abs() < 1e-6);
    near(&checkpoint(end)(&p), &value);
    near(&grad(checkpoint(end))(&p), &slope);
    near(&grad(grad(checkpoint(end)))(&p), &second);
    let compiled = compile(end);
    near(&compiled.call(&p), &value);
    near(&grad(|p: &Tensor| compiled.call(p))(&p), &slope);
    near(&compile(grad(end)).call(&p), &slope);
    let says =
        |e: String| assert!(e.contains("not known while a function is traced") && e.contains("rk4"), "{e}");
    says(message(|| drop(compile(grad(grad(end))).call(&p))));
    says(message(|| drop(grad(grad(|p: &Tensor| compiled.call(p)))(&p))));
    near(&vmap(|p: &Tensor| compiled.call(p))(&p.unsqueeze(0)), &value.unsqueeze(0));
}

#[test]
fn a_right_hand_side_of_the_wrong_shape_is_an_error() {
    let f = |_: f64, _: &Tensor, _: &()| Tensor::zeros([3]);
    let e = Dopri5::default().solve(f, &(), &Tensor::zeros([2]), 0.0, 1.0).map(drop).unwrap_err().to_string();
    assert!(e.starts_with("dopri5: ") && e.contains("[2]") && e.contains("[3]"), "{e}");
    let e = message(|| drop(ode::rk4(f, &(), &Tensor::zeros([2]), 0.0, 1.0, 3)));
    assert!(e.starts_with("rk4: ") && e.contains("right-hand side") && e.contains("solvers.rs"), "{e}");
}

#[test]
fn checkpointed_runge_kutta_in_a_compiled_gradient() {
    let slope = |_: f64, y: &Tensor, p: &Tensor| p * y.sin();
    for schedule in [Schedule::All, Schedule::Sqrt, Schedule::Binomial { slots: 2 }] {
        let end = move |y: &Tensor| ode::rk4_with(schedule, slope, &scalar(0.5), y, 0.0, 1.0, 5);
        let plain = |y: &Tensor| ode::rk4(slope, &scalar(0.5), y, 0.0, 1.0, 5);
        near(&compile(grad(end)).call(&scalar(0.3)), &grad(plain)(&scalar(0.3)));
        let parameter = move |p: &Tensor| ode::rk4_with(schedule, slope, p, p, 0.0, 1.0, 5);
        let plain = |p: &Tensor| ode::rk4(slope, p, p, 0.0, 1.0, 5);
        near(&compile(grad(parameter)).call(&scalar(0.3)), &grad(plain)(&scalar(0.3)));
    }
}

#[test]
fn implicit_functions_of_no_lanes() {
    let root = |p: &Tensor| implicit::root(|p: &Tensor, x: &Tensor| x.square() - p, p, &Tensor::ones([2]));
    assert_eq!(vmap(root)(&Tensor::zeros([0, 2])).shape(), [0, 2]);
    let slopes = vmap(grad(|p: &Tensor| root(p).sum()))(&Tensor::zeros([0, 2]));
    assert_eq!(slopes.shape(), [0, 2]);
}
