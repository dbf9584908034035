//! Loops in the longest vectors of the processor compute what single elements do. Only optimised code has such loops.

use pullback::prelude::*;
use pullback_testing::alone;

type Function = fn(&Tensor) -> Tensor;

const FUNCTIONS: [(&str, Function); 12] = [
    ("exp", |x| x.exp()),
    ("ln", |x| x.abs().ln()),
    ("log1p", |x| x.abs().log1p()),
    ("sin", |x| x.sin()),
    ("tan", |x| x.tan()),
    ("tanh", |x| x.tanh()),
    ("sinh", |x| x.sinh()),
    ("atan", |x| x.atan()),
    ("cbrt", |x| x.cbrt()),
    ("sigmoid", |x| x.sigmoid()),
    ("erf", |x| x.erf()),
    ("pow", |x| x.abs().pow(x)),
];

/// Numbers of every size, and what has no place among them.
fn numbers() -> Vec<f64> {
    let spread = (0..1000).map(|k| (f64::from(k) * 0.618_033_988_749_894_9).fract() * 12.0 - 6.0);
    let rare = [0.0, -0.0, 1e12, -1e300, 1e-310, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 709.9, -745.3];
    spread.chain(rare).collect()
}

fn bits(x: &[f64]) -> Vec<u64> {
    x.iter().map(|x| if x.is_nan() { u64::MAX } else { x.to_bits() }).collect()
}

#[test]
fn long_loops_have_the_bits_of_single_elements() {
    let _turn = alone();
    for dtype in [DType::F32, DType::F64] {
        let all = Tensor::from_slice(&numbers(), [1010]).cast(dtype);
        let of = |f: Function, x: &Tensor| f(x).cast(DType::F64).to_vec::<f64>();
        for (name, f) in FUNCTIONS {
            let single: Vec<f64> =
                numbers().iter().flat_map(|&x| of(f, &Tensor::from_slice(&[x], [1]).cast(dtype))).collect();
            assert!(bits(&of(f, &all)) == bits(&single), "{name} of {dtype}");
            let compiled = compile(f).call(&all).cast(DType::F64).to_vec::<f64>();
            assert!(bits(&compiled) == bits(&single), "{name} of {dtype}, compiled");
        }
    }
}
