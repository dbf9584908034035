//! Laws of every pass, over every operation and over random programs: values and gradients stay, optimising again changes nothing, and
//! nothing costs more than before. A program that breaks one is made small before it is shown.

mod programs;

use super::pipeline::{PASSES, Pass, Run, Target, everywhere};
use super::*;
use crate::backend::cpu::Plan;
use crate::backend::host;
use crate::graph::trace_leaves;
use crate::ops::{Op, Sample};
use crate::prelude::*;
use crate::tensor::bind;
pub(crate) use programs::shrunk;
use programs::{aval, program, wrong};
use pullback_testing::Dice;

/// How close two results have to be.
#[derive(Clone, Copy)]
enum Close {
    /// The same bits, any NaN for a NaN.
    Bits,
    /// The same numbers, zeros of any sign.
    Equal,
    /// Within so much of the largest element: sums are rounded in another order.
    Within(f64),
}

impl Close {
    fn holds(self, a: &[Tensor], b: &[Tensor]) -> bool {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| self.same(a, b))
    }

    fn same(self, a: &Tensor, b: &Tensor) -> bool {
        if aval(a) != aval(b) {
            return false;
        }
        let (a, b) = (a.numbers(), b.numbers());
        let scale = a.iter().filter(|v| v.is_finite()).fold(1.0, |m: f64, v| m.max(v.abs()));
        a.iter().zip(&b).all(|(a, b)| match self {
            _ if a.is_nan() || b.is_nan() => a.is_nan() && b.is_nan(),
            Close::Bits => a.to_bits() == b.to_bits(),
            Close::Equal => a == b,
            Close::Within(tolerance) => a == b || (a - b).abs() <= tolerance * scale,
        })
    }
}

/// A function of graphs.
type Rewriting = Box<dyn Fn(&Graph) -> Graph>;

/// A pass as it runs in the pipeline, where memory is as short as can be.
fn run_pass(pass: &Pass, graph: &Graph, options: &Options, spare: u64) -> Graph {
    let run = |g: &Graph, spare: u64| match pass.run {
        Run::Trace(run) => run(g),
        Run::Optimise(run) => run(g, options),
        Run::Fit(run) => run(g, 0),
        Run::Lower(run) => run(g, &Target { backend: host(), spare }),
    };
    everywhere(graph, &|g| run(g, 0), &|g| run(g, spare))
}

/// The graph after passes of these names.
pub(crate) fn after(names: &[&str], graph: &Graph, options: &Options, spare: u64) -> Graph {
    let named = |name: &&str| PASSES.iter().find(|p| p.name == *name).expect("a pass of that name");
    names.iter().map(named).fold(graph.clone(), |g, pass| run_pass(pass, &g, options, spare))
}

/// The graph with its operations fused.
pub(crate) fn fused(graph: &Graph) -> Graph {
    after(&["share", "fuse"], graph, &Options::default(), 0)
}

/// Each pass, and whether it keeps bits.
fn each_pass() -> impl Iterator<Item = (&'static str, Rewriting, bool)> {
    PASSES.iter().map(|p| {
        let run = move |g: &Graph| run_pass(p, g, &Options::default(), 0);
        (p.name, Box::new(run) as Rewriting, p.name != "moves")
    })
}

/// What is wrong with a pass on a graph.
fn fault(graph: &Graph, x: &[Tensor], pass: &dyn Fn(&Graph) -> Graph, close: Close) -> Option<String> {
    let new = pass(graph);
    if let Err(e) = new.verify() {
        return Some(format!("is not well formed: {e}"));
    }
    let (Ok(before), Ok(after)) = (graph.run(x), new.run(x)) else { return Some("does not run".into()) };
    (!close.holds(&before, &after)).then(|| format!("gives {after:?} instead of {before:?}"))
}

/// What is wrong with the whole optimisation of a graph.
fn optimised_fault(graph: &Graph, x: &[Tensor], close: Close) -> Option<String> {
    let (once, report) = graph.optimize_with(&Options::default());
    if !within(&once, &graph.statistics(), false) {
        return Some(format!("costs more: {report}"));
    }
    let twice = once.optimize();
    if once.to_string() != twice.to_string() {
        return Some(format!("becomes something else when it is optimised again:\n{twice}"));
    }
    fault(graph, x, &|_| once.clone(), close)
}

/// Fails with a small graph on which a law is broken.
#[track_caller]
fn refuse(what: &str, graph: &Graph, find: &dyn Fn(&Graph) -> Option<String>) {
    if find(graph).is_none() {
        return;
    }
    let small = shrunk(graph, &|g| find(g).is_some());
    panic!("{what} {} from\n{small}\nto\n{}", find(&small).expect("it fails"), small.optimize());
}

/// What is wrong with a graph when its operations are fused.
fn fused_fault(graph: &Graph, x: &[Tensor], close: Close) -> Option<String> {
    let fused = self::fused(graph);
    if fused.len() > graph.len() {
        return Some(format!("has more operations:\n{fused}"));
    }
    let result = Plan::new(&fused, &[]).unwrap().run(x).unwrap();
    let expected = graph.run(x).unwrap();
    (!close.holds(&expected, &result)).then(|| format!("gives {result:?} instead of {expected:?}:\n{fused}"))
}

/// Every pass alone, and all together.
#[track_caller]
fn check(graph: &Graph, x: &[Tensor], exact: Close, rounded: Close, what: &str) {
    for (name, pass, keeps_bits) in each_pass() {
        let close = if keeps_bits { exact } else { rounded };
        refuse(&format!("{what}: the pass {name}"), graph, &|g| fault(g, x, &*pass, close));
    }
    refuse(&format!("{what}: the optimised graph"), graph, &|g| optimised_fault(g, x, rounded));
    refuse(&format!("{what}: fused"), graph, &|g| fused_fault(g, x, rounded));
}

fn traced(x: &[Tensor], f: impl Fn(&[Tensor]) -> Vec<Tensor>) -> Graph {
    trace_leaves(|x| Ok(f(x)), x.iter().map(aval).collect()).unwrap()
}

/// The gradient of the weighted sum of what a function returns, as a graph.
fn gradient(x: &[Tensor], f: impl Fn(&[Tensor]) -> Vec<Tensor>) -> Graph {
    let loss = |x: &Vec<Tensor>| {
        let terms = f(x).into_iter().enumerate().filter(|(_, y)| y.dtype().is_differentiable());
        let terms = terms
            .map(|(k, y)| (&y * Tensor::randint(Key::new(k as u64), y.shape(), 1, 4).cast(y.dtype())).sum());
        let real = |y: Tensor| if y.dtype().is_complex() { y.real() + y.imag() * 0.7 } else { y };
        terms.map(real).reduce(|a, b| a + b).expect("there is an output")
    };
    traced(x, |x| {
        let (value, g) = value_and_grad(loss)(&x.to_vec());
        std::iter::once(value).chain(g).collect()
    })
}

#[test]
fn every_operation_keeps_its_value_and_gradient() {
    for s in Op::samples() {
        for (dtype, tolerance) in [(DType::F32, 1e-5), (DType::F64, 1e-13)] {
            let x: Vec<Tensor> =
                s.inputs.iter().enumerate().map(|(k, d)| d.tensor(Key::new(k as u64), dtype)).collect();
            let run = |x: &[Tensor]| vec![bind(s.op.clone(), &x.iter().collect::<Vec<_>>()).unwrap()];
            let what = format!("{} of {dtype}", s.op.name());
            check(&traced(&x, run), &x, Close::Bits, Close::Within(tolerance), &what);
            let (floats, graph) = gradient_of(&s, &x, &run);
            if let Some(graph) = graph {
                check(
                    &graph,
                    &floats,
                    Close::Within(tolerance),
                    Close::Within(tolerance),
                    &format!("gradient of {what}"),
                );
            }
        }
    }
}

/// The gradient with respect to the inputs that are floats; the others are captured.
fn gradient_of(
    s: &Sample,
    x: &[Tensor],
    run: &dyn Fn(&[Tensor]) -> Vec<Tensor>,
) -> (Vec<Tensor>, Option<Graph>) {
    let floats: Vec<Tensor> = x.iter().filter(|t| t.dtype().is_differentiable()).cloned().collect();
    let y = run(x);
    if floats.is_empty() || !y[0].dtype().is_differentiable() || s.op.stops_gradient() {
        return (floats, None);
    }
    let all = |given: &[Tensor]| {
        let mut given = given.iter();
        let all: Vec<Tensor> = x
            .iter()
            .map(|t| if t.dtype().is_differentiable() { given.next().unwrap().clone() } else { t.clone() })
            .collect();
        run(&all)
    };
    let graph = gradient(&floats, all);
    (floats, Some(graph))
}

/// Whole numbers, in which sums are exact.
fn whole(seed: u64) -> Vec<Tensor> {
    (0..3).map(|k| Tensor::randint(Key::new(seed).fold_in(k), [4, 4], -2, 3).cast(DType::F64)).collect()
}

/// Whether a run stays among the numbers that a float holds exactly.
fn is_exact(graph: &Graph, x: &[Tensor]) -> bool {
    let outputs = (0..graph.len())
        .flat_map(|k| (0..graph.steps[k].avals.len()).map(move |s| crate::graph::Ref::Step(k, s)));
    let all = Graph { outputs: outputs.collect(), ..graph.clone() };
    let small = |t: &Tensor| t.numbers().iter().all(|v| v.abs() < 1e12);
    all.run(x).unwrap().iter().all(small)
}

#[test]
fn random_programs_over_whole_numbers_keep_their_values() {
    for seed in 0..150 {
        let x = whole(seed);
        let graph = traced(&x, |x| program(seed, true, x));
        if is_exact(&graph, &x) {
            check(&graph, &x, Close::Equal, Close::Equal, &format!("program {seed}"));
        }
    }
}

#[test]
fn random_programs_over_whole_numbers_keep_their_gradients() {
    for seed in 1000..1070 {
        let x = whole(seed);
        let graph = gradient(&x, |x| program(seed, true, x));
        if is_exact(&graph, &x) {
            check(&graph, &x, Close::Equal, Close::Equal, &format!("gradient of program {seed}"));
        }
    }
}

/// Numbers that rules of algebra get wrong.
fn special(seed: u64, dtype: DType) -> Vec<Tensor> {
    let mut dice = Dice(seed);
    let numbers =
        [0.0, -0.0, 1.0, -1.0, 0.3, -2.5, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 1e30, -1e-30, 7.0];
    let mut one = || Tensor::from((0..16).map(|_| numbers[dice.roll(numbers.len())]).collect::<Vec<f64>>());
    (0..3).map(|_| one().cast(dtype).reshape([4, 4])).collect()
}

#[test]
fn random_programs_keep_their_bits() {
    for seed in 0..150 {
        for dtype in [DType::F32, DType::F64] {
            let x = special(seed, dtype);
            let graph = traced(&x, |x| program(seed, false, x));
            for (name, pass, _) in each_pass().filter(|p| p.2) {
                refuse(&format!("program {seed}: the pass {name}"), &graph, &|g| {
                    fault(g, &x, &*pass, Close::Bits)
                });
            }
        }
    }
}

/// A program with its name and inputs.
type Written = (&'static str, Vec<Tensor>, fn(&[Tensor]) -> Vec<Tensor>);

/// Programs as people write them.
fn written() -> Vec<Written> {
    let random = |k: u64, shape: &[usize]| Tensor::randn(Key::new(k), shape, DType::F64) * 0.5;
    let network = |x: &[Tensor]| {
        let hidden = (x[0].matmul(&x[1]) + &x[2]).tanh();
        vec![(hidden.matmul(&x[3]) - 0.5).square().mean()]
    };
    let attention = |x: &[Tensor]| {
        let scores = x[0].matmul(&x[1].t()) / 8f64.sqrt();
        vec![scores.softmax(-1).matmul(&x[2]).sum()]
    };
    let norm = |x: &[Tensor]| {
        let centred = &x[0] - x[0].mean_axes_keep(1);
        let spread = (centred.square().mean_axes_keep(1) + 1e-5).sqrt();
        vec![(centred / spread * &x[1] + &x[2]).sin().sum()]
    };
    let recurrent = |x: &[Tensor]| {
        let step = |h: &Tensor, v: &Tensor| {
            let next = (h * (&x[1] * 2.0).exp() * 0.1 + v).tanh();
            (next.clone(), next)
        };
        let (last, all) = scan(step, &x[2], &x[0]);
        vec![last.sum() + all.square().sum()]
    };
    let choice = |x: &[Tensor]| {
        let y = cond(&x[0].sum().gt(0.0), |x: &Tensor| x.sin() * 1.0, |x: &Tensor| x * 3.0 + 0.5, &x[0]);
        vec![y.sum(), checkpoint(|x: &Tensor| (x.sin() * x.sin()).exp())(&x[0]).sum()]
    };
    let stencil = |x: &[Tensor]| {
        let zero = Tensor::zeros([1]).cast(x[0].dtype());
        let mut u = &x[0] * 2.0;
        for _ in 0..3 {
            let (left, right) = (u.slice(..299), u.slice(1..));
            let (left, right) = (Tensor::concat(&[&zero, &left], 0), Tensor::concat(&[&right, &zero], 0));
            u = (left - &u * 2.0 + right) * 0.1 * &x[1] + &u;
        }
        vec![u.square().sum()]
    };
    let gated = |x: &[Tensor]| {
        let hidden = (x[0].matmul(&x[1]) + &x[2]).gelu();
        vec![(hidden.matmul(&x[1]).silu().matmul(&x[3])).square().sum()]
    };
    let matrix = || random(9, &[4, 4]);
    vec![
        ("gated", vec![random(1, &[5, 4]), matrix(), random(2, &[4]), random(3, &[4, 2])], gated),
        ("network", vec![random(1, &[5, 4]), matrix(), random(2, &[4]), random(3, &[4, 2])], network),
        ("attention", vec![random(4, &[3, 8]), random(5, &[6, 8]), random(6, &[6, 2])], attention),
        ("norm", vec![random(7, &[3, 8]), random(8, &[8]), random(9, &[8])], norm),
        ("recurrent", vec![random(1, &[5, 3]), random(2, &[3]), random(3, &[3])], recurrent),
        ("choice", vec![random(4, &[4])], choice),
        ("stencil", vec![random(5, &[300]), random(6, &[300])], stencil),
    ]
}

#[test]
fn written_programs_keep_values_and_gradients_optimised_and_fused() {
    for (name, x, f) in written() {
        for dtype in [DType::F32, DType::F64] {
            // A few roundings of sums of up to forty terms.
            let close = Close::Within(if dtype == DType::F32 { 1e-5 } else { 1e-13 });
            let x: Vec<Tensor> = x.iter().map(|t| t.cast(dtype)).collect();
            check(&traced(&x, f), &x, close, close, name);
            let graph = gradient(&x, f);
            check(&graph, &x, close, close, &format!("gradient of {name}"));
            let last = Options { differentiable: false, ..Options::default() };
            let best = graph.optimize_with(&last).0;
            assert!(best.len() < graph.len(), "{name}: {} of {}", best.len(), graph.len());
            let fused = self::fused(&best);
            let result = Plan::new(&fused, &[]).unwrap().run(&x).unwrap();
            assert!(close.holds(&graph.run(&x).unwrap(), &result), "{name} fused\n{fused}");
        }
    }
}

#[test]
fn a_gradient_of_an_optimised_graph_is_that_of_the_graph() {
    for seed in 2000..2040 {
        let x = whole(seed);
        let graph = traced(&x, |x| program(seed, true, x));
        let best = graph.optimize();
        let (before, after) =
            (gradient(&x, |x| graph.run(x).unwrap()), gradient(&x, |x| best.run(x).unwrap()));
        if is_exact(&before, &x) {
            let (before, after) = (before.run(&x).unwrap(), after.run(&x).unwrap());
            assert!(Close::Equal.holds(&before, &after), "{graph}\n{best}\n{before:?}\n{after:?}");
        }
    }
}

#[test]
fn values_computed_again_keep_their_bits() {
    for seed in 3000..3060 {
        let x = special(seed, DType::F32);
        let graph = gradient(&x, |x| program(seed, false, x)).optimize();
        // Down to where nothing helps.
        for part in [4, 2, 1] {
            let limit = measure::peak(&graph) * part / 5;
            refuse(&format!("program {seed} in {limit} bytes"), &graph, &|g| {
                fault(g, &x, &|g| remat::remat(g, limit), Close::Bits)
            });
        }
    }
}

#[test]
fn fast_math_stays_near_where_all_is_finite() {
    let fast = Options { fast_math: true, ..Options::default() };
    let f = |x: &[Tensor]| {
        let (a, b) = (&x[0], &x[1]);
        let powers = a.pow(2.0) + b.pow(3.0) + a.pow(0.5);
        vec![powers / 3.0 + (a - b) / b.sqrt() - (-(a - b)), (a * 3.0) * 7.0 / (a.sqrt())]
    };
    let x: Vec<Tensor> = (0..2).map(|k| Tensor::uniform(Key::new(k), [50], DType::F64) + 0.5).collect();
    for graph in [traced(&x, f), gradient(&x, f)] {
        let (best, report) = graph.optimize_with(&fast);
        assert!(report.after.flops < report.before.flops);
        // Each rule is within a few units in the last place.
        assert!(
            Close::Within(1e-14).holds(&graph.run(&x).unwrap(), &best.run(&x).unwrap()),
            "{graph}\n{best}"
        );
    }
}

#[test]
fn a_wrong_pass_is_found_and_its_program_made_small() {
    let found = (0..50).find_map(|seed| {
        let x = whole(seed);
        let graph = traced(&x, |x| program(seed, true, x));
        fault(&graph, &x, &wrong, Close::Equal)
            .map(|_| shrunk(&graph, &|g| fault(g, &x, &wrong, Close::Equal).is_some()))
    });
    let small = found.expect("a difference of different things");
    assert_eq!((small.len(), small.outputs.len()), (1, 1), "{small}");
}
