//! Reverse mode: `vjp`, and the gradient of a scalar function as its special case.

use super::Tree;
use crate::DType;
use crate::error::{Result, err, or_panic};
use crate::location::{caller, entered};
use crate::tape::{Level, Seeds, leaf_cotangents, standing_in};
use crate::tensor::{Link, Tensor, check_real};
use std::panic::Location;

/// The inputs of a reverse-mode transform, as leaves of its level.
struct Inputs<X> {
    level: Level,
    tree: X,
}

impl<X: Tree> Inputs<X> {
    fn new(x: &X, name: &'static str, location: &'static Location<'static>) -> Result<Inputs<X>> {
        let names = || x.names();
        if let Some(k) = x.leaves().iter().position(|t| !t.dtype().is_differentiable()) {
            let (leaf, dtype) = (&names()[k], x.leaves()[k].dtype());
            let place = if leaf.is_empty() { "the input".into() } else { format!("the input `{leaf}`") };
            let e = err!(
                Gradient,
                "{place} is {dtype}, and only floats and complex numbers have a gradient; capture it in the closure instead"
            );
            return Err(e.in_op(name).at(location));
        }
        let level = Level::new();
        let tree = x.map(&mut |t| t.leaf(level.id()));
        Ok(Inputs { level, tree })
    }

    /// Cotangents of the inputs from those of outputs; zeros where there is no connection.
    fn pull(&self, seeds: Seeds) -> Result<X> {
        let mut found = leaf_cotangents(self.level.id(), seeds)?;
        Ok(self.tree.map(&mut |t| found.remove(&t.node().id).unwrap_or_else(|| t.zeros_like())))
    }

    fn reaches(&self, y: &Tensor) -> bool {
        y.node().deps.contains(self.level.id())
    }
}

/// Integers and truth values do not change with a small step: there is nothing to differentiate.
pub(super) fn check_differentiable(result: DType) -> Result<()> {
    if result.is_differentiable() {
        return Ok(());
    }
    Err(err!(
        Gradient,
        "the result is {result}, and only floats and complex numbers have derivatives; no gradient flows through comparisons, argmax and casts to integers"
    ))
}

/// Of several results one at least must have a derivative; the others need none.
pub(super) fn check_some_differentiable(results: &[&Tensor]) -> Result<()> {
    match results.iter().any(|t| t.dtype().is_differentiable()) {
        true => Ok(()),
        false => results.first().map_or(Ok(()), |t| check_differentiable(t.dtype())),
    }
}

/// The cotangents of the inputs of `f` at `x`, for the pullback of another transform: if that is `backward`'s, `no_grad` hides from this one
/// what it hides from that.
pub(crate) fn pulled_for<X: Tree, Y: Tree>(
    ambient: bool,
    f: impl FnOnce(&X) -> Y,
    x: &X,
    g: &Y,
) -> Result<X> {
    let inputs = Inputs::new(x, "vjp", caller())?;
    let run = || {
        let y = f(&inputs.tree);
        let reached = y.leaves().into_iter().zip(g.leaves()).filter(|(y, _)| inputs.reaches(y));
        let seeds = reached.map(|(y, g)| (y.link(), g.clone())).collect();
        drop(y);
        inputs.pull(seeds)
    };
    if ambient { standing_in(inputs.level.id(), run) } else { run() }
}

/// The value, the gradient and the auxiliary output of a function of a tree.
fn run<X: Tree, A: Tree>(
    f: impl Fn(&X) -> (Tensor, A),
    x: &X,
    name: &'static str,
    location: &'static Location<'static>,
) -> Result<(Tensor, X, A)> {
    let _entered = entered(location);
    // A number is a tree without leaves, and would come back as it is: better no gradient than that one.
    if x.leaves().is_empty() {
        let e = err!(
            Gradient,
            "the input has no tensors; to differentiate with respect to a number, put it into a tensor"
        );
        return Err(e.in_op(name).at(location));
    }
    let inputs = Inputs::new(x, name, location)?;
    let (y, aux) = f(&inputs.tree);
    check_differentiable(y.dtype())
        .and_then(|()| check_real(y.dtype()))
        .map_err(|e| e.in_op(name).at(location))?;
    if y.numel() != 1 {
        let e = err!(
            Gradient,
            "needs a scalar function, but it returned shape {:?}; sum it, or use vjp",
            y.shape()
        );
        return Err(e.in_op(name).at(location));
    }
    let value = y.without(inputs.level.id());
    let seeds = if inputs.reaches(&y) {
        Seeds::from_iter([(y.link(), value.detach().ones_like())])
    } else {
        Seeds::new()
    };
    let kept = aux.map(&mut |t| t.without(inputs.level.id()));
    drop((y, aux)); // The walk is the last to hold the graph, and frees it as it goes.
    let g = inputs.pull(seeds)?;
    Ok((value, g, kept))
}

/// The gradient of a scalar function: a function of the same argument that returns the gradient in its type.
///
/// Nests to any order, and combines with every other transform. It touches no [`grad`](Tensor::grad).
///
/// ```
/// use pullback::prelude::*;
/// let f = |x: &Tensor| x.square().exp();
/// let x = Tensor::scalar(1.0);
/// assert!((grad(f)(&x).item() - 2.0 * 1f64.exp()).abs() < 1e-12);
/// assert!((grad(grad(f))(&x).item() - 6.0 * 1f64.exp()).abs() < 1e-11);
/// ```
#[track_caller]
pub fn grad<X: Tree, F: Fn(&X) -> Tensor>(f: F) -> impl Fn(&X) -> X {
    let location = Location::caller();
    move |x| or_panic(run(|x| (f(x), ()), x, "grad", location)).1
}

/// Like [`grad`], with the value of the function as well.
///
/// ```
/// use pullback::prelude::*;
/// let (y, g) = value_and_grad(|x: &Tensor| x.square().sum())(&Tensor::from([1.0, 2.0]));
/// assert_eq!(y.item(), 5.0);
/// assert_eq!(g.to_vec::<f64>(), [2.0, 4.0]);
/// ```
#[track_caller]
pub fn value_and_grad<X: Tree, F: Fn(&X) -> Tensor>(f: F) -> impl Fn(&X) -> (Tensor, X) {
    let location = Location::caller();
    move |x| {
        let (y, g, ()) = or_panic(run(|x| (f(x), ()), x, "value_and_grad", location));
        (y, g)
    }
}

/// [`value_and_grad`] of a function that returns something else besides: the value, the gradient, and the rest, which is not
/// differentiated.
///
/// ```
/// use pullback::{prelude::*, value_and_grad_aux};
/// let f = |x: &Tensor| {
///     let y = x.square();
///     (y.sum(), y)
/// };
/// let (value, g, squares) = value_and_grad_aux(f)(&Tensor::from([1.0, 2.0]));
/// assert_eq!((value.item(), g.to_vec::<f64>()), (5.0, vec![2.0, 4.0]));
/// assert_eq!(squares.to_vec::<f64>(), [1.0, 4.0]);
/// ```
#[track_caller]
pub fn value_and_grad_aux<X: Tree, A: Tree, F: Fn(&X) -> (Tensor, A)>(f: F) -> impl Fn(&X) -> (Tensor, X, A) {
    let location = Location::caller();
    move |x| or_panic(run(&f, x, "value_and_grad_aux", location))
}

/// The value of a function and its pullback: a function from cotangents of the output to cotangents of the input, which
/// can be called again and again. It keeps what the pullback reads for as long as it lives.
///
/// ```
/// use pullback::prelude::*;
/// let (y, pull) = vjp(|x: &Tensor| x.sin(), &Tensor::from([0.0, 1.0]));
/// assert_eq!(y.shape(), [2]);
/// assert_eq!(pull(&Tensor::from([1.0, 0.0])).to_vec::<f64>(), [1.0, 0.0]);
/// ```
///
/// Several cotangents are pulled back at once by [`vmap`](crate::vmap):
///
/// ```
/// use pullback::prelude::*;
/// let (_, pull) = vjp(|x: &Tensor| x.square(), &Tensor::from([1.0, 2.0]));
/// let gs = Tensor::from([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]);
/// assert_eq!(vmap(pull)(&gs).to_vec::<f64>(), [2.0, 0.0, 0.0, 4.0, 2.0, 4.0]);
/// ```
#[track_caller]
pub fn vjp<X: Tree, Y: Tree, F: FnOnce(&X) -> Y>(f: F, x: &X) -> (Y, impl Fn(&Y) -> X + use<X, Y, F>) {
    let location = Location::caller();
    let _entered = entered(location);
    let inputs = or_panic(Inputs::new(x, "vjp", location));
    let y = f(&inputs.tree);
    or_panic(check_some_differentiable(&y.leaves()).map_err(|e| e.in_op("vjp").at(location)));
    let value = y.map(&mut |t| t.without(inputs.level.id()));
    let outputs: Vec<(Option<Link>, Tensor)> =
        y.leaves().iter().map(|t| (inputs.reaches(t).then(|| t.link()), t.detach().zeros_like())).collect();
    let pullback = move |g: &Y| {
        let _entered = entered(location);
        let gs = g.leaves();
        if gs.len() != outputs.len() {
            let e = err!(
                Gradient,
                "the function returned {} tensors, the cotangent has {}",
                outputs.len(),
                gs.len()
            );
            or_panic(Err(e.in_op("vjp").at(location)))
        }
        let mut seeds = Seeds::new();
        for (k, ((link, like), g)) in outputs.iter().zip(gs).enumerate() {
            if g.shape() != like.shape() || g.dtype() != like.dtype() {
                let e = err!(
                    Gradient,
                    "output {k} is {} {:?}, but its cotangent is {} {:?}",
                    like.dtype(),
                    like.shape(),
                    g.dtype(),
                    g.shape()
                );
                or_panic(Err(e.in_op("vjp").at(location)))
            }
            seeds.extend(link.as_ref().map(|l| (l.clone(), g.clone())));
        }
        or_panic(inputs.pull(seeds))
    };
    (value, pullback)
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::{gauss_newton_vp, taylor, value_and_grad_aux};
    use std::panic::{AssertUnwindSafe, catch_unwind};

    /// Integers carry no gradient: a result of them is an error wherever it is differentiated, as it is for `backward`.
    #[test]
    fn an_integer_result_is_an_error_in_every_transform() {
        let x = Tensor::from([1.0, 3.0, 2.0]);
        let best = |x: &Tensor| x.argmax(0);
        let sum = |x: &Tensor| x.cast(DType::I64).sum();
        let both = |x: &Tensor| (x.argmax(0), x.sum());
        type Failing<'a> = Box<dyn Fn() + 'a>;
        let failing: [(&str, Failing); 13] = [
            ("grad", Box::new(|| drop(grad(best)(&x)))),
            ("grad", Box::new(|| drop(grad(sum)(&x)))),
            ("value_and_grad", Box::new(|| drop(value_and_grad(best)(&x)))),
            ("value_and_grad_aux", Box::new(|| drop(value_and_grad_aux(both)(&x)))),
            ("grad", Box::new(|| drop(grad(|_: &Tensor| Tensor::from([2]).sum())(&x)))),
            ("hvp", Box::new(|| drop(hvp(best, &x, &x)))),
            ("hessian", Box::new(|| drop(hessian(best)(&x)))),
            ("jacobian", Box::new(|| drop(jacobian(best)(&x)))),
            ("jacfwd", Box::new(|| drop(jacfwd(best)(&x)))),
            ("jacrev", Box::new(|| drop(jacrev(best)(&x)))),
            ("taylor", Box::new(|| drop(taylor(best, &x, &x, 2)))),
            ("grad", Box::new(|| drop(compile(grad(best)).call(&x)))),
            ("gauss_newton_vp", Box::new(|| drop(gauss_newton_vp(|x: &Tensor| x.sin(), best, &x, &x)))),
        ];
        for (name, f) in failing {
            let e = catch_unwind(AssertUnwindSafe(f)).expect_err(name);
            let text = e.downcast_ref::<String>().cloned().unwrap_or_default();
            assert!(text.contains("i64") && text.contains("only floats"), "{name}: {text}");
        }
        // What is not differentiated may be of any type.
        assert_eq!(value_and_grad_aux(|x: &Tensor| (x.sum(), x.argmax(0)))(&x).2.to_vec::<i64>(), [1]);
        assert_eq!(jvp(both, &x, &x).0.0.to_vec::<i64>(), [1]);
    }
}
