//! Solutions of equations, differentiated by the implicit function theorem instead of through the iterations that found them.
//!
//! Where `r(p, x) = 0` defines `x` as a function of `p`, its derivative is `dx = -(∂r/∂x)⁻¹ (∂r/∂p) dp`: one linear
//! equation, in either mode, at any order, and however many iterations were needed.
//!
//! ```
//! use pullback::prelude::*;
//! // x² = p
//! let root = |p: &Tensor| implicit::root(|p: &Tensor, x: &Tensor| x.square() - p, p, &Tensor::scalar(1.0));
//! let p = Tensor::scalar(4.0);
//! assert!((root(&p).item() - 2.0).abs() < 1e-12);
//! assert!((grad(root)(&p).item() - 0.25).abs() < 1e-12);
//! ```
//!
//! The function is traced once, so it may borrow, and tensors that it captures get their derivatives; it may not branch
//! on values. `no_grad` in it hides nothing from `backward`, which solves the equation that the function defines; `stop_gradient` does.

mod iterate;
mod linear;

use super::checkpoint::avals;
use super::custom::{Batching, Custom, pulled, pushed, zeros};
use super::{Tree, from_leaves};
use crate::Tensor;
use crate::error::{Result, err, or_panic};
use crate::graph::{Graph, trace_leaves};
use crate::location::{caller, with_caller};
use linear::{Matrix, solve};
use std::sync::Arc;

/// How the linear equations are solved, of the derivatives and of the steps of Newton's method.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Solver {
    /// By the matrix itself and Gaussian elimination: n³ for n unknowns.
    Direct,
    /// By products with the matrix, which must be symmetric and positive definite, as the Hessian at a minimum is.
    ConjugateGradients {
        /// The residual to reach, relative to the right-hand side.
        tolerance: f64,
        /// The most products to form.
        max_iterations: usize,
    },
    /// By products with the matrix, whatever it is.
    Gmres {
        /// The residual to reach, relative to the right-hand side.
        tolerance: f64,
        /// How many vectors to keep before starting again from the best solution so far.
        restart: usize,
        /// The most products to form.
        max_iterations: usize,
    },
}

/// How to solve. The functions of this module take the default.
///
/// ```
/// use pullback::{implicit::{Options, Solver}, prelude::*};
/// let krylov = Solver::Gmres { tolerance: 1e-12, restart: 20, max_iterations: 100 };
/// let options = Options { solver: krylov, ..Options::default() };
/// let p = Tensor::from([1.0, 8.0]);
/// let x = options.root(|p: &Tensor, x: &Tensor| x * x * x - p, &p, &Tensor::ones([2]));
/// assert!((x.item_at([1]) - 2.0).abs() < 1e-12);
/// ```
#[derive(Clone, Debug)]
pub struct Options {
    /// For the linear equations.
    pub solver: Solver,
    /// The last step must be smaller than this, relative to one plus the size of the solution; by default 1e-12, or 1e-6 for f32.
    pub tolerance: Option<f64>,
    /// The most steps to take; by default 1000.
    pub max_iterations: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options { solver: Solver::Direct, tolerance: None, max_iterations: 1000 }
    }
}

/// The `x` near `x0` with `f(params, x) = 0`, by Newton's method with shortened steps. See [`Options::root`].
#[track_caller]
pub fn root<P: Tree, X: Tree>(f: impl Fn(&P, &X) -> X, params: &P, x0: &X) -> X {
    Options::default().root(f, params, x0)
}

/// The `x` with `f(params, x) = x` that repeating `f` from `x0` leads to. See [`Options::fixed_point`].
///
/// ```
/// use pullback::prelude::*;
/// // x = (x + p / x) / 2, Heron's way to a square root
/// let heron = |p: &Tensor, x: &Tensor| (x + p / x) * 0.5;
/// let sqrt = |p: &Tensor| implicit::fixed_point(heron, p, &Tensor::scalar(1.0));
/// assert!((grad(sqrt)(&Tensor::scalar(9.0)).item() - 1.0 / 6.0).abs() < 1e-12);
/// ```
#[track_caller]
pub fn fixed_point<P: Tree, X: Tree>(f: impl Fn(&P, &X) -> X, params: &P, x0: &X) -> X {
    Options::default().fixed_point(f, params, x0)
}

/// The `x` near `x0` where `f(params, x)` is smallest, by Newton's method with a line search. See [`Options::argmin`].
///
/// ```
/// use pullback::prelude::*;
/// // The minimum of (x - p)² + x² / 2 is at 2 p / 3.
/// let f = |p: &Tensor, x: &Tensor| (x - p).square() + x.square() * 0.5;
/// let best = |p: &Tensor| implicit::argmin(f, p, &Tensor::scalar(0.0));
/// assert!((grad(best)(&Tensor::scalar(5.0)).item() - 2.0 / 3.0).abs() < 1e-12);
/// ```
#[track_caller]
pub fn argmin<P: Tree, X: Tree>(f: impl Fn(&P, &X) -> Tensor, params: &P, x0: &X) -> X {
    Options::default().argmin(f, params, x0)
}

/// A function of parameters and unknowns, over lists of tensors.
type TwoFn = Arc<dyn Fn(&[Tensor], &[Tensor]) -> Result<Vec<Tensor>> + Send + Sync>;

/// Finds the unknowns from the parameters and a first guess.
type Search = Arc<dyn Fn(&[Tensor], &[Tensor]) -> Result<Vec<Tensor>> + Send + Sync>;

impl Options {
    /// [`root`] with these options.
    #[track_caller]
    pub fn root<P: Tree, X: Tree>(&self, f: impl Fn(&P, &X) -> X, params: &P, x0: &X) -> X {
        self.run("root", f, params, x0, |f, options| {
            let residual = f.clone();
            (f, Arc::new(move |p, x| iterate::newton(&residual, p, x, &options)))
        })
    }

    /// [`root`] with a method of the user's that finds it, from the parameters and the first guess. It owns what it captures, and is
    /// not differentiated: what it returns is taken to be the root.
    ///
    /// ```
    /// use pullback::{implicit::Options, prelude::*};
    /// let f = |p: &Tensor, x: &Tensor| x.exp() - p;
    /// let known = |p: &Tensor, _: &Tensor| p.ln();
    /// let root = |p: &Tensor| Options::default().root_by(known, f, p, &Tensor::scalar(0.0));
    /// assert!((grad(root)(&Tensor::scalar(4.0)).item() - 0.25).abs() < 1e-12);
    /// ```
    #[track_caller]
    pub fn root_by<P, X>(
        &self,
        search: impl Fn(&P, &X) -> X + Send + Sync + 'static,
        f: impl Fn(&P, &X) -> X,
        params: &P,
        x0: &X,
    ) -> X
    where
        P: Tree + Send + Sync + 'static,
        X: Tree + Send + Sync + 'static,
    {
        let like = (params.map(&mut |_| Tensor::scalar(0.0)), x0.map(&mut |_| Tensor::scalar(0.0)));
        self.run("root", f, params, x0, |f, _| {
            let found = move |p: &[Tensor], x: &[Tensor]| {
                // What the function captured comes after the parameters.
                let y = search(
                    &from_leaves(&like.0, p.iter().cloned()),
                    &from_leaves(&like.1, x.iter().cloned()),
                );
                Ok(y.leaves().into_iter().cloned().collect())
            };
            (f, Arc::new(found))
        })
    }

    /// [`fixed_point`] with these options.
    #[track_caller]
    pub fn fixed_point<P: Tree, X: Tree>(&self, f: impl Fn(&P, &X) -> X, params: &P, x0: &X) -> X {
        self.run("fixed_point", f, params, x0, |f, options| {
            let step = f.clone();
            let residual =
                move |p: &[Tensor], x: &[Tensor]| Ok(f(p, x)?.iter().zip(x).map(|(y, x)| y - x).collect());
            (Arc::new(residual), Arc::new(move |p, x| iterate::repeat(&step, p, x, &options)))
        })
    }

    /// [`argmin`](fn@argmin) with these options.
    #[track_caller]
    pub fn argmin<P: Tree, X: Tree>(&self, f: impl Fn(&P, &X) -> Tensor, params: &P, x0: &X) -> X {
        self.run("argmin", f, params, x0, |f, options| {
            let objective = f.clone();
            let slope: TwoFn = Arc::new(move |p, x| {
                let y = f(p, x)?;
                let one = y[0].detach().ones_like();
                pulled(|x| f(p, x), x, &[one])
            });
            let gradient = slope.clone();
            let search =
                move |p: &[Tensor], x: &[Tensor]| iterate::minimize(&objective, &gradient, p, x, &options);
            (slope, Arc::new(search))
        })
    }

    /// Traces `f`, and applies what `plan` makes of it: the equation, and the way to its solution.
    #[track_caller]
    fn run<P: Tree, X: Tree, Y: Tree>(
        &self,
        name: &'static str,
        f: impl Fn(&P, &X) -> Y,
        params: &P,
        x0: &X,
        plan: impl FnOnce(TwoFn, Options) -> (TwoFn, Search),
    ) -> X {
        let location = caller();
        let solved = with_caller(location, || {
            let (graph, captured) = traced(name, &f, params, x0)?;
            let (np, nx) = (params.leaves().len(), x0.leaves().len());
            // Parameters, with what was captured after them.
            let p: Vec<Tensor> = params.leaves().into_iter().chain(&captured).cloned().collect();
            let x: Vec<Tensor> = x0.leaves().into_iter().cloned().collect();
            let f = move |p: &[Tensor], x: &[Tensor]| {
                debug_assert_eq!(x.len(), nx);
                graph.eval(&[&p[..np], x, &p[np..]].concat())
            };
            let (residual, search) = plan(Arc::new(f), self.clone());
            equation(name, residual, search, &p, &x, self.solver)
        });
        from_leaves(x0, or_panic(solved.map_err(|e| e.in_op(name).at(location))))
    }
}

/// The function as a program of parameters, unknowns and what it captured.
fn traced<P: Tree, X: Tree, Y: Tree>(
    name: &str,
    f: &impl Fn(&P, &X) -> Y,
    p: &P,
    x: &X,
) -> Result<(Graph, Vec<Tensor>)> {
    if let Some(t) = x.leaves().into_iter().find(|t| !t.dtype().is_float()) {
        return Err(err!(Gradient, "the unknowns must be floats, not {}", t.dtype()));
    }
    let np = p.leaves().len();
    let run = |leaves: &[Tensor]| {
        let y =
            f(&from_leaves(p, leaves[..np].iter().cloned()), &from_leaves(x, leaves[np..].iter().cloned()));
        Ok(y.leaves().into_iter().cloned().collect())
    };
    let (px, nx) = ([avals(p), avals(x)].concat(), x.leaves().len());
    let graph = trace_leaves(run, px)?;
    let found: Vec<_> = graph.outputs.iter().map(|&a| graph.aval(a)).collect();
    let scalar =
        |found: &[crate::ops::Aval]| matches!(found, [y] if y.shape.numel() == 1 && y.dtype.is_float());
    if name == "argmin" && !scalar(&found) {
        return Err(err!(Shape, "the function to minimize must return one number, not {}", listed(&found)));
    }
    let unknowns = &graph.inputs[np..np + nx];
    if name != "argmin" && found != unknowns {
        return Err(err!(
            Shape,
            "the function must return what is like the unknowns, {}, but returned {}",
            listed(unknowns),
            listed(&found)
        ));
    }
    Ok(graph.lift())
}

fn listed(types: &[crate::ops::Aval]) -> String {
    types.iter().map(|a| format!("{} {:?}", a.dtype, &a.shape[..])).collect::<Vec<_>>().join(", ")
}

/// The solution of `residual(p, x) = 0`, as an operation with rules.
fn equation(
    name: &'static str,
    residual: TwoFn,
    search: Search,
    p: &[Tensor],
    x0: &[Tensor],
    solver: Solver,
) -> Result<Vec<Tensor>> {
    let (np, nx) = (p.len(), x0.len());
    let (back, forth) = (residual.clone(), residual.clone());
    let custom = Custom {
        name,
        inputs: linear::types(&[p, x0].concat()),
        outputs: Some(linear::types(x0)),
        body: Arc::new(move |all| {
            let x = search(&all[..np], &all[np..])?;
            // Under `requires_grad` too, what the search has recorded is nobody's business.
            Ok(x.iter().map(Tensor::detach).collect())
        }),
        // p̄ = -(∂r/∂p)ᵀ (∂r/∂x)⁻ᵀ x̄. The solution does not depend on the first guess.
        pullback: Some(Arc::new(move |all, x, g| {
            let p = &all[..np];
            let w = solve(&slope(&back, np).transposed(), &[p, x].concat(), g, solver)?;
            let minus: Vec<Tensor> = w.iter().map(|w| -w).collect();
            let gp = pulled(|p| back(p, x), p, &minus)?;
            Ok([gp, zeros(&all[np..])].concat())
        })),
        pushforward: Some(Arc::new(move |all, x, t| {
            let p = &all[..np];
            let dr = pushed(|p| forth(p, x), p, &t[..np])?;
            let minus: Vec<Tensor> = dr.iter().map(|r| -r).collect();
            solve(&slope(&forth, np), &[p, x].concat(), &minus, solver)
        })),
        batching: Batching::OneByOne,
    };
    let inputs = [p, x0].concat();
    let x = custom.apply(&inputs.iter().collect::<Vec<_>>())?;
    debug_assert_eq!(x.len(), nx);
    Ok(x)
}

/// The matrix `∂r/∂x`, whose parameters are `p` and `x`.
fn slope(residual: &TwoFn, np: usize) -> Matrix {
    let (forward, backward) = (residual.clone(), residual.clone());
    Matrix {
        times: Arc::new(move |px, v| pushed(|x| forward(&px[..np], x), &px[np..], v)),
        transposed_times: Arc::new(move |px, w| pulled(|x| backward(&px[..np], x), &px[np..], w)),
    }
}
