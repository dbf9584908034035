//! The memory that a plan promises is all that a run takes.

use pullback::{Executable, memory, prelude::*};
use pullback_testing::alone;

#[test]
fn a_run_stays_within_the_planned_peak() {
    let _turn = alone();
    let normal = |k: u64, shape: &[usize]| Tensor::randn(Key::new(k), shape, DType::F32);
    let sizes = [64, 200, 200, 10];
    let mut x = vec![normal(1, &[32, 64])];
    x.extend((0..3).map(|l| normal(2 + l as u64, &[sizes[l], sizes[l + 1]]) * 0.1));
    let loss = |x: &Vec<Tensor>| {
        let h = (0..3).fold(x[0].clone(), |h, l| h.matmul(&x[1 + l]).tanh());
        let (_, sums) = scan(|s: &Tensor, row: &Tensor| ((s * 0.9 + row).sin(), s * row), &h.get(0), &h);
        (h.softmax(-1) * sums).square().sum()
    };
    let graph = trace(|x: &Vec<Tensor>| value_and_grad(loss)(x), &x);
    // Freed memory that is taken again may be an eighth too large.
    memory::set_pool_limit(0);
    let plan = Executable::new(graph).unwrap();
    let planned = plan.statistics().peak_bytes;

    let before = memory::live_bytes();
    memory::reset_peak();
    let y = plan.run(&x).unwrap();
    let cold = memory::peak_bytes() - before;
    assert!(cold <= planned, "{cold} bytes were taken, and {planned} were planned");

    let outputs: usize = y.iter().map(|t| (t.numel() * 4).next_power_of_two().max(16)).sum();
    drop(y);
    let before = memory::live_bytes();
    memory::reset_peak();
    plan.run(&x).unwrap();
    let warm = memory::peak_bytes() - before;
    assert!(warm <= outputs, "{warm} bytes were taken by a warm run for outputs of {outputs}");
    memory::set_pool_limit(1 << 30);
}
