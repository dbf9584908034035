use crate::prelude::*;
use crate::{einsum, grad, try_einsum, vmap};
use pullback_testing::close;

fn near(a: &Tensor, b: &Tensor) {
    assert_eq!(a.shape(), b.shape());
    assert!(
        a.to_vec::<f64>().into_iter().zip(b.to_vec::<f64>()).all(|(a, b)| close(a, b, 1e-12)),
        "{a} for {b}"
    );
}

fn normal(seed: u64, shape: &[usize]) -> Tensor {
    Tensor::randn(Key::new(seed), shape, DType::F64)
}

/// The sum of products, element by element: every index broadcast to one large array.
fn by_hand(factors: &[(&Tensor, &[usize])], lengths: &[usize], output: &[usize]) -> Tensor {
    let all = factors.iter().fold(Tensor::ones(lengths), |all, (t, axes)| {
        let mut order: Vec<usize> = (0..axes.len()).collect();
        order.sort_by_key(|&k| axes[k]);
        let perm: Vec<isize> = order.iter().map(|&k| k as isize).collect();
        let shape: Vec<usize> =
            (0..lengths.len()).map(|i| if axes.contains(&i) { lengths[i] } else { 1 }).collect();
        all * t.permute(&perm).reshape(shape)
    });
    let summed: Vec<usize> = (0..lengths.len()).filter(|i| !output.contains(i)).collect();
    let kept: Vec<usize> = (0..lengths.len()).filter(|i| output.contains(i)).collect();
    let perm: Vec<isize> =
        output.iter().map(|i| kept.iter().position(|k| k == i).unwrap() as isize).collect();
    all.sum_axes(summed.as_slice()).permute(&perm)
}

#[test]
fn products_of_two_in_every_arrangement() {
    let lengths = [2, 3, 4, 5];
    for (spec, a, b, output) in [
        ("ab,bc->ac", &[0, 1][..], &[1, 2][..], &[0, 2][..]),
        ("ab,bc->ca", &[0, 1], &[1, 2], &[2, 0]),
        ("ba,cb->ac", &[1, 0], &[2, 1], &[0, 2]),
        ("abc,abd->abcd", &[0, 1, 2], &[0, 1, 3], &[0, 1, 2, 3]),
        ("abc,dcb->ad", &[0, 1, 2], &[3, 2, 1], &[0, 3]),
        ("dab,acd->bdc", &[3, 0, 1], &[0, 2, 3], &[1, 3, 2]),
        ("abc,bc->a", &[0, 1, 2], &[1, 2], &[0]),
        ("abc,abc->ab", &[0, 1, 2], &[0, 1, 2], &[0, 1]),
        ("abc,cba->", &[0, 1, 2], &[2, 1, 0], &[]),
        ("ab,cd->dbca", &[0, 1], &[2, 3], &[3, 1, 2, 0]),
        ("abc,d->bd", &[0, 1, 2], &[3], &[1, 3]),
    ] {
        let of = |axes: &[usize], seed| normal(seed, &axes.iter().map(|&i| lengths[i]).collect::<Vec<_>>());
        let (x, y) = (of(a, 1), of(b, 2));
        let used = |i: &usize| a.contains(i) || b.contains(i);
        let lengths: Vec<usize> = (0..4).map(|i| if used(&i) { lengths[i] } else { 1 }).collect();
        near(&einsum(spec, &[&x, &y]), &by_hand(&[(&x, a), (&y, b)], &lengths, output));
    }
}

#[test]
fn the_whole_notation() {
    let a = normal(1, &[3, 3]);
    let (b, c) = (normal(2, &[2, 3, 4]), normal(3, &[4, 5]));
    let trace = (&a * Tensor::eye(3)).sum();
    near(&einsum("ii", &[&a]), &trace);
    near(&einsum("ii->i", &[&a]), &(&a * Tensor::eye(3)).sum_axes(0));
    near(&einsum(" i j -> j i ", &[&a]), &a.t());
    near(&einsum("ba", &[&a]), &a.t());
    near(&einsum("bA", &[&a]), &a.t());
    near(&einsum("...j,jk", &[&b, &c]), &b.matmul(&c));
    near(&einsum("...ij,...jk->...ik", &[&b, &c]), &b.matmul(&c));
    near(&einsum("...j,jk->k...", &[&b, &c]), &b.matmul(&c).permute(&[2, 0, 1]));
    near(&einsum("...ij->j", &[&b]), &b.sum_axes([0, 1]));
    near(&einsum("i...->...", &[&b]), &b.sum_axes(0));
    near(&einsum("...,...->...", &[&b, &normal(4, &[4])]), &(&b * normal(4, &[4])));
    near(&einsum(",ij->ij", &[&Tensor::scalar(2.0), &a]), &(&a * 2.0));
    // A diagonal of three axes, and an axis of length 1 that is repeated.
    let cube = normal(5, &[2, 2, 2]);
    let expected = cube.reshape([8]).slice((0..8,)).index_select(0, &Tensor::from([0i64, 7]));
    near(&einsum("iii->i", &[&cube]), &expected);
    near(&einsum("ij,ij->i", &[&normal(6, &[3, 1]), &a]), &(normal(6, &[3, 1]) * &a).sum_axes(1));
    near(&einsum("ij->ji", &[&normal(6, &[3, 1])]), &normal(6, &[3, 1]).t());
    near(&einsum("ij,jk->ik", &[&Tensor::zeros([2, 0]), &Tensor::zeros([0, 3])]), &Tensor::zeros([2, 3]));
    assert_eq!(einsum("i,i", &[Tensor::from([1i64, 2]), Tensor::from([3i64, 4])]).to_vec::<i64>(), [11]);
}

#[test]
fn many_operands_and_derivatives() {
    let x: Vec<Tensor> = (0..10).map(|k| normal(k, &[3, 3])).collect();
    let chain = x[1..].iter().fold(x[0].clone(), |y, m| y.matmul(m));
    near(&einsum("ab,bc,cd,de,ef,fg,gh,hi,ij,jk->ak", &x), &chain);
    let few = |x: &Vec<Tensor>| einsum("ab,bc,cd,de->ae", &x[..4]);
    near(&few(&x), &x[0].matmul(&x[1]).matmul(&x[2]).matmul(&x[3]));
    let first = x[..4].to_vec();
    let (ours, theirs) = (
        grad(|x: &Vec<Tensor>| few(x).square().sum())(&first),
        grad(|x: &Vec<Tensor>| x[0].matmul(&x[1]).matmul(&x[2]).matmul(&x[3]).square().sum())(&first),
    );
    ours.iter().zip(&theirs).for_each(|(a, b)| near(a, b));
    crate::check::Check::default()
        .run(
            |x: &Vec<Tensor>| einsum("iij,kj->ik", &[&x[0], &x[1]]),
            &vec![normal(1, &[2, 2, 3]), normal(2, &[2, 3])],
        )
        .unwrap();
    let lanes = normal(9, &[4, 3, 3]);
    near(&vmap(|m: &Tensor| einsum("ii->i", &[m]))(&lanes), &einsum("bii->bi", &[&lanes]));
}

#[test]
fn errors_point_into_the_notation() {
    let a = Tensor::zeros([2, 3]);
    for (spec, operands, message, column) in [
        ("ij,ik->iz", 2, "the output has `z`, which no operand has", 8),
        ("ij->ii", 1, "the output has `i` twice", 5),
        ("ij,jk", 1, "the notation has 2 operands, and 1 were given", 3),
        ("ij", 2, "the notation has 1 operands, and 2 were given", 2),
        ("ijk", 1, "operand 0 has shape [2, 3], and is written with 3 indices", 0),
        ("i1", 1, "an index is a letter, and `1` is none", 1),
        ("ii", 1, "the diagonal of operand 0, of shape [2, 3], takes axes 0 and 1 of one length", 1),
        ("ij,ji->", 2, "axis 0 of operand 1 has 2 elements, and the same index 3 before", 3),
        ("ij->...i", 1, "the output has an ellipsis, which no operand has", 4),
        ("i.j", 1, "an ellipsis is three dots", 1),
        ("ij->i->j", 1, "there is a second `->`", 5),
    ] {
        let e = try_einsum(spec, &vec![&a; operands]).unwrap_err().to_string();
        assert!(e.starts_with(&format!("einsum: {message}")), "{e}");
        let caret = e.lines().nth(2).unwrap().find('^').unwrap();
        assert_eq!(caret, 4 + column, "{e}");
        assert!(e.contains("einsum/tests.rs"), "{e}");
    }
    let truth = Tensor::from([true]);
    assert!(try_einsum("i", &[&truth]).unwrap_err().to_string().contains("takes numbers"));
}
