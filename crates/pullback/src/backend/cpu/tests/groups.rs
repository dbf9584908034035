//! Fused groups in a plan: over memory that is used again, and over inputs that die.

use super::memory::address;
use super::programs::program;
use super::{graph, same};
use crate::backend::cpu::Plan;
use crate::graph::{Graph, Ref, Step};
use crate::opt::laws::fused as grouped;
use crate::prelude::*;

/// Runs each operation in a plan of its own, so that nothing is overwritten.
pub(super) fn apart(graph: &Graph, inputs: &[Tensor]) -> Vec<Tensor> {
    let mut values: Vec<Vec<Tensor>> = Vec::new();
    let value = |at: Ref, values: &[Vec<Tensor>]| match at {
        Ref::Input(k) => inputs[k].clone(),
        Ref::Const(k) => graph.consts[k].clone(),
        Ref::Step(k, slot) => values[k][slot].clone(),
    };
    for step in &graph.steps {
        let args: Vec<Tensor> = step.args.iter().map(|&a| value(a, &values)).collect();
        let alone = Graph {
            inputs: step.args.iter().map(|&a| graph.aval(a)).collect(),
            consts: Vec::new(),
            steps: vec![Step { args: (0..args.len()).map(Ref::Input).collect(), ..step.clone() }],
            outputs: (0..step.avals.len()).map(|slot| Ref::Step(0, slot)).collect(),
            names: Vec::new(),
        };
        values.push(Plan::new(&alone, &[]).unwrap().run(&args).unwrap());
    }
    graph.outputs.iter().map(|&a| value(a, &values)).collect()
}

#[test]
fn groups_of_random_programs_and_their_gradients() {
    let mut fused = 0;
    for seed in 0..120 {
        let dtype = if seed % 2 == 0 { DType::F64 } else { DType::F32 };
        let x: Vec<Tensor> =
            (0..3).map(|k| Tensor::uniform(Key::new(seed).fold_in(k), [4, 4], dtype) - 0.5).collect();
        let loss = |x: &Vec<Tensor>| {
            program(seed, x).iter().map(|t| t.sum()).reduce(|a, b| a + b).expect("there are outputs")
        };
        let traced = graph(&x, |x| if seed % 3 == 0 { program(seed, x) } else { grad(loss)(&x.to_vec()) });
        let g = grouped(&traced);
        fused += g.steps.iter().filter(|s| s.op.name() == "fused").count();
        let expected = apart(&g, &x);
        let plan = Plan::new(&g, &[]).unwrap();
        for _ in 0..2 {
            same(&plan.run(&x).unwrap(), &expected, &format!("program {seed}"));
        }
        let plan = Plan::new(&g, &[0, 1, 2]).unwrap();
        for _ in 0..2 {
            let copies = x.iter().map(|t| Tensor::concat(std::slice::from_ref(t), 0)).collect();
            same(&plan.run_owned(copies).unwrap(), &expected, &format!("program {seed}, handed over"));
            same(&plan.run_owned(x.clone()).unwrap(), &expected, &format!("program {seed}, held"));
        }
    }
    assert!(fused > 100, "only {fused} groups were tested");
}

#[test]
fn the_state_of_an_optimiser_is_updated_in_place() {
    let normal = |k| Tensor::randn(Key::new(k), [100, 30], DType::F32);
    let x: Vec<Tensor> = (0..4).map(normal).collect();
    let g = graph(&x, |x| {
        // A gradient that dies in the update, so that its memory could be taken too.
        let slope = (x[3].t().matmul(&x[3]).matmul(&x[0].t()) * 0.1).t();
        let m = &slope * 0.1 + &x[1] * 0.9;
        let v = slope.square() * 0.001 + &x[2] * 0.999;
        vec![&x[0] - &m / (v.abs().sqrt() + 1e-8) * 1e-3, m, v]
    });
    let g = grouped(&g);
    let plan = Plan::new(&g, &[0, 1, 2]).unwrap();
    let expected = apart(&g, &x);
    let state: Vec<Tensor> = x.iter().map(|t| t * 1.0).collect();
    let places: Vec<_> = state.iter().map(address).collect();
    let after = plan.run_owned(state).unwrap();
    same(&after, &expected, "adam");
    assert_eq!(after.iter().map(address).collect::<Vec<_>>(), places[..3]);
}

#[test]
fn a_step_of_a_loop_takes_no_memory() {
    let x = [Tensor::randn(Key::new(1), [50, 16], DType::F32), Tensor::randn(Key::new(2), [16], DType::F32)];
    let requests = |steps: usize| {
        let items = x[0].narrow(0, 0, steps);
        let inputs = [items, x[1].clone()];
        let g = graph(&inputs, |x| {
            let step = |h: &Tensor, r: &Tensor| {
                let row = h * r;
                ((h + r).tanh(), row)
            };
            let (last, rows) = scan(step, &x[1], &x[0]);
            vec![last, rows]
        });
        let plan = Plan::new(&grouped(&g), &[]).unwrap();
        plan.run(&inputs).unwrap();
        let before = crate::tensor::buffer::requests();
        plan.run(&inputs).unwrap();
        crate::tensor::buffer::requests() - before
    };
    assert_eq!(requests(5), requests(50));
}

/// A step of Runge and Kutta's method of second order for `y[k]' = x[k] y[k - 1]`.
fn step(x: &Tensor, y: &Tensor) -> Tensor {
    let n = x.shape()[0];
    let zero = Tensor::zeros([1]);
    let moved = |k: &Tensor, h: f64| y + Tensor::concat(&[&zero, &(k * h)], 0);
    moved(&(x * moved(&(x * y.slice(..n)), 0.25).slice(..n)), 0.5)
}

#[test]
fn neighbours_are_read_before_they_are_overwritten() {
    // Several tiles, the inputs handed over, and many values in few slots.
    let n = 3000;
    let x =
        [Tensor::uniform(Key::new(1), [n], DType::F64), Tensor::uniform(Key::new(2), [n + 1], DType::F64)];
    let slopes = |x: &[Tensor]| {
        let loss = |p: &[Tensor; 2]| {
            let last = (0..8).fold(p[1].clone(), |y, _| step(&p[0], &y));
            (last.square() * &x[1]).sum()
        };
        grad(loss)(&[x[0].clone(), x[1].clone()]).to_vec()
    };
    let g = grouped(&graph(&x, slopes));
    let expected = apart(&g, &x);
    let plan = Plan::new(&g, &[0, 1]).unwrap();
    for _ in 0..2 {
        let copies = x.iter().map(|t| Tensor::concat(std::slice::from_ref(t), 0)).collect();
        same(&plan.run_owned(copies).unwrap(), &expected, "handed over");
        same(&plan.run(&x).unwrap(), &expected, "held");
    }
}

#[test]
fn a_checkpointed_step_is_one_kernel_on_each_way() {
    let x = [Tensor::uniform(Key::new(1), [40], DType::F64), Tensor::uniform(Key::new(2), [41], DType::F64)];
    let slope = |x: &[Tensor; 2]| {
        let again = checkpoint(|(x, y): &(Tensor, Tensor)| step(x, y));
        let last = |p: &Tensor| again(&(p.clone(), again(&(p.clone(), x[1].clone())))).square().sum();
        vec![grad(last)(&x[0])]
    };
    let compiled = compile(move |x: &[Tensor; 2]| slope(x));
    let g = compiled.graph(&x).unwrap().optimize();
    assert_eq!(g.inputs.len(), 2, "the numbers in a step are no inputs: {g}");
    let fused = grouped(&g);
    let plan = Plan::new(&fused, &[]).unwrap();
    assert!(plan.statistics().kernels <= 4, "{fused}");
    same(&plan.run(&x).unwrap(), &apart(&fused, &x), "checkpointed");
}
