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

/// The largest distance between the distribution of a sample and a distribution function, times the root of the size: Kolmogorov's statistic.
fn kolmogorov(x: &Tensor, cdf: impl Fn(f64) -> f64) -> f64 {
    let mut x = x.to_vec::<f64>();
    x.sort_by(f64::total_cmp);
    let n = x.len() as f64;
    let distance =
        |(k, x): (usize, &f64)| (cdf(*x) - k as f64 / n).abs().max((cdf(*x) - (k + 1) as f64 / n).abs());
    x.iter().enumerate().map(distance).fold(0.0, f64::max) * n.sqrt()
}

fn normal_cdf(x: f64) -> f64 {
    Tensor::scalar(-x / 2f64.sqrt()).erfc().item() / 2.0
}

/// One sample in a thousand is above 1.95; the keys are fixed.
#[test]
fn distributions_are_what_they_are_called() {
    const N: usize = 4000;
    let check = |name: &str, x: Tensor, cdf: &dyn Fn(f64) -> f64| {
        let d = kolmogorov(&x, cdf);
        assert!(d < 1.95, "{name}: {d}");
    };
    for dtype in [DType::F32, DType::F64] {
        let key = Key::new(21);
        check("uniform", Tensor::uniform(&key, [N], dtype), &|x| x);
        check("normal", Tensor::randn(&key, [N], dtype), &normal_cdf);
        check("exponential", Tensor::exponential(&key, [N], dtype), &|x| 1.0 - (-x).exp());
        check("gumbel", Tensor::gumbel(&key, [N], dtype), &|x| (-(-x).exp()).exp());
        check("logistic", Tensor::logistic(&key, [N], dtype), &|x| 1.0 / (1.0 + (-x).exp()));
        check("cauchy", Tensor::cauchy(&key, [N], dtype), &|x| x.atan() / std::f64::consts::PI + 0.5);
        let laplace = |x: f64| if x < 0.0 { x.exp() / 2.0 } else { 1.0 - (-x).exp() / 2.0 };
        check("laplace", Tensor::laplace(&key, [N], dtype), &laplace);
        for (low, high) in [(-1.0, 0.5), (2.0, f64::INFINITY), (-9.0, -3.0)] {
            let (a, b) = (normal_cdf(low), normal_cdf(high));
            let x = Tensor::truncated_normal(&key, [N], low, high, dtype);
            check("truncated normal", x, &|x| (normal_cdf(x) - a) / (b - a));
        }
    }
    // Shapes with distribution functions in closed form: half of a squared normal, one and two waits.
    let gamma = |alpha: f64| Tensor::gamma(Key::new(22), &Tensor::full([N], alpha));
    check("gamma of 1/2", gamma(0.5), &|x| 2.0 * normal_cdf((2.0 * x).sqrt()) - 1.0);
    check("gamma of 1", gamma(1.0), &|x| 1.0 - (-x).exp());
    check("gamma of 2", gamma(2.0), &|x| 1.0 - (1.0 + x) * (-x).exp());
    let beta = Tensor::beta(Key::new(23), &Tensor::full([N], 2.0), &Tensor::scalar(1.0));
    check("beta of 2 and 1", beta, &|x| x * x);
}

/// The recorded moments are those of these keys; the bounds around the exact ones are five standard errors.
#[test]
fn moments_of_distributions() {
    let near = |x: &Tensor, mean: f64, var: f64, kurtosis: f64, what: &str| {
        let x = x.cast(DType::F64);
        let n = x.numel() as f64;
        let (m, v) = (x.mean().item(), x.var().item());
        assert!((m - mean).abs() < 5.0 * (var / n).sqrt(), "{what}: mean {m}");
        assert!((v - var).abs() < 5.0 * var * ((kurtosis - 1.0) / n).sqrt(), "{what}: variance {v}");
    };
    for alpha in [0.3, 4.0, 900.0, 1e5] {
        let x = Tensor::gamma(Key::new(24), &Tensor::full([5000], alpha));
        near(&x, alpha, alpha, 3.0 + 6.0 / alpha, "gamma");
    }
    for rate in [0.5, 9.9, 10.0, 300.0] {
        let x = Tensor::poisson(Key::new(25), &Tensor::full([N], rate));
        near(&x, rate, rate, 3.0 + 1.0 / rate, "poisson");
    }
    let x = Tensor::dirichlet(Key::new(26), &Tensor::from([0.5, 1.5, 2.0]).broadcast_to([5000, 3]));
    near(&x.narrow(1, 0, 1), 0.125, 0.5 * 3.5 / (16.0 * 5.0), 6.0, "dirichlet");
    assert!((x.sum_axes(-1) - 1.0).abs().max().item() < 1e-14);
}

#[test]
fn categories_have_their_probabilities() {
    let p = [0.05, 0.25, 0.0, 0.7];
    for (dtype, axis) in [(DType::F64, -1), (DType::F32, 1), (DType::F16, 0)] {
        let logits = Tensor::from(p).ln().cast(dtype);
        let many = match axis {
            0 => logits.unsqueeze(1).broadcast_to([4, N]),
            _ => logits.broadcast_to([N, 4]),
        };
        let drawn = Tensor::categorical(Key::new(27), &many, axis);
        assert_eq!((drawn.dtype(), drawn.shape()), (DType::I64, &[N][..]));
        for (k, p) in p.into_iter().enumerate() {
            let share = drawn.eq(k as i64).sum().item() / N as f64;
            assert!((share - p).abs() <= 5.0 * (p * (1.0 - p) / N as f64).sqrt(), "{share} for {p}");
        }
    }
}

/// `P(i, then j) = p_i p_j / (1 - p_i)`.
#[test]
fn distinct_categories_are_drawn_from_those_that_are_left() {
    let p = [0.2, 0.3, 0.5];
    let logits = Tensor::from(p).ln().broadcast_to([N, 3]);
    let pairs = Tensor::categorical_distinct(Key::new(32), &logits, 2, 1).to_vec::<i64>();
    for (i, j) in [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)] {
        let share = pairs.chunks(2).filter(|pair| *pair == [i as i64, j as i64]).count() as f64 / N as f64;
        let exact = p[i] * p[j] / (1.0 - p[i]);
        assert!((share - exact).abs() < 5.0 * (exact / N as f64).sqrt(), "{share} for {exact}");
    }
    let e = Tensor::try_categorical_distinct(Key::new(32), &Tensor::zeros([3]), 4, 0).unwrap_err();
    assert!(e.to_string().starts_with("categorical_distinct: "), "{e}");
}

#[test]
fn choices_without_replacement_are_different() {
    let mut some = Tensor::choice(Key::new(28), 50, 20, false).to_vec::<i64>();
    some.sort();
    some.dedup();
    assert_eq!(some.len(), 20);
    let e = Tensor::try_choice(Key::new(28), 3, 4, false).unwrap_err();
    assert!(e.to_string().contains("no 4 different ones among 3"), "{e}");
    assert_eq!(Tensor::choice(Key::new(28), 3, 100, true).max().item(), 2.0);
}

/// The largest numbers of the half types used to be rounded up to 1.
#[test]
fn uniform_halves_are_below_one() {
    for dtype in [DType::F16, DType::BF16] {
        let u = Tensor::uniform(Key::new(29), [N], dtype).cast(DType::F64);
        assert!(u.max().item() < 1.0 && u.min().item() == 0.0);
        assert!((u.mean().item() - 0.5).abs() < 0.005);
    }
}

#[test]
fn what_is_drawn_does_not_depend_on_the_number_of_threads() {
    let all = || {
        let key = Key::new(30);
        [
            Tensor::uniform(&key, [N + 1], DType::F32),
            Tensor::randn(&key, [N + 1], DType::F64),
            Tensor::bernoulli(key.split_into(3), [N + 1], 0.5),
            Tensor::randint(key.split_into(2), [N], 0, 77),
            Tensor::poisson(&key, &Tensor::full([N], 20.0)),
            Tensor::gamma(key.split_into(3), &Tensor::full([3000], 2.0)),
        ]
        .map(|t| t.to_vec::<f64>())
    };
    pullback::set_num_threads(1);
    let one = all();
    for threads in [2, 5] {
        pullback::set_num_threads(threads);
        assert!(one == all(), "{threads} threads");
    }
}

#[test]
fn parameters_that_are_none() {
    let key = Key::new(31);
    assert!(Tensor::gamma(&key, &Tensor::scalar(-1.0)).item().is_nan());
    assert_eq!(Tensor::gamma(&key, &Tensor::scalar(0.0)).item(), 0.0);
    assert_eq!(grad(|a: &Tensor| Tensor::gamma(&key, a))(&Tensor::scalar(0.0)).item(), 0.0);
    assert_eq!(grad(|a: &Tensor| Tensor::log_gamma(&key, a))(&Tensor::scalar(0.0)).item(), f64::INFINITY);
    let says = |r: pullback::Result<Tensor>, what: &str| {
        let e = r.unwrap_err().to_string();
        assert!(e.contains(what), "{e}");
    };
    says(
        Tensor::try_poisson(&key, &Tensor::from([1.0, -2.0])),
        "poisson: a rate is finite and not negative, but one is -2",
    );
    says(Tensor::try_gamma(&key, &Tensor::from([1i64])), "gamma: takes a parameter of floats, not i64");
    says(Tensor::try_dirichlet(&key, &Tensor::scalar(1.0)), "dirichlet: needs the axis");
    says(Tensor::try_beta(&key, &Tensor::ones([2]), &Tensor::ones([3])), "beta: ");
    says(Tensor::try_categorical(&key, &Tensor::ones([2]), 1), "categorical: ");
    says(Tensor::try_truncated_normal(&key, [2], 1.0, 1.0, DType::F64), "nothing lies between 1 and 1");
    says(Tensor::try_exponential(&key, [2], DType::I64), "exponential: draws floats, not i64");
}
