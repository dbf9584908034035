//! Groups whose members read each other at other places: slices and pads, against the single operations.

use super::tests::{bits, check, compare, draw, run, run_group, same_with_any_threads, traced};
use super::*;
use crate::graph::Body;
use crate::opt::laws::fused as grouped;
use crate::tensor::Tensor;
use crate::value_and_grad;
use pullback_testing::Dice;

/// `x` between `before` and `after` elements of one number along an axis.
pub(super) fn padded(x: &Tensor, axis: usize, before: usize, after: usize, number: f64) -> Tensor {
    let part = |n: usize| {
        let shape: Vec<usize> =
            x.shape().iter().enumerate().map(|(k, &m)| if k == axis { n } else { m }).collect();
        Tensor::full(shape, number).cast(x.dtype())
    };
    let all: Vec<Tensor> = match (before, after) {
        (0, 0) => vec![x.clone()],
        (0, _) => vec![x.clone(), part(after)],
        (_, 0) => vec![part(before), x.clone()],
        _ => vec![part(before), x.clone(), part(after)],
    };
    Tensor::concat(&all.iter().collect::<Vec<_>>(), axis as isize)
}

/// The value of a function's sum of squares, its gradients, and the outputs themselves.
fn with_gradient(
    f: impl Fn(&[Tensor]) -> Vec<Tensor> + 'static,
) -> impl Fn(&[Tensor]) -> Vec<Tensor> + 'static {
    move |x: &[Tensor]| {
        let loss = |x: &Vec<Tensor>| {
            f(x).iter().map(|y| (y * y).sum()).reduce(|a, b| a + b).expect("there are outputs")
        };
        let (value, gradients) = value_and_grad(loss)(&x.to_vec());
        f(x).into_iter().chain([value]).chain(gradients).collect()
    }
}

#[test]
fn a_stencil_and_its_gradient_are_one_group() {
    for dtype in [DType::F32, DType::F64] {
        for n in [4, 7, 255, 256, 257, 513, 20_000] {
            let x = [draw(1, &[n], dtype), draw(2, &[n], dtype)];
            let f = with_gradient(move |x: &[Tensor]| {
                let u = &x[0] * &x[1];
                let (left, right) =
                    (padded(&u.slice(..n - 1), 0, 1, 0, 0.0), padded(&u.slice(1..), 0, 0, 1, 0.0));
                vec![(left - &u * 2.0 + right).tanh() * &x[1]]
            });
            // The sum of squares is one more output of the group.
            check("stencil", 1, f, &x);
        }
    }
}

#[test]
fn pads_at_the_beginning_the_end_and_both() {
    for (before, after) in [(1, 0), (0, 2), (3, 5)] {
        for number in [0.0, -1.5] {
            let x = [draw(1, &[700], DType::F64), draw(2, &[700 + before + after], DType::F64)];
            let f = with_gradient(move |x: &[Tensor]| {
                let y = padded(&(x[0].sin() * 0.5), 0, before, after, number);
                vec![&y * &x[1] + &x[1]]
            });
            check("pads", 1, f, &x);
        }
    }
}

#[test]
fn a_chain_of_shifts_is_one_group_of_the_same_bits() {
    let n = 1000;
    let x = [draw(1, &[n], DType::F64), draw(2, &[n + 1], DType::F64)];
    // Without a product that is added: those are rounded once in a group.
    let f = move |x: &[Tensor]| {
        let mut y = x[1].clone();
        for _ in 0..6 {
            y = padded(&(y.slice(..n) * &x[0]), 0, 1, 0, 1.0).maximum(&x[1]);
        }
        vec![y.slice(1..) - &x[0], y]
    };
    let fused = check("chain", 1, f, &x);
    for (e, y) in f(&x).iter().zip(run(&fused, &x)) {
        assert_eq!(bits(e), bits(&y));
    }
}

#[test]
fn inner_and_outer_axes_of_inputs() {
    for (rows, cols) in [(3, 5), (40, 33), (2, 700)] {
        for axis in [0, 1] {
            let shape = move |more: usize| {
                let mut s = [rows, cols];
                s[axis] += more;
                s
            };
            let x = [
                draw(1, &[rows, cols], DType::F32),
                draw(2, &shape(3), DType::F32),
                draw(3, &[cols, rows], DType::F32),
                draw(4, &[cols], DType::F32),
            ];
            let f = with_gradient(move |x: &[Tensor]| {
                let (a, wide) = (&x[0], &x[1]);
                let transposed = padded(&x[2].permute(&[1, 0]), axis, 1, 2, 0.5);
                let repeated = padded(&x[3].broadcast_to([rows, cols]), axis, 3, 0, -0.0);
                let cut = wide.narrow(axis as isize, 2, shape(0)[axis]).flip(0);
                vec![(transposed * wide).exp() + &repeated, a * cut + 1.0, padded(a, axis, 2, 1, 0.0) * wide]
            });
            let graph = traced(&f, &x);
            let fused = grouped(&graph);
            fused.verify().unwrap();
            assert!(fused.len() < graph.len());
            compare("axes", &f(&x), &run(&fused, &x));
        }
    }
}

/// As the pullback of three slices of one value, in another order than theirs.
#[test]
fn pads_of_axes_between_others() {
    for (a, b, c) in [(2, 3, 5), (5, 4, 32), (40, 7, 3)] {
        let x: Vec<Tensor> = (0..3).map(|k| draw(k, &[a, b, c], DType::F32)).collect();
        let f = move |x: &[Tensor]| {
            let wide = |k: usize| padded(&x[k].unsqueeze(0), 0, k, 2 - k, 0.0).permute(&[2, 0, 1, 3]);
            let all = wide(0) + wide(1) + wide(2);
            vec![all.sum_axes(&[0][..]), all]
        };
        let graph = traced(f, &x);
        let fused = grouped(&graph);
        assert!(fused.len() < graph.len());
        compare("between", &f(&x), &run(&fused, &x));
    }
}

#[test]
fn one_element_of_an_input_is_read_at_its_place() {
    let x = [draw(1, &[6], DType::F64), draw(2, &[4, 3], DType::F64)];
    let f = |x: &[Tensor]| {
        let (one, column) = (x[0].slice(4..5), x[1].narrow(1, 2, 1));
        let row = x[1].narrow(0, 1, 1);
        vec![&x[0] * &one + 1.0, column * &x[1] - row]
    };
    let graph = traced(f, &x);
    let fused = grouped(&graph);
    compare("one element", &f(&x), &run(&fused, &x));
}

#[test]
fn empty_slices_are_left_alone() {
    let x = [draw(1, &[6], DType::F64)];
    let f = |x: &[Tensor]| {
        let none = (&x[0] * 2.0).slice(3..3);
        vec![none.exp(), padded(&none, 0, 2, 1, 1.0) + 1.0, &x[0] * 2.0]
    };
    let graph = traced(f, &x);
    let fused = grouped(&graph);
    compare("empty", &f(&x), &run(&fused, &x));
}

#[test]
fn masks_are_padded_too() {
    let x = [draw(1, &[300], DType::F64)];
    let f = |x: &[Tensor]| {
        let up = x[0].slice(1..).gt(x[0].slice(..299));
        let yes = Tensor::full([1], 1.0).cast(DType::Bool);
        let all = Tensor::concat(&[&yes, &up], 0);
        vec![Tensor::where_(&all, &x[0], 0.25), all.logical_not()]
    };
    check("masks", 1, f, &x);
}

#[test]
fn a_shifted_input_is_not_overwritten() {
    let n = 600;
    let x = [draw(1, &[n], DType::F64), draw(2, &[n], DType::F64)];
    let f = |x: &[Tensor]| {
        let y = &x[0] + &x[1];
        vec![padded(&y.slice(1..), 0, 0, 1, 0.0) * &x[1] - x[0].sin()]
    };
    let group = Group::new(traced(f, &x).into()).unwrap();
    // Each is read by the neighbouring tile too.
    assert!(!group.program.may_share(0, 0) && !group.program.may_share(0, 1));
    compare("shared", &f(&x), &run_group(&group, &x));
    let apart = |x: &[Tensor]| vec![padded(&x[0].slice(1..), 0, 0, 1, 0.0) * &x[1]];
    let group = Group::new(traced(apart, &x).into()).unwrap();
    assert!(!group.program.may_share(0, 0) && group.program.may_share(0, 1));
}

#[test]
fn shifts_by_more_than_a_tile_stay_apart() {
    let x = [draw(1, &[5000], DType::F64)];
    let f = |x: &[Tensor]| {
        let y = x[0].exp() * &x[0];
        vec![padded(&y.slice(2000..), 0, 0, 2000, 0.0) + &y]
    };
    let graph = traced(f, &x);
    let fused = grouped(&graph);
    let groups = fused.steps.iter().filter(|s| matches!(s.op.body(), Some(Body::Fused(_)))).count();
    assert_eq!(groups, 1, "{fused}");
    compare("far", &f(&x), &run(&fused, &x));
}

#[test]
fn the_number_of_threads_does_not_change_a_shift() {
    let n = 300_000;
    let x = [draw(1, &[n], DType::F32), draw(2, &[n], DType::F32)];
    let f = move |x: &[Tensor]| {
        let y = padded(&(&x[0] * &x[1]).slice(..n - 1), 0, 1, 0, 0.5);
        vec![(y.tanh() + &x[0]).sum(), y.exp()]
    };
    let fused = check("threads", 1, f, &x);
    same_with_any_threads(&fused, &x);
}

/// A random function of slices, pads and elementwise operations, with its gradient.
fn random_program(seed: u64, n: usize) -> impl Fn(&[Tensor]) -> Vec<Tensor> {
    let mut dice = Dice(seed);
    let choices: Vec<usize> = (0..200).map(|_| dice.roll(1000)).collect();
    with_gradient(move |x: &[Tensor]| {
        let mut next = choices.iter().copied();
        let mut pick = |n: usize| next.next().unwrap_or(0) % n;
        let mut all = x.to_vec();
        for _ in 0..12 {
            let a = all[pick(all.len())].clone();
            let m = a.shape()[0];
            let same: Vec<&Tensor> = all.iter().filter(|t| t.shape() == a.shape()).collect();
            let b = same[pick(same.len())].clone();
            let (start, end) = (pick(3), pick(3));
            let number = [0.0, 1.0, -0.5][pick(3)];
            let y = match pick(9) {
                0 => &a + &b,
                1 => &a * &b,
                2 => a.sin() - &b,
                3 => a.maximum(&b),
                4 | 5 if m > start + end + 1 && m > n - 3 => a.slice(start..m - end),
                6 | 7 if m < n + 6 => padded(&a, 0, start, end, number),
                _ => a.tanh() * number + &b,
            };
            all.push(y);
        }
        all[x.len()..].to_vec()
    })
}

#[test]
fn random_programs_of_slices_and_pads() {
    for seed in 0..60 {
        let n = [5, 40, 256, 515][seed as usize % 4];
        let dtype = if seed % 3 == 0 { DType::F32 } else { DType::F64 };
        let x = [draw(seed, &[n], dtype), draw(seed + 1, &[n], dtype), draw(seed + 2, &[n + 1], dtype)];
        let f = random_program(seed, n);
        let graph = traced(&f, &x);
        let fused = grouped(&graph);
        fused.verify().unwrap();
        compare(&format!("program {seed}"), &f(&x), &run(&fused, &x));
    }
}

#[test]
fn a_factor_of_a_padded_value_keeps_the_sign_of_its_zeros() {
    let x = [draw(1, &[50], DType::F64)];
    for factor in [2.0, -2.0, f64::INFINITY] {
        for number in [0.0, -0.0, 3.0] {
            // The reciprocal of a zero has its sign.
            let f = move |x: &[Tensor]| vec![padded(&(x[0].sin() * factor), 0, 2, 1, number).recip()];
            let fused = check("factor", 1, f, &x);
            assert_eq!(bits(&f(&x)[0]), bits(&run(&fused, &x)[0]), "{factor} {number}");
        }
    }
}

#[test]
fn two_numbers_beside_one_value() {
    let x = [draw(1, &[600], DType::F64)];
    let f = |x: &[Tensor]| {
        let y = x[0].exp();
        vec![padded(&y, 0, 2, 0, 1.0) - padded(&y, 0, 0, 2, -1.0), padded(&y, 0, 1, 1, f64::NAN).sin()]
    };
    check("two numbers", 1, f, &x);
}
