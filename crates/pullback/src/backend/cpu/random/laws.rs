//! A program in every mode: plain, compiled outside and inside of its derivatives, as the one lane of a `vmap`, checkpointed.

use super::generate::Program;
use crate::graph::{Graph, Ref};
use crate::prelude::*;
use crate::tensor::bind;
use pullback_testing::caught;
use std::cell::Cell;

/// What is differentiated, and what is not: indices and masks.
type Inputs = (Vec<Tensor>, Vec<Tensor>);

/// What a program gives, its gradient, and its Hessian times a direction.
const ORDERS: usize = 3;

/// The graph as a function, in which every result is rounded otherwise where there is a key for that.
fn run(graph: &Graph, (floats, rest): &Inputs, noise: Option<Key>) -> Vec<Tensor> {
    let (mut floats, mut rest) = (floats.iter(), rest.iter());
    let types = graph.inputs.iter();
    let next = types.map(|a| if a.dtype.is_differentiable() { floats.next() } else { rest.next() });
    let x: Vec<Tensor> = next.map(|t| t.expect("there is one for each input").clone()).collect();
    let Some(key) = noise else { return graph.eval(&x).expect("the program ran when it was made") };
    let mut values: Vec<Tensor> = Vec::new();
    let value = |at: Ref, values: &[Tensor]| match at {
        Ref::Input(k) => x[k].clone(),
        Ref::Const(k) => graph.consts[k].clone(),
        Ref::Step(k, _) => values[k].clone(),
    };
    // A few units in the last place.
    let rounded = |t: &Tensor, key: Key| {
        let unit = if t.dtype().real() == DType::F32 { 2e-7 } else { 4e-16 };
        let factor = Tensor::uniform(key, t.shape(), DType::F64) * (2.0 * unit);
        t * (factor + (1.0 - unit)).cast(t.dtype())
    };
    for (k, step) in graph.steps.iter().enumerate() {
        let key = key.fold_in(k as u64);
        let mut args: Vec<Tensor> = step.args.iter().map(|&a| value(a, &values)).collect();
        // What adds up may do so in another order: where terms cancel, that matters as much as their own roundings.
        if step.op.reduction().is_some() || step.op.is_contraction() {
            let floats = args.iter_mut().enumerate().filter(|(_, t)| t.dtype().is_differentiable());
            floats.for_each(|(j, t)| *t = rounded(t, key.fold_in(j as u64 + 1)));
        }
        let y = bind(step.op.clone(), &args.iter().collect::<Vec<_>>()).expect("as above");
        values.push(match y.dtype().is_differentiable() && !step.op.is_view() {
            true => rounded(&y, key.fold_in(0)),
            false => y,
        });
    }
    graph.outputs.iter().map(|&a| value(a, &values)).collect()
}

/// One number from all outputs: curved, and different for any two elements.
fn loss(outputs: Vec<Tensor>, dtype: DType) -> Tensor {
    let floats = outputs.into_iter().filter(|y| y.dtype().is_differentiable());
    let real = |y: Tensor| match y.dtype().is_complex() {
        true => vec![y.real(), y.imag()],
        false => vec![y],
    };
    let terms = floats.flat_map(real).map(|y| ((&y * weights(&y) + &y * &y * 0.1).sum()).cast(dtype));
    terms.reduce(|a, b| a + b).unwrap_or_else(|| Tensor::scalar(0.0).cast(dtype))
}

/// Numbers between -1 and 1 in the shape of a tensor.
fn weights(like: &Tensor) -> Tensor {
    let numbers: Vec<f64> = (0..like.numel()).map(|k| (k as f64 * 0.7 + 0.3).sin()).collect();
    Tensor::from_slice(&numbers, like.shape()).cast(like.dtype())
}

type Function<'a> = &'a dyn Fn(&Inputs) -> Vec<Tensor>;

/// A function of an order: the values, the gradient, the product with the Hessian.
fn derived(f: Function, order: usize, dtype: DType, x: &Inputs) -> Vec<Tensor> {
    let scalar = |floats: &Vec<Tensor>| loss(f(&(floats.clone(), x.1.clone())), dtype);
    match order {
        0 => f(x),
        1 => grad(scalar)(&x.0),
        _ => hvp(scalar, &x.0, &x.0.iter().map(weights).collect()),
    }
}

thread_local! {
    /// How many results this thread has compared, and how many of them differed by more than a few roundings, so that it mattered how
    /// much these can do.
    pub(crate) static COUNTS: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

/// Where two results differ by more than roundings.
fn difference(found: &[Tensor], expected: &[Tensor], noise: &dyn Fn() -> Vec<Vec<Tensor>>) -> Option<String> {
    if found.len() != expected.len() {
        return Some(format!("{} results for {}", found.len(), expected.len()));
    }
    let numbers = Tensor::numbers;
    let mut others = None;
    for (k, (y, e)) in found.iter().zip(expected).enumerate() {
        if (y.dtype(), y.shape()) != (e.dtype(), e.shape()) {
            return Some(format!(
                "result {k} is {}{:?} for {}{:?}",
                y.dtype(),
                y.shape(),
                e.dtype(),
                e.shape()
            ));
        }
        let (y, wanted) = (numbers(y), numbers(e));
        COUNTS.with(|c| c.set((c.get().0 + 1, c.get().1)));
        let scale = wanted.iter().filter(|v| v.is_finite()).fold(1.0f64, |m, v| m.max(v.abs()));
        let mut tolerance = match e.dtype().real() {
            DType::F64 => 1e-12 * scale,
            DType::F32 => 3e-6 * scale,
            _ => 0.0,
        };
        let differs = |(a, b): (&f64, &f64), tolerance: f64| {
            !(a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= tolerance)
        };
        if !y.iter().zip(&wanted).any(|p| differs(p, tolerance)) {
            continue;
        }
        COUNTS.with(|c| c.set((c.get().0, c.get().1 + 1)));
        // Other roundings of the same operations show how much these can matter here: near a jump, all that there is.
        let others = others.get_or_insert_with(noise);
        let spread = others.iter().flat_map(|o| numbers(&o[k]).into_iter().zip(wanted.clone()));
        let spread = spread.map(|(a, b)| if a == b { 0.0 } else { (a - b).abs() });
        tolerance += 100.0 * spread.fold(0.0, |m: f64, d| if d.is_nan() { f64::INFINITY } else { m.max(d) });
        if tolerance.is_infinite() || !e.dtype().is_differentiable() && tolerance > 0.0 {
            continue;
        }
        if let Some(i) = (0..y.len()).find(|&i| differs((&y[i], &wanted[i]), tolerance)) {
            return Some(format!(
                "element {i} of result {k} is {} for {}, with a tolerance of {tolerance:e}",
                y[i], wanted[i]
            ));
        }
    }
    None
}

/// Memory that other tensors have left.
fn other_memory(call: u64) {
    for n in [3, 40, 700 + (call % 9) as usize * 30] {
        drop(Tensor::arange(0.0, n as f64, 1.0).exp());
    }
}

const WHAT: [&str; ORDERS] = ["value", "gradient", "Hessian times a direction"];

/// Which modes a program runs in.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Modes {
    All,
    /// Value and gradient compiled, once.
    Compiled,
}

/// The first law that a program breaks. One that does not run as it is breaks none.
pub(crate) fn broken(program: &Program, call: u64, modes: Modes) -> Option<String> {
    let (graph, dtype) = (&program.graph, program.dtype);
    let plain = |x: &Inputs| run(graph, x, None);
    let orders = if program.long || modes == Modes::Compiled { 2 } else { ORDERS };
    let calls = if modes == Modes::All { 3 } else { 1 };
    let inside = compile(plain);
    let outside: Vec<_> = (0..orders)
        .map(|order| compile(move |x: &Inputs| derived(&|x| run(graph, x, None), order, dtype, x)))
        .collect();
    for call in call..call + calls {
        let all = program.inputs(call).into_iter();
        let x: Inputs = all.partition(|t: &Tensor| t.dtype().is_differentiable());
        for order in 0..orders {
            let expected = caught(|| derived(&plain, order, dtype, &x)).ok()?;
            let noise = || {
                let other = |k: u64| derived(&|x| run(graph, x, Some(Key::new(k))), order, dtype, &x);
                (0..6).map(other).collect()
            };
            let law = |name: &str, mode: &dyn Fn() -> Vec<Tensor>| {
                let wrong = match caught(mode) {
                    Ok(found) => difference(&found, &expected, &noise)?,
                    Err(panic) => format!("it panics: {panic}"),
                };
                Some(format!("{} {name}, at the inputs of {call}: {wrong}", WHAT[order]))
            };
            let compiled = |x: &Inputs| inside.call(x);
            let mut broken = law("compiled", &|| outside[order].call(&x));
            if order > 0 && modes == Modes::All {
                broken = broken
                    .or_else(|| law("of the compiled function", &|| derived(&compiled, order, dtype, &x)));
            }
            if broken.is_some() {
                return broken;
            }
            other_memory(call);
            // Once is enough for these, and second derivatives of them follow from the first.
            if call % 3 != 0 || order == 2 || modes == Modes::Compiled {
                continue;
            }
            let lanes = |x: &Inputs| {
                let one = |t: &Vec<Tensor>| t.iter().map(|t| t.unsqueeze(0)).collect::<Vec<_>>();
                let y = vmap(|x: &Inputs| derived(&plain, order, dtype, x))(&(one(&x.0), one(&x.1)));
                y.iter().map(|t| t.squeeze(0)).collect::<Vec<_>>()
            };
            let checkpointed = |x: &Inputs| checkpoint(plain)(x);
            let broken = law("as the lane of a vmap", &|| lanes(&x))
                .or_else(|| law("checkpointed", &|| derived(&checkpointed, order, dtype, &x)));
            if broken.is_some() {
                return broken;
            }
        }
    }
    None
}
