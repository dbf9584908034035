//! Whatever the strides, results are those of naive loops over indices.

use super::*;

/// All positions of a shape, in row-major order.
fn positions(shape: &[usize]) -> Vec<Vec<usize>> {
    shape.iter().fold(vec![vec![]], |all, &n| {
        all.iter().flat_map(|p| (0..n).map(move |k| [p.as_slice(), &[k]].concat())).collect()
    })
}

/// Row-major elements by position.
fn read(elements: &[f64], shape: &[usize], at: &[usize]) -> f64 {
    elements[at.iter().zip(shape).fold(0, |o, (&k, &n)| o * n + k)]
}

/// A tensor of the given shape whose strides are not those of its shape: permuted, reversed, with gaps.
fn strided(shape: &[usize], layout: usize, key: u64) -> Tensor {
    let n = shape.len();
    let order: Vec<isize> = (0..n).map(|k| ((k + layout) % n.max(1)) as isize).collect();
    let doubled: Vec<usize> = order.iter().map(|&a| shape[a as usize] * 2).collect();
    let base = Tensor::uniform(Key::new(key), doubled, DType::F64);
    let step = if layout.is_multiple_of(2) { -2 } else { 2 };
    let thinned: Vec<AxisRange> = (0..n).map(|_| AxisRange::from(..).step(step)).collect();
    let mut inverse = vec![0; n];
    order.iter().enumerate().for_each(|(k, &a)| inverse[a as usize] = k as isize);
    base.slice(&thinned[..]).permute(&inverse)
}

/// A shape, and one that broadcasts with it.
fn pair() -> impl Strategy<Value = (Vec<usize>, Vec<usize>)> {
    proptest::collection::vec((0usize..4, any::<bool>(), any::<bool>()), 0..4).prop_flat_map(|axes| {
        let a: Vec<usize> = axes.iter().map(|&(n, one, _)| if one { 1 } else { n }).collect();
        let b: Vec<usize> = axes.iter().map(|&(n, _, one)| if one { 1 } else { n }).collect();
        (0..=b.len()).prop_map(move |cut| (a.clone(), b[cut..].to_vec()))
    })
}

proptest! {
    #[test]
    fn broadcasting_is_naive_indexing((a, b) in pair(), layouts in (0usize..4, 0usize..4)) {
        let (x, y) = (strided(&a, layouts.0, 1), strided(&b, layouts.1, 2));
        let z = &x * &y - x.maximum(&y);
        let (xs, ys) = (x.to_vec::<f64>(), y.to_vec::<f64>());
        let lead = a.len() - b.len();
        let shape: Vec<usize> = (0..a.len())
            .map(|k| if k < lead || b[k - lead] == 1 { a[k] } else { b[k - lead] })
            .collect();
        prop_assert_eq!(z.shape(), &shape[..]);
        let clip = |p: &[usize], s: &[usize]| -> Vec<usize> { p.iter().zip(s).map(|(&k, &n)| if n == 1 { 0 } else { k }).collect() };
        let expected: Vec<f64> = positions(&shape)
            .iter()
            .map(|p| (read(&xs, &a, &clip(p, &a)), read(&ys, &b, &clip(&p[lead..], &b))))
            .map(|(x, y)| x * y - x.max(y))
            .collect();
        prop_assert_eq!(z.to_vec::<f64>(), expected);
    }

    #[test]
    fn gradients_of_broadcast_products_sum_over_what_was_repeated((a, b) in pair(), layouts in (0usize..4, 0usize..4)) {
        let (x, y) = (strided(&a, layouts.0, 3).requires_grad(), strided(&b, layouts.1, 4));
        let z = &x * &y;
        z.sum().backward();
        let full = y.broadcast_to(z.shape().to_vec()).to_vec::<f64>();
        let shape = z.shape().to_vec();
        let mut expected = vec![0.0; x.numel()];
        for p in positions(&shape) {
            let at = p.iter().zip(&a).fold(0, |o, (&k, &n)| o * n + if n == 1 { 0 } else { k });
            expected[at] += read(&full, &shape, &p);
        }
        let found = x.grad().unwrap().to_vec::<f64>();
        prop_assert!(found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-12), "{found:?} {expected:?}");
    }

    #[test]
    fn reductions_are_naive_sums(shape in proptest::collection::vec(1usize..5, 1..4), layout in 0usize..4, mask in 0usize..8) {
        let x = strided(&shape, layout, 5);
        let over: Vec<usize> = (0..shape.len()).filter(|k| mask >> k & 1 == 1).collect();
        let kept: Vec<usize> = (0..shape.len()).filter(|k| !over.contains(k)).collect();
        let out: Vec<usize> = kept.iter().map(|&k| shape[k]).collect();
        let elements = x.to_vec::<f64>();
        let index = |p: &[usize]| kept.iter().fold(0, |o, &k| o * shape[k] + p[k]);
        let (mut sums, mut highs) = (vec![0.0; out.iter().product()], vec![f64::MIN; out.iter().product()]);
        for p in positions(&shape) {
            let v = read(&elements, &shape, &p);
            sums[index(&p)] += v;
            highs[index(&p)] = f64::max(highs[index(&p)], v);
        }
        let found = x.sum_axes(&over[..]);
        prop_assert_eq!(found.shape(), &out[..]);
        prop_assert!(found.to_vec::<f64>().iter().zip(&sums).all(|(a, b)| (a - b).abs() < 1e-12));
        prop_assert_eq!(x.max_axes(&over[..]).to_vec::<f64>(), highs);
    }

    #[test]
    fn matrix_products_are_naive_sums(m in 0usize..5, k in 0usize..5, n in 0usize..5, layouts in (0usize..4, 0usize..4)) {
        let (a, b) = (strided(&[m, k], layouts.0, 6), strided(&[k, n], layouts.1, 7));
        let (x, y) = (a.to_vec::<f64>(), b.to_vec::<f64>());
        let c = a.matmul(&b);
        prop_assert_eq!(c.shape(), [m, n]);
        for (o, found) in c.to_vec::<f64>().into_iter().enumerate() {
            let expected: f64 = (0..k).map(|l| x[o / n * k + l] * y[l * n + o % n]).sum();
            prop_assert!((found - expected).abs() < 1e-14);
        }
    }

    #[test]
    fn a_copy_is_what_the_view_says(shape in proptest::collection::vec(0usize..5, 1..4), layout in 0usize..4) {
        let view = strided(&shape, layout, 8);
        let copy = Tensor::from_slice(&view.to_vec::<f64>(), &shape[..]);
        prop_assert_eq!(view.flatten().to_vec::<f64>(), copy.to_vec::<f64>());
        prop_assert_eq!(view.flip(0).to_vec::<f64>(), copy.flip(0).to_vec::<f64>());
        prop_assert_eq!(view.exp().to_vec::<f64>(), copy.exp().to_vec::<f64>());
    }
}

#[test]
fn rearranging() {
    let x = ints(6).reshape([2, 3]);
    let v = |t: Tensor| t.to_vec::<i64>();
    assert_eq!(v(x.t()), [0, 3, 1, 4, 2, 5]);
    assert_eq!(v(x.permute(&[-1, 0])), v(x.t()));
    assert_eq!(v(x.transpose(0, 1)), v(x.t()));
    assert_eq!(v(x.flip(1)), [2, 1, 0, 5, 4, 3]);
    assert_eq!(v(x.repeat(&[1, 2])), [0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5]);
    assert_eq!(v(x.pad(&[(0, 1), (1, 0)], -1.0)), [-1, 0, 1, 2, -1, 3, 4, 5, -1, -1, -1, -1]);
    assert_eq!(x.unsqueeze(-1).shape(), [2, 3, 1]);
    assert_eq!(x.unsqueeze(0).squeeze(0).shape(), [2, 3]);
    assert_eq!(v(Tensor::stack(&[x.get(0), x.get(1)], 0)), v(x.clone()));
    let parts = x.split(&[1, 2], 1);
    assert_eq!((v(parts[0].clone()), v(parts[1].clone())), (vec![0, 3], vec![1, 2, 4, 5]));
    assert_eq!(v(Tensor::concat(&parts, 1)), v(x));
}

#[test]
fn vectors_and_batches_in_products() {
    let (a, v) = (ints(6).reshape([2, 3]).cast(DType::F64), Tensor::from([1.0, 2.0, 3.0]));
    assert_eq!(a.matmul(&v).to_vec::<f64>(), [8.0, 26.0]);
    assert_eq!(v.matmul(&a.t()).to_vec::<f64>(), [8.0, 26.0]);
    assert_eq!(v.dot(&v).item(), 14.0);
    assert_eq!(v.outer(&v).item_at([2, 1]), 6.0);
    let batch = Tensor::ones([4, 1, 2, 3]).matmul(&Tensor::ones([5, 3, 6]));
    assert_eq!((batch.shape(), batch.item_at([3, 4, 1, 5])), (&[4, 5, 2, 6][..], 3.0));
    assert_eq!(Tensor::from([[1, 2], [3, 4]]).matmul(&Tensor::from([1, 1])).to_vec::<i32>(), [3, 7]);
}

/// A tensor that repeats one number is reduced without looking at every element, to the same result.
#[test]
fn repeated_numbers_are_reduced_at_once() {
    let x = Tensor::full([1 << 30, 1 << 10], 0.5f32);
    assert_eq!(x.sum().item(), 0.5 * 2f64.powi(40));
    assert_eq!((x.max().item(), x.min_axes(0).shape()), (0.5, &[1 << 10][..]));
    assert_eq!(x.mean_axes(1).item_at([7]), 0.5);
    assert_eq!(Tensor::full([0, 3], f64::INFINITY).sum_axes(0).to_vec::<f64>(), [0.0; 3]);
    let dense = Tensor::from([3.0, 3.0, 3.0]);
    assert_eq!(dense.sum().item(), Tensor::full([3], 3.0).sum().item());
    let g = grad(|x: &Tensor| (x.broadcast_to([1000, 3]) * 2.0).mean())(&Tensor::from([1.0, 2.0, 3.0]));
    assert!(g.is_close(&Tensor::full([3], 2.0 / 3.0), 1e-14, 0.0), "{g}");
}
