use crate::recorded::{Case, check};
use pullback::prelude::*;

#[test]
fn softmax_and_cross_entropy() {
    check(include_str!("cases/softmax.json"), |case: &Case, x: &[Tensor]| match case.name.as_str() {
        "softmax" => x[0].softmax(case.int("axis") as isize),
        "log_softmax" => x[0].log_softmax(case.int("axis") as isize),
        "cross_entropy" => x[0].cross_entropy(&x[1]),
        other => panic!("no such case: {other}"),
    });
}
