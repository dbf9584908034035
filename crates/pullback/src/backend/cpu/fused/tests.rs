//! Fused programs against the single operations.

use super::code::Action;
use super::*;
use crate::graph::{Body, trace_leaves};
use crate::ops::{Domain, Draw, Op, Sample};
use crate::opt::laws::fused as grouped;
use crate::tensor::{Data, Key, Tensor, bind};
use crate::value_and_grad;
use pullback_testing::Dice;

/// Runs a graph, its groups by their programs.
pub(crate) fn run(graph: &Graph, inputs: &[Tensor]) -> Vec<Tensor> {
    let mut values: Vec<Vec<Tensor>> = Vec::new();
    let value = |a: &Ref, values: &[Vec<Tensor>]| match *a {
        Ref::Input(k) => inputs[k].clone(),
        Ref::Const(k) => graph.consts[k].clone(),
        Ref::Step(k, slot) => values[k][slot].clone(),
    };
    for step in &graph.steps {
        let x: Vec<Tensor> = step.args.iter().map(|a| value(a, &values)).collect();
        values.push(match step.op.body() {
            Some(Body::Fused(group)) => run_group(&Group::new(group.body).unwrap(), &x),
            _ => vec![bind(step.op.clone(), &x.iter().collect::<Vec<_>>()).unwrap()],
        });
    }
    graph.outputs.iter().map(|a| value(a, &values)).collect()
}

pub(super) fn run_group(group: &Group, x: &[Tensor]) -> Vec<Tensor> {
    let types = group.body.types();
    let mut data: Vec<Data> = types.iter().map(|_| Data::Gone).collect();
    let mut outputs: Vec<Output> =
        types.iter().zip(&mut data).map(|(t, d)| Output::new(&t.shape, d)).collect();
    let values: Vec<Value> = x.iter().map(|t| t.value()).collect();
    group.program.run(&values, &mut outputs);
    types.iter().zip(data).map(|(t, d)| Tensor::new(t.dtype, t.shape.clone(), d)).collect()
}

/// How many loads, functions and pairs of functions a tile takes.
pub(super) fn actions(group: &Group) -> [usize; 3] {
    fn count<F>(code: &Code<F>) -> [usize; 3] {
        let all = |is: fn(&Action<F>) -> bool| code.tile.iter().filter(|i| is(&i.action)).count();
        [
            all(|a| matches!(a, Action::Load(_))),
            all(|a| matches!(a, Action::Map(_))),
            all(|a| matches!(a, Action::Pair(..))),
        ]
    }
    match &group.program.code {
        AnyCode::F32(code) => count(code),
        AnyCode::F64(code) => count(code),
    }
}

pub(crate) fn traced(f: impl Fn(&[Tensor]) -> Vec<Tensor>, inputs: &[Tensor]) -> Graph {
    let types = inputs.iter().map(|t| Aval { dtype: t.dtype(), shape: t.shape().into() }).collect();
    trace_leaves(|x| Ok(f(x)), types).unwrap()
}

/// Relative and absolute difference that is allowed. Products and sums that are contracted to a fused multiply-add round once
/// instead of twice, and sums are added in another order.
fn tolerance(dtype: DType) -> f64 {
    if dtype == DType::F32 { 3e-5 } else { 1e-12 }
}

/// Fuses a function into `groups` groups and nothing else, and compares it with the single operations. Gives the fused graph.
pub(super) fn check(
    name: &str,
    groups: usize,
    f: impl Fn(&[Tensor]) -> Vec<Tensor>,
    inputs: &[Tensor],
) -> Graph {
    let graph = traced(&f, inputs);
    let fused = grouped(&graph);
    fused.verify().unwrap();
    assert!(fused.len() <= graph.len());
    let count = fused.steps.iter().filter(|s| matches!(s.op, Op::Block(_))).count();
    let left: Vec<&str> = fused
        .steps
        .iter()
        .filter(|s| !s.op.is_view() && !matches!(s.op, Op::Block(_)))
        .map(|s| s.op.name())
        .collect();
    assert_eq!((count, left.as_slice()), (groups, &[] as &[&str]), "{name}: {graph} became {fused}");
    compare(name, &f(inputs), &run(&fused, inputs));
    fused
}

pub(super) fn compare(name: &str, expected: &[Tensor], found: &[Tensor]) {
    for (k, (e, y)) in expected.iter().zip(found).enumerate() {
        assert_eq!((e.dtype(), e.shape()), (y.dtype(), y.shape()), "{name}: output {k}");
        let (e64, y64) = (e.cast(DType::F64).to_vec::<f64>(), y.cast(DType::F64).to_vec::<f64>());
        let scale = e64.iter().fold(1.0f64, |m, v| if v.is_finite() { m.max(v.abs()) } else { m });
        let tol = tolerance(e.dtype()) * scale;
        for (i, (a, b)) in e64.iter().zip(&y64).enumerate() {
            let equal = a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= tol;
            assert!(equal, "{name}: output {k} at {i} is {b}, and should be {a}");
        }
    }
}

pub(super) fn draw(seed: u64, shape: &[usize], dtype: DType) -> Tensor {
    Draw::new(Domain::any, shape).tensor(Key::new(seed), dtype)
}

pub(super) fn bits(t: &Tensor) -> Vec<u64> {
    t.bits()
}

#[test]
fn every_operation_alone_has_the_same_bits() {
    // Complex operations are in no group.
    let complex = |s: &Sample| s.inputs.iter().any(|d| matches!(d, Draw::Complex(_)));
    for sample in Op::samples().into_iter().filter(|s| !complex(s)) {
        for dtype in [DType::F32, DType::F64] {
            for n in [1, 7, 513] {
                let redraw = |(k, d): (usize, &Draw)| match d {
                    Draw::Float(domain, _) => Draw::new(*domain, &[n]).tensor(Key::new(k as u64), dtype),
                    Draw::Mask(_) => Draw::Mask([n].into()).tensor(Key::new(k as u64), dtype),
                    Draw::Distinct(_) => Draw::Distinct([n].into()).tensor(Key::new(k as u64), dtype),
                    Draw::Complex(_) => Draw::complex(&[n]).tensor(Key::new(k as u64), dtype),
                    _ => Tensor::zeros([n]),
                };
                let x: Vec<Tensor> = sample.inputs.iter().enumerate().map(redraw).collect();
                if sample.op.reduction().is_some() || function::Function::of(&sample.op).is_none() {
                    continue;
                }
                let one =
                    |x: &[Tensor]| vec![bind(sample.op.clone(), &x.iter().collect::<Vec<_>>()).unwrap()];
                let group = Group::new(traced(one, &x).into()).unwrap();
                let (expected, found) = (one(&x), run_group(&group, &x));
                let wide = |t: &Tensor| t.cast(DType::F64);
                assert_eq!(
                    bits(&wide(&expected[0])),
                    bits(&wide(&found[0])),
                    "{} {dtype} {n}",
                    sample.op.name()
                );
            }
        }
    }
}

#[test]
fn special_values_pass_as_through_single_operations() {
    let inf = f64::INFINITY;
    let x = Tensor::from([0.0, -0.0, 1.0, inf, -inf, f64::NAN, 1e300, 1e8, -3e7]);
    let f = |x: &[Tensor]| {
        let x = &x[0];
        let angles = x.sin() + x.cos() * 2.0;
        let gated = (x * 0.0).gate(x.recip()) + x.clamp(-1.0, 2.0);
        vec![angles, gated, x.maximum(0.5).minimum(x), x.sin(), x.tan() - x.tanh()]
    };
    check("special", 1, f, &[x]);
}

#[test]
fn value_and_gradient_are_one_program_at_any_size() {
    for dtype in [DType::F32, DType::F64] {
        for n in [1, 7, 511, 513, 100_003] {
            let x = [draw(1, &[n], dtype), draw(2, &[n], dtype), draw(3, &[n], dtype)];
            let f = |x: &[Tensor]| {
                let loss = |p: &[Tensor; 3]| {
                    let [x, w, b] = p;
                    ((x * w + b).tanh() * x.sin() * (-x * x).exp()).sum()
                };
                let (value, [gx, gw, gb]) = value_and_grad(loss)(&[x[0].clone(), x[1].clone(), x[2].clone()]);
                vec![value, gx, gw, gb]
            };
            if n == 1 {
                // A sum of one element is a reduction of nothing, and stays what it was.
                compare("one", &f(&x), &run(&grouped(&traced(f, &x)), &x));
            } else {
                check("gradient", 1, f, &x);
            }
        }
    }
}

#[test]
fn empty_tensors_are_left_alone() {
    let x = draw(1, &[0], DType::F32);
    let graph = traced(|x| vec![(x[0].sin() * 2.0 + 1.0).sum()], std::slice::from_ref(&x));
    let fused = grouped(&graph);
    assert_eq!(fused.len(), graph.len());
    assert_eq!(run(&fused, &[x])[0].item(), 0.0);
}

#[test]
fn broadcasts_of_every_kind_are_read_in_place() {
    for (rows, cols) in [(3, 5), (2, 700), (37, 64), (200, 3), (5, 9000)] {
        let x = [
            draw(1, &[rows, cols], DType::F32),
            draw(2, &[cols], DType::F32),
            draw(3, &[rows, 1], DType::F32),
            draw(4, &[], DType::F32),
            draw(5, &[cols, rows], DType::F32),
        ];
        let f = |x: &[Tensor]| {
            let y = (&x[0] + &x[1]) * &x[2] - x[3].exp() * &x[0];
            let transposed = &x[4].permute(&[1, 0]) * &y + x[2].square();
            vec![y.reshape([(rows * cols) as isize]) * 0.5, transposed]
        };
        let graph = traced(f, &x);
        let fused = grouped(&graph);
        compare("broadcast", &f(&x), &run(&fused, &x));
        // The function of a scalar, and of a row, may stand apart.
        assert!(fused.steps.iter().filter(|s| !s.op.is_view()).count() <= 3, "{fused}");
    }
}

#[test]
fn masks_are_numbers_inside_and_bytes_outside() {
    for n in [7, 1000] {
        let x = [draw(1, &[n], DType::F64), Tensor::bernoulli(Key::new(2), [n], 0.5)];
        let f = |x: &[Tensor]| {
            let big = x[0].gt(0.3);
            let both = big.and(&x[1]).or(x[0].le(-1.0).logical_not());
            let picked = Tensor::where_(&both, &x[0], 0.0)
                + big.cast(DType::F64) * x[0].ne(x[0].floor()).cast(DType::F64);
            vec![picked, both, x[0].cast(DType::Bool).xor(&x[1])]
        };
        check("masks", 1, f, &x);
    }
}

#[test]
fn reductions_end_a_group() {
    for (rows, cols) in [(2, 3), (7, 511), (40, 513), (1000, 10), (3, 20_000), (130, 300)] {
        let x = [draw(1, &[rows, cols], DType::F32), draw(2, &[cols], DType::F32)];
        let f = |x: &[Tensor]| {
            let y = (&x[0] * &x[1]).exp();
            vec![y.sum_axes(0), y.sum_axes(1), y.sum(), y.max_axes(1), y.min_axes(0), y.max()]
        };
        check("reductions", 1, f, &x);
    }
}

#[test]
fn softmax_and_its_gradient_are_one_group() {
    for (rows, cols) in [(3, 7), (5, 511), (4, 2000), (300, 10)] {
        let x = [draw(1, &[rows, cols], DType::F32), draw(2, &[rows, cols], DType::F32)];
        let f = |x: &[Tensor]| {
            let softmax = |x: &Tensor| {
                let e = (x - x.max_axes_keep(-1).detach()).exp();
                &e / e.sum_axes_keep(-1)
            };
            let loss = |z: &Tensor| (softmax(z) * &x[1]).sum();
            let (value, g) = value_and_grad(loss)(&x[0]);
            vec![value, g]
        };
        check("softmax", 1, f, &x);
    }
}

/// The library's own softmax, with a mask before it and its gradients.
#[test]
fn operations_on_rows_are_members_of_groups() {
    for dtype in [DType::F32, DType::F64] {
        for (rows, cols) in [(3, 7), (5, 511), (4, 2000), (300, 10), (1, 64), (6, 1)] {
            let shape = [2, rows, cols];
            let x = [draw(1, &shape, dtype), draw(2, &shape, dtype), draw(3, &shape, dtype)];
            let masked = |z: &Tensor, m: &Tensor| z * 0.3 + m.gt(0.5).cast(dtype) * -1e9;
            let f = |x: &[Tensor]| {
                let loss = |z: &Tensor| (masked(z, &x[2]).softmax(-1) * &x[1]).sum();
                let (value, g) = value_and_grad(loss)(&x[0]);
                vec![value, g]
            };
            check("softmax", 1, f, &x);
            let f = |x: &[Tensor]| {
                let loss = |z: &Tensor| (masked(z, &x[2]).log_softmax(-1) * &x[1]).sum();
                let (value, g) = value_and_grad(loss)(&x[0]);
                vec![value, g]
            };
            check("log_softmax", 1, f, &x);
        }
    }
    // Rows that are no distributions: infinite, masked whole, not a number.
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    let rows = [[1.0, inf, 2.0], [-inf, -inf, -inf], [0.0, nan, 1.0], [-inf, 0.0, 1.0]];
    let x = [Tensor::from_slice(&rows.concat(), [4, 3])];
    check("special rows", 1, |x| vec![(&x[0] * 2.0).softmax(-1), (&x[0] + 1.0).log_softmax(-1)], &x);
}

#[test]
fn a_normalisation_and_its_gradient_are_one_group() {
    for dtype in [DType::F32, DType::F64] {
        for (rows, cols) in [(3, 7), (33, 256), (2, 3000)] {
            let x = [
                draw(1, &[rows, cols], dtype),
                draw(2, &[cols], dtype),
                draw(3, &[cols], dtype),
                draw(4, &[rows, cols], dtype),
            ];
            let f = |x: &[Tensor]| {
                let norm = |p: &[Tensor; 3]| {
                    let centred = &p[0] - p[0].mean_axes_keep(-1);
                    let scale = (centred.square().mean_axes_keep(-1) + 1e-5).rsqrt();
                    ((centred * scale * &p[1] + &p[2]) * &x[3]).sum()
                };
                let (value, [gx, gw, gb]) = value_and_grad(norm)(&[x[0].clone(), x[1].clone(), x[2].clone()]);
                vec![value, gx, gw, gb]
            };
            check("normalisation", 1, f, &x);
        }
    }
}

#[test]
fn a_row_value_is_computed_once_for_each_row() {
    let x = [draw(1, &[6, 100], DType::F64)];
    let f = |x: &[Tensor]| {
        let mean = x[0].mean_axes_keep(-1);
        let scale = (mean.exp() + 1.0).sqrt();
        vec![&x[0] * &scale, scale.reshape([6]).sum(), mean]
    };
    check("rows", 1, f, &x);
}

/// Fails if one thread and four give other bits.
pub(super) fn same_with_any_threads(fused: &Graph, x: &[Tensor]) {
    let all = |n: usize| {
        crate::set_num_threads(n);
        run(fused, x).iter().map(|t| bits(&t.cast(DType::F64))).collect::<Vec<_>>()
    };
    let before = crate::kernels::parallel::num_threads();
    let (one, four) = (all(1), all(4));
    crate::set_num_threads(before);
    assert!(one == four);
}

#[test]
fn the_number_of_threads_does_not_change_a_bit() {
    let x = [draw(1, &[600, 700], DType::F32), draw(2, &[700], DType::F32)];
    let f = |x: &[Tensor]| {
        let y = (&x[0] * &x[1]).tanh();
        vec![y.sum(), y.sum_axes(0), y.sum_axes(1), y.exp()]
    };
    let fused = grouped(&traced(f, &x));
    same_with_any_threads(&fused, &x);
}

#[test]
fn an_output_may_overwrite_an_input() {
    let x = [draw(1, &[3000], DType::F32), draw(2, &[3000], DType::F32)];
    let f = |x: &[Tensor]| {
        let m = &x[0] * 0.9 + &x[1] * 0.1;
        vec![&x[1] - &m * 0.5, m, x[0].sin()]
    };
    let group = Group::new(traced(f, &x).into()).unwrap();
    let expected = run_group(&group, &x);
    assert!(group.program.may_share(1, 0) && group.program.may_share(0, 1));
    let (mut a, mut b) = (x[0].to_vec::<f32>(), x[1].to_vec::<f32>());
    let mut c = vec![0f32; 3000];
    let source = |v: &[f32]| Source { start: v.as_ptr().cast(), strides: &[1] };
    let inputs = [source(&a), source(&b)];
    let outputs = [b.as_mut_ptr().cast(), a.as_mut_ptr().cast(), c.as_mut_ptr().cast()];
    // SAFETY: the types are those of the graph, and the sharing was asked for.
    unsafe { group.program.run_at(&inputs, &outputs, None) };
    let found = [b, a, c];
    for (e, y) in expected.iter().zip(&found) {
        assert_eq!(&e.to_vec::<f32>(), y);
    }
    let broadcast = |x: &[Tensor]| vec![&x[0] + &x[1]];
    let group = Group::new(traced(broadcast, &[x[0].clone(), draw(3, &[], DType::F32)]).into()).unwrap();
    assert!(group.program.may_share(0, 0) && !group.program.may_share(0, 1));
}

/// A random function of tensors of a few shapes, with its gradient.
fn random_program(seed: u64) -> impl Fn(&[Tensor]) -> Vec<Tensor> {
    move |x: &[Tensor]| {
        let mut dice = Dice(seed);
        let choices: Vec<usize> = (0..200).map(|_| dice.roll(1000)).collect();
        let loss = move |p: &Vec<Tensor>| {
            let mut next = choices.iter().copied();
            let mut pick = |n: usize| next.next().unwrap_or(0) % n;
            let mut all = p.clone();
            for _ in 0..14 {
                let (a, b) = (all[pick(all.len())].clone(), all[pick(all.len())].clone());
                let y = match pick(14) {
                    0 => &a + &b,
                    1 => &a * &b,
                    2 => &a - &b,
                    3 => a.tanh() * &b,
                    4 => a.sin() + b.cos(),
                    5 => (-a.square()).exp(),
                    6 => &a / (b.square() + 1.0),
                    7 => a.maximum(&b),
                    8 => Tensor::where_(&a.gt(&b), &a, &b * 0.5),
                    9 => a.sigmoid() * 2.0 - &b,
                    10 if a.rank() == 2 => a.mean_axes_keep(-1),
                    11 if a.rank() == 2 => &a - a.max_axes_keep(-1),
                    12 if a.rank() == 2 => a.mean_axes_keep(0),
                    _ => a.clamp(-1.0, 1.0) + &b,
                };
                all.push(y);
            }
            let terms = all[p.len()..].iter().map(|t| t.mean());
            terms.reduce(|a, b| a + b).unwrap()
        };
        let (value, mut gradients) = value_and_grad(loss)(&x.to_vec());
        gradients.push(value);
        gradients
    }
}

#[test]
fn random_programs_give_what_single_operations_give() {
    let shapes: [(usize, usize); 4] = [(3, 5), (17, 80), (2, 600), (9, 1)];
    for seed in 0..40 {
        let (rows, cols) = shapes[seed as usize % shapes.len()];
        let x = [
            draw(seed, &[rows, cols], DType::F64),
            draw(seed + 1, &[cols], DType::F64),
            draw(seed + 2, &[rows, 1], DType::F64),
        ];
        let f = random_program(seed);
        let graph = traced(&f, &x);
        let fused = grouped(&graph);
        fused.verify().unwrap();
        assert!(fused.len() < graph.len());
        compare(&format!("program {seed}"), &f(&x), &run(&fused, &x));
    }
}

#[test]
fn a_body_that_is_no_group_runs_operation_by_operation() {
    let x = [draw(1, &[4], DType::F32)];
    for (lines, result) in [
        ("return x0", "f32[4]"),
        ("%0 = logsumexp(x0) {axes: [0]} : f32[]\nreturn %0", "f32[]"),
        ("%0 = exp(x0) : f32[4]\n%1 = reshape(%0) {to: [4]} : f32[4]\nreturn %1", "f32[4]"),
        ("c0 = constant [1.0, 2.0, 3.0, 4.0] : f32[4]\n%0 = add(x0, c0) : f32[4]\nreturn %0", "f32[4]"),
    ] {
        let header = "graph(x0: f32[4])";
        let text =
            format!("{header} {{\n%0 = fused(x0) : ({result})\n{header} {{\n{lines}\n}}\nreturn %0\n}}");
        let graph: Graph = text.parse().unwrap_or_else(|e| panic!("{lines}: {e}"));
        let body = graph.steps[0].op.body().unwrap().bodies()[0].clone();
        let refused = Group::new(body).err().map(|e| e.to_string()).expect(lines);
        assert!(refused.contains("no common iteration space"), "{refused}");
        let plan = crate::backend::cpu::Plan::new(&graph, &[]).unwrap();
        assert!(plan.program.kernels.iter().all(|k| k.work.name() != "fused"), "{lines}");
        let run = plan.run(&x).unwrap();
        assert_eq!(
            bits(&run[0].cast(DType::F64)),
            bits(&graph.run(&x).unwrap()[0].cast(DType::F64)),
            "{lines}"
        );
    }
}
