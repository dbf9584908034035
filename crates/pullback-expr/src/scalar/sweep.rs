//! The reverse sweep and the forward tangents of a trace.

use super::{Operand, Operation, Trace};
use pullback_table::Number;

/// What one step adds to the adjoint of one of its operands.
#[derive(Clone, Debug)]
pub struct Contribution {
    /// The step whose adjoint is passed on.
    pub from: usize,
    /// Which operand of it.
    pub operand: usize,
    /// The node that receives it.
    pub to: usize,
    /// The local derivative.
    pub slope: f64,
    /// The adjoint of the step times the local derivative.
    pub amount: f64,
}

/// Adjoints of all steps, and every contribution in the order in which it was made.
#[derive(Clone, Debug)]
pub struct Swept {
    /// One for each step.
    pub adjoints: Vec<f64>,
    /// In reverse order of the steps.
    pub contributions: Vec<Contribution>,
}

impl Trace {
    /// Which steps an output depends on, and which depend on an input.
    fn active(&self) -> Vec<bool> {
        let mut active = vec![false; self.steps.len()];
        for (k, step) in self.steps.iter().enumerate() {
            let reached = |o: &Operand| matches!(o, Operand::Node(j) if active[*j]);
            active[k] = match step.operation {
                Operation::Input => true,
                Operation::Compare(_) | Operation::And | Operation::Or | Operation::Not => false,
                _ => step.operands.iter().any(reached),
            };
        }
        active
    }

    /// The local derivatives of a step, one for each operand; `None` where there is none.
    pub fn slopes(&self, k: usize) -> Vec<Option<f64>> {
        let step = &self.steps[k];
        let x: Vec<f64> = step.operands.iter().map(|o| self.value(*o)).collect();
        match step.operation {
            Operation::Apply(f) => f.partials(&x, self.values[k]).into_iter().map(Some).collect(),
            Operation::Choose => {
                let first = f64::from(u8::from(x[0] != 0.0));
                vec![None, Some(first), Some(1.0 - first)]
            }
            _ => vec![None; x.len()],
        }
    }

    /// Pulls the derivative of output number `output` back through every step. Of a vector it is the sum of its elements, or the one
    /// at `element`.
    pub fn sweep(&self, output: usize, element: Option<usize>) -> Swept {
        let mut adjoints = vec![0.0; self.steps.len()];
        let mut touched = vec![false; self.steps.len()];
        for (k, e) in self.outputs[output].elements.iter().enumerate() {
            if let Operand::Node(at) = e
                && element.is_none_or(|wanted| wanted == k)
            {
                adjoints[*at] += 1.0;
                touched[*at] = true;
            }
        }
        let active = self.active();
        let mut contributions = Vec::new();
        for from in (0..self.steps.len()).rev() {
            if !touched[from] || !active[from] {
                continue;
            }
            for (operand, slope) in self.slopes(from).into_iter().enumerate() {
                let (to, slope) = match (self.steps[from].operands[operand], slope) {
                    (Operand::Node(to), Some(slope)) if active[to] => (to, slope),
                    _ => continue,
                };
                // An exact zero stays zero, however steep the function is: a branch that was not taken leaks nothing.
                let amount = Number::gate(adjoints[from], slope);
                adjoints[to] += amount;
                touched[to] = true;
                contributions.push(Contribution { from, operand, to, slope, amount });
            }
        }
        Swept { adjoints, contributions }
    }

    /// The tangent of every step along a direction of the inputs, one number for each of their elements.
    pub fn tangents(&self, direction: &[f64]) -> Vec<f64> {
        let mut tangents = vec![0.0; self.steps.len()];
        let mut directions = direction.iter();
        for k in 0..self.steps.len() {
            if self.steps[k].operation == Operation::Input {
                tangents[k] = directions.next().copied().unwrap_or(0.0);
                continue;
            }
            for (operand, slope) in self.slopes(k).into_iter().enumerate() {
                if let (Operand::Node(from), Some(slope)) = (self.steps[k].operands[operand], slope) {
                    tangents[k] += Number::gate(tangents[from], slope);
                }
            }
        }
        tangents
    }
}
