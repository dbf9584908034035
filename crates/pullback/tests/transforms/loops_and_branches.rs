//! Loops and branches: values, derivatives in both modes and of second order, batched, traced, and their errors.

use crate::near;
use pullback::check;
use pullback::prelude::*;
use pullback::{Bound, associative_scan, fori, map_over, switch, while_loop_with};
use pullback_testing::message;

fn weights() -> Tensor {
    Tensor::from([[0.3, -0.2], [0.5, 0.7]])
}

/// A recurrent cell: state and outputs.
fn cell(w: &Tensor, h: &Tensor, x: &Tensor) -> (Tensor, Tensor) {
    let h = (w.matmul(h) + x).tanh();
    (h.clone(), h.square().sum())
}

fn recurrent(w: &Tensor, xs: &Tensor) -> (Tensor, Tensor) {
    scan(|h: &Tensor, x: &Tensor| cell(w, h, x), &Tensor::from([0.1, 0.2]), xs)
}

/// The same by hand.
fn unrolled(w: &Tensor, xs: &Tensor) -> (Tensor, Tensor) {
    let mut h = Tensor::from([0.1, 0.2]);
    let mut ys = Vec::new();
    for k in 0..xs.shape()[0] {
        let (next, y) = cell(w, &h, &xs.get(k as isize));
        h = next;
        ys.push(y);
    }
    (h, Tensor::stack(&ys, 0))
}

fn inputs() -> Tensor {
    Tensor::from([[0.1, 0.9], [-0.4, 0.2], [0.3, 0.3], [0.8, -0.6], [0.0, 0.5]])
}

type Pair = (Tensor, Tensor);

fn loss(by: impl Fn(&Tensor, &Tensor) -> Pair) -> impl Fn(&Pair) -> Tensor {
    move |(w, xs)| {
        let (h, ys) = by(w, xs);
        h.sum() + (ys * Tensor::from([1.0, 2.0, 3.0, 4.0, 5.0])).sum()
    }
}

#[test]
fn scan_is_the_loop() {
    let p = (weights(), inputs());
    let (h, ys) = recurrent(&p.0, &p.1);
    let (h0, ys0) = unrolled(&p.0, &p.1);
    near(&h, &h0);
    near(&ys, &ys0);
    let (g, g0) = (grad(loss(recurrent))(&p), grad(loss(unrolled))(&p));
    near(&g.0, &g0.0);
    near(&g.1, &g0.1);
    check::gradients(loss(recurrent), &p).unwrap();
}

#[test]
fn scan_in_forward_mode_and_of_second_order() {
    let p = (weights(), inputs());
    let t = (Tensor::full([2, 2], 0.5), Tensor::ones([5, 2]));
    near(&jvp(loss(recurrent), &p, &t).1, &jvp(loss(unrolled), &p, &t).1);
    let second = |by: fn(&Tensor, &Tensor) -> Pair| {
        grad(move |p: &Pair| {
            let g = grad(loss(by))(p);
            g.0.square().sum() + g.1.sin().sum()
        })(&p)
    };
    let (a, b) = (second(recurrent), second(unrolled));
    near(&a.0, &b.0);
    near(&a.1, &b.1);
}

#[test]
fn scan_under_vmap() {
    let xs = Tensor::stack(&[inputs(), inputs() * 0.5, inputs().sin()], 0);
    let w = weights();
    let f = |xs: &Tensor| loss(recurrent)(&(w.clone(), xs.clone()));
    let (values, gs) = (vmap(f)(&xs), vmap(grad(f))(&xs));
    for k in 0..3 {
        near(&values.get(k), &f(&xs.get(k)));
        near(&gs.get(k), &grad(f)(&xs.get(k)));
    }
    let sum = grad(|xs: &Tensor| vmap(f)(xs).sum())(&xs);
    near(&sum, &gs);
}

#[test]
fn scan_in_a_traced_function() {
    // The state is traced, so the loop is one operation of the graph, and its weights are captured.
    let xs = inputs();
    let f = |w: &Tensor, h: &Tensor| {
        let (h, ys) = scan(|h: &Tensor, x: &Tensor| cell(w, h, x), h, &xs);
        h.sum() + ys.sum()
    };
    let plain = |(w, h): &Pair| f(w, h);
    let traced = checkpoint(plain);
    let p = (weights(), Tensor::from([0.1, 0.2]));
    near(&traced(&p), &plain(&p));
    let (a, b) = (grad(&traced)(&p), grad(plain)(&p));
    near(&a.0, &b.0);
    near(&a.1, &b.1);
    let t = (Tensor::full([2, 2], 0.5), Tensor::ones([2]));
    near(&jvp(&traced, &p, &t).1, &jvp(plain, &p, &t).1);
    let second = |f: &dyn Fn(&Pair) -> Tensor| grad(|p: &Pair| grad(f)(p).0.square().sum())(&p);
    near(&second(&traced).0, &second(&plain).0);
    let many = (Tensor::stack(&[weights(), weights() * 2.0], 0), Tensor::from([[0.1, 0.2], [0.3, 0.4]]));
    near(&vmap(grad(&traced))(&many).0, &vmap(grad(plain))(&many).0);
    // A gradient inside of the traced function.
    let inner = |p: &Pair| grad(plain)(p).0.square().sum();
    near(&grad(checkpoint(inner))(&p).0, &grad(inner)(&p).0);
}

#[test]
fn scan_of_no_steps() {
    let (last, ys) =
        scan(|x: &Tensor, _: &()| (x * 2.0, (x.clone(), x.gt(0.0))), &Tensor::from([1.0, 2.0]), 0);
    assert_eq!(last.to_vec::<f64>(), [1.0, 2.0]);
    assert_eq!((ys.0.shape(), ys.0.dtype()), (&[0, 2][..], DType::F64));
    assert_eq!((ys.1.shape(), ys.1.dtype()), (&[0, 2][..], DType::Bool));
    let (_, ys) = scan(|s: &Tensor, x: &Tensor| (s + x, s * x), &Tensor::scalar(1.0), &Tensor::zeros([0]));
    assert_eq!(ys.shape(), [0]);
    let f = |x: &Tensor| scan(|x: &Tensor, _: &()| (x.exp(), ()), x, 0).0;
    assert_eq!(grad(f)(&Tensor::scalar(3.0)).item(), 1.0);
}

#[test]
fn scan_with_structures() {
    let step = |(a, b): &Pair, (x, y): &(Tensor, Vec<Tensor>)| ((b * x, a + &y[0]), vec![a * b]);
    let init = (Tensor::scalar(1.0), Tensor::scalar(2.0));
    let xs = (Tensor::from([1.0, 2.0]), vec![Tensor::from([3.0, 4.0])]);
    let ((a, b), ys) = scan(step, &init, &xs);
    assert_eq!((a.item(), b.item()), (8.0, 6.0));
    assert_eq!(ys[0].to_vec::<f64>(), [2.0, 8.0]);
}

#[test]
fn a_long_scan_over_inputs_is_linear_in_time() {
    // Quadratic work would be 4e8 additions, and a stack of 20000 mostly empty cotangents.
    let xs = Tensor::linspace(0.0, 1.0, 20_000);
    let f = |xs: &Tensor| scan(|s: &Tensor, x: &Tensor| (s + x.square(), ()), &Tensor::scalar(0.0), xs).0;
    near(&grad(f)(&xs), &(&xs * 2.0));
}

#[test]
fn bad_bodies_are_named() {
    let e = message(|| drop(scan(|x: &Tensor, _: &()| (x.unsqueeze(0), ()), &Tensor::from([1.0]), 3)));
    assert!(
        e.starts_with("scan: ")
            && e.contains("[1]")
            && e.contains("[1, 1]")
            && e.contains("loops_and_branches.rs"),
        "{e}"
    );
    let e = message(|| drop(scan(|x: &Tensor, _: &()| (x.cast(DType::F32), ()), &Tensor::from([1.0]), 3)));
    assert!(e.contains("f64") && e.contains("f32"), "{e}");
    let grow = |x: &Vec<Tensor>, _: &()| (vec![x[0].clone(); x.len() + 1], ());
    let e = message(move || drop(scan(grow, &vec![Tensor::scalar(1.0)], 3)));
    assert!(e.contains("structure"), "{e}");
    let xs = (Tensor::zeros([3]), Tensor::zeros([4]));
    let e = message(move || drop(scan(|s: &Tensor, _: &Pair| (s.clone(), ()), &Tensor::scalar(0.0), &xs)));
    assert!(e.contains("`0` has 3") && e.contains("`1` has 4"), "{e}");
    let e = message(|| {
        drop(scan(|s: &Tensor, _: &Tensor| (s.clone(), ()), &Tensor::scalar(0.0), &Tensor::scalar(1.0)))
    });
    assert!(e.contains("no axis of steps"), "{e}");
    let e = message(|| drop(fori(2, |_, x: &Tensor| x.unsqueeze(0), &Tensor::scalar(0.0))));
    assert!(e.starts_with("fori: "), "{e}");
}

#[test]
fn fori_and_map() {
    let power = |x: &Tensor| fori(5, |_, p: &Tensor| p * x, &Tensor::scalar(1.0));
    assert_eq!(power(&Tensor::scalar(2.0)).item(), 32.0);
    assert_eq!(grad(power)(&Tensor::scalar(2.0)).item(), 80.0);
    assert_eq!(grad(grad(power))(&Tensor::scalar(2.0)).item(), 160.0);
    let xs = inputs();
    let each = map_over(|x: &Tensor| x.square().sum(), &xs);
    near(&each, &xs.square().sum_axes(1));
    near(&grad(|xs: &Tensor| map_over(|x: &Tensor| x.square().sum(), xs).sum())(&xs), &(&xs * 2.0));
}

#[test]
fn associative_scans_are_scans() {
    for n in [1, 2, 3, 4, 5, 6, 7, 8, 13, 16, 31] {
        let xs = Tensor::linspace(0.5, 1.5, n);
        let product = |xs: &Tensor| associative_scan(|a: &Tensor, b: &Tensor| a * b, xs);
        let by_steps =
            |xs: &Tensor| scan(|s: &Tensor, x: &Tensor| (s * x, s * x), &Tensor::scalar(1.0), xs).1;
        near(&product(&xs), &by_steps(&xs));
        let loss = |f: &dyn Fn(&Tensor) -> Tensor| grad(|xs: &Tensor| f(xs).sin().sum())(&xs);
        near(&loss(&product), &loss(&by_steps));
    }
    assert_eq!(associative_scan(|a: &Tensor, b: &Tensor| a + b, &Tensor::zeros([0])).shape(), [0]);
    // Does not commute.
    let m = Tensor::from([[[1.0, 2.0], [0.0, 1.0]], [[0.5, 0.0], [1.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]]);
    let all = associative_scan(|a: &Tensor, b: &Tensor| a.matmul(b), &m);
    near(&all.get(2), &m.get(0).matmul(&m.get(1)).matmul(&m.get(2)));
}

fn choice(x: &Tensor) -> Tensor {
    cond(&x.gt(0.0), |x: &Tensor| x.sqrt(), |x: &Tensor| x.square(), x)
}

#[test]
fn cond_everywhere() {
    for (at, d, dd) in [(4.0, 0.25, -1.0 / 32.0), (-3.0, -6.0, 2.0)] {
        let x = Tensor::scalar(at);
        assert_eq!(grad(choice)(&x).item(), d);
        assert_eq!(jvp(choice, &x, &Tensor::scalar(1.0)).1.item(), d);
        assert_eq!(grad(grad(choice))(&x).item(), dd);
        assert_eq!(grad(checkpoint(choice))(&x).item(), d);
        assert_eq!(grad(grad(checkpoint(choice)))(&x).item(), dd);
        assert_eq!(jvp(checkpoint(choice), &x, &Tensor::scalar(1.0)).1.item(), d);
        assert_eq!(grad(checkpoint(grad(choice)))(&x).item(), dd);
        assert_eq!(checkpoint(|x: &Tensor| jvp(choice, x, &Tensor::scalar(1.0)).1)(&x).item(), d);
    }
    let xs = Tensor::from([4.0, -3.0, 9.0]);
    let ds = [0.25, -6.0, 1.0 / 6.0];
    assert_eq!(vmap(choice)(&xs).to_vec::<f64>(), [2.0, 9.0, 3.0]);
    assert_eq!(vmap(grad(choice))(&xs).to_vec::<f64>(), ds);
    assert_eq!(grad(|xs: &Tensor| vmap(choice)(xs).sum())(&xs).to_vec::<f64>(), ds);
    assert_eq!(vmap(grad(checkpoint(choice)))(&xs).to_vec::<f64>(), ds);
    assert_eq!(grad(checkpoint(|xs: &Tensor| vmap(choice)(xs).sum()))(&xs).to_vec::<f64>(), ds);
}

#[test]
fn cond_runs_one_branch_and_lifts_captures() {
    let (a, b) = (Tensor::scalar(2.0).requires_grad(), Tensor::scalar(5.0).requires_grad());
    let f = |x: &Tensor| cond(&x.gt(0.0), |x: &Tensor| x * &a, |x: &Tensor| x * &b, x);
    checkpoint(f)(&Tensor::scalar(3.0)).backward();
    assert_eq!(a.grad().unwrap().item(), 3.0);
    assert!(b.grad().is_none());
    let never = |_: &Tensor| -> Tensor { unreachable!("only the chosen branch runs") };
    assert_eq!(cond(&Tensor::scalar(true), |x: &Tensor| x + 1.0, never, &Tensor::scalar(1.0)).item(), 2.0);
}

#[test]
fn bad_choices_are_named() {
    let x = Tensor::from([1.0, 2.0]);
    let same = |x: &Tensor| x.clone();
    let y = x.clone();
    let e = message(move || drop(cond(&y.gt(0.0), same, same, &y)));
    assert!(e.starts_with("cond: ") && e.contains("scalar of bool"), "{e}");
    let differ = |x: &Tensor| cond(&x.gt(0.0), |x: &Tensor| x.clone(), |x: &Tensor| x.unsqueeze(0), x);
    let y = x.clone();
    let e = message(move || drop(vmap(differ)(&y)));
    assert!(e.contains("branches") && e.contains("[1]"), "{e}");
    let e = message(move || drop(checkpoint(differ)(&Tensor::scalar(1.0))));
    assert!(e.contains("branches") && e.contains("loops_and_branches.rs"), "{e}");
    let branches: [&dyn Fn(&Tensor) -> Tensor; 1] = [&|x| x.clone()];
    let e = message(|| drop(switch(&Tensor::scalar(0.5), &branches, &Tensor::scalar(1.0))));
    assert!(e.starts_with("switch: "), "{e}");
}

#[test]
fn switch_moves_the_index_inside() {
    let branches: [&dyn Fn(&Tensor) -> Tensor; 3] = [&|x| x * 1.0, &|x| x * 10.0, &|x| x * 100.0];
    let f = |k: i32| switch(&Tensor::scalar(k), &branches, &Tensor::scalar(2.0)).item();
    assert_eq!([-1, 0, 1, 2, 3].map(f), [2.0, 2.0, 20.0, 200.0, 200.0]);
}

fn newton(a: &Tensor) -> Tensor {
    let start = a.zeros_like() + 1.0;
    while_loop(|x: &Tensor| (x.square() - a).abs().gt(1e-14), |x: &Tensor| (x + a / x) * 0.5, &start)
}

#[test]
fn while_loops() {
    let a = Tensor::scalar(2.0);
    near(&newton(&a), &a.sqrt());
    let d = 0.5 / 2f64.sqrt();
    assert!((grad(newton)(&a).item() - d).abs() < 1e-9);
    assert!((jvp(newton, &a, &Tensor::scalar(1.0)).1.item() - d).abs() < 1e-9);
    let many = Tensor::from([2.0, 1.0, 1.5, 3.0]);
    near(&vmap(newton)(&many), &many.sqrt());
    for k in 0..4 {
        near(&vmap(grad(newton))(&many).get(k), &grad(newton)(&many.get(k)));
    }
}

#[test]
fn bounded_while_loops() {
    let halve =
        |x: &Tensor| while_loop_with(Bound::at_most(5), |x: &Tensor| x.gt(1.0), |x: &Tensor| x * 0.5, x);
    let x = Tensor::scalar(12.0);
    assert_eq!(grad(halve)(&x).item(), 1.0 / 16.0);
    assert_eq!(grad(checkpoint(halve))(&x).item(), 1.0 / 16.0);
    assert_eq!(vmap(checkpoint(halve))(&Tensor::from([0.5, 3.0, 12.0])).to_vec::<f64>(), [0.5, 0.75, 0.75]);
    assert!(checkpoint(halve)(&Tensor::scalar(1e9)).item().is_nan());
    let e = message(move || drop(halve(&Tensor::scalar(1e9))));
    assert!(
        e.starts_with("while_loop_with: ")
            && e.contains("after 5 steps")
            && e.contains("loops_and_branches.rs"),
        "{e}"
    );
    let unbounded = |x: &Tensor| while_loop(|x: &Tensor| x.gt(1.0), |x: &Tensor| x * 0.5, x);
    let e = message(move || drop(checkpoint(unbounded)(&Tensor::scalar(3.0))));
    assert!(e.contains("while_loop_with(Bound::at_most(n)"), "{e}");
}

#[test]
fn a_mask_that_depends_on_the_input_in_forward_mode() {
    let f = |x: &Tensor| Tensor::where_(&x.gt(0.0), x.sqrt(), x.square());
    let t = Tensor::from([1.0, 1.0]);
    assert_eq!(jvp(f, &Tensor::from([4.0, -3.0]), &t).1.to_vec::<f64>(), [0.25, -6.0]);
    let count = |x: &Tensor| x.gt(0.0).cast(DType::F64) * x;
    assert_eq!(jvp(count, &Tensor::from([4.0, -3.0]), &t).1.to_vec::<f64>(), [1.0, 0.0]);
}

/// The logistic map: the derivative of the last state by the parameter.
#[test]
fn both_modes_of_a_captured_parameter() {
    let f =
        |r: &Tensor| scan(|x: &Tensor, _: &()| (r * x * (1.0 - x), x.clone()), &Tensor::scalar(0.3), 50).0;
    let r = Tensor::scalar(2.9);
    let (_, forward) = jvp(f, &r, &Tensor::scalar(1.0));
    near(&grad(f)(&r), &forward);
}

/// Only what the body captures is traced.
#[test]
fn a_loop_from_a_constant_state_was_unrolled_in_a_trace() {
    let f = |n: usize| {
        move |w: &Tensor| {
            let step = |h: &Tensor, _: &()| ((h * w).sin() + w, h.sum());
            let (h, ys) = scan(step, &Tensor::from([0.1, 0.2]), n);
            h.sum() + ys.sum()
        }
    };
    let over = |n: usize| {
        move |w: &Tensor| map_over(|x: &Tensor| (x * w).exp(), &Tensor::linspace(0.0, 1.0, n)).sum()
    };
    let w = Tensor::from([0.7, -0.4]);
    let lengths = [2, 5, 60].map(|n| trace(f(n), &w).len());
    assert!(lengths[1] < 20 && lengths.iter().all(|&l| l == lengths[0]), "{lengths:?}");
    let lengths = [2, 5, 60].map(|n| trace(grad(f(n)), &w).len());
    assert!(lengths.iter().all(|&l| l == lengths[0]), "{lengths:?}");
    let lengths = [2, 5, 60].map(|n| trace(over(n), &w).len());
    assert!(lengths.iter().all(|&l| l == lengths[0]), "{lengths:?}");
    near(&compile(grad(f(60))).call(&w), &grad(f(60))(&w));
    near(&compile(grad(over(60))).call(&w), &grad(over(60))(&w));
}

#[test]
fn a_step_that_reads_its_item_is_written_out_in_a_trace() {
    let f = |w: &Tensor| {
        let step = |x: &Tensor| if x.item() > 0.5 { x * w } else { w.sin() };
        map_over(step, &Tensor::linspace(0.0, 1.0, 4)).sum()
    };
    let w = Tensor::scalar(0.3);
    near(&compile(grad(f)).call(&w), &grad(f)(&w));
}
