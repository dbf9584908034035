use crate::recorded::{Case, check};
use pullback::linalg::{self, MatrixNorm, Triangle};
use pullback::prelude::*;

fn triangle(case: &Case) -> Triangle {
    let flag = |name: &str| case.options[name].as_bool().expect("a flag");
    let mut triangle = if flag("upper") { Triangle::upper() } else { Triangle::lower() };
    if flag("unit") {
        triangle = triangle.unit();
    }
    if flag("transposed") { triangle.transposed() } else { triangle }
}

fn norm(case: &Case) -> MatrixNorm {
    match case.options["kind"].as_str().expect("a norm") {
        "fro" => MatrixNorm::Frobenius,
        "nuc" => MatrixNorm::Nuclear,
        "1" => MatrixNorm::One,
        "2" => MatrixNorm::Two,
        _ => MatrixNorm::Infinity,
    }
}

/// The projection onto the space of all eigenvectors but that of the least value.
fn upper_projection(a: &Tensor) -> Tensor {
    let (w, v) = linalg::eigh(a);
    let n = w.shape()[w.rank() - 1];
    let v = v.narrow(-1, 1, n - 1);
    v.matmul(&v.transpose(-2, -1))
}

#[test]
fn linear_algebra() {
    check(include_str!("cases/linalg.json"), |case: &Case, x: &[Tensor]| match case.name.as_str() {
        "solve" => linalg::solve(&x[0], &x[1]),
        "solve_triangular" => linalg::solve_triangular(&x[0], &x[1], triangle(case)),
        "cholesky_solve" => linalg::cholesky_solve(&x[1], &x[0]),
        "lstsq" => linalg::lstsq(&x[0], &x[1]),
        "inv" => linalg::inv(&x[0]),
        "pinv" => linalg::pinv(&x[0]),
        "det" => linalg::det(&x[0]),
        "slogdet_sign" => linalg::slogdet(&x[0]).0,
        "slogdet" => linalg::slogdet(&x[0]).1,
        "logdet" => linalg::logdet(&x[0]),
        "cholesky" => linalg::cholesky(&x[0]),
        "lu_p" => linalg::lu(&x[0]).0,
        "lu_l" => linalg::lu(&x[0]).1,
        "lu_u" => linalg::lu(&x[0]).2,
        "qr_q" => linalg::qr(&x[0]).0.square(),
        "qr_r" => linalg::qr(&x[0]).1.abs(),
        "eigvalsh" => linalg::eigvalsh(&x[0]),
        "eigh_upper" => upper_projection(&x[0]),
        "eigh_squares" => linalg::eigh(&x[0]).1.square(),
        "svdvals" => linalg::svdvals(&x[0]),
        "svd_polar" => {
            let (u, _, vh) = linalg::svd(&x[0]);
            u.matmul(&vh)
        }
        "svd_first" => {
            let (u, _, vh) = linalg::svd(&x[0]);
            u.narrow(-1, 0, 1).matmul(&vh.narrow(-2, 0, 1))
        }
        "matrix_rank" => linalg::matrix_rank(&x[0]),
        "matrix_norm" => linalg::matrix_norm(&x[0], norm(case)),
        "matrix_exp" => linalg::matrix_exp(&x[0]),
        "matrix_power" => linalg::matrix_power(&x[0], case.int("k")),
        "trace" => linalg::trace(&x[0]),
        "multi_dot" => linalg::multi_dot(&[&x[0], &x[1], &x[2]]),
        other => panic!("no such case: {other}"),
    });
}
