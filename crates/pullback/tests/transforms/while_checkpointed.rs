//! While loops that are reversed from a few states: the derivatives of the plain loop, in every transform.

use crate::near;
use pullback::check;
use pullback::prelude::*;
use pullback::{Bound, Rerun, Schedule, while_loop_with};
use pullback_testing::message;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// A matrix and a vector, which is also the state together with a counter.
type P = (Tensor, Tensor);
type State = (Tensor, Tensor);

fn start() -> P {
    (Tensor::from([[0.9, -0.2], [0.3, 0.8]]), Tensor::from([2.0, -3.0]))
}

fn go_on((x, _): &State) -> Tensor {
    x.square().sum().gt(0.5)
}

fn step(w: &Tensor, (x, k): &State) -> State {
    (w.matmul(x) + x.sin() * 0.05, k + 1)
}

fn finish((x, k): State) -> Tensor {
    assert_eq!(k.dtype(), DType::I32);
    x.sin().sum() + k.cast(DType::F64)
}

/// By the loop that keeps everything.
fn plain((w, x): &P) -> Tensor {
    finish(while_loop(go_on, |s: &State| step(w, s), &(x.clone(), Tensor::scalar(0))))
}

fn few(max: usize, slots: usize) -> Bound<Schedule> {
    Bound::at_most(max).schedule(Schedule::Online { slots })
}

fn again(max: usize, slots: usize) -> Bound<Rerun<Schedule>> {
    Bound::at_most(max).schedule(Schedule::Online { slots }.rerun())
}

fn traced(slots: usize) -> impl Fn(&P) -> Tensor + Copy {
    move |(w, x)| {
        let init = (x.clone(), Tensor::scalar(0));
        finish(while_loop_with(few(200, slots), go_on, |s: &State| step(w, s), &init))
    }
}

fn dynamic(slots: usize) -> impl Fn(&P) -> Tensor + Copy {
    move |(w, x)| {
        let (w, init) = (w.clone(), (x.clone(), Tensor::scalar(0)));
        finish(while_loop_with(again(200, slots), go_on, move |s: &State| step(&w, s), &init))
    }
}

#[track_caller]
fn same(a: P, b: P) {
    near(&a.0, &b.0);
    near(&a.1, &b.1);
}

const SLOTS: [usize; 5] = [1, 2, 3, 8, 100];

#[test]
fn any_number_of_slots_gives_the_same_derivatives() {
    let p = start();
    let t = (Tensor::full([2, 2], 0.5), Tensor::ones([2]));
    assert!(plain(&p).item() > 15.0, "the loop is longer than most numbers of slots");
    for slots in SLOTS {
        near(&traced(slots)(&p), &plain(&p));
        same(grad(traced(slots))(&p), grad(plain)(&p));
        same(grad(dynamic(slots))(&p), grad(plain)(&p));
        near(&jvp(traced(slots), &p, &t).1, &jvp(plain, &p, &t).1);
        near(&jvp(dynamic(slots), &p, &t).1, &jvp(plain, &p, &t).1);
        same(jvp(grad(traced(slots)), &p, &t).1, jvp(grad(plain), &p, &t).1);
    }
    check::gradients(traced(3), &p).unwrap();
    let (_, pull) = vjp(traced(3), &p);
    same(pull(&Tensor::scalar(1.0)), grad(plain)(&p));
    same(pull(&Tensor::scalar(1.0)), grad(plain)(&p));
}

#[test]
fn every_schedule_gives_the_same_derivatives() {
    let p = start();
    let binomial = |slots| Schedule::Binomial { slots };
    for schedule in [Schedule::All, Schedule::Sqrt, Schedule::Recursive, binomial(1), binomial(4)] {
        for max in [25, 200, 10_000] {
            let bound = Bound::at_most(max).schedule(schedule);
            let f = |(w, x): &P| {
                finish(while_loop_with(bound, go_on, |s: &State| step(w, s), &(x.clone(), Tensor::scalar(0))))
            };
            same(grad(f)(&p), grad(plain)(&p));
            same(vmap(grad(f))(&p.map(&mut |t| t.unsqueeze(0))).map(&mut |t| t.get(0)), grad(plain)(&p));
        }
    }
}

#[test]
fn of_second_order() {
    let p = start();
    let second = |f: &dyn Fn(&P) -> Tensor| {
        grad(|p: &P| {
            let g = grad(f)(p);
            g.0.square().sum() + g.1.exp().sum()
        })(&p)
    };
    for slots in [1, 3, 8] {
        same(second(&traced(slots)), second(&plain));
        same(second(&dynamic(slots)), second(&plain));
    }
}

#[test]
fn under_vmap_every_lane_ends_when_it_ends() {
    let p = start();
    let many = (
        Tensor::stack(&[p.0.clone(), &p.0 * 0.5, p.0.clone()], 0),
        Tensor::from([[2.0, -3.0], [9.0, 1.0], [0.1, 0.2]]),
    );
    let expected = vmap(grad(plain))(&many);
    for slots in [1, 3, 100] {
        near(&vmap(traced(slots))(&many), &vmap(plain)(&many));
        same(vmap(grad(traced(slots)))(&many), expected.clone());
        same(vmap(grad(dynamic(slots)))(&many), expected.clone());
        same(grad(|p: &P| vmap(traced(slots))(p).sum())(&many), expected.clone());
    }
    for k in 0..3 {
        let one = (many.0.get(k), many.1.get(k));
        near(&expected.1.get(k), &grad(plain)(&one).1);
    }
}

#[test]
fn in_a_traced_function_it_is_a_loop_of_all_steps() {
    let p = start();
    same(grad(checkpoint(traced(4)))(&p), grad(plain)(&p));
    same(grad(checkpoint(dynamic(4)))(&p), grad(plain)(&p));
    let many = (Tensor::stack(&[p.0.clone(), &p.0 * 0.5], 0), Tensor::from([[2.0, -3.0], [9.0, 1.0]]));
    same(vmap(grad(checkpoint(traced(4))))(&many), vmap(grad(plain))(&many));
    same(grad(checkpoint(|p: &P| vmap(traced(4))(p).sum()))(&many), vmap(grad(plain))(&many));
}

#[test]
fn captured_leaves_get_their_gradients() {
    let (w, x) = start();
    let expected = grad(plain)(&(w.clone(), x.clone()));
    let (w, bound) = (w.requires_grad(), Tensor::scalar(0.5).requires_grad());
    let init = (x, Tensor::scalar(0));
    let more = |(x, _): &State| x.square().sum().gt(&bound);
    finish(while_loop_with(few(200, 3), more, |s: &State| step(&w, s), &init)).backward();
    near(&w.grad().unwrap(), &expected.0);
    assert!(bound.grad().is_none(), "a condition has no derivative");
    let (v, bound) = (w.detach().requires_grad(), bound.clone());
    let inside = v.clone();
    let more = move |(x, _): &State| x.square().sum().gt(&bound);
    finish(while_loop_with(again(200, 3), more, move |s: &State| step(&inside, s), &init)).backward();
    near(&v.grad().unwrap(), &expected.0);
}

#[test]
fn loops_of_no_step_and_of_one() {
    for slots in [1, 4] {
        let f = |x: &Tensor| while_loop_with(few(9, slots), |x: &Tensor| x.gt(5.0), |x: &Tensor| x.sqrt(), x);
        assert_eq!(grad(f)(&Tensor::scalar(3.0)).item(), 1.0);
        assert_eq!(grad(f)(&Tensor::scalar(16.0)).item(), 0.125, "one step");
    }
}

#[test]
fn a_step_runs_as_often_as_the_online_schedule_says() {
    let runs = Arc::new(AtomicUsize::new(0));
    let f = |x: &Tensor| {
        let counter = runs.clone();
        let body = move |x: &Tensor| {
            counter.fetch_add(1, Relaxed);
            x * 0.99
        };
        while_loop_with(again(10_000, 10), |x: &Tensor| x.gt(1.0), body, x)
    };
    let x = Tensor::scalar(20_000.0);
    let n = (20_000f64.ln() / -0.99f64.ln()).ceil();
    near(&grad(f)(&x), &Tensor::scalar(0.99f64.powf(n)));
    // Revolve with 10 slots: C(13, 3) = 286 < 986 <= 1001 = C(14, 4), so 4 n - C(14, 11) advances; online at most half as many again. The
    // run, and each step once for its pullback, come to these.
    let (n, runs) = (n as usize, runs.load(Relaxed));
    assert_eq!(n, 986);
    let advances = runs - 2 * n;
    assert!(2 * advances <= 3 * (4 * n - 364), "{advances}");
}

#[test]
fn bad_loops_are_named() {
    let x = Tensor::scalar(3.0);
    let forever = |x: &Tensor| x.gt(0.0);
    let e = message(|| drop(while_loop_with(few(50, 3), forever, |x: &Tensor| x + 1.0, &x)));
    assert!(e.starts_with("while_loop_with: ") && e.contains("after 50 steps"), "{e}");
    assert!(e.contains("while_checkpointed.rs"), "{e}");
    let e = message(|| drop(while_loop_with(again(50, 3), forever, |x: &Tensor| x + 1.0, &x)));
    assert!(e.contains("after 50 steps"), "{e}");
    let e = message(|| drop(while_loop_with(few(50, 0), forever, |x: &Tensor| x - 1.0, &x)));
    assert!(e.contains("at least one slot"), "{e}");
    let e = message(|| drop(while_loop_with(few(50, 3), forever, |x: &Tensor| x.unsqueeze(0), &x)));
    assert!(e.contains("keep its shape and type"), "{e}");
    let e = message(|| drop(while_loop_with(few(50, 3), |x: &Tensor| x.sin(), |x: &Tensor| x - 1.0, &x)));
    assert!(e.contains("scalar of bool"), "{e}");
    let hidden = |x: &Tensor| {
        let bound = x.clone();
        let more = move |x: &Tensor| x.lt(&bound * 2.0);
        while_loop_with(again(50, 3), more, |x: &Tensor| x + 1.0, &Tensor::scalar(0.0))
    };
    let e = message(|| drop(checkpoint(hidden)(&x)));
    assert!(e.contains("traced") && e.contains("part of the state"), "{e}");
}
