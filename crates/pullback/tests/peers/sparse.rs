use crate::recorded::{Case, check};
use pullback::Sparse;
use pullback::prelude::*;

#[test]
fn sparse_matrices() {
    check(include_str!("cases/sparse.json"), |case: &Case, x: &[Tensor]| {
        let shape = [case.int("rows") as usize, case.int("columns") as usize];
        let coo = || Sparse::coo(&x[0], &x[1], &x[2], shape);
        match case.name.as_str() {
            "matmul" | "vector" => coo().matmul(&x[3]),
            "transposed" => coo().transposed().matmul(&x[3]),
            "to_dense" => coo().to_dense(),
            "coalesced" => coo().coalesced().values().clone(),
            "csr" => Sparse::csr(&x[0], &x[1], &x[2], shape).matmul(&x[3]),
            "sampled" => {
                let places = Sparse::coo(&x[0], &x[1], &x[0].cast(DType::F64), shape);
                places.sampled_matmul(&x[2], &x[3]).values().clone()
            }
            other => panic!("no such case: {other}"),
        }
    });
}
