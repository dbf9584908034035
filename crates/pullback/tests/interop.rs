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

#[cfg(feature = "ndarray")]
mod ndarray_arrays {
    use ndarray::{Array2, ArrayD, IxDyn, array, s};
    use pullback::prelude::*;

    #[test]
    fn arrays_of_any_layout_become_tensors() {
        let a = array![[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]];
        for (x, expected) in [
            (Tensor::from(&a), Tensor::from([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])),
            (Tensor::from(a.t()), Tensor::from([[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]])),
            (Tensor::from(a.slice(s![..;-1, ..;2])), Tensor::from([[4.0, 6.0], [1.0, 3.0]])),
        ] {
            assert_eq!((x.shape(), x.to_vec::<f64>()), (expected.shape(), expected.to_vec::<f64>()));
        }
        assert_eq!(Tensor::from(array![true, false]).dtype(), DType::Bool);
        assert_eq!(Tensor::from(Array2::<f32>::zeros((0, 3))).shape(), [0, 3]);
        assert_eq!(Tensor::from(ArrayD::from_elem(IxDyn(&[]), 2i64)).item(), 2.0);
    }

    #[test]
    fn tensors_of_any_layout_are_seen_as_arrays() {
        let x = Tensor::linspace(0.0, 23.0, 24).reshape([2, 3, 4]);
        for view in [
            x.clone(),
            x.permute(&[2, 0, 1]),
            x.slice((.., 1.., ..-1)),
            x.narrow(0, 0, 1).broadcast_to([5, 3, 4]),
            Tensor::ones([2, 2]),
            Tensor::scalar(3.0),
            Tensor::zeros([0, 3]),
        ] {
            let a = view.ndarray_view::<f64>().unwrap();
            assert_eq!(a.shape(), view.shape());
            assert_eq!(a.iter().copied().collect::<Vec<_>>(), view.to_vec::<f64>());
            assert_eq!(view.to_ndarray::<f64>(), a);
        }
        // Where they are: nothing was copied.
        let y = Tensor::from([1.0, 2.0]);
        assert_eq!(y.ndarray_view::<f64>().unwrap().as_ptr(), y.as_slice::<f64>().unwrap().as_ptr());
        assert!(y.ndarray_view::<f32>().is_none());
        assert_eq!(y.to_ndarray::<i64>()[[1]], 2);
    }

    #[test]
    fn axes_that_run_backward() {
        let x = Tensor::from([[1.0, 2.0], [3.0, 4.0]]);
        let back = x.index_select(1, &Tensor::from([1, 0]));
        assert_eq!(back.ndarray_view::<f64>().unwrap()[[0, 0]], 2.0);
    }
}

#[cfg(feature = "nalgebra")]
mod nalgebra_matrices {
    use nalgebra::{DMatrix, Matrix2x3, RowVector3, Vector3};
    use pullback::prelude::*;

    #[test]
    fn matrices_there_and_back() {
        let m = Matrix2x3::new(1.0, 2.0, 3.0, 4.0, 5.0, 6.0);
        let x = Tensor::from(&m);
        assert_eq!((x.shape(), x.to_vec::<f64>()), (&[2, 3][..], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]));
        assert_eq!(x.to_nalgebra::<f64>(), DMatrix::from_row_slice(2, 3, m.transpose().as_slice()));
        assert_eq!(Tensor::from(Vector3::new(1f32, 2.0, 3.0)).shape(), [3]);
        assert_eq!(Tensor::from(RowVector3::new(1, 2, 3)).shape(), [1, 3]);
        assert_eq!(Tensor::from(m.column(1)).to_vec::<f64>(), [2.0, 5.0]);
        assert_eq!(Tensor::from([1.0, 2.0]).to_nalgebra::<f64>().shape(), (2, 1));
    }

    #[test]
    fn tensors_seen_as_matrices() {
        let x = Tensor::linspace(1.0, 6.0, 6).reshape([2, 3]);
        for view in [x.clone(), x.t(), x.narrow(1, 1, 2), Tensor::ones([3, 2]), x.get(1)] {
            let a = view.nalgebra_view::<f64>().unwrap();
            assert_eq!(a.into_owned(), view.to_nalgebra::<f64>());
        }
        assert_eq!(x.nalgebra_view::<f64>().unwrap().as_ptr(), x.as_slice::<f64>().unwrap().as_ptr());
        assert!(
            x.nalgebra_view::<f32>().is_none() && Tensor::zeros([1, 1, 1]).nalgebra_view::<f64>().is_none()
        );
    }
}
