//! Memory for time: checkpointed functions and loops give the same results from less.

use crate::near;
use pullback::prelude::*;
use pullback::{CustomOp, Policy, Schedule, checkpoint_with, custom_op, memory, name, scan_with};
use pullback_testing::message;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

const SCHEDULES: [Schedule; 6] = [
    Schedule::All,
    Schedule::Sqrt,
    Schedule::Recursive,
    Schedule::Binomial { slots: 3 },
    Schedule::Online { slots: 3 },
    Schedule::Binomial { slots: 1 },
];

/// Parameters, first state, inputs of the steps.
type P = (Tensor, (Tensor, Tensor));

fn start() -> P {
    let xs = Tensor::linspace(-1.0, 1.0, 26).reshape([13, 2]);
    (Tensor::from([[0.3, -0.2], [0.5, 0.7]]), (Tensor::from([0.1, 0.2]), xs))
}

fn cell(w: &Tensor, h: &Tensor, x: &Tensor) -> (Tensor, Tensor) {
    let h = (w.matmul(h) + x).tanh();
    (h.clone(), h.square().sum() + x.get(0))
}

fn total((h, ys): (Tensor, Tensor)) -> Tensor {
    h.sum() + (&ys * Tensor::linspace(0.0, 1.0, ys.shape()[0])).sum()
}

fn plain((w, (h, xs)): &P) -> Tensor {
    total(scan(|h: &Tensor, x: &Tensor| cell(w, h, x), h, xs))
}

fn traced(schedule: Schedule) -> impl Fn(&P) -> Tensor + Copy {
    move |(w, (h, xs))| total(scan_with(schedule, |h: &Tensor, x: &Tensor| cell(w, h, x), h, xs))
}

fn dynamic(schedule: Schedule) -> impl Fn(&P) -> Tensor + Copy {
    move |(w, (h, xs))| {
        let w = w.clone();
        total(scan_with(schedule.rerun(), move |h: &Tensor, x: &Tensor| cell(&w, h, x), h, xs))
    }
}

#[track_caller]
fn same(a: P, b: P) {
    near(&a.0, &b.0);
    near(&a.1.0, &b.1.0);
    near(&a.1.1, &b.1.1);
}

#[test]
fn every_schedule_gives_the_same_gradients() {
    let p = start();
    for s in SCHEDULES {
        near(&traced(s)(&p), &plain(&p));
        near(&dynamic(s)(&p), &plain(&p));
        same(grad(traced(s))(&p), grad(plain)(&p));
        same(grad(dynamic(s))(&p), grad(plain)(&p));
        let t = (Tensor::ones([2, 2]), (Tensor::ones([2]), Tensor::ones([13, 2])));
        near(&jvp(traced(s), &p, &t).1, &jvp(plain, &p, &t).1);
    }
}

#[test]
fn every_schedule_of_second_order() {
    let p = start();
    let second = |f: &dyn Fn(&P) -> Tensor| {
        grad(|p: &P| {
            let g = grad(f)(p);
            g.0.square().sum() + g.1.0.sin().sum() + g.1.1.exp().sum()
        })(&p)
    };
    let expected = second(&plain);
    for s in SCHEDULES {
        same(second(&traced(s)), expected.clone());
        same(second(&dynamic(s)), expected.clone());
    }
    // Forward over reverse, and third order.
    let t = (Tensor::ones([2, 2]), (Tensor::ones([2]), Tensor::ones([13, 2])));
    let s = Schedule::Binomial { slots: 3 };
    same(jvp(grad(traced(s)), &p, &t).1, jvp(grad(plain), &p, &t).1);
    let third = |f: &dyn Fn(&P) -> Tensor| {
        grad(|p: &P| grad(|p: &P| grad(f)(p).0.square().sum())(p).0.square().sum())(&p)
    };
    same(third(&traced(s)), third(&plain));
}

#[test]
fn every_schedule_under_vmap() {
    let many: P = {
        let p = start();
        let two = |t: &Tensor| Tensor::stack(&[t.clone(), t * 0.5], 0);
        (two(&p.0), (two(&p.1.0), two(&p.1.1)))
    };
    let expected = vmap(grad(plain))(&many);
    for s in SCHEDULES {
        same(vmap(grad(traced(s)))(&many), expected.clone());
        same(vmap(grad(dynamic(s)))(&many), expected.clone());
        same(grad(|p: &P| vmap(traced(s))(p).sum())(&many), expected.clone());
        same(grad(checkpoint(traced(s)))(&start()), grad(plain)(&start()));
    }
}

#[test]
fn a_pullback_runs_more_than_once() {
    let p = start();
    let (_, pull) = vjp(traced(Schedule::Binomial { slots: 3 }), &p);
    same(pull(&Tensor::scalar(1.0)), grad(plain)(&p));
    same(pull(&Tensor::scalar(1.0)), grad(plain)(&p));
}

#[test]
fn captured_leaves_get_their_gradients() {
    let (w, (h, xs)) = start();
    let expected = grad(plain)(&(w.clone(), (h.clone(), xs.clone())));
    let w = w.requires_grad();
    total(scan_with(Schedule::Sqrt, |h: &Tensor, x: &Tensor| cell(&w, h, x), &h, &xs)).backward();
    near(&w.grad().unwrap(), &expected.0);
    let (v, s) = (w.detach().requires_grad(), Schedule::Binomial { slots: 2 });
    let kept = v.clone();
    total(scan_with(s.rerun(), move |h: &Tensor, x: &Tensor| cell(&kept, h, x), &h, &xs)).backward();
    near(&v.grad().unwrap(), &expected.0);
}

#[test]
fn no_steps_and_no_slots() {
    for s in SCHEDULES {
        let f = |x: &Tensor| {
            let (last, ys) = scan_with(s, |x: &Tensor, _: &()| (x.exp(), x.sin()), x, 0);
            assert_eq!(ys.shape(), [0]);
            last
        };
        assert_eq!(grad(f)(&Tensor::scalar(2.0)).item(), 1.0);
        let (last, ys) =
            scan_with(s.rerun(), |x: &Tensor, _: &()| (x.exp(), x.sin()), &Tensor::scalar(2.0), 0);
        assert_eq!((last.item(), ys.shape()), (2.0, &[0][..]));
    }
    let none = || {
        scan_with(Schedule::Online { slots: 0 }, |x: &Tensor, _: &()| (x.exp(), ()), &Tensor::scalar(1.0), 3)
    };
    let e = message(none);
    assert!(e.contains("at least one slot") && e.contains("checkpoint.rs"), "{e}");
}

/// Griewank and Walther's `r n - C(s + r, s + 1)`, for n = 1000 and s = 5: C(12, 5) = 792 < 1000 <= 1287 = C(13, 5), so r = 8 and the
/// count is 8000 - C(13, 6) = 6284. That it is met exactly is tested with the schedule itself.
#[test]
fn the_binomial_schedule_runs_as_few_steps_as_the_formula_says() {
    let runs = Arc::new(AtomicUsize::new(0));
    let counter = runs.clone();
    let step = move |x: &Tensor, _: &()| {
        counter.fetch_add(1, Relaxed);
        (x.sin(), ())
    };
    let n = 1000;
    let step = Arc::new(step);
    let f = move |x: &Tensor| {
        let step = step.clone();
        scan_with(Schedule::Binomial { slots: 5 }.rerun(), move |x: &Tensor, i: &()| step(x, i), x, n).0
    };
    grad(f)(&Tensor::scalar(0.5));
    // The run, each step once for its pullback, and the advances less those to the last state that the run kept itself.
    let advances = runs.load(Relaxed) - 2 * n;
    assert!(advances <= 6284 && advances > 6284 - n, "{advances}");
}

#[test]
fn a_gradient_inside_of_a_checkpoint() {
    let inner = |x: &Tensor| grad(|x: &Tensor| x * x.square())(x).sin();
    let x = Tensor::scalar(0.7);
    let expected = grad(inner)(&x);
    near(&grad(checkpoint(inner))(&x), &expected);
    near(&grad(checkpoint_with(Policy::rerun(), inner))(&x), &expected);
    let f = |x: &Tensor| scan_with(Schedule::Sqrt.rerun(), move |x: &Tensor, _: &()| (inner(x), ()), x, 4).0;
    near(&grad(f)(&x), &grad(|x: &Tensor| inner(&inner(&inner(&inner(x)))))(&x));
}

/// Two layers, with names.
fn layers((w, x): &(Tensor, Tensor)) -> Tensor {
    let hidden = name(&w.matmul(x).tanh(), "hidden");
    w.matmul(&hidden.exp()).sin().sum()
}

#[test]
fn every_policy_gives_the_same_derivatives() {
    let p = (start().0, Tensor::from([0.4, -0.3]));
    let policies = [
        Policy::Everything,
        Policy::Nothing,
        Policy::Products,
        Policy::Named(&["hidden"]),
        Policy::Named(&["other"]),
    ];
    let (g, h) = (grad(layers)(&p), grad(|p: &(Tensor, Tensor)| grad(layers)(p).0.square().sum())(&p));
    for policy in policies {
        let f = checkpoint_with(policy, layers);
        let d = grad(&f)(&p);
        near(&d.0, &g.0);
        near(&d.1, &g.1);
        let dd = grad(|p: &(Tensor, Tensor)| grad(&f)(p).0.square().sum())(&p);
        near(&dd.0, &h.0);
        near(&dd.1, &h.1);
        let many = (Tensor::stack(&[p.0.clone(), p.0.sin()], 0), Tensor::from([[0.4, -0.3], [0.1, 0.2]]));
        near(&vmap(grad(&f))(&many).0, &vmap(grad(layers))(&many).0);
        near(&grad(checkpoint(&f))(&p).0, &g.0);
    }
}

#[test]
fn a_policy_decides_what_is_kept() {
    let n = 1000;
    let x = Tensor::linspace(0.0, 1.0, n).requires_grad();
    let f = |x: &Tensor| name(&name(&x.sin(), "a").exp(), "b").tanh();
    let bytes = |policy: Policy| memory::report(&checkpoint_with(policy, f)(&x).sum()).bytes();
    assert_eq!(bytes(Policy::Nothing), 0);
    assert_eq!(bytes(Policy::Named(&["a"])), 8 * n);
    assert_eq!(bytes(Policy::Named(&["a", "b"])), 16 * n);
    // sin keeps its input, exp and tanh their results.
    assert_eq!(bytes(Policy::Everything), 16 * n);
}

#[test]
fn a_verified_checkpoint_takes_what_is_the_same() {
    let f = |x: &Tensor| {
        // The same draw in each run; a NaN is equal to itself here.
        let noise = Tensor::uniform(Key::new(3), [3], DType::F64);
        (x * noise).sin() + Tensor::from([0.0, f64::NAN, 0.0])
    };
    let x = Tensor::from([0.1, 0.2, 0.3]);
    let g = grad(|x: &Tensor| checkpoint_with(Policy::rerun().verify(), f)(x).get(0))(&x);
    near(&g, &grad(|x: &Tensor| f(x).get(0))(&x));
    near(
        &vmap(grad(|x: &Tensor| checkpoint_with(Policy::rerun().verify(), |x: &Tensor| x.sin())(x)))(&x),
        &x.cos(),
    );
}

/// An operation whose result depends on how often it has run.
struct Fickle(AtomicUsize);

impl CustomOp for Fickle {
    type Element = f64;
    fn name(&self) -> &'static str {
        "fickle"
    }
    fn infer(&self, shapes: &[&[usize]]) -> Result<Vec<usize>, String> {
        Ok(shapes[0].to_vec())
    }
    fn eval(&self, x: &[&[f64]], _: &[&[usize]], out: &mut [f64]) {
        let runs = self.0.fetch_add(1, Relaxed) as f64;
        out.iter_mut().zip(x[0]).for_each(|(o, x)| *o = x + runs);
    }
    fn pullback(&self, _: &[Tensor], _: &Tensor, g: &Tensor) -> Vec<Tensor> {
        vec![g.clone()]
    }
}

#[test]
fn a_trace_is_verified_too_with_what_it_keeps_in_memory_or_in_files() {
    let w = Tensor::from([[0.5, 1.0], [-1.0, 2.0]]);
    let x = Tensor::from([0.1, 0.2]);
    let steady = |x: &Tensor| w.matmul(x).tanh().exp();
    let expected = grad(|x: &Tensor| steady(x).sum())(&x);
    let dir = std::env::temp_dir();
    for policy in [Policy::Everything, Policy::Nothing, Policy::Products] {
        for keep in [policy.verify(), policy.offload(&dir).verify(), policy.verify().offload(&dir)] {
            let kept = checkpoint_with(keep.clone(), steady);
            near(&grad(|x: &Tensor| kept(x).sum())(&x), &expected);
            let op = Arc::new(Fickle(AtomicUsize::new(0)));
            let fickle =
                checkpoint_with(keep, |x: &Tensor| custom_op::<Fickle>(op.clone(), &[&w.matmul(x)]).sin());
            let e = fickle(&x.clone().requires_grad()).sum().try_backward().unwrap_err().to_string();
            assert!(e.contains("not deterministic"), "{policy:?}: {e}");
        }
    }
}

#[test]
fn a_report_names_operations_and_lines() {
    let x = Tensor::linspace(0.0, 1.0, 128).requires_grad();
    let y = x.exp();
    let (a, line) = (y.sin(), line!());
    let loss = (a * &y).sum();
    let report = memory::report(&loss);
    // exp keeps its result, which sin and the product read too; the product keeps the sine.
    assert_eq!(report.bytes(), 2 * 1024);
    let sin = report.rows.iter().find(|r| r.op == "sin").unwrap();
    assert_eq!((sin.location.line(), sin.records), (line, 1));
    let text = report.to_string();
    assert!(text.contains(file!()) && text.contains("exp"), "{text}");
    let (kept, line) = (memory::report(&checkpoint(|x: &Tensor| x.exp().sin().exp().sum())(&x)), line!());
    assert_eq!((kept.bytes(), kept.inputs), (0, 1024));
    let of = &kept.rows[0];
    assert_eq!((of.op, of.location.line(), of.location.file()), ("checkpoint", line, file!()));
    let looped = |s: Schedule| scan_with(s, |x: &Tensor, _: &()| (x.sin(), ()), &x, 100).0.sum();
    assert_eq!(
        memory::report(&looped(Schedule::Binomial { slots: 5 })).bytes(),
        4 * 1024,
        "the first state is the input"
    );
}
