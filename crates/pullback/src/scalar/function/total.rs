//! Sums of a compiled function over points that have some of their inputs in common.

use super::evaluate::{self, Failure};
use super::exchange::Points;
use super::graph::{Graph, Op};
use super::program::Programs;
use super::symbol::{existing, include};
use super::{Function, OutsideBranch};

/// `Σ f(shared, point)` over many points, from [`Function::total`].
#[derive(Debug)]
pub struct Total {
    function: Function,
    /// What has to be summed over the points.
    programs: Programs,
    /// How each output follows from it.
    outputs: Vec<Output>,
    shared: usize,
}

/// The sum of an output.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Output {
    /// The same number at every point.
    Constant(f64),
    /// A factor times one of the sums of the program.
    Scaled(f64, usize),
}

/// What a value is a multiple of, and the factor, as far as a product with it is exact: a negation, or a power of two.
fn factored(graph: &Graph, mut value: u32) -> (f64, u32) {
    let constant = |k: u32| {
        let node = graph.nodes[k as usize];
        (node.op == Op::Constant).then(|| graph.constants[node.args[0] as usize])
    };
    let power_of_two = |k: u32| constant(k).filter(|c| c.is_normal() && c.to_bits().trailing_zeros() >= 52);
    let mut factor = 1.0;
    loop {
        let node = graph.nodes[value as usize];
        let [a, b, _] = node.args;
        (factor, value) = match node.op {
            Op::Neg => (-factor, a),
            Op::Mul => match (power_of_two(a), power_of_two(b)) {
                (Some(k), _) => (factor * k, b),
                (_, Some(k)) => (factor * k, a),
                _ => return (factor, value),
            },
            _ => return (factor, value),
        };
    }
}

impl Function {
    /// The function with only some of its outputs, in the given order; what the others alone need is dropped.
    ///
    /// ```
    /// use pullback::scalar::{Function, Real};
    /// fn f<T: Real>(x: &[T]) -> T {
    ///     x[0] * x[0] + x[1].exp()
    /// }
    /// let gradient = Function::record(f, 2).gradient_function().select([0]);
    /// assert_eq!(gradient.evaluate(&[3.0, 0.0]), [6.0]);
    /// ```
    ///
    /// # Panics
    /// If there is no such output.
    pub fn select(&self, outputs: impl IntoIterator<Item = usize>) -> Function {
        let mut graph = self.graph.clone();
        graph.outputs = outputs.into_iter().map(|k| self.graph.outputs[k]).collect();
        Self::from_graph(graph.pruned())
    }

    /// The outputs of this function and, after them, those of another one of the same inputs. What both need is computed once, and
    /// one run over the points gives all.
    ///
    /// ```
    /// use pullback::scalar::{Function, Real};
    /// fn f<T: Real>(x: &[T]) -> T {
    ///     x[0].exp() * x[0]
    /// }
    /// let f = Function::record(f, 1);
    /// let both = f.gradient_function().join(f.hessian_function());
    /// assert_eq!(both.evaluate(&[0.0]), [1.0, 2.0]);
    /// ```
    ///
    /// # Panics
    /// If the two have not the same number of inputs.
    #[track_caller]
    pub fn join(&self, other: &Function) -> Function {
        assert_eq!(self.inputs(), other.inputs(), "join: both are functions of the same inputs");
        self.extended(|| {
            let own = self.graph.outputs.iter().map(|&y| existing(y));
            own.chain(include(&other.graph)).collect()
        })
    }

    /// The sum of this function over many points that share their first `shared` inputs: the loss of a model over its data.
    ///
    /// The gradient with respect to what is shared is the same sum, of the gradient function:
    ///
    /// ```
    /// use pullback::scalar::{Function, Real};
    /// /// The squared error of a line at one point of the data.
    /// fn error<T: Real>(x: &[T]) -> T {
    ///     let [slope, offset, at, seen] = [x[0], x[1], x[2], x[3]];
    ///     (slope * at + offset - seen).powi(2)
    /// }
    /// let error = Function::record(error, 4);
    /// let data = [0.0, 1.0, 1.0, 3.0, 2.0, 5.0];
    /// assert_eq!(error.total(2).evaluate(&[2.0, 1.0], &data), [0.0]);
    /// let gradient = error.gradient_function().select(0..2).total(2);
    /// assert_eq!(gradient.evaluate(&[2.0, 0.0], &data), [-6.0, -6.0]);
    /// ```
    ///
    /// # Panics
    /// If the function has fewer inputs than `shared`.
    #[track_caller]
    pub fn total(&self, shared: usize) -> Total {
        assert!(shared <= self.inputs(), "total: the function has {} inputs", self.inputs());
        let (mut graph, mut outputs) = (self.graph.clone(), Vec::with_capacity(self.outputs()));
        graph.outputs.clear();
        for &y in &self.graph.outputs {
            let node = self.graph.nodes[y as usize];
            outputs.push(match node.op {
                Op::Constant => Output::Constant(self.graph.constants[node.args[0] as usize]),
                _ => {
                    let (factor, of) = factored(&self.graph, y);
                    let known = graph.outputs.iter().position(|&k| k == of);
                    let place = known.unwrap_or_else(|| {
                        graph.outputs.push(of);
                        graph.outputs.len() - 1
                    });
                    Output::Scaled(factor, place)
                }
            });
        }
        let programs = Programs::new(&graph.pruned(), shared);
        Total { function: Self::from_graph(self.graph.clone()), programs, outputs, shared }
    }
}

impl Total {
    /// The sum of each output over the points, which follow one another in `points` without the inputs that they share.
    /// The result does not depend on the number of threads.
    ///
    /// # Panics
    /// If the lengths do not fit the function, or a point is [outside the recorded branch](OutsideBranch).
    #[track_caller]
    pub fn evaluate(&self, shared: &[f64], points: &[f64]) -> Vec<f64> {
        let mut sums = vec![0.0; self.function.outputs()];
        self.evaluate_into(shared, points, &mut sums);
        sums
    }

    /// As [`evaluate`](Self::evaluate), into a buffer: nothing is allocated from the second call of a thread on.
    ///
    /// ```
    /// use pullback::scalar::{Function, Real};
    /// fn square<T: Real>(x: &[T]) -> T {
    ///     (x[0] - x[1]) * (x[0] - x[1])
    /// }
    /// let mut sum = [0.0];
    /// Function::record(square, 2).total(1).evaluate_into(&[1.0], &[2.0, 3.0], &mut sum);
    /// assert_eq!(sum, [5.0]);
    /// ```
    ///
    /// # Panics
    /// As `evaluate`, or if `sums` has another length than there are outputs.
    #[track_caller]
    pub fn evaluate_into(&self, shared: &[f64], points: &[f64], sums: &mut [f64]) {
        if let Err(outside) = self.try_evaluate_into(shared, points, sums) {
            panic!("{outside}");
        }
    }

    /// As [`evaluate_into`](Self::evaluate_into), with an error for a point outside of the recorded branch.
    ///
    /// # Panics
    /// If the lengths do not fit the function, or it has no inputs but shared ones.
    #[track_caller]
    pub fn try_evaluate_into(
        &self,
        shared: &[f64],
        points: &[f64],
        sums: &mut [f64],
    ) -> Result<(), OutsideBranch> {
        let own = self.own(points);
        let failure = self.sums(shared, Points::all(points, own, points.len() / own), sums);
        failure.map_or(Ok(()), |failure| Err(self.function.outside(failure)))
    }

    /// How many inputs each point has of its own.
    #[track_caller]
    fn own(&self, points: &[f64]) -> usize {
        let own = self.function.inputs() - self.shared;
        assert!(own > 0, "a total is over points with inputs of their own");
        assert!(points.len().is_multiple_of(own), "points of {own} coordinates each are needed");
        own
    }

    #[track_caller]
    fn sums(&self, shared: &[f64], points: Points, sums: &mut [f64]) -> Option<Failure> {
        assert_eq!(shared.len(), self.shared, "the points share {} inputs", self.shared);
        assert_eq!(sums.len(), self.outputs.len(), "the function has {} outputs", self.outputs.len());
        let own = self.programs.plain.outputs.len();
        let failure = evaluate::sums(&self.programs, shared, points, &mut sums[..own]);
        // The last one first: a sum lies before all outputs that follow from it, or in the place of the first of them.
        for (k, output) in self.outputs.iter().enumerate().rev() {
            sums[k] = match *output {
                Output::Constant(_) if points.len() == 0 => 0.0,
                Output::Constant(value) => value * points.len() as f64,
                Output::Scaled(factor, place) => factor * sums[place],
            };
        }
        failure
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::isa::forced::with_each_isa;
    use crate::scalar::{Real, Symbol};
    use pullback_table::Number;

    /// Two shared inputs, two own ones; a value that takes a logarithm for a branch.
    fn f<T: Real>(x: &[T]) -> T {
        let y = (x[0] * x[2]).sin() + x[1] * x[3];
        if x[3] < 10.0 { y * y } else { y.ln() }
    }

    fn points(n: usize) -> Vec<f64> {
        (1..=2 * n).map(|k| (k as f64 * 0.618_033_988_749_894_9).fract()).collect()
    }

    #[test]
    fn a_total_is_the_sum_over_points() {
        let function = Function::record(f, 4);
        let gradient = function.gradient_function().select(0..2);
        let shared = [0.75, -1.25];
        // Less than a block, a block and a bit, several groups.
        for n in [0, 1, 63, 64, 65, 100_001] {
            let points = points(n);
            let mut expected = [0.0; 2];
            for own in points.chunks(2) {
                let g = gradient.evaluate(&[shared[0], shared[1], own[0], own[1]]);
                expected = [expected[0] + g[0], expected[1] + g[1]];
            }
            let found = gradient.total(2).evaluate(&shared, &points);
            // The order of the terms differs.
            pullback_testing::assert_close(&found, &expected, 1e-12);
        }
    }

    #[test]
    fn a_total_finds_the_first_point_outside_the_branch() {
        let total = Function::record(f, 4).total(2);
        let mut points = points(100_000);
        points[2 * 70_000 + 1] = 11.0;
        points[2 * 90_000 + 1] = 11.0;
        let outside = total.try_evaluate_into(&[1.0, 1.0], &points, &mut [0.0]).unwrap_err();
        assert_eq!(outside.point, 70_000);
    }

    #[test]
    fn what_was_not_selected_is_dropped() {
        let both = Function::record(|x| [x[0].sin(), x[0].exp().sqrt()], 1);
        let first = both.select([0]);
        assert_eq!((first.outputs(), first.operations()), (1, 1));
        let twice = both.select([1, 1]);
        assert_eq!(twice.evaluate(&[0.0]), [1.0, 1.0]);
    }

    #[test]
    fn joined_functions_compute_once_what_both_need() {
        let function = Function::record(f, 4);
        let (gradient, hessian) = (function.gradient_function(), function.hessian_function());
        let both = gradient.join(hessian);
        assert_eq!(both.guards().len(), 1);
        assert!(both.operations() < gradient.operations() + hessian.operations());
        let x = [0.75, -1.25, 0.5, 2.0];
        assert_eq!(both.evaluate(&x), [gradient.evaluate(&x), hessian.evaluate(&x)].concat());
    }

    /// Blocks of every fill, and what follows full ones: rows are those of single points, and a sum depends on the points alone.
    #[test]
    fn any_number_of_points_gives_what_single_points_give() {
        // Every kind of step: a huge argument of a sine, which vectors leave to the standard library, is among the points.
        let function = Function::record(
            |x| {
                let y = (x[0] * x[2]).sin() + x[1] * x[3] - x[2].sqrt() / x[3].exp();
                [y, x[3].select_lt(x[2], y.tanh(), y.cos()), x[0] * 2.0, x[2].abs()]
            },
            4,
        );
        let (shared, mut own) = ([0.75, -1.25], points(200));
        own[2 * 7] = 1e12;
        with_each_isa(|isa| {
            let total = function.total(2);
            let mut parts = [[0.0; 8]; 4];
            for n in 1..=200 {
                let own = &own[..2 * n];
                let all: Vec<f64> = own.chunks(2).flat_map(|x| [shared[0], shared[1], x[0], x[1]]).collect();
                let rows = function.evaluate_many(&all);
                let single = function.evaluate(&all[4 * (n - 1)..]);
                assert_eq!(rows[4 * (n - 1)..], single, "{isa:?}: the last of {n} points");
                assert_eq!(rows[..4], function.evaluate(&all[..4]), "{isa:?}: the first of {n} points");
                // Eight sums, a point in each in turn, then in pairs.
                for (part, y) in parts.iter_mut().zip(&single) {
                    part[(n - 1) % 8] += y;
                }
                let sums = parts.map(|p| {
                    let fours: [f64; 4] = std::array::from_fn(|k| p[k] + p[k + 4]);
                    (fours[0] + fours[2]) + (fours[1] + fours[3])
                });
                assert_eq!(total.evaluate(&shared, own), sums, "{isa:?}: the sum over {n} points");
            }
        });
    }

    #[test]
    fn the_last_of_few_points_is_checked_and_idle_lanes_are_not() {
        let function = Function::record(f, 4);
        for n in 1..=70 {
            let mut own = points(n);
            assert!(function.total(2).try_evaluate_into(&[1.0, 1.0], &own, &mut [0.0]).is_ok());
            own[2 * n - 1] = 11.0;
            let outside = function.total(2).try_evaluate_into(&[1.0, 1.0], &own, &mut [0.0]).unwrap_err();
            assert_eq!(outside.point, n - 1);
        }
    }

    #[test]
    fn outputs_that_are_constants_are_summed_too() {
        let curvature = Function::record(|x| (x[0] - x[1]) * (x[0] - x[1]), 2).hessian_function().select([0]);
        assert_eq!(curvature.total(1).evaluate(&[3.0], &[1.0; 100]), [200.0]);
        let endless = Function::record(|_| Symbol::constant(f64::INFINITY), 1);
        assert_eq!(endless.total(0).evaluate(&[], &[]), [0.0]);
    }

    #[test]
    fn factors_are_taken_out_of_the_sum_only_where_that_is_exact() {
        let function = Function::record(
            |x| {
                let y = x[0] * x[1];
                [y * 2.0, Symbol::constant(3.0), y * -0.25, y * 3.0, y, -(y.sin() * 4.0)]
            },
            2,
        );
        let total = function.total(1);
        let kinds: Vec<_> = total.outputs.iter().collect();
        use Output::{Constant, Scaled};
        assert_eq!(
            kinds,
            [
                &Scaled(2.0, 0),
                &Constant(3.0),
                &Scaled(-0.25, 0),
                &Scaled(1.0, 1),
                &Scaled(1.0, 0),
                &Scaled(-4.0, 2)
            ]
        );
        let own: Vec<f64> = points(50).into_iter().take(77).collect();
        let found = total.evaluate(&[0.75], &own);
        for (k, found) in found.iter().enumerate() {
            let single = function.select([k]);
            let expected: f64 = own.iter().map(|&x| single.evaluate(&[0.75, x])[0]).sum();
            assert!((found - expected).abs() <= 1e-13 * expected.abs(), "{k}: {found} and {expected}");
        }
    }
}
