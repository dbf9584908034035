//! The worked cases of the specification, with their numbers.

use pullback::prelude::*;
use pullback_testing::assert_close;
use std::f64::consts::E;

/// The ambient gradients of a function of scalars.
fn gradients<const N: usize>(at: [f64; N], f: impl Fn(&[Tensor; N]) -> Tensor) -> [f64; N] {
    let x = at.map(|v| Tensor::scalar(v).requires_grad());
    f(&x).backward();
    x.map(|x| x.grad().unwrap().item())
}

#[test]
fn square_of_a_sum() {
    assert_eq!(gradients([2.0, 3.0], |[x, y]| (x + y).square()), [10.0, 10.0]);
}

#[test]
fn a_value_that_is_used_twice() {
    assert_eq!(gradients([3.0], |[x]| x.square() + x), [7.0]);
}

#[test]
fn product_and_sum() {
    assert_eq!(gradients([2.0, 3.0], |[x, y]| x * y + (x + y)), [4.0, 3.0]);
}

#[test]
fn product_and_sine() {
    let [d1, d2] = gradients([2.0, 3.0], |[x1, x2]| x1 * x2 + x1.sin());
    assert_close(&[d1, d2], &[3.0 + 2f64.cos(), 2.0], 2e-16);
}

#[test]
fn squares_with_two_seeds() {
    for (seed, expected) in [([1.0, 1.0, 1.0], [2.0, 4.0, 6.0]), ([10.0, 1.0, 0.1], [20.0, 4.0, 0.1 * 6.0])] {
        let x = Tensor::from([1.0, 2.0, 3.0]).requires_grad();
        x.square().backward_with(&Tensor::from(seed));
        assert_eq!(x.grad().unwrap().to_vec::<f64>(), expected);
    }
}

/// 10-32-32-1, ReLU, a batch of 16, mean squared error.
mod network {
    use super::*;

    type Parameters = Vec<Tensor>;

    fn parameters(key: Key) -> Parameters {
        let layer = |k: u64, inputs: usize, outputs: usize| {
            let [w, b] = key.fold_in(k).split();
            let scale = (2.0 / inputs as f64).sqrt();
            [
                Tensor::randn(w, [inputs, outputs], DType::F64) * scale,
                Tensor::randn(b, [outputs], DType::F64) * 0.1,
            ]
        };
        [layer(0, 10, 32), layer(1, 32, 32), layer(2, 32, 1)].concat()
    }

    fn loss(p: &Parameters, x: &Tensor, target: &Tensor) -> Tensor {
        let hidden = (x.matmul(&p[0]) + &p[1]).relu();
        let hidden = (hidden.matmul(&p[2]) + &p[3]).relu();
        (hidden.matmul(&p[4]) + &p[5] - target).square().mean()
    }

    /// Every one of the 1441 derivatives, by central differences in f64.
    fn differences(p: &Parameters, x: &Tensor, target: &Tensor) -> Vec<Vec<f64>> {
        let h = 1e-6;
        let moved = |k: usize, at: usize, h: f64| {
            let mut q = p.clone();
            let mut elements = q[k].to_vec::<f64>();
            elements[at] += h;
            q[k] = Tensor::from_slice(&elements, q[k].shape());
            loss(&q, x, target).item()
        };
        let slope = |k, at| (moved(k, at, h) - moved(k, at, -h)) / (2.0 * h);
        (0..p.len()).map(|k| (0..p[k].numel()).map(|at| slope(k, at)).collect()).collect()
    }

    #[test]
    fn gradients_are_those_of_central_differences() {
        let [a, b, c] = Key::new(10).split();
        let (x, target) = (Tensor::randn(a, [16, 10], DType::F64), Tensor::randn(b, [16, 1], DType::F64));
        let p = parameters(c);
        let expected = differences(&p, &x, &target);

        let functional = grad(|p: &Parameters| loss(p, &x, &target))(&p);
        let leaves: Parameters = p.iter().map(Tensor::requires_grad).collect();
        loss(&leaves, &x, &target).backward();

        for k in 0..p.len() {
            let eager = leaves[k].grad().unwrap().to_vec::<f64>();
            assert_eq!(eager, functional[k].to_vec::<f64>(), "both faces follow the same rules");
            // Differences at 1e-6 are good to about 1e-9; no pre-activation of this seed is within 1e-6 of its kink.
            assert_close(&eager, &expected[k], 5e-8);
            assert!(eager.iter().any(|&g| g != 0.0));
        }
    }

    #[test]
    fn single_precision_follows_double() {
        let [a, b, c] = Key::new(10).split();
        let (x, target) = (Tensor::randn(a, [16, 10], DType::F64), Tensor::randn(b, [16, 1], DType::F64));
        let p = parameters(c);
        let double = grad(|p: &Parameters| loss(p, &x, &target))(&p);
        let [x, target] = [x, target].map(|t| t.cast(DType::F32));
        let p32: Parameters = p.iter().map(|t| t.cast(DType::F32)).collect();
        let single = grad(|p: &Parameters| loss(p, &x, &target))(&p32);
        for (s, d) in single.iter().zip(&double) {
            assert_eq!(s.dtype(), DType::F32);
            assert_close(&s.to_vec::<f64>(), &d.to_vec::<f64>(), 5e-5);
        }
    }
}

#[test]
fn what_is_detached_needs_no_gradient() {
    let x = Tensor::scalar(2.0).requires_grad();
    let y = x.square();
    let z = y.detach();
    let w = 3.0 * &z;
    assert_eq!(w.item(), 12.0);
    assert!(!w.needs_grad() && y.needs_grad());
}

#[test]
fn an_update_after_the_fact_does_not_change_the_gradient() {
    let mut x = Tensor::from([1.0, 2.0, 3.0]).requires_grad();
    let leaf = x.clone();
    let y = x.square();
    x += 1.0;
    y.sum().backward();
    assert_eq!(leaf.grad().unwrap().to_vec::<f64>(), [2.0, 4.0, 6.0]);
    assert_eq!(x.to_vec::<f64>(), [2.0, 3.0, 4.0]);
}

#[test]
fn second_derivative_of_exp_of_a_square() {
    let f = |x: &Tensor| x.square().exp();
    let second = grad(grad(f))(&Tensor::scalar(1.0)).item();
    assert!((second - 16.3097).abs() < 1e-4);
    assert!((second - 6.0 * E).abs() < 1e-13);
}

#[test]
fn a_guarded_square_root_at_zero() {
    let f = |x: &Tensor| Tensor::where_(&x.gt(0.0), x.sqrt(), 0.0);
    assert_eq!(grad(f)(&Tensor::scalar(0.0)).item(), 0.0);
}

#[test]
fn equal_maxima_share() {
    let g = grad(|x: &Tensor| x.max())(&Tensor::from([5.0, 5.0, 1.0]));
    assert_eq!(g.to_vec::<f64>(), [0.5, 0.5, 0.0]);
}

#[test]
fn two_calls_of_backward_double_the_gradient() {
    let x = Tensor::scalar(3.0).requires_grad();
    let y = x.square();
    y.backward();
    assert_eq!(x.grad().unwrap().item(), 6.0);
    y.backward();
    assert_eq!(x.grad().unwrap().item(), 12.0);
}
