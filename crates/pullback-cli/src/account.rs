//! The account of a derivative: every value of a graph at a point, its adjoint, and what each step contributes to its arguments.
//!
//! The values, adjoints and tangents are the library's: each step runs by itself under `vjp` or `jvp`.

use crate::failure::{Failure, Result};
use crate::model::Model;
use crate::rules::{self, Names};
use pullback::{Place, StepView, Tensor, Tree, jvp, vjp};
use pullback_expr::symbolic::Style;

/// A value of the graph: an input, or an output of a step.
pub struct Entry {
    pub place: Place,
    pub name: String,
    /// What a `let` or an output called it.
    pub given: Option<String>,
    pub operation: &'static str,
    pub attributes: String,
    pub args: Vec<Place>,
    pub shape: Vec<usize>,
    pub is_float: bool,
}

/// All values of a model, and how to call them.
pub struct Listing<'a> {
    pub model: &'a Model,
    pub names: Names,
    pub entries: Vec<Entry>,
    steps: Vec<StepView<'a>>,
}

/// A share of an adjoint, on its way from a step to one of its arguments.
pub struct Contribution {
    pub from: Place,
    pub operand: usize,
    pub to: Place,
    /// The local derivative, if both ends are numbers.
    pub slope: Option<f64>,
    pub amount: Tensor,
    /// The adjoint of the argument after this was added.
    pub sum: Tensor,
}

/// Values by place: inputs, and the outputs of each step.
pub struct Values {
    pub inputs: Vec<Tensor>,
    pub steps: Vec<Vec<Tensor>>,
}

pub struct Adjoints {
    /// One for each entry; `None` where the output does not depend on it.
    pub adjoints: Vec<Option<Tensor>>,
    pub contributions: Vec<Contribution>,
}

impl<'a> Listing<'a> {
    pub fn new(model: &'a Model) -> Listing<'a> {
        let graph = &model.graph;
        let names = Names::new(graph, model.inputs.iter().map(|i| i.name.clone()).collect());
        let steps: Vec<StepView> = graph.steps().collect();
        let mut given: std::collections::HashMap<Place, String> =
            graph.named_values().into_iter().map(|(n, p)| (p, n.to_string())).collect();
        for (place, name) in graph.results().into_iter().zip(&model.outputs) {
            given.entry(place).or_insert_with(|| name.clone());
        }
        let mut entries = Vec::new();
        for (k, input) in model.inputs.iter().enumerate() {
            let place = Place::Input(k);
            let (name, shape, is_float) = (names.of(place), input.shape.clone(), input.dtype.is_float());
            let (operation, attributes, args) = ("input", String::new(), Vec::new());
            entries.push(Entry { place, name, given: None, operation, attributes, args, shape, is_float });
        }
        for (k, step) in steps.iter().enumerate() {
            for (slot, (dtype, shape)) in step.outputs().into_iter().enumerate() {
                let place = Place::Step(k, slot);
                entries.push(Entry {
                    place,
                    name: names.of(place),
                    given: given.remove(&place),
                    operation: step.name(),
                    attributes: step.attributes(),
                    args: step.args(),
                    shape,
                    is_float: dtype.is_float(),
                });
            }
        }
        Listing { model, names, entries, steps }
    }

    /// The number of an entry.
    pub fn entry(&self, place: Place) -> Option<usize> {
        match place {
            Place::Constant(_) => None,
            Place::Input(k) => Some(k),
            Place::Step(..) => self.entries.binary_search_by_key(&order(place), |e| order(e.place)).ok(),
        }
    }

    pub fn formula(&self, entry: &Entry, style: Style) -> String {
        match entry.place {
            Place::Step(k, _) => rules::formula(&self.steps[k], &self.names, style),
            _ => String::new(),
        }
    }

    /// The local derivatives of a step in words.
    pub fn partials(&self, entry: &Entry, style: Style) -> Vec<String> {
        match entry.place {
            Place::Step(k, _) => rules::partials(&self.steps[k], &self.names, &entry.name, style),
            _ => Vec::new(),
        }
    }

    pub fn evaluate(&self, inputs: &[Tensor]) -> Result<Values> {
        let mut values = Values { inputs: inputs.to_vec(), steps: Vec::with_capacity(self.steps.len()) };
        for step in &self.steps {
            let args: Vec<Tensor> = step.args().into_iter().map(|a| self.value(&values, a).clone()).collect();
            let outputs = step.apply(&args)?;
            values.steps.push(outputs);
        }
        Ok(values)
    }

    pub fn value<'b>(&'b self, values: &'b Values, place: Place) -> &'b Tensor {
        match place {
            Place::Input(k) => &values.inputs[k],
            Place::Constant(k) => &self.model.graph.constants()[k],
            Place::Step(k, slot) => &values.steps[k][slot],
        }
    }

    /// Which entries depend on an input that has derivatives.
    fn active(&self) -> Vec<bool> {
        let mut active = vec![false; self.entries.len()];
        for (k, e) in self.entries.iter().enumerate() {
            let reached = |a: &Place| self.entry(*a).is_some_and(|j| active[j]);
            active[k] = e.is_float && (matches!(e.place, Place::Input(_)) || e.args.iter().any(reached));
        }
        active
    }

    /// The arguments of a step that have derivatives.
    fn moving(&self, k: usize, active: &[bool]) -> Vec<usize> {
        let args = self.steps[k].args();
        (0..args.len()).filter(|i| self.entry(args[*i]).is_some_and(|e| active[e])).collect()
    }

    /// A step as a function of its moving arguments alone.
    fn alone(&self, k: usize, moving: &[usize], values: &Values) -> impl Fn(&Vec<Tensor>) -> Vec<Tensor> {
        let step = self.steps[k];
        let args: Vec<Tensor> = step.args().into_iter().map(|a| self.value(values, a).clone()).collect();
        move |x| {
            let mut all = args.clone();
            moving.iter().zip(x).for_each(|(i, x)| all[*i] = x.clone());
            step.apply(&all).expect("the step has run before")
        }
    }

    /// Pulls a cotangent of one output back to the inputs, step by step.
    pub fn pull(&self, values: &Values, output: usize) -> Result<Adjoints> {
        let active = self.active();
        let mut adjoints: Vec<Option<Tensor>> = self.entries.iter().map(|_| None).collect();
        let mut contributions = Vec::new();
        let at = self.model.graph.results()[output];
        match self.entry(at) {
            Some(e) if active[e] => adjoints[e] = Some(self.value(values, at).ones_like()),
            Some(e) if !self.entries[e].is_float => {
                return Err(Failure::new("the output is a truth value, which has no derivative"));
            }
            _ => {}
        }
        for k in (0..self.steps.len()).rev() {
            let places: Vec<Place> = (0..values.steps[k].len()).map(|slot| Place::Step(k, slot)).collect();
            let slots: Vec<usize> =
                places.iter().map(|p| self.entry(*p).expect("every output is an entry")).collect();
            if slots.iter().all(|e| adjoints[*e].is_none()) {
                continue;
            }
            let moving = self.moving(k, &active);
            let args = self.steps[k].args();
            let x: Vec<Tensor> = moving.iter().map(|i| self.value(values, args[*i]).clone()).collect();
            let (y, pull) = vjp(self.alone(k, &moving, values), &x);
            let g: Vec<Tensor> = slots
                .iter()
                .zip(&y)
                .map(|(e, y)| adjoints[*e].clone().unwrap_or_else(|| y.zeros_like()))
                .collect();
            let amounts = pull(&g);
            let is_number = |t: &Tensor| t.rank() == 0;
            let slopes = (y.len() == 1 && is_number(&y[0])).then(|| pull(&vec![y[0].ones_like()]));
            for (j, i) in moving.iter().enumerate() {
                let to = self.entry(args[*i]).expect("what moves is an entry");
                let sum = match &adjoints[to] {
                    Some(before) => before + &amounts[j],
                    None => amounts[j].clone(),
                };
                adjoints[to] = Some(sum.clone());
                let slope = slopes.as_ref().filter(|_| is_number(&x[j])).map(|s| s[j].item());
                let amount = amounts[j].clone();
                contributions.push(Contribution {
                    from: places[0],
                    operand: *i,
                    to: args[*i],
                    slope,
                    amount,
                    sum,
                });
            }
        }
        Ok(Adjoints { adjoints, contributions })
    }

    /// Pushes a tangent of the inputs through every step; one tangent for each entry.
    pub fn push(&self, values: &Values, direction: &[Tensor]) -> Result<Vec<Option<Tensor>>> {
        let active = self.active();
        let mut tangents: Vec<Option<Tensor>> = direction.iter().cloned().map(Some).collect();
        for (k, e) in self.model.inputs.iter().enumerate() {
            if !e.dtype.is_float() {
                tangents[k] = None;
            }
        }
        for k in 0..self.steps.len() {
            let args = self.steps[k].args();
            let moving = self.moving(k, &active);
            // A mask or an index does not move.
            if moving.is_empty() || values.steps[k].iter().all(|t| !t.dtype().is_float()) {
                tangents.extend(values.steps[k].iter().map(|_| None));
                continue;
            }
            let x: Vec<Tensor> = moving.iter().map(|i| self.value(values, args[*i]).clone()).collect();
            let tangent = |i: &usize| {
                let known = self.entry(args[*i]).and_then(|e| tangents[e].clone());
                known.unwrap_or_else(|| self.value(values, args[*i]).zeros_like())
            };
            let t: Vec<Tensor> = moving.iter().map(tangent).collect();
            let (_, dy) = jvp(self.alone(k, &moving, values), &x, &t);
            tangents.extend(dy.flatten().into_iter().map(|t| t.dtype().is_float().then_some(t)));
        }
        Ok(tangents)
    }
}

fn order(place: Place) -> (usize, usize, usize) {
    match place {
        Place::Input(k) => (0, k, 0),
        Place::Constant(k) => (1, k, 0),
        Place::Step(k, slot) => (2, k, slot),
    }
}
