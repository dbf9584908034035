use crate::recorded::{Case, check};
use pullback::prelude::*;
use pullback::{Attention, CrossEntropy, Norm, attention, einsum};

fn norm(x: &[Tensor]) -> Norm {
    let norm = x.first().map_or(Norm::new(), |w| Norm::new().weight(w));
    x.get(1).map_or(norm.clone(), |b| norm.bias(b))
}

fn cross_entropy(case: &Case, x: &[Tensor]) -> Tensor {
    let mut options = CrossEntropy::new();
    if let Some(s) = case.options["smoothing"].as_f64() {
        options = options.smoothing(s);
    }
    if let Some(label) = case.options["ignore"].as_i64() {
        options = options.ignore(label);
    }
    if let Some(w) = x.get(2) {
        options = options.weights(&w.cast(DType::F64));
    }
    options = match case.options["reduction"].as_str() {
        Some("mean") => options.mean(),
        Some("sum") => options.sum(),
        _ => options,
    };
    x[0].cross_entropy_with(&x[1], options)
}

fn attended(case: &Case, x: &[Tensor]) -> Tensor {
    let options = match case.options["kind"].as_str() {
        Some("causal") => Attention::new().causal(),
        Some("scaled") => Attention::new().scale(0.3),
        Some("added" | "kept") => Attention::new().mask(&x[3]),
        _ => Attention::new(),
    };
    attention(&x[0], &x[1], &x[2], options)
}

#[test]
fn products_norms_attention_and_losses() {
    check(include_str!("cases/fused.json"), |case: &Case, x: &[Tensor]| match case.name.as_str() {
        "einsum" => einsum(case.options["spec"].as_str().expect("a notation"), x),
        "tensordot" => x[0].tensordot(&x[1], [2, 0], [0, 1]),
        "kron" => x[0].kron(&x[1]),
        "cross" => x[0].cross(&x[1], case.int("axis") as isize),
        "inner" => x[0].inner(&x[1]),
        "bilinear" => x[0].bilinear(&x[1], &x[2]),
        "layer_norm" => x[0].layer_norm(norm(&x[1..])),
        "rms_norm" => x[0].rms_norm(norm(&x[1..])),
        "group_norm" => x[0].group_norm(case.int("groups") as usize, norm(&x[1..])),
        "instance_norm" => x[0].instance_norm(norm(&x[1..])),
        "batch_norm" => x[0].batch_norm(norm(&x[1..])).0,
        "batch_norm_with" => x[0].batch_norm_with(&x[1], &x[2], norm(&x[3..])),
        "attention" => attended(case, x),
        "cross_entropy" => cross_entropy(case, x),
        "binary_cross_entropy" => match x.get(2) {
            Some(w) => x[0].weighted_binary_cross_entropy_with_logits(&x[1], w.cast(DType::F64)),
            None => x[0].binary_cross_entropy_with_logits(&x[1]),
        },
        other => panic!("no such case: {other}"),
    });
}
