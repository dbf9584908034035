//! Functions of matrices, norms and products of many.

use super::*;

/// A norm of [`matrix_norm`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatrixNorm {
    /// The root of the sum of squares, as of a vector; its derivative at 0 is 0.
    Frobenius,
    /// The sum of the singular values; the derivative of those that are 0 is 0.
    Nuclear,
    /// The greatest sum of absolute values of a column.
    One,
    /// The greatest singular value: how much a vector becomes longer at most.
    Two,
    /// The greatest sum of absolute values of a row.
    Infinity,
}

functions! {
    /// The sum of the diagonal.
    ///
    /// Pullback: `g` on the diagonal.
    ///
    /// ```
    /// use pullback::{linalg, prelude::*};
    /// assert_eq!(linalg::trace(&Tensor::from([[1.0, 2.0], [3.0, 4.0]])).item(), 5.0);
    /// ```
    trace try_trace(a: &Tensor) -> Tensor {
        sides(a)?;
        a.try_diagonal(0, -2, -1)?.try_sum_axes(-1)
    }

    /// The exponential `Σ aᵏ / k!` of square matrices.
    ///
    /// Pullback: the derivative of the exponential at `aᵀ` along `g`, which is a quarter of the exponential of a matrix of twice the sides.
    ///
    /// ```
    /// use pullback::{linalg, prelude::*};
    /// let turn = |t: f64| linalg::matrix_exp(&(Tensor::from([[0.0, -1.0], [1.0, 0.0]]) * t));
    /// assert!((turn(1.0) - Tensor::from([[1f64.cos(), -1f64.sin()], [1f64.sin(), 1f64.cos()]])).abs().max().item() < 1e-15);
    /// ```
    #[doc(alias = "expm")]
    matrix_exp try_matrix_exp(a: &Tensor) -> Tensor {
        bind(MatrixExp, &[a])
    }

    /// The product of `k` times the same square matrix; of its inverse, if `k` is negative.
    ///
    /// ```
    /// use pullback::{linalg, prelude::*};
    /// let a = Tensor::from([[1.0, 1.0], [0.0, 1.0]]);
    /// assert_eq!(linalg::matrix_power(&a, 10).to_vec::<f64>(), [1.0, 10.0, 0.0, 1.0]);
    /// assert_eq!(linalg::matrix_power(&a, -2).to_vec::<f64>(), [1.0, -2.0, 0.0, 1.0]);
    /// ```
    matrix_power try_matrix_power(a: &Tensor, k: i64) -> Tensor {
        let (m, n) = sides(a)?;
        if m != n {
            return Err(err!(Shape, "takes square matrices, got shape {:?}", a.shape()));
        }
        let mut power = if k < 0 { try_inv(a)? } else { a.clone() };
        let (mut left, mut product) = (k.unsigned_abs(), None::<Tensor>);
        while left > 0 {
            if left % 2 == 1 {
                product = Some(match product {
                    Some(p) => p.try_matmul(&power)?,
                    None => power.clone(),
                });
            }
            left /= 2;
            if left > 0 {
                power = power.try_matmul(&power)?;
            }
        }
        match product {
            Some(product) => Ok(product),
            None => identity(a, n, n).try_broadcast_to(with_last(a, &[n, n])),
        }
    }

    /// How many singular values are not zero, as i64: larger than `max(m, n)` units of rounding of the greatest. [`matrix_rank_with`] takes
    /// another limit.
    ///
    /// ```
    /// use pullback::{linalg, prelude::*};
    /// assert_eq!(linalg::matrix_rank(&Tensor::ones([3, 4])).to_vec::<i64>(), [1]);
    /// ```
    matrix_rank try_matrix_rank(a: &Tensor) -> Tensor {
        try_matrix_rank_with(a, rounding(a)?)
    }

    /// [`matrix_rank`], with singular values up to `rtol` of the greatest as zero.
    ///
    /// ```
    /// use pullback::{linalg, prelude::*};
    /// assert_eq!(linalg::matrix_rank_with(&Tensor::from([[1.0, 0.0], [0.0, 0.01]]), 0.1).to_vec::<i64>(), [1]);
    /// ```
    matrix_rank_with try_matrix_rank_with(a: &Tensor, rtol: f64) -> Tensor {
        let s = bind(Svd { vectors: false }, &[a])?;
        if s.shape()[s.rank() - 1] == 0 {
            return s.try_sum_axes(-1)?.try_cast(DType::I64);
        }
        let least = s.try_narrow(-1, 0, 1)?.try_mul(rtol)?;
        s.try_gt(&least)?.try_cast(DType::I64)?.try_sum_axes(-1)
    }

    /// A norm of matrices.
    ///
    /// ```
    /// use pullback::{linalg::{self, MatrixNorm}, prelude::*};
    /// let a = Tensor::from([[3.0, 0.0], [0.0, -4.0]]);
    /// let norm = |kind| linalg::matrix_norm(&a, kind).item();
    /// assert!((norm(MatrixNorm::Frobenius) - 5.0).abs() < 1e-14 && (norm(MatrixNorm::Nuclear) - 7.0).abs() < 1e-14);
    /// assert_eq!((norm(MatrixNorm::One), norm(MatrixNorm::Infinity)), (4.0, 4.0));
    /// ```
    #[doc(alias = "norm")]
    matrix_norm try_matrix_norm(a: &Tensor, kind: MatrixNorm) -> Tensor {
        let (m, n) = sides(a)?;
        let empty = m == 0 || n == 0;
        match kind {
            // An empty sum is 0, and so is the greatest of no values.
            _ if empty => a.try_sum_axes([-2, -1]),
            MatrixNorm::Frobenius => {
                let squares = a.try_square()?.try_sum_axes([-2, -1])?;
                // sqrt'(0) is infinite: the zero is led around it.
                let zero = squares.try_eq(0.0)?;
                Tensor::try_where(&zero, 0.0, Tensor::try_where(&zero, 1.0, squares)?.try_sqrt()?)
            }
            MatrixNorm::Nuclear => {
                let s = try_svdvals(a)?;
                let least = s.try_narrow(-1, 0, 1)?.try_mul(rounding(a)?)?;
                let positive = s.try_gt(&least)?;
                Tensor::try_where(&positive, &s, s.detach())?.try_sum_axes(-1)
            }
            MatrixNorm::One => a.try_abs()?.try_sum_axes(-2)?.try_max_axes(-1),
            MatrixNorm::Two => try_svdvals(a)?.try_max_axes(-1),
            MatrixNorm::Infinity => a.try_abs()?.try_sum_axes(-1)?.try_max_axes(-1),
        }
    }

    /// The product of many matrices, in the order of pairs that needs the fewest multiplications. The first may be a row and the last a
    /// column, of one axis each.
    ///
    /// ```
    /// use pullback::{linalg, prelude::*};
    /// let (a, b, c) = (Tensor::ones([10, 100]), Tensor::ones([100, 5]), Tensor::ones([5, 50]));
    /// assert_eq!(linalg::multi_dot(&[&a, &b, &c]).shape(), [10, 50]);
    /// ```
    multi_dot try_multi_dot(factors: &[&Tensor]) -> Tensor {
        let Some((last, first)) = factors.split_last() else {
            return Err(err!(Value, "takes at least one factor"));
        };
        if first.is_empty() {
            return Ok((*last).clone());
        }
        let inner = factors.iter().take(factors.len() - 1).skip(1);
        if inner.into_iter().any(|f| f.rank() != 2) || [first[0], last].iter().any(|f| f.rank() == 0 || f.rank() > 2) {
            let shapes: Vec<_> = factors.iter().map(|f| f.shape()).collect();
            return Err(err!(Shape, "takes matrices, and vectors at the ends, got shapes {shapes:?}; see matmul"));
        }
        // Sides of the products: factor k is lengths[k] x lengths[k + 1].
        let rows = |f: &Tensor| if f.rank() == 2 { f.shape()[0] } else { 1 };
        let outer = if last.rank() == 2 { last.shape()[1] } else { 1 };
        let mut lengths: Vec<usize> = factors.iter().map(|f| rows(f)).chain([outer]).collect();
        if last.rank() == 1 {
            lengths[factors.len() - 1] = last.shape()[0];
        }
        product(factors, &cheapest(&lengths), 0, factors.len() - 1)
    }
}

/// Where to cut each product of factors `i` to `j`, by the cost of all ways.
fn cheapest(lengths: &[usize]) -> Vec<Vec<usize>> {
    let n = lengths.len() - 1;
    let (mut cost, mut cut) = (vec![vec![0f64; n]; n], vec![vec![0; n]; n]);
    for (i, j) in (1..n).flat_map(|span| (0..n - span).map(move |i| (i, i + span))) {
        cost[i][j] = f64::INFINITY;
        for k in i..j {
            let here = [i, k + 1, j + 1].iter().map(|&l| lengths[l] as f64).product::<f64>();
            let all = cost[i][k] + cost[k + 1][j] + here;
            if all < cost[i][j] {
                (cost[i][j], cut[i][j]) = (all, k);
            }
        }
    }
    cut
}

fn product(factors: &[&Tensor], cut: &[Vec<usize>], i: usize, j: usize) -> Result<Tensor> {
    if i == j {
        return Ok(factors[i].clone());
    }
    let k = cut[i][j];
    product(factors, cut, i, k)?.try_matmul(&product(factors, cut, k + 1, j)?)
}
