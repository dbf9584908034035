//! Random programs, and how one that breaks a law is made small.

use crate::graph::{Graph, Ref};
use crate::ops::{Aval, Op};
use crate::prelude::*;
use pullback_testing::Dice;

const NUMBERS: [f64; 8] = [0.0, -0.0, 1.0, -1.0, 2.0, 4.0, -2.0, 3.0];

/// A number in the shape and type of a tensor.
fn splat(like: &Tensor, number: f64) -> Tensor {
    Tensor::full(like.shape(), number).cast(like.dtype())
}

/// A matrix of 4 by 4 with a part of it replaced by a number, as slices and concatenations make it.
fn shifted(dice: &mut Dice, a: &Tensor, number: f64) -> Tensor {
    let axis = dice.roll(2) as isize;
    let (start, n) = (dice.roll(2), 1 + dice.roll(3));
    let part = a.narrow(axis, start, n);
    let rest = splat(&a.narrow(axis, 0, 4 - n), number);
    match dice.roll(3) {
        0 => Tensor::concat(&[&rest, &part], axis),
        1 => Tensor::concat(&[&part, &rest], axis),
        _ => {
            let (one, two) = (rest.narrow(axis, 0, (4 - n) / 2), rest.narrow(axis, 0, (4 - n).div_ceil(2)));
            Tensor::concat(&[&one, &part, &two], axis)
        }
    }
}

/// A step over matrices of 4 by 4 that is exact for whole numbers, so that sums in any order give the same.
fn exact_step(dice: &mut Dice, a: &Tensor, b: &Tensor, c: &Tensor) -> Tensor {
    let number = NUMBERS[dice.roll(NUMBERS.len())];
    match dice.roll(33) {
        0 => a + b,
        1 => a - b,
        2 => a * number,
        3 => a + number,
        4 => a - number,
        5 => -a,
        6 => -(-a),
        7 => a.gate(number),
        8 => splat(a, number).gate(b),
        9 => a.t(),
        10 => a.t().t() + b,
        11 => (a.t() * 2.0).t(),
        12 => a.reshape([2, 8]).reshape([4, 4]),
        13 => a.reshape([16]).relu().reshape([4, 4]),
        14 => a.reshape([2, 8]).t().reshape([4, 4]),
        15 => a.sum_axes(0).broadcast_to([4, 4]),
        16 => (a.narrow(0, 1, 1) * number).broadcast_to([4, 4]) + b,
        17 => a.narrow(0, 1, 1).broadcast_to([4, 4]).sum_axes_keep(0) - b,
        18 => a.narrow(1, 2, 1).broadcast_to([4, 4]).sum_axes(1).broadcast_to([4, 4]),
        19 => a.sum_axes(1).sum_axes(0) + b,
        20 => a.t().sum() + b,
        21 => a.t().clamp(-3.0, 3.0).matmul(&b.t().clamp(-3.0, 3.0)).t(),
        22 => Tensor::where_(&a.gt(b), c, a),
        23 => Tensor::where_(&a.gt(b).logical_not(), c, c),
        24 => a.maximum(b).minimum(a),
        25 => a / [1.0, 2.0, -1.0][dice.roll(3)] * 2.0,
        26 => stop_gradient(a) + a,
        27 => a.clamp(-2.0, 2.0).square() + a.clamp(-2.0, 2.0) * a.clamp(-2.0, 2.0),
        28 => a.narrow(0, 1, 3).narrow(0, 1, 2).narrow(0, 0, 1) + b,
        29 => shifted(dice, a, number),
        30 => shifted(dice, &(a - b), number) + c,
        31 => Tensor::concat(&[a.narrow(1, 2, 2), b.narrow(1, 0, 2)], 1),
        _ => a.cast(DType::F64).cast(a.dtype()).abs() + (-a).abs(),
    }
}

/// A step of any kind that no pass but `layout` may change a bit of.
fn any_step(dice: &mut Dice, a: &Tensor, b: &Tensor, c: &Tensor) -> Tensor {
    let number = [0.0, -0.0, 1.0, -1.0, 2.0, 0.5, 8.0, 10.0, f64::INFINITY, f64::NAN][dice.roll(10)];
    match dice.roll(32) {
        0 => a.sin(),
        1 => a.exp() + number,
        2 => a.abs() - number,
        3 => a / number,
        4 => a * number * 4.0,
        5 => a.gate(b),
        6 => a.gate(number),
        7 => splat(b, number).gate(a),
        8 => a / b,
        9 => number / a,
        10 => a - a.t().t(),
        11 => a.sqrt(),
        12 => a * a,
        13 => (-a) * (-b),
        14 => (-a) / (-b),
        15 => -(a * number),
        16 => a.pow([0.0, 1.0, 2.0, -1.0][dice.roll(4)]),
        17 => Tensor::where_(&a.eq(b).logical_not(), a, c),
        18 => Tensor::where_(&a.lt(b).or(a.lt(b)), a, c),
        19 => a + (-b),
        20 => (-a) - (-b),
        21 => a + a,
        22 => (a + a) * 2.0,
        23 => a.square() + number,
        24 => number - a,
        25 => a.gt(number).cast(a.dtype()) + number,
        26 => a.tanh().t().t(),
        27 => a.minimum(b).maximum(b),
        28 => a.softmax(-1),
        29 => shifted(dice, a, number),
        30 => shifted(dice, &a.abs(), number).maximum(b),
        _ => a.matmul(b).matmul(c),
    }
}

/// A random program of one of the two kinds.
pub(super) fn program(seed: u64, exact: bool, x: &[Tensor]) -> Vec<Tensor> {
    let mut dice = Dice(seed);
    let mut values = x.to_vec();
    for _ in 0..3 + dice.roll(12) {
        let mut pick = || values[dice.roll(values.len())].clone();
        let (a, b, c) = (pick(), pick(), pick());
        values.push(match exact {
            true => exact_step(&mut dice, &a, &b, &c),
            false => any_step(&mut dice, &a, &b, &c),
        });
    }
    (0..1 + dice.roll(4))
        .map(|_| values[values.len() - 1 - dice.roll(values.len() / 2 + 1)].clone())
        .collect()
}

/// A smaller graph that fails too: fewer outputs, fewer operations, nothing that could be left out.
pub(crate) fn shrunk(graph: &Graph, fails: &dyn Fn(&Graph) -> bool) -> Graph {
    let mut graph = graph.clone();
    loop {
        let Some(smaller) = smaller(&graph).into_iter().find(|g| fails(g)) else { return graph };
        graph = smaller;
    }
}

fn smaller(graph: &Graph) -> Vec<Graph> {
    let mut all = Vec::new();
    let size = |g: &Graph| (g.len(), g.outputs.len(), g.steps.iter().map(|s| s.args.len()).sum::<usize>());
    let mut offer = |g: Graph| {
        let g = g.pruned();
        if size(&g) < size(graph) {
            all.push(g);
        }
    };
    // One value alone, the earliest first; one output less.
    for (k, step) in graph.steps.iter().enumerate() {
        for slot in 0..step.avals.len() {
            offer(Graph { outputs: vec![Ref::Step(k, slot)], ..graph.clone() });
        }
    }
    for k in 0..graph.outputs.len() {
        let mut g = graph.clone();
        g.outputs.remove(k);
        offer(g);
    }
    // An operation skipped: its operand, or an input, of the same type in its place.
    for (k, step) in graph.steps.iter().enumerate() {
        let inputs = (0..graph.inputs.len()).map(Ref::Input);
        for a in step.args.iter().copied().chain(inputs) {
            if step.avals.len() == 1 && graph.aval(a) == step.avals[0] {
                let mut g = graph.clone();
                let replace = |r: &mut Ref| {
                    if *r == Ref::Step(k, 0) {
                        *r = a;
                    }
                };
                g.steps.iter_mut().flat_map(|s| s.args.iter_mut()).for_each(replace);
                g.outputs.iter_mut().for_each(replace);
                offer(g);
            }
        }
    }
    all
}

/// A pass that is wrong on purpose: it turns differences around.
pub(super) fn wrong(graph: &Graph) -> Graph {
    let mut graph = graph.clone();
    for step in &mut graph.steps {
        if matches!(step.op, Op::Sub(_)) {
            step.args.reverse();
        }
    }
    graph
}

/// The type of a tensor.
pub(super) fn aval(t: &Tensor) -> Aval {
    Aval { dtype: t.dtype(), shape: t.node().shape.clone() }
}
