//! Keys, and the numbers drawn from them.

use super::*;

const N: usize = 100_000;

#[test]
fn a_key_always_draws_the_same() {
    let key = Key::new(42);
    let all = || {
        [
            Tensor::uniform(&key, [100], DType::F64),
            Tensor::randn(&key, [100], DType::F32),
            Tensor::randint(&key, [100], -5, 5),
            Tensor::bernoulli(&key, [100], 0.3),
            Tensor::permutation(&key, 100),
        ]
    };
    let elsewhere = std::thread::scope(|s| s.spawn(|| all().map(|t| t.to_vec::<f64>())).join().unwrap());
    assert_eq!(all().map(|t| t.to_vec::<f64>()), elsewhere);
}

#[test]
fn elements_do_not_depend_on_the_shape() {
    let key = Key::new(7);
    let few = Tensor::randn(&key, [2, 3], DType::F64).to_vec::<f64>();
    assert_eq!(few, Tensor::randn(&key, [100], DType::F64).to_vec::<f64>()[..6]);
}

#[test]
fn keys_that_were_split_draw_other_numbers() {
    let key = Key::new(1);
    let [a, b, c] = key.split();
    let draws: Vec<Vec<f64>> = [&key, &a, &b, &c, &a.fold_in(0), &Key::new(2)]
        .map(|k| Tensor::uniform(k, [8], DType::F64).to_vec())
        .to_vec();
    for (i, x) in draws.iter().enumerate() {
        assert!(draws[..i].iter().all(|y| x.iter().all(|v| !y.contains(v))));
    }
    let words = |key: &Key| key.leaves()[0].to_vec::<i64>();
    assert_eq!(words(&key.split::<2>()[0]), words(&a), "the first keys do not depend on how many there are");
}

/// Bounds are five standard errors; the keys are fixed, so this passes or fails for good.
#[test]
fn moments() {
    let near = |x: f64, expected: f64, error: f64| assert!((x - expected).abs() < error, "{x}");
    let root = (N as f64).sqrt();
    for dtype in [DType::F32, DType::F64] {
        let u = Tensor::uniform(Key::new(3), [N], dtype).cast(DType::F64);
        near(u.mean().item(), 0.5, 5.0 * 0.2887 / root);
        near(u.var().item(), 1.0 / 12.0, 5.0 * 0.0745 / root);
        assert!(u.min().item() >= 0.0 && u.max().item() < 1.0);
        let z = Tensor::randn(Key::new(4), [N], dtype).cast(DType::F64);
        near(z.mean().item(), 0.0, 5.0 / root);
        near(z.var().item(), 1.0, 5.0 * 2f64.sqrt() / root);
        near(z.pow(4.0).mean().item(), 3.0, 5.0 * 9.8 / root);
    }
    let b = Tensor::bernoulli(Key::new(5), [N], 0.3).cast(DType::F64);
    near(b.mean().item(), 0.3, 5.0 * 0.4583 / root);
}

#[test]
fn neighbours_are_not_correlated() {
    let z = Tensor::randn(Key::new(6), [N], DType::F64);
    let correlation = (z.slice(1..) * z.slice(..-1)).mean().item();
    assert!(correlation.abs() < 5.0 / (N as f64).sqrt(), "{correlation}");
}

#[test]
fn integers_cover_their_range_evenly() {
    let counts = (0..7).map(|k| Tensor::randint(Key::new(8), [N], -3, 4).eq(k - 3i64).sum().item());
    assert!(counts.into_iter().all(|c| (c - N as f64 / 7.0).abs() < 5.0 * (N as f64 / 7.0).sqrt()));
}

#[test]
fn permutations_are_permutations() {
    let mut p = Tensor::permutation(Key::new(9), 1000).to_vec::<i64>();
    assert_ne!(p, (0..1000).collect::<Vec<_>>());
    p.sort();
    assert_eq!(p, (0..1000).collect::<Vec<_>>());
}
