//! Keys are data, and draws are operations: what a key draws is the same in every transform.

use pullback::prelude::*;
use pullback::{Policy, Schedule, checkpoint_with, scan_with};

fn bits(x: &Tensor) -> Vec<u64> {
    x.cast(DType::F64).to_vec::<f64>().iter().map(|v| v.to_bits()).collect()
}

/// One of each kind of draw, in the types that they have.
fn all(key: &Key) -> Vec<Tensor> {
    let [a, b, c, d, e, f, g] = key.split();
    let shapes = Tensor::from([0.3, 1.0, 7.5]);
    vec![
        Tensor::uniform(a.fold_in(3), [2, 3], DType::F64),
        Tensor::uniform(&a, [5], DType::F32),
        Tensor::randn(&b, [4], DType::F64),
        Tensor::randn(b, [], DType::F16),
        Tensor::randint(c, [7], -5, 100),
        Tensor::bernoulli(d, [3, 3], 0.3),
        Tensor::permutation(&e, 9),
        Tensor::choice(e, 9, 4, false),
        Tensor::truncated_normal(&f, [3], -1.0, 2.0, DType::F32),
        Tensor::exponential(&f, [2], DType::F64),
        Tensor::gumbel(&f, [2], DType::F16),
        Tensor::laplace(&f, [2], DType::F64),
        Tensor::logistic(&f, [2], DType::F64),
        Tensor::cauchy(f, [2], DType::F64),
        Tensor::gamma(&g, &shapes),
        Tensor::beta(&g, &shapes, &Tensor::scalar(2.0)),
        Tensor::dirichlet(&g, &shapes),
        Tensor::poisson(&g, &(&shapes * 10.0)),
        Tensor::categorical(g, &Tensor::zeros([4, 5]), 0),
    ]
}

fn same(a: &[Tensor], b: &[Tensor]) {
    assert_eq!(a.len(), b.len());
    for (a, b) in a.iter().zip(b) {
        assert_eq!((a.shape(), a.dtype(), bits(a)), (b.shape(), b.dtype(), bits(b)));
    }
}

#[test]
fn draws_are_what_they_have_always_been() {
    let key = Key::new(7);
    let first = |x: Tensor| x.to_vec::<f64>()[..2].to_vec();
    assert_eq!(first(Tensor::uniform(&key, [2], DType::F64)), [0.7501522221031126, 0.0856578653012815]);
    assert_eq!(first(Tensor::randn(&key, [2], DType::F64)), [1.4300277086839794, 1.7190003661702242]);
    assert_eq!(Tensor::randint(&key, [3], 0, 1000).to_vec::<i64>(), [750, 85, 795]);
    assert_eq!(Tensor::bernoulli(&key, [6], 0.5).to_vec::<bool>(), [false, true, false, false, true, false]);
    assert_eq!(Tensor::permutation(&key, 5).to_vec::<i64>(), [4, 1, 0, 2, 3]);
    let [_, second] = key.split();
    assert_eq!(first(Tensor::uniform(&second, [2], DType::F64)), [0.9060586843842553, 0.6837969089587403]);
    assert_eq!(
        first(Tensor::uniform(key.fold_in(1), [2], DType::F64)),
        [0.9060586843842553, 0.6837969089587403]
    );
}

#[test]
fn a_key_that_is_passed_draws_anew_and_one_that_is_captured_does_not() {
    let draw = compile(all);
    for seed in [1, 2, 3] {
        same(&draw.call(&Key::new(seed)), &all(&Key::new(seed)));
    }
    assert_eq!(draw.traces(), 1);

    let key = Key::new(4);
    let captured = compile(|x: &Tensor| x + Tensor::randn(&key, [3], DType::F64));
    let x = Tensor::zeros([3]);
    assert_eq!(bits(&captured.call(&x)), bits(&captured.call(&x)));
    assert_eq!(bits(&captured.call(&x)), bits(&Tensor::randn(&key, [3], DType::F64)));
}

#[test]
fn a_graph_with_draws_prints_and_parses() {
    let graph = trace(all, &Key::new(1));
    let text = graph.to_string();
    assert!(text.contains("randint(") && text.contains("{low: -5, high: 100, shape: [7]}"), "{text}");
    let back: Graph = text.parse().unwrap();
    assert_eq!(back.to_string(), text);
    same(&back.run(&Key::new(5).flatten()).unwrap(), &all(&Key::new(5)));

    let wide = trace(|key: &Key| Tensor::randint(key, [4], i64::MIN + 1, i64::MAX), &Key::new(1));
    let back: Graph = wide.to_string().parse().unwrap();
    same(&back.run(&Key::new(5).flatten()).unwrap(), &wide.run(&Key::new(5).flatten()).unwrap());
    same(
        &back.run(&Key::new(5).flatten()).unwrap(),
        &[Tensor::randint(Key::new(5), [4], i64::MIN + 1, i64::MAX)],
    );
}

/// Dropout as a user writes it.
fn dropout(x: &Tensor, key: &Key) -> Tensor {
    Tensor::where_(&Tensor::bernoulli(key, x.shape(), 0.8), x / 0.8, 0.0)
}

#[test]
fn a_compiled_training_step_with_dropout() {
    let x = Tensor::linspace(-1.0, 1.0, 20).reshape([4, 5]);
    let w = Tensor::linspace(0.5, 1.5, 15).reshape([5, 3]);
    let loss = |w: &Tensor, key: &Key| dropout(&x.matmul(w).tanh(), key).square().mean();
    let plain = |(w, key): &(Tensor, Key)| value_and_grad(|w: &Tensor| loss(w, key))(w);
    let step = compile(plain);
    let mut seen = Vec::new();
    for key in [0, 1, 2].map(|k| Key::new(9).fold_in(k)) {
        let (value, g) = step.call(&(w.clone(), key.clone()));
        let (value_now, g_now) = plain(&(w.clone(), key));
        assert!((value.item() - value_now.item()).abs() < 1e-14);
        assert!((g - g_now).abs().max().item() < 1e-14);
        seen.push(value.item());
    }
    assert!(step.traces() == 1 && seen[0] != seen[1] && seen[1] != seen[2], "{seen:?}");
}

#[test]
fn every_lane_has_its_own_stream() {
    let keys = Key::new(3).split_into(4);
    let stacked = vmap(all)(&keys);
    same(&stacked, &all(&keys));
    for (k, key) in Key::new(3).split::<4>().iter().enumerate() {
        let lane: Vec<Tensor> = stacked.iter().map(|t| t.get(k as isize)).collect();
        same(&lane, &all(key));
    }
    // Lanes of lanes, and a key that all lanes share.
    let twice = vmap(|key: &Key| vmap(all)(&key.split_into(2)))(&keys);
    same(&twice.map(&mut |t| t.get(1).get(0)), &all(&Key::new(3).fold_in(1).fold_in(0)));
    let shared = Key::new(5);
    let noisy = |x: &Tensor| x + Tensor::randn(&shared, [], DType::F64);
    let y = vmap(noisy)(&Tensor::zeros([3])).to_vec::<f64>();
    assert!(y[0] == y[1] && y[1] == y[2] && y[0] != 0.0);
}

#[test]
fn a_loop_carries_a_key_or_goes_over_keys() {
    let walk = |(x, key): &(Tensor, Key), _: &()| {
        let [now, next] = key.split();
        let x = x + Tensor::randn(now, [2], DType::F64);
        ((x.clone(), next), x)
    };
    let start = (Tensor::zeros([2]), Key::new(1));
    let mut state = start.clone();
    let expected: Vec<Tensor> = (0..5)
        .map(|_| {
            let (next, x) = walk(&state, &());
            state = next;
            x
        })
        .collect();
    let expected = Tensor::stack(&expected, 0);
    let looped = |start: &(Tensor, Key)| scan(walk, start, 5).1;
    assert_eq!(bits(&looped(&start)), bits(&expected));
    let compiled = compile(looped);
    assert_eq!(bits(&compiled.call(&start)), bits(&expected));
    assert_eq!(
        bits(&compiled.call(&(start.0.clone(), Key::new(2)))),
        bits(&looped(&(start.0.clone(), Key::new(2))))
    );
    for schedule in [Schedule::Sqrt, Schedule::Binomial { slots: 2 }] {
        assert_eq!(bits(&scan_with(schedule, walk, &start, 5).1), bits(&expected));
    }
    // The key of each step as its item.
    let keys = Key::new(8).split_into(3);
    let (_, ys) =
        scan(|s: &Tensor, key: &Key| (s.clone(), Tensor::uniform(key, [2], DType::F64)), &start.0, &keys);
    assert_eq!(bits(&ys), bits(&Tensor::uniform(&keys, [2], DType::F64)));
}

#[test]
fn a_checkpoint_draws_the_same_again() {
    let x = Tensor::linspace(0.1, 1.0, 10);
    let key = Key::new(2);
    let layer = {
        let key = key.clone();
        move |x: &Tensor| dropout(&x.exp(), &key).sin()
    };
    let g = grad(|x: &Tensor| layer(x).sum())(&x);
    assert!(g.to_vec::<f64>().contains(&0.0), "something was dropped");
    let kept = [
        grad(|x: &Tensor| checkpoint(&layer)(x).sum())(&x),
        grad(|x: &Tensor| checkpoint_with(Policy::rerun().verify(), layer.clone())(x).sum())(&x),
        grad(|x: &Tensor| {
            checkpoint(|(x, key): &(Tensor, Key)| dropout(&x.exp(), key).sin())(&(x.clone(), key.clone()))
                .sum()
        })(&x),
    ];
    kept.iter().for_each(|other| assert_eq!(bits(&g), bits(other)));
}

#[test]
fn gradients_go_around_the_draw() {
    // E (m + s z)^2 = m^2 + s^2: over one draw of z the gradient by s is 2 mean((m + s z) z).
    let f = |(m, s): &(Tensor, Tensor), key: &Key| {
        (m + s * Tensor::randn(key, [1000], DType::F64)).square().mean()
    };
    let p = (Tensor::scalar(0.5), Tensor::scalar(2.0));
    let key = Key::new(11);
    let (gm, gs) = grad(|p: &(Tensor, Tensor)| f(p, &key))(&p);
    let z = Tensor::randn(&key, [1000], DType::F64);
    let y = &p.0 + &p.1 * &z;
    assert!((gm.item() - (&y * 2.0).mean().item()).abs() < 1e-12);
    assert!((gs.item() - (&y * &z * 2.0).mean().item()).abs() < 1e-12);
    // One gradient for each of many keys, and forward mode.
    let many = vmap(|key: &Key| grad(|p: &(Tensor, Tensor)| f(p, key))(&p).1)(&Key::new(1).split_into(3));
    let [_, second, _] = Key::new(1).split();
    let one = grad(|p: &(Tensor, Tensor)| f(p, &second))(&p).1.item();
    assert!((many.get(1).item() - one).abs() < 1e-12);
    let t = (Tensor::scalar(0.0), Tensor::scalar(1.0));
    assert!((jvp(|p: &(Tensor, Tensor)| f(p, &key), &p, &t).1.item() - gs.item()).abs() < 1e-12);
}

#[test]
fn a_key_is_saved_and_has_no_gradient() {
    let key = Key::new(1 << 63 | 12345);
    let path = std::env::temp_dir().join(format!("pullback-key-{}.safetensors", std::process::id()));
    pullback::save(&key, &path).unwrap();
    let back: Key = pullback::load(&Key::new(0), &path).unwrap();
    std::fs::remove_file(path).unwrap();
    same(&all(&back), &all(&key));
    let e = std::panic::catch_unwind(|| grad(|key: &Key| Tensor::randn(key, [], DType::F64))(&Key::new(1)));
    let e = *e.unwrap_err().downcast::<String>().unwrap();
    assert!(e.contains("capture it"), "{e}");
}

/// The same path of derivatives in every mode: implicit reparameterisation is a rule like any other.
#[test]
fn gradients_through_gamma_draws() {
    let alpha = Tensor::from([0.4, 1.3, 6.0]);
    let key = Key::new(17);
    let f = |a: &Tensor| (Tensor::gamma(&key, a).sqrt() * Tensor::from([1.0, -2.0, 0.5])).sum();
    let g = grad(f)(&alpha);
    let h = 1e-6;
    for k in 0..3 {
        let mut step = [0.0; 3];
        step[k] = h;
        let step = Tensor::from(step);
        let slope = (f(&(&alpha + &step)) - f(&(&alpha - &step))).item() / (2.0 * h);
        assert!((g.item_at([k as isize]) - slope).abs() < 1e-8, "{slope}");
    }
    let compiled = compile(grad(f)).call(&alpha);
    assert!(compiled.is_close(&g, 1e-12, 0.0));
    assert!(jacfwd(f)(&alpha).is_close(&g, 1e-12, 0.0));
    // One draw and gradient for each lane, from a key of its own.
    let keys = Key::new(18).split_into(4);
    let each = |key: &Key| grad(|a: &Tensor| Tensor::dirichlet(key, a).get(0))(&alpha);
    let lanes = vmap(each)(&keys);
    let [_, _, third, _] = Key::new(18).split();
    assert!(lanes.get(2).is_close(&each(&third), 1e-12, 1e-15));
    // Second order, forward over reverse.
    let h2 = hessian(f)(&alpha);
    assert!(h2.item_at([0, 1]) == 0.0 && h2.item_at([0, 0]) != 0.0);
}

/// `d/dα E f(x) = E f'(x) dx/dα`: of `E x = α`, `E x² = α² + α` and `E ln x = ψ(α)`, over enough draws.
#[test]
fn gradients_of_expectations_under_gamma_draws() {
    const N: usize = 20_000;
    for (alpha, trigamma) in [(0.5, 4.934802200544679), (3.0, 0.394934066848226)] {
        let a = Tensor::scalar(alpha);
        let of = |f: fn(Tensor) -> Tensor| {
            grad(|a: &Tensor| f(Tensor::log_gamma(Key::new(4), &a.broadcast_to([N]))).mean())(&a).item()
        };
        let (mean, square, log) = (of(|y| y.exp()), of(|y| (y * 2.0).exp()), of(|y| y));
        assert!((mean - 1.0).abs() < 0.03, "{mean}");
        assert!((square / (2.0 * alpha + 1.0) - 1.0).abs() < 0.06, "{square}");
        assert!((log / trigamma - 1.0).abs() < 0.05, "{log}");
    }
}
