//! Gradients of loops in graphs.

use crate::graph::Graph;
use crate::tensor::Tensor;
use crate::transform::checkpoint::graph_of;
use crate::transform::{Tree, from_leaves};
use crate::{Bound, DType, grad, scan, while_loop_with};

type P = (Tensor, (Tensor, Tensor));

fn start(n: usize) -> P {
    let xs = Tensor::linspace(-1.0, 1.0, 2 * n).reshape([n, 2]);
    (Tensor::from([[0.3, -0.2], [0.5, 0.7]]), (Tensor::from([0.1, 0.2]), xs))
}

/// A state with a counter, shared weights, items, outputs of two types.
fn recurrent((w, (h, xs)): &P) -> Tensor {
    let step = |(h, k): &(Tensor, Tensor), x: &Tensor| {
        let h = (w.matmul(h) + x).tanh();
        ((h.clone(), k + 1), (h.square().sum() * k.cast(DType::F64), h.gt(0.0)))
    };
    let ((h, _), (ys, _)) = scan(step, &(h.clone(), Tensor::scalar(0)), xs);
    h.sum() + ys.sin().sum()
}

fn near(a: &P, b: &P) {
    for (a, b) in a.leaves().into_iter().zip(b.leaves()) {
        pullback_testing::assert_close(&a.to_vec::<f64>(), &b.to_vec::<f64>(), 1e-12);
    }
}

#[test]
fn the_graph_of_a_gradient_does_not_grow_with_the_steps() {
    let second = |p: &P| grad(|p: &P| grad(recurrent)(p).0.square().sum())(p);
    for f in [&grad(recurrent) as &dyn Fn(&P) -> P, &second] {
        let lengths = [2, 5, 50].map(|n| graph_of(&f, &start(n)).unwrap().0.len());
        assert!(lengths[0] == lengths[1] && lengths[1] == lengths[2], "{lengths:?}");
        let p = start(7);
        let graph = graph_of(&f, &p).unwrap().0;
        assert!(graph.to_string().parse::<Graph>().is_ok(), "all loops are made of graphs");
        let traced = graph.eval(&p.flatten()).unwrap();
        near(&from_leaves(&p, traced), &f(&p));
    }
}

#[test]
fn a_bounded_loop_too() {
    let body = |x: &Tensor| x.sqrt() * 1.1;
    let f = |x: &Tensor| while_loop_with(Bound::at_most(40), |x: &Tensor| x.gt(2.0), body, x);
    let x = Tensor::scalar(900.0);
    let graph = graph_of(&grad(f), &x).unwrap().0;
    assert!(graph.len() < 40);
    let traced = graph.eval(std::slice::from_ref(&x)).unwrap()[0].item();
    assert!((traced - grad(f)(&x).item()).abs() < 1e-15);
}
