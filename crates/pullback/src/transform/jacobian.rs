//! Whole matrices of derivatives, and products with second derivatives.

use super::{Tree, grad, jvp, vjp, vmap};
use crate::Tensor;
use crate::error::{err, or_panic};
use crate::location::entered;
use std::panic::Location;

/// The Jacobian of a function, of shape `output.shape ++ input.shape`, by rows or by columns, whichever are fewer.
///
/// All rows (or columns) are computed together, as lanes of one pass.
///
/// ```
/// use pullback::prelude::*;
/// let f = |x: &Tensor| Tensor::stack(&[x.get(0) * x.get(1), x.get(0).sin(), x.get(1).exp()], 0);
/// let j = jacobian(f)(&Tensor::from([2.0, 0.0]));
/// assert_eq!(j.shape(), [3, 2]);
/// assert_eq!(j.to_vec::<f64>(), [0.0, 2.0, 2f64.cos(), 0.0, 0.0, 1.0]);
/// ```
#[track_caller]
pub fn jacobian<F: Fn(&Tensor) -> Tensor>(f: F) -> impl Fn(&Tensor) -> Tensor {
    let location = Location::caller();
    move |x| {
        let _entered = entered(location);
        let (y, pull) = vjp(&f, x);
        if y.numel() <= x.numel() { rows(&y, x, pull, location) } else { columns(&f, x, location) }
    }
}

/// [`jacobian`] by columns: forward mode along every input, which suits few inputs.
///
/// ```
/// use pullback::prelude::*;
/// let j = jacfwd(|t: &Tensor| Tensor::stack(&[t.cos(), t.sin()], 0))(&Tensor::scalar(0.0));
/// assert_eq!(j.to_vec::<f64>(), [0.0, 1.0]);
/// ```
#[track_caller]
pub fn jacfwd<F: Fn(&Tensor) -> Tensor>(f: F) -> impl Fn(&Tensor) -> Tensor {
    let location = Location::caller();
    move |x| {
        let _entered = entered(location);
        columns(&f, x, location)
    }
}

/// [`jacobian`] by rows: reverse mode from every output, which suits few outputs.
///
/// ```
/// use pullback::prelude::*;
/// let j = jacrev(|x: &Tensor| x.sum().unsqueeze(0))(&Tensor::from([1.0, 2.0, 3.0]));
/// assert_eq!(j.shape(), [1, 3]);
/// ```
#[track_caller]
pub fn jacrev<F: Fn(&Tensor) -> Tensor>(f: F) -> impl Fn(&Tensor) -> Tensor {
    let location = Location::caller();
    move |x| {
        let _entered = entered(location);
        let (y, pull) = vjp(&f, x);
        rows(&y, x, pull, location)
    }
}

fn rows(
    y: &Tensor,
    x: &Tensor,
    pull: impl Fn(&Tensor) -> Tensor,
    location: &'static Location<'static>,
) -> Tensor {
    let shape = [y.shape(), x.shape()].concat();
    match basis(y, "output", location) {
        Some(unit) => vmap(pull)(&unit).reshape(shape),
        None => Tensor::zeros(shape).cast(x.dtype()),
    }
}

fn columns(f: &impl Fn(&Tensor) -> Tensor, x: &Tensor, location: &'static Location<'static>) -> Tensor {
    let Some(unit) = basis(x, "input", location) else {
        let y = f(x);
        return Tensor::zeros([y.shape(), x.shape()].concat()).cast(y.dtype());
    };
    let columns = vmap(|t: &Tensor| jvp(f, x, t).1)(&unit);
    let shape = [&columns.shape()[1..], x.shape()].concat();
    columns.reshape([x.numel(), columns.numel() / x.numel()]).t().reshape(shape)
}

/// The unit vectors of the space of `like`, one after the other; none if it has no elements.
fn basis(like: &Tensor, what: &str, location: &'static Location<'static>) -> Option<Tensor> {
    if !like.dtype().is_float() {
        let advice = match like.dtype().is_complex() {
            true => {
                "; take it of the real and the imaginary part (Tensor::complex, real, imag), for it is linear over the reals only"
            }
            false => "",
        };
        let e = err!(Gradient, "the {what} is {}, and only floats have a Jacobian{advice}", like.dtype());
        or_panic(Err(e.in_op("jacobian").at(location)))
    }
    let n = like.numel();
    let shape = [&[n], like.shape()].concat();
    (n > 0).then(|| Tensor::eye(n).cast(like.dtype()).reshape(shape))
}

/// The matrix of second derivatives of a scalar function, of shape `input.shape ++ input.shape`: forward mode over the gradient.
///
/// ```
/// use pullback::prelude::*;
/// let h = hessian(|x: &Tensor| x.get(0).square() * x.get(1))(&Tensor::from([1.0, 3.0]));
/// assert_eq!(h.to_vec::<f64>(), [6.0, 2.0, 2.0, 0.0]);
/// ```
#[track_caller]
pub fn hessian<F: Fn(&Tensor) -> Tensor>(f: F) -> impl Fn(&Tensor) -> Tensor {
    jacfwd(grad(f))
}

/// The product of the Hessian of a scalar function with a vector, without the matrix: the gradient's derivative along the vector,
/// at the cost of a few gradients.
///
/// ```
/// use pullback::prelude::*;
/// let f = |(a, b): &(Tensor, Tensor)| a.square() * b;
/// let (x, v) = ((Tensor::scalar(1.0), Tensor::scalar(3.0)), (Tensor::scalar(1.0), Tensor::scalar(0.0)));
/// let (ha, hb) = hvp(f, &x, &v);
/// assert_eq!((ha.item(), hb.item()), (6.0, 2.0));
/// ```
#[must_use]
#[track_caller]
pub fn hvp<X: Tree>(f: impl Fn(&X) -> Tensor, x: &X, v: &X) -> X {
    jvp(grad(f), x, v).1
}

/// The product of the Gauss-Newton matrix `Jᵀ H J` with a vector, where `J` is the Jacobian of `f` and `H` the Hessian of the
/// loss at its output: the Hessian of `loss(f(x))` without the curvature of `f`, and so never indefinite for a convex loss.
///
/// ```
/// use pullback::{gauss_newton_vp, prelude::*};
/// // Where f is linear, it is the Hessian itself.
/// let (f, loss) = (|x: &Tensor| x * 3.0, |y: &Tensor| y.square().sum());
/// let (x, v) = (Tensor::from([1.0, 2.0]), Tensor::from([1.0, -1.0]));
/// assert_eq!(gauss_newton_vp(f, loss, &x, &v).to_vec::<f64>(), [18.0, -18.0]);
/// ```
#[must_use]
#[track_caller]
pub fn gauss_newton_vp<X: Tree, Y: Tree>(
    f: impl Fn(&X) -> Y,
    loss: impl Fn(&Y) -> Tensor,
    x: &X,
    v: &X,
) -> X {
    let (y, jv) = jvp(&f, x, v);
    let hjv = hvp(loss, &y, &jv);
    vjp(&f, x).1(&hjv)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Graph, trace_leaves};
    use crate::ops::Aval;
    use crate::{DType, Key};
    use std::cell::Cell;

    fn graph(f: impl Fn(&Tensor) -> Tensor, x: &Tensor) -> Graph {
        let aval = Aval { dtype: x.dtype(), shape: x.node().shape.clone() };
        trace_leaves(|leaves| Ok(vec![f(&leaves[0])]), vec![aval]).unwrap()
    }

    /// How many operations a function does.
    fn operations(f: impl Fn(&Tensor) -> Tensor, x: &Tensor) -> usize {
        graph(f, x).len()
    }

    /// How many elements all operations of a function compute together.
    fn work(f: impl Fn(&Tensor) -> Tensor, x: &Tensor) -> usize {
        graph(f, x).steps.iter().flat_map(|s| &s.avals).map(|a| a.shape.numel()).sum()
    }

    #[test]
    fn a_jacobian_costs_as_many_passes_as_its_smaller_side_is_long() {
        for (n, m) in [(4, 60), (60, 4)] {
            let [a, b] = Key::new(1).split();
            let (a, b) = (Tensor::randn(a, [8, n], DType::F64), Tensor::randn(b, [m, 8], DType::F64));
            let calls = Cell::new(0);
            let f = |x: &Tensor| {
                calls.set(calls.get() + 1);
                b.matmul(&a.matmul(x).tanh()).sin()
            };
            let x = Tensor::linspace(-1.0, 1.0, n);
            let one = match n < m {
                true => work(|x| jvp(f, x, &Tensor::ones([n])).1, &x),
                false => work(|x| vjp(f, x).1(&Tensor::ones([m])), &x),
            };
            calls.set(0);
            let all = work(jacobian(f), &x);
            assert!(calls.get() <= 2, "{} evaluations of the function", calls.get());
            let passes = n.min(m) + 2; // with the values
            assert!(all <= passes * one, "{n} -> {m}: {all} elements, {one} for a pass");
            let other = if n < m { work(jacrev(f), &x) } else { work(jacfwd(f), &x) };
            assert!(other > 2 * all, "{n} -> {m}: {all} elements, {other} by the longer side");
        }
    }

    #[test]
    fn a_hessian_vector_product_costs_at_most_four_gradients() {
        let [a, b, c] = Key::new(1).split();
        let w = Tensor::randn(a, [4, 4], DType::F64);
        let (x, v) = (Tensor::randn(b, [4], DType::F64), Tensor::randn(c, [4], DType::F64));
        let network = |x: &Tensor| {
            let mut h = x.clone();
            for _ in 0..5 {
                h = w.matmul(&h).tanh();
            }
            h.square().sum()
        };
        let smooth = |x: &Tensor| (x.sin() * x.exp()).softmax(0).ln().sum() / (x.square().sum() + 1.0);
        for f in [&network as &dyn Fn(&Tensor) -> Tensor, &smooth] {
            let gradient = operations(grad(f), &x);
            let product = operations(|x| hvp(f, x, &v), &x);
            assert!(product <= 4 * gradient, "{product} operations against {gradient}");
        }
    }
}
