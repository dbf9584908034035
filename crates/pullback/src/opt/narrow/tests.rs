//! Narrowed graphs against the graphs that they were.

use super::*;
use crate::graph::trace_leaves;
use crate::opt::laws::after;
use crate::{DType, grad};
use pullback_testing::Dice;

/// What a function does, with its long constants in parts, and the same narrowed.
fn both(f: impl Fn(&[Tensor]) -> Vec<Tensor>, x: &[Tensor]) -> (Graph, Graph) {
    let avals =
        x.iter().map(|t| crate::ops::Aval { dtype: t.dtype(), shape: t.node().shape.clone() }).collect();
    let options = Options::default();
    let graph = after(&["sparse"], &trace_leaves(|x| Ok(f(x)), avals).unwrap(), &options, 0);
    graph.verify().unwrap();
    let narrowed = after(&["narrow"], &graph, &options, 0);
    narrowed.verify().unwrap();
    (graph, narrowed)
}

/// The same bits from the function, from its graph, and from the narrowed one, which is returned.
fn check(f: impl Fn(&[Tensor]) -> Vec<Tensor>, x: &[Tensor]) -> Graph {
    let (graph, narrowed) = both(&f, x);
    let bits = |y: Vec<Tensor>| y.iter().map(Tensor::bits).collect::<Vec<_>>();
    let expected = bits(f(x));
    assert_eq!(bits(graph.eval(x).unwrap()), expected);
    assert_eq!(bits(narrowed.eval(x).unwrap()), expected, "{narrowed}");
    narrowed
}

/// The elements of the largest result of an elementwise operation.
fn widest(graph: &Graph) -> usize {
    let steps = graph.steps.iter().filter(|s| s.op.elementwise());
    steps.map(|s| s.avals[0].shape.numel()).max().unwrap_or(0)
}

fn draw(seed: u64, n: usize) -> Tensor {
    let values: Vec<f64> =
        (0..n).map(|k| ((k as f64 + seed as f64) * 0.618_033_988_749_894_9).fract() - 0.3).collect();
    Tensor::from_slice(&values, [n])
}

const N: usize = 16 * SMALL;

#[test]
fn only_what_is_read_is_computed() {
    let x = [draw(1, N), draw(2, N)];
    let f = |x: &[Tensor]| vec![(x[0].sin() * &x[1]).slice(N - 5..).sum(), (&x[0] + 1.0).slice(3..4)];
    assert_eq!(widest(&check(f, &x)), 5);
}

#[test]
fn the_gradient_of_few_elements_is_computed_in_their_rows() {
    let x = [draw(1, N)];
    // Each operation reaches one row further, as a stencil does.
    let shifted = |y: &Tensor| Tensor::concat(&[&Tensor::full([1], 0.5), &y.slice(..N - 1)], 0);
    let f = move |x: &[Tensor]| {
        let loss = |x: &Tensor| {
            let y = shifted(&(x * x)) * x;
            (shifted(&(&y + x)) * &y).slice(N - 1..).sum()
        };
        vec![grad(loss)(&x[0])]
    };
    let narrowed = check(f, &x);
    assert!(widest(&narrowed) <= 4, "{narrowed}");
    // All in the same rows, so that they fuse.
    let elementwise = narrowed.steps.iter().filter(|s| s.op.elementwise());
    assert!(elementwise.into_iter().all(|s| s.avals[0].shape.numel() == widest(&narrowed)), "{narrowed}");
}

#[test]
fn what_is_infinite_outside_of_the_rows_does_not_show() {
    let mut values = draw(3, N).to_vec::<f64>();
    (values[7], values[N - 2]) = (f64::INFINITY, f64::NAN);
    let x = [Tensor::from_slice(&values, [N])];
    let f = |x: &[Tensor]| vec![grad(|x: &Tensor| (x * x.exp()).slice(N - 1..).sum())(&x[0])];
    assert_eq!(widest(&check(f, &x)), 1);
}

#[test]
fn zeros_keep_their_sign() {
    let x = [draw(1, N)];
    // A negation makes negative zeros of zeros, and so does a negative factor.
    let padded = |y: Tensor| Tensor::concat(&[&Tensor::zeros([N - 4]), &y], 0);
    let f = move |x: &[Tensor]| {
        let y = padded(x[0].slice(..4));
        vec![-&y, &y * -2.0, &y * 2.0 - &y, &y * &x[0], y.abs().recip()]
    };
    check(f, &x);
}

#[test]
fn parts_beside_and_inside_of_each_other() {
    let x = [draw(1, N), draw(2, N)];
    let pad = |y: &Tensor, before: usize| {
        let after = N - before - y.shape()[0];
        Tensor::concat(&[&Tensor::zeros([before]), y, &Tensor::zeros([after])], 0)
    };
    let f = move |x: &[Tensor]| {
        let (a, b) = (pad(&x[0].slice(10..30), 100), pad(&x[1].slice(..7), 110));
        let far = pad(&x[1].slice(5..9), N - 4);
        let sum = &a + &b;
        vec![&sum * 3.0, sum.slice(105..115), sum.slice(..50), (&a - &far) + &b, far.slice(N - 6..)]
    };
    check(f, &x);
}

#[test]
fn rows_of_matrices() {
    let x = [draw(1, N).reshape([N / 8, 8])];
    let f = |x: &[Tensor]| {
        vec![grad(|x: &Tensor| (x.tanh() * x).slice(100..102).square().sum())(&x[0]), x[0].exp().slice(..1)]
    };
    assert_eq!(widest(&check(f, &x)), 16);
}

#[test]
fn columns_and_reversed_rows_are_left_alone() {
    let x = [draw(1, N).reshape([N / 8, 8])];
    let f = |x: &[Tensor]| vec![x[0].exp().narrow(1, 2, 1).flip(0)];
    assert_eq!(widest(&check(f, &x)), N);
}

#[test]
fn what_is_read_as_a_whole_or_is_small_stays() {
    let x = [draw(1, N), draw(2, 100)];
    let f = |x: &[Tensor]| {
        let y = x[0].exp();
        vec![y.slice(..3), y.sum(), x[1].exp().slice(..1), y.slice(N - 3..)]
    };
    let (graph, narrowed) = both(f, &x);
    assert_eq!(graph.to_string(), narrowed.to_string());
}

#[test]
fn long_constants_of_few_numbers_are_kept_as_those() {
    let mut values = vec![0.0; N];
    values[N - 3] = 2.0;
    let few = Tensor::from_slice(&values, [N]);
    values[4] = -0.0;
    let apart = Tensor::from_slice(&values, [N]);
    let x = [draw(1, N)];
    for dtype in [DType::F32, DType::F64] {
        let (few, apart) = (few.cast(dtype), apart.cast(dtype));
        let x = [x[0].cast(dtype)];
        let f = move |x: &[Tensor]| vec![&x[0] * &few, &x[0] + &apart];
        let (graph, _) = both(&f, &x);
        let long = graph.consts.iter().filter(|t| t.numel() == N && !constant::is_splat(t)).count();
        // A negative zero is a number like others.
        assert_eq!(long, 1);
        check(f, &x);
    }
}

/// A random function of elementwise operations, slices and pads, of which few rows are read, with their gradient.
fn random_program(seed: u64, n: usize) -> impl Fn(&[Tensor]) -> Vec<Tensor> {
    let mut dice = Dice(seed);
    let choices: Vec<usize> = (0..200).map(|_| dice.roll(1000)).collect();
    let pad = |x: &Tensor, before: usize, after: usize, number: f64| {
        Tensor::concat(&[&Tensor::full([before], number), x, &Tensor::full([after], number)], 0)
    };
    let all = move |x: &[Tensor]| {
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
            all.push(match pick(11) {
                0 => &a + &b,
                1 => &a * &b,
                2 => a.sin() - &b,
                3 => a.maximum(&b),
                4 if m > n - 3 => a.slice(start..m - end),
                5 if m < n + 6 => pad(&a, start, end, number),
                // A few rows of it, somewhere in as many as before.
                6 | 7 => pad(&a.slice(10 * start..10 * start + 7), 5 * end, m - 7 - 5 * end, number),
                8 => pad(&a.slice(m - 4..), m - 5, 1, 0.0),
                9 => &a * 2.0,
                _ => a.tanh() * number + &b,
            });
        }
        let (y, other) = (all[all.len() - 1].clone(), all[all.len() - 2].clone());
        let rows = pick(8);
        (y.slice(rows..rows + 3), other.slice(other.shape()[0] - 2..))
    };
    move |x: &[Tensor]| {
        let loss = |x: &Vec<Tensor>| {
            let (a, b) = all(x);
            (&a * &a).sum() + b.sum()
        };
        let (a, b) = all(x);
        [vec![a, b], grad(loss)(&x.to_vec())].concat()
    }
}

#[test]
fn random_programs_of_which_few_rows_are_read() {
    let mut narrowed = 0;
    for seed in 0..80 {
        let n = [SMALL, SMALL + 100][seed as usize % 2];
        let x = [draw(seed, n), draw(seed + 1, n), draw(seed + 2, n + 1)];
        narrowed += (widest(&check(random_program(seed, n), &x)) < n / ONE_IN) as usize;
    }
    assert!(narrowed > 20, "{narrowed}");
}
