//! Matrix products joined with what is done to their elements.

use super::groups::apart;
use super::{graph, same};
use crate::backend::cpu::Plan;
use crate::graph::Graph;
use crate::opt::laws::fused as grouped;
use crate::prelude::*;
use crate::set_num_threads;

/// The names of the kernels of a plan.
fn kernels(plan: &Plan) -> Vec<&'static str> {
    plan.program.kernels.iter().map(|k| k.work.name()).collect()
}

/// Runs the graph joined and operation by operation, with any number of threads: the bits are the same.
fn check(g: &Graph, x: &[Tensor], what: &str) -> Plan {
    let expected = apart(g, x);
    let plan = Plan::new(g, &[]).unwrap();
    let donating = Plan::new(g, &(0..x.len()).collect::<Vec<_>>()).unwrap();
    for threads in [1, 2, 3] {
        set_num_threads(threads);
        (0..2).for_each(|_| same(&plan.run(x).unwrap(), &expected, what));
        let copies = x.iter().map(|t| Tensor::concat(std::slice::from_ref(t), 0)).collect();
        same(&donating.run_owned(copies).unwrap(), &expected, what);
    }
    plan
}

fn tensors(shapes: &[&[usize]], dtype: DType) -> Vec<Tensor> {
    let draw = |(k, s): (usize, &&[usize])| Tensor::uniform(Key::new(k as u64), *s, dtype) - 0.5;
    shapes.iter().enumerate().map(draw).collect()
}

/// The sizes cover products of one chunk and of many, cuts inside of rows and between, and each way to multiply.
const SIZES: [[usize; 3]; 6] =
    [[1, 5, 7], [9, 4, 16], [40, 33, 65], [320, 4, 256], [300, 4, 130], [900, 3, 1]];

#[test]
fn bias_activation_and_residual_follow_the_product() {
    for dtype in [DType::F32, DType::F64] {
        for [m, k, n] in SIZES {
            let x = tensors(&[&[m, k], &[k, n], &[n], &[m, n]], dtype);
            let what = format!("{dtype} {m} x {k} x {n}");
            let g = graph(&x, |x| vec![(x[0].matmul(&x[1]) + &x[2]).relu() + &x[3]]);
            let plan = check(&grouped(&g), &x, &what);
            assert_eq!(kernels(&plan), ["matmul+fused"], "{what}");
            // What a later pass needs is a second output.
            let g = graph(&x, |x| {
                let before = x[0].matmul(&x[1]) + &x[2];
                vec![before.gelu(), before]
            });
            let plan = check(&grouped(&g), &x, &what);
            assert_eq!(kernels(&plan), ["matmul+fused"], "{what}");
        }
    }
}

#[test]
fn one_operation_is_an_epilogue_too() {
    let x = tensors(&[&[300, 5], &[5, 200], &[200]], DType::F32);
    let plan = check(&graph(&x, |x| vec![x[0].matmul(&x[1]) + &x[2]]), &x, "bias");
    assert_eq!(kernels(&plan), ["matmul+fused"]);
    let s = plan.statistics();
    assert_eq!((s.kernels, s.flops), (1, 2 * 300 * 5 * 200 + 300 * 200));
    assert_eq!(s.bytes_written, 4 * 300 * 200, "the product itself is never kept");
    let plan = check(&graph(&x, |x| vec![x[0].matmul(&x[1]).tanh()]), &x, "activation");
    assert_eq!(kernels(&plan), ["matmul+fused"]);
}

#[test]
fn reductions_and_normalisations_follow_too() {
    for [m, k, n] in SIZES {
        let x = tensors(&[&[m, k], &[k, n], &[m, n]], DType::F64);
        let what = format!("{m} x {k} x {n}");
        let g = graph(&x, |x| {
            let y = x[0].matmul(&x[1]) + &x[2];
            let centred = &y - y.mean_axes_keep(-1);
            let scale = (centred.square().mean_axes_keep(-1) + 1e-3).rsqrt();
            vec![centred * scale, y]
        });
        check(&grouped(&g), &x, &what);
        let g = graph(&x, |x| {
            let y = (x[0].matmul(&x[1]) * &x[2]).tanh();
            vec![y.sum_axes(0), y.sum(), y]
        });
        check(&grouped(&g), &x, &what);
    }
}

#[test]
fn batches_and_other_shapes_of_the_product() {
    for (b, m, k, n) in [(5, 3, 4, 6), (40, 30, 5, 20), (3, 60, 7, 130)] {
        let x = tensors(&[&[b, m, k], &[b, k, n], &[b, m, n]], DType::F32);
        let g = graph(&x, |x| vec![(x[0].matmul(&x[1]) * 0.5 + &x[2]).exp()]);
        let plan = check(&grouped(&g), &x, &format!("{b} x {m} x {k} x {n}"));
        assert_eq!(kernels(&plan), ["matmul+fused"]);
        let x = tensors(&[&[b * m, k], &[k, n], &[b, m, n]], DType::F32);
        let g = graph(&x, |x| vec![(x[0].matmul(&x[1]).reshape(x[2].shape()) - &x[2]).square()]);
        let plan = check(&grouped(&g), &x, "reshaped");
        assert_eq!(kernels(&plan), ["matmul+fused"]);
        let x = tensors(&[&[n, k], &[k, m], &[m, n]], DType::F32);
        let g = graph(&x, |x| vec![(x[0].matmul(&x[1]).transpose(0, 1) - &x[2]).square()]);
        let plan = check(&grouped(&g), &x, "transposed");
        assert_eq!(kernels(&plan), ["matmul", "fused"], "its rows are not those of the group");
    }
}

#[test]
fn a_product_that_others_need_is_left_alone() {
    let x = tensors(&[&[30, 20], &[20, 40], &[30, 40]], DType::F64);
    type Case = fn(&[Tensor]) -> Vec<Tensor>;
    let cases: [Case; 4] = [
        |x| {
            let y = x[0].matmul(&x[1]);
            vec![y.tanh() + &x[2], y]
        },
        |x| {
            let y = x[0].matmul(&x[1]);
            vec![y.tanh() + &x[2], y.matmul(&x[1].transpose(0, 1))]
        },
        |x| vec![x[0].matmul(&x[1]).square().sum()],
        |x| vec![(x[0].slice(..0).matmul(&x[1]) + 1.0).tanh()],
    ];
    for f in cases {
        let plan = check(&grouped(&graph(&x, f)), &x, "apart");
        assert!(!kernels(&plan).contains(&"matmul+fused"));
    }
    // Of two products in one group one is led.
    let g = graph(&x, |x| {
        let y = x[0].matmul(&x[1]);
        vec![(x[2].matmul(&x[1].transpose(0, 1)).matmul(&x[1]) * y).tanh()]
    });
    let plan = check(&grouped(&g), &x, "two products");
    assert_eq!(kernels(&plan).iter().filter(|k| **k == "matmul+fused").count(), 1);
}

#[test]
fn nothing_that_is_still_read_is_overwritten() {
    // The residual dies here, and is one of the factors as well.
    let x = tensors(&[&[64, 64], &[64, 64]], DType::F32);
    let g = graph(&x, |x| {
        let h = x[0].tanh();
        let y = h.matmul(&x[1]);
        vec![(&y + &h).relu() * &h]
    });
    check(&grouped(&g), &x, "residual of a factor");
    let g = graph(&x, |x| {
        let (h, r) = (x[0].tanh().exp(), x[1].exp().tanh());
        let y = h.matmul(&x[1]) + &r;
        vec![y.relu(), y.tanh() * r]
    });
    check(&grouped(&g), &x, "a residual that dies");
}
