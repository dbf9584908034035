//! Other libraries' generic code, differentiated as it is.

#[cfg(feature = "num-traits")]
mod num_traits_code {
    use num_traits::Float;
    use pullback::scalar::{self, Dual, Var};
    use pullback_testing::assert_close;

    /// Knows nothing of this library.
    fn f<F: Float>(x: &[F]) -> F {
        let two = F::one() + F::one();
        let mut s = F::zero();
        for &x in x {
            s = s + (x.powi(2) + two).sqrt().max(x).atan2(two).mul_add(x, x.exp_m1());
        }
        s.copysign(F::one()) / F::from(x.len()).unwrap()
    }

    #[test]
    fn float_code_is_differentiated() {
        let x = [0.3, -0.7, 1.9];
        let g = scalar::gradient(f::<Var>, &x);
        for k in 0..3 {
            let mut v = [0.0; 3];
            v[k] = 1.0;
            let d = scalar::directional(f::<Dual>, &x, &v).1;
            assert_close(&[g[k]], &[d], 1e-14);
            let at = |h: f64| {
                let mut x = x;
                x[k] += h;
                f(&x)
            };
            assert_close(&[d], &[(at(1e-5) - at(-1e-5)) / 2e-5], 1e-8);
        }
    }
}

#[cfg(feature = "nalgebra")]
mod nalgebra_code {
    use nalgebra::{DMatrix, DVector, RealField};
    use pullback::scalar::{self, Dual, Var};
    use pullback_testing::assert_close;

    /// `bᵀ A⁻¹ b` by Cholesky, with A = M Mᵀ + I.
    fn quadratic<T: RealField + Copy>(x: &[T]) -> T {
        let m = DMatrix::from_fn(3, 3, |i, j| x[3 * i + j]);
        let b = DVector::from_fn(3, |i, _| x[9 + i]);
        let a = &m * m.transpose() + DMatrix::identity(3, 3);
        b.dot(&a.cholesky().expect("positive definite").solve(&b))
    }

    /// The sum of the squared minimum-norm solution of `M y = b`, by a singular value decomposition.
    fn by_svd<T: RealField + Copy>(x: &[T]) -> T {
        let m = DMatrix::from_fn(3, 3, |i, j| x[3 * i + j]);
        let b = DVector::from_fn(3, |i, _| x[9 + i]);
        let y =
            m.svd(true, true).solve(&b, T::from_f64(1e-12).unwrap()).expect("both factors were asked for");
        y.norm_squared()
    }

    fn check(f: fn(&[f64]) -> f64, on_tape: fn(&[Var]) -> Var, on_dual: fn(&[Dual]) -> Dual, tolerance: f64) {
        let x: Vec<f64> = (1..=12).map(|k| (k as f64 * 0.618).fract() * 2.0 - 1.0).collect();
        let g = scalar::gradient(on_tape, &x);
        for k in 0..x.len() {
            let at = |h: f64| {
                let mut x = x.clone();
                x[k] += h;
                f(&x)
            };
            assert_close(&[g[k]], &[(at(1e-5) - at(-1e-5)) / 2e-5], 1e-7);
            let mut v = vec![0.0; x.len()];
            v[k] = 1.0;
            assert_close(&[g[k]], &[scalar::directional(on_dual, &x, &v).1], tolerance);
        }
    }

    #[test]
    fn a_cholesky_solve() {
        check(quadratic, quadratic, quadratic, 1e-13);
    }

    #[test]
    fn a_singular_value_decomposition() {
        // Iterative: the derivative of the last iterations has fewer digits than the value.
        check(by_svd, by_svd, by_svd, 1e-7);
    }
}

#[cfg(any(feature = "faer", feature = "sprs"))]
fn second_differences<T: pullback::scalar::Real>(x: &[T]) -> Vec<T> {
    x.windows(3).map(|w| w[0] * w[0] - w[1] * 2.0 + w[2].sin()).collect()
}

#[cfg(feature = "faer")]
#[test]
fn a_faer_matrix() {
    let x = [0.1, 0.5, 0.9, 1.4, 2.0];
    let j = pullback::scalar::Function::record(second_differences, 5).sparse_jacobian(&x);
    let m = j.to_faer().unwrap();
    assert_eq!(m.compute_nnz(), 9);
    for (i, k, value) in j.triplets() {
        assert_eq!(m.get(i, k), Some(&value));
    }
}

#[cfg(feature = "sprs")]
#[test]
fn a_sprs_matrix() {
    let x = [0.1, 0.5, 0.9, 1.4, 2.0];
    let j = pullback::scalar::Function::record(second_differences, 5).sparse_jacobian(&x);
    let m = j.to_sprs();
    assert_eq!((m.nnz(), m.shape()), (9, (3, 5)));
    for (i, k, value) in j.triplets() {
        assert_eq!(m.get(i, k), Some(&value));
    }
}

#[cfg(feature = "argmin")]
#[test]
fn argmin_sees_all_derivatives() {
    use argmin::core::{CostFunction, Gradient, Hessian};
    use pullback::scalar::{self, Problem, Real};

    fn f<T: Real>(x: &[T]) -> T {
        if x[0] > 0.0 { x[0] * x[0] * x[1] } else { x[0].exp() + x[1] * x[1] }
    }
    let problem = Problem::new(f, &[1.0, 2.0]);
    // Both branches, and back.
    for x in [vec![1.0, 2.0], vec![-1.0, 2.0], vec![3.0, 0.5]] {
        assert_eq!(problem.cost(&x).unwrap(), f(&x));
        let g = problem.gradient(&x).unwrap();
        assert!(g.iter().zip(scalar::gradient(f, &x)).all(|(a, b)| (a - b).abs() < 1e-14));
        let h = problem.hessian(&x).unwrap();
        let e = scalar::hessian(f, &x);
        assert!(h.iter().flatten().zip(e.iter().flatten()).all(|(a, b)| (a - b).abs() < 1e-14));
    }
}
