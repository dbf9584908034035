//! Derivatives of solutions, against formulas and differences.

use pullback::implicit::{Options, Solver};
use pullback::{check, linearize, prelude::*};
use pullback_testing::message;

fn sqrt(p: &Tensor) -> Tensor {
    implicit::root(|p: &Tensor, x: &Tensor| x.square() - p, p, &p.detach().ones_like())
}

#[test]
fn a_root_has_all_its_derivatives() {
    let p = Tensor::scalar(4.0);
    assert!((sqrt(&p).item() - 2.0).abs() < 1e-14);
    assert!((grad(sqrt)(&p).item() - 0.25).abs() < 1e-14);
    assert!((grad(grad(sqrt))(&p).item() + 1.0 / 32.0).abs() < 1e-14);
    assert!((grad(grad(grad(sqrt)))(&p).item() - 3.0 / 256.0).abs() < 1e-13);
    let one = Tensor::scalar(1.0);
    assert!((jvp(sqrt, &p, &one).1.item() - 0.25).abs() < 1e-14);
    assert!((hvp(sqrt, &p, &one).item() + 1.0 / 32.0).abs() < 1e-14);
    assert!((linearize(sqrt, &p).1(&one).item() - 0.25).abs() < 1e-14);
}

#[test]
fn a_root_of_several_unknowns() {
    // x + y = a, x y = b
    let f = |(a, b): &(Tensor, Tensor), (x, y): &(Tensor, Tensor)| (x + y - a, x * y - b);
    let start = (Tensor::scalar(0.5), Tensor::scalar(4.0));
    let solve = |p: &(Tensor, Tensor)| implicit::root(f, p, &start);
    let p = (Tensor::scalar(5.0), Tensor::scalar(6.0));
    let (x, y) = solve(&p);
    assert!((x.item() - 2.0).abs() < 1e-13 && (y.item() - 3.0).abs() < 1e-13);
    check::gradients(solve, &p).unwrap();
}

#[test]
fn a_fixed_point_has_its_derivative() {
    let f = |a: &Tensor, z: &Tensor| (a * z).cos();
    let solve = |a: &Tensor| implicit::fixed_point(f, a, &Tensor::scalar(0.5));
    let a = Tensor::scalar(0.8);
    let z = solve(&a).item();
    let s = (0.8 * z).sin();
    assert!((grad(solve)(&a).item() - (-z * s) / (1.0 + 0.8 * s)).abs() < 1e-11);
    check::gradients(solve, &a).unwrap();
}

/// A regularized regression: the best weights as a function of the data.
fn fit(options: &Options, (x, y): &(Tensor, Tensor)) -> Tensor {
    let loss = |(x, y): &(Tensor, Tensor), w: &Tensor| {
        (x.matmul(w) - y).square().sum() + w.square().square().sum() * 0.1 + w.square().sum() * 0.5
    };
    options.argmin(loss, &(x.clone(), y.clone()), &Tensor::zeros([2]))
}

#[test]
fn every_solver_gives_the_same_derivatives() {
    let data = (Tensor::from([[1.0, 2.0], [0.5, -1.0], [2.0, 0.3]]), Tensor::from([1.0, 0.5, -0.2]));
    let direct = jacrev(|y: &Tensor| fit(&Options::default(), &(data.0.clone(), y.clone())))(&data.1);
    let cg = Solver::ConjugateGradients { tolerance: 1e-13, max_iterations: 100 };
    let gmres = Solver::Gmres { tolerance: 1e-13, restart: 10, max_iterations: 100 };
    for solver in [Solver::Direct, cg, gmres] {
        let options = Options { solver, ..Options::default() };
        check::gradients(|d: &(Tensor, Tensor)| fit(&options, d), &data).unwrap();
        let j = jacfwd(|y: &Tensor| fit(&options, &(data.0.clone(), y.clone())))(&data.1);
        assert!((j - &direct).abs().max().item() < 1e-11);
    }
}

#[test]
fn a_minimum_far_from_the_start() {
    let rosenbrock =
        |a: &Tensor, x: &Tensor| (a - x.get(0)).square() + 100.0 * (x.get(1) - x.get(0).square()).square();
    let best = |a: &Tensor| implicit::argmin(rosenbrock, a, &Tensor::from([-1.2, 1.0]));
    let a = Tensor::scalar(1.0);
    // x = (a, a²)
    assert!((best(&a) - Tensor::from([1.0, 1.0])).abs().max().item() < 1e-9);
    assert!((jacobian(best)(&a) - Tensor::from([1.0, 2.0])).abs().max().item() < 1e-8);
}

#[test]
fn what_the_function_captures_gets_its_derivative() {
    let outer = |w: &Tensor| {
        implicit::root(|p: &Tensor, x: &Tensor| x * w - p, &Tensor::scalar(6.0), &Tensor::scalar(1.0))
    };
    let w = Tensor::scalar(2.0);
    assert!((outer(&w).item() - 3.0).abs() < 1e-14);
    check::gradients(outer, &w).unwrap();
    let tracked = w.requires_grad();
    outer(&tracked).backward();
    assert!((tracked.grad().unwrap().item() + 1.5).abs() < 1e-14);
}

#[test]
fn solutions_under_other_transforms() {
    let ps = Tensor::from([1.0, 4.0, 9.0]);
    assert!((vmap(sqrt)(&ps) - Tensor::from([1.0, 2.0, 3.0])).abs().max().item() < 1e-13);
    check::gradients(vmap(sqrt), &ps).unwrap();
    check::gradients(vmap(grad(sqrt)), &ps).unwrap();
    check::gradients(checkpoint(|p: &Tensor| sqrt(&p.exp())), &Tensor::scalar(0.3)).unwrap();
    let j = jacobian(|p: &Tensor| sqrt(p))(&ps);
    assert!((j.item_at([1, 1]) - 0.25).abs() < 1e-13 && j.item_at([0, 1]).abs() < 1e-13);
}

#[test]
fn what_does_not_converge_is_an_error() {
    let one = Tensor::scalar(1.0);
    let e = message(|| implicit::fixed_point(|p: &Tensor, x: &Tensor| x * 2.0 + p, &one, &one));
    assert!(e.contains("fixed_point: did not converge") && e.contains("implicit.rs"), "{e}");
    let e = message(|| implicit::root(|p: &Tensor, x: &Tensor| x.square() + p, &one, &one));
    assert!(e.contains("root: did not converge") || e.contains("singular"), "{e}");
    let e = message(|| implicit::argmin(|p: &Tensor, x: &Tensor| p * x, &one, &one));
    assert!(e.contains("argmin: did not converge"), "{e}");
    let e = message(|| implicit::root(|_: &Tensor, x: &Tensor| x.sum(), &one, &Tensor::zeros([2])));
    assert!(e.contains("like the unknowns, f64 [2]") && e.contains("implicit.rs"), "{e}");
    let e = message(|| implicit::argmin(|_: &Tensor, x: &Tensor| x.square(), &one, &Tensor::zeros([2])));
    assert!(e.contains("one number"), "{e}");
    // x² = p at p = 0 has a root without a derivative.
    let by = |p: &Tensor| {
        let f = |p: &Tensor, x: &Tensor| x.square() - p;
        Options::default().root_by(|p: &Tensor, _: &Tensor| p.sqrt(), f, p, &Tensor::scalar(0.0))
    };
    let e = message(|| grad(by)(&Tensor::scalar(0.0)));
    assert!(e.contains("singular"), "{e}");
}
