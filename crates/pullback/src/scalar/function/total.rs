//! Sums of a compiled function over points that have some of their inputs in common.

use super::program::Program;
use super::{Function, OutsideBranch, evaluate};

/// `Σ f(shared, point)` over many points, from [`Function::total`].
#[derive(Debug)]
pub struct Total {
    function: Function,
    program: Program,
    shared: usize,
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
    pub fn total(&self, shared: usize) -> Total {
        assert!(shared <= self.inputs(), "total: the function has {} inputs", self.inputs());
        let function = Self::from_graph(self.graph.clone());
        Total { program: Program::with_kept_inputs(&self.graph, shared), function, shared }
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
        match self.try_evaluate_into(shared, points, &mut sums) {
            Ok(()) => sums,
            Err(outside) => panic!("{outside}"),
        }
    }

    /// As [`evaluate`](Self::evaluate), into a buffer.
    ///
    /// # Panics
    /// If the lengths do not fit the function, or it has no inputs but shared ones.
    pub fn try_evaluate_into(
        &self,
        shared: &[f64],
        points: &[f64],
        sums: &mut [f64],
    ) -> Result<(), OutsideBranch> {
        let own = self.function.inputs() - self.shared;
        assert_eq!(shared.len(), self.shared, "the points share {} inputs", self.shared);
        assert!(own > 0, "a total is over points with inputs of their own");
        assert!(points.len().is_multiple_of(own), "points of {own} coordinates each are needed");
        assert_eq!(
            sums.len(),
            self.function.outputs(),
            "the function has {} outputs",
            self.function.outputs()
        );
        match evaluate::sums(&self.program, shared, own, points, sums, points.len() / own) {
            None => Ok(()),
            Some(failure) => Err(self.function.outside(failure)),
        }
    }
}
