//! Decompositions into factors.

use super::*;

functions! {
    /// The lower triangle `l` with a positive diagonal and `l lᵀ = a`, for symmetric positive definite matrices. Of others the symmetric part
    /// `(a + aᵀ) / 2` is taken, and if that is not positive definite it is an error.
    ///
    /// Pullback: the symmetric part of `l⁻ᵀ Φ(lᵀ g) l⁻¹`, where `Φ` takes the lower triangle with half of the diagonal.
    ///
    /// ```
    /// use pullback::{linalg, prelude::*};
    /// let l = linalg::cholesky(&Tensor::from([[4.0, 2.0], [2.0, 5.0]]));
    /// assert_eq!(l.to_vec::<f64>(), [2.0, 0.0, 1.0, 2.0]);
    /// let e = linalg::try_cholesky(&Tensor::from([[1.0, 2.0], [2.0, 1.0]])).unwrap_err();
    /// assert!(e.to_string().contains("is not positive definite"));
    /// ```
    cholesky try_cholesky(a: &Tensor) -> Tensor {
        bind(Cholesky, &[a])
    }

    /// A permutation `p`, a lower triangle `l` with the diagonal 1 and an upper triangle `u` with `p l u = a`, for matrices of any shape; the
    /// inner side is the smaller one.
    ///
    /// Pullback, of a square matrix: `p l⁻ᵀ (tril(lᵀ gl, -1) + triu(gu uᵀ)) u⁻ᵀ`. It needs a `u` of full rank.
    ///
    /// ```
    /// use pullback::{linalg, prelude::*};
    /// let a = Tensor::from([[0.0, 2.0], [4.0, 2.0]]);
    /// let (p, l, u) = linalg::lu(&a);
    /// assert_eq!(p.to_vec::<f64>(), [0.0, 1.0, 1.0, 0.0]);
    /// assert_eq!(p.matmul(&l).matmul(&u).to_vec::<f64>(), a.to_vec::<f64>());
    /// ```
    lu try_lu(a: &Tensor) -> (Tensor, Tensor, Tensor) {
        let (m, n) = sides(a)?;
        let k = m.min(n);
        let packed = bind(Lu, &[a])?;
        let factors = packed.try_narrow(-1, 0, n)?;
        let below = bind(TriangularPart::BELOW, &[&factors.try_narrow(-1, 0, k)?])?;
        let l = below.try_add(identity(a, m, k))?;
        let u = bind(TriangularPart::UPPER, &[&factors.try_narrow(-2, 0, k)?])?;
        // Row i of the transpose has its one where the i-th row of the factors stood.
        let order = packed.try_narrow(-1, n, 1)?.detach().try_cast(DType::I64)?.try_broadcast_to(with_last(a, &[m, m]))?;
        let ones = identity(a, m, m).try_broadcast_to(with_last(a, &[m, m]))?;
        Ok((ones.try_gather(-2, &order)?.transposed(), l, u))
    }

    /// An orthonormal basis `q` of the columns, and the upper triangle `r` with `q r = a`, for matrices of any shape; the inner side is the
    /// smaller one. The diagonal of `r` is not negative, which makes both unique where it is positive.
    ///
    /// Pullback, of no more columns than rows: `(gq + q (m + mᵀ)) r⁻ᵀ`, where `m` is the lower triangle of `r grᵀ - gqᵀ q` with half of its
    /// diagonal. It needs an `r` whose diagonal has no zero.
    ///
    /// ```
    /// use pullback::{linalg, prelude::*};
    /// let (q, r) = linalg::qr(&Tensor::from([[3.0], [4.0]]));
    /// assert!((q - Tensor::from([[0.6], [0.8]])).abs().max().item() < 1e-15);
    /// assert!((r.item() - 5.0).abs() < 1e-14);
    /// ```
    qr try_qr(a: &Tensor) -> (Tensor, Tensor) {
        let (m, n) = sides(a)?;
        Ok(Qr::parts(&bind(Qr, &[a])?, m, n))
    }

    /// The eigenvalues `w` of symmetric matrices, from the least to the greatest, and orthonormal eigenvectors as the columns of `v`:
    /// `a v = v diag(w)`. Of other matrices the symmetric part `(a + aᵀ) / 2` is taken.
    ///
    /// Pullback: `v (diag(gw) + f ∘ (x - xᵀ) / 2) vᵀ` with `x = vᵀ gv` and `fij = 1 / (wj - wi)`, or 0 where these are equal: see
    /// [where that is right](crate::linalg#where-derivatives-need-care).
    ///
    /// ```
    /// use pullback::{linalg, prelude::*};
    /// let a = Tensor::from([[2.0, 1.0], [1.0, 2.0]]);
    /// let (w, v) = linalg::eigh(&a);
    /// assert!((w - Tensor::from([1.0, 3.0])).abs().max().item() < 1e-14);
    /// assert!((a.matmul(&v) - v.clone() * Tensor::from([1.0, 3.0])).abs().max().item() < 1e-14);
    /// // The sum of the eigenvalues is the trace, also where they are equal.
    /// let g = grad(|a: &Tensor| linalg::eigh(a).0.sum())(&Tensor::eye(2));
    /// assert_eq!(g.to_vec::<f64>(), [1.0, 0.0, 0.0, 1.0]);
    /// ```
    eigh try_eigh(a: &Tensor) -> (Tensor, Tensor) {
        let (values, vectors) = Eigh::parts(&bind(Eigh { vectors: true }, &[a])?);
        Ok((values.try_squeeze(-2)?, vectors))
    }

    /// The eigenvalues of [`eigh`], without the vectors.
    ///
    /// Pullback: `v diag(g) vᵀ`.
    ///
    /// ```
    /// use pullback::{linalg, prelude::*};
    /// let w = linalg::eigvalsh(&Tensor::from([[2.0, 1.0], [1.0, 2.0]]));
    /// assert!((w - Tensor::from([1.0, 3.0])).abs().max().item() < 1e-14);
    /// ```
    eigvalsh try_eigvalsh(a: &Tensor) -> Tensor {
        bind(Eigh { vectors: false }, &[a])
    }

    /// Orthonormal columns `u`, singular values `s` from the greatest to the least, and orthonormal rows `vh` with
    /// `u diag(s) vh = a`, for matrices of any shape; the inner side is the smaller one.
    ///
    /// Pullback, of a square matrix: `u (diag(gs) + m) vh` with `mij = ((p + q)ij / (sj - si) + (p - q)ij / (sj + si)) / 2`,
    /// `p = uᵀ gu - guᵀ u` and `q = vᵀ gv - gvᵀ v`, where a quotient by 0 is 0: see [where that is right](crate::linalg#where-derivatives-need-care).
    ///
    /// ```
    /// use pullback::{linalg, prelude::*};
    /// let a = Tensor::from([[3.0, 0.0], [0.0, -4.0], [0.0, 0.0]]);
    /// let (u, s, vh) = linalg::svd(&a);
    /// assert_eq!((u.shape(), vh.shape()), (&[3, 2][..], &[2, 2][..]));
    /// assert!((&s - Tensor::from([4.0, 3.0])).abs().max().item() < 1e-14);
    /// assert!(((u * s).matmul(&vh) - a).abs().max().item() < 1e-14);
    /// ```
    svd try_svd(a: &Tensor) -> (Tensor, Tensor, Tensor) {
        let (m, _) = sides(a)?;
        let (s, u, v) = Svd::parts(&bind(Svd { vectors: true }, &[a])?, m);
        Ok((u, s.try_squeeze(-2)?, v.transposed()))
    }

    /// The singular values of [`svd`], without the vectors.
    ///
    /// Pullback: `u diag(g) vh`.
    ///
    /// ```
    /// use pullback::{linalg, prelude::*};
    /// let s = linalg::svdvals(&Tensor::from([[3.0, 0.0], [0.0, -4.0]]));
    /// assert!((s - Tensor::from([4.0, 3.0])).abs().max().item() < 1e-14);
    /// ```
    #[doc(alias = "singular_values")]
    svdvals try_svdvals(a: &Tensor) -> Tensor {
        bind(Svd { vectors: false }, &[a])
    }
}
