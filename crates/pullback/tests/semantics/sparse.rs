//! Sparse matrices: formats, products, gradients, and what is wrong with them.

use pullback::prelude::*;
use pullback::{ErrorKind, Sparse, vmap_axes};

/// Some entries of a matrix of these lengths, in any order and some of them twice.
fn random(rows: usize, columns: usize, entries: usize, dtype: DType) -> Sparse {
    let [a, b, c] = Key::new((rows * 100 + columns * 10 + entries) as u64).split();
    let list = |key: Key, n: usize| Tensor::randint(key, [entries], 0, n.max(1) as i64);
    let values = Tensor::randn(c, [entries], DType::F64).cast(dtype);
    Sparse::coo(&list(a, rows), &list(b, columns), &values, [rows, columns])
}

fn close(a: &Tensor, b: &Tensor) {
    assert_eq!((a.shape(), a.dtype()), (b.shape(), b.dtype()));
    assert!(a.is_close(b, 1e-12, 1e-12), "{a}\nfor\n{b}");
}

#[test]
fn products_are_those_of_the_dense_matrix() {
    for (rows, columns, entries) in [(1, 1, 1), (4, 7, 20), (7, 4, 3), (5, 5, 0), (0, 3, 0), (30, 20, 200)] {
        let a = random(rows, columns, entries, DType::F64);
        let dense = a.to_dense();
        for k in [1, 3, 16] {
            let x = Tensor::randn(Key::new(1), [columns, k], DType::F64);
            close(&a.matmul(&x), &dense.matmul(&x));
            let y = Tensor::randn(Key::new(2), [rows, k], DType::F64);
            close(&a.transposed().matmul(&y), &dense.t().matmul(&y));
            close(&a.coalesced().matmul(&x), &dense.matmul(&x));
            let at_places = a.sampled_matmul(&y, &x);
            close(&at_places.to_dense(), &(y.matmul(&x.t()) * count(&a)));
        }
        let v = Tensor::randn(Key::new(3), [columns], DType::F64);
        close(&a.matmul(&v), &dense.matmul(&v));
        // A strided factor.
        let wide = Tensor::randn(Key::new(4), [3, columns], DType::F64);
        close(&a.matmul(&wide.t()), &dense.matmul(&wide.t()));
    }
}

/// How often each place is there.
fn count(a: &Sparse) -> Tensor {
    a.with_values(&a.values().ones_like()).to_dense()
}

#[test]
fn gradients_are_those_of_the_dense_matrix() {
    let a = random(5, 4, 9, DType::F64);
    let x = Tensor::randn(Key::new(1), [4, 3], DType::F64);
    let weights = Tensor::randn(Key::new(2), [5, 3], DType::F64);
    let loss = |a: &Sparse, x: &Tensor| (a.matmul(x).tanh() * &weights).sum();
    let by_dense = |a: &Sparse, x: &Tensor| (a.to_dense().matmul(x).tanh() * &weights).sum();
    close(grad(|a: &Sparse| loss(a, &x))(&a).values(), grad(|a: &Sparse| by_dense(a, &x))(&a).values());
    close(&grad(|x: &Tensor| loss(&a, x))(&x), &grad(|x: &Tensor| by_dense(&a, x))(&x));
    // Second order, across both factors.
    let mixed = |f: &dyn Fn(&Sparse, &Tensor) -> Tensor| {
        grad(|x: &Tensor| grad(|v: &Tensor| f(&a.with_values(v), x))(a.values()).square().sum())(&x)
    };
    close(&mixed(&loss), &mixed(&by_dense));
    // And with the matrix as a part of a tree.
    let g = grad(|(a, x): &(Sparse, Tensor)| loss(a, x))(&(a.clone(), x.clone()));
    close(g.0.values(), grad(|a: &Sparse| loss(a, &x))(&a).values());
    assert_eq!((g.0.names(), g.0.shape()), (vec!["values".to_string()], [5, 4]));
}

#[test]
fn formats() {
    // | 0 1 0 |
    // | 2 0 3 |
    // | 0 0 0 |
    let (starts, columns) = (Tensor::from([0i32, 1, 3, 3]), Tensor::from([1i32, 0, 2]));
    let a = Sparse::csr(&starts, &columns, &Tensor::from([1.0, 2.0, 3.0]), [3, 3]);
    assert_eq!(a.row_indices().to_vec::<i64>(), [0, 1, 1]);
    assert_eq!(a.row_starts().to_vec::<i64>(), [0, 1, 3, 3]);
    let dense = Tensor::from([[0.0, 1.0, 0.0], [2.0, 0.0, 3.0], [0.0, 0.0, 0.0]]);
    close(&a.to_dense(), &dense);
    let b = Sparse::from_dense(&dense);
    assert_eq!((b.nnz(), b.column_indices().to_vec::<i64>()), (3, vec![1, 0, 2]));
    // Duplicates add up, once, and the gradient reaches each of them.
    let (rows, columns) = (Tensor::from([1, 0, 1, 1]), Tensor::from([0, 1, 2, 0]));
    let c = Sparse::coo(&rows, &columns, &Tensor::from([0.5, 1.0, 3.0, 1.5]), [3, 3]);
    let sorted = c.coalesced();
    assert_eq!((sorted.nnz(), sorted.values().to_vec::<f64>()), (3, vec![1.0, 2.0, 3.0]));
    let g = grad(|c: &Sparse| (c.coalesced().values() * Tensor::from([1.0, 10.0, 100.0])).sum())(&c);
    assert_eq!(g.values().to_vec::<f64>(), [10.0, 1.0, 100.0, 10.0]);
    // The gradient of what was made from a dense matrix is zero where no entry is.
    let g = grad(|x: &Tensor| Sparse::from_dense(x).matmul(&Tensor::ones([3])).sum())(&dense);
    close(&g, &dense.ne(0.0).cast(DType::F64));
}

#[test]
fn many_examples_at_once() {
    let a = random(4, 3, 6, DType::F64);
    let x = Tensor::randn(Key::new(1), [5, 3, 2], DType::F64);
    let v = Tensor::randn(Key::new(2), [5, 6], DType::F64);
    let each = |f: &dyn Fn(isize) -> Tensor| Tensor::stack(&(0..5).map(f).collect::<Vec<_>>(), 0);
    close(&vmap(|x: &Tensor| a.matmul(x))(&x), &each(&|k| a.matmul(&x.get(k))));
    let one = x.get(0);
    close(
        &vmap(|a: &Sparse| a.matmul(&one))(&a.with_values(&v)),
        &each(&|k| a.with_values(&v.get(k)).matmul(&one)),
    );
    let both = |(a, x): &(Sparse, Tensor)| a.matmul(x);
    close(
        &vmap(both)(&(a.with_values(&v), x.clone())),
        &each(&|k| a.with_values(&v.get(k)).matmul(&x.get(k))),
    );
    let y = vmap_axes(both, (None, 0), 0)(&(a.clone(), x.clone()));
    close(&y, &each(&|k| a.matmul(&x.get(k))));
    // Places that are different in each lane.
    let lists = (Tensor::randint(Key::new(3), [5, 6], 0, 4), Tensor::randint(Key::new(4), [5, 6], 0, 3));
    let made =
        |(rows, columns): &(Tensor, Tensor)| Sparse::coo(rows, columns, a.values(), [4, 3]).matmul(&one);
    close(&vmap(made)(&lists), &each(&|k| made(&(lists.0.get(k), lists.1.get(k)))));
}

#[test]
fn compiled_for_the_places_it_has() {
    let x = Tensor::randn(Key::new(1), [3, 2], DType::F64);
    let f = compile(|a: &Sparse| a.matmul(&x));
    let (a, b) = (random(4, 3, 6, DType::F64), random(4, 3, 5, DType::F64));
    close(&f.call(&a), &a.matmul(&x));
    close(&f.call(&a.with_values(&(a.values() * 2.0))), &(a.matmul(&x) * 2.0));
    assert_eq!(f.traces(), 1);
    close(&f.call(&b), &b.matmul(&x));
    assert_eq!(f.traces(), 2);
    // The places as data.
    let g = compile(|(rows, columns, v): &(Tensor, Tensor, Tensor)| {
        Sparse::coo(rows, columns, v, [4, 3]).matmul(&x)
    });
    let parts = |a: &Sparse| (a.row_indices().clone(), a.column_indices().clone(), a.values().clone());
    close(&g.call(&parts(&a)), &a.matmul(&x));
    let other = random(4, 3, 6, DType::F64).transposed();
    let other = Sparse::coo(other.column_indices(), other.column_indices(), other.values(), [4, 4]);
    assert_eq!(other.nnz(), 6);
}

#[test]
fn other_types_and_promotion() {
    let a = random(4, 3, 8, DType::F32);
    let x = Tensor::randn(Key::new(1), [3, 2], DType::F64);
    assert_eq!(a.matmul(&x).dtype(), DType::F64);
    assert_eq!(a.matmul(&Tensor::from([1i64, 2, 3])).dtype(), DType::F32);
    for dtype in [DType::F16, DType::BF16] {
        // Added in single precision, and rounded once.
        let n = 3000;
        let zeros = Tensor::zeros([n]).cast(DType::I64);
        let ones = Tensor::ones([n]).cast(dtype);
        let a = Sparse::coo(&zeros, &zeros, &ones, [1, 1]);
        let exact = Tensor::scalar(n as f64).cast(dtype).item();
        assert_eq!(a.matmul(&Tensor::ones([1]).cast(dtype)).to_vec::<f64>(), [exact]);
    }
}

#[test]
fn the_same_on_any_number_of_threads() {
    let a = random(2000, 1500, 100_000, DType::F64);
    let x = Tensor::randn(Key::new(1), [1500, 8], DType::F64);
    let f = |(a, x): &(Sparse, Tensor)| a.matmul(x).square().sum();
    let all = || {
        let g = grad(f)(&(a.clone(), x.clone()));
        [a.matmul(&x), g.0.values().clone(), g.1].map(|t| t.to_vec::<f64>())
    };
    pullback::set_num_threads(1);
    let one = all();
    pullback::set_num_threads(4);
    assert!(one == all());
}

#[test]
fn what_is_wrong_is_said() {
    let (rows, columns, values) = (Tensor::from([0, 3]), Tensor::from([0, 1]), Tensor::from([1.0, 2.0]));
    let a = Sparse::coo(&rows, &columns, &values, [2, 2]);
    let says = |e: pullback::Error, kind: ErrorKind, what: &str| {
        assert!(e.kind() == kind && e.to_string().contains(what), "{e}");
    };
    says(
        a.try_matmul(&Tensor::ones([2])).unwrap_err(),
        ErrorKind::Index,
        "row 3 of entry 1 is outside of a matrix that has 2",
    );
    let e = a.transposed().try_matmul(&Tensor::ones([2])).unwrap_err();
    says(e, ErrorKind::Index, "column 3 of entry 1");
    says(
        a.try_matmul(&Tensor::ones([3])).unwrap_err(),
        ErrorKind::Shape,
        "first axis has length 2, not with [3]",
    );
    let e = Sparse::try_coo(&rows, &columns, &Tensor::ones([3]), [2, 2]).unwrap_err();
    says(e, ErrorKind::Shape, "got 2 rows, 2 columns and f64 [3]");
    let e = Sparse::try_coo(&values, &columns, &values, [2, 2]).unwrap_err();
    says(e, ErrorKind::Shape, "coo: rows are a list of integers, not f64 [2]");
    for starts in [vec![0, 1], vec![0, 2, 1, 2], vec![1, 1, 2], vec![0, 1, 1]] {
        let e = Sparse::try_csr(&Tensor::from(starts), &columns, &values, [2, 2]).unwrap_err();
        says(e, ErrorKind::Value, "csr: needs 3 row starts");
    }
    let none = Tensor::from([0i64; 0]);
    let e = Sparse::try_csr(&none, &none, &Tensor::zeros([0]), [usize::MAX, 2]).unwrap_err();
    says(e, ErrorKind::Value, "needs 18446744073709551616 row starts");
    let huge = Sparse::coo(&none, &none, &Tensor::zeros([0]), [usize::MAX, 2]);
    assert!(pullback_testing::message(|| huge.to_dense()).contains("more elements than memory can address"));
    assert_eq!(huge.try_matmul(&Tensor::ones([2])).unwrap_err().kind(), ErrorKind::Shape);
    let unsorted = Sparse::coo(&Tensor::from([1, 0]), &columns, &values, [2, 2]);
    let text = pullback_testing::message(|| unsorted.row_starts());
    assert!(text.contains("use .coalesced() first"), "{text}");
    let traced = pullback_testing::message(|| {
        compile(|x: &Tensor| Sparse::from_dense(x).to_dense()).call(&Tensor::eye(2))
    });
    assert!(traced.contains("make the matrix outside"), "{traced}");
}
