//! Scans, orders, segments and norms: ties, zeros, NaN, empty tensors, and every transform.

use super::*;
use pullback::Between;

type Function = fn(&Tensor) -> Tensor;

const NAN: f64 = f64::NAN;
const INF: f64 = f64::INFINITY;

/// The gradient of the sum of `f`, weighted so that no two results count the same.
fn weighted(f: impl Fn(&Tensor) -> Tensor, x: &Tensor) -> Vec<f64> {
    let sum = |x: &Tensor| {
        let y = f(x);
        (&y * Tensor::arange(1.0, 1.0 + y.numel() as f64, 1.0).reshape(y.shape())).sum()
    };
    grad(sum)(x).to_vec()
}

#[test]
fn a_scan_and_an_order_as_users_write_them() {
    let x = Tensor::from([3.0, 1.0, 2.0]);
    assert_eq!(x.cumsum(0).to_vec::<f64>(), [3.0, 4.0, 6.0]);
    let (values, order) = x.sort(-1);
    assert_eq!((values.to_vec::<f64>(), order.to_vec::<i64>()), (vec![1.0, 2.0, 3.0], vec![1, 2, 0]));
    assert_eq!(weighted(|x| x.sort(-1).0, &x), [3.0, 1.0, 2.0]);
    assert_eq!(weighted(|x| x.sort_descending(-1).0, &x), [1.0, 3.0, 2.0]);
    assert_eq!(x.topk(2, -1).0.to_vec::<f64>(), [3.0, 2.0]);
    assert_eq!(weighted(|x| x.bottomk(2, -1).0, &x), [0.0, 1.0, 2.0]);
}

#[test]
fn equal_elements_keep_their_order_and_each_result_has_one_source() {
    let x = Tensor::from([2.0, 1.0, 2.0, 1.0]);
    assert_eq!(x.argsort(0).to_vec::<i64>(), [1, 3, 0, 2]);
    assert_eq!(x.argsort_descending(0).to_vec::<i64>(), [0, 2, 1, 3]);
    assert_eq!(x.topk(3, 0).1.to_vec::<i64>(), [0, 2, 1]);
    assert_eq!(weighted(|x| x.sort(0).0, &x), [3.0, 1.0, 4.0, 2.0]);
    assert_eq!(weighted(|x| x.topk(1, 0).0, &x), [1.0, 0.0, 0.0, 0.0]);
    // The latest of equal extremes.
    assert_eq!(weighted(|x| x.cummax(0), &x), [3.0, 0.0, 7.0, 0.0]);
    assert_eq!(weighted(|x| x.cummin(0), &x), [1.0, 5.0, 0.0, 4.0]);
    // The two in the middle of the sorted ones.
    assert_eq!(weighted(|x| x.median(), &x), [0.5, 0.0, 0.0, 0.5]);
    let second = Tensor::from([5.0, 5.0, 5.0]);
    assert_eq!(weighted(|x| x.median(), &second), [0.0, 1.0, 0.0]);
    assert_eq!(weighted(|x| x.kthvalue(3, 0).0, &second), [0.0, 0.0, 1.0]);
}

#[test]
fn equal_extremes_of_a_segment_share() {
    let (x, ids) = (Tensor::from([4.0, 1.0, 4.0, 0.5]), Tensor::from([1i64, 0, 1, 0]));
    assert_eq!(weighted(|x| x.segment_max(&ids, 3), &x), [1.0, 1.0, 1.0, 0.0]);
    assert_eq!(x.segment_max(&ids, 3).to_vec::<f64>(), [1.0, 4.0, -INF]);
    assert_eq!(x.segment_min(&ids, 3).to_vec::<f64>(), [0.5, 4.0, INF]);
    assert_eq!(x.segment_mean(&ids, 3).to_vec::<f64>(), [0.75, 4.0, 0.0]);
    let forward = jvp(|x: &Tensor| x.segment_max(&ids, 3), &x, &Tensor::from([1.0, 2.0, 3.0, 4.0])).1;
    assert_eq!(forward.to_vec::<f64>(), [2.0, 2.0, 0.0]);
    let e = x.try_segment_sum(&Tensor::from([0i64, 1, 2, 3]), 3).unwrap_err();
    assert!(e.kind() == ErrorKind::Index && e.to_string().starts_with("segment_sum"), "{e}");
    let e = x.try_segment_max(&Tensor::from([0i64, 1, 2, 3]), 3).unwrap_err();
    assert!(e.to_string().contains("segment 3 (at position 3) is not one of 3"), "{e}");
}

#[test]
fn nan_is_the_largest_of_all() {
    let x = Tensor::from([1.0, NAN, -INF, INF]);
    assert_eq!(x.argsort(0).to_vec::<i64>(), [2, 0, 3, 1]);
    assert_eq!(x.argsort_descending(0).to_vec::<i64>(), [1, 3, 0, 2]);
    assert_eq!(x.topk(2, 0).1.to_vec::<i64>(), [1, 3]);
    assert_eq!(x.bottomk(1, 0).1.to_vec::<i64>(), [2]);
    assert!(x.median().item().is_nan() && x.quantile(0.0, 0).item().is_nan());
    assert!(x.cummax(0).slice(1..).to_vec::<f64>().iter().all(|y| y.is_nan()));
    let unique = Tensor::from([NAN, 0.0, NAN, -0.0]).unique().to_vec::<f64>();
    assert!(unique.len() == 2 && unique[0] == 0.0 && unique[1].is_nan(), "{unique:?}");
}

#[test]
fn infinities_stay_what_they_are_in_quantiles() {
    let x = Tensor::from([-INF, -INF, 1.0, INF, INF]);
    assert_eq!([0.1, 0.4, 0.6, 0.9].map(|q| x.quantile(q, 0).item()), [-INF, -INF, INF, INF]);
    let between = |how| Tensor::from([1.0, 2.0]).quantile_with(0.25, 0, how).item();
    assert_eq!(between(Between::Lower), 1.0);
    assert_eq!(between(Between::Higher), 2.0);
    assert_eq!(between(Between::Nearest), 1.0);
    assert_eq!(between(Between::Midpoint), 1.5);
    // Between equal numbers lies that number.
    assert_eq!(Tensor::from([0.1, 0.1]).quantile(0.3, 0).item(), 0.1);
}

/// `∂²(Π x) / ∂x_i ∂x_j` is the product of the others, whichever factors are zero.
#[test]
fn products_so_far_have_exact_curvature_at_zeros() {
    for x in [vec![2.0, 0.0, 3.0], vec![0.0, 0.0, 3.0], vec![0.0, 5.0, 0.0], vec![2.0, 3.0, 4.0]] {
        let last = |x: &Tensor| x.cumprod(0).get(2);
        let found = hessian(last)(&Tensor::from(&x[..])).to_vec::<f64>();
        let expected = [0.0, x[2], x[1], x[2], 0.0, x[0], x[1], x[0], 0.0];
        assert_eq!(found, expected, "at {x:?}");
        let third = jvp(
            |x: &Tensor| hvp(last, x, &Tensor::from([1.0, 0.0, 0.0])),
            &Tensor::from(&x[..]),
            &Tensor::from([0.0, 1.0, 0.0]),
        )
        .1;
        assert_eq!(third.to_vec::<f64>(), [0.0, 0.0, 1.0]);
    }
}

/// A product so far that no f32 holds is not lost: values and derivatives after it are those of f64, with zeros among the factors too.
#[test]
fn products_so_far_leave_the_range_of_single_precision_and_come_back() {
    let (small, large) = (1e-30, 1e30);
    let rows: [[f64; 5]; 5] = [
        [small, small, large, large, 2.0],
        [large, large, small, small, 2.0],
        [small, small, 0.0, large, large],
        [small, 0.0, large, 0.0, 2.0],
        [0.0, large, large, small, small],
    ];
    for row in rows {
        let wide = Tensor::from(row).cast(DType::F32).cast(DType::F64);
        let total = |x: &Tensor| x.cumprod(0).get(-1) + x.cumprod(0).get(0);
        let check = |of: &dyn Fn(&Tensor) -> Tensor, what: &str| {
            let found = of(&wide.cast(DType::F32));
            assert_eq!(found.dtype(), DType::F32, "{what} of {row:?}");
            let expected = of(&wide).cast(DType::F32).to_vec::<f32>();
            for (a, b) in found.to_vec::<f32>().into_iter().zip(expected) {
                assert!((a - b).abs() <= 1e-6 * b.abs() || a == b, "{what} of {row:?}: {a} for {b}");
            }
        };
        check(&|x| x.cumprod(0), "products");
        check(&grad(total), "gradient");
        check(&|x| jvp(|x: &Tensor| x.cumprod(0), x, &x.ones_like()).1, "tangents");
    }
}

#[test]
fn sums_in_log_space_begin_with_nothing() {
    let x = Tensor::from([-INF, -INF, 0.0, 0.0]);
    assert_eq!(x.cumlogsumexp(0).to_vec::<f64>(), [-INF, -INF, 0.0, 2f64.ln()]);
    let g = grad(|x: &Tensor| x.cumlogsumexp(0).slice(2..).sum())(&x).to_vec::<f64>();
    assert!(g.iter().zip([0.0, 0.0, 1.5, 0.5]).all(|(a, b)| (a - b).abs() < 1e-15), "{g:?}");
    let far = Tensor::from([-1e4, 0.0, 1e4]);
    assert_eq!(weighted(|x| x.cumlogsumexp(0), &far), [1.0, 2.0, 3.0]);
}

#[test]
fn a_linear_recurrence_is_its_loop() {
    let key = Key::new(3);
    let (a, x) = (
        Tensor::randn(key.fold_in(0), [4, 3], DType::F64),
        Tensor::randn(key.fold_in(1), [4, 3], DType::F64),
    );
    let looped = |(a, x): &(Tensor, Tensor)| {
        let mut y = vec![x.get(0)];
        (1..4).for_each(|j| y.push(a.get(j) * &y[j as usize - 1] + x.get(j)));
        Tensor::stack(&y, 0)
    };
    let scanned = |(a, x): &(Tensor, Tensor)| x.linear_scan(a, 0);
    let at = (a, x);
    let near = |a: &Tensor, b: &Tensor| assert!((a - b).abs().max().item() < 1e-12, "{a}\nfor\n{b}");
    near(&scanned(&at), &looped(&at));
    let (g, h) = (grad(|x| scanned(x).square().sum())(&at), grad(|x| looped(x).square().sum())(&at));
    near(&g.0, &h.0);
    near(&g.1, &h.1);
    // An average that forgets, with one number for all; a factor is not read where the recurrence begins.
    let x = Tensor::from([[1.0, 2.0], [1.0, 4.0]]);
    assert_eq!(x.linear_scan(0.5, 1).to_vec::<f64>(), [1.0, 2.5, 1.0, 4.5]);
    assert_eq!(x.linear_scan(Tensor::from([INF, 1.0]), 1).to_vec::<f64>(), [1.0, 3.0, 1.0, 5.0]);
}

#[test]
fn norms_have_no_slope_at_the_origin() {
    for p in [0.0, 0.5, 1.0, 2.0, 3.0, INF] {
        let f = |x: &Tensor| x.p_norm(p, 0);
        let zero = Tensor::zeros([3]);
        assert_eq!(f(&zero).item(), 0.0);
        assert_eq!(grad(f)(&zero).to_vec::<f64>(), [0.0; 3], "of order {p}");
        assert_eq!(jvp(f, &zero, &Tensor::ones([3])).1.item(), 0.0, "of order {p}");
        assert_eq!(compile(grad(f)).call(&zero).to_vec::<f64>(), [0.0; 3], "of order {p}");
    }
    let g = grad(|x: &Tensor| x.p_norm(INF, 0))(&Tensor::from([3.0, -3.0, 1.0]));
    assert_eq!(g.to_vec::<f64>(), [0.5, -0.5, 0.0]);
    let g = grad(|x: &Tensor| x.p_norm(3.0, 0))(&Tensor::from([0.0, 2.0]));
    assert_eq!(g.to_vec::<f64>()[0], 0.0);
    // Halves are squared in single precision.
    let x = Tensor::full([4], 300.0).cast(DType::F16);
    assert_eq!(x.norm().cast(DType::F64).item(), 600.0);
    assert!(x.try_p_norm(NAN, 0).is_err() && Tensor::from([1, 2]).try_norm().is_err());
}

#[test]
fn corrections_of_the_variance() {
    let x = Tensor::from([[1.0, 2.0, 3.0, 4.0], [2.0, 2.0, 2.0, 2.0]]);
    assert_eq!(x.var_with(1, 1.0).to_vec::<f64>(), [5.0 / 3.0, 0.0]);
    assert_eq!(x.std_with(1, 0.0).to_vec::<f64>(), x.std_axes(1).to_vec::<f64>());
    let g = grad(|x: &Tensor| x.std_with(1, 1.0).sum())(&x).to_vec::<f64>();
    assert!(g[..4].iter().all(|g| g.abs() > 0.1) && g[4..] == [0.0; 4], "{g:?}");
    assert!(Tensor::from([1.0]).var_with(0, 1.0).item().is_nan());
    assert_eq!(Tensor::from([1.0, 2.0]).var_with(0, 3.0).item(), INF);
}

#[test]
fn integers_are_scanned_wide_and_ordered_as_they_are() {
    let x = Tensor::from([i32::MAX, 1, -1]);
    assert_eq!(x.cumsum(0).to_vec::<i64>(), [i32::MAX as i64, 1 << 31, i32::MAX as i64]);
    assert_eq!(Tensor::from([true, true, false]).cumsum(0).to_vec::<i64>(), [1, 2, 2]);
    let (values, _) = x.sort(0);
    assert_eq!((values.dtype(), values.to_vec::<i32>()), (DType::I32, vec![-1, 1, i32::MAX]));
    assert_eq!(Tensor::from([true, false]).argsort(0).to_vec::<i64>(), [1, 0]);
    assert_eq!(Tensor::from([[0, 5], [0, 0]]).count_nonzero().to_vec::<i64>(), [1]);
    assert!(x.try_cumlogsumexp(0).is_err() && x.try_median().is_err());
    // 2048 + 1 is 2048 in f16, but the sum is rounded once.
    let halves = Tensor::ones([3000]).cast(DType::F16).cumsum(0);
    assert_eq!(halves.get(2999).cast(DType::F64).item(), 3000.0);
}

#[test]
fn nothing_is_sorted_scanned_and_counted() {
    let none = Tensor::zeros([2, 0]);
    assert_eq!(
        (none.cumsum(1).shape(), none.sort(1).0.shape(), none.topk(0, 1).0.shape()),
        (&[2, 0][..], &[2, 0][..], &[2, 0][..])
    );
    assert_eq!(none.sort(0).1.shape(), [2, 0]);
    assert_eq!(none.unique().shape(), [0]);
    assert_eq!(none.histogram(&Tensor::from([0.0, 1.0])).to_vec::<i64>(), [0]);
    assert_eq!(none.norm_axes(1).to_vec::<f64>(), [0.0, 0.0]);
    assert_eq!(
        Tensor::zeros([0, 2]).segment_sum(&Tensor::zeros([0]).cast(DType::I64), 2).to_vec::<f64>(),
        [0.0; 4]
    );
    assert!(none.try_median_axes(1).unwrap_err().to_string().contains("nothing to choose from"));
    assert_eq!(none.median_axes(0).shape(), [0]);
    assert_eq!(Tensor::from([1.0]).searchsorted(&none).shape(), [2, 0]);
    // A scalar has no axis.
    for e in [scalar(1.0).try_cumsum(0).unwrap_err(), scalar(1.0).try_sort(-1).unwrap_err()] {
        assert_eq!(e.kind(), ErrorKind::Axis);
    }
}

#[test]
fn errors_name_the_method_and_the_way_out() {
    let x = Tensor::from([[1.0, 2.0, 3.0]]);
    let begins = |e: pullback::Error, with: &str| assert!(e.to_string().starts_with(with), "{e}");
    begins(x.try_topk(4, 1).unwrap_err(), "topk: cannot take 4 elements along axis 1 of shape [1, 3]");
    begins(x.try_kthvalue(0, 1).unwrap_err(), "kthvalue: k counts from 1");
    begins(x.try_quantile(1.5, 0).unwrap_err(), "quantile: a quantile is from 0 to 1, not 1.5");
    begins(x.try_histogram(&scalar(1.0)).unwrap_err(), "histogram: edges are two or more numbers");
    begins(
        x.try_searchsorted(&Tensor::zeros([2])).unwrap_err(),
        "searchsorted: values of shape [2] cannot be looked up in [1, 3]",
    );
    begins(x.try_cummax(2).unwrap_err(), "cummax: axis 2");
    begins(x.try_linear_scan(Tensor::zeros([2]), 0).unwrap_err(), "linear_scan: shapes");
    begins(Tensor::from([7]).try_bincount(3).unwrap_err(), "bincount: index 7");
    // How many different elements there are is not known while a function is traced.
    let e = message(|| compile(|x: &Tensor| x.unique()).call(&Tensor::from([1.0, 1.0])));
    assert!(e.contains("unique"), "{e}");
}

/// Compiled, mapped and eager runs are the same, with their gradients.
#[test]
fn every_transform_takes_them() {
    let functions: [(&str, Function); 13] = [
        ("sort", |x| x.sort(-1).0),
        ("topk", |x| x.topk(2, 0).0),
        ("kthvalue", |x| x.kthvalue(2, 0).0),
        ("median", |x| x.median()),
        ("quantile", |x| x.quantile(0.3, 0)),
        ("cumsum", |x| x.cumsum(0)),
        ("cumprod", |x| x.cumprod(0)),
        ("cummax", |x| x.cummax(0)),
        ("cumlogsumexp", |x| x.cumlogsumexp(0)),
        ("linear_scan", |x| x.linear_scan(x.sin(), 0)),
        ("segment_max", |x| x.segment_max(&Tensor::from([0i64, 1, 0, 1]), 2)),
        ("p_norm", |x| x.p_norm(3.0, 0)),
        ("soft count", |x| x * x.histogram(&Tensor::from([-9.0, 0.0, 9.0])).get(0).cast(DType::F64)),
    ];
    let rows = Tensor::randn(Key::new(1), [3, 4], DType::F64);
    for (name, f) in functions {
        let sum = |x: &Tensor| f(x).square().sum();
        let (mapped, mapped_grad) = (vmap(f)(&rows), vmap(grad(sum))(&rows));
        let compiled = compile(grad(sum));
        for k in 0..3 {
            let x = rows.get(k);
            let same = |a: &Tensor, b: &Tensor, what: &str| {
                assert_eq!(a.shape(), b.shape(), "{name}, {what}");
                assert!((a - b).abs().max().item() < 1e-12, "{name}, {what}: {a}\nfor\n{b}");
            };
            same(&mapped.get(k), &f(&x), "mapped");
            same(&mapped_grad.get(k), &grad(sum)(&x), "the gradient mapped");
            same(&compiled.call(&x), &grad(sum)(&x), "the gradient compiled");
        }
    }
}
