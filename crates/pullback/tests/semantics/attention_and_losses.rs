//! What masks hide, and what labels leave out, gives nothing and takes nothing.

use pullback::prelude::*;
use pullback::{Attention, CrossEntropy, Norm, attention, vjp};

fn normal(seed: u64, shape: &[usize]) -> Tensor {
    Tensor::randn(Key::new(seed), shape, DType::F64)
}

/// As it is written: `softmax(q kᵀ scale, masked) v`.
fn plain(q: &Tensor, k: &Tensor, v: &Tensor, hidden: &Tensor) -> Tensor {
    let scores = q.matmul(&k.transpose(-1, -2)) / (q.shape()[q.rank() - 1] as f64).sqrt();
    Tensor::where_(&hidden.broadcast_to(scores.shape()), f64::NEG_INFINITY, &scores).softmax(-1).matmul(v)
}

#[test]
fn a_query_that_sees_no_key_gives_zero_and_no_gradient() {
    let x = vec![normal(1, &[2, 3]), normal(2, &[4, 3]), normal(3, &[4, 2])];
    let kept = Tensor::from([[true, false, true, true], [false, false, false, false]]);
    let low = Tensor::where_(&kept, 0.0, Tensor::full([2, 4], f64::NEG_INFINITY));
    for mask in [kept, low] {
        let f = |x: &Vec<Tensor>| attention(&x[0], &x[1], &x[2], Attention::new().mask(&mask));
        let (y, pull) = vjp(f, &x);
        assert_eq!(y.get(1).to_vec::<f64>(), [0.0, 0.0]);
        let g = pull(&y.ones_like());
        assert_eq!(g[0].get(1).to_vec::<f64>(), [0.0; 3]);
        assert!(g.iter().all(|g| g.to_vec::<f64>().iter().all(|v| v.is_finite())), "{g:?}");
        assert_eq!((g[1].get(1).to_vec::<f64>(), g[2].get(1).to_vec::<f64>()), (vec![0.0; 3], vec![0.0; 2]));
    }
}

#[test]
fn tiles_give_what_the_whole_gives() {
    // More than a tile of queries and of keys, in a layout of batch, sequence, heads.
    let x: Vec<Tensor> = (1..4).map(|k| normal(k, &[2, 150, 3, 5])).collect();
    let heads = |x: &Tensor| x.transpose(1, 2);
    let later = Tensor::arange(0, 150, 1).unsqueeze(1).lt(Tensor::arange(0, 150, 1));
    let ours =
        |x: &Vec<Tensor>| attention(&heads(&x[0]), &heads(&x[1]), &heads(&x[2]), Attention::new().causal());
    let theirs = |x: &Vec<Tensor>| plain(&heads(&x[0]), &heads(&x[1]), &heads(&x[2]), &later);
    let ((y, pull), (expected, other)) = (vjp(ours, &x), vjp(theirs, &x));
    assert!(y.is_close(&expected, 1e-12, 1e-12));
    let g = normal(9, y.shape());
    for (a, b) in pull(&g).iter().zip(&other(&g)) {
        assert!(a.is_close(b, 1e-11, 1e-11));
    }
    let compiled = compile(|x: &Vec<Tensor>| grad(|x: &Vec<Tensor>| ours(x).square().sum())(x));
    for (a, b) in compiled.call(&x).iter().zip(&grad(|x: &Vec<Tensor>| theirs(x).square().sum())(&x)) {
        assert!(a.is_close(b, 1e-11, 1e-11));
    }
}

#[test]
fn heads_share_keys_and_values() {
    let (q, k, v) = (normal(1, &[2, 6, 4, 3]), normal(2, &[2, 2, 5, 3]), normal(3, &[2, 2, 5, 2]));
    let mask = normal(4, &[6, 4, 5]);
    let repeated = |t: &Tensor| {
        let rows: Vec<Tensor> = (0..6).map(|h| t.narrow(1, h / 3, 1)).collect();
        Tensor::concat(&rows, 1)
    };
    let options = || Attention::new().mask(&mask);
    let shared = attention(&q, &k, &v, options());
    assert!(shared.is_close(&attention(&q, &repeated(&k), &repeated(&v), options()), 1e-13, 1e-13));
    // Of one head, all leading axes broadcast.
    let one = attention(&q, &k.get(0).get(0), &v.get(0).get(0), Attention::new());
    assert!(one.get(0).get(3).is_close(
        &attention(&q.get(0).get(3), &k.get(0).get(0), &v.get(0).get(0), Attention::new()),
        1e-13,
        1e-13
    ));
}

#[test]
fn dropout_draws_from_its_key() {
    let (q, v) = (Tensor::zeros([4, 200, 2]), Tensor::ones([4, 300, 1]));
    let k = Tensor::zeros([4, 300, 2]);
    let dropped = |seed: u64| attention(&q, &k, &v, Attention::new().dropout(0.25, Key::new(seed)));
    let (a, b) = (dropped(1), dropped(2));
    assert_eq!(a.to_vec::<f64>(), dropped(1).to_vec::<f64>());
    assert_ne!(a.to_vec::<f64>(), b.to_vec::<f64>());
    // The mean stays, and the spread is that of 300 weights of 1/300, each kept with probability 3/4.
    assert!((a.mean().item() - 1.0).abs() < 5e-3, "{}", a.mean().item());
    let spread = (0.25f64 / 0.75 / 300.0).sqrt();
    assert!((a.std().item() / spread - 1.0).abs() < 0.1, "{}", a.std().item());
    // Under vmap each lane draws what it would draw alone.
    let keys = Key::new(7).split_into(3);
    let f = |(q, key): &(Tensor, Key)| attention(q, &k.get(0), &v.get(0), Attention::new().dropout(0.5, key));
    let lanes = vmap(f)(&(Tensor::zeros([3, 200, 2]), keys));
    let [_, second, _]: [Key; 3] = Key::new(7).split();
    assert_eq!(lanes.get(1).to_vec::<f64>(), f(&(q.get(0), second)).to_vec::<f64>());
}

#[test]
fn halves_are_computed_in_single_precision() {
    let x: Vec<Tensor> = (1..4).map(|k| normal(k, &[3, 4]).cast(DType::BF16)).collect();
    let wide: Vec<Tensor> = x.iter().map(|t| t.cast(DType::F32)).collect();
    let y = attention(&x[0], &x[1], &x[2], Attention::new());
    assert_eq!(y.dtype(), DType::BF16);
    let expected = attention(&wide[0], &wide[1], &wide[2], Attention::new()).cast(DType::BF16);
    assert_eq!(y.to_vec::<f64>(), expected.to_vec::<f64>());
    let normed = x[0].layer_norm(Norm::new());
    assert_eq!(normed.dtype(), DType::BF16);
    assert_eq!(normed.to_vec::<f64>(), wide[0].layer_norm(Norm::new()).cast(DType::BF16).to_vec::<f64>());
}

#[test]
fn ignored_rows_leak_nothing() {
    let logits = Tensor::from([[1.0, 2.0], [f64::NAN, f64::INFINITY], [0.0, 0.5]]);
    let labels = Tensor::from([1i64, -1, 0]);
    let loss = |x: &Tensor| x.cross_entropy_with(&labels, CrossEntropy::new().ignore(-1).mean());
    let (value, g) = value_and_grad(loss)(&logits);
    let kept = Tensor::from([[1.0, 2.0], [0.0, 0.5]]);
    let (expected, other) =
        value_and_grad(|x: &Tensor| x.cross_entropy(&Tensor::from([1i64, 0])).mean())(&kept);
    assert_eq!(value.item(), expected.item());
    assert_eq!(g.get(1).to_vec::<f64>(), [0.0, 0.0]);
    assert!(g.get(0).is_close(&other.get(0), 1e-15, 1e-15) && g.get(2).is_close(&other.get(1), 1e-15, 1e-15));
    let none = Tensor::from([-1i64, -1, -1]);
    assert!(logits.cross_entropy_with(&none, CrossEntropy::new().ignore(-1).mean()).item().is_nan());
    assert_eq!(logits.cross_entropy_with(&none, CrossEntropy::new().ignore(-1).sum()).item(), 0.0);
}

#[test]
fn what_cannot_be_is_refused() {
    let (x, labels) = (Tensor::zeros([2, 3]), Tensor::from([0i64, 1]));
    let said = |e: pullback::Result<Tensor>, words: &[&str]| {
        let e = e.unwrap_err().to_string();
        assert!(words.iter().all(|w| e.contains(w)), "{e}");
    };
    said(
        x.try_cross_entropy_with(&labels, CrossEntropy::new().smoothing(1.5)),
        &["cross_entropy_with", "from 0 to 1"],
    );
    said(x.try_cross_entropy_with(&x, CrossEntropy::new().ignore(0)), &["class numbers"]);
    said(
        x.try_cross_entropy_with(&labels, CrossEntropy::new().weights(&Tensor::ones([2]))),
        &["3 classes", "[2]"],
    );
    said(x.try_layer_norm(Norm::new().weight(&Tensor::ones([2]))), &["layer_norm", "[3]", "[2]"]);
    said(x.try_layer_norm(Norm::new().axes(3)), &["layer_norm", "last 3 axes"]);
    said(labels.try_rms_norm(Norm::new()), &["rms_norm", "i64"]);
    said(x.try_group_norm(2, Norm::new()), &["group_norm", "3 channels", "2 groups"]);
    said(
        pullback::try_attention(&x, &x, &Tensor::zeros([4, 3]), Attention::new()),
        &["attention", "[2, 3]", "[4, 3]", "[.., m, v]"],
    );
    said(
        pullback::try_attention(&x, &x, &x, Attention::new().mask(&Tensor::zeros([3, 3]))),
        &["attention", "mask", "[2, 2]", "[3, 3]"],
    );
    said(
        pullback::try_attention(&x, &x, &x, Attention::new().dropout(1.0, Key::new(1))),
        &["attention", "below 1"],
    );
}
