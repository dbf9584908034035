//! Solutions of linear equations, inverses and determinants.

use super::*;

/// Which triangle of a matrix [`solve_triangular`] reads.
///
/// ```
/// use pullback::{linalg::{self, Triangle}, prelude::*};
/// let a = Tensor::from([[2.0, 9.0], [4.0, 1.0]]);
/// let b = Tensor::from([2.0, 6.0]);
/// assert_eq!(linalg::solve_triangular(&a, &b, Triangle::lower()).to_vec::<f64>(), [1.0, 2.0]);
/// assert_eq!(linalg::solve_triangular(&a, &b, Triangle::lower().transposed()).to_vec::<f64>(), [-11.0, 6.0]);
/// assert_eq!(linalg::solve_triangular(&a, &b, Triangle::upper().unit()).to_vec::<f64>(), [-52.0, 6.0]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Triangle {
    upper: bool,
    transposed: bool,
    unit: bool,
}

impl Triangle {
    /// The elements on and below the diagonal.
    pub fn lower() -> Triangle {
        Triangle { upper: false, transposed: false, unit: false }
    }

    /// The elements on and above the diagonal.
    pub fn upper() -> Triangle {
        Triangle { upper: true, ..Triangle::lower() }
    }

    /// The equation has the transpose of this triangle.
    pub fn transposed(self) -> Triangle {
        Triangle { transposed: !self.transposed, ..self }
    }

    /// The diagonal is taken to be 1, and not read.
    pub fn unit(self) -> Triangle {
        Triangle { unit: true, ..self }
    }
}

functions! {
    /// The solution of `a x = b` for square matrices `a`.
    ///
    /// A `b` of one axis is a vector, and any other holds matrices of as many right-hand sides as they have columns, as in NumPy 2. Leading axes
    /// broadcast. A singular matrix is an error; of one that is nearly so the solution has few digits.
    ///
    /// Pullback: `gb = a⁻ᵀ g`, `ga = -gb xᵀ`.
    ///
    /// ```
    /// use pullback::{linalg, prelude::*};
    /// let a = Tensor::from([[4.0, 2.0], [2.0, 3.0]]);
    /// let b = Tensor::from([1.0, 2.0]);
    /// assert_eq!(linalg::solve(&a, &b).to_vec::<f64>(), [-0.125, 0.75]);
    /// let gb = grad(|b: &Tensor| linalg::solve(&a, b).sum())(&b); // a⁻ᵀ 1
    /// assert_eq!(gb.to_vec::<f64>(), [0.125, 0.25]);
    /// ```
    solve try_solve(a: &Tensor, b: &Tensor) -> Tensor {
        with_right_hand_sides(Solve, a, b)
    }

    /// The solution of `a x = b`, where only a triangle of `a` is read; right-hand sides as in [`solve`]. A zero on the diagonal is an error.
    ///
    /// Pullback: `gb = a⁻ᵀ g`, and `ga` is the triangle of `-gb xᵀ`.
    #[doc(alias = "triangular_solve")]
    solve_triangular try_solve_triangular(a: &Tensor, b: &Tensor, triangle: Triangle) -> Tensor {
        sides(a)?;
        let turned = if triangle.transposed { a.transposed() } else { a.clone() };
        let op = TriangularSolve { upper: triangle.upper != triangle.transposed, unit: triangle.unit };
        with_right_hand_sides(op, &turned, b)
    }

    /// The solution of `l lᵀ x = b`, from the factor of [`cholesky`]; right-hand sides as in [`solve`].
    ///
    /// ```
    /// use pullback::{linalg, prelude::*};
    /// let a = Tensor::from([[4.0, 2.0], [2.0, 3.0]]);
    /// let x = linalg::cholesky_solve(&linalg::cholesky(&a), &Tensor::from([1.0, 2.0]));
    /// assert!((x - Tensor::from([-0.125, 0.75])).abs().max().item() < 1e-15);
    /// ```
    cholesky_solve try_cholesky_solve(l: &Tensor, b: &Tensor) -> Tensor {
        let y = try_solve_triangular(l, b, Triangle::lower())?;
        try_solve_triangular(l, &y, Triangle::lower().transposed())
    }

    /// The inverse of square matrices. For `inv(a).matmul(b)` prefer [`solve`], which is faster and more accurate. A singular matrix is an error.
    ///
    /// Pullback: `-yᵀ g yᵀ`.
    ///
    /// ```
    /// use pullback::{linalg, prelude::*};
    /// let y = linalg::inv(&Tensor::from([[2.0, 0.0], [0.0, 4.0]]));
    /// assert_eq!(y.to_vec::<f64>(), [0.5, 0.0, 0.0, 0.25]);
    /// let e = linalg::try_inv(&Tensor::zeros([3, 2, 2])).unwrap_err();
    /// assert!(e.to_string().starts_with("inv: the matrix at [0] of the batch is singular"));
    /// ```
    inv try_inv(a: &Tensor) -> Tensor {
        bind(Inv { fails: true }, &[a])
    }

    /// The determinant. It overflows soon: [`slogdet`] does not.
    ///
    /// Pullback: `g` times the cofactors, which are `det(a) a⁻ᵀ` where there is an inverse, and right where there is none.
    ///
    /// ```
    /// use pullback::{linalg, prelude::*};
    /// let a = Tensor::from([[1.0, 2.0], [2.0, 4.0]]);
    /// let (d, g) = value_and_grad(|a: &Tensor| linalg::det(a))(&a);
    /// assert!(d.item() == 0.0 && (g - Tensor::from([[4.0, -2.0], [-2.0, 1.0]])).abs().max().item() < 1e-14);
    /// ```
    det try_det(a: &Tensor) -> Tensor {
        bind(Det, &[a])
    }

    /// The sign of the determinant and the logarithm of its size: 0 and minus infinity for a singular matrix.
    ///
    /// Pullback: `a⁻ᵀ` times the cotangent of the logarithm, and NaN at a singular matrix. The sign is constant.
    ///
    /// ```
    /// use pullback::{linalg, prelude::*};
    /// let (sign, log) = linalg::slogdet(&Tensor::from([[0.0, 1.0], [2.0, 0.0]]));
    /// assert_eq!((sign.item(), log.item()), (-1.0, 2f64.ln()));
    /// ```
    slogdet try_slogdet(a: &Tensor) -> (Tensor, Tensor) {
        let both = bind(Slogdet, &[a])?;
        Ok((both.try_narrow(-1, 0, 1)?.try_squeeze(-1)?, both.try_narrow(-1, 1, 1)?.try_squeeze(-1)?))
    }

    /// The logarithm of the determinant: NaN where that is negative, minus infinity where it is 0.
    ///
    /// Pullback: `g a⁻ᵀ`.
    ///
    /// ```
    /// use pullback::{linalg, prelude::*};
    /// assert_eq!(linalg::logdet(&(Tensor::eye(3) * 2.0)).item(), 2f64.ln() * 3.0);
    /// assert!(linalg::logdet(&-Tensor::eye(3)).item().is_nan());
    /// ```
    logdet try_logdet(a: &Tensor) -> Tensor {
        let (sign, log) = try_slogdet(a)?;
        Tensor::try_where(&sign.try_lt(0.0)?, f64::NAN, log)
    }

    /// The solution of least squares: of all `x` with the least `|a x - b|` the one of least norm, for matrices of any shape and rank; right-hand
    /// sides as in [`solve`]. It is `pinv(a).matmul(b)`, faster and more accurate.
    ///
    /// Pullback: `gb = a⁺ᵀ g` and `ga = -gb xᵀ + (b - a x) (a⁺ gb)ᵀ + (a⁺ᵀ x) (g - aᵀ gb)ᵀ`, with `a⁺` the [pseudoinverse](pinv): the
    /// derivative among matrices of the same rank.
    ///
    /// ```
    /// use pullback::{linalg, prelude::*};
    /// // The line through three points.
    /// let a = Tensor::from([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]]);
    /// let x = linalg::lstsq(&a, &Tensor::from([1.0, 3.0, 5.0]));
    /// assert!((x - Tensor::from([1.0, 2.0])).abs().max().item() < 1e-14);
    /// ```
    lstsq try_lstsq(a: &Tensor, b: &Tensor) -> Tensor {
        with_right_hand_sides(Lstsq, a, b)
    }

    /// The pseudoinverse of Moore and Penrose. Singular values count as zero up to `max(m, n)` units of rounding of the greatest;
    /// [`pinv_with`] takes another limit.
    ///
    /// Pullback: `-yᵀ g yᵀ + (1 - a y) gᵀ y yᵀ + yᵀ y gᵀ (1 - y a)`, the derivative among matrices of the same rank.
    ///
    /// ```
    /// use pullback::{linalg, prelude::*};
    /// let y = linalg::pinv(&Tensor::from([[2.0, 0.0], [0.0, 0.0], [0.0, 0.0]]));
    /// assert_eq!(y.to_vec::<f64>(), [0.5, 0.0, 0.0, 0.0, 0.0, 0.0]);
    /// ```
    pinv try_pinv(a: &Tensor) -> Tensor {
        bind(Pinv { rtol: rounding(a)? }, &[a])
    }

    /// [`pinv`], with singular values up to `rtol` of the greatest as zero.
    ///
    /// ```
    /// use pullback::{linalg, prelude::*};
    /// let a = Tensor::from([[1.0, 0.0], [0.0, 0.01]]);
    /// assert_eq!(linalg::pinv_with(&a, 0.1).to_vec::<f64>(), [1.0, 0.0, 0.0, 0.0]);
    /// ```
    pinv_with try_pinv_with(a: &Tensor, rtol: f64) -> Tensor {
        bind(Pinv { rtol }, &[a])
    }
}
