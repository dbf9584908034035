//! Compiled functions: recorded once as a straight line of operations, optimised, differentiated as programs of the same
//! kind, and run at many points in SIMD lanes and on all cores.

mod builder;
mod differentiate;
mod evaluate;
mod exchange;
mod graph;
mod program;
mod source;
mod steps;
mod symbol;
mod total;
mod workspace;

pub use graph::{Comparison, Guard};
pub(in crate::scalar) use graph::{Graph, Op};
pub use symbol::Symbol;
pub use total::Total;

use crate::scalar::Real;
use crate::scalar::sparse::{self, SparseMatrix};
use builder::Builder;
use evaluate::Failure;
use exchange::Points;
use program::Programs;
use std::cell::RefCell;
use std::fmt;
use std::sync::OnceLock;
use symbol::{build, existing, input};

/// What a recorded function may return: one number, or several in a vector, array or slice.
pub trait Outputs {
    /// The numbers, in order.
    fn symbols(&self) -> &[Symbol];
}

impl Outputs for Symbol {
    fn symbols(&self) -> &[Symbol] {
        std::slice::from_ref(self)
    }
}

impl Outputs for Vec<Symbol> {
    fn symbols(&self) -> &[Symbol] {
        self
    }
}

impl<const N: usize> Outputs for [Symbol; N] {
    fn symbols(&self) -> &[Symbol] {
        self
    }
}

/// A function of numbers, recorded as a straight line of operations.
///
/// Equal operations are computed once, constants are folded and dead code is gone. Derivatives are functions of the same
/// kind, made when they are first asked for.
///
/// A recorded function takes the branches that were taken at the point of recording. Comparisons that decided
/// them are listed by [`guards`](Self::guards) and checked at each evaluation; choices that are to be made again are written
/// with [`Real::select_lt`]. The compiled functions are accurate to a few units in the last place, not equal to those of the
/// standard library, so a comparison that hangs on the last bit may come out otherwise even at the point of recording.
///
/// ```
/// use pullback::scalar::{Function, Real};
///
/// fn f<T: Real>(x: &[T]) -> T {
///     (x[0] * x[1]).sin() + x[0] * x[1]
/// }
/// let f = Function::record(f, 2);
/// assert_eq!(f.operations(), 3);
/// assert_eq!(f.gradient(&[0.0, 2.0]), [4.0, 0.0]);
/// // Four points at once.
/// assert_eq!(f.values(&[0., 1., 0., 2., 0., 3., 0., 4.]), [0.0; 4]);
/// ```
pub struct Function {
    graph: Graph,
    programs: OnceLock<Programs>,
    derived: Box<Derived>,
}

/// Functions made of a function when they are first needed.
#[derive(Default)]
struct Derived {
    gradient: OnceLock<Function>,
    value_and_gradient: OnceLock<Function>,
    jacobian: OnceLock<Function>,
    pullback: OnceLock<Function>,
    pushforward: OnceLock<Function>,
    hessian_product: OnceLock<Function>,
    hessian: OnceLock<Function>,
    sparse_jacobian: OnceLock<sparse::Plan>,
    sparse_hessian: OnceLock<sparse::Plan>,
    sparse_hessian_acyclic: OnceLock<sparse::Plan>,
}

/// A recorded function was called at a point where one of the comparisons it was recorded with comes out otherwise.
#[derive(Clone, Debug)]
pub struct OutsideBranch {
    /// The number of the point, if there were many.
    pub point: usize,
    /// The comparison.
    pub guard: Guard,
}

impl fmt::Display for OutsideBranch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.guard.comparison == Comparison::Value {
            return write!(
                f,
                "point {} is outside of what the function was recorded for: it used `value()` of a number that has another value here \
                 ({}); ask for the value of what stays the same (`x.floor().value()` for an index), compare the number itself, or \
                 record the function there",
                self.point, self.guard
            );
        }
        write!(
            f,
            "point {} is outside the branch that the function was recorded for: {}; record it there, or write the \
             choice as a select",
            self.point, self.guard
        )
    }
}

impl std::error::Error for OutsideBranch {}

thread_local! {
    static WORKSPACE: RefCell<Vec<f64>> = const { RefCell::new(Vec::new()) };
}

impl Function {
    /// Records `f` of `n` inputs. Where it compares, it is followed at a point between 1/4 and 3/4 in every coordinate; use
    /// [`record_at`](Self::record_at) if that is not a typical one.
    pub fn record<F: Fn(&[Symbol]) -> O, O: Outputs>(f: F, n: usize) -> Function {
        // Multiples of the golden ratio: all different, in no simple relation.
        let point: Vec<f64> =
            (1..=n).map(|k| 0.25 + 0.5 * (k as f64 * 0.618_033_988_749_894_9).fract()).collect();
        Self::record_at(f, &point)
    }

    /// Records `f`, following the branches that it takes at `x`.
    pub fn record_at<F: Fn(&[Symbol]) -> O, O: Outputs>(f: F, x: &[f64]) -> Function {
        Self::from_graph(build(None, || {
            let x: Vec<Symbol> = x.iter().map(|&x| input(x)).collect();
            f(&x).symbols().to_vec()
        }))
    }

    fn from_graph(graph: Graph) -> Function {
        Function { graph, programs: OnceLock::new(), derived: Box::default() }
    }

    /// A function whose first operations are those of this one.
    fn extended(&self, f: impl FnOnce() -> Vec<Symbol>) -> Function {
        Self::from_graph(build(Some(self.graph.clone()), f))
    }

    pub(in crate::scalar) fn graph(&self) -> &Graph {
        &self.graph
    }

    fn programs(&self) -> &Programs {
        self.programs.get_or_init(|| Programs::new(&self.graph, 0))
    }

    /// The number of inputs.
    pub fn inputs(&self) -> usize {
        self.graph.inputs
    }

    /// The number of outputs.
    pub fn outputs(&self) -> usize {
        self.graph.outputs.len()
    }

    /// The number of operations.
    pub fn operations(&self) -> usize {
        self.graph.operations()
    }

    /// The comparisons that were decided at the point of recording.
    pub fn guards(&self) -> &[Guard] {
        &self.graph.guards
    }

    fn outside(&self, failure: Failure) -> OutsideBranch {
        OutsideBranch { point: failure.point, guard: self.graph.guards[failure.guard] }
    }

    /// Evaluates all outputs at `x` into `out`.
    ///
    /// # Panics
    /// If `x` or `out` has another length than there are inputs or outputs.
    #[track_caller]
    pub fn try_evaluate_into(&self, x: &[f64], out: &mut [f64]) -> Result<(), OutsideBranch> {
        assert_eq!(x.len(), self.inputs(), "the function has {} inputs", self.inputs());
        assert_eq!(out.len(), self.outputs(), "the function has {} outputs", self.outputs());
        WORKSPACE.with_borrow_mut(|workspace| match evaluate::one(self.programs(), x, out, workspace) {
            None => Ok(()),
            Some(failure) => Err(self.outside(failure)),
        })
    }

    /// Evaluates all outputs at each of the points, which follow one another in `points`, into the rows of `out`.
    ///
    /// # Panics
    /// If `points` is not a multiple of the number of inputs long, or `out` of another length than there are results. A
    /// function without inputs has as many points as `out` has rows.
    #[track_caller]
    pub fn try_evaluate_many_into(&self, points: &[f64], out: &mut [f64]) -> Result<(), OutsideBranch> {
        let n = match (self.inputs(), self.outputs()) {
            (0, 0) => 0,
            (0, m) => out.len() / m,
            (n, _) => points.len() / n,
        };
        assert_eq!(
            points.len(),
            n * self.inputs(),
            "points of {} coordinates each are needed",
            self.inputs()
        );
        assert_eq!(out.len(), n * self.outputs(), "{} results for each of {n} points", self.outputs());
        match evaluate::many(self.programs(), Points::all(points, self.inputs(), n), out) {
            None => Ok(()),
            Some(failure) => Err(self.outside(failure)),
        }
    }

    /// All outputs at `x`.
    ///
    /// # Panics
    /// Like all that follow: if the number of inputs is another, or `x` is [outside the recorded branch](OutsideBranch).
    #[track_caller]
    pub fn evaluate(&self, x: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; self.outputs()];
        match self.try_evaluate_into(x, &mut out) {
            Ok(()) => out,
            Err(outside) => panic!("{outside}"),
        }
    }

    /// All outputs at each of the points, a row for each.
    #[track_caller]
    pub fn evaluate_many(&self, points: &[f64]) -> Vec<f64> {
        assert!(self.inputs() > 0, "a function without inputs has no points; evaluate it once");
        let mut out = vec![0.0; points.len() / self.inputs() * self.outputs()];
        match self.try_evaluate_many_into(points, &mut out) {
            Ok(()) => out,
            Err(outside) => panic!("{outside}"),
        }
    }

    #[track_caller]
    fn assert_scalar(&self, what: &str) {
        assert_eq!(
            self.outputs(),
            1,
            "{what} is of a function with one output; this one has {}",
            self.outputs()
        );
    }

    /// The value at `x` of a function with one output.
    #[track_caller]
    pub fn value(&self, x: &[f64]) -> f64 {
        self.assert_scalar("a value");
        let mut out = [0.0];
        match self.try_evaluate_into(x, &mut out) {
            Ok(()) => out[0],
            Err(outside) => panic!("{outside}"),
        }
    }

    /// The value at each of the points, of a function with one output.
    #[track_caller]
    pub fn values(&self, points: &[f64]) -> Vec<f64> {
        self.assert_scalar("a value");
        self.evaluate_many(points)
    }

    /// The gradient at `x` of a function with one output.
    #[track_caller]
    pub fn gradient(&self, x: &[f64]) -> Vec<f64> {
        self.gradient_function().evaluate(x)
    }

    /// The value and the gradient at `x` of a function with one output.
    #[track_caller]
    pub fn value_and_gradient(&self, x: &[f64]) -> (f64, Vec<f64>) {
        let mut both = self.value_and_gradient_function().evaluate(x);
        let gradient = both.split_off(1);
        (both[0], gradient)
    }

    /// The gradient at each of the points, in the layout of the points.
    #[track_caller]
    pub fn gradients(&self, points: &[f64]) -> Vec<f64> {
        self.gradient_function().evaluate_many(points)
    }

    /// The Jacobian at `x`, a row for each output.
    #[track_caller]
    pub fn jacobian(&self, x: &[f64]) -> Vec<Vec<f64>> {
        let flat = self.jacobian_function().evaluate(x);
        (0..self.outputs()).map(|k| flat[k * x.len()..][..x.len()].to_vec()).collect()
    }

    /// The Jacobian at each of the points, row by row.
    #[track_caller]
    pub fn jacobians(&self, points: &[f64]) -> Vec<f64> {
        self.jacobian_function().evaluate_many(points)
    }

    /// The Hessian at `x` of a function with one output.
    #[track_caller]
    pub fn hessian(&self, x: &[f64]) -> Vec<Vec<f64>> {
        let flat = self.hessian_function().evaluate(x);
        (0..x.len()).map(|k| flat[k * x.len()..][..x.len()].to_vec()).collect()
    }

    /// The product of the Hessian at `x` with `v`, of a function with one output.
    #[track_caller]
    pub fn hvp(&self, x: &[f64], v: &[f64]) -> Vec<f64> {
        assert_eq!(x.len(), v.len(), "hvp: the direction is as long as the point");
        self.hessian_product_function().evaluate(&[x, v].concat())
    }

    /// The function `x -> gradient`, of a function with one output.
    #[track_caller]
    pub fn gradient_function(&self) -> &Function {
        self.assert_scalar("a gradient");
        self.derived.gradient.get_or_init(|| {
            self.extended(|| {
                let seeds = [(self.graph.outputs[0], Symbol::constant(1.0))];
                differentiate::pull(&self.graph, &seeds).into_iter().map(Option::unwrap_or_default).collect()
            })
        })
    }

    /// The function `x -> (value, gradient)`, of a function with one output.
    #[track_caller]
    pub fn value_and_gradient_function(&self) -> &Function {
        self.assert_scalar("a gradient");
        self.derived.value_and_gradient.get_or_init(|| {
            self.extended(|| {
                let y = self.graph.outputs[0];
                let gradient = differentiate::pull(&self.graph, &[(y, Symbol::constant(1.0))]);
                std::iter::once(existing(y))
                    .chain(gradient.into_iter().map(Option::unwrap_or_default))
                    .collect()
            })
        })
    }

    /// The function `x -> Jacobian`, row by row. Made by rows or by columns, whichever takes fewer operations.
    pub fn jacobian_function(&self) -> &Function {
        self.derived.jacobian.get_or_init(|| {
            let (n, m) = (self.inputs(), self.outputs());
            let by_rows = || {
                self.extended(|| {
                    let row = |&y| differentiate::pull(&self.graph, &[(y, Symbol::constant(1.0))]);
                    self.graph.outputs.iter().flat_map(row).map(Option::unwrap_or_default).collect()
                })
            };
            let by_columns = || {
                self.extended(|| {
                    let mut jacobian = vec![Symbol::constant(0.0); n * m];
                    for k in 0..n {
                        let mut unit = vec![None; n];
                        unit[k] = Some(Symbol::constant(1.0));
                        let tangents = differentiate::push(&self.graph, &unit);
                        for (row, &y) in self.graph.outputs.iter().enumerate() {
                            jacobian[row * n + k] = tangents[y as usize].unwrap_or_default();
                        }
                    }
                    jacobian
                })
            };
            // Where the shape leaves no doubt, one of the two will do.
            if m * 4 <= n {
                return by_rows();
            }
            if n * 4 <= m {
                return by_columns();
            }
            let (rows, columns) = (by_rows(), by_columns());
            if rows.operations() <= columns.operations() { rows } else { columns }
        })
    }

    /// The function `(x, g) -> Jᵀ g`: reverse mode.
    pub fn pullback_function(&self) -> &Function {
        self.derived.pullback.get_or_init(|| {
            self.extended(|| {
                let seeds: Vec<_> = self.graph.outputs.iter().map(|&y| (y, input(1.0))).collect();
                differentiate::pull(&self.graph, &seeds).into_iter().map(Option::unwrap_or_default).collect()
            })
        })
    }

    /// The function `(x, v) -> J v`: forward mode.
    pub fn pushforward_function(&self) -> &Function {
        self.derived.pushforward.get_or_init(|| {
            self.extended(|| {
                let v: Vec<_> = (0..self.inputs()).map(|_| Some(input(1.0))).collect();
                let tangents = differentiate::push(&self.graph, &v);
                self.graph.outputs.iter().map(|&y| tangents[y as usize].unwrap_or_default()).collect()
            })
        })
    }

    /// The function `(x, v) -> H v`, of a function with one output: forward over reverse mode.
    #[track_caller]
    pub fn hessian_product_function(&self) -> &Function {
        let gradient = self.gradient_function();
        self.derived
            .hessian_product
            .get_or_init(|| Self::from_graph(gradient.pushforward_function().graph.clone()))
    }

    /// The function `x -> Hessian`, row by row, of a function with one output.
    #[track_caller]
    pub fn hessian_function(&self) -> &Function {
        let gradient = self.gradient_function();
        self.derived.hessian.get_or_init(|| Self::from_graph(gradient.jacobian_function().graph.clone()))
    }

    /// The Jacobian at `x` as a sparse matrix, from as many products as its columns or rows need colours.
    #[track_caller]
    pub fn sparse_jacobian(&self, x: &[f64]) -> SparseMatrix {
        sparse::evaluate(self, self.derived.sparse_jacobian.get_or_init(|| sparse::jacobian_plan(self)), x)
    }

    /// The Hessian at `x` as a sparse matrix, of a function with one output. Every entry is read from a product with the
    /// columns of one colour of a [star colouring](sparse::star).
    #[track_caller]
    pub fn sparse_hessian(&self, x: &[f64]) -> SparseMatrix {
        self.assert_scalar("a Hessian");
        sparse::evaluate(
            self,
            self.derived.sparse_hessian.get_or_init(|| sparse::hessian_plan(self, sparse::star)),
            x,
        )
    }

    /// As [`sparse_hessian`](Self::sparse_hessian), by an [acyclic colouring](sparse::acyclic): fewer products, but entries
    /// are found by subtracting others, which costs some digits.
    #[track_caller]
    pub fn sparse_hessian_by_substitution(&self, x: &[f64]) -> SparseMatrix {
        self.assert_scalar("a Hessian");
        let plan =
            self.derived.sparse_hessian_acyclic.get_or_init(|| sparse::hessian_plan(self, sparse::acyclic));
        sparse::evaluate(self, plan, x)
    }

    /// The function as Rust source: `fn name(x: &[f64; n], y: &mut [f64; m]) -> bool`, which returns whether `x` is in the
    /// recorded branch. The products of derivatives are plain ones: where a derivative of zero meets an infinite one, it has NaN.
    ///
    /// ```
    /// use pullback::scalar::{Function, Real};
    /// fn f<T: Real>(x: &[T]) -> T {
    ///     x[0] * x[0] + 1.0
    /// }
    /// let text = Function::record(f, 1).to_rust("f");
    /// assert!(text.contains("pub fn f(x: &[f64; 1], y: &mut [f64; 1])"));
    /// ```
    pub fn to_rust(&self, name: &str) -> String {
        source::rust(Builder::plain(&self.graph).as_ref().unwrap_or(&self.graph), name)
    }

    /// The function as C99 source: `int name(const double *x, double *y)`, which returns whether `x` is in the recorded branch.
    pub fn to_c(&self, name: &str) -> String {
        source::c(Builder::plain(&self.graph).as_ref().unwrap_or(&self.graph), name)
    }
}

/// The operations, one on each line.
impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.graph.fmt(f)
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Function")
            .field("inputs", &self.inputs())
            .field("outputs", &self.outputs())
            .field("operations", &self.operations())
            .field("guards", &self.guards().len())
            .finish()
    }
}
