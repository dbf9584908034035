//! Differential equations: the solutions are right, and their gradients agree in every way to compute them.

use pullback::Schedule;
use pullback::ode::{self, Dopri5};
use pullback::prelude::*;
use pullback_testing::{close, message};

fn scalar(v: f64) -> Tensor {
    Tensor::scalar(v)
}

/// A pendulum of length 1/p, with friction: (angle, speed).
fn pendulum(_t: f64, (x, v): &(Tensor, Tensor), p: &Tensor) -> (Tensor, Tensor) {
    (v.clone(), -(p * x.sin()) - v * 0.1)
}

fn lorenz(_t: f64, y: &Tensor, p: &Tensor) -> Tensor {
    let (x, y, z) = (y.get(0), y.get(1), y.get(2));
    let (sigma, rho, beta) = (p.get(0), p.get(1), p.get(2));
    Tensor::stack(&[sigma * (&y - &x), &x * (rho - &z) - &y, &x * &y - beta * &z], 0)
}

#[test]
fn rk4_is_of_fourth_order() {
    let f = |t: f64, y: &Tensor, _: &()| y * t.cos(); // y = exp(sin t)
    let error = |n: usize| (ode::rk4(f, &(), &scalar(1.0), 0.0, 2.0, n).item() - 2f64.sin().exp()).abs();
    let order = (error(20) / error(40)).log2();
    assert!((order - 4.0).abs() < 0.3, "order {order}");
}

#[test]
fn dopri5_keeps_its_accuracy() {
    for tolerance in [1e-4, 1e-7, 1e-10] {
        let solver = Dopri5 { relative: tolerance, absolute: tolerance, ..Dopri5::default() };
        let f = |t: f64, y: &Tensor, _: &()| y * t.cos();
        let solution = solver.solve(f, &(), &scalar(1.0), 0.0, 5.0).unwrap();
        let exact = |t: f64| t.sin().exp();
        assert!((solution.end().item() - exact(5.0)).abs() < 50.0 * tolerance, "{tolerance}");
        assert_eq!(*solution.times().last().unwrap(), 5.0);
        // Dense output is of one order less than the solution.
        for k in 0..=50 {
            let t = 0.1 * k as f64;
            let e = (solution.at(t).item() - exact(t)).abs();
            assert!(e < 200.0 * tolerance, "at {t} with {tolerance}: {e}");
        }
    }
}

#[test]
fn time_runs_backward_too() {
    let f = |_t: f64, y: &Tensor, _: &()| -y;
    let back = Dopri5::default().solve(f, &(), &scalar(1.0), 1.0, 0.0).unwrap();
    assert!((back.end().item() - 1f64.exp()).abs() < 1e-6);
    assert!((back.at(0.25).item() - 0.75f64.exp()).abs() < 1e-5);
    assert!((ode::rk4(f, &(), &scalar(1.0), 1.0, 0.0, 40).item() - 1f64.exp()).abs() < 1e-6);
}

#[test]
fn three_ways_to_the_gradient_agree() {
    let start = (scalar(1.0), scalar(0.0));
    let p = scalar(4.0);
    let tight = Dopri5 { relative: 1e-10, absolute: 1e-12, ..Dopri5::default() };
    let by_rk4 = grad(|p: &Tensor| ode::rk4(pendulum, p, &start, 0.0, 3.0, 3000).0)(&p).item();
    let through =
        grad(|p: &Tensor| tight.solve(pendulum, p, &start, 0.0, 3.0).unwrap().end().0.clone())(&p).item();
    let by_adjoint = grad(|p: &Tensor| ode::adjoint(&tight, pendulum, p, &start, 0.0, 3.0).0)(&p).item();
    let forward =
        jvp(|p: &Tensor| ode::rk4(pendulum, p, &start, 0.0, 3.0, 3000).0, &p, &scalar(1.0)).1.item();
    let few = Schedule::Binomial { slots: 10 };
    let kept = grad(|p: &Tensor| ode::rk4_with(few, pendulum, p, &start, 0.0, 3.0, 3000).0)(&p).item();
    // The same terms; those of the parameter are added in another order.
    assert!((by_rk4 - kept).abs() < 1e-13, "checkpoints change nothing but memory");
    for other in [through, by_adjoint, forward] {
        assert!(close(other, by_rk4, 1e-7), "{by_rk4} {other}");
    }
}

#[test]
fn the_adjoint_reaches_the_start_and_every_parameter() {
    let tight = Dopri5 { relative: 1e-10, absolute: 1e-12, ..Dopri5::default() };
    let y0 = Tensor::from([1.0, 2.0, 3.0]);
    let p = Tensor::from([10.0, 28.0, 8.0 / 3.0]);
    let loss = |y: &Tensor| (y * Tensor::from([1.0, -0.5, 0.25])).sum();
    let a = grad(|(y, p): &(Tensor, Tensor)| loss(&ode::adjoint(&tight, lorenz, p, y, 0.0, 0.5)))(&(
        y0.clone(),
        p.clone(),
    ));
    let b = grad(|(y, p): &(Tensor, Tensor)| loss(&ode::rk4(lorenz, p, y, 0.0, 0.5, 2000)))(&(y0, p));
    assert!(a.0.is_close(&b.0, 1e-6, 1e-6) && a.1.is_close(&b.1, 1e-6, 1e-6), "{a:?} {b:?}");
}

#[test]
fn second_derivatives_by_the_adjoint() {
    let tight = Dopri5 { relative: 1e-10, absolute: 1e-12, ..Dopri5::default() };
    let f = |_t: f64, y: &Tensor, p: &Tensor| -(p * y); // y(1) = exp(-p)
    let end = |p: &Tensor| ode::adjoint(&tight, f, p, &scalar(1.0), 0.0, 1.0);
    let second = grad(grad(end))(&scalar(0.5)).item();
    assert!((second - (-0.5f64).exp()).abs() < 1e-6, "{second}");
}

#[test]
fn what_cannot_be_done_is_an_error() {
    let w = scalar(2.0).requires_grad();
    let e = message(|| {
        let w = w.clone();
        ode::adjoint(
            &Dopri5::default(),
            move |_t: f64, y: &Tensor, _: &()| y * &w,
            &(),
            &scalar(1.0),
            0.0,
            1.0,
        )
    });
    assert!(e.contains("captures") && e.contains("adjoint"), "{e}");
    let few = Dopri5 { max_steps: 3, ..Dopri5::default() };
    let e = few.solve(|_t, y: &Tensor, _: &()| -(y * 1e6), &(), &scalar(1.0), 0.0, 1.0).err().unwrap();
    assert!(e.to_string().contains("max_steps") && e.to_string().contains("ode.rs"), "{e}");
    let explodes =
        Dopri5::default().solve(|_t, y: &Tensor, _: &()| y.square(), &(), &scalar(1.0), 0.0, 2.0).err();
    assert!(explodes.is_some(), "y = 1 / (1 - t) has a pole at 1");
    let e =
        Dopri5::default().solve(|_t, y: &Tensor, _: &()| -y, &(), &scalar(1.0), 0.0, f64::NAN).err().unwrap();
    assert!(e.to_string().contains("finite"), "{e}");
}
