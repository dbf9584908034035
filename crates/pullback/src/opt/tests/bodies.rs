//! Passes on loops, branches and calls.

use super::after;
use crate::graph::Graph;
use crate::opt::measure::{operations, peak};
use crate::opt::{Options, remat};
use crate::prelude::*;

#[track_caller]
fn check(pass: &str, before: &str, expected: &str) {
    assert_eq!(after(pass, &Options::default(), before), expected.trim());
}

#[test]
fn what_every_step_computes_alike_is_computed_before_the_loop() {
    check(
        "hoist",
        "graph(x0: f64[], x1: f64[5], x2: f64[]) {
  %0 = scan(x0, x1, x2) {state: 1, items: 1, from: 0, to: 5, stacks: true} : (f64[])
    graph(x0: f64[], x1: f64[], x2: f64[]) {
      %0 = exp(x2) : f64[]
      %1 = mul(x0, %0) : f64[]
      %2 = add(%1, x1) : f64[]
      return %2
    }
  return %0
}",
        "graph(x0: f64[], x1: f64[5], x2: f64[]) {
  %0 = exp(x2) : f64[]
  %1 = scan(x0, x1, x2, %0) {state: 1, items: 1, from: 0, to: 5, stacks: true} : (f64[])
    graph(x0: f64[], x1: f64[], x2: f64[], x3: f64[]) {
      %0 = mul(x0, x3) : f64[]
      %1 = add(%0, x1) : f64[]
      return %1
    }
  return %1
}",
    );
}

#[test]
fn a_loop_of_no_steps_computes_nothing_before_it() {
    let text = "graph(x0: i64[], x1: i64[]) {
  %0 = scan(x0, x1) {state: 1, items: 0, from: 0, to: 0, stacks: true} : (i64[])
    graph(x0: i64[], x1: i64[]) {
      %0 = div(x1, x1) : i64[]
      %1 = mul(x0, %0) : i64[]
      return %1
    }
  return %0
}";
    check("hoist", text, text);
}

#[test]
fn a_loop_of_one_step_is_the_step() {
    check(
        "unroll",
        "graph(x0: f64[], x1: f64[5]) {
  %0 = scan(x0, x1) {state: 1, items: 1, from: 3, to: 4, stacks: true} : (f64[], f64[1])
    graph(x0: f64[], x1: f64[]) {
      %0 = mul(x0, x1) : f64[]
      return %0, x0
    }
  return %0, %0.1
}",
        "graph(x0: f64[], x1: f64[5]) {
  %0 = slice(x1) {region: [[3, 1, 1]]} : f64[1]
  %1 = reshape(%0) {to: []} : f64[]
  %2 = mul(x0, %1) : f64[]
  %3 = reshape(x0) {to: [1]} : f64[1]
  return %2, %3
}",
    );
}

#[test]
fn loops_lose_what_nobody_reads() {
    // The state x1 only feeds itself, x2 never changes, the stacked output is not read, and neither is the item x3.
    check(
        "trim",
        "graph(x0: f64[], x1: f64[], x2: f64[], x3: f64[5]) {
  %0 = scan(x0, x1, x2, x3) {state: 3, items: 1, from: 0, to: 5, stacks: true} : (f64[], f64[], f64[], f64[5])
    graph(x0: f64[], x1: f64[], x2: f64[], x3: f64[]) {
      %0 = mul(x0, x2) : f64[]
      %1 = sin(x1) : f64[]
      %2 = exp(x3) : f64[]
      return %0, %1, x2, %2
    }
  %1 = add(%0, %0.2) : f64[]
  return %1
}",
        "graph(x0: f64[], x1: f64[], x2: f64[], x3: f64[5]) {
  %0 = scan(x0, x2) {state: 1, items: 0, from: 0, to: 5, stacks: true} : (f64[])
    graph(x0: f64[], x1: f64[]) {
      %0 = mul(x0, x1) : f64[]
      return %0
    }
  %1 = add(%0, x2) : f64[]
  return %1
}",
    );
}

#[test]
fn branches_lose_what_nobody_reads_and_know_literals() {
    check(
        "trim",
        "graph(x0: bool[], x1: f64[], x2: f64[]) {
  c0 = constant 2.0 : f64[]
  %0 = cond(x0, x1, x2, c0, x1) {inputs: 2} : (f64[], f64[])
    graph(x0: f64[], x1: f64[], x2: f64[]) {
      %0 = mul(x0, x2) : f64[]
      return x1, %0
    }
    graph(x0: f64[], x1: f64[], x2: f64[]) {
      %0 = mul(x0, x2) : f64[]
      return x1, %0
    }
  return %0.1
}",
        "graph(x0: bool[], x1: f64[], x2: f64[]) {
  %0 = cond(x0, x1) {inputs: 1} : (f64[])
    graph(x0: f64[]) {
      c0 = constant 2.0 : f64[]
      %0 = mul(x0, c0) : f64[]
      return %0
    }
    graph(x0: f64[]) {
      %0 = mul(x0, x0) : f64[]
      return %0
    }
  return %0
}",
    );
}

#[test]
fn calls_are_inlined_and_checkpoints_are_not() {
    let text = |name: &str| {
        format!(
            "graph(x0: f64[]) {{
  %0 = {name}(x0) : (f64[])
    graph(x0: f64[]) {{
      %0 = sin(x0) : f64[]
      return %0
    }}
  %1 = exp(%0) : f64[]
  return %1
}}"
        )
    };
    let inlined = "graph(x0: f64[]) {\n  %0 = sin(x0) : f64[]\n  %1 = exp(%0) : f64[]\n  return %1\n}";
    check("inline", &text("call"), inlined);
    check("inline", &text("checkpoint"), &text("checkpoint"));
}

#[test]
fn a_known_condition_chooses() {
    let text = |value: bool| {
        format!(
            "graph(x0: f64[], x1: f64[], x2: f64[]) {{
  c0 = constant {value} : bool[]
  %0 = cond(c0, x0, x1, x2) {{inputs: 1}} : (f64[])
    graph(x0: f64[], x1: f64[]) {{
      %0 = add(x0, x1) : f64[]
      return %0
    }}
    graph(x0: f64[], x1: f64[]) {{
      %0 = mul(x0, x1) : f64[]
      return %0
    }}
  return %0
}}"
        )
    };
    let chosen = |line: &str| {
        format!("graph(x0: f64[], x1: f64[], x2: f64[]) {{\n  %0 = {line} : f64[]\n  return %0\n}}")
    };
    check("inline", &text(true), &chosen("add(x0, x1)"));
    check("inline", &text(false), &chosen("mul(x0, x2)"));
}

#[test]
fn passes_reach_into_bodies() {
    let g = trace(
        |x: &Tensor| {
            scan(|s: &Tensor, x: &Tensor| (s * 1.0 + x.sin() * x.sin(), ()), &Tensor::scalar(0.0), x).0
        },
        &Tensor::zeros([4]),
    );
    let best = g.optimize();
    let body = best.steps[0].op.body().unwrap().bodies()[0].clone();
    assert_eq!(body.to_string().lines().filter(|l| l.contains("sin(")).count(), 1, "{best}");
    assert!(!body.to_string().contains("constant"), "{best}");
}

/// Values that are needed again in the opposite order, as those of a forward pass are: `x + ..` so that each is elementwise in `x`.
fn there_and_back(n: usize) -> Graph {
    let f = |x: &Tensor| {
        let all: Vec<Tensor> = (0..n).map(|k| (x * (k as f64 + 0.5)).sin()).collect();
        let forward = all.iter().fold(x.sum(), |sum, y| sum + y.sum());
        all.iter().rev().fold(forward, |sum, y| (y * sum).sum())
    };
    trace(f, &Tensor::zeros([1000]))
}

#[test]
fn cheap_values_are_computed_again_under_a_limit() {
    let graph = there_and_back(8).optimize();
    let before = peak(&graph);
    assert!(before > 8 * 8000, "{before}");
    let limit = 4 * 8192;
    let new = remat::remat(&graph, limit);
    new.verify().unwrap();
    assert!(peak(&new) <= limit, "{} of {before}", peak(&new));
    assert!(operations(&new) > operations(&graph));
    let x = [Tensor::uniform(Key::new(1), [1000], DType::F64)];
    assert_eq!(new.run(&x).unwrap()[0].item(), graph.run(&x).unwrap()[0].item());
    let options = Options { memory: Some(limit), ..Options::default() };
    let report = there_and_back(8).optimize_with(&options).1;
    assert!(report.after.peak_bytes <= limit && report.to_string().contains("remat"), "{report}");
}

#[test]
fn products_and_sums_are_never_computed_again() {
    let f = |x: &Tensor| {
        let all: Vec<Tensor> = (0..6).map(|k| x.matmul(&(x * (k as f64)))).collect();
        let forward = all.iter().fold(x.sum(), |sum, y| sum + y.sum());
        all.iter().rev().fold(forward, |sum, y| (y * sum).sum())
    };
    let graph = trace(f, &Tensor::zeros([30, 30])).optimize();
    let new = remat::remat(&graph, 0);
    let count = |g: &Graph, name: &str| g.steps.iter().filter(|s| s.op.name() == name).count();
    for name in ["matmul", "sum"] {
        assert_eq!(count(&new, name), count(&graph, name));
    }
}

#[test]
fn a_value_kept_for_long_does_not_cost_more_memory_than_computing_it_twice() {
    // The same large value at the beginning and at the end, and much memory between.
    let f = |x: &Tensor| {
        let first = (x * 3.0).sin().sum();
        let wide = (x + first).broadcast_to([8, 1000]).cos();
        let middle = (&wide * wide.flip(1)).sum();
        (x * 3.0).sin() * middle
    };
    let graph = trace(f, &Tensor::zeros([1000]));
    let (best, report) = graph.optimize_with(&Options::default());
    assert!(report.after.peak_bytes <= report.before.peak_bytes, "{report}\n{best}");
    assert!(report.after.operations <= report.before.operations, "{report}\n{best}");
}
