//! Recorded functions as problems of `argmin`.

use crate::scalar::{Function, Outputs, OutsideBranch, Symbol};
use argmin::core::{CostFunction, Error, Gradient, Hessian, Jacobian, Operator};
use std::sync::{Arc, Mutex};

/// A function as an optimiser of `argmin` sees it, with all its derivatives.
///
/// It is recorded at a point, and again whenever the optimiser leaves the branch of the last recording.
pub struct Problem<F> {
    f: F,
    recorded: Mutex<Arc<Function>>,
}

impl<F: Fn(&[Symbol]) -> O, O: Outputs> Problem<F> {
    /// The problem of a function, recorded at `x` first.
    pub fn new(f: F, x: &[f64]) -> Self {
        let recorded = Function::record_at(&f, x);
        Problem { f, recorded: Mutex::new(Arc::new(recorded)) }
    }

    /// What `derived` makes of the function at `x`, evaluated there.
    fn at(&self, x: &[f64], derived: fn(&Function) -> &Function) -> Result<Vec<f64>, Error> {
        let evaluate = |f: &Function| -> Result<Vec<f64>, OutsideBranch> {
            let derived = derived(f);
            let mut out = vec![0.0; derived.outputs()];
            derived.try_evaluate_into(x, &mut out)?;
            Ok(out)
        };
        let known = self.recorded.lock().expect("nothing panics with the lock").clone();
        if let Ok(out) = evaluate(&known) {
            return Ok(out);
        }
        let new = Arc::new(Function::record_at(&self.f, x));
        *self.recorded.lock().expect("nothing panics with the lock") = new.clone();
        // Fails only where a comparison hangs on the last bit.
        Ok(evaluate(&new)?)
    }
}

impl<F: Fn(&[Symbol]) -> O, O: Outputs> CostFunction for Problem<F> {
    type Param = Vec<f64>;
    type Output = f64;

    fn cost(&self, x: &Vec<f64>) -> Result<f64, Error> {
        Ok(self.at(x, |f| f)?[0])
    }
}

impl<F: Fn(&[Symbol]) -> O, O: Outputs> Operator for Problem<F> {
    type Param = Vec<f64>;
    type Output = Vec<f64>;

    fn apply(&self, x: &Vec<f64>) -> Result<Vec<f64>, Error> {
        self.at(x, |f| f)
    }
}

impl<F: Fn(&[Symbol]) -> O, O: Outputs> Gradient for Problem<F> {
    type Param = Vec<f64>;
    type Gradient = Vec<f64>;

    fn gradient(&self, x: &Vec<f64>) -> Result<Vec<f64>, Error> {
        self.at(x, Function::gradient_function)
    }
}

impl<F: Fn(&[Symbol]) -> O, O: Outputs> Hessian for Problem<F> {
    type Param = Vec<f64>;
    type Hessian = Vec<Vec<f64>>;

    fn hessian(&self, x: &Vec<f64>) -> Result<Vec<Vec<f64>>, Error> {
        let flat = self.at(x, Function::hessian_function)?;
        Ok(flat.chunks(x.len()).map(<[f64]>::to_vec).collect())
    }
}

impl<F: Fn(&[Symbol]) -> O, O: Outputs> Jacobian for Problem<F> {
    type Param = Vec<f64>;
    type Jacobian = Vec<Vec<f64>>;

    fn jacobian(&self, x: &Vec<f64>) -> Result<Vec<Vec<f64>>, Error> {
        let flat = self.at(x, Function::jacobian_function)?;
        Ok(flat.chunks(x.len()).map(<[f64]>::to_vec).collect())
    }
}
