//! A plan gives the bits of the graph, whatever its inputs look like, in the memory it has planned.

mod costs;
mod epilogues;
mod groups;
mod memory;
mod programs;

use super::Plan;
use crate::graph::{Graph, trace_leaves};
use crate::ops::{Aval, Op, Sample};
use crate::tensor::Key;
use crate::{DType, Tensor};

/// What a function of leaves does, as a graph.
fn graph(inputs: &[Tensor], f: impl FnOnce(&[Tensor]) -> Vec<Tensor>) -> Graph {
    let aval = |t: &Tensor| Aval { dtype: t.dtype(), shape: t.shape().into() };
    trace_leaves(|x| Ok(f(x)), inputs.iter().map(aval).collect()).unwrap()
}

#[track_caller]
fn same(found: &[Tensor], expected: &[Tensor], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (k, (a, b)) in found.iter().zip(expected).enumerate() {
        assert_eq!((a.dtype(), a.shape()), (b.dtype(), b.shape()), "{what}: output {k}");
        assert_eq!(a.bits(), b.bits(), "{what}: output {k}\n{a:?}\n{b:?}");
    }
}

/// Runs the plan three times, so that memory is used again, and with all inputs donated: handed over, or held by someone else.
#[track_caller]
fn agrees(graph: &Graph, inputs: &[Tensor], what: &str) {
    let expected = graph.eval(inputs).unwrap();
    let plan = Plan::new(graph, &[]).unwrap();
    for _ in 0..3 {
        same(&plan.run(inputs).unwrap(), &expected, what);
    }
    // Donated inputs are row-major or made so, and the rounding of some products depends on strides.
    let inputs: Vec<Tensor> = inputs.iter().map(Tensor::contiguous_copy).collect();
    let expected = graph.eval(&inputs).unwrap();
    let all: Vec<usize> = (0..inputs.len()).collect();
    let plan = Plan::new(graph, &all).unwrap();
    for _ in 0..2 {
        same(&plan.run(&inputs).unwrap(), &expected, what);
        same(&plan.run_owned(inputs.iter().map(Tensor::contiguous_copy).collect()).unwrap(), &expected, what);
        same(&plan.run_owned(inputs.to_vec()).unwrap(), &expected, what);
    }
    same(&graph.eval(&inputs).unwrap(), &expected, &format!("{what}: inputs were overwritten"));
}

/// The same values with other strides: transposed, cut out of something larger, run backward.
fn laid_out(t: &Tensor, how: usize) -> Tensor {
    match (how, t.rank()) {
        (0, _) | (_, 0) => t.clone(),
        (1, 1) | (3, _) => Tensor::concat(&[t.clone(), t.clone()], 0).narrow(0, t.shape()[0], t.shape()[0]),
        (1, _) => t.t().contiguous_copy().t(),
        _ => t.flip(0).contiguous_copy().flip(0),
    }
}

impl Tensor {
    /// The elements in a buffer of their own.
    fn contiguous_copy(&self) -> Tensor {
        match self.rank() {
            0 => self.clone(),
            _ => Tensor::concat(std::slice::from_ref(self), 0),
        }
    }
}

fn inputs(sample: &Sample, dtype: DType, key: Key) -> Vec<Tensor> {
    sample.inputs.iter().enumerate().map(|(k, d)| d.tensor(key.fold_in(k as u64), dtype)).collect()
}

#[test]
fn every_operation_in_both_types_and_any_layout() {
    for dtype in [DType::F32, DType::F64] {
        for (k, sample) in Op::samples().iter().enumerate() {
            for how in 0..4 {
                let x: Vec<Tensor> = inputs(sample, dtype, Key::new(k as u64))
                    .iter()
                    .enumerate()
                    .map(|(k, t)| laid_out(t, if k == 0 { how } else { (how + k) % 4 }))
                    .collect();
                let g = graph(&x, |x| {
                    vec![crate::tensor::bind(sample.op.clone(), &x.iter().collect::<Vec<_>>()).unwrap()]
                });
                agrees(&g, &x, &format!("{:?} {dtype} {how}", sample.op));
            }
        }
    }
}
