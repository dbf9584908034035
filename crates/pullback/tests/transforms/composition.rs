//! Transforms of transforms: every pair, and every triple, against differences and loops; and the law that ties the two modes
//! together, for random programs.

use pullback::prelude::*;
use pullback::{Device, custom_rule, linearize, with_device};
use pullback_testing::{Dice, close};
use std::sync::Arc;

type Function = Arc<dyn Fn(&Tensor) -> Tensor + Send + Sync>;

/// A transform, as a map from functions to functions, and the same without it: by differences, by a loop, or by doing nothing.
struct Transform {
    name: &'static str,
    apply: fn(Function) -> Function,
    reference: fn(Function) -> Function,
}

/// Fixed numbers in the shape of a tensor, no two alike.
fn weights(like: &Tensor) -> Tensor {
    let n = like.numel();
    let numbers: Vec<f64> = (0..n).map(|k| (1.0 + k as f64).sin() + 0.3).collect();
    Tensor::from_slice(&numbers, like.shape())
}

fn weighted(y: &Tensor) -> Tensor {
    (y * weights(y)).sum()
}

/// Three points that depend on the input.
fn points(x: &Tensor) -> Tensor {
    Tensor::stack(&[x.clone(), x * 0.5 + 0.4, x.cos()], 0)
}

/// The derivative of `f` along `t`, from values: extrapolated central differences.
fn difference(f: &Function, x: &Tensor, t: &Tensor) -> Tensor {
    let slope = |h: f64| (f(&(x + t * h)) - f(&(x - t * h))) / (2.0 * h);
    let h = 2e-3;
    // Three distances cancel the errors of second and fourth order.
    (slope(h / 4.0) * 64.0 - slope(h / 2.0) * 20.0 + slope(h)) / 45.0
}

fn unit(x: &Tensor, k: usize) -> Tensor {
    Tensor::eye(x.numel()).get(k as isize)
}

/// The Jacobian by differences, with the axis of the input at the end.
fn differences(f: &Function, x: &Tensor) -> Tensor {
    let columns: Vec<Tensor> = (0..x.numel()).map(|k| difference(f, x, &unit(x, k))).collect();
    Tensor::stack(&columns, -1)
}

fn scalar(f: Function) -> Function {
    Arc::new(move |x| weighted(&f(x)))
}

const TRANSFORMS: [Transform; 11] = [
    Transform {
        name: "grad",
        apply: |f| Arc::new(move |x| grad(|x: &Tensor| weighted(&f(x)))(x)),
        reference: |f| Arc::new(move |x| differences(&scalar(f.clone()), x)),
    },
    Transform {
        name: "jvp",
        apply: |f| Arc::new(move |x| jvp(|x: &Tensor| f(x), x, &weights(x)).1),
        reference: |f| Arc::new(move |x| difference(&f, x, &weights(x))),
    },
    Transform {
        name: "vjp",
        apply: |f| {
            Arc::new(move |x| {
                let (y, pull) = vjp(|x: &Tensor| f(x), x);
                pull(&weights(&y))
            })
        },
        reference: |f| Arc::new(move |x| differences(&scalar(f.clone()), x)),
    },
    Transform {
        name: "vmap",
        apply: |f| Arc::new(move |x| vmap(|x: &Tensor| f(x))(&points(x))),
        reference: |f| {
            Arc::new(move |x| {
                let rows: Vec<Tensor> = (0..3).map(|k| f(&points(x).get(k))).collect();
                Tensor::stack(&rows, 0)
            })
        },
    },
    Transform {
        name: "jacobian",
        apply: |f| Arc::new(move |x| jacobian(|x: &Tensor| f(x))(x)),
        reference: |f| Arc::new(move |x| differences(&f, x)),
    },
    Transform {
        name: "hessian",
        apply: |f| Arc::new(move |x| hessian(|x: &Tensor| weighted(&f(x)))(x)),
        // Differences of a gradient, which has been compared with differences itself.
        reference: |f| Arc::new(move |x| differences(&(TRANSFORMS[0].apply)(f.clone()), x)),
    },
    Transform {
        name: "checkpoint",
        apply: |f| Arc::new(move |x| checkpoint(|x: &Tensor| f(x))(x)),
        reference: |f| f,
    },
    Transform {
        name: "linearize",
        apply: |f| Arc::new(move |x| linearize(|x: &Tensor| f(x), x).1(&weights(x))),
        reference: |f| Arc::new(move |x| difference(&f, x, &weights(x))),
    },
    Transform {
        name: "custom_rule",
        apply: |f| {
            Arc::new(move |x| {
                let (value, rule) = (f.clone(), f.clone());
                custom_rule(move |x: &Tensor| value(x))
                    .pullback(move |x, _, g| vjp(|x| rule(x), x).1(g))
                    .call(x)
            })
        },
        reference: |f| f,
    },
    Transform {
        name: "scan",
        apply: |f| Arc::new(move |x| scan(|c: &Tensor, _: &()| (c * 0.9 + 0.1, f(c)), x, 2).1.sum_axes(0)),
        reference: |f| Arc::new(move |x| f(x) + f(&(x * 0.9 + 0.1))),
    },
    Transform {
        name: "cond",
        apply: |f| {
            Arc::new(move |x| {
                let positive = x.square().sum().gt(0.0);
                cond(&positive, |x: &Tensor| f(x), |x: &Tensor| f(x) * 2.0, x)
            })
        },
        reference: |f| f,
    },
];

fn functions() -> [(&'static str, Function); 3] {
    let w = Tensor::from([[0.5, -1.0], [0.8, 0.3], [-0.2, 0.9]]);
    [
        ("elementwise", Arc::new(|x: &Tensor| x.sin() * x.exp().sum() / (x.square() + 1.0))),
        ("products", Arc::new(move |x: &Tensor| w.matmul(x).tanh().softmax(0).matmul(&w))),
        ("pieces", {
            let f = |x: &Tensor| {
                let (a, b) = (x.get(0), x.get(1));
                let chosen = Tensor::where_(&a.gt(-5.0), &a * &b, &b);
                Tensor::concat(&[Tensor::stack(&[chosen, b.sigmoid()], 0), x.flip(0).exp()], 0)
            };
            Arc::new(f)
        }),
    ]
}

#[track_caller]
fn agree(found: &Tensor, expected: &Tensor, what: &str) {
    assert_eq!(found.shape(), expected.shape(), "{what}");
    for (a, b) in found.to_vec::<f64>().into_iter().zip(expected.to_vec::<f64>()) {
        assert!(close(a, b, 1e-6), "{what}: {a}, by differences {b}");
    }
}

fn point() -> Tensor {
    Tensor::from([0.6, -0.3])
}

#[test]
fn every_transform_alone() {
    for (name, f) in functions() {
        for t in &TRANSFORMS {
            agree(
                &(t.apply)(f.clone())(&point()),
                &(t.reference)(f.clone())(&point()),
                &format!("{}({name})", t.name),
            );
        }
    }
}

#[test]
fn every_pair() {
    for (name, f) in functions() {
        for inner in &TRANSFORMS {
            let g = (inner.apply)(f.clone());
            for outer in &TRANSFORMS {
                let what = format!("{}({}({name}))", outer.name, inner.name);
                agree(&(outer.apply)(g.clone())(&point()), &(outer.reference)(g.clone())(&point()), &what);
            }
        }
    }
}

/// With all tensors on a device, whose elements no kernel of the host can read, the bits are those of the host.
#[test]
fn every_pair_on_a_device() {
    let here: Vec<(&str, Function)> = functions().into();
    let device = Device::simulated();
    let there = with_device(&device, functions);
    for ((name, f), (_, g)) in here.into_iter().zip(there) {
        for inner in &TRANSFORMS {
            for outer in &TRANSFORMS {
                let what = format!("{}({}({name}))", outer.name, inner.name);
                let expected = (outer.apply)((inner.apply)(f.clone()))(&point());
                let found = with_device(&device, || (outer.apply)((inner.apply)(g.clone()))(&point()));
                assert_eq!(found.to_vec::<f64>(), expected.to_vec::<f64>(), "{what}");
            }
        }
    }
}

#[test]
fn every_triple() {
    let (name, f) = functions().into_iter().next().expect("there are functions");
    for a in &TRANSFORMS {
        for b in &TRANSFORMS {
            let g = (b.apply)((a.apply)(f.clone()));
            for c in &TRANSFORMS {
                // Two Hessians and a third derivative make sixth derivatives: long to compute, and too steep for differences.
                if [a, b, c].iter().filter(|t| t.name == "hessian").count() > 1 {
                    continue;
                }
                let what = format!("{}({}({}({name})))", c.name, b.name, a.name);
                agree(&(c.apply)(g.clone())(&point()), &(c.reference)(g.clone())(&point()), &what);
            }
        }
    }
}

#[test]
fn both_known_confusions_of_perturbations() {
    // d/dx ( x d/dy (x + y) ) = 1, in every combination of modes
    let one = Tensor::scalar(1.0);
    let forward = |x: &Tensor| x * jvp(|y: &Tensor| x + y, &one, &one).1;
    let reverse = |x: &Tensor| x * grad(|y: &Tensor| x + y)(&one);
    for d in [
        grad(forward)(&one),
        grad(reverse)(&one),
        jvp(forward, &one, &one).1,
        jvp(reverse, &one, &one).1,
        linearize(forward, &one).1(&one),
        jacobian(reverse)(&one),
    ] {
        assert_eq!(d.item(), 1.0);
    }
    // A function made by differentiating, applied at a place that depends on the outer variable (Manzyuk and others, 2019).
    let shifted = |u: &Tensor, y: &Tensor| (u * y).sin();
    let inner = |u: &Tensor| jvp(|y: &Tensor| shifted(u, y), u, &one).1;
    let outer = jvp(inner, &Tensor::scalar(0.7), &one).1.item();
    // d/du (u cos u²) = cos u² - 2 u² sin u²
    let u: f64 = 0.7;
    assert!((outer - ((u * u).cos() - 2.0 * u * u * (u * u).sin())).abs() < 1e-15);
}

// Random programs -------------------------------------------------------------------------------------------------

/// A smooth program of a matrix, drawn by the seed: each step combines values that were computed before.
fn program(seed: u64, x: &Tensor) -> Tensor {
    let mut dice = Dice(seed);
    let mut values = vec![x.tanh()];
    for _ in 0..10 {
        let a = values[dice.roll(values.len())].clone();
        let b = values[dice.roll(values.len())].clone();
        let like = |t: &Tensor| t.reshape([1, -1]).narrow(1, 0, 1).broadcast_to(a.shape());
        let value = match dice.roll(14) {
            0 => a.sin(),
            1 => a.tanh() * 1.5,
            2 => a.sigmoid() + 0.5,
            3 => (a.square() + 1.0).ln(),
            4 => &a * like(&b),
            5 => &a - like(&b),
            6 => like(&b) / (a.square() + 1.0),
            7 => a.matmul(&a.t()).tanh(),
            8 => {
                a.t().matmul(&b.sum_axes_keep(1).sum().reshape([1, 1]).broadcast_to([a.shape()[0], 2])).sin()
            }
            9 => a.sum_axes_keep(0).broadcast_to(a.shape()) * 0.3,
            10 => a.t(),
            11 => a.softmax(-1),
            12 => Tensor::concat(&[a.flip(0), like(&b)], 0).narrow(0, 1, a.shape()[0]),
            _ => Tensor::where_(&a.detach().gt(0.1), &a * 2.0, a.exp()),
        };
        values.push(value);
    }
    let parts: Vec<Tensor> = values.iter().map(|v| v.mean()).collect();
    Tensor::concat(&[Tensor::stack(&parts, 0), values[values.len() - 1].flatten()], 0)
}

fn inner(a: &Tensor, b: &Tensor) -> f64 {
    (a * b).sum().item()
}

#[test]
fn the_modes_are_transposes_of_each_other_in_random_programs() {
    for seed in 0..150 {
        let [a, b, c] = Key::new(seed).split();
        let x = Tensor::randn(a, [2, 3], DType::F64);
        let t = Tensor::randn(b, [2, 3], DType::F64);
        let f = |x: &Tensor| program(seed, x);
        let (y, pull) = vjp(f, &x);
        let g = Tensor::randn(c, y.shape(), DType::F64);
        let pulled = inner(&pull(&g), &t);
        let same = |other: f64| close(other, pulled, 1e-11);
        assert!(same(inner(&g, &jvp(f, &x, &t).1)), "program {seed}");
        assert!(same(inner(&g, &linearize(f, &x).1(&t))), "linearized program {seed}");
        assert!(same(inner(&vjp(checkpoint(f), &x).1(&g), &t)), "checkpointed program {seed}");
        let device = Device::simulated();
        let there = with_device(&device, || vjp(f, &x.to(&device)).1(&g.to(&device)));
        assert!(
            there.device() == device && same(inner(&there.to(&Device::cpu()), &t)),
            "program {seed} on a device"
        );
        let lanes = |t: &Tensor| t.unsqueeze(0).broadcast_to([&[2], t.shape()].concat());
        let mapped = vjp(vmap(f), &lanes(&x)).1(&lanes(&g));
        assert!(same(inner(&mapped.get(1), &t)), "mapped program {seed}");
        let by_differences =
            inner(&g, &difference(&(Arc::new(move |x: &Tensor| program(seed, x)) as Function), &x, &t));
        assert!(close(by_differences, pulled, 1e-6), "program {seed}: {pulled} {by_differences}");
    }
}
