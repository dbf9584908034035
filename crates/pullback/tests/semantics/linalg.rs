//! Linear algebra where it is hard: equal values, lower rank, singular, empty and not finite.

use super::*;
use pullback::linalg::{self, MatrixNorm, Triangle};
use pullback::{check, compile, vmap};

fn near(found: &Tensor, expected: &Tensor, tolerance: f64) {
    assert_eq!(found.shape(), expected.shape());
    let apart = found - expected;
    let ok = apart.to_vec::<f64>().iter().all(|d| d.abs() <= tolerance);
    assert!(ok, "{found}\nfor\n{expected}");
}

fn random(key: u64, shape: impl Into<pullback::Shape>) -> Tensor {
    Tensor::randn(Key::new(key), shape, DType::F64)
}

/// Where values are equal, second derivatives of functions of the vectors are not those of the whole.
fn first_order() -> check::Check {
    check::Check { order: 1, ..check::Check::default() }
}

/// `q diag(values) qᵀ` with a random basis.
fn with_eigenvalues(values: &[f64]) -> Tensor {
    let n = values.len();
    let (q, _) = linalg::qr(&random(7, [n, n]));
    (&q * Tensor::from(values)).matmul(&q.transpose(-2, -1))
}

#[test]
fn factors_multiply_to_the_matrix() {
    for shape in [[4, 4], [5, 3], [3, 5], [1, 1]] {
        let a = random(1, [[2].as_slice(), shape.as_slice()].concat());
        let (p, l, u) = linalg::lu(&a);
        near(&p.matmul(&l).matmul(&u), &a, 1e-13);
        let (q, r) = linalg::qr(&a);
        near(&q.matmul(&r), &a, 1e-13);
        near(
            &q.transpose(-2, -1).matmul(&q),
            &(Tensor::eye(shape[0].min(shape[1])).broadcast_to([
                2,
                shape[0].min(shape[1]),
                shape[0].min(shape[1]),
            ])),
            1e-13,
        );
        let (u, s, vh) = linalg::svd(&a);
        near(&(u * s.unsqueeze(-2)).matmul(&vh), &a, 1e-13);
        let ap = linalg::pinv(&a);
        near(&a.matmul(&ap).matmul(&a), &a, 1e-12);
    }
    let a = random(2, [2, 6, 6]);
    let spd = a.matmul(&a.transpose(-2, -1)) + Tensor::eye(6);
    let l = linalg::cholesky(&spd);
    near(&l.matmul(&l.transpose(-2, -1)), &spd, 1e-12);
    let (w, v) = linalg::eigh(&spd);
    near(&(&v * w.unsqueeze(-2)).matmul(&v.transpose(-2, -1)), &spd, 1e-12);
    near(&linalg::eigvalsh(&spd), &w, 1e-12);
}

#[test]
fn large_matrices_and_long_batches() {
    for n in [150, 300] {
        let a = random(3, [n, n]);
        let b = random(4, [n, 70]);
        near(&a.matmul(&linalg::solve(&a, &b)), &b, 1e-9);
        near(&a.matmul(&linalg::inv(&a)), &Tensor::eye(n), 1e-9);
        let spd = a.matmul(&a.transpose(-2, -1)) + Tensor::eye(n);
        let l = linalg::cholesky(&spd);
        near(&l.matmul(&l.transpose(-2, -1)), &spd, 1e-9);
        assert!(linalg::try_cholesky(&(spd - Tensor::eye(n) * 40.0)).is_err());
    }
    for shape in [[330, 270], [270, 330]] {
        let a = random(6, shape);
        let (p, l, u) = linalg::lu(&a);
        near(&p.matmul(&l).matmul(&u), &a, 1e-11);
        assert!(l.abs().max().item() <= 1.0, "the pivots are the largest");
    }
    let many = random(5, [500, 3, 3]) * 0.1 + Tensor::eye(3);
    let batched = linalg::inv(&many);
    for k in [0, 250, 499] {
        assert_eq!(batched.get(k).to_vec::<f64>(), linalg::inv(&many.get(k)).to_vec::<f64>());
    }
    assert_eq!(vmap(|a: &Tensor| linalg::det(a))(&many).to_vec::<f64>(), linalg::det(&many).to_vec::<f64>());
}

#[test]
fn a_right_hand_side_of_one_axis_is_a_vector() {
    let a = random(1, [5, 3, 3]);
    assert_eq!(linalg::solve(&a, &Tensor::ones([3])).shape(), [5, 3]);
    assert_eq!(linalg::solve(&a, &Tensor::ones([3, 2])).shape(), [5, 3, 2]);
    let e = linalg::try_solve(&a, &Tensor::ones([5, 3])).unwrap_err();
    assert!(e.to_string().contains("b.unsqueeze(-1)"), "{e}");
    assert_eq!(linalg::lstsq(&random(2, [4, 2]), &Tensor::ones([4])).shape(), [2]);
}

#[test]
fn equal_eigenvalues() {
    let a = with_eigenvalues(&[2.0, 2.0, 2.0, 5.0]);
    // The sum of eigenvalues is the trace, that of their squares the squared norm, of their logarithms that of the determinant.
    near(&grad(|a: &Tensor| linalg::eigh(a).0.sum())(&a), &Tensor::eye(4), 1e-13);
    near(&grad(|a: &Tensor| linalg::eigh(a).0.square().sum())(&a), &(&a * 2.0), 1e-12);
    near(&grad(|a: &Tensor| linalg::eigvalsh(a).ln().sum())(&a), &linalg::inv(&a), 1e-13);
    // The projection onto the space of the equal ones is one minus that of the other: both vary alike.
    let w = random(9, [4, 4]);
    let projection = |a: &Tensor, from: usize, n: usize| {
        let v = linalg::eigh(a).1.narrow(-1, from, n);
        v.matmul(&v.transpose(-2, -1))
    };
    let equal = grad(|a: &Tensor| (projection(a, 0, 3) * &w).sum())(&a);
    let other = grad(|a: &Tensor| (projection(a, 3, 1) * &w).sum())(&a);
    near(&equal, &-other, 1e-12);
    first_order().run(|a: &Tensor| projection(a, 3, 1), &a).unwrap();
    first_order().run(|a: &Tensor| projection(a, 0, 3), &a).unwrap();
    // The second derivative of the trace is zero, and that of half the squared norm the identity on symmetric directions.
    let t = linalg::inv(&a);
    near(&hvp(|a: &Tensor| linalg::eigh(a).0.sum(), &Tensor::eye(4), &t), &Tensor::zeros([4, 4]), 1e-12);
    let g = jvp(|a: &Tensor| linalg::eigvalsh(a).sum(), &Tensor::eye(4), &t).1;
    assert!((g.item() - linalg::trace(&t).item()).abs() < 1e-13);
}

#[test]
fn equal_singular_values() {
    // The orthogonal factor of the polar form of the identity, whose derivative is the skew part.
    let w = random(3, [3, 3]);
    let polar = |a: &Tensor| {
        let (u, _, vh) = linalg::svd(a);
        u.matmul(&vh)
    };
    let g = grad(|a: &Tensor| (polar(a) * &w).sum())(&Tensor::eye(3));
    near(&g, &((&w - w.transpose(-2, -1)) * 0.5), 1e-13);
    let nuclear = grad(|a: &Tensor| linalg::svdvals(a).sum())(&Tensor::eye(3));
    near(&nuclear, &Tensor::eye(3), 1e-13);
    first_order().run(polar, &(Tensor::eye(3) * 2.0)).unwrap();
}

#[test]
fn lower_rank() {
    let a = random(1, [4, 2]).matmul(&random(2, [2, 4]));
    assert_eq!(linalg::matrix_rank(&a).to_vec::<i64>(), [2]);
    // Norms: the Frobenius norm is the root of the squared singular values.
    let by_values = grad(|a: &Tensor| linalg::svdvals(a).square().sum())(&a);
    near(&by_values, &(&a * 2.0), 1e-12);
    let (u, s, vh) = linalg::svd(&a);
    let g = grad(|a: &Tensor| {
        let (u, s, vh) = linalg::svd(a);
        (u * s).matmul(&vh).square().sum()
    })(&a);
    near(&g, &(&a * 2.0), 1e-11);
    near(&(u * s).matmul(&vh), &a, 1e-13);
    // The nuclear norm has the subgradient of least norm.
    let g = grad(|a: &Tensor| linalg::matrix_norm(a, MatrixNorm::Nuclear))(&a);
    assert!((linalg::matrix_norm(&g, MatrixNorm::Frobenius).item() - 2f64.sqrt()).abs() < 1e-12);
    // Least squares of least norm.
    let b = random(3, [4]);
    let x = linalg::lstsq(&a, &b);
    near(&x, &linalg::pinv(&a).matmul(&b), 1e-11);
    // Along matrices of the same rank the derivatives are those of differences.
    let (left, right) = (random(1, [4, 2]), random(2, [2, 4]));
    let of = |(l, r): &(Tensor, Tensor)| linalg::pinv_with(&l.matmul(r), 1e-8);
    check::gradients(of, &(left.clone(), right.clone())).unwrap();
    let of = |(l, r): &(Tensor, Tensor)| linalg::lstsq(&l.matmul(r), &b);
    check::gradients(of, &(left, right)).unwrap();
}

#[test]
fn determinants_of_singular_matrices() {
    let once = random(1, [4, 3]).matmul(&random(2, [3, 4]));
    check::gradients(|a: &Tensor| linalg::det(a), &once).unwrap();
    let gradient = |a: &Tensor| grad(|a: &Tensor| linalg::det(a))(a);
    check::gradients(gradient, &once).unwrap();
    // The second derivative at rank n - 2 is that of differences too, and the gradient is zero.
    let twice = random(3, [3, 1]).matmul(&random(4, [1, 3]));
    near(&gradient(&twice), &Tensor::zeros([3, 3]), 1e-15);
    check::gradients(|a: &Tensor| linalg::det(a), &twice).unwrap();
    check::gradients(|a: &Tensor| linalg::det(a), &Tensor::zeros([2, 2])).unwrap();
    near(&gradient(&Tensor::zeros([1, 1])), &Tensor::ones([1, 1]), 0.0);
    // A negative determinant, small pivots.
    let a = Tensor::from([[0.0, 1.0, 2.0], [1.0, 0.0, 1e-9], [0.0, 0.0, 1e-6]]);
    let adjugate = Tensor::from([[0.0, -1e-6, 0.0], [-1e-6, 0.0, 0.0], [1e-9, 2.0, -1.0]]);
    near(&gradient(&a), &adjugate, 1e-15);
    let (sign, log) = linalg::slogdet(&twice);
    assert!(sign.item().abs() <= 1.0 && log.item() < -30.0);
    assert_eq!(linalg::det(&Tensor::zeros([3, 3])).item(), 0.0);
    for a in [Tensor::zeros([3, 3]), Tensor::ones([3, 4]), Tensor::ones([4, 3])] {
        let (p, l, u) = linalg::lu(&a);
        near(&p.matmul(&l).matmul(&u), &a, 1e-15);
    }
    let (sign, log) = linalg::slogdet(&Tensor::zeros([2, 2]));
    assert_eq!((sign.item(), log.item()), (0.0, f64::NEG_INFINITY));
    let g = grad(|a: &Tensor| linalg::logdet(a))(&Tensor::zeros([2, 2]));
    assert!(g.to_vec::<f64>().iter().all(|v| v.is_nan()));
}

#[test]
fn errors_name_the_matrix_and_a_way_out() {
    let batch = Tensor::stack(&[Tensor::eye(2), Tensor::zeros([2, 2]), Tensor::ones([2, 2])], 0);
    let e = linalg::try_inv(&batch).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Value);
    assert!(e.to_string().starts_with("inv: the matrix at [1] of the batch is singular"), "{e}");
    let e = linalg::try_solve(&Tensor::ones([2, 2]), &Tensor::ones([2])).unwrap_err();
    assert!(e.to_string().starts_with("solve: the matrix is singular"), "{e}");
    let e = linalg::try_cholesky(&-batch).unwrap_err();
    assert!(
        e.to_string().starts_with("cholesky: the matrix at [0] of the batch is not positive definite"),
        "{e}"
    );
    let e = linalg::try_solve_triangular(&Tensor::zeros([2, 2]), &Tensor::ones([2]), Triangle::upper())
        .unwrap_err();
    assert!(e.to_string().contains("its diagonal has a zero"), "{e}");
    let e = linalg::try_det(&Tensor::zeros([2, 3])).unwrap_err();
    assert!(e.kind() == ErrorKind::Shape && e.to_string().contains("[2, 3]"), "{e}");
    let e = linalg::try_eigh(&Tensor::zeros([2])).unwrap_err();
    assert!(e.kind() == ErrorKind::Shape && e.to_string().starts_with("eigh: "), "{e}");
    let e = linalg::try_svd(&Tensor::zeros([2, 2]).cast(DType::F16)).unwrap_err();
    assert!(e.kind() == ErrorKind::DType && e.to_string().contains("cast(DType::F32)"), "{e}");
    let e = linalg::try_trace(&Tensor::from([1i64])).unwrap_err();
    assert!(e.to_string().starts_with("trace: "), "{e}");
    assert!(e.location().is_some_and(|l| l.file().ends_with("linalg.rs")), "{e}");
    assert!(
        linalg::try_multi_dot(&[]).is_err()
            && linalg::try_multi_dot(&[&Tensor::zeros([2, 2, 2]); 2]).is_err()
    );
}

#[test]
fn numbers_that_are_not_finite_give_nan() {
    for bad in [f64::NAN, f64::INFINITY] {
        for n in [1, 2, 3, 40] {
            let mut a = Tensor::eye(n) + 0.1;
            a.slice_assign((n - 1, 0), bad);
            let all: [(&str, Tensor); 12] = [
                ("solve", linalg::solve(&a, &Tensor::ones([n]))),
                ("inv", linalg::inv(&a)),
                ("det", linalg::det(&a)),
                ("slogdet", linalg::slogdet(&a).1),
                ("cholesky", linalg::cholesky(&a)),
                ("lu", linalg::lu(&a).2),
                ("qr", linalg::qr(&a).1),
                ("eigh", linalg::eigh(&a).0),
                ("svd", linalg::svd(&a).1),
                ("pinv", linalg::pinv(&a)),
                ("lstsq", linalg::lstsq(&a, &Tensor::ones([n]))),
                ("matrix_exp", linalg::matrix_exp(&a)),
            ];
            for (name, y) in all {
                assert!(y.to_vec::<f64>().iter().any(|v| v.is_nan()), "{name} of {bad}: {y}");
            }
            let g = grad(|a: &Tensor| linalg::svd(a).0.sum() + linalg::det(a) + linalg::eigh(a).1.sum())(&a);
            assert!(g.to_vec::<f64>().iter().all(|v| v.is_nan()));
        }
    }
}

#[test]
fn nothing_is_a_matrix_too() {
    let none = Tensor::zeros([0, 0]);
    assert_eq!((linalg::det(&none).item(), linalg::trace(&none).item()), (1.0, 0.0));
    assert_eq!(linalg::slogdet(&none).1.item(), 0.0);
    assert_eq!(linalg::matrix_rank(&Tensor::zeros([0, 3])).to_vec::<i64>(), [0]);
    assert_eq!(linalg::matrix_norm(&Tensor::zeros([0, 3]), MatrixNorm::Two).item(), 0.0);
    assert_eq!(linalg::pinv(&Tensor::zeros([0, 3])).shape(), [3, 0]);
    assert_eq!(linalg::solve(&none, &Tensor::zeros([0])).shape(), [0]);
    assert_eq!(linalg::lstsq(&Tensor::zeros([0, 3]), &Tensor::zeros([0])).to_vec::<f64>(), [0.0; 3]);
    let batch = Tensor::zeros([0, 2, 2]);
    assert_eq!(linalg::inv(&batch).shape(), [0, 2, 2]);
    assert_eq!(linalg::svd(&batch).1.shape(), [0, 2]);
    assert_eq!(linalg::matrix_norm(&batch, MatrixNorm::Nuclear).shape(), [0]);
    for f in [linalg::det, linalg::logdet, linalg::trace] {
        assert_eq!(grad(|a: &Tensor| f(a).sum())(&none).shape(), [0, 0]);
        assert_eq!(grad(|a: &Tensor| f(a).sum())(&batch).shape(), [0, 2, 2]);
    }
}

#[test]
fn compositions_have_their_derivatives() {
    let a = random(1, [3, 3]) * 0.3 + Tensor::eye(3);
    for kind in
        [MatrixNorm::Frobenius, MatrixNorm::Nuclear, MatrixNorm::One, MatrixNorm::Two, MatrixNorm::Infinity]
    {
        check::gradients(|a: &Tensor| linalg::matrix_norm(a, kind), &a).unwrap();
    }
    let zero = grad(|a: &Tensor| linalg::matrix_norm(a, MatrixNorm::Frobenius))(&Tensor::zeros([2, 2]));
    assert_eq!(zero.to_vec::<f64>(), [0.0; 4]);
    check::gradients(|a: &Tensor| linalg::matrix_power(a, -3), &a).unwrap();
    check::gradients(|a: &Tensor| linalg::logdet(&a.matmul(&a.transpose(-2, -1))), &a).unwrap();
    let b = random(2, [3, 2]);
    check::gradients(
        |(a, b): &(Tensor, Tensor)| {
            let spd = a.matmul(&a.transpose(-2, -1)) + Tensor::eye(3);
            linalg::cholesky_solve(&linalg::cholesky(&spd), b)
        },
        &(a.clone(), b),
    )
    .unwrap();
    check::gradients(
        |a: &Tensor| {
            let (p, l, u) = linalg::lu(a);
            p.matmul(&l).matmul(&u.sin())
        },
        &a,
    )
    .unwrap();
    // Third order.
    let third = |a: &Tensor| grad(|a: &Tensor| grad(|a: &Tensor| linalg::det(a))(a).square().sum())(a);
    check::gradients(third, &a).unwrap();
    near(&compile(third).call(&a), &third(&a), 1e-12);
}

#[test]
fn the_exponential_of_large_and_small_matrices() {
    let a = Tensor::from([[1.0, 2.0], [0.0, 1.0]]);
    for t in [1e-9, 1e-3, 0.1, 0.5, 1.0, 3.0, 20.0, 300.0] {
        let e = linalg::matrix_exp(&(&a * t));
        let expected = Tensor::from([[1.0, 2.0 * t], [0.0, 1.0]]);
        // A rounding grows with each squaring, as the norm does.
        near(&(e / t.exp()), &expected, 2e-15 * (1.0 + 3.0 * t) * (1.0 + 2.0 * t));
    }
    let e = linalg::matrix_exp(&(Tensor::eye(2) * f64::MAX));
    assert!(e.to_vec::<f64>().iter().any(|v| !v.is_finite()));
    let single = linalg::matrix_exp(&a.cast(DType::F32));
    near(&single.cast(DType::F64), &linalg::matrix_exp(&a), 1e-6);
}
