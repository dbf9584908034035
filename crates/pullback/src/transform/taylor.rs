//! Taylor coefficients of tensor programs, of any order.
//!
//! The function is traced, and every value of the program becomes a power series whose coefficients are computed on demand and
//! kept. No operation needs a rule for that. One that is linear acts on each coefficient; one that is multilinear convolves them; and for
//! any other, `y' = ẏ(x, y, x')`, where the right-hand side is its pushforward: a program again, of which coefficient `k`
//! is needed for coefficient `k + 1` of `y`. So the cost is a polynomial of the order, where nesting [`jvp`](super::jvp) would double
//! it with each.

use crate::Tensor;
use crate::error::{Result, or_panic};
use crate::graph::{Graph, Ref, Step, trace_leaves};
use crate::location::with_caller;
use crate::ops::{Aval, Linearity, Op};
use crate::tape::{At, Input};
use crate::tensor::{bind, bind_block};
use smallvec::SmallVec;
use std::cell::{OnceCell, RefCell};
use std::panic::Location;
use std::rc::{Rc, Weak};

/// The Taylor coefficients of `t -> f(x + t direction)` at `t = 0`: the value, and the derivative of order `k` over `k!`, up
/// to the given order.
///
/// They are tensors like any others, and can be differentiated themselves. The function is traced, so it may not branch on values.
///
/// ```
/// use pullback::{prelude::*, taylor};
/// // exp(2 t) = 1 + 2 t + 2 t² + 4/3 t³ + ..
/// let c = taylor(|x: &Tensor| x.exp(), &Tensor::scalar(0.0), &Tensor::scalar(2.0), 3);
/// let c: Vec<f64> = c.iter().map(|c| c.item()).collect();
/// assert_eq!(c, [1.0, 2.0, 2.0, 4.0 / 3.0]);
/// ```
#[must_use]
#[track_caller]
pub fn taylor(
    f: impl FnOnce(&Tensor) -> Tensor,
    x: &Tensor,
    direction: &Tensor,
    order: usize,
) -> Vec<Tensor> {
    let location = Location::caller();
    let _entered = crate::location::entered(location);
    or_panic(super::forward::check(x, direction).map_err(|e| e.in_op("taylor").at(location)));
    let run = || {
        let graph = trace_leaves(|leaves| Ok(vec![f(&leaves[0])]), vec![aval(x)])?;
        super::reverse::check_differentiable(graph.aval(graph.outputs[0]).dtype)?;
        let input = Series::given(vec![x.clone(), direction.clone()]);
        let all = unrolled(&graph, &[input])?;
        let y = &all.outputs[0];
        let mut out = Vec::with_capacity(order + 1);
        for k in 0..=order {
            // In the order of the program, so that no coefficient calls for more than its own inputs.
            all.steps.iter().try_for_each(|s| s.at(k).map(|_| ()))?;
            out.push(y.at(k)?.unwrap_or_else(|| y.zero()));
        }
        Ok(out)
    };
    or_panic(run().map_err(|e: crate::Error| e.in_op("taylor").at(location)))
}

fn aval(t: &Tensor) -> Aval {
    Aval { dtype: t.dtype(), shape: t.node().shape.clone() }
}

/// A power series of tensors.
struct Series {
    aval: Aval,
    /// Whether there is more than the constant term.
    varies: bool,
    /// The coefficients so far; `None` is zero.
    known: RefCell<Vec<Option<Tensor>>>,
    source: Source,
}

/// Where further coefficients come from.
enum Source {
    /// There are none but those that are known.
    Given,
    /// An output of an operation.
    Step { call: Rc<Applied>, slot: usize },
    /// The same for the program of its own slope, which the operation holds.
    Own { call: Weak<Applied>, slot: usize },
    /// The derivative of a series.
    Derivative(Rc<Series>),
}

/// An operation on series.
struct Applied {
    op: Op,
    args: Vec<Rc<Series>>,
    location: &'static Location<'static>,
    outputs: Vec<Aval>,
    /// The constant terms of all outputs.
    values: OnceCell<Vec<Tensor>>,
    /// The series of the derivatives of all outputs, for what is neither linear nor multilinear.
    slopes: OnceCell<Vec<Rc<Series>>>,
}

impl Series {
    fn given(known: Vec<Tensor>) -> Rc<Series> {
        let (aval, varies) = (aval(&known[0]), known.len() > 1);
        let known = RefCell::new(known.into_iter().map(Some).collect());
        Rc::new(Series { aval, varies, known, source: Source::Given })
    }

    fn zero(&self) -> Tensor {
        Tensor::zeros_of(self.aval.dtype, &self.aval.shape)
    }

    /// Coefficient `k`, or `None` if it is zero.
    fn at(&self, k: usize) -> Result<Option<Tensor>> {
        loop {
            let next = self.known.borrow().len();
            if let Some(found) = self.known.borrow().get(k) {
                return Ok(found.clone());
            }
            let more = match &self.source {
                Source::Given => return Ok(None),
                Source::Derivative(of) => of.at(next + 1)?.map(|c| c * (next + 1) as f64),
                _ if !self.varies && next > 0 => return Ok(None),
                Source::Step { call, slot } => call.coefficient(self.varies, *slot, next)?,
                Source::Own { call, slot } => {
                    let call = call.upgrade().expect("the operation is being asked");
                    call.coefficient(self.varies, *slot, next)?
                }
            };
            self.known.borrow_mut().push(more);
        }
    }
}

impl Applied {
    fn coefficient(self: &Rc<Applied>, varies: bool, slot: usize, k: usize) -> Result<Option<Tensor>> {
        with_caller(self.location, || self.compute(varies, slot, k))
    }

    fn compute(self: &Rc<Applied>, varies: bool, slot: usize, k: usize) -> Result<Option<Tensor>> {
        if k == 0 {
            return Ok(Some(self.values()?[slot].clone()));
        }
        let linearity = match self.op {
            Op::Block(_) => Linearity::Nonlinear,
            ref op => op.linearity(),
        };
        match linearity {
            Linearity::Linear => {
                let terms: Vec<Option<Tensor>> = self.terms(&vec![k; self.args.len()])?;
                let is_zero =
                    |(t, a): (&Option<Tensor>, &Rc<Series>)| t.is_none() || !a.aval.dtype.is_differentiable();
                if terms.iter().zip(&self.args).all(is_zero) {
                    return Ok(None);
                }
                let all: Vec<Tensor> =
                    terms.into_iter().zip(&self.args).map(|(t, a)| t.unwrap_or_else(|| a.zero())).collect();
                self.bound(&all).map(Some)
            }
            Linearity::Multilinear => {
                let mut sum: Option<Tensor> = None;
                for orders in compositions(k, &self.args.iter().map(|a| a.varies).collect::<Vec<_>>()) {
                    let Some(factors) = self.terms(&orders)?.into_iter().collect::<Option<Vec<_>>>() else {
                        continue;
                    };
                    let term = self.bound(&factors)?;
                    sum = Some(match sum {
                        Some(sum) => sum + term,
                        None => term,
                    });
                }
                Ok(sum)
            }
            Linearity::Nonlinear => {
                if self.slopes.get().is_none() {
                    let slopes = self.slopes(varies)?;
                    let _ = self.slopes.set(slopes);
                }
                let slope = self.slopes.get().expect("just set")[slot].at(k - 1)?;
                Ok(slope.map(|c| c * (1.0 / k as f64)))
            }
        }
    }

    fn bound(&self, args: &[Tensor]) -> Result<Tensor> {
        bind(self.op.clone(), &args.iter().collect::<SmallVec<[&Tensor; 4]>>())
    }

    /// The coefficient of each argument at its order. What is not of floats stays what it is.
    fn terms(&self, orders: &[usize]) -> Result<Vec<Option<Tensor>>> {
        let term =
            |(a, &k): (&Rc<Series>, &usize)| a.at(if a.aval.dtype.is_differentiable() { k } else { 0 });
        self.args.iter().zip(orders).map(term).collect()
    }

    fn values(&self) -> Result<&Vec<Tensor>> {
        if self.values.get().is_none() {
            // A derivative may be zero from the first coefficient on.
            let terms = self.terms(&vec![0; self.args.len()])?.into_iter().zip(&self.args);
            let x: Vec<Tensor> = terms.map(|(t, a)| t.unwrap_or_else(|| a.zero())).collect();
            let y = match &self.op {
                Op::Block(block) => bind_block(block.clone(), &x.iter().collect::<Vec<_>>())?,
                _ => vec![self.bound(&x)?],
            };
            let _ = self.values.set(y);
        }
        Ok(self.values.get().expect("just set"))
    }

    /// The pushforward as a program, with the series of inputs, outputs and the derivatives of the inputs for its arguments.
    fn slopes(self: &Rc<Applied>, varies: bool) -> Result<Vec<Rc<Series>>> {
        let moving = |a: &Rc<Series>| a.varies && a.aval.dtype.is_differentiable();
        let nx = self.args.len();
        let derivatives: Vec<Rc<Series>> = (self.args.iter().filter(|a| moving(a)))
            .map(|a| {
                let source = Source::Derivative(a.clone());
                Rc::new(Series { aval: a.aval.clone(), varies, known: RefCell::default(), source })
            })
            .collect();
        let outputs = self.outputs.iter().enumerate().map(|(slot, aval)| {
            let source = Source::Own { call: Rc::downgrade(self), slot };
            Rc::new(Series { aval: aval.clone(), varies, known: RefCell::default(), source })
        });
        let inputs: Vec<Rc<Series>> = self.args.iter().cloned().chain(outputs).chain(derivatives).collect();
        let push = |leaves: &[Tensor]| {
            let (x, rest) = leaves.split_at(nx);
            let (y, dx) = rest.split_at(self.outputs.len());
            let mut dx = dx.iter();
            let t: Vec<Option<Tensor>> = self
                .args
                .iter()
                .map(|a| moving(a).then(|| dx.next().expect("one for each").clone()))
                .collect();
            self.pushed(x, y, &t)
        };
        let graph = trace_leaves(push, inputs.iter().map(|s| s.aval.clone()).collect())?;
        Ok(unrolled(&graph, &inputs)?.outputs)
    }

    /// The tangents of the outputs.
    fn pushed(&self, x: &[Tensor], y: &[Tensor], t: &[Option<Tensor>]) -> Result<Vec<Tensor>> {
        if let Op::Block(block) = &self.op {
            if let Some(rules) = block.rules() {
                return rules.pushforward(x, y, t);
            }
            // Whatever the body does, forward mode does it too.
            let zero = |x: &Tensor| x.detach().zeros_like();
            let t: Vec<Tensor> = x.iter().zip(t).map(|(x, t)| t.clone().unwrap_or_else(|| zero(x))).collect();
            return super::custom::pushed(|x| block.expand(x), x, &t);
        }
        let needs: Vec<bool> = t.iter().map(Option::is_some).collect();
        let inputs: SmallVec<[Input; 2]> = x.iter().cloned().map(Input::Saved).collect();
        let at = At { name: self.op.name(), inputs: &inputs, output: Some(&y[0]), needs: &needs };
        Ok(vec![self.op.pushforward(&at, t)?])
    }

    fn output(self: &Rc<Applied>, slot: usize, varies: bool) -> Rc<Series> {
        let source = Source::Step { call: self.clone(), slot };
        Rc::new(Series { aval: self.outputs[slot].clone(), varies, known: RefCell::default(), source })
    }
}

/// A program over series.
struct Unrolled {
    steps: Vec<Rc<Series>>,
    outputs: Vec<Rc<Series>>,
}

fn unrolled(graph: &Graph, inputs: &[Rc<Series>]) -> Result<Unrolled> {
    let consts: Vec<Rc<Series>> = graph.consts.iter().map(|c| Series::given(vec![c.clone()])).collect();
    let mut steps: Vec<Vec<Rc<Series>>> = Vec::with_capacity(graph.steps.len());
    let find = |at: Ref, steps: &[Vec<Rc<Series>>]| match at {
        Ref::Input(k) => inputs[k].clone(),
        Ref::Const(k) => consts[k].clone(),
        Ref::Step(k, slot) => steps[k][slot].clone(),
    };
    for Step { op, args, avals, location } in &graph.steps {
        let args: Vec<Rc<Series>> = args.iter().map(|&a| find(a, &steps)).collect();
        let moves = !op.stops_gradient() && args.iter().any(|a| a.varies && a.aval.dtype.is_differentiable());
        let call = Rc::new(Applied {
            op: op.clone(),
            args,
            location,
            outputs: avals.to_vec(),
            values: OnceCell::new(),
            slopes: OnceCell::new(),
        });
        let output = |slot: usize| call.output(slot, moves && avals[slot].dtype.is_differentiable());
        steps.push((0..avals.len()).map(output).collect());
    }
    let outputs = graph.outputs.iter().map(|&a| find(a, &steps)).collect();
    Ok(Unrolled { steps: steps.into_iter().flatten().collect(), outputs })
}

/// All ways to write `k` as a sum of orders, one for each factor; those that do not vary get 0.
fn compositions(k: usize, varies: &[bool]) -> Vec<Vec<usize>> {
    match varies {
        [] if k == 0 => vec![Vec::new()],
        [] => Vec::new(),
        [first, rest @ ..] => {
            let most = if *first { k } else { 0 };
            let with =
                |i: usize| compositions(k - i, rest).into_iter().map(move |tail| [vec![i], tail].concat());
            (0..=most).flat_map(with).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::taylor;
    use crate::{Tensor, grad, jvp};

    /// The derivative of order `k` along a direction over `k!`, by forward mode again and again.
    fn nested(f: &dyn Fn(&Tensor) -> Tensor, x: &Tensor, v: &Tensor, k: usize) -> Tensor {
        match k {
            0 => f(x),
            _ => jvp(|x: &Tensor| nested(f, x, v, k - 1), x, v).1 * (1.0 / k as f64),
        }
    }

    #[test]
    fn rules_with_more_than_one_operation_have_series_too() {
        let x = Tensor::from([[0.3, -0.7, 1.1], [1.5, 0.2, -0.4]]);
        let v = Tensor::from([[1.0, 0.5, -0.25], [-1.0, 2.0, 0.75]]);
        let labels = Tensor::from([2, 0]).cast(crate::DType::I64);
        type Function = Box<dyn Fn(&Tensor) -> Tensor>;
        let functions: Vec<(&str, Function)> = vec![
            ("max", Box::new(|x| x.max_axes(1).exp())),
            ("min", Box::new(|x| x.square().min_axes(0))),
            ("max of all", Box::new(|x| x.sin().max())),
            ("softmax", Box::new(|x| x.softmax(-1))),
            ("log_softmax", Box::new(|x| x.log_softmax(0))),
            ("cross_entropy", Box::new(move |x| x.cross_entropy(&labels))),
            ("logsumexp", Box::new(|x| x.logsumexp_axes(0))),
            ("prod", Box::new(|x| x.prod_axes(1))),
            ("std", Box::new(|x| x.std_axes(1))),
            ("gradient", Box::new(|x| grad(|x: &Tensor| x.softmax(0).square().sum())(x))),
        ];
        for (name, f) in functions {
            let all = taylor(&f, &x, &v, 5);
            for (k, c) in all.iter().enumerate() {
                let expected = nested(&*f, &x, &v, k);
                assert_eq!(c.shape(), expected.shape(), "{name}");
                for (a, b) in c.to_vec::<f64>().into_iter().zip(expected.to_vec::<f64>()) {
                    assert!(pullback_testing::close(a, b, 1e-10), "{name} of order {k}: {a} is not {b}");
                }
            }
        }
    }
}
