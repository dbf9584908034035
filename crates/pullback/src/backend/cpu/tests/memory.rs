//! What runs allocate, and whose memory they write to.

use super::graph;
use crate::backend::cpu::Plan;
use crate::prelude::*;
use crate::tensor::{Data, buffer};
use crate::{DType, Tensor};

pub(super) fn address(t: &Tensor) -> *const u8 {
    match t.data() {
        Data::Strided(s) => s.buffer.slice::<u8>().as_ptr(),
        _ => std::ptr::null(),
    }
}

fn normal(k: u64, shape: &[usize]) -> Tensor {
    Tensor::randn(Key::new(k), shape, DType::F32)
}

#[test]
fn a_warm_run_takes_memory_for_its_outputs_alone() {
    let x = [normal(1, &[64, 64]), normal(2, &[64, 64])];
    let g = graph(&x, |x| {
        let h = (x[0].matmul(&x[1]) + &x[0]).tanh();
        let deep = (0..20).fold(h, |h, _| (h.matmul(&x[1].t()) * 0.1).softmax(-1) + &x[0]);
        vec![deep.sum_axes(0), deep.exp()]
    });
    let plan = Plan::new(&g, &[]).unwrap();
    let _ = plan.run(&x).unwrap();
    let before = buffer::requests();
    let y = plan.run(&x).unwrap();
    assert_eq!(buffer::requests() - before, 2);
    drop(y);
}

#[test]
fn a_chain_runs_in_one_place() {
    let x = [normal(1, &[1000])];
    let g = graph(&x, |x| vec![(0..50).fold(x[0].clone(), |x, k| (x * 1.1).sin() - k as f64).sum()]);
    let plan = Plan::new(&g, &[]).unwrap();
    assert_eq!(plan.storage.slots, [4096]);
    // Products cannot be written over their factors: two places.
    let x = [normal(1, &[30, 30])];
    let g = graph(&x, |x| vec![(0..9).fold(x[0].clone(), |y, _| y.matmul(&x[0])).sum()]);
    assert_eq!(Plan::new(&g, &[]).unwrap().storage.slots, [4096; 2]);
}

#[test]
fn of_the_free_places_the_last_one_in_use_is_taken() {
    let x = [normal(1, &[30, 30])];
    let g = graph(&x, |x| {
        let early = x[0].matmul(&x[0]);
        let first = x[0].matmul(&early);
        let second = first.matmul(&first);
        // Frees the memory of `early`, after that of `first`.
        let output = early.matmul(&x[0]);
        let third = second.matmul(&second);
        vec![output, third.matmul(&third)]
    });
    let places = Plan::new(&g, &[]).unwrap().storage.places;
    let [early, first, second, _, third, _] = places[..] else { panic!("{places:?}") };
    assert_eq!(third, early, "{places:?}");
    assert!(first != second && first != early && second != early, "{places:?}");
}

#[test]
fn the_order_is_changed_where_that_saves_memory() {
    let x = [normal(1, &[1000])];
    // Traced, all large values are made before the first is summed.
    let g = graph(&x, |x| {
        let large: Vec<Tensor> = (0..8).map(|k| (&x[0] * k as f64).sin()).collect();
        large.iter().map(|t| t.sum()).reduce(|a, b| a + b).into_iter().collect()
    });
    let plan = Plan::new(&g, &[]).unwrap();
    assert!(plan.storage.slots.iter().sum::<usize>() < 2 * 4096, "{:?}", plan.storage.slots);
}

#[test]
fn memory_in_use_stays_within_the_plan() {
    let x = [normal(1, &[300, 300]), normal(2, &[300, 10])];
    let loss = |x: &Vec<Tensor>| (x[0].matmul(&x[1]).tanh().matmul(&x[1].t()) * &x[0]).square().sum();
    let g = graph(&x, |x| grad(loss)(&x.to_vec()));
    let plan = Plan::new(&g, &[]).unwrap();
    let y = plan.run(&x).unwrap();
    let frame = plan.lease();
    let outputs: usize = y.iter().map(|t| t.numel() * 4).sum();
    // A freed buffer is taken again if it is an eighth too large at most.
    assert!(frame.bytes() + outputs <= plan.storage.peak * 9 / 8);
    assert!(frame.bytes() + outputs >= plan.storage.peak * 7 / 8, "the plan asks for more than it uses");
}

#[test]
fn a_donated_input_is_overwritten_by_its_successor() {
    let x = [normal(1, &[40, 40]), normal(2, &[40, 40])];
    let g = graph(&x, |x| {
        let slope = x[1].matmul(&x[0]);
        vec![slope.sum(), &x[0] - slope * 0.1]
    });
    let plan = Plan::new(&g, &[0]).unwrap();
    let expected = g.eval(&x).unwrap()[1].to_vec::<f32>();
    let state = &x[0] * 1.0;
    let at = address(&state);
    let y = plan.run_owned(vec![state, x[1].clone()]).unwrap();
    assert_eq!(address(&y[1]), at);
    assert_eq!(y[1].to_vec::<f32>(), expected);
}

#[test]
fn memory_of_a_donated_input_is_used_after_its_last_use() {
    let x = [normal(1, &[40, 40]), normal(2, &[40, 40])];
    // A product cannot be written over a factor, but the next one can be written there.
    let g = graph(&x, |x| vec![x[0].t().matmul(&x[1]).matmul(&x[1].t())]);
    let plan = Plan::new(&g, &[0]).unwrap();
    let state = &x[0] * 1.0;
    let at = address(&state);
    let y = plan.run_owned(vec![state, x[1].clone()]).unwrap();
    assert_eq!(address(&y[0]), at);
    assert_eq!(y[0].to_vec::<f32>(), g.eval(&x).unwrap()[0].to_vec::<f32>());
}

#[test]
fn what_someone_else_holds_is_not_overwritten() {
    let x = normal(1, &[100]);
    let g = graph(std::slice::from_ref(&x), |x| vec![x[0].exp() + 1.0]);
    let plan = Plan::new(&g, &[0]).unwrap();
    let values = x.to_vec::<f32>();
    // Another handle, a view, the same tensor twice, and a run that was not given the tensor.
    let (handle, state) = (x.clone(), x.clone());
    plan.run_owned(vec![state]).unwrap();
    assert_eq!(handle.to_vec::<f32>(), values);
    drop(handle);
    let view = x.slice(10..20);
    plan.run_owned(vec![&x * 1.0]).unwrap();
    let state = x.clone();
    drop(x);
    plan.run(std::slice::from_ref(&state)).unwrap();
    assert_eq!(state.to_vec::<f32>(), values);
    plan.run_owned(vec![state]).unwrap();
    assert_eq!(view.to_vec::<f32>(), values[10..20]);

    let x = normal(1, &[100]);
    let two = graph(&[x.clone(), x.clone()], |x| vec![x[0].exp() + &x[1]]);
    let plan = Plan::new(&two, &[0, 1]).unwrap();
    let expected = two.eval(&[x.clone(), x.clone()]).unwrap()[0].to_vec::<f32>();
    let y = plan.run_owned(vec![x.clone(), x]).unwrap();
    assert_eq!(y[0].to_vec::<f32>(), expected);
}
