//! Random programs, and the shapes of programs that a plan could get wrong.

use super::{agrees, graph, laid_out, same};
use crate::backend::cpu::Plan;
use crate::fori;
use crate::prelude::*;
use crate::{DType, Tensor};
use pullback_testing::Dice;

/// Steps over matrices of 4 by 4, most of them cheap, many of them views.
pub(super) fn program(seed: u64, x: &[Tensor]) -> Vec<Tensor> {
    let mut dice = Dice(seed);
    let mut values = x.to_vec();
    for _ in 0..5 + dice.roll(20) {
        let a = values[dice.roll(values.len())].clone();
        let b = values[dice.roll(values.len())].clone();
        let c = values[dice.roll(values.len())].clone();
        values.push(match dice.roll(25) {
            0 => a.sin(),
            1 => &a + &b,
            2 => &a * &b,
            3 => &a - a.clone(),
            4 => -&a,
            5 => a.matmul(&b),
            6 => a.t().matmul(&b),
            7 => a.matmul(&b.t()),
            8 => a.t(),
            9 => a.t().t().flip(1),
            10 => a.reshape([2, 8]).t().reshape([4, 4]),
            11 => a.t().reshape([16]).reshape([4, 4]),
            12 => a.narrow(0, 1, 1).broadcast_to([4, 4]),
            13 => a.sum_axes(0).broadcast_to([4, 4]),
            14 => a.sum_axes_keep(1) + &b,
            15 => Tensor::concat(&[a.narrow(0, 2, 2), b.flip(0).narrow(0, 0, 2)], 0),
            16 => Tensor::where_(&a.gt(&b), &c, &a),
            17 => a.softmax(-1),
            18 => a.zeros_like() + 1.5,
            19 => (&a * 0.5).tanh() * &b - &c,
            20 => stop_gradient(&a).max_axes(1).reshape([4, 1]) * &b,
            21 => Tensor::concat(&[&a.narrow(0, 1, 3), &(a.narrow(0, 0, 1).zeros_like() + 0.5)], 0),
            22 => Tensor::concat(&[a.narrow(1, 0, 2).zeros_like(), (&a * 2.0).narrow(1, 1, 2)], 1) + &b,
            23 => a.reshape([16]).slice(3..11).reshape([2, 4]).sin().broadcast_to([2, 2, 4]).reshape([4, 4]),
            _ => Tensor::full([4, 4], 0.25).cast(a.dtype()) * &a,
        });
    }
    // Some outputs twice, some inputs, some views.
    (0..1 + dice.roll(5)).map(|_| values[dice.roll(values.len())].clone()).collect()
}

#[test]
fn random_programs() {
    for seed in 0..300 {
        let dtype = if seed % 3 == 0 { DType::F64 } else { DType::F32 };
        let x: Vec<Tensor> = (0..3)
            .map(|k| Tensor::uniform(Key::new(seed).fold_in(k), [4, 4], dtype) - 0.5)
            .enumerate()
            .map(|(k, t)| if seed % 7 == k as u64 { t.zeros_like() + 0.25 } else { t })
            .map(|t| laid_out(&t, (seed % 4) as usize))
            .collect();
        agrees(&graph(&x, |x| program(seed, x)), &x, &format!("program {seed}"));
    }
}

#[test]
fn gradients_of_random_programs() {
    for seed in 1000..1100 {
        let x: Vec<Tensor> =
            (0..2).map(|k| Tensor::uniform(Key::new(seed).fold_in(k), [4, 4], DType::F64) - 0.5).collect();
        let loss = |x: &Vec<Tensor>| {
            program(seed, x).iter().map(|t| t.sum()).reduce(|a, b| a + b).expect("there are outputs")
        };
        let g = graph(&x, |x| {
            let (value, slopes) = value_and_grad(loss)(&x.to_vec());
            std::iter::once(value).chain(slopes).collect()
        });
        agrees(&g, &x, &format!("gradient of program {seed}"));
    }
}

#[test]
fn outputs_that_no_kernel_makes() {
    let x = [Tensor::from([[1.0, 2.0], [3.0, 4.0]]), Tensor::from([5.0, 6.0])];
    let constant = Tensor::from([7.0, 8.0, 9.0]);
    let g = graph(&x, |x| {
        let dead = x[0].exp();
        let _ = dead.sin();
        vec![x[0].clone(), constant.clone(), x[0].clone(), x[0].t(), constant.flip(0), Tensor::scalar(2.0)]
    });
    agrees(&g, &x, "inputs and constants");
    agrees(&graph(&x, |_| vec![]), &x, "nothing");
}

#[test]
fn constants_of_any_layout() {
    let x = [Tensor::from([[1.0, 2.0], [3.0, 4.0]])];
    let w = Tensor::from([[1.0, -2.0, 3.0], [0.5, 4.0, -1.0]]);
    let (transposed, flipped) = (w.t(), w.flip(1).narrow(1, 0, 2));
    let g = graph(&x, |x| {
        let (a, b) = (transposed.matmul(&x[0]), flipped.t() + &x[0]);
        let one = Tensor::ones([1, 2]);
        vec![a.reshape([6]), b, &flipped.flip(0) * &x[0], (x[0].clone() + one.broadcast_to([2, 2])).t()]
    });
    agrees(&g, &x, "constants");
}

#[test]
fn tensors_without_elements() {
    let x = [Tensor::zeros([0, 3]), Tensor::from([[1.0], [2.0], [3.0]])];
    let g = graph(&x, |x| {
        let y = x[0].matmul(&x[1]);
        vec![y.exp(), y.sum(), x[0].t().reshape([0]), x[1].narrow(0, 1, 0) * 2.0, x[1].t().matmul(&x[0].t())]
    });
    agrees(&g, &x, "empty");
}

#[test]
fn several_threads_at_once() {
    let x =
        [Tensor::uniform(Key::new(1), [30, 30], DType::F32), Tensor::uniform(Key::new(2), [30], DType::F32)];
    let g = graph(&x, |x| {
        let h = (x[0].matmul(&x[0]) + &x[1]).tanh();
        let g = (h.t().matmul(&h) * 0.1).exp();
        vec![g.sum_axes(0), (g - &x[1]).softmax(-1)]
    });
    let plan = Plan::new(&g, &[]).unwrap();
    let shifted: Vec<[Tensor; 2]> = (0..4).map(|k| [&x[0] + k as f64, &x[1] - k as f64]).collect();
    std::thread::scope(|scope| {
        for x in &shifted {
            scope.spawn(|| {
                let expected = g.eval(x).unwrap();
                for _ in 0..200 {
                    same(&plan.run(x).unwrap(), &expected, "threads");
                }
            });
        }
    });
}

#[test]
fn inputs_of_other_types_are_refused() {
    let x = [Tensor::from([1.0, 2.0])];
    let plan = Plan::new(&graph(&x, |x| vec![x[0].exp()]), &[]).unwrap();
    let message = |x: &[Tensor]| plan.run(x).unwrap_err().to_string();
    assert!(message(&[Tensor::from([1.0])]).contains("is f64[2] in the graph, but was given as f64[1]"));
    assert!(message(&[Tensor::from([1.0f32, 2.0])]).contains("given as f32[2]"));
    assert!(message(&[]).contains("the graph takes 1 inputs, got 0"));
}

#[test]
fn an_error_in_a_kernel_names_its_line() {
    let x = [Tensor::from([1.0, 2.0]), Tensor::from([5])];
    let g = graph(&x, |x| vec![x[0].index_select(0, &x[1])]);
    let plan = Plan::new(&g, &[]).unwrap();
    let message = plan.run(&x).unwrap_err().to_string();
    assert!(message.contains("programs.rs"), "{message}");
    // The plan can be used after it.
    same(&plan.run(&[x[0].clone(), Tensor::from([1])]).unwrap(), &[Tensor::from([2.0])], "after an error");
}

/// Loops and choices, nested, with states that are items, rows that are states, and steps that change nothing.
fn with_control(x: &[Tensor], which: usize) -> Vec<Tensor> {
    let (a, b) = (&x[0], &x[1]);
    match which {
        0 => {
            let (last, rows) =
                scan(|h: &Tensor, row: &Tensor| ((h * row + b.get(0)).tanh(), h - row), &a.get(0), b);
            vec![last, rows]
        }
        1 => {
            let step = |h: &Tensor, row: &Tensor| {
                let next = h + row;
                (next.clone(), (next, row.clone(), h.sum()))
            };
            let (last, (states, items, sums)) = scan(step, &a.get(1), &b.t());
            vec![last, states, items, sums]
        }
        2 => {
            let step =
                |(h, c): &(Tensor, Tensor), _: &()| ((c.clone(), h.sin()), (h.matmul(a), Tensor::ones([2])));
            let ((h, c), (ys, ones)) = scan(step, &(a.clone(), b.clone()), 5);
            vec![h, c, ys, ones]
        }
        3 => {
            let (_, empty) = scan(|h: &Tensor, _: &()| (h.exp(), h.sum()), a, 0);
            vec![empty, fori(3, |_, h: &Tensor| h.matmul(b) * 0.5, a)]
        }
        4 | 5 => {
            let positive = if which == 4 { a.sum().gt(1e9) } else { a.sum().gt(-1e9) };
            let y = cond(&positive, |x: &Tensor| (x.sin(), x.clone()), |x: &Tensor| ((x * b).t(), b.t()), a);
            vec![&y.0 + 1.0, y.1, cond(&positive, |x: &Tensor| x.sum(), |_: &Tensor| b.sum(), a)]
        }
        _ => {
            let step = |h: &Tensor, row: &Tensor| {
                let next = cond(&h.sum().gt(0.0), |h: &Tensor| h - row, |h: &Tensor| h + row.square(), h);
                let inner = scan(|s: &Tensor, v: &Tensor| (s * 0.5 + v, s * v), &next.get(0), &next).1;
                (next, inner)
            };
            let (last, rows) = scan(step, &a.get(0), b);
            vec![last, checkpoint(|r: &Tensor| r.exp().sum_axes(0))(&rows)]
        }
    }
}

#[test]
fn loops_and_choices() {
    for which in 0..7 {
        for how in 0..4 {
            let x: Vec<Tensor> = (0..2)
                .map(|k| laid_out(&(Tensor::uniform(Key::new(k), [4, 4], DType::F64) - 0.5), how))
                .collect();
            agrees(&graph(&x, |x| with_control(x, which)), &x, &format!("control {which} {how}"));
            let slopes = graph(&x, |x| {
                let loss = |x: &Vec<Tensor>| {
                    with_control(x, which).iter().map(|t| t.sum()).reduce(|a, b| a + b).expect("outputs")
                };
                grad(loss)(&x.to_vec())
            });
            agrees(&slopes, &x, &format!("gradient of control {which} {how}"));
        }
    }
}
