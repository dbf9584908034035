//! Linear equations of a matrix that may be known by its products alone.

use super::super::custom::{Batching, Custom, pulled, pushed};
use super::Solver;
use crate::Tensor;
use crate::error::{Result, err};
use crate::ops::Aval;
use crate::transform::{from_leaves, vmap};
use std::sync::Arc;

/// A product with a matrix that depends on parameters: from the parameters and a vector.
pub(super) type Product = Arc<dyn Fn(&[Tensor], &[Tensor]) -> Result<Vec<Tensor>> + Send + Sync>;

/// A square matrix that depends on parameters.
#[derive(Clone)]
pub(super) struct Matrix {
    pub times: Product,
    pub transposed_times: Product,
}

impl Matrix {
    pub fn transposed(&self) -> Matrix {
        Matrix { times: self.transposed_times.clone(), transposed_times: self.times.clone() }
    }
}

pub(super) fn types(x: &[Tensor]) -> Vec<Aval> {
    x.iter().map(|t| Aval { dtype: t.dtype(), shape: t.node().shape.clone() }).collect()
}

/// The solution `v` of `A(p) v = b`, differentiable to any order: the derivative of a solution solves an equation of the same
/// matrix, `A dv = db - dA v`.
pub(super) fn solve(a: &Matrix, p: &[Tensor], b: &[Tensor], solver: Solver) -> Result<Vec<Tensor>> {
    let np = p.len();
    let (body, forward, backward) = (a.clone(), a.clone(), a.clone());
    let custom = Custom {
        name: "linear solve",
        inputs: types(&[p, b].concat()),
        outputs: Some(types(b)),
        body: Arc::new(move |all| concrete(&body.times, &all[..np], &all[np..], solver)),
        pullback: Some(Arc::new(move |all, v, g| {
            let p = &all[..np];
            let w = solve(&backward.transposed(), p, g, solver)?;
            let minus: Vec<Tensor> = w.iter().map(|w| -w).collect();
            let gp = pulled(|p| (backward.times)(p, v), p, &minus)?;
            Ok([gp, w].concat())
        })),
        pushforward: Some(Arc::new(move |all, v, t| {
            let da_v = pushed(|p| (forward.times)(p, v), &all[..np], &t[..np])?;
            let rhs: Vec<Tensor> = t[np..].iter().zip(&da_v).map(|(db, dav)| db - dav).collect();
            solve(&forward, &all[..np], &rhs, solver)
        })),
        batching: Batching::OneByOne,
    };
    let inputs = [p, b].concat();
    custom.apply(&inputs.iter().collect::<Vec<_>>())
}

// Numbers ---------------------------------------------------------------------------------------------------------

/// All elements, one after the other.
pub(super) fn numbers(x: &[Tensor]) -> Vec<f64> {
    x.iter().flat_map(|t| t.to_vec::<f64>()).collect()
}

/// Tensors like these with other elements.
pub(super) fn tensors(numbers: &[f64], like: &[Tensor]) -> Vec<Tensor> {
    let mut rest = numbers;
    let next = |t: &Tensor| {
        let (these, others) = rest.split_at(t.numel());
        rest = others;
        Tensor::from_slice(these, t.shape()).cast(t.dtype())
    };
    like.iter().map(next).collect()
}

pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The length of a vector, however large: an overflow would make everything else look small.
pub(super) fn norm(a: &[f64]) -> f64 {
    let largest =
        a.iter().fold(0.0, |m: f64, v| if m.is_nan() || v.is_nan() { f64::NAN } else { m.max(v.abs()) });
    match largest == 0.0 || !largest.is_finite() {
        true => largest,
        false => largest * a.iter().map(|v| (v / largest).powi(2)).sum::<f64>().sqrt(),
    }
}

/// `y + a x`.
pub(super) fn plus(y: &[f64], a: f64, x: &[f64]) -> Vec<f64> {
    y.iter().zip(x).map(|(y, x)| y + a * x).collect()
}

fn concrete(times: &Product, p: &[Tensor], b: &[Tensor], solver: Solver) -> Result<Vec<Tensor>> {
    let product = |v: &[f64]| Ok(numbers(&times(p, &tensors(v, b))?));
    let rhs = numbers(b);
    let v = match solver {
        Solver::Direct => eliminate(dense(times, p, b)?, rhs)?,
        Solver::ConjugateGradients { tolerance, max_iterations } => {
            conjugate_gradients(product, &rhs, tolerance, max_iterations)?
        }
        Solver::Gmres { tolerance, restart, max_iterations } => {
            gmres(product, &rhs, tolerance, restart, max_iterations)?
        }
    };
    Ok(tensors(&v, b))
}

/// The columns of the matrix, computed together.
fn dense(times: &Product, p: &[Tensor], like: &[Tensor]) -> Result<Vec<Vec<f64>>> {
    let n: usize = like.iter().map(Tensor::numel).sum();
    if n == 0 {
        return Ok(Vec::new());
    }
    let unit = Tensor::eye(n);
    let mut start = 0;
    let part = |t: &Tensor| {
        let rows = unit.narrow(1, start, t.numel()).reshape([&[n], t.shape()].concat());
        start += t.numel();
        rows.cast(t.dtype())
    };
    let basis: Vec<Tensor> = like.iter().map(part).collect();
    let failed = std::cell::RefCell::new(None);
    let column = |v: &Vec<Tensor>| {
        times(p, v).unwrap_or_else(|e| {
            failed.replace(Some(e));
            v.clone()
        })
    };
    let columns = vmap(column)(&basis);
    if let Some(e) = failed.take() {
        return Err(e);
    }
    let columns = from_leaves(&columns, columns.iter().map(|c| c.reshape([n, c.numel() / n])));
    let columns = Tensor::try_concat(&columns, 1)?.to_vec::<f64>();
    Ok(columns.chunks(n).map(<[f64]>::to_vec).collect())
}

/// Gaussian elimination with the largest pivot of each column.
fn eliminate(mut columns: Vec<Vec<f64>>, mut b: Vec<f64>) -> Result<Vec<f64>> {
    let n = b.len();
    for k in 0..n {
        let largest = (k..n).max_by(|&i, &j| columns[k][i].abs().total_cmp(&columns[k][j].abs()));
        let pivot = largest.expect("there are rows left");
        let size = columns[k][pivot];
        if size == 0.0 || !size.is_finite() {
            return Err(err!(
                Value,
                "the matrix of derivatives is singular (pivot {size}), so that the solution is not isolated"
            ));
        }
        columns.iter_mut().for_each(|c| c.swap(k, pivot));
        b.swap(k, pivot);
        for i in k + 1..n {
            let factor = columns[k][i] / columns[k][k];
            columns[k..].iter_mut().for_each(|c| c[i] -= factor * c[k]);
            b[i] -= factor * b[k];
        }
    }
    for k in (0..n).rev() {
        b[k] /= columns[k][k];
        let x = b[k];
        (0..k).for_each(|i| b[i] -= columns[k][i] * x);
    }
    Ok(b)
}

fn not_solved(method: &str, iterations: usize, residual: f64) -> crate::Error {
    err!(
        Value,
        "{method} did not converge in {iterations} iterations: the residual is {residual:e} of the right-hand side"
    )
}

/// For symmetric positive definite matrices (Hestenes and Stiefel).
fn conjugate_gradients(
    product: impl Fn(&[f64]) -> Result<Vec<f64>>,
    b: &[f64],
    tolerance: f64,
    max_iterations: usize,
) -> Result<Vec<f64>> {
    let (mut x, mut r) = (vec![0.0; b.len()], b.to_vec());
    let mut d = r.clone();
    let (size, mut rr) = (norm(b), dot(&r, &r));
    for _ in 0..max_iterations {
        if rr.sqrt() <= tolerance * size {
            return Ok(x);
        }
        let ad = product(&d)?;
        let curvature = dot(&d, &ad);
        if curvature <= 0.0 {
            return Err(err!(
                Value,
                "conjugate gradients need a positive definite matrix, but found the curvature {curvature:e}; use \
                 Solver::Gmres or Solver::Direct"
            ));
        }
        let step = rr / curvature;
        x = plus(&x, step, &d);
        r = plus(&r, -step, &ad);
        let before = std::mem::replace(&mut rr, dot(&r, &r));
        d = plus(&r, rr / before, &d);
    }
    if rr.sqrt() <= tolerance * size {
        return Ok(x);
    }
    Err(not_solved("conjugate gradients", max_iterations, rr.sqrt() / size))
}

/// For any matrix: the smallest residual in a Krylov space (Saad and Schultz), which is kept orthogonal by modified
/// Gram-Schmidt and started again when it has `restart` vectors.
fn gmres(
    product: impl Fn(&[f64]) -> Result<Vec<f64>>,
    b: &[f64],
    tolerance: f64,
    restart: usize,
    max_iterations: usize,
) -> Result<Vec<f64>> {
    let size = norm(b);
    let mut x = vec![0.0; b.len()];
    let mut done = 0;
    loop {
        let r = plus(b, -1.0, &product(&x)?);
        let beta = norm(&r);
        if beta <= tolerance * size {
            return Ok(x);
        }
        if done >= max_iterations || !beta.is_finite() {
            return Err(not_solved("GMRES", done, beta / size));
        }
        let mut space = vec![plus(&vec![0.0; b.len()], 1.0 / beta, &r)];
        // The Hessenberg matrix by columns, made triangular by rotations as it grows, and the right-hand side with it.
        let (mut h, mut turns, mut rhs) = (Vec::<Vec<f64>>::new(), Vec::<(f64, f64)>::new(), vec![beta]);
        for k in 0..restart.clamp(1, b.len()) {
            let mut w = product(&space[k])?;
            let mut column = Vec::with_capacity(k + 2);
            for v in &space {
                column.push(dot(v, &w));
                w = plus(&w, -column[column.len() - 1], v);
            }
            let below = norm(&w);
            for (i, (c, s)) in turns.iter().enumerate() {
                (column[i], column[i + 1]) =
                    (c * column[i] + s * column[i + 1], c * column[i + 1] - s * column[i]);
            }
            let length = column[k].hypot(below);
            if length == 0.0 {
                return Err(err!(Value, "the matrix of derivatives is singular"));
            }
            let (c, s) = (column[k] / length, below / length);
            column[k] = length;
            h.push(column);
            turns.push((c, s));
            rhs.push(-s * rhs[k]);
            rhs[k] *= c;
            done += 1;
            if rhs[k + 1].abs() <= tolerance * size || below == 0.0 {
                break;
            }
            space.push(plus(&vec![0.0; b.len()], 1.0 / below, &w));
        }
        let mut y = rhs;
        for k in (0..h.len()).rev() {
            y[k] /= h[k][k];
            let v = y[k];
            (0..k).for_each(|i| y[i] -= h[k][i] * v);
            x = plus(&x, v, &space[k]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(a: &[[f64; 3]; 3], v: &[f64]) -> Vec<f64> {
        a.iter().map(|row| dot(row, v)).collect()
    }

    #[test]
    fn all_methods_solve_the_same_equation() {
        let a = [[4.0, 1.0, -0.5], [1.0, 3.0, 0.25], [-0.5, 0.25, 2.0]];
        let b = [1.0, -2.0, 3.0];
        let columns = (0..3).map(|j| a.iter().map(|row| row[j]).collect()).collect();
        let direct = eliminate(columns, b.to_vec()).unwrap();
        let product = |v: &[f64]| Ok(times(&a, v));
        let cg = conjugate_gradients(product, &b, 1e-14, 10).unwrap();
        let by_gmres = gmres(product, &b, 1e-14, 3, 10).unwrap();
        let restarted = gmres(product, &b, 1e-13, 2, 100).unwrap();
        for x in [&direct, &cg, &by_gmres, &restarted] {
            assert!(norm(&plus(&times(&a, x), -1.0, &b)) < 1e-12, "{x:?}");
        }
    }

    #[test]
    fn what_has_no_solution_is_refused() {
        let singular = vec![vec![1.0, 2.0], vec![2.0, 4.0]];
        assert!(eliminate(singular, vec![1.0, 1.0]).unwrap_err().to_string().contains("singular"));
        let indefinite = |v: &[f64]| Ok(vec![v[0], -v[1]]);
        let e = conjugate_gradients(indefinite, &[0.0, 1.0], 1e-10, 10).unwrap_err();
        assert!(e.to_string().contains("positive definite"), "{e}");
        let e = gmres(indefinite, &[1.0, 2.0], 1e-10, 1, 5).unwrap_err();
        assert!(e.to_string().contains("did not converge"), "{e}");
    }

    #[test]
    fn pivots_are_chosen() {
        // Without exchange of rows this divides by zero.
        assert_eq!(eliminate(vec![vec![0.0, 1.0], vec![1.0, 0.0]], vec![2.0, 3.0]).unwrap(), [3.0, 2.0]);
    }
}
